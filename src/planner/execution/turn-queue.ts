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

interface WorkLane {
  readonly kind: WorkKind;
  waiting: (() => void)[];
  /** Those before it have gone on. */
  first: number;
}

export class TurnQueue {
  readonly #defer: (task: () => void) => void;
  readonly #workLanes = new Map<WorkKind, WorkLane>();
  /** Lanes with waiting tasks, the one whose turn is next first. */
  readonly #laneOrder: WorkLane[] = [];
  /** Turns of others since the last one of a chore. */
  #turnsSinceChores = 0;
  /** Turns that erasures had one after the other. */
  #erasureTurns = 0;

  /** `defer` runs its task in the next round of the event loop. */
  constructor(defer: (task: () => void) => void = (task) => void setImmediate(task)) {
    this.#defer = defer;
  }

  /** Whether work of this kind waits for a turn. */
  waits(kind: WorkKind): boolean {
    const workLane = this.#workLanes.get(kind);
    return workLane !== undefined && workLane.waiting.length > workLane.first;
  }

  /** Resolves when it is the caller's turn. */
  next(kind: WorkKind = 'queries'): Promise<void> {
    return new Promise((resolve) => {
      let workLane = this.#workLanes.get(kind);
      if (!workLane) this.#workLanes.set(kind, (workLane = { kind, waiting: [], first: 0 }));
      workLane.waiting.push(resolve);
      if (workLane.waiting.length - workLane.first > 1) return;
      this.#laneOrder.push(workLane);
      if (this.#laneOrder.length === 1) this.#defer(this.#wakeNextLane);
    });
  }

  readonly #wakeNextLane = (): void => {
    const chosenLane = this.#laneOrder.splice(this.#chooseLane(), 1)[0]!;
    this.#turnsSinceChores = chosenLane.kind === 'chores' ? 0 : this.#turnsSinceChores + 1;
    this.#erasureTurns = chosenLane.kind === 'erasures' ? this.#erasureTurns + 1 : 0;
    const resolveTurn = chosenLane.waiting[chosenLane.first++]!;
    // The queue may never be empty: resumed entries must not pile up.
    if (chosenLane.first === resolvedTurnsMax || chosenLane.first === chosenLane.waiting.length) {
      chosenLane.waiting = chosenLane.waiting.slice(chosenLane.first);
      chosenLane.first = 0;
    }
    if (chosenLane.waiting.length > 0) this.#laneOrder.push(chosenLane);
    if (this.#laneOrder.length > 0) this.#defer(this.#wakeNextLane);
    // The task resumes after this callback returns.
    resolveTurn();
  };

  /** The place of the lane whose turn it is. */
  #chooseLane(): number {
    const laneOrder = this.#laneOrder;
    const erasureLane = this.#erasureTurns < ERASURE_TURNS ? laneOrder.findIndex(({ kind }) => kind === 'erasures') : -1;
    if (erasureLane >= 0) return erasureLane;
    const isDue = ({ kind }: WorkLane): boolean =>
      kind === 'erasures' ? false : kind !== 'chores' || this.#turnsSinceChores >= CHORE_ROUNDS - 1;
    const dueLane = laneOrder.findIndex(isDue);
    return dueLane >= 0
      ? dueLane
      : Math.max(
          0,
          laneOrder.findIndex(({ kind }) => kind !== 'erasures'),
        );
  }
}

const resolvedTurnsMax = 64;
