/** A clock that stands until a test moves it, for whatever sleeps. */
import type { Clock } from '../../../src/clock.ts';

/** Durations pass when they are told to. */
export class SteppingClock implements Clock {
  #nowMs = 0;
  #sleeping: { readonly until: number; readonly wake: () => void }[] = [];

  now = (): bigint => 0n;
  monotonicMs = (): number => this.#nowMs;
  sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      this.#sleeping.push({ until: this.#nowMs + ms, wake: resolve });
      signal?.addEventListener('abort', () => resolve(), { once: true });
    });

  async pass(ms: number): Promise<void> {
    this.#nowMs += ms;
    const due = this.#sleeping.filter(({ until }) => until <= this.#nowMs);
    this.#sleeping = this.#sleeping.filter(({ until }) => until > this.#nowMs);
    for (const { wake } of due) wake();
    await settled();
  }
}

/** Long enough for anything that waits for no clock. */
export async function settled(): Promise<void> {
  for (let i = 0; i < 60; i++) await new Promise((resolve) => setImmediate(resolve));
}
