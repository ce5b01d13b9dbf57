/** GET /ingest/tasks/:id: what became of a body that was answered with 202. Source: specification, "Ingest". */
import { z } from 'zod';
import type { IngestTask, IngestTasks } from '../../ingest-tasks.ts';
import type { App, HttpContext } from '../context.ts';
import { invoke } from '../invoke.ts';
import { problemOf, toServiceError } from '../problem.ts';
import { nanoseconds, problem, problems } from '../schemas.ts';

export const statusUrl = ({ id }: Pick<IngestTask, 'id'>): string => `/ingest/tasks/${id}`;

/** `ingestReply` is in it. */
export function taskReplyOf(ingestReply: z.ZodType) {
  return z.object({
    task_id: z.string(),
    state: z.enum(['queued', 'running', 'done', 'failed']),
    accepted: z.int().describe('rows so far'),
    rejected: z.int(),
    queued_at: nanoseconds,
    started_at: nanoseconds.nullable(),
    finished_at: nanoseconds.nullable(),
    reply: ingestReply.optional().describe('once it is done'),
    problem: z.looseObject(problem.shape).optional().describe('once it has failed; what had been written before, too'),
  });
}

export function registerTasks(app: App, context: HttpContext, tasks: IngestTasks, ingestReply: z.ZodType): void {
  const taskReply = taskReplyOf(ingestReply).meta({ id: 'IngestTask' });
  app.route({
    method: 'GET',
    url: '/ingest/tasks/:id',
    config: { access: 'token', action: 'inspect', bucket: 'read' },
    schema: {
      summary: 'Status of an ingest task; kept until the next start',
      tags: ['ingest'],
      params: z.object({ id: z.string() }),
      response: { 200: taskReply, ...problems },
    },
    handler: (request) =>
      invoke(context, request, 'inspect', undefined, async ({ caller }) =>
        taskShown(context, tasks.find(request.params.id, caller), '/ingest'),
      ),
  });
}

/** `route`: the one that took it. */
export function taskShown(context: HttpContext, task: IngestTask, route: string) {
  const { id, job, progress, reply, failure } = task;
  const { queuedAt, startedAt, finishedAt } = job;
  // It has ended, and what it came to is being recorded still.
  const isOpen = job.finishedAt !== null && reply === null && failure === null;
  const state = isOpen ? 'running' : job.state === 'cancelled' ? 'failed' : job.state;
  const error = failure === null ? null : toServiceError(failure);
  return {
    task_id: id,
    state,
    accepted: progress?.accepted ?? reply?.accepted ?? 0,
    rejected: progress?.rejected ?? 0,
    queued_at: queuedAt,
    started_at: startedAt,
    finished_at: isOpen ? null : finishedAt,
    ...(reply === null ? {} : { reply }),
    ...(error === null
      ? {}
      : {
          problem: {
            ...problemOf(error, context.settings.SERVICE_ERRORS_BASE, route, id),
            ...error.facts.extras,
          },
        }),
  };
}
