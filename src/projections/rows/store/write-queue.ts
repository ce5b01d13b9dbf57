/**
 * Segments that wait to be written, one after the other in turns of their own. During bulk writes segments gather: only a
 * checkpoint, which asks for their files, and a shortage of memory, checked with each of them, need the files.
 */
import type { ColumnStoreOptions } from './store-contract.ts';

/** A segment that can wait. */
export interface Queued {
  queued: boolean;
}

export interface WriteQueueOptions<Item> extends Pick<ColumnStoreOptions, 'budgetBytes' | 'lull'> {
  readonly yieldTurn: () => Promise<void>;
  readonly isKept: (item: Item) => boolean;
  /** Writes an item; one that has changed meanwhile is added again. */
  readonly write: (item: Item) => Promise<void>;
  readonly onFailed: (error: unknown) => void;
  /** Nothing is written for now. */
  readonly onRest: () => void;
}

/** Sealed segments that may wait to be written while more are replayed. */
const WAITING_SEGMENTS_MAX = 4;
/** Sealed segments that gather while more come in: this many, and of the budget no more than a share. */
const GATHERED_SEGMENTS_MAX = 32;
const GATHERED_BUDGET_SHARE = 8;

export class WriteQueue<Item extends Queued> {
  readonly #queueOptions: WriteQueueOptions<Item>;
  #queuedItems: Item[] = [];
  #runningWrites: Promise<void> | null = null;
  /** Ends the gathering that `#runningWrites` is at. */
  #gatherAbort: AbortController | null = null;
  /** Bytes of segments that were sealed since the last were written, and how many were ever. */
  #unsavedBytes = 0;
  #sealedCount = 0;
  readonly #roomWaiters: (() => void)[] = [];
  #hasQueueBegun = false;
  #hasWriteFailed = false;
  #isQueueClosed = false;

  constructor(options: WriteQueueOptions<Item>) {
    this.#queueOptions = options;
  }

  get length(): number {
    return this.#queuedItems.length;
  }

  get hasFailed(): boolean {
    return this.#hasWriteFailed;
  }

  /** Whether what is added gets written. */
  get isAtWork(): boolean {
    return this.#hasQueueBegun && !this.#hasWriteFailed && !this.#isQueueClosed;
  }

  begin(): void {
    this.#hasQueueBegun = true;
    this.#startWrites();
  }

  addSealed(sealedItem: Item, sealedBytes: number): void {
    this.#sealedCount++;
    this.#unsavedBytes += sealedBytes;
    this.add(sealedItem);
    if (this.#isQueuePressed()) this.#gatherAbort?.abort();
  }

  add(queuedItem: Item): void {
    if (queuedItem.queued) return;
    queuedItem.queued = true;
    this.#queuedItems.push(queuedItem);
    this.#startWrites();
  }

  /** Drops items that are not kept any more: they need no file. */
  dropGone(): void {
    this.#queuedItems = this.#queuedItems.filter(this.#queueOptions.isKept);
  }

  /** Undefined while there is room, otherwise it resolves when some were written. */
  room(): Promise<void> | undefined {
    if (!this.#runningWrites || this.#gatherAbort || this.#queuedItems.length < this.#waitingMax) return undefined;
    return new Promise((resolveRoom) => this.#roomWaiters.push(resolveRoom));
  }

  /** Resolves when all were written, or could not be: retries earlier failures. */
  async whenIdle(): Promise<void> {
    this.#hasWriteFailed = false;
    this.#startWrites();
    while (this.#runningWrites) {
      this.#gatherAbort?.abort();
      await this.#runningWrites;
    }
  }

  async close(): Promise<void> {
    this.#isQueueClosed = true;
    this.#queuedItems = [];
    this.#gatherAbort?.abort();
    while (this.#runningWrites) await this.#runningWrites;
  }

  #startWrites(): void {
    if (this.#runningWrites || !this.isAtWork || this.#queuedItems.length === 0) return;
    this.#runningWrites = this.#writeQueuedItems().finally(() => {
      this.#runningWrites = null;
      this.#queueOptions.onRest();
      this.#wakeRoomWaiters();
    });
  }

  get #waitingMax(): number {
    return this.#queueOptions.lull ? GATHERED_SEGMENTS_MAX + WAITING_SEGMENTS_MAX : WAITING_SEGMENTS_MAX;
  }

  #isQueuePressed(): boolean {
    return (
      this.#queuedItems.length >= GATHERED_SEGMENTS_MAX ||
      this.#unsavedBytes * GATHERED_BUDGET_SHARE > this.#queueOptions.budgetBytes
    );
  }

  /** Until no segment has come for a while, or they are too many. */
  async #gatherSealed(waitForLull: (gatherSignal: AbortSignal) => Promise<void>): Promise<void> {
    this.#gatherAbort = new AbortController();
    const { signal: gatherSignal } = this.#gatherAbort;
    for (let sealedBefore = -1; sealedBefore !== this.#sealedCount && !this.#isQueuePressed() && !gatherSignal.aborted; ) {
      sealedBefore = this.#sealedCount;
      await waitForLull(gatherSignal);
    }
    this.#gatherAbort = null;
  }

  async #writeQueuedItems(): Promise<void> {
    const { lull: waitForLull, yieldTurn, isKept, write: writeItem, onFailed: onWriteFailed } = this.#queueOptions;
    if (waitForLull) await this.#gatherSealed(waitForLull);
    this.#unsavedBytes = 0;
    while (this.#queuedItems.length > 0 && !this.#isQueueClosed) {
      await yieldTurn();
      const queuedItem = this.#queuedItems.shift();
      if (!queuedItem || !isKept(queuedItem)) continue;
      queuedItem.queued = false;
      try {
        await writeItem(queuedItem);
        if (this.#queuedItems.length < this.#waitingMax) this.#wakeRoomWaiters();
      } catch (error) {
        // Derived data: the store goes on in memory, and tries again with the next checkpoint.
        if (!this.#hasWriteFailed) onWriteFailed(error);
        this.#hasWriteFailed = true;
        if (isKept(queuedItem)) {
          queuedItem.queued = true;
          this.#queuedItems.push(queuedItem);
        }
        return;
      }
    }
  }

  #wakeRoomWaiters(): void {
    for (const resolveRoom of this.#roomWaiters.splice(0)) resolveRoom();
  }
}
