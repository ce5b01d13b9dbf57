/**
 * Turns of work that nobody waits for, beside callers who ask: while they do, each slice is followed by a rest of some times its length,
 * in which the event loop has nothing to do but to answer them. Where nobody asks it goes on as chores do.
 */
import type { Clock } from '../../clock.ts';

/** The length of a rest, as a multiple of the slice before it. */
const restShare = 8;
/** The most that counts of one slice: a longer one may have waited for something. */
const countedMsMax = 10;
/** Callers ask while the last request is no older. */
const askingMs = 50;

export class TurnsBehind {
  readonly #clock: Pick<Clock, 'monotonicMs' | 'sleep'>;
  readonly #turn: () => Promise<void>;
  #askedMs = Number.NEGATIVE_INFINITY;
  #beganMs = Number.POSITIVE_INFINITY;
  /** For all work behind callers together. */
  #restsUntilMs = Number.NEGATIVE_INFINITY;

  /** `turn` gives all others theirs. */
  constructor(clock: Pick<Clock, 'monotonicMs' | 'sleep'>, turn: () => Promise<void>) {
    this.#clock = clock;
    this.#turn = turn;
  }

  /** A caller asks for something. */
  noteRequest(): void {
    this.#askedMs = this.#clock.monotonicMs();
  }

  /** Ends the slice that began when this resolved the last time. */
  async next(): Promise<void> {
    const clock = this.#clock;
    let nowMs = clock.monotonicMs();
    const tookMs = Math.min(nowMs - this.#beganMs, countedMsMax);
    this.#restsUntilMs = Math.max(this.#restsUntilMs, nowMs + restShare * tookMs);
    do {
      while (nowMs < this.#restsUntilMs && nowMs - this.#askedMs < askingMs) {
        await clock.sleep(Math.min(this.#restsUntilMs - nowMs, askingMs));
        nowMs = clock.monotonicMs();
      }
      await this.#turn();
      nowMs = clock.monotonicMs();
      // Others of its kind may have had their slice meanwhile, and a caller may have come.
    } while (nowMs < this.#restsUntilMs && nowMs - this.#askedMs < askingMs);
    this.#beganMs = nowMs;
  }
}
