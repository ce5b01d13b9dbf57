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

const instant = z.bigint().or(z.int());

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
  at: instant.optional().describe('nanoseconds: once'),
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

const units = ['rows', 'bytes', 'segments', 'indexes', 'tables', 'edges'] as const;
const kinds = ['scheduled', 'ingest', 'backup', 'restore', 'compaction', 'reindex', 'rebuild', 'graph', 'embedding'] as const;
const nanoseconds = z.int().describe('nanoseconds since 1970 UTC, exact');

export const jobView = z
  .object({
    id: z.string(),
    kind: z.enum(kinds),
    about: z.string().nullable().describe('the type, the backup, or the name of a scheduled job'),
    state: z.enum(['queued', 'running', 'done', 'failed', 'cancelled']).describe('of the last run'),
    unit: z.enum(units),
    done: z.int(),
    total: z.int().nullable().describe('null while it is not known'),
    principal: z.string(),
    organization: z.string().nullable(),
    queued_at: nanoseconds,
    started_at: nanoseconds.nullable(),
    finished_at: nanoseconds.nullable(),
    error: z.string().nullable().describe('the code that a failed one ended in'),
    job_id: z.string(),
    name: z.string(),
    status: z.enum(['scheduled', 'paused', 'ended']),
    interval_secs: z.int().nullable(),
    cron: z.string().nullable(),
    last_run: nanoseconds.nullable(),
    next_run: nanoseconds.nullable(),
    run_count: z.int(),
    total_alerts: z.int(),
    progress: z.object({ done: z.int(), total: z.int().nullable(), unit: z.enum(units) }),
    last_error: z.string().nullable(),
    basis: nanoseconds.nullable().describe('what the last run saw'),
  })
  .meta({ id: 'Job' });

/** Work that was asked for once. */
export function describeWork(view: JobView) {
  const { id, kind, about, state, unit, done, total, principal, path, queuedAt, startedAt, finishedAt, code } = view;
  return {
    id,
    kind,
    about,
    state,
    unit,
    done,
    total,
    principal,
    organization: path,
    queued_at: queuedAt,
    started_at: startedAt,
    finished_at: finishedAt,
    error: code,
    job_id: id,
    name: about ?? kind,
    status: finishedAt === null ? 'scheduled' : 'ended',
    interval_secs: null,
    cron: null,
    last_run: startedAt,
    next_run: null,
    run_count: finishedAt === null ? 0 : 1,
    total_alerts: 0,
    progress: { done, total, unit },
    last_error: code,
    basis: null,
  };
}

export function describeScheduled(desk: JobDesk, job: JobRecord, caller: Caller): ReturnType<typeof describeWork> {
  const { id, definition, owner, path, state, reason, made, runCount, totalAlerts, lastError, open, last } = job;
  const view = desk.progress(job, caller);
  const { done, total, unit } = view ?? { done: 0, total: null, unit: 'rows' as const };
  const run = open ?? last;
  const lastRun = run === null ? null : BigInt(run.due);
  return {
    id,
    kind: 'scheduled',
    about: definition.name,
    state: view?.state ?? (desk.waits(job) ? 'queued' : (run?.state ?? 'queued')),
    unit,
    done,
    total,
    principal: owner.principal,
    organization: path,
    queued_at: made,
    started_at: view?.startedAt ?? lastRun,
    finished_at: view?.finishedAt ?? null,
    error: lastError as ReturnType<typeof describeWork>['error'],
    job_id: id,
    name: definition.name,
    status: state,
    interval_secs: definition.interval_secs,
    cron: definition.cron,
    last_run: lastRun,
    next_run: desk.next(id),
    run_count: runCount,
    total_alerts: totalAlerts,
    progress: { done, total, unit },
    last_error: (reason ?? lastError) as ReturnType<typeof describeWork>['error'],
    basis: run === null ? null : BigInt(run.basis),
  } as unknown as ReturnType<typeof describeWork>;
}

export interface JobRooms {
  readonly jobs: JobRunner;
  readonly schedule: JobDesk;
  readonly workflows: WorkflowDesk;
  readonly planner: PlannerContract;
}

/** Scheduled jobs, then work that was asked for once; the newest of each first. Runs are shown with their job. */
export function listJobViews({ jobs, schedule }: Pick<JobRooms, 'jobs' | 'schedule'>, caller: Caller) {
  const work = jobs.list(caller).filter(({ kind }) => kind !== 'scheduled');
  return [...schedule.list(caller).map((job) => describeScheduled(schedule, job, caller)), ...work.map(describeWork)];
}

/** Throws REL_NOT_FOUND. */
export function findJobView({ jobs, schedule }: Pick<JobRooms, 'jobs' | 'schedule'>, id: string, caller: Caller) {
  const job = schedule.find(id, caller);
  return job === null ? describeWork(jobs.find(id, caller)) : describeScheduled(schedule, job, caller);
}

export async function scheduleJob(
  invocation: Invocation,
  { planner, schedule, workflows }: Pick<JobRooms, 'schedule' | 'planner' | 'workflows'>,
  input: JobInput,
) {
  const snapshot = invocation.snapshot();
  const { caller } = invocation;
  const { run } = input;
  const given = ([run.sql, run.rules, run.function, run.workflow, run.chore] as const).filter((each) => each !== undefined);
  if (given.length !== 1) throw new ServiceError('REL_INVALID', 'run has one of sql, rules, function, workflow and chore');
  if (run.workflow !== undefined && workflows.idOf(run.workflow, caller) === null)
    throw new ServiceError('REL_NOT_FOUND', `there is no workflow ${JSON.stringify(run.workflow)}`);
  // Errors of the question are its maker's to see.
  if (run.sql !== undefined) await learnColumns(planner, caller, snapshot, run.sql);
  if (run.function !== undefined) questionOf({ function: run.function, arguments: (run.arguments ?? []) as Json });
  for (const id of run.rules ?? [])
    if (!snapshot.rules().some((rule) => rule.id === id && rule.definition.kind === 'detection'))
      throw new ServiceError('REL_NOT_FOUND', `there is no detection rule ${JSON.stringify(id)}`);
  const definition: JobDefinition = {
    name: input.name,
    run: plainJson(run) as JobDefinition['run'],
    interval_secs: input.interval_secs ?? null,
    cron: input.cron ?? null,
    time_zone: input.time_zone ?? null,
    at: input.at === undefined ? null : String(input.at),
    after: input.after ?? null,
    catch_up: input.catch_up,
    run_now: input.run_now && input.at === undefined && input.after === undefined,
    timeout_secs: input.timeout_secs,
    purpose: snapshot.purpose,
  };
  const job = await schedule.make(invocation, definition);
  return { job_id: job.id, status: job.state, next_run: schedule.next(job.id), alerts: job.totalAlerts };
}
