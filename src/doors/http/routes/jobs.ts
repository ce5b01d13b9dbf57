/**
 * /jobs, and the same below /admin: scheduled jobs and their runs, and long work that was asked for once. A caller sees its own, an
 * administrator that of the tenant, and who runs the store all of it. Source: specification, "Other HTTP routes".
 */
import { z } from 'zod';
import {
  describeScheduled,
  describeWork,
  findJobView,
  jobInput,
  jobView,
  listJobViews,
  scheduledReply,
  scheduleJob,
} from '../../verbs/job-views.ts';
import { reply, route, type Route } from '../route.ts';

const jobTags = ['system'];
const jobParams = z.object({ id: z.string() });
const scheduleJobBody = z.strictObject({ ...jobInput, purpose: z.string().optional().describe('stated by every run') });

const jobRoutesFor = (jobAccess: 'token' | 'admin'): readonly Route[] => {
  const jobsPath = jobAccess === 'admin' ? '/admin/jobs' : '/jobs';
  const jobReading = { access: jobAccess, action: 'inspect', bucket: 'read' } as const;
  const jobChanging = { access: jobAccess, action: jobAccess === 'admin' ? 'administer' : 'ingest', bucket: 'write' } as const;
  return [
    route({
      method: 'GET',
      path: jobsPath,
      ...jobReading,
      summary:
        'Scheduled jobs, and long work under way and ended, the newest first: what an end of the process cut off has failed',
      tags: jobTags,
      replies: { 200: z.object({ jobs: z.array(jobView), total: z.int() }) },
      run: async (jobInvocation, { context: httpContext }) => {
        const listedJobs = listJobViews(httpContext, jobInvocation.caller);
        jobInvocation.describe({ rowCount: listedJobs.length });
        return { jobs: listedJobs, total: listedJobs.length };
      },
    }),

    route({
      method: 'GET',
      path: `${jobsPath}/:id`,
      ...jobReading,
      summary: 'How far a job is',
      tags: jobTags,
      params: jobParams,
      replies: { 200: jobView },
      example: { params: { id: 'a task' } },
      run: async ({ caller: jobCaller }, { params: { id: jobId }, context: httpContext }) =>
        findJobView(httpContext, jobId, jobCaller),
    }),

    route({
      method: 'DELETE',
      path: `${jobsPath}/:id`,
      ...jobChanging,
      summary:
        'End a scheduled job, or cancel work: it ends as soon as it can, and what it has done by then stays; 409 where it has ended',
      tags: jobTags,
      params: jobParams,
      replies: { 202: jobView },
      example: { params: { id: 'a job' } },
      run: async (jobInvocation, { params: { id: jobId }, context: { jobs: jobRunner, schedule: jobSchedule } }) => {
        const { caller: jobCaller } = jobInvocation;
        if (jobSchedule.find(jobId, jobCaller) !== null)
          return reply(202, describeScheduled(jobSchedule, await jobSchedule.change(jobInvocation, jobId, 'ended'), jobCaller));
        jobInvocation.describe({ template: 'cancel ?', literals: [jobId] });
        return reply(202, describeWork(jobRunner.cancel(jobId, jobCaller)));
      },
    }),
  ];
};

const jobScheduling = { access: 'token', action: 'schema', bucket: 'write' } as const;

const scheduledJobActs = [
  ['run', 'Run a scheduled job now, beside its schedule'],
  ['pause', 'Pause a scheduled job: runs that are due meanwhile are not made up for'],
  ['resume', 'Schedule a job that was paused'],
  ['cancel', 'Cancel the run of a scheduled job that is under way'],
] as const;

export const jobRoutes: readonly Route[] = [
  ...jobRoutesFor('token'),
  route({
    method: 'POST',
    path: '/jobs',
    ...jobScheduling,
    summary: 'Schedule a job: a first run that is due at once is waited for, ten seconds at most',
    tags: jobTags,
    body: scheduleJobBody,
    purposeIn: 'body',
    replies: { 201: scheduledReply },
    example: { body: { name: 'a new job', run: { sql: 'a statement' }, interval_secs: 3600 } },
    run: async (jobInvocation, { body: jobFields, context: httpContext }) =>
      reply(201, await scheduleJob(jobInvocation, httpContext, jobFields)),
  }),
  ...scheduledJobActs.map(([jobAct, jobActSummary]) =>
    route({
      method: 'POST',
      path: `/jobs/:id/${jobAct}`,
      ...jobScheduling,
      summary: jobActSummary,
      tags: jobTags,
      params: jobParams,
      replies: { 200: jobView },
      example: { params: { id: 'a scheduled job' } },
      run: async (jobInvocation, { params: { id: scheduledJobId }, context: { schedule: jobSchedule } }) => {
        const scheduledJob =
          jobAct === 'run'
            ? await jobSchedule.run(jobInvocation, scheduledJobId)
            : jobAct === 'cancel'
              ? await jobSchedule.cancel(jobInvocation, scheduledJobId)
              : await jobSchedule.change(jobInvocation, scheduledJobId, jobAct === 'pause' ? 'paused' : 'resumed');
        return describeScheduled(jobSchedule, scheduledJob, jobInvocation.caller);
      },
    }),
  ),
];
export const adminJobRoutes = jobRoutesFor('admin');
