/** The highest of many scores: a heap of a bounded number of them, whose top is the lowest that it holds. */
export class TopScores {
  readonly #wanted: number;
  readonly #heap: number[] = [];

  constructor(wanted: number) {
    this.#wanted = wanted;
  }

  /** Scores from this on are among the best; those that are equal to the last of them are too. */
  get least(): number {
    if (this.#wanted === 0) return Infinity;
    return this.#heap.length < this.#wanted ? -Infinity : this.#heap[0]!;
  }

  /** False for a score that can't be among them. */
  take(score: number): boolean {
    const heap = this.#heap;
    if (this.#wanted === 0) return false;
    if (heap.length < this.#wanted) {
      heap.push(score);
      this.#up(heap.length - 1);
      return true;
    }
    if (score < heap[0]!) return false;
    if (score > heap[0]!) {
      heap[0] = score;
      this.#down();
    }
    return true;
  }

  #up(from: number): void {
    const heap = this.#heap;
    for (let at = from; at > 0; ) {
      const parent = (at - 1) >>> 1;
      if (heap[parent]! <= heap[at]!) return;
      [heap[parent], heap[at]] = [heap[at]!, heap[parent]!];
      at = parent;
    }
  }

  #down(): void {
    const heap = this.#heap;
    for (let at = 0; ; ) {
      let least = at;
      for (const child of [2 * at + 1, 2 * at + 2]) if (child < heap.length && heap[child]! < heap[least]!) least = child;
      if (least === at) return;
      [heap[at], heap[least]] = [heap[least]!, heap[at]!];
      at = least;
    }
  }
}
