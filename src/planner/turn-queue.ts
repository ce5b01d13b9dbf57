/**
 * Turns for work that has to wait for others now and then: one of those who wait goes on in each round of the event loop,
 * and what came in by sockets is looked at between any two of them. So whatever is running, a request waits for one slice of
 * work, not for one of each.
 *
 * Kinds of work take turns with each other, and within a kind the longest-waiting goes on first: however many queries are
 * running, rows come in at the pace that they would beside one.
 */
export type WorkKind = 'queries' | 'bodies' | 'seals' | 'files';

interface Lane {
  waiting: (() => void)[];
  /** Those before it have gone on. */
  first: number;
}

export class TurnQueue {
  readonly #defer: (task: () => void) => void;
  readonly #lanes = new Map<WorkKind, Lane>();
  /** Lanes in which somebody waits, that whose turn is next first. */
  readonly #order: Lane[] = [];

  /** `defer` runs its task in the next round of the event loop. */
  constructor(defer: (task: () => void) => void = (task) => void setImmediate(task)) {
    this.#defer = defer;
  }

  /** Resolves when it is the caller's turn. */
  next(kind: WorkKind = 'queries'): Promise<void> {
    return new Promise((resolve) => {
      let lane = this.#lanes.get(kind);
      if (!lane) this.#lanes.set(kind, (lane = { waiting: [], first: 0 }));
      lane.waiting.push(resolve);
      if (lane.waiting.length - lane.first > 1) return;
      this.#order.push(lane);
      if (this.#order.length === 1) this.#defer(this.#wake);
    });
  }

  readonly #wake = (): void => {
    const lane = this.#order.shift()!;
    const resolve = lane.waiting[lane.first++]!;
    // Somebody may be waiting at all times: those who have gone on must not pile up.
    if (lane.first === goneMax || lane.first === lane.waiting.length) {
      lane.waiting = lane.waiting.slice(lane.first);
      lane.first = 0;
    }
    if (lane.waiting.length > 0) this.#order.push(lane);
    if (this.#order.length > 0) this.#defer(this.#wake);
    // What it goes on with runs once this task is over.
    resolve();
  };
}

const goneMax = 64;
