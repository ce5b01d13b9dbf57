/** Retention of a type as callers set and read it. */
import { z } from 'zod';
import { ServiceError } from '../../errors.ts';
import type { Invocation } from '../../governance/gate-contract.ts';
import type { JobDesk } from '../../governance/desks/job-desk.ts';
import { type JobDefinition, type JobRecord, retentionKey, type TypeRetention } from '../../projections/jobs/job.ts';
import { definitionOf } from '../shared/type-body.ts';

const retentionDaysMax = 36_500;
const heldRowsListedMax = 1_000;
/** How often rows are looked at. */
const retentionEverySecs = 3_600;
const retentionTimeoutSecs = 86_400;

export const retentionInput = {
  days: z.int().min(0).max(retentionDaysMax),
  by: z
    .enum(['valid_to', 'system_from'])
    .describe('the last end of what is believed of a row, or the instant of its newest version: so many days ago'),
  action: z.enum(['delete', 'purge']).describe('a row is ended and keeps its history, or is removed for good with all of it'),
};

const retentionNanoseconds = z.int().describe('nanoseconds since 1970 UTC, exact');

export const retentionView = z
  .object({
    type: z.string(),
    days: z.int(),
    by: z.enum(['valid_to', 'system_from']),
    action: z.enum(['delete', 'purge']),
    principal: z.string().describe('whose grants its runs have'),
    job_id: z.string(),
    status: z.enum(['scheduled', 'paused', 'ended']),
    next_run: retentionNanoseconds.nullable(),
    last_error: z.string().nullable(),
    last: z
      .object({ basis: retentionNanoseconds, ended: z.int(), held: z.int(), refused: z.int() })
      .nullable()
      .describe('rows of the last run, for whoever may see the job'),
    held: z
      .array(z.object({ id: z.string().describe('of the hold'), organization: z.string().nullable(), _pk: z.string() }))
      .nullable()
      .describe('rows that stay while they are under legal hold, the first thousand: for whoever may end or remove them'),
    held_total: z.int().nullable(),
  })
  .meta({ id: 'TypeRetention' });

export async function setRetention(
  retentionInvocation: Invocation,
  retentionDesk: JobDesk,
  retainedType: string,
  { days: retentionDays, by: retentionColumn, action: retentionAction }: Omit<TypeRetention, 'type'>,
) {
  requireRetainedType(retentionInvocation, retainedType);
  if (retentionInvocation.caller.branch !== 'main')
    throw new ServiceError('REL_INVALID', 'how long rows are kept is set on main');
  // Its setter has the right that its runs need.
  retentionInvocation.heldRows(retainedType, retentionRight(retentionAction));
  const retentionJob: JobDefinition = {
    name: `retention of ${retainedType}`,
    run: { retention: { type: retainedType, days: retentionDays, by: retentionColumn, action: retentionAction } },
    interval_secs: retentionEverySecs,
    cron: null,
    time_zone: null,
    at: null,
    after: null,
    catch_up: 'one',
    run_now: true,
    timeout_secs: retentionTimeoutSecs,
    purpose: retentionInvocation.snapshot().purpose,
  };
  return describeRetention(retentionInvocation, retentionDesk, await retentionDesk.replace(retentionInvocation, retentionJob));
}

/** REL_NOT_FOUND where none is set at the caller's path. */
export function findRetention(retentionInvocation: Invocation, retentionDesk: JobDesk, retainedType: string) {
  requireRetainedType(retentionInvocation, retainedType);
  return describeRetention(
    retentionInvocation,
    retentionDesk,
    requireRetention(retentionInvocation, retentionDesk, retainedType),
  );
}

export async function endRetention(retentionInvocation: Invocation, retentionDesk: JobDesk, retainedType: string): Promise<void> {
  requireRetainedType(retentionInvocation, retainedType);
  await retentionDesk.endNamed(retentionInvocation, requireRetention(retentionInvocation, retentionDesk, retainedType));
}

function describeRetention(retentionInvocation: Invocation, retentionDesk: JobDesk, retentionJob: JobRecord) {
  const {
    type: retainedType,
    days: retentionDays,
    by: retentionColumn,
    action: retentionAction,
  } = retentionJob.definition.run.retention!;
  const heldRows = rowsUnderHold(retentionInvocation, retainedType, retentionAction);
  const { caller: retentionCaller } = retentionInvocation;
  const isOwnJob = retentionDesk.find(retentionJob.id, retentionCaller) !== null;
  return {
    type: retainedType,
    days: retentionDays,
    by: retentionColumn,
    action: retentionAction,
    principal: retentionJob.owner.principal,
    job_id: retentionJob.id,
    status: retentionJob.state,
    next_run: retentionDesk.next(retentionJob.id),
    last_error: isOwnJob ? (retentionJob.reason ?? retentionJob.lastError) : null,
    last: isOwnJob ? lastRetentionRun(retentionJob) : null,
    held:
      heldRows
        ?.slice(0, heldRowsListedMax)
        .map(({ id: holdId, path: heldPath, key: heldKey }) => ({ id: holdId, organization: heldPath, _pk: heldKey })) ?? null,
    held_total: heldRows?.length ?? null,
  };
}

/** Null: the caller may end or remove no row of the type. */
function rowsUnderHold(
  retentionInvocation: Invocation,
  retainedType: string,
  retentionAction: TypeRetention['action'],
): ReturnType<Invocation['heldRows']> | null {
  try {
    return retentionInvocation.heldRows(retainedType, retentionRight(retentionAction));
  } catch (holdError) {
    if (holdError instanceof ServiceError && holdError.code === 'REL_ACL') return null;
    throw holdError;
  }
}

function lastRetentionRun({ last: lastRetention }: JobRecord) {
  if (lastRetention?.state !== 'done') return null;
  const {
    ended: endedRowCount,
    held: heldRowCount,
    refused: refusedRowCount,
  } = lastRetention.result as { readonly ended: number; readonly held: number; readonly refused: number };
  return { basis: BigInt(lastRetention.basis), ended: endedRowCount, held: heldRowCount, refused: refusedRowCount };
}

const retentionRight = (retentionAction: TypeRetention['action']): 'delete' | 'remove' =>
  retentionAction === 'purge' ? 'remove' : 'delete';

function requireRetainedType(retentionInvocation: Invocation, retainedType: string): void {
  retentionInvocation.describe({ objectType: retainedType });
  definitionOf(retentionInvocation, retainedType);
}

function requireRetention({ caller }: Invocation, retentionDesk: JobDesk, retainedType: string): JobRecord {
  const retentionJob = retentionDesk.findJob(caller, retentionKey(retainedType));
  if (retentionJob === null) throw new ServiceError('REL_NOT_FOUND', 'no retention of the type is set here');
  return retentionJob;
}
