/** Shared work in rounds: callers who come while a round runs are all served by the next. Pure. */

interface SharedRound<T> {
  readonly items: T[];
  readonly done: Promise<void>;
}

export class SharedRounds<T> {
  readonly #runRound: (items: readonly T[], yieldTurn: () => Promise<void>) => Promise<unknown>;
  #lastRound: Promise<unknown> = Promise.resolve();
  /** The round that has not begun. */
  #nextRound: SharedRound<T> | null = null;

  constructor(run: (items: readonly T[], yieldTurn: () => Promise<void>) => Promise<unknown>) {
    this.#runRound = run;
  }

  /** Resolves once the items were worked on; fails with the round that they were in. `yieldTurn` is that of the first of a round. */
  join(joinedItems: readonly T[], yieldTurn: () => Promise<void>): Promise<void> {
    if (this.#nextRound === null) {
      const sharedItems: T[] = [];
      const roundDone = this.#lastRound.then(async () => {
        this.#nextRound = null;
        await this.#runRound(sharedItems, yieldTurn);
      });
      this.#lastRound = roundDone.catch(() => undefined);
      this.#nextRound = { items: sharedItems, done: roundDone };
    }
    this.#nextRound.items.push(...joinedItems);
    return this.#nextRound.done;
  }
}
