/** Jobs and the effects of runs: a command and the state to entries of one append. Pure. */
import { ServiceError } from '../../errors.ts';
import { type EntryContext, positionsOf } from '../../log/entries/entry.ts';
import type { NextPosition } from '../../log/log-store.ts';
import { canonicalJson, type Json } from '../../log/values/canonical-json.ts';
import { checkText, tenantOf } from '../../log/values/value.ts';
import type { ChangeJob, PutJob, RecordRun } from '../command.ts';
import { type DecideContext, type Decision, decideOne, sealerOf } from '../decision.ts';
import { encodeJob, encodeRun } from './codec.ts';
import { type JobRecord, nameKey } from './job.ts';
import type { Jobs } from './projection.ts';

const jobsMax = 100_000;
const jobNameMax = 256;

export function decidePutJob(
  { id: jobId, definition, owner, replaces }: PutJob,
  jobs: Jobs,
  context: DecideContext,
  next: NextPosition,
): Decision {
  checkText(definition.name, 'the name of a job');
  if (definition.name.length === 0 || definition.name.length > jobNameMax)
    throw new ServiceError('REL_INVALID', `the name of a job has 1 to ${jobNameMax} characters`);
  const jobNames = jobs.namesOf(context.entry.path);
  const namedJob = jobs.job(jobNames.get(nameKey(jobId, definition)) ?? '');
  if (namedJob !== undefined) {
    if (canonicalJson(namedJob.definition as unknown as Json) === canonicalJson(definition as unknown as Json))
      return decideOne('put-job', namedJob.id, [], next);
    if (replaces !== true) throw new ServiceError('REL_CONFLICT', 'there is one of this name with another definition');
    const sealJob = sealerOf(context);
    const endedDraft = {
      context: jobContextOf(namedJob, context),
      body: encodeJob({ change: 'ended', id: namedJob.id, reason: null }, sealJob),
    };
    const jobDraft = { context: context.entry, body: encodeJob({ change: 'made', id: jobId, definition, owner }, sealJob) };
    return decideOne('put-job', jobId, [endedDraft, jobDraft], next);
  }
  if (jobNames.size >= jobsMax) throw new ServiceError('REL_CONFLICT', `an organisation path has at most ${jobsMax} jobs`);
  const jobBody = encodeJob({ change: 'made', id: jobId, definition, owner }, sealerOf(context));
  return decideOne('put-job', jobId, [{ context: context.entry, body: jobBody }], next);
}

export function decideChangeJob(command: ChangeJob, jobs: Jobs, context: DecideContext, next: NextPosition): Decision {
  const { id: jobId, change: jobChange, reason } = command;
  const job = jobs.job(jobId);
  if (job === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such job');
  const jobState = jobChange === 'resumed' ? 'scheduled' : jobChange;
  if (job.state === jobState) return decideOne('change-job', jobId, [], next);
  if (job.state === 'ended') throw new ServiceError('REL_CONFLICT', 'the job has ended');
  const jobBody = encodeJob({ change: jobChange, id: jobId, reason }, sealerOf(context));
  return decideOne('change-job', jobId, [{ context: jobContextOf(job, context), body: jobBody }], next);
}

/** Entries about a job lie under its path, whoever writes them. */
function jobContextOf({ path, branch }: JobRecord, { entry }: DecideContext): EntryContext {
  return { ...entry, path, branch, tenant: tenantOf(path) };
}

/**
 * A run and its rows are one append: none of them is there without the others. A round of rules is judged once: REL_CONFLICT where
 * another was recorded since this one began.
 */
export function decideRun(
  { run, alerts, from: judgedFrom }: RecordRun,
  jobs: Jobs,
  decideRows: (command: NonNullable<RecordRun['alerts']>) => Decision,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { group, job: id } = run;
  if (group !== null && jobs.judgedUpTo(group) !== judgedFrom)
    throw new ServiceError('REL_CONFLICT', 'the changes were judged already', { stale: true });
  const runningJob = id === null ? undefined : jobs.job(id);
  if (id !== null && (runningJob === undefined || (runningJob.open !== null && runningJob.open.id !== run.id)))
    throw new ServiceError('REL_CONFLICT', 'another run of the job is under way');
  const alertDecision = alerts === null ? null : decideRows(alerts);
  const runContext = runningJob === undefined ? context.entry : jobContextOf(runningJob, context);
  const runDrafts = [...(alertDecision?.drafts ?? []), { context: runContext, body: encodeRun(run, sealerOf(context)) }];
  const { outcome } = decideOne('record-run', run.id, runDrafts, next);
  const draftedPositions = runDrafts.reduce((sum, { body }) => sum + positionsOf(body), 0);
  const systemFromLast = next.time + BigInt(draftedPositions - 1);
  return { drafts: runDrafts, outcome: { ...outcome, accepted: alertDecision?.outcome.accepted ?? 0, systemFromLast } };
}
