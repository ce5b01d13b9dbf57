/**
 * A disk that takes no more for now: full, over its quota, or read-only. Frames that the log could not write are kept and written
 * again, the same bytes at the same offset, until there is room. Meanwhile the log takes no new appends.
 */
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import type { Appended, Durability } from '../log-store.ts';
import { type Disk, type NoRoom, noRoomIn } from '../disk/disk.ts';

export interface FullDiskOptions {
  readonly disk: Pick<Disk, 'freeBytes'>;
  readonly clock: Pick<Clock, 'sleep'>;
  /** Where the log lies. */
  readonly directory: string;
  /** Aborted when the log closes or has failed: nothing waits for room any more. */
  readonly signal: AbortSignal;
  /** One line for the operator, when room runs out and when it is back. */
  readonly say: (line: string) => void;
}

/** Writes that wait for room: each is retried by itself. */
type Short = 'frames' | 'head';

const RETRY_MS = 500;

const words: Record<NoRoom, string> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota on the disk is used up',
  EROFS: 'the disk is read-only',
};

export class FullDisk {
  readonly #options: FullDiskOptions;
  readonly #short = new Set<Short>();
  #why: string | null = null;
  /** Callers that wait for something else while there is room. */
  readonly #impatient = new Set<(error: ServiceError) => void>();

  constructor(options: FullDiskOptions) {
    this.#options = options;
  }

  /** Why nothing is written for now, with directory and free space; null while there is room. */
  get why(): string | null {
    return this.#why;
  }

  /** After a call that failed. True: it can be made again after `wait`. False: it failed for another reason, or nothing waits any more. */
  async isShort(short: Short, error: unknown): Promise<boolean> {
    const { disk, directory, signal, say } = this.#options;
    const code = noRoomIn(error);
    if (code === null || signal.aborted) return false;
    const free = await disk.freeBytes(directory);
    const known = this.#why !== null;
    this.#short.add(short);
    this.#why = `${words[code]} (${code}) at ${directory}${free === null ? '' : `, ${bytesText(free)} free`}`;
    for (const reject of this.#impatient) reject(this.refusal());
    this.#impatient.clear();
    if (!known) say(`${this.#why}: nothing is written until there is room, and then the store goes on by itself`);
    return true;
  }

  /** Resolves with `work`; rejects as soon as there is no room, even if `work` succeeds later. */
  async unlessShort<T>(work: Promise<T>): Promise<T> {
    let reject!: (error: ServiceError) => void;
    const short = new Promise<never>((_, refuse) => (reject = refuse));
    this.#impatient.add(reject);
    try {
      return await Promise.race([work, short]);
    } finally {
      this.#impatient.delete(reject);
    }
  }

  /** Until it is worth trying again; no longer once the log closes. */
  wait(): Promise<void> {
    return this.#options.clock.sleep(RETRY_MS, this.#options.signal);
  }

  /** The write that lacked room has succeeded. */
  clearShortage(short: Short): void {
    if (!this.#short.delete(short) || this.#short.size > 0) return;
    this.#why = null;
    this.#options.say(`the disk at ${this.#options.directory} has room again: the store takes writes`);
  }

  /** The error for appends that arrive while there is no room. */
  refusal(): ServiceError {
    return this.#unavailable('nothing was written; the store takes writes again by itself once there is room');
  }

  /** The error for waiting appends whose frames are kept until there is room. */
  uncertain(): ServiceError {
    return this.#unavailable(`what was sent may be written once there is room: ${sendAgain}`);
  }

  #unavailable(then: string): ServiceError {
    return new ServiceError('REL_UNAVAILABLE', `${this.#why}: ${then}`, { retryAfterSecs: 1 });
  }
}

/** The final outcome of an append, across every postponement for lack of room. */
export async function finalOutcome(appended: Pick<Appended, 'acknowledged'>): Promise<Durability> {
  for (;;) {
    const acknowledged = appended.acknowledged;
    try {
      return await acknowledged;
    } catch (error) {
      if (acknowledged === appended.acknowledged) throw error;
    }
  }
}

/** Advice to a caller who cannot know whether rows were written. */
export const sendAgain = 'send it again with the same Idempotency-Key, and it is written once';

function bytesText(bytes: number): string {
  return bytes < 1 << 20 ? `${Math.floor(bytes / 1024)} KiB` : `${Math.floor(bytes / (1 << 20))} MiB`;
}
