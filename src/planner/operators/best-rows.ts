/** The best rows met so far, by score; ties by `_pk` bytewise, then by system_from. */
import { compareText } from '../../log/values/value.ts';

export interface RankedRow {
  readonly score: number;
  readonly key: string;
  readonly systemFrom: bigint;
}

/** Below 0 where `a` comes before `b`. */
export function compareRanked(a: RankedRow, b: RankedRow): number {
  if (a.score !== b.score) return a.score > b.score ? -1 : 1;
  return compareText(a.key, b.key) || (a.systemFrom < b.systemFrom ? -1 : a.systemFrom > b.systemFrom ? 1 : 0);
}

/** A heap whose root is the worst of them. */
export class BestRows<R extends RankedRow = RankedRow> {
  readonly #most: number;
  readonly #heap: R[] = [];

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#heap.length;
  }

  /** A row with a lower score can't come in. */
  get floor(): number {
    if (this.#heap.length < this.#most) return Number.NEGATIVE_INFINITY;
    return this.#most === 0 ? Number.POSITIVE_INFINITY : this.#heap[0]!.score;
  }

  offer(row: R): void {
    const heap = this.#heap;
    if (heap.length < this.#most) {
      heap.push(row);
      this.#rise(heap.length - 1);
    } else if (this.#most > 0 && compareRanked(row, heap[0]!) < 0) {
      heap[0] = row;
      this.#sink();
    }
  }

  /** Best first. */
  list(): readonly R[] {
    return [...this.#heap].sort(compareRanked);
  }

  #rise(start: number): void {
    const heap = this.#heap;
    for (let at = start; at > 0; ) {
      const above = (at - 1) >> 1;
      if (compareRanked(heap[above]!, heap[at]!) >= 0) return;
      [heap[above], heap[at]] = [heap[at]!, heap[above]!];
      at = above;
    }
  }

  #sink(): void {
    const heap = this.#heap;
    for (let at = 0; ; ) {
      let worst = at;
      for (const below of [2 * at + 1, 2 * at + 2]) {
        if (below < heap.length && compareRanked(heap[below]!, heap[worst]!) > 0) worst = below;
      }
      if (worst === at) return;
      [heap[worst], heap[at]] = [heap[at]!, heap[worst]!];
      at = worst;
    }
  }
}
