/** When runs of jobs are due. Pure: instants in nanoseconds, clocks of time zones by croner. */
import { Cron } from 'croner';
import { ServiceError } from '../../errors.ts';
import type { JobDefinition, JobRecord } from '../../projections/jobs/job.ts';

const nsPerMs = 1_000_000n;
const nsPerSec = 1_000_000_000n;

/** A run that begins later than this after it was due is late: it sees what is there when it begins. */
export const lateNs = 5n * nsPerSec;
/** Most runs that are made up for at once. */
const missedDuesMax = 100_000;

export interface Due {
  /** When it was due. */
  readonly instant: bigint;
  /** Runs before it that did not take place. */
  readonly missed: number;
}

/** Throws REL_INVALID for a definition that no clock can follow. */
export function checkSchedule({ cron, time_zone: zone, interval_secs: interval, at, after }: JobDefinition): void {
  const scheduleCount = [cron, interval, at, after].filter((scheduleField) => scheduleField !== null).length;
  if (scheduleCount > 1) throw new ServiceError('REL_INVALID', 'a job has one of interval_secs, cron, at and after');
  if (cron === null && zone !== null) throw new ServiceError('REL_INVALID', 'time_zone is the zone of cron');
  if (cron === null) return;
  try {
    zonedCronOf(cron, zone).nextAfter(0);
  } catch (error) {
    throw new ServiceError('REL_INVALID', `cron: ${error instanceof Error ? error.message : 'it can not be read'}`);
  }
}

/** The next instant at which a run is due; null: none is. `doneAt`: when a run of the job of this id was done last. */
export function nextDue(job: JobRecord, doneAt: (id: string) => bigint | null): bigint | null {
  const { definition, state, open, last, lastDue, made } = job;
  if (state !== 'scheduled' || open !== null) return null;
  if (definition.run_now && last === null) return made;
  if (definition.at !== null) return last === null || lastDue < BigInt(definition.at) ? BigInt(definition.at) : null;
  if (definition.after !== null) {
    const afterDoneAt = doneAt(definition.after);
    return afterDoneAt !== null && afterDoneAt > lastDue ? afterDoneAt : null;
  }
  return followingDue(definition, lastDue);
}

/**
 * The run to begin now; null: none is due. Runs that were missed are made up for as the job says. A clock of a time zone is asked for each of
 * them: others may have their turn between any two steps.
 */
export function* dueAt(
  job: JobRecord,
  now: bigint,
  doneAt: (id: string) => bigint | null,
): Generator<undefined, Due | null, void> {
  const firstDue = nextDue(job, doneAt);
  if (firstDue === null || firstDue > now) return null;
  const { definition } = job;
  if (definition.catch_up === 'all') return { instant: firstDue, missed: 0 };
  const { instant, passed: passedOver } = yield* lastDueUntil(definition, firstDue, now);
  if (definition.catch_up === 'none' && now - instant > lateNs) return null;
  return { instant, missed: passedOver };
}

/** The first due instant after this one, of a job whose runs before it are passed over; in steps as `dueAt`. */
export function* dueAfter({ definition, lastDue }: JobRecord, now: bigint): Generator<undefined, bigint | null, void> {
  const { instant } = yield* lastDueUntil(definition, lastDue, now);
  return followingDue(definition, instant);
}

/** The last due instant up to `now`, and how many were due before it, from a first one on. */
function* lastDueUntil(
  definition: JobDefinition,
  first: bigint,
  now: bigint,
): Generator<undefined, { readonly instant: bigint; readonly passed: number }, void> {
  const { interval_secs: interval } = definition;
  if (interval !== null) {
    const intervalNs = BigInt(interval) * nsPerSec;
    const dueCount = first > now ? 0 : Number((now - first) / intervalNs);
    const passedDues = Math.min(dueCount, missedDuesMax);
    return { instant: first + BigInt(passedDues) * intervalNs, passed: passedDues };
  }
  let [dueInstant, passed] = [first, 0];
  for (
    let nextInstant = followingDue(definition, dueInstant);
    nextInstant !== null && nextInstant <= now && passed < missedDuesMax;
  ) {
    dueInstant = nextInstant;
    passed++;
    nextInstant = followingDue(definition, dueInstant);
    yield;
  }
  return { instant: dueInstant, passed };
}

/** The due instant after another one. */
function followingDue({ interval_secs: interval, cron, time_zone: zone }: JobDefinition, after: bigint): bigint | null {
  if (interval !== null) return after + BigInt(interval) * nsPerSec;
  if (cron === null) return null;
  const nextCronMs = zonedCronOf(cron, zone).nextAfter(Number(after / nsPerMs));
  return nextCronMs === null ? null : BigInt(nextCronMs) * nsPerMs;
}

/**
 * A cron expression in a zone. To ask the clock of a zone takes tens of microseconds, and many jobs say the same expression: between two runs
 * the answer is the later of them, so that it is asked once for all of these jobs.
 */
class ZonedCron {
  readonly #cronSchedule: Cron;
  /** Milliseconds: no run is due behind `from` and before `next`; without a next one, ever. */
  #knownCronSpan = { from: Number.POSITIVE_INFINITY, next: Number.POSITIVE_INFINITY };

  /** Throws for an expression that can't be read. */
  constructor(expression: string, zone: string | null) {
    this.#cronSchedule = new Cron(expression, { paused: true, timezone: zone ?? 'UTC' });
  }

  /** Milliseconds; null: none is due any more. Throws for a zone that does not exist. */
  nextAfter(ms: number): number | null {
    const { from: spanStartMs, next: spanNextMs } = this.#knownCronSpan;
    if (ms < spanStartMs || ms >= spanNextMs)
      this.#knownCronSpan = { from: ms, next: this.#cronSchedule.nextRun(new Date(ms))?.getTime() ?? Number.POSITIVE_INFINITY };
    return this.#knownCronSpan.next === Number.POSITIVE_INFINITY ? null : this.#knownCronSpan.next;
  }
}

const zonedCrons = new Map<string, ZonedCron>();
const zonedCronsMax = 1_024;

function zonedCronOf(expression: string, zone: string | null): ZonedCron {
  const cronKey = `${zone ?? ''} ${expression}`;
  let cron = zonedCrons.get(cronKey);
  if (cron === undefined) {
    if (zonedCrons.size >= zonedCronsMax) zonedCrons.clear();
    zonedCrons.set(cronKey, (cron = new ZonedCron(expression, zone)));
  }
  return cron;
}
