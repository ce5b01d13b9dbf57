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
const nameMax = 256;

export function decidePutJob(
  { id, definition, owner, replaces }: PutJob,
  jobs: Jobs,
  context: DecideContext,
  next: NextPosition,
): Decision {
  checkText(definition.name, 'the name of a job');
  if (definition.name.length === 0 || definition.name.length > nameMax)
    throw new ServiceError('REL_INVALID', `the name of a job has 1 to ${nameMax} characters`);
  const own = jobs.namesOf(context.entry.path);
  const named = jobs.job(own.get(nameKey(id, definition)) ?? '');
  if (named !== undefined) {
    if (canonicalJson(named.definition as unknown as Json) === canonicalJson(definition as unknown as Json))
      return decideOne('put-job', named.id, [], next);
    if (replaces !== true) throw new ServiceError('REL_CONFLICT', 'there is one of this name with another definition');
    const seal = sealerOf(context);
    const ended = { context: entryOf(named, context), body: encodeJob({ change: 'ended', id: named.id, reason: null }, seal) };
    const jobDraft = { context: context.entry, body: encodeJob({ change: 'made', id, definition, owner }, seal) };
    return decideOne('put-job', id, [ended, jobDraft], next);
  }
  if (own.size >= jobsMax) throw new ServiceError('REL_CONFLICT', `an organisation path has at most ${jobsMax} jobs`);
  const body = encodeJob({ change: 'made', id, definition, owner }, sealerOf(context));
  return decideOne('put-job', id, [{ context: context.entry, body }], next);
}

export function decideChangeJob(command: ChangeJob, jobs: Jobs, context: DecideContext, next: NextPosition): Decision {
  const { id, change, reason } = command;
  const job = jobs.job(id);
  if (job === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such job');
  const to = change === 'resumed' ? 'scheduled' : change;
  if (job.state === to) return decideOne('change-job', id, [], next);
  if (job.state === 'ended') throw new ServiceError('REL_CONFLICT', 'the job has ended');
  const body = encodeJob({ change, id, reason }, sealerOf(context));
  return decideOne('change-job', id, [{ context: entryOf(job, context), body }], next);
}

/** Entries about a job lie under its path, whoever writes them. */
function entryOf({ path, branch }: JobRecord, { entry }: DecideContext): EntryContext {
  return { ...entry, path, branch, tenant: tenantOf(path) };
}

/**
 * A run and its rows are one append: none of them is there without the others. A round of rules is judged once: REL_CONFLICT where
 * another was recorded since this one began.
 */
export function decideRun(
  { run, alerts, from }: RecordRun,
  jobs: Jobs,
  decideRows: (command: NonNullable<RecordRun['alerts']>) => Decision,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { group, job: id } = run;
  if (group !== null && jobs.judgedUpTo(group) !== from)
    throw new ServiceError('REL_CONFLICT', 'the changes were judged already', { stale: true });
  const job = id === null ? undefined : jobs.job(id);
  if (id !== null && (job === undefined || (job.open !== null && job.open.id !== run.id)))
    throw new ServiceError('REL_CONFLICT', 'another run of the job is under way');
  const rows = alerts === null ? null : decideRows(alerts);
  const entry = job === undefined ? context.entry : entryOf(job, context);
  const drafts = [...(rows?.drafts ?? []), { context: entry, body: encodeRun(run, sealerOf(context)) }];
  const { outcome } = decideOne('record-run', run.id, drafts, next);
  const positions = drafts.reduce((sum, { body }) => sum + positionsOf(body), 0);
  const systemFromLast = next.time + BigInt(positions - 1);
  return { drafts, outcome: { ...outcome, accepted: rows?.outcome.accepted ?? 0, systemFromLast } };
}
