/** Appends on their way to the disk: queued, then written, then fsynced. */
import type { ServiceError } from '../../errors.ts';
import type { CommittedEntry } from '../entries/entry.ts';
import type { EncodedEntry, PlacedEntry } from '../entries/entry-codec.ts';
import { frameBytes } from '../files/log-file.ts';
import type { Appended, Durability } from '../log-store.ts';

/** The future outcome of an append; makes a promise only on request. */
export class Outcome<T> {
  #promise: Promise<T> | null = null;
  #resolve: ((value: T) => void) | null = null;
  #reject: ((error: ServiceError) => void) | null = null;
  #settled: { readonly value: T } | { readonly error: ServiceError } | null = null;

  get promise(): Promise<T> {
    if (this.#promise) return this.#promise;
    const settled = this.#settled;
    this.#promise = new Promise((resolve, reject) => {
      if (settled === null) {
        this.#resolve = resolve;
        this.#reject = reject;
      } else if ('value' in settled) resolve(settled.value);
      else reject(settled.error);
    });
    // The caller may wait for the other outcome: this must not count as an unhandled rejection.
    this.#promise.catch(ignore);
    return this.#promise;
  }

  /** The first outcome stays. */
  resolve(value: T): void {
    this.#settled ??= { value };
    this.#resolve?.(value);
  }

  reject(error: ServiceError): void {
    this.#settled ??= { error };
    this.#reject?.(error);
  }

  /** Rejects the waiting callers because the outcome is not known yet; later callers wait for the outcome. */
  postpone(error: ServiceError): void {
    this.#reject?.(error);
    this.#promise = this.#resolve = this.#reject = null;
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

  constructor(placed: readonly PlacedEntry[], needs: PendingAppend['needs']) {
    this.placed = placed;
    this.entries = placed.length === 1 ? [placed[0]!.entry] : placed.map(({ entry }) => entry);
    this.needs = needs;
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

  reject(error: ServiceError): void {
    this.write.reject(error);
    this.acknowledgement.reject(error);
  }

  postpone(error: ServiceError): void {
    this.write.postpone(error);
    this.acknowledgement.postpone(error);
  }
}

/** Appends that no group has taken yet, in order. */
export class CommitQueue {
  #appends: PendingAppend[] = [];
  #syncs = 0;

  get length(): number {
    return this.#appends.length;
  }

  /** Appends that wait for an fsync and are not written: queued, or in a group that is being written. */
  get syncs(): number {
    return this.#syncs;
  }

  get isOnlyRecords(): boolean {
    return this.#appends.every(({ isRecord }) => isRecord);
  }

  add(append: PendingAppend): void {
    this.#appends.push(append);
    if (append.needs === 'fsync') this.#syncs++;
  }

  /** Takes the linked appends up to so many bytes, and at least `countMin` of them whatever their size. */
  take(bytesMax: number, countMin: 0 | 1): PendingAppend[] {
    let count = 0;
    for (let bytes = 0; count < this.#appends.length; count++) {
      const { placed } = this.#appends[count]!;
      if (!placed[placed.length - 1]!.linked) break;
      bytes += frameBytes(placed);
      if (count >= countMin && bytes > bytesMax) break;
    }
    return count === 0 ? [] : this.#appends.splice(0, count);
  }

  /** How many of a group that is written now wait for an fsync. */
  countWritten(group: readonly PendingAppend[]): number {
    let syncs = 0;
    for (const { needs } of group) if (needs === 'fsync') syncs++;
    this.#syncs -= syncs;
    return syncs;
  }

  postpone(error: ServiceError): void {
    for (const append of this.#appends) append.postpone(error);
  }

  /** Everything goes; the appends that were queued are returned. */
  clear(): readonly PendingAppend[] {
    const appends = this.#appends;
    this.#appends = [];
    this.#syncs = 0;
    return appends;
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

  add(entries: readonly EncodedEntry[], syncs: number): void {
    this.syncs += syncs;
    this.bytes += frameBytes(entries);
    this.last = entries[entries.length - 1]!;
  }
}

/**
 * Frames that are written and not durable: those that the running fsync covers, and those that wait for the next one. Invariant: an
 * acknowledgement is in one of the two, until its fsync is over.
 */
export class FsyncBacklog {
  /** Written before the fsync that is under way began. */
  #running = new Unsynced();
  /** Written, and waiting for whatever fsync comes next. */
  #next = new Unsynced();
  /** The next append asks for an fsync, whatever it is. */
  #isDue = false;

  get running(): Unsynced {
    return this.#running;
  }

  get next(): Unsynced {
    return this.#next;
  }

  begin(): Unsynced {
    this.#running = this.#next;
    this.#next = new Unsynced();
    return this.#running;
  }

  end(): void {
    this.#running = new Unsynced();
  }

  /** Makes an fsync due if a written frame still waits for one. */
  request(): void {
    this.#isDue = this.#next.acknowledgements.length > 0;
  }

  takeRequest(): boolean {
    const isDue = this.#isDue;
    this.#isDue = false;
    return isDue;
  }

  /** Everything goes; acknowledgements that still waited are returned. */
  clear(): readonly Outcome<Durability>[] {
    const acknowledgements = [...this.#running.acknowledgements, ...this.#next.acknowledgements];
    this.#running = new Unsynced();
    this.#next = new Unsynced();
    return acknowledgements;
  }
}

function ignore(): void {}
