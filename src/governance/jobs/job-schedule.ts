/** When runs of jobs are due. Pure: instants in nanoseconds, clocks of time zones by croner. */
import { Cron } from 'croner';
import { ServiceError } from '../../errors.ts';
import type { JobDefinition, JobRecord } from '../../projections/jobs/job.ts';

const nsPerMs = 1_000_000n;
const nsPerSec = 1_000_000_000n;

/** A run that begins later than this after it was due is late: it sees what is there when it begins. */
export const lateNs = 5n * nsPerSec;
/** Most runs that are made up for at once. */
const missedMax = 100_000;

export interface Due {
  /** When it was due. */
  readonly instant: bigint;
  /** Runs before it that did not take place. */
  readonly missed: number;
}

/** Throws REL_INVALID for a definition that no clock can follow. */
export function checkSchedule({ cron, time_zone: zone, interval_secs: interval, at, after }: JobDefinition): void {
  const given = [cron, interval, at, after].filter((each) => each !== null).length;
  if (given > 1) throw new ServiceError('REL_INVALID', 'a job has one of interval_secs, cron, at and after');
  if (cron === null && zone !== null) throw new ServiceError('REL_INVALID', 'time_zone is the zone of cron');
  if (cron === null) return;
  try {
    cronOf(cron, zone).nextAfter(0);
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
    const done = doneAt(definition.after);
    return done !== null && done > lastDue ? done : null;
  }
  return following(definition, lastDue);
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
  const first = nextDue(job, doneAt);
  if (first === null || first > now) return null;
  const { definition } = job;
  if (definition.catch_up === 'all') return { instant: first, missed: 0 };
  const { instant, passed } = yield* lastUntil(definition, first, now);
  if (definition.catch_up === 'none' && now - instant > lateNs) return null;
  return { instant, missed: passed };
}

/** The first due instant after this one, of a job whose runs before it are passed over; in steps as `dueAt`. */
export function* dueAfter({ definition, lastDue }: JobRecord, now: bigint): Generator<undefined, bigint | null, void> {
  const { instant } = yield* lastUntil(definition, lastDue, now);
  return following(definition, instant);
}

/** The last due instant up to `now`, and how many were due before it, from a first one on. */
function* lastUntil(
  definition: JobDefinition,
  first: bigint,
  now: bigint,
): Generator<undefined, { readonly instant: bigint; readonly passed: number }, void> {
  const { interval_secs: interval } = definition;
  if (interval !== null) {
    const every = BigInt(interval) * nsPerSec;
    const due = first > now ? 0 : Number((now - first) / every);
    const passed = Math.min(due, missedMax);
    return { instant: first + BigInt(passed) * every, passed };
  }
  let [instant, passed] = [first, 0];
  for (let next = following(definition, instant); next !== null && next <= now && passed < missedMax; ) {
    instant = next;
    passed++;
    next = following(definition, instant);
    yield;
  }
  return { instant, passed };
}

/** The due instant after another one. */
function following({ interval_secs: interval, cron, time_zone: zone }: JobDefinition, after: bigint): bigint | null {
  if (interval !== null) return after + BigInt(interval) * nsPerSec;
  if (cron === null) return null;
  const next = cronOf(cron, zone).nextAfter(Number(after / nsPerMs));
  return next === null ? null : BigInt(next) * nsPerMs;
}

/**
 * A cron expression in a zone. To ask the clock of a zone takes tens of microseconds, and many jobs say the same expression: between two runs
 * the answer is the later of them, so that it is asked once for all of these jobs.
 */
class ZonedCron {
  readonly #cron: Cron;
  /** Milliseconds: no run is due behind `from` and before `next`; without a next one, ever. */
  #known = { from: Number.POSITIVE_INFINITY, next: Number.POSITIVE_INFINITY };

  /** Throws for an expression that can't be read. */
  constructor(expression: string, zone: string | null) {
    this.#cron = new Cron(expression, { paused: true, timezone: zone ?? 'UTC' });
  }

  /** Milliseconds; null: none is due any more. Throws for a zone that does not exist. */
  nextAfter(ms: number): number | null {
    const { from, next } = this.#known;
    if (ms < from || ms >= next)
      this.#known = { from: ms, next: this.#cron.nextRun(new Date(ms))?.getTime() ?? Number.POSITIVE_INFINITY };
    return this.#known.next === Number.POSITIVE_INFINITY ? null : this.#known.next;
  }
}

const crons = new Map<string, ZonedCron>();
const cronsMax = 1_024;

function cronOf(expression: string, zone: string | null): ZonedCron {
  const key = `${zone ?? ''} ${expression}`;
  let cron = crons.get(key);
  if (cron === undefined) {
    if (crons.size >= cronsMax) crons.clear();
    crons.set(key, (cron = new ZonedCron(expression, zone)));
  }
  return cron;
}
