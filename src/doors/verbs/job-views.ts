/** Jobs as callers write and read them, on routes and as tools: scheduled ones, and long work that was asked for once. */
import { z } from 'zod';
import { ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import type { Invocation } from '../../governance/gate-contract.ts';
import type { JobDesk } from '../../governance/desks/job-desk.ts';
import type { JobRunner, JobView } from '../../governance/jobs/job-runner.ts';
import type { WorkflowDesk } from '../../governance/desks/workflow-desk.ts';
import type { Json } from '../../log/values/canonical-json.ts';
import { learnColumns } from '../../planner/continuous/rules/rule-condition.ts';
import { questionOf } from '../../planner/continuous/jobs/job-run.ts';
import type { PlannerContract } from '../../planner/planner-contract.ts';
import { plainJson } from '../workflows/definition.ts';
import type { JobDefinition, JobRecord } from '../../projections/jobs/job.ts';

const jobInstant = z.bigint().or(z.int());

export const jobInput = {
  name: z.string().min(1).max(256).describe('unique among the jobs of the organisation path that have not ended'),
  run: z
    .strictObject({
      sql: z.string().optional(),
      rules: z.array(z.string()).max(1_000).optional().describe('ids of rules'),
      function: z.string().optional().describe('a table function'),
      workflow: z.string().optional(),
      arguments: z.unknown().optional(),
      chore: z.string().optional().describe('work of the store: for administrators'),
    })
    .describe('what a run does: one of sql, rules, function, workflow, chore'),
  interval_secs: z.int().min(1).max(31_536_000).optional(),
  cron: z.string().max(256).optional(),
  time_zone: z.string().max(64).optional().describe('IANA name; UTC by default'),
  at: jobInstant.optional().describe('nanoseconds: once'),
  after: z.string().optional().describe('id of a job: after each of its runs that is done'),
  run_now: z.boolean().default(true).describe('the first run is due at once'),
  catch_up: z.enum(['one', 'all', 'none']).default('one').describe('how runs that were missed are made up for'),
  timeout_secs: z.int().min(1).max(86_400).default(3_600),
};

export type JobInput = z.output<z.ZodObject<typeof jobInput>>;

export const scheduledReply = z
  .object({
    job_id: z.string(),
    status: z.enum(['scheduled', 'paused', 'ended']),
    next_run: z.int().nullable(),
    alerts: z.int(),
  })
  .meta({ id: 'ScheduledJob' });

const jobUnits = ['rows', 'bytes', 'segments', 'indexes', 'tables', 'edges'] as const;
const jobKinds = ['scheduled', 'ingest', 'backup', 'restore', 'compaction', 'reindex', 'rebuild', 'graph', 'embedding'] as const;
const jobNanoseconds = z.int().describe('nanoseconds since 1970 UTC, exact');

export const jobView = z
  .object({
    id: z.string(),
    kind: z.enum(jobKinds),
    about: z.string().nullable().describe('the type, the backup, or the name of a scheduled job'),
    state: z.enum(['queued', 'running', 'done', 'failed', 'cancelled']).describe('of the last run'),
    unit: z.enum(jobUnits),
    done: z.int(),
    total: z.int().nullable().describe('null while it is not known'),
    principal: z.string(),
    organization: z.string().nullable(),
    queued_at: jobNanoseconds,
    started_at: jobNanoseconds.nullable(),
    finished_at: jobNanoseconds.nullable(),
    error: z.string().nullable().describe('the code that a failed one ended in'),
    job_id: z.string(),
    name: z.string(),
    status: z.enum(['scheduled', 'paused', 'ended']),
    interval_secs: z.int().nullable(),
    cron: z.string().nullable(),
    last_run: jobNanoseconds.nullable(),
    next_run: jobNanoseconds.nullable(),
    run_count: z.int(),
    total_alerts: z.int(),
    progress: z.object({ done: z.int(), total: z.int().nullable(), unit: z.enum(jobUnits) }),
    last_error: z.string().nullable(),
    basis: jobNanoseconds.nullable().describe('what the last run saw'),
  })
  .meta({ id: 'Job' });

/** Work that was asked for once. */
export function describeWork(work: JobView) {
  return {
    id: work.id,
    kind: work.kind,
    about: work.about,
    state: work.state,
    unit: work.unit,
    done: work.done,
    total: work.total,
    principal: work.principal,
    organization: work.path,
    queued_at: work.queuedAt,
    started_at: work.startedAt,
    finished_at: work.finishedAt,
    error: work.code,
    job_id: work.id,
    name: work.about ?? work.kind,
    status: work.finishedAt === null ? 'scheduled' : 'ended',
    interval_secs: null,
    cron: null,
    last_run: work.startedAt,
    next_run: null,
    run_count: work.finishedAt === null ? 0 : 1,
    total_alerts: 0,
    progress: { done: work.done, total: work.total, unit: work.unit },
    last_error: work.code,
    basis: null,
  };
}

export function describeScheduled(jobDesk: JobDesk, scheduledJob: JobRecord, jobCaller: Caller): ReturnType<typeof describeWork> {
  const {
    id: scheduledJobId,
    definition: jobDefinition,
    owner: jobOwner,
    path: jobPath,
    state: jobState,
    reason: jobReason,
    made: jobCreatedAt,
    runCount: jobRunCount,
    totalAlerts: jobAlertTotal,
    lastError: jobLastError,
    open: openRun,
    last: lastEndedRun,
  } = scheduledJob;
  const progressView = jobDesk.progress(scheduledJob, jobCaller);
  const { done: runDone, total: runTotal, unit: runUnit } = progressView ?? { done: 0, total: null, unit: 'rows' as const };
  const shownRun = openRun ?? lastEndedRun;
  const lastRunDue = shownRun === null ? null : BigInt(shownRun.due);
  return {
    id: scheduledJobId,
    kind: 'scheduled',
    about: jobDefinition.name,
    state: progressView?.state ?? (jobDesk.waits(scheduledJob) ? 'queued' : (shownRun?.state ?? 'queued')),
    unit: runUnit,
    done: runDone,
    total: runTotal,
    principal: jobOwner.principal,
    organization: jobPath,
    queued_at: jobCreatedAt,
    started_at: progressView?.startedAt ?? lastRunDue,
    finished_at: progressView?.finishedAt ?? null,
    error: jobLastError as ReturnType<typeof describeWork>['error'],
    job_id: scheduledJobId,
    name: jobDefinition.name,
    status: jobState,
    interval_secs: jobDefinition.interval_secs,
    cron: jobDefinition.cron,
    last_run: lastRunDue,
    next_run: jobDesk.next(scheduledJobId),
    run_count: jobRunCount,
    total_alerts: jobAlertTotal,
    progress: { done: runDone, total: runTotal, unit: runUnit },
    last_error: (jobReason ?? jobLastError) as ReturnType<typeof describeWork>['error'],
    basis: shownRun === null ? null : BigInt(shownRun.basis),
  } as unknown as ReturnType<typeof describeWork>;
}

export interface JobRooms {
  readonly jobs: JobRunner;
  readonly schedule: JobDesk;
  readonly workflows: WorkflowDesk;
  readonly planner: PlannerContract;
}

/** Scheduled jobs, then work that was asked for once; the newest of each first. Runs are shown with their job. */
export function listJobViews({ jobs: jobRunner, schedule: jobSchedule }: Pick<JobRooms, 'jobs' | 'schedule'>, jobCaller: Caller) {
  const unscheduledWork = jobRunner.list(jobCaller).filter(({ kind: workKind }) => workKind !== 'scheduled');
  return [
    ...jobSchedule.list(jobCaller).map((scheduledJob) => describeScheduled(jobSchedule, scheduledJob, jobCaller)),
    ...unscheduledWork.map(describeWork),
  ];
}

/** Throws REL_NOT_FOUND. */
export function findJobView(
  { jobs: jobRunner, schedule: jobSchedule }: Pick<JobRooms, 'jobs' | 'schedule'>,
  jobId: string,
  jobCaller: Caller,
) {
  const scheduledJob = jobSchedule.find(jobId, jobCaller);
  return scheduledJob === null
    ? describeWork(jobRunner.find(jobId, jobCaller))
    : describeScheduled(jobSchedule, scheduledJob, jobCaller);
}

export async function scheduleJob(
  jobInvocation: Invocation,
  { planner: jobPlanner, schedule: jobSchedule, workflows: workflowDesk }: Pick<JobRooms, 'schedule' | 'planner' | 'workflows'>,
  jobFields: JobInput,
) {
  const jobSnapshot = jobInvocation.snapshot();
  const { caller: jobCaller } = jobInvocation;
  const { run: jobRun } = jobFields;
  const givenRunKinds = ([jobRun.sql, jobRun.rules, jobRun.function, jobRun.workflow, jobRun.chore] as const).filter(
    (runKind) => runKind !== undefined,
  );
  if (givenRunKinds.length !== 1)
    throw new ServiceError('REL_INVALID', 'run has one of sql, rules, function, workflow and chore');
  if (jobRun.workflow !== undefined && workflowDesk.idOf(jobRun.workflow, jobCaller) === null)
    throw new ServiceError('REL_NOT_FOUND', `there is no workflow ${JSON.stringify(jobRun.workflow)}`);
  // Errors of the question are its maker's to see.
  if (jobRun.sql !== undefined) await learnColumns(jobPlanner, jobCaller, jobSnapshot, jobRun.sql);
  if (jobRun.function !== undefined) questionOf({ function: jobRun.function, arguments: (jobRun.arguments ?? []) as Json });
  for (const jobRuleId of jobRun.rules ?? [])
    if (
      !jobSnapshot
        .rules()
        .some((detectionRule) => detectionRule.id === jobRuleId && detectionRule.definition.kind === 'detection')
    )
      throw new ServiceError('REL_NOT_FOUND', `there is no detection rule ${JSON.stringify(jobRuleId)}`);
  const jobDefinition: JobDefinition = {
    name: jobFields.name,
    run: plainJson(jobRun) as JobDefinition['run'],
    interval_secs: jobFields.interval_secs ?? null,
    cron: jobFields.cron ?? null,
    time_zone: jobFields.time_zone ?? null,
    at: jobFields.at === undefined ? null : String(jobFields.at),
    after: jobFields.after ?? null,
    catch_up: jobFields.catch_up,
    run_now: jobFields.run_now && jobFields.at === undefined && jobFields.after === undefined,
    timeout_secs: jobFields.timeout_secs,
    purpose: jobSnapshot.purpose,
  };
  const createdJob = await jobSchedule.make(jobInvocation, jobDefinition);
  return {
    job_id: createdJob.id,
    status: createdJob.state,
    next_run: jobSchedule.next(createdJob.id),
    alerts: createdJob.totalAlerts,
  };
}
