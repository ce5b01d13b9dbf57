/** Appends on their way to the disk: queued, then written, then fsynced. */
import type { ServiceError } from '../../errors.ts';
import type { CommittedEntry } from '../entries/entry.ts';
import type { EncodedEntry, PlacedEntry } from '../entries/entry-codec.ts';
import { frameBytes } from '../files/log-file.ts';
import type { Appended, Durability } from '../log-store.ts';

/** The future outcome of an append; makes a promise only on request. */
export class Outcome<T> {
  #outcomePromise: Promise<T> | null = null;
  #resolveOutcome: ((value: T) => void) | null = null;
  #rejectOutcome: ((error: ServiceError) => void) | null = null;
  #settledOutcome: { readonly value: T } | { readonly error: ServiceError } | null = null;

  get promise(): Promise<T> {
    if (this.#outcomePromise) return this.#outcomePromise;
    const settledOutcome = this.#settledOutcome;
    this.#outcomePromise = new Promise((resolve, reject) => {
      if (settledOutcome === null) {
        this.#resolveOutcome = resolve;
        this.#rejectOutcome = reject;
      } else if ('value' in settledOutcome) resolve(settledOutcome.value);
      else reject(settledOutcome.error);
    });
    // The caller may wait for the other outcome: this must not count as an unhandled rejection.
    this.#outcomePromise.catch(ignoreOutcome);
    return this.#outcomePromise;
  }

  /** The first outcome stays. */
  resolve(outcomeValue: T): void {
    this.#settledOutcome ??= { value: outcomeValue };
    this.#resolveOutcome?.(outcomeValue);
  }

  reject(outcomeError: ServiceError): void {
    this.#settledOutcome ??= { error: outcomeError };
    this.#rejectOutcome?.(outcomeError);
  }

  /** Rejects the waiting callers because the outcome is not known yet; later callers wait for the outcome. */
  postpone(postponeError: ServiceError): void {
    this.#rejectOutcome?.(postponeError);
    this.#outcomePromise = this.#resolveOutcome = this.#rejectOutcome = null;
  }
}

/** One append and its waiting callers. */
export class PendingAppend implements Appended {
  readonly placed: readonly PlacedEntry[];
  readonly entries: readonly CommittedEntry[];
  readonly needs: 'fsync' | 'write' | 'nothing';
  readonly write = new Outcome<void>();
  /**
   * The only part of an append that is kept once it is written: appends that wait for an occasional fsync would fill the heap.
   */
  readonly acknowledgement = new Outcome<Durability>();

  constructor(placedEntries: readonly PlacedEntry[], acknowledgedBy: PendingAppend['needs']) {
    this.placed = placedEntries;
    this.entries = placedEntries.length === 1 ? [placedEntries[0]!.entry] : placedEntries.map(({ entry }) => entry);
    this.needs = acknowledgedBy;
  }

  /** Whether it is access records alone, which no commit waits for. */
  get isRecord(): boolean {
    return this.needs === 'nothing';
  }

  get written(): Promise<void> {
    return this.write.promise;
  }

  get acknowledged(): Promise<Durability> {
    return this.acknowledgement.promise;
  }

  reject(appendError: ServiceError): void {
    this.write.reject(appendError);
    this.acknowledgement.reject(appendError);
  }

  postpone(postponeError: ServiceError): void {
    this.write.postpone(postponeError);
    this.acknowledgement.postpone(postponeError);
  }
}

/** Appends that no group has taken yet, in order. */
export class CommitQueue {
  #pendingAppends: PendingAppend[] = [];
  #fsyncAppends = 0;

  get length(): number {
    return this.#pendingAppends.length;
  }

  /** Appends that wait for an fsync and are not written: queued, or in a group that is being written. */
  get syncs(): number {
    return this.#fsyncAppends;
  }

  get isOnlyRecords(): boolean {
    return this.#pendingAppends.every(({ isRecord }) => isRecord);
  }

  add(pendingAppend: PendingAppend): void {
    this.#pendingAppends.push(pendingAppend);
    if (pendingAppend.needs === 'fsync') this.#fsyncAppends++;
  }

  /** Takes the linked appends up to so many bytes, and at least `appendsMin` of them whatever their size. */
  take(groupBytesMax: number, appendsMin: 0 | 1): PendingAppend[] {
    let takenAppends = 0;
    for (let groupBytes = 0; takenAppends < this.#pendingAppends.length; takenAppends++) {
      const { placed } = this.#pendingAppends[takenAppends]!;
      if (!placed[placed.length - 1]!.linked) break;
      groupBytes += frameBytes(placed);
      if (takenAppends >= appendsMin && groupBytes > groupBytesMax) break;
    }
    return takenAppends === 0 ? [] : this.#pendingAppends.splice(0, takenAppends);
  }

  /** How many of a group that is written now wait for an fsync. */
  countWritten(commitGroup: readonly PendingAppend[]): number {
    let writtenSyncs = 0;
    for (const { needs } of commitGroup) if (needs === 'fsync') writtenSyncs++;
    this.#fsyncAppends -= writtenSyncs;
    return writtenSyncs;
  }

  postpone(postponeError: ServiceError): void {
    for (const pendingAppend of this.#pendingAppends) pendingAppend.postpone(postponeError);
  }

  /** Everything goes; the appends that were queued are returned. */
  clear(): readonly PendingAppend[] {
    const pendingAppends = this.#pendingAppends;
    this.#pendingAppends = [];
    this.#fsyncAppends = 0;
    return pendingAppends;
  }
}

/** Written frames that share one fsync. */
class Unsynced {
  readonly acknowledgements: Outcome<Durability>[] = [];
  /** Appends that wait for it: access records don't. */
  syncs = 0;
  bytes = 0;
  /** The last entry that is written. */
  last: EncodedEntry | null = null;

  add(writtenEntries: readonly EncodedEntry[], fsyncAppends: number): void {
    this.syncs += fsyncAppends;
    this.bytes += frameBytes(writtenEntries);
    this.last = writtenEntries[writtenEntries.length - 1]!;
  }
}

/**
 * Frames that are written and not durable: those that the running fsync covers, and those that wait for the next one. Invariant: an
 * acknowledgement is in one of the two, until its fsync is over.
 */
export class FsyncBacklog {
  /** Written before the fsync that is under way began. */
  #runningFsync = new Unsynced();
  /** Written, and waiting for whatever fsync comes next. */
  #nextFsync = new Unsynced();
  /** The next append asks for an fsync, whatever it is. */
  #isFsyncDue = false;

  get running(): Unsynced {
    return this.#runningFsync;
  }

  get next(): Unsynced {
    return this.#nextFsync;
  }

  begin(): Unsynced {
    this.#runningFsync = this.#nextFsync;
    this.#nextFsync = new Unsynced();
    return this.#runningFsync;
  }

  end(): void {
    this.#runningFsync = new Unsynced();
  }

  /** Makes an fsync due if a written frame still waits for one. */
  request(): void {
    this.#isFsyncDue = this.#nextFsync.acknowledgements.length > 0;
  }

  takeRequest(): boolean {
    const isFsyncDue = this.#isFsyncDue;
    this.#isFsyncDue = false;
    return isFsyncDue;
  }

  /** Everything goes; acknowledgements that still waited are returned. */
  clear(): readonly Outcome<Durability>[] {
    const unsyncedOutcomes = [...this.#runningFsync.acknowledgements, ...this.#nextFsync.acknowledgements];
    this.#runningFsync = new Unsynced();
    this.#nextFsync = new Unsynced();
    return unsyncedOutcomes;
  }
}

function ignoreOutcome(): void {}
