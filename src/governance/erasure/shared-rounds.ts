/** Shared work in rounds: callers who come while a round runs are all served by the next. Pure. */

interface Round<T> {
  readonly items: T[];
  readonly done: Promise<void>;
}

export class SharedRounds<T> {
  readonly #run: (items: readonly T[], yieldTurn: () => Promise<void>) => Promise<unknown>;
  #last: Promise<unknown> = Promise.resolve();
  /** The round that has not begun. */
  #next: Round<T> | null = null;

  constructor(run: (items: readonly T[], yieldTurn: () => Promise<void>) => Promise<unknown>) {
    this.#run = run;
  }

  /** Resolves once the items were worked on; fails with the round that they were in. `yieldTurn` is that of the first of a round. */
  join(items: readonly T[], yieldTurn: () => Promise<void>): Promise<void> {
    if (this.#next === null) {
      const together: T[] = [];
      const done = this.#last.then(async () => {
        this.#next = null;
        await this.#run(together, yieldTurn);
      });
      this.#last = done.catch(() => undefined);
      this.#next = { items: together, done };
    }
    this.#next.items.push(...items);
    return this.#next.done;
  }
}
