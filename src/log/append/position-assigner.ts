/**
 * Assigns positions and instants to appends, and knows up to which ones readers may look. System time rises strictly
 * with position, whatever the clock does, and never reaches an instant that a reader holds.
 */
import type { Clock } from '../../clock.ts';
import { assert } from '../../errors.ts';
import type { CommittedEntry } from '../entries/entry.ts';
import { type HashChain, lastInstantOf } from '../files/hash-chain.ts';
import type { Basis, NextPosition } from '../log-store.ts';

export class PositionAssigner {
  readonly #instantClock: Clock;
  readonly #basisListeners: ((basis: Basis) => void)[] = [];
  /** First instants of entries that are placed and not visible: a reader's instant stays below the first. */
  readonly #invisibleEntries: { readonly leaf: number; readonly time: bigint }[] = [];
  #assignedLeaves: number;
  #nextPosition: number;
  #lastEntryInstant: bigint;
  #visiblePosition: number;
  #visibleInstant: bigint;
  #handedOutInstant: bigint;
  #promisedPosition: NextPosition | null = null;

  constructor(instantClock: Clock, hashChain: HashChain) {
    this.#instantClock = instantClock;
    this.#assignedLeaves = hashChain.leaves;
    this.#nextPosition = this.#visiblePosition = hashChain.position;
    this.#lastEntryInstant = this.#visibleInstant = this.#handedOutInstant = hashChain.lastInstant ?? 0n;
  }

  /** Entries that are placed, linked or not. */
  get leaves(): number {
    return this.#assignedLeaves;
  }

  get position(): number {
    return this.#nextPosition;
  }

  /** Kept until the end of the calling turn: a decision reads the place that its append will get. */
  next(): NextPosition {
    return this.#promisedPosition ?? this.#promisePosition({ position: this.#nextPosition, time: this.#nextInstant() });
  }

  /** Whether a place that was meant to come later than `next` is free; it is kept as that is then. */
  claim(claimed: NextPosition): boolean {
    const isFree = this.isFree(claimed);
    if (isFree) this.#promisePosition(claimed);
    return isFree;
  }

  #promisePosition(promised: NextPosition): NextPosition {
    if (this.#promisedPosition === null)
      queueMicrotask(() => {
        this.#promisedPosition = null;
      });
    return (this.#promisedPosition = promised);
  }

  basis(): Basis {
    const nowInstant = this.#instantClock.now();
    const firstInvisible = this.#invisibleEntries[0]?.time ?? this.#promisedPosition?.time;
    const visibleBound = firstInvisible !== undefined && nowInstant >= firstInvisible ? firstInvisible - 1n : nowInstant;
    const basisInstant = laterInstant(visibleBound, laterInstant(this.#visibleInstant, this.#handedOutInstant));
    assert(
      firstInvisible === undefined || basisInstant < firstInvisible,
      'a reader never holds the instant of an entry that it may not see',
    );
    this.#handedOutInstant = basisInstant;
    return { position: this.#visiblePosition, instant: basisInstant };
  }

  isFree({ position: claimedPosition, time: claimedInstant }: NextPosition): boolean {
    return (
      claimedPosition === this.#nextPosition && claimedInstant > this.#lastEntryInstant && claimedInstant > this.#handedOutInstant
    );
  }

  /** So many entries are placed from `firstPlacement` on; `nextPlacement` comes right behind them. */
  advance(entryCount: number, firstPlacement: NextPosition, nextPlacement: NextPosition): void {
    this.#promisedPosition = null;
    this.#nextPosition = nextPlacement.position;
    this.#lastEntryInstant = nextPlacement.time - 1n;
    this.#assignedLeaves += entryCount;
    // Access records hide nothing from readers, and wait for an fsync that may be long in coming.
    if (nextPlacement.position > firstPlacement.position)
      this.#invisibleEntries.push({ leaf: this.#assignedLeaves - 1, time: firstPlacement.time });
  }

  /** All entries up to this one meet the sync policy. */
  makeVisible(committedEntry: CommittedEntry): void {
    let visibleCount = 0;
    while (visibleCount < this.#invisibleEntries.length && this.#invisibleEntries[visibleCount]!.leaf <= committedEntry.leaf)
      visibleCount++;
    this.#invisibleEntries.splice(0, visibleCount);
    this.#visibleInstant = lastInstantOf(committedEntry);
    const visiblePosition = committedEntry.position + committedEntry.positions;
    if (visiblePosition === this.#visiblePosition) return;
    this.#visiblePosition = visiblePosition;
    if (this.#basisListeners.length === 0) return;
    const basis = this.basis();
    for (const basisListener of this.#basisListeners) basisListener(basis);
  }

  onVisible(listener: (basis: Basis) => void): void {
    this.#basisListeners.push(listener);
  }

  #nextInstant(): bigint {
    return laterInstant(this.#instantClock.now(), laterInstant(this.#lastEntryInstant, this.#handedOutInstant) + 1n);
  }
}

function laterInstant(firstInstant: bigint, secondInstant: bigint): bigint {
  return firstInstant > secondInstant ? firstInstant : secondInstant;
}
