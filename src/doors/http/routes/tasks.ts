/** GET /ingest/tasks/:id: what became of a body that was answered with 202. Source: specification, "Ingest". */
import { z } from 'zod';
import { listedMax } from '../../ingest/ingest-stream.ts';
import type { IngestTask } from '../../ingest/ingest-tasks.ts';
import type { HttpContext } from '../context.ts';
import { route, type Route } from '../route.ts';
import { problemOf, toServiceError } from '../problem.ts';
import { nanoseconds, problem } from '../schemas.ts';

export const statusUrl = ({ id }: Pick<IngestTask, 'id'>): string => `/ingest/tasks/${id}`;

export const ingestReply = z
  .object({
    type: z.string(),
    accepted: z.int(),
    rejected: z.int(),
    errors: z.array(z.object({ index: z.int(), code: z.string(), detail: z.string() })).describe(`the first ${listedMax.errors}`),
    system_from: nanoseconds.nullable().describe('of the first row written; null when none was'),
    system_from_last: nanoseconds.nullable(),
    ids: z.array(z.string()).describe(`_pk of the first ${listedMax.ids} accepted rows`),
    truncated: z.boolean().describe('ids or errors are not complete'),
    durability: z.enum(['synced', 'buffered']),
    notices: z.array(z.string()).optional().describe('columns that were stored otherwise than they were sent'),
  })
  .meta({ id: 'IngestReply' });

export const taskReply = z.object({
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

export const taskRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/ingest/tasks/:id',
    access: 'token',
    action: 'inspect',
    bucket: 'read',
    summary: 'Status of an ingest task; kept until the next start',
    tags: ['ingest'],
    params: z.object({ id: z.string() }),
    replies: { 200: taskReply.meta({ id: 'IngestTask' }) },
    example: { params: { id: 'a task' } },
    run: async ({ caller }, { params, context }) => taskShown(context, context.tasks.find(params.id, caller), '/ingest'),
  }),
];

/** `takenBy`: the route that took it. */
export function taskShown(context: HttpContext, task: IngestTask, takenBy: string) {
  const { id, job, progress, reply, failure } = task;
  const { queuedAt, startedAt, finishedAt } = job;
  // The job has ended, and its result is still being recorded.
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
            ...problemOf(error, context.settings.SERVICE_ERRORS_BASE, takenBy, id),
            ...error.facts.extras,
          },
        }),
  };
}
