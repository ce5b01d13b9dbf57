/**
 * The seams for time and randomness: constructor arguments everywhere, so that a simulation can own them.
 * The system versions at the end are the only place in the codebase that reads a wall clock or an entropy source.
 */
import { randomFillSync } from 'node:crypto';

export interface Clock {
  /** Nanoseconds since 1970 UTC. May jump either way: the log makes its own time rise. */
  now(): bigint;
  /** Milliseconds from an arbitrary start, never falling: for durations and time-outs only. */
  monotonicMs(): number;
  /** Resolves after at least `ms` milliseconds. The returned timer never keeps the process alive. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export interface Random {
  /** Fills and returns `target` with unpredictable bytes. */
  fill<T extends Uint8Array>(target: T): T;
}

/**
 * Nanoseconds since 1970: the wall clock has milliseconds only, a steady clock of nanoseconds supplies the digits below.
 * Set anew where the two part, and never behind the wall clock: what a client of this machine calls "now" must not lie ahead.
 */
export function wallNanoseconds(wallMs: () => number, steady: () => bigint): () => bigint {
  let apart = 0n;
  return () => {
    const now = steady();
    const wall = BigInt(wallMs()) * 1_000_000n;
    const ahead = now + apart - wall;
    if (ahead < 0n || ahead >= 5_000_000n) apart = wall - now;
    return now + apart;
  };
}

export const systemClock: Clock = {
  now: wallNanoseconds(
    () => Date.now(),
    () => process.hrtime.bigint(),
  ),
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const timer = setTimeout(finish, ms);
      timer.unref();
      signal?.addEventListener('abort', finish, { once: true });
      function finish(): void {
        clearTimeout(timer);
        signal?.removeEventListener('abort', finish);
        resolve();
      }
    }),
};

export const systemRandom: Random = {
  fill: (target) => randomFillSync(target),
};

/** UUIDv7 text: 48 bits of milliseconds, 74 random bits (RFC 9562). Sorts by time across milliseconds. */
export class Ids {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #pool = new Uint8Array(16 * 256);
  #at = this.#pool.length;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  next(): string {
    if (this.#at === this.#pool.length) {
      this.#random.fill(this.#pool);
      this.#at = 0;
    }
    const bytes = this.#pool.subarray(this.#at, (this.#at += 16));
    let ms = Number(this.#clock.now() / 1_000_000n);
    for (let i = 5; i >= 0; i--) {
      bytes[i] = ms % 256;
      ms = Math.floor(ms / 256);
    }
    bytes[6] = 0x70 | (bytes[6]! & 0x0f);
    bytes[8] = 0x80 | (bytes[8]! & 0x3f);
    let text = '';
    for (let i = 0; i < 16; i++) {
      text += hexOfByte[bytes[i]!];
      if (i === 3 || i === 5 || i === 7 || i === 9) text += '-';
    }
    return text;
  }
}

const hexOfByte = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
