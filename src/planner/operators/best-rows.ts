/** The best rows met so far, by score; ties by `_pk` bytewise, then by system_from. */
import { compareText } from '../../log/values/value.ts';

export interface RankedRow {
  readonly score: number;
  readonly key: string;
  readonly systemFrom: bigint;
}

/** Below 0 where `leftRanked` comes before `rightRanked`. */
export function compareRanked(leftRanked: RankedRow, rightRanked: RankedRow): number {
  if (leftRanked.score !== rightRanked.score) return leftRanked.score > rightRanked.score ? -1 : 1;
  return (
    compareText(leftRanked.key, rightRanked.key) ||
    (leftRanked.systemFrom < rightRanked.systemFrom ? -1 : leftRanked.systemFrom > rightRanked.systemFrom ? 1 : 0)
  );
}

/** A heap whose root is the worst of them. */
export class BestRows<R extends RankedRow = RankedRow> {
  readonly #bestRowsMax: number;
  readonly #rankedHeap: R[] = [];

  constructor(most: number) {
    this.#bestRowsMax = most;
  }

  get size(): number {
    return this.#rankedHeap.length;
  }

  /** A row with a lower score can't come in. */
  get floor(): number {
    if (this.#rankedHeap.length < this.#bestRowsMax) return Number.NEGATIVE_INFINITY;
    return this.#bestRowsMax === 0 ? Number.POSITIVE_INFINITY : this.#rankedHeap[0]!.score;
  }

  offer(offeredRow: R): void {
    const rankedHeap = this.#rankedHeap;
    if (rankedHeap.length < this.#bestRowsMax) {
      rankedHeap.push(offeredRow);
      this.#riseInHeap(rankedHeap.length - 1);
    } else if (this.#bestRowsMax > 0 && compareRanked(offeredRow, rankedHeap[0]!) < 0) {
      rankedHeap[0] = offeredRow;
      this.#sinkInHeap();
    }
  }

  /** Best first. */
  list(): readonly R[] {
    return [...this.#rankedHeap].sort(compareRanked);
  }

  #riseInHeap(lastHeapIndex: number): void {
    const rankedHeap = this.#rankedHeap;
    for (let heapIndex = lastHeapIndex; heapIndex > 0; ) {
      const parentIndex = (heapIndex - 1) >> 1;
      if (compareRanked(rankedHeap[parentIndex]!, rankedHeap[heapIndex]!) >= 0) return;
      [rankedHeap[parentIndex], rankedHeap[heapIndex]] = [rankedHeap[heapIndex]!, rankedHeap[parentIndex]!];
      heapIndex = parentIndex;
    }
  }

  #sinkInHeap(): void {
    const rankedHeap = this.#rankedHeap;
    for (let heapIndex = 0; ; ) {
      let worstIndex = heapIndex;
      for (const childIndex of [2 * heapIndex + 1, 2 * heapIndex + 2]) {
        if (childIndex < rankedHeap.length && compareRanked(rankedHeap[childIndex]!, rankedHeap[worstIndex]!) > 0)
          worstIndex = childIndex;
      }
      if (worstIndex === heapIndex) return;
      [rankedHeap[worstIndex], rankedHeap[heapIndex]] = [rankedHeap[heapIndex]!, rankedHeap[worstIndex]!];
      heapIndex = worstIndex;
    }
  }
}
