/**
 * Positions and instants: which ones the next append gets, and up to which ones readers may look. System time rises strictly
 * with position, whatever the clock does, and never reaches an instant that a reader holds.
 */
import type { Clock } from '../../clock.ts';
import { assert } from '../../errors.ts';
import type { CommittedEntry } from '../entries/entry.ts';
import { type HashChain, lastInstantOf } from '../files/hash-chain.ts';
import type { Basis, NextPosition } from '../log-store.ts';

export class PositionAssigner {
  readonly #clock: Clock;
  readonly #listeners: ((basis: Basis) => void)[] = [];
  /** First instants of entries that are placed and not visible: a reader's instant stays below the first. */
  readonly #hidden: { readonly leaf: number; readonly time: bigint }[] = [];
  #leaves: number;
  #position: number;
  #lastInstant: bigint;
  #visiblePosition: number;
  #visibleInstant: bigint;
  #handedOut: bigint;
  #promised: NextPosition | null = null;

  constructor(clock: Clock, chain: HashChain) {
    this.#clock = clock;
    this.#leaves = chain.leaves;
    this.#position = this.#visiblePosition = chain.position;
    this.#lastInstant = this.#visibleInstant = this.#handedOut = chain.lastInstant ?? 0n;
  }

  /** Entries that are placed, linked or not. */
  get leaves(): number {
    return this.#leaves;
  }

  get position(): number {
    return this.#position;
  }

  /** Kept until the end of the calling turn: a decision reads the place that its append will get. */
  next(): NextPosition {
    return this.#promised ?? this.#promise({ position: this.#position, time: this.#nextTime() });
  }

  /** Whether a place that was meant to come later than `next` is free; it is kept as that is then. */
  claim(claimed: NextPosition): boolean {
    const isFree = this.isFree(claimed);
    if (isFree) this.#promise(claimed);
    return isFree;
  }

  #promise(promised: NextPosition): NextPosition {
    if (this.#promised === null)
      queueMicrotask(() => {
        this.#promised = null;
      });
    return (this.#promised = promised);
  }

  basis(): Basis {
    const now = this.#clock.now();
    const bound = this.#hidden[0]?.time ?? this.#promised?.time;
    const below = bound !== undefined && now >= bound ? bound - 1n : now;
    const instant = max(below, max(this.#visibleInstant, this.#handedOut));
    assert(bound === undefined || instant < bound, 'a reader never holds the instant of an entry that it may not see');
    this.#handedOut = instant;
    return { position: this.#visiblePosition, instant };
  }

  isFree({ position, time }: NextPosition): boolean {
    return position === this.#position && time > this.#lastInstant && time > this.#handedOut;
  }

  /** So many entries are placed from `first` on; `next` comes right behind them. */
  advance(entries: number, first: NextPosition, next: NextPosition): void {
    this.#promised = null;
    this.#position = next.position;
    this.#lastInstant = next.time - 1n;
    this.#leaves += entries;
    // Access records hide nothing from readers, and wait for an fsync that may be long in coming.
    if (next.position > first.position) this.#hidden.push({ leaf: this.#leaves - 1, time: first.time });
  }

  /** All entries up to this one meet the sync policy. */
  makeVisible(entry: CommittedEntry): void {
    let count = 0;
    while (count < this.#hidden.length && this.#hidden[count]!.leaf <= entry.leaf) count++;
    this.#hidden.splice(0, count);
    this.#visibleInstant = lastInstantOf(entry);
    const position = entry.position + entry.positions;
    if (position === this.#visiblePosition) return;
    this.#visiblePosition = position;
    if (this.#listeners.length === 0) return;
    const basis = this.basis();
    for (const listener of this.#listeners) listener(basis);
  }

  onVisible(listener: (basis: Basis) => void): void {
    this.#listeners.push(listener);
  }

  #nextTime(): bigint {
    return max(this.#clock.now(), max(this.#lastInstant, this.#handedOut) + 1n);
  }
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
