/**
 * Decides how long an fsync waits for callers who are expected to ask for one too: a caller who committed just before comes
 * again.
 */
import type { Clock } from '../../clock.ts';

/** Stop waiting for expected appends this long after the last one came. */
const PATIENCE_MS = 0.15;
/** The same in turns of the event loop, whatever the clock says. */
const PATIENCE_TURNS = 16;
/** A caller that comes back later than this after an fsync is not expected. */
const EXPECTED_MS = 5;
/** No fsync waits longer than this for further callers, however many keep coming. */
const GATHER_MS_MAX = 2;

export class CommitWait {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  /** How many waited for a recent fsync, or arrived while it was made. */
  #expected = 1;
  #sinceMs = 0;
  #quietSinceMs = 0;
  #quietTurns = 0;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  /** Resumes after a while without commits: only the one that came is expected. */
  resume(): void {
    const idleMs = this.#clock.monotonicMs() - this.#sinceMs;
    this.begin(idleMs > EXPECTED_MS ? 1 : this.#expected);
  }

  begin(expected = this.#expected): void {
    this.#expected = expected;
    this.#sinceMs = this.#quietSinceMs = this.#clock.monotonicMs();
    this.#quietTurns = 0;
  }

  /** A turn of the event loop is over; `someCame`: a caller came in it. */
  turn(someCame: boolean): void {
    if (someCame) {
      this.#quietSinceMs = this.#clock.monotonicMs();
      this.#quietTurns = 0;
    } else this.#quietTurns++;
  }

  isComplete(syncs: number): boolean {
    return syncs >= this.#expected;
  }

  /** Whether an fsync that so many wait for had better wait for more of them. */
  isWorthWaiting(syncs: number): boolean {
    if (syncs === 0 || this.isComplete(syncs) || this.#quietTurns >= PATIENCE_TURNS) return false;
    const nowMs = this.#clock.monotonicMs();
    return nowMs - this.#quietSinceMs < PATIENCE_MS && nowMs - this.#sinceMs < GATHER_MS_MAX;
  }
}

/** Readers are expected to come again within this time. */
const READING_MS = 50;

/** Whether somebody reads while commits wait: then an fsync must not hold the event loop. */
export class ReadActivity {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  /** When an access record came last while commits waited: their callers leave one only once they are acknowledged. */
  #lastMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock;
  }

  note(): void {
    this.#lastMs = this.#clock.monotonicMs();
  }

  isRecent(): boolean {
    return this.#clock.monotonicMs() - this.#lastMs < READING_MS;
  }
}
