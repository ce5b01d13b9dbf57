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
const WAITING_MAX = 4;
/** Sealed segments that gather while more come in: this many, and of the budget no more than a share. */
const GATHERED_MAX = 32;
const GATHERED_SHARE = 8;

export class WriteQueue<Item extends Queued> {
  readonly #options: WriteQueueOptions<Item>;
  #items: Item[] = [];
  #working: Promise<void> | null = null;
  /** Ends the gathering that `#working` is at. */
  #gathering: AbortController | null = null;
  /** Bytes of segments that were sealed since the last were written, and how many were ever. */
  #unsavedBytes = 0;
  #sealed = 0;
  readonly #waiting: (() => void)[] = [];
  #begun = false;
  #failed = false;
  #closed = false;

  constructor(options: WriteQueueOptions<Item>) {
    this.#options = options;
  }

  get length(): number {
    return this.#items.length;
  }

  get hasFailed(): boolean {
    return this.#failed;
  }

  /** Whether what is added gets written. */
  get isAtWork(): boolean {
    return this.#begun && !this.#failed && !this.#closed;
  }

  begin(): void {
    this.#begun = true;
    this.#pump();
  }

  addSealed(item: Item, bytes: number): void {
    this.#sealed++;
    this.#unsavedBytes += bytes;
    this.add(item);
    if (this.#isPressed()) this.#gathering?.abort();
  }

  add(item: Item): void {
    if (item.queued) return;
    item.queued = true;
    this.#items.push(item);
    this.#pump();
  }

  /** Drops items that are not kept any more: they need no file. */
  dropGone(): void {
    this.#items = this.#items.filter(this.#options.isKept);
  }

  /** Undefined while there is room, otherwise it resolves when some were written. */
  room(): Promise<void> | undefined {
    if (!this.#working || this.#gathering || this.#items.length < this.#waitingMax) return undefined;
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Resolves when all were written, or could not be: retries earlier failures. */
  async whenIdle(): Promise<void> {
    this.#failed = false;
    this.#pump();
    while (this.#working) {
      this.#gathering?.abort();
      await this.#working;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#items = [];
    this.#gathering?.abort();
    while (this.#working) await this.#working;
  }

  #pump(): void {
    if (this.#working || !this.isAtWork || this.#items.length === 0) return;
    this.#working = this.#work().finally(() => {
      this.#working = null;
      this.#options.onRest();
      this.#wake();
    });
  }

  get #waitingMax(): number {
    return this.#options.lull ? GATHERED_MAX + WAITING_MAX : WAITING_MAX;
  }

  #isPressed(): boolean {
    return this.#items.length >= GATHERED_MAX || this.#unsavedBytes * GATHERED_SHARE > this.#options.budgetBytes;
  }

  /** Until no segment has come for a while, or they are too many. */
  async #gather(lull: (signal: AbortSignal) => Promise<void>): Promise<void> {
    this.#gathering = new AbortController();
    const { signal } = this.#gathering;
    for (let before = -1; before !== this.#sealed && !this.#isPressed() && !signal.aborted; ) {
      before = this.#sealed;
      await lull(signal);
    }
    this.#gathering = null;
  }

  async #work(): Promise<void> {
    const { lull, yieldTurn, isKept, write, onFailed: failed } = this.#options;
    if (lull) await this.#gather(lull);
    this.#unsavedBytes = 0;
    while (this.#items.length > 0 && !this.#closed) {
      await yieldTurn();
      const item = this.#items.shift();
      if (!item || !isKept(item)) continue;
      item.queued = false;
      try {
        await write(item);
        if (this.#items.length < this.#waitingMax) this.#wake();
      } catch (error) {
        // Derived data: the store goes on in memory, and tries again with the next checkpoint.
        if (!this.#failed) failed(error);
        this.#failed = true;
        if (isKept(item)) {
          item.queued = true;
          this.#items.push(item);
        }
        return;
      }
    }
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
