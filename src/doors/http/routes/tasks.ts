/** GET /ingest/tasks/:id: what became of a body that was answered with 202. Source: specification, "Ingest". */
import { z } from 'zod';
import { listedMax } from '../../shared/ingest-stream.ts';
import type { IngestTask } from '../ingest-tasks.ts';
import type { HttpContext } from '../context.ts';
import { route, type Route } from '../route.ts';
import { problemOf, toServiceError } from '../problem.ts';
import { nanoseconds, problem } from '../schemas.ts';

export const statusUrl = ({ id: taskId }: Pick<IngestTask, 'id'>): string => `/ingest/tasks/${taskId}`;

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
    run: async ({ caller: taskCaller }, { params: taskParams, context: httpContext }) =>
      taskShown(httpContext, httpContext.tasks.find(taskParams.id, taskCaller), '/ingest'),
  }),
];

/** `ingestUrl`: the route that took it. */
export function taskShown(httpContext: HttpContext, ingestTask: IngestTask, ingestUrl: string) {
  const { id: taskId, job: ingestJob, progress: ingestProgress, reply: ingestTaskReply, failure: ingestFailure } = ingestTask;
  const { queuedAt: taskQueuedAt, startedAt: taskStartedAt, finishedAt: taskFinishedAt } = ingestJob;
  // The job has ended, and its result is still being recorded.
  const isTaskOpen = ingestJob.finishedAt !== null && ingestTaskReply === null && ingestFailure === null;
  const taskState = isTaskOpen ? 'running' : ingestJob.state === 'cancelled' ? 'failed' : ingestJob.state;
  const taskError = ingestFailure === null ? null : toServiceError(ingestFailure);
  return {
    task_id: taskId,
    state: taskState,
    accepted: ingestProgress?.accepted ?? ingestTaskReply?.accepted ?? 0,
    rejected: ingestProgress?.rejected ?? 0,
    queued_at: taskQueuedAt,
    started_at: taskStartedAt,
    finished_at: isTaskOpen ? null : taskFinishedAt,
    ...(ingestTaskReply === null ? {} : { reply: ingestTaskReply }),
    ...(taskError === null
      ? {}
      : {
          problem: {
            ...problemOf(taskError, httpContext.settings.SERVICE_ERRORS_BASE, ingestUrl, taskId),
            ...taskError.facts.extras,
          },
        }),
  };
}
