/**
 * Turns of work that nobody waits for, beside callers who ask: while they do, each slice is followed by a rest of some times its length,
 * in which the event loop has nothing to do but to answer them. Where nobody asks it goes on as chores do.
 */
import type { Clock } from '../../clock.ts';

/** The length of a rest, as a multiple of the slice before it. */
const backgroundRestShare = 8;
/** The most that counts of one slice: a longer one may have waited for something. */
const countedTurnMsMax = 10;
/** Callers ask while the last request is no older. */
const recentRequestMs = 50;

export class TurnsBehind {
  readonly #turnClock: Pick<Clock, 'monotonicMs' | 'sleep'>;
  readonly #takeTurn: () => Promise<void>;
  #lastRequestMs = Number.NEGATIVE_INFINITY;
  #turnBeganMs = Number.POSITIVE_INFINITY;
  /** For all work behind callers together. */
  #restUntilMs = Number.NEGATIVE_INFINITY;

  /** `turn` gives all others theirs. */
  constructor(clock: Pick<Clock, 'monotonicMs' | 'sleep'>, turn: () => Promise<void>) {
    this.#turnClock = clock;
    this.#takeTurn = turn;
  }

  /** A caller asks for something. */
  noteRequest(): void {
    this.#lastRequestMs = this.#turnClock.monotonicMs();
  }

  /** Ends the slice that began when this resolved the last time. */
  async next(): Promise<void> {
    const turnClock = this.#turnClock;
    let nowMs = turnClock.monotonicMs();
    const turnTookMs = Math.min(nowMs - this.#turnBeganMs, countedTurnMsMax);
    this.#restUntilMs = Math.max(this.#restUntilMs, nowMs + backgroundRestShare * turnTookMs);
    do {
      while (nowMs < this.#restUntilMs && nowMs - this.#lastRequestMs < recentRequestMs) {
        await turnClock.sleep(Math.min(this.#restUntilMs - nowMs, recentRequestMs));
        nowMs = turnClock.monotonicMs();
      }
      await this.#takeTurn();
      nowMs = turnClock.monotonicMs();
      // Others of its kind may have had their slice meanwhile, and a caller may have come.
    } while (nowMs < this.#restUntilMs && nowMs - this.#lastRequestMs < recentRequestMs);
    this.#turnBeganMs = nowMs;
  }
}
