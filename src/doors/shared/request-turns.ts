/** Begins the requests of many connections in turns of the event loop, so that no client's input holds up the others. */
import type { Clock } from '../../clock.ts';

/** Milliseconds of one turn of the event loop in which requests may begin; the last one begun may exceed it. */
const requestTurnMs = 4;
/** Requests begun in one go: their next step runs after all of them, so only then does their time show. */
const requestsInOneGo = 4;

/** Pending work. `work` does the next piece and returns its bytes. */
export interface PendingWork {
  /** Little waits: one request at most. */
  readonly isShort?: boolean;
  work(): number;
}

/**
 * Begins the work of many connections in portions, one per turn of the event loop, so that other work runs in between. Work that
 * arrives while a turn has room begins at once. Short work does not wait behind all that is long: each has every second place.
 */
export class RequestTurns {
  readonly #turnClock: Clock;
  readonly #nextLoopRound: () => Promise<void>;
  readonly #turnBytesMax: number;
  readonly #shortRequests: PendingWork[] = [];
  readonly #longRequests: PendingWork[] = [];
  #isShortNext = true;
  #turnBytesLeft = 0;
  #turnUntilMs = 0;
  #isTurnOpen = false;
  #isTurnRunning = false;

  constructor(turnClock: Clock, nextLoopRound: () => Promise<void>, turnBytesMax = Number.POSITIVE_INFINITY) {
    this.#turnClock = turnClock;
    this.#nextLoopRound = nextLoopRound;
    this.#turnBytesMax = turnBytesMax;
  }

  next(pendingWork: PendingWork): void {
    (pendingWork.isShort === true ? this.#shortRequests : this.#longRequests).push(pendingWork);
    if (!this.#isTurnOpen) this.#openTurn();
    if (!this.#isTurnRunning) this.#runPending();
  }

  /** Resolves with what `turnWork` gives once its turn has come. `turnBytes`: what it counts, for work that goes on behind the promise. */
  run<T>(turnWork: () => T, turnBytes = 0): Promise<T> {
    return new Promise((onWorked, onWorkError) => {
      const countedWork = (): number => {
        try {
          onWorked(turnWork());
        } catch (error) {
          onWorkError(error as Error);
        }
        return turnBytes;
      };
      this.next({ work: countedWork });
    });
  }

  #openTurn(): void {
    this.#isTurnOpen = true;
    this.#turnBytesLeft = this.#turnBytesMax;
    this.#turnUntilMs = this.#turnClock.monotonicMs() + requestTurnMs;
    void this.#nextLoopRound().then(this.#endTurn);
  }

  readonly #endTurn = (): void => {
    this.#isTurnOpen = false;
    if (this.#shortRequests.length + this.#longRequests.length === 0) return;
    this.#openTurn();
    this.#runPending();
  };

  #nextPending(): PendingWork | undefined {
    const isShort = this.#shortRequests.length > 0 && (this.#isShortNext || this.#longRequests.length === 0);
    this.#isShortNext = !isShort;
    return (isShort ? this.#shortRequests : this.#longRequests).shift();
  }

  #runPending(): void {
    this.#isTurnRunning = true;
    try {
      for (let i = 0; i < requestsInOneGo && this.#turnBytesLeft > 0 && this.#turnClock.monotonicMs() <= this.#turnUntilMs; i++)
        this.#turnBytesLeft -= this.#nextPending()?.work() ?? 0;
    } finally {
      this.#isTurnRunning = false;
    }
  }
}
