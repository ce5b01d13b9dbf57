/**
 * GET /jobs, GET and DELETE /jobs/:id, and the same below /admin: long work under way and ended. A caller sees its own, an administrator that of the tenant, and
 * who runs the store all of it. Source: specification, "Other HTTP routes".
 */
import { z } from 'zod';
import type { JobView } from '../../../governance/jobs/job-runner.ts';
import type { App, HttpContext } from '../context.ts';
import { invoke } from '../invoke.ts';
import { nanoseconds, problems } from '../schemas.ts';

const job = z
  .object({
    id: z.string(),
    kind: z.enum(['ingest', 'backup', 'restore', 'compaction', 'reindex', 'rebuild', 'graph', 'embedding']),
    about: z.string().nullable().describe('the type, or the backup'),
    state: z.enum(['queued', 'running', 'done', 'failed', 'cancelled']),
    unit: z.enum(['rows', 'bytes', 'segments', 'indexes', 'tables', 'edges']),
    done: z.int(),
    total: z.int().nullable().describe('null while it is not known'),
    principal: z.string(),
    organization: z.string().nullable(),
    queued_at: nanoseconds,
    started_at: nanoseconds.nullable(),
    finished_at: nanoseconds.nullable(),
    error: z.string().nullable().describe('the code that a failed one ended in'),
  })
  .meta({ id: 'Job' });

const tags = ['system'];
const params = z.object({ id: z.string() });

export function registerJobs(app: App, context: HttpContext, access: 'token' | 'admin'): void {
  const { jobs } = context;
  const base = access === 'admin' ? '/admin/jobs' : '/jobs';
  const reading = { access, action: 'inspect', bucket: 'read' } as const;
  const changing = { access, action: access === 'admin' ? 'administer' : 'ingest', bucket: 'write' } as const;

  app.route({
    method: 'GET',
    url: base,
    config: reading,
    schema: {
      summary: 'Jobs under way and ended, the newest first; kept until the next start',
      tags,
      response: { 200: z.object({ jobs: z.array(job) }), ...problems },
    },
    handler: (request) =>
      invoke(context, request, reading.action, undefined, async (invocation) => {
        const listed = jobs.list(invocation.caller).map(shown);
        invocation.describe({ rowCount: listed.length });
        return { jobs: listed };
      }),
  });

  app.route({
    method: 'GET',
    url: `${base}/:id`,
    config: reading,
    schema: { summary: 'How far a job is', tags, params, response: { 200: job, ...problems } },
    handler: (request) =>
      invoke(context, request, reading.action, undefined, async ({ caller }) => shown(jobs.find(request.params.id, caller))),
  });

  app.route({
    method: 'DELETE',
    url: `${base}/:id`,
    config: changing,
    schema: {
      summary: 'Cancel a job: it ends as soon as it can, and what it has done by then stays; 409 where it has ended',
      tags,
      params,
      response: { 202: job, ...problems },
    },
    handler: async (request, reply) => {
      const cancelled = await invoke(context, request, changing.action, undefined, async (invocation) => {
        invocation.describe({ template: 'cancel ?', literals: [request.params.id] });
        return shown(jobs.cancel(request.params.id, invocation.caller));
      });
      return reply.code(202).send(cancelled);
    },
  });
}

function shown({ path, queuedAt, startedAt, finishedAt, code, ...job }: JobView) {
  return { ...job, organization: path, queued_at: queuedAt, started_at: startedAt, finished_at: finishedAt, error: code };
}
