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
export function wallNanoseconds(readWallMs: () => number, readSteadyNs: () => bigint): () => bigint {
  let wallOffsetNs = 0n;
  return () => {
    const steadyNs = readSteadyNs();
    const wallNs = BigInt(readWallMs()) * 1_000_000n;
    const aheadOfWallNs = steadyNs + wallOffsetNs - wallNs;
    if (aheadOfWallNs < 0n || aheadOfWallNs >= 5_000_000n) wallOffsetNs = wallNs - steadyNs;
    return steadyNs + wallOffsetNs;
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
  readonly #idClock: Clock;
  readonly #idRandom: Random;
  readonly #randomPool = new Uint8Array(16 * 256);
  #randomPoolOffset = this.#randomPool.length;

  constructor(idClock: Clock, idRandom: Random) {
    this.#idClock = idClock;
    this.#idRandom = idRandom;
  }

  next(): string {
    if (this.#randomPoolOffset === this.#randomPool.length) {
      this.#idRandom.fill(this.#randomPool);
      this.#randomPoolOffset = 0;
    }
    const uuidBytes = this.#randomPool.subarray(this.#randomPoolOffset, (this.#randomPoolOffset += 16));
    let timestampMs = Number(this.#idClock.now() / 1_000_000n);
    for (let i = 5; i >= 0; i--) {
      uuidBytes[i] = timestampMs % 256;
      timestampMs = Math.floor(timestampMs / 256);
    }
    uuidBytes[6] = 0x70 | (uuidBytes[6]! & 0x0f);
    uuidBytes[8] = 0x80 | (uuidBytes[8]! & 0x3f);
    let uuidText = '';
    for (let i = 0; i < 16; i++) {
      uuidText += hexDigitsOfByte[uuidBytes[i]!];
      if (i === 3 || i === 5 || i === 7 || i === 9) uuidText += '-';
    }
    return uuidText;
  }
}

const hexDigitsOfByte = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
