/**
 * GET /jobs, GET and DELETE /jobs/:id, and the same below /admin: long work under way and ended. A caller sees its own, an administrator that of the tenant, and
 * who runs the store all of it. Source: specification, "Other HTTP routes".
 */
import { z } from 'zod';
import type { JobView } from '../../../governance/jobs/job-runner.ts';
import { reply, route, type Route } from '../route.ts';
import { nanoseconds } from '../schemas.ts';

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

const jobRoutesOf = (access: 'token' | 'admin'): readonly Route[] => {
  const base = access === 'admin' ? '/admin/jobs' : '/jobs';
  const reading = { access, action: 'inspect', bucket: 'read' } as const;
  const changing = { access, action: access === 'admin' ? 'administer' : 'ingest', bucket: 'write' } as const;
  return [
    route({
      method: 'GET',
      path: base,
      ...reading,
      summary: 'Jobs under way and ended, the newest first; kept until the next start',
      tags,
      replies: { 200: z.object({ jobs: z.array(job) }) },
      run: async (invocation, { context: { jobs } }) => {
        const listed = jobs.list(invocation.caller).map(describeJob);
        invocation.describe({ rowCount: listed.length });
        return { jobs: listed };
      },
    }),

    route({
      method: 'GET',
      path: `${base}/:id`,
      ...reading,
      summary: 'How far a job is',
      tags,
      params,
      replies: { 200: job },
      example: { params: { id: 'a task' } },
      run: async ({ caller }, { params, context: { jobs } }) => describeJob(jobs.find(params.id, caller)),
    }),

    route({
      method: 'DELETE',
      path: `${base}/:id`,
      ...changing,
      summary: 'Cancel a job: it ends as soon as it can, and what it has done by then stays; 409 where it has ended',
      tags,
      params,
      replies: { 202: job },
      example: { params: { id: 'a job' } },
      run: async (invocation, { params, context: { jobs } }) => {
        invocation.describe({ template: 'cancel ?', literals: [params.id] });
        return reply(202, describeJob(jobs.cancel(params.id, invocation.caller)));
      },
    }),
  ];
};

export const jobRoutes = jobRoutesOf('token');
export const adminJobRoutes = jobRoutesOf('admin');

function describeJob({ path, queuedAt, startedAt, finishedAt, code, ...job }: JobView) {
  return { ...job, organization: path, queued_at: queuedAt, started_at: startedAt, finished_at: finishedAt, error: code };
}
