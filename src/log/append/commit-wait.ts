/**
 * Decides how long an fsync waits for callers who are expected to ask for one too: a caller who committed just before comes
 * again.
 */
import type { Clock } from '../../clock.ts';

/** Stop waiting for expected appends this long after the last one came. */
const QUIET_WAIT_MS = 0.15;
/** The same in turns of the event loop, whatever the clock says. */
const QUIET_TURNS_MAX = 16;
/** A caller that comes back later than this after an fsync is not expected. */
const EXPECTED_WRITERS_MS = 5;
/** No fsync waits longer than this for further callers, however many keep coming. */
const GATHER_MS_MAX = 2;

export class CommitWait {
  readonly #commitClock: Pick<Clock, 'monotonicMs'>;
  /** How many waited for a recent fsync, or arrived while it was made. */
  #expectedSyncs = 1;
  #roundBeganMs = 0;
  #quietSinceMs = 0;
  #quietTurns = 0;

  constructor(commitClock: Pick<Clock, 'monotonicMs'>) {
    this.#commitClock = commitClock;
  }

  /** Resumes after a while without commits: only the one that came is expected. */
  resume(): void {
    const idleMs = this.#commitClock.monotonicMs() - this.#roundBeganMs;
    this.begin(idleMs > EXPECTED_WRITERS_MS ? 1 : this.#expectedSyncs);
  }

  begin(expectedSyncs = this.#expectedSyncs): void {
    this.#expectedSyncs = expectedSyncs;
    this.#roundBeganMs = this.#quietSinceMs = this.#commitClock.monotonicMs();
    this.#quietTurns = 0;
  }

  /** A turn of the event loop is over; `hasNewAppends`: a caller came in it. */
  turn(hasNewAppends: boolean): void {
    if (hasNewAppends) {
      this.#quietSinceMs = this.#commitClock.monotonicMs();
      this.#quietTurns = 0;
    } else this.#quietTurns++;
  }

  isComplete(waitingSyncs: number): boolean {
    return waitingSyncs >= this.#expectedSyncs;
  }

  /** Whether an fsync that so many wait for had better wait for more of them. */
  isWorthWaiting(waitingSyncs: number): boolean {
    if (waitingSyncs === 0 || this.isComplete(waitingSyncs) || this.#quietTurns >= QUIET_TURNS_MAX) return false;
    const nowMs = this.#commitClock.monotonicMs();
    return nowMs - this.#quietSinceMs < QUIET_WAIT_MS && nowMs - this.#roundBeganMs < GATHER_MS_MAX;
  }
}

/** Readers are expected to come again within this time. */
const RECENT_READ_MS = 50;

/** Whether somebody reads while commits wait: then an fsync must not hold the event loop. */
export class ReadActivity {
  readonly #readClock: Pick<Clock, 'monotonicMs'>;
  /** When an access record came last while commits waited: their callers leave one only once they are acknowledged. */
  #lastReadMs = Number.NEGATIVE_INFINITY;

  constructor(readClock: Pick<Clock, 'monotonicMs'>) {
    this.#readClock = readClock;
  }

  note(): void {
    this.#lastReadMs = this.#readClock.monotonicMs();
  }

  isRecent(): boolean {
    return this.#readClock.monotonicMs() - this.#lastReadMs < RECENT_READ_MS;
  }
}
