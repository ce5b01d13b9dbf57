/**
 * Turns for work that has to wait for others now and then: one of those who wait goes on in each round of the event loop,
 * the longest-waiting first, and what came in by sockets is looked at between any two of them. So however many queries are
 * running, a request waits for one slice of work, not for one of each.
 */
export class TurnQueue {
  readonly #defer: (task: () => void) => void;
  #waiting: (() => void)[] = [];
  /** Those before it have gone on. */
  #first = 0;

  /** `defer` runs its task in the next round of the event loop. */
  constructor(defer: (task: () => void) => void = (task) => void setImmediate(task)) {
    this.#defer = defer;
  }

  /** Resolves when it is the caller's turn. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#waiting.length - this.#first === 1) this.#defer(this.#wake);
    });
  }

  readonly #wake = (): void => {
    const resolve = this.#waiting[this.#first++]!;
    // Somebody may be waiting at all times: those who have gone on must not pile up.
    if (this.#first === goneMax || this.#first === this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#first);
      this.#first = 0;
    }
    if (this.#waiting.length > 0) this.#defer(this.#wake);
    // What it goes on with runs once this task is over.
    resolve();
  };
}

const goneMax = 64;
