/**
 * Time and order under one seed: a clock whose sleepers wake when the simulation says so, and a turnstile that lets
 * one disk call take effect at a time, in an order that the seed picks. Between two steps everything that can run has run.
 */
import type { Clock } from '../../src/clock.ts';
import type { Seeded } from './seeded.ts';

interface Sleeper {
  readonly wakeMs: number;
  readonly wake: () => void;
}

export class SimulatedClock implements Clock {
  #now: bigint;
  #monotonicMs = 0;
  readonly #sleepers: Sleeper[] = [];

  constructor(start = 1_760_000_000_000_000_000n) {
    this.#now = start;
  }

  now(): bigint {
    // A little passes at every look, as it does for real.
    return (this.#now += 1n);
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const aborted = (): void => this.#wake(sleeper);
      const wake = (): void => {
        signal?.removeEventListener('abort', aborted);
        resolve();
      };
      const sleeper: Sleeper = { wakeMs: this.#monotonicMs + ms, wake };
      this.#sleepers.push(sleeper);
      signal?.addEventListener('abort', aborted, { once: true });
    });
  }

  /** The wall clock is set, forwards or back. Durations are not concerned. */
  jump(ns: bigint): void {
    this.#now += ns;
  }

  get sleeping(): number {
    return this.#sleepers.length;
  }

  /** Lets time pass until the next sleeper wakes; false when nobody sleeps, or nobody before `untilMs`. */
  advance(untilMs = Infinity): boolean {
    let next: Sleeper | undefined;
    for (const sleeper of this.#sleepers) if (!next || sleeper.wakeMs < next.wakeMs) next = sleeper;
    if (!next || next.wakeMs > untilMs) return false;
    const passedMs = Math.max(0, next.wakeMs - this.#monotonicMs);
    this.#monotonicMs += passedMs;
    this.#now += BigInt(Math.ceil(passedMs * 1_000_000));
    this.#wake(next);
    return true;
  }

  #wake(sleeper: Sleeper): void {
    const at = this.#sleepers.indexOf(sleeper);
    if (at < 0) return;
    this.#sleepers.splice(at, 1);
    sleeper.wake();
  }
}

export class Turnstile {
  readonly #random: Seeded;
  readonly #waiting: (() => void)[] = [];

  constructor(random: Seeded) {
    this.#random = random;
  }

  /** Resolves when it is this caller's turn. */
  readonly turn = (): Promise<void> => new Promise((resolve) => void this.#waiting.push(resolve));

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Lets one of the waiting through; false when there is none. */
  admit(): boolean {
    const count = this.#waiting.length;
    if (count === 0) return false;
    this.#waiting.splice(count === 1 ? 0 : this.#random.below(count), 1)[0]!();
    return true;
  }
}

/** Runs everything that can run without a disk call ending or a sleeper waking; the log itself yields a turn between groups. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}
