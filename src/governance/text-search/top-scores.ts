/** The highest of many scores: a heap of a bounded number of them, whose top is the lowest that it holds. */
export class TopScores {
  readonly #wantedScores: number;
  readonly #scoreHeap: number[] = [];

  constructor(wanted: number) {
    this.#wantedScores = wanted;
  }

  /** Scores from this on are among the best; those that are equal to the last of them are too. */
  get least(): number {
    if (this.#wantedScores === 0) return Infinity;
    return this.#scoreHeap.length < this.#wantedScores ? -Infinity : this.#scoreHeap[0]!;
  }

  /** False for a score that can't be among them. */
  take(score: number): boolean {
    const scoreHeap = this.#scoreHeap;
    if (this.#wantedScores === 0) return false;
    if (scoreHeap.length < this.#wantedScores) {
      scoreHeap.push(score);
      this.#siftUp(scoreHeap.length - 1);
      return true;
    }
    if (score < scoreHeap[0]!) return false;
    if (score > scoreHeap[0]!) {
      scoreHeap[0] = score;
      this.#siftDown();
    }
    return true;
  }

  #siftUp(heapStart: number): void {
    const scoreHeap = this.#scoreHeap;
    for (let heapIndex = heapStart; heapIndex > 0; ) {
      const parent = (heapIndex - 1) >>> 1;
      if (scoreHeap[parent]! <= scoreHeap[heapIndex]!) return;
      [scoreHeap[parent], scoreHeap[heapIndex]] = [scoreHeap[heapIndex]!, scoreHeap[parent]!];
      heapIndex = parent;
    }
  }

  #siftDown(): void {
    const scoreHeap = this.#scoreHeap;
    for (let heapIndex = 0; ; ) {
      let leastChild = heapIndex;
      for (const child of [2 * heapIndex + 1, 2 * heapIndex + 2])
        if (child < scoreHeap.length && scoreHeap[child]! < scoreHeap[leastChild]!) leastChild = child;
      if (leastChild === heapIndex) return;
      [scoreHeap[heapIndex], scoreHeap[leastChild]] = [scoreHeap[leastChild]!, scoreHeap[heapIndex]!];
      heapIndex = leastChild;
    }
  }
}
