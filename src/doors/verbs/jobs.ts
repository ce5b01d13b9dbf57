/** Jobs as tools. Source: specification, "Tools". */
import { z } from 'zod';
import { findJobView, jobInput, jobView, listJobViews, scheduledReply, scheduleJob } from './job-views.ts';
import { verb } from './verb.ts';

const jobOutput = jobView as unknown as z.ZodType;

export const scheduleJobVerb = verb({
  name: 'schedule_job',
  description:
    'Run a question, rules or a function by the clock: every so many seconds, by a cron expression, once, or after another job. Runs have your grants as they are then.',
  input: z.object(jobInput),
  output: scheduledReply as unknown as z.ZodType,
  action: 'schema',
  units: 1,
  purpose: 'required',
  bucket: 'write',
  tool: { title: 'Schedule a job', readOnly: false },
  contents: ['run'],
  example: { name: 'a new job', run: { sql: 'SELECT * FROM MemoryItem' }, interval_secs: 3600 },
  run: async ({ invocation: jobInvocation, parts: verbDependencies }, scheduleInput) =>
    scheduleJob(jobInvocation, verbDependencies, scheduleInput),
});

export const listJobs = verb({
  name: 'list_jobs',
  description: 'Scheduled jobs and long work that you, or whom you administer, asked for: under way and ended, the newest first.',
  input: z.object({ limit: z.int().min(1).max(1_000).default(100) }),
  output: z.object({ jobs: z.array(jobOutput), total: z.int() }),
  action: 'inspect',
  units: 0,
  purpose: 'required',
  bucket: 'read',
  tool: { title: 'Jobs', readOnly: true },
  example: {},
  run: async ({ parts: verbDependencies, invocation: { caller: jobCaller } }, { limit: jobLimit }) => {
    const listedJobs = listJobViews(verbDependencies, jobCaller);
    return { jobs: listedJobs.slice(0, jobLimit), total: listedJobs.length };
  },
});

export const jobStatus = verb({
  name: 'job_status',
  description: 'How far a job is, by its id: a scheduled one, an ingest task, a backup, an export. list_jobs tells the ids.',
  input: z.object({ id: z.string().min(1).max(1_024).describe('of the job, or of the task that it works on') }),
  output: jobOutput,
  action: 'inspect',
  units: 0,
  purpose: 'required',
  bucket: 'read',
  tool: { title: 'Job', readOnly: true },
  example: { id: 'a job' },
  run: async ({ parts: verbDependencies, invocation: { caller: jobCaller } }, { id: jobId }) =>
    findJobView(verbDependencies, jobId, jobCaller),
});
