/**
 * Turns for work that has to wait for others now and then: one waiting task resumes in each round of the event loop, and sockets
 * are served between any two of them. So a request waits for one slice of work, not for one of each running task.
 *
 * Kinds of work take turns with each other, and within a kind the longest-waiting goes on first: however many queries are
 * running, ingest keeps the pace that it would have beside one. Chores, for which no caller waits, run when no other kind waits,
 * and in one of `CHORE_ROUNDS` turns at least. Erasures, whose subject is visible until they end, get `ERASURE_TURNS` turns for
 * each one of other kinds.
 */
export type WorkKind = 'queries' | 'bodies' | 'seals' | 'files' | 'erasures' | 'chores';

const CHORE_ROUNDS = 16;
const ERASURE_TURNS = 3;

interface Lane {
  readonly kind: WorkKind;
  waiting: (() => void)[];
  /** Those before it have gone on. */
  first: number;
}

export class TurnQueue {
  readonly #defer: (task: () => void) => void;
  readonly #lanes = new Map<WorkKind, Lane>();
  /** Lanes with waiting tasks, the one whose turn is next first. */
  readonly #order: Lane[] = [];
  /** Turns of others since the last one of a chore. */
  #passed = 0;
  /** Turns that erasures had one after the other. */
  #erasures = 0;

  /** `defer` runs its task in the next round of the event loop. */
  constructor(defer: (task: () => void) => void = (task) => void setImmediate(task)) {
    this.#defer = defer;
  }

  /** Whether work of this kind waits for a turn. */
  waits(kind: WorkKind): boolean {
    const lane = this.#lanes.get(kind);
    return lane !== undefined && lane.waiting.length > lane.first;
  }

  /** Resolves when it is the caller's turn. */
  next(kind: WorkKind = 'queries'): Promise<void> {
    return new Promise((resolve) => {
      let lane = this.#lanes.get(kind);
      if (!lane) this.#lanes.set(kind, (lane = { kind, waiting: [], first: 0 }));
      lane.waiting.push(resolve);
      if (lane.waiting.length - lane.first > 1) return;
      this.#order.push(lane);
      if (this.#order.length === 1) this.#defer(this.#wake);
    });
  }

  readonly #wake = (): void => {
    const lane = this.#order.splice(this.#choose(), 1)[0]!;
    this.#passed = lane.kind === 'chores' ? 0 : this.#passed + 1;
    this.#erasures = lane.kind === 'erasures' ? this.#erasures + 1 : 0;
    const resolve = lane.waiting[lane.first++]!;
    // The queue may never be empty: resumed entries must not pile up.
    if (lane.first === goneMax || lane.first === lane.waiting.length) {
      lane.waiting = lane.waiting.slice(lane.first);
      lane.first = 0;
    }
    if (lane.waiting.length > 0) this.#order.push(lane);
    if (this.#order.length > 0) this.#defer(this.#wake);
    // The task resumes after this callback returns.
    resolve();
  };

  /** The place of the lane whose turn it is. */
  #choose(): number {
    const order = this.#order;
    const erasures = this.#erasures < ERASURE_TURNS ? order.findIndex(({ kind }) => kind === 'erasures') : -1;
    if (erasures >= 0) return erasures;
    const isDue = ({ kind }: Lane): boolean =>
      kind === 'erasures' ? false : kind !== 'chores' || this.#passed >= CHORE_ROUNDS - 1;
    const due = order.findIndex(isDue);
    return due >= 0
      ? due
      : Math.max(
          0,
          order.findIndex(({ kind }) => kind !== 'erasures'),
        );
  }
}

const goneMax = 64;
