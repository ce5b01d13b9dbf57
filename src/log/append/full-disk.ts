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
type ShortWrite = 'frames' | 'head';

const DISK_RETRY_MS = 500;

const noRoomTexts: Record<NoRoom, string> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota on the disk is used up',
  EROFS: 'the disk is read-only',
};

export class FullDisk {
  readonly #diskOptions: FullDiskOptions;
  readonly #shortWrites = new Set<ShortWrite>();
  #shortageText: string | null = null;
  /** Callers that wait for something else while there is room. */
  readonly #shortageWaiters = new Set<(error: ServiceError) => void>();

  constructor(diskOptions: FullDiskOptions) {
    this.#diskOptions = diskOptions;
  }

  /** Why nothing is written for now, with directory and free space; null while there is room. */
  get why(): string | null {
    return this.#shortageText;
  }

  /** After a call that failed. True: it can be made again after `wait`. False: it failed for another reason, or nothing waits any more. */
  async isShort(shortWrite: ShortWrite, writeError: unknown): Promise<boolean> {
    const { disk, directory, signal, say } = this.#diskOptions;
    const noRoomCode = noRoomIn(writeError);
    if (noRoomCode === null || signal.aborted) return false;
    const freeBytes = await disk.freeBytes(directory);
    const wasShort = this.#shortageText !== null;
    this.#shortWrites.add(shortWrite);
    this.#shortageText = `${noRoomTexts[noRoomCode]} (${noRoomCode}) at ${directory}${freeBytes === null ? '' : `, ${freeBytesText(freeBytes)} free`}`;
    for (const reject of this.#shortageWaiters) reject(this.refusal());
    this.#shortageWaiters.clear();
    if (!wasShort) say(`${this.#shortageText}: nothing is written until there is room, and then the store goes on by itself`);
    return true;
  }

  /** Resolves with `diskWork`; rejects as soon as there is no room, even if `diskWork` succeeds later. */
  async unlessShort<T>(diskWork: Promise<T>): Promise<T> {
    let reject!: (error: ServiceError) => void;
    const shortage = new Promise<never>((_, refuse) => (reject = refuse));
    this.#shortageWaiters.add(reject);
    try {
      return await Promise.race([diskWork, shortage]);
    } finally {
      this.#shortageWaiters.delete(reject);
    }
  }

  /** Until it is worth trying again; no longer once the log closes. */
  wait(): Promise<void> {
    return this.#diskOptions.clock.sleep(DISK_RETRY_MS, this.#diskOptions.signal);
  }

  /** The write that lacked room has succeeded. */
  clearShortage(shortWrite: ShortWrite): void {
    if (!this.#shortWrites.delete(shortWrite) || this.#shortWrites.size > 0) return;
    this.#shortageText = null;
    this.#diskOptions.say(`the disk at ${this.#diskOptions.directory} has room again: the store takes writes`);
  }

  /** The error for appends that arrive while there is no room. */
  refusal(): ServiceError {
    return this.#noRoomError('nothing was written; the store takes writes again by itself once there is room');
  }

  /** The error for waiting appends whose frames are kept until there is room. */
  uncertain(): ServiceError {
    return this.#noRoomError(`what was sent may be written once there is room: ${sendAgain}`);
  }

  #noRoomError(outcomeText: string): ServiceError {
    return new ServiceError('REL_UNAVAILABLE', `${this.#shortageText}: ${outcomeText}`, { retryAfterSecs: 1 });
  }
}

/** The final outcome of an append, across every postponement for lack of room. */
export async function finalOutcome(pendingAppend: Pick<Appended, 'acknowledged'>): Promise<Durability> {
  for (;;) {
    const acknowledged = pendingAppend.acknowledged;
    try {
      return await acknowledged;
    } catch (outcomeError) {
      if (acknowledged === pendingAppend.acknowledged) throw outcomeError;
    }
  }
}

/** Advice to a caller who cannot know whether rows were written. */
export const sendAgain = 'send it again with the same Idempotency-Key, and it is written once';

function freeBytesText(freeBytes: number): string {
  return freeBytes < 1 << 20 ? `${Math.floor(freeBytes / 1024)} KiB` : `${Math.floor(freeBytes / (1 << 20))} MiB`;
}
