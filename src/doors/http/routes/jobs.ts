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
} from '../../schemas/job-views.ts';
import { reply, route, type Route } from '../route.ts';

const tags = ['system'];
const params = z.object({ id: z.string() });
const body = z.strictObject({ ...jobInput, purpose: z.string().optional().describe('stated by every run') });

const jobRoutesOf = (access: 'token' | 'admin'): readonly Route[] => {
  const base = access === 'admin' ? '/admin/jobs' : '/jobs';
  const reading = { access, action: 'inspect', bucket: 'read' } as const;
  const changing = { access, action: access === 'admin' ? 'administer' : 'ingest', bucket: 'write' } as const;
  return [
    route({
      method: 'GET',
      path: base,
      ...reading,
      summary:
        'Scheduled jobs, and long work under way and ended, the newest first: what an end of the process cut off has failed',
      tags,
      replies: { 200: z.object({ jobs: z.array(jobView), total: z.int() }) },
      run: async (invocation, { context }) => {
        const listed = listJobViews(context, invocation.caller);
        invocation.describe({ rowCount: listed.length });
        return { jobs: listed, total: listed.length };
      },
    }),

    route({
      method: 'GET',
      path: `${base}/:id`,
      ...reading,
      summary: 'How far a job is',
      tags,
      params,
      replies: { 200: jobView },
      example: { params: { id: 'a task' } },
      run: async ({ caller }, { params: { id }, context }) => findJobView(context, id, caller),
    }),

    route({
      method: 'DELETE',
      path: `${base}/:id`,
      ...changing,
      summary:
        'End a scheduled job, or cancel work: it ends as soon as it can, and what it has done by then stays; 409 where it has ended',
      tags,
      params,
      replies: { 202: jobView },
      example: { params: { id: 'a job' } },
      run: async (invocation, { params: { id }, context: { jobs, schedule } }) => {
        const { caller } = invocation;
        if (schedule.find(id, caller) !== null)
          return reply(202, describeScheduled(schedule, await schedule.change(invocation, id, 'ended'), caller));
        invocation.describe({ template: 'cancel ?', literals: [id] });
        return reply(202, describeWork(jobs.cancel(id, caller)));
      },
    }),
  ];
};

const scheduling = { access: 'token', action: 'schema', bucket: 'write' } as const;

const acts = [
  ['run', 'Run a scheduled job now, beside its schedule'],
  ['pause', 'Pause a scheduled job: runs that are due meanwhile are not made up for'],
  ['resume', 'Schedule a job that was paused'],
  ['cancel', 'Cancel the run of a scheduled job that is under way'],
] as const;

export const jobRoutes: readonly Route[] = [
  ...jobRoutesOf('token'),
  route({
    method: 'POST',
    path: '/jobs',
    ...scheduling,
    summary: 'Schedule a job: a first run that is due at once is waited for, ten seconds at most',
    tags,
    body,
    purposeIn: 'body',
    replies: { 201: scheduledReply },
    example: { body: { name: 'a new job', run: { sql: 'a statement' }, interval_secs: 3600 } },
    run: async (invocation, { body: given, context }) => reply(201, await scheduleJob(invocation, context, given)),
  }),
  ...acts.map(([act, summary]) =>
    route({
      method: 'POST',
      path: `/jobs/:id/${act}`,
      ...scheduling,
      summary,
      tags,
      params,
      replies: { 200: jobView },
      example: { params: { id: 'a scheduled job' } },
      run: async (invocation, { params: { id }, context: { schedule } }) => {
        const job =
          act === 'run'
            ? await schedule.run(invocation, id)
            : act === 'cancel'
              ? await schedule.cancel(invocation, id)
              : await schedule.change(invocation, id, act === 'pause' ? 'paused' : 'resumed');
        return describeScheduled(schedule, job, invocation.caller);
      },
    }),
  ),
];
export const adminJobRoutes = jobRoutesOf('admin');
