/** Retention of a type as callers set and read it. */
import { z } from 'zod';
import { ServiceError } from '../../errors.ts';
import type { Invocation } from '../../governance/gate-contract.ts';
import type { JobDesk } from '../../governance/desks/job-desk.ts';
import { type JobDefinition, type JobRecord, retentionKey, type TypeRetention } from '../../projections/jobs/job.ts';
import { definitionOf } from './type-body.ts';

const daysMax = 36_500;
const heldMax = 1_000;
/** How often rows are looked at. */
const everySecs = 3_600;
const timeoutSecs = 86_400;

export const retentionInput = {
  days: z.int().min(0).max(daysMax),
  by: z
    .enum(['valid_to', 'system_from'])
    .describe('the last end of what is believed of a row, or the instant of its newest version: so many days ago'),
  action: z.enum(['delete', 'purge']).describe('a row is ended and keeps its history, or is removed for good with all of it'),
};

const nanoseconds = z.int().describe('nanoseconds since 1970 UTC, exact');

export const retentionView = z
  .object({
    type: z.string(),
    days: z.int(),
    by: z.enum(['valid_to', 'system_from']),
    action: z.enum(['delete', 'purge']),
    principal: z.string().describe('whose grants its runs have'),
    job_id: z.string(),
    status: z.enum(['scheduled', 'paused', 'ended']),
    next_run: nanoseconds.nullable(),
    last_error: z.string().nullable(),
    last: z
      .object({ basis: nanoseconds, ended: z.int(), held: z.int(), refused: z.int() })
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
  invocation: Invocation,
  desk: JobDesk,
  type: string,
  { days, by, action }: Omit<TypeRetention, 'type'>,
) {
  requireType(invocation, type);
  if (invocation.caller.branch !== 'main') throw new ServiceError('REL_INVALID', 'how long rows are kept is set on main');
  // Its setter has the right that its runs need.
  invocation.heldRows(type, rightOf(action));
  const definition: JobDefinition = {
    name: `retention of ${type}`,
    run: { retention: { type, days, by, action } },
    interval_secs: everySecs,
    cron: null,
    time_zone: null,
    at: null,
    after: null,
    catch_up: 'one',
    run_now: true,
    timeout_secs: timeoutSecs,
    purpose: invocation.snapshot().purpose,
  };
  return describeRetention(invocation, desk, await desk.replace(invocation, definition));
}

/** REL_NOT_FOUND where none is set at the caller's path. */
export function findRetention(invocation: Invocation, desk: JobDesk, type: string) {
  requireType(invocation, type);
  return describeRetention(invocation, desk, requireRetention(invocation, desk, type));
}

export async function endRetention(invocation: Invocation, desk: JobDesk, type: string): Promise<void> {
  requireType(invocation, type);
  await desk.endNamed(invocation, requireRetention(invocation, desk, type));
}

function describeRetention(invocation: Invocation, desk: JobDesk, job: JobRecord) {
  const { type, days, by, action } = job.definition.run.retention!;
  const held = heldBy(invocation, type, action);
  const { caller } = invocation;
  const isOwn = desk.find(job.id, caller) !== null;
  return {
    type,
    days,
    by,
    action,
    principal: job.owner.principal,
    job_id: job.id,
    status: job.state,
    next_run: desk.next(job.id),
    last_error: isOwn ? (job.reason ?? job.lastError) : null,
    last: isOwn ? lastRun(job) : null,
    held: held?.slice(0, heldMax).map(({ id, path, key }) => ({ id, organization: path, _pk: key })) ?? null,
    held_total: held?.length ?? null,
  };
}

/** Null: the caller may end or remove no row of the type. */
function heldBy(
  invocation: Invocation,
  type: string,
  action: TypeRetention['action'],
): ReturnType<Invocation['heldRows']> | null {
  try {
    return invocation.heldRows(type, rightOf(action));
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'REL_ACL') return null;
    throw error;
  }
}

function lastRun({ last }: JobRecord) {
  if (last?.state !== 'done') return null;
  const { ended, held, refused } = last.result as { readonly ended: number; readonly held: number; readonly refused: number };
  return { basis: BigInt(last.basis), ended, held, refused };
}

const rightOf = (action: TypeRetention['action']): 'delete' | 'remove' => (action === 'purge' ? 'remove' : 'delete');

function requireType(invocation: Invocation, type: string): void {
  invocation.describe({ objectType: type });
  definitionOf(invocation, type);
}

function requireRetention({ caller }: Invocation, desk: JobDesk, type: string): JobRecord {
  const job = desk.findJob(caller, retentionKey(type));
  if (job === null) throw new ServiceError('REL_NOT_FOUND', 'no retention of the type is set here');
  return job;
}
