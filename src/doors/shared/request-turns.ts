/** Begins the requests of many connections in turns of the event loop, so that no client's input holds up the others. */
import type { Clock } from '../../clock.ts';

/** Milliseconds of one turn of the event loop in which requests may begin; the last one begun may exceed it. */
const turnMs = 4;
/** Requests begun in one go: their next step runs after all of them, so only then does their time show. */
const inOneGo = 4;

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
  readonly #clock: Clock;
  readonly #nextRound: () => Promise<void>;
  readonly #bytesMax: number;
  readonly #short: PendingWork[] = [];
  readonly #long: PendingWork[] = [];
  #shortIsNext = true;
  #left = 0;
  #untilMs = 0;
  #isOpen = false;
  #isRunning = false;

  constructor(clock: Clock, nextRound: () => Promise<void>, bytesMax = Number.POSITIVE_INFINITY) {
    this.#clock = clock;
    this.#nextRound = nextRound;
    this.#bytesMax = bytesMax;
  }

  next(one: PendingWork): void {
    (one.isShort === true ? this.#short : this.#long).push(one);
    if (!this.#isOpen) this.#open();
    if (!this.#isRunning) this.#run();
  }

  /** Resolves with what `work` gives once its turn has come. `bytes`: what it counts, for work that goes on behind the promise. */
  run<T>(work: () => T, bytes = 0): Promise<T> {
    return new Promise((resolve, reject) => {
      const one = (): number => {
        try {
          resolve(work());
        } catch (error) {
          reject(error as Error);
        }
        return bytes;
      };
      this.next({ work: one });
    });
  }

  #open(): void {
    this.#isOpen = true;
    this.#left = this.#bytesMax;
    this.#untilMs = this.#clock.monotonicMs() + turnMs;
    void this.#nextRound().then(this.#end);
  }

  readonly #end = (): void => {
    this.#isOpen = false;
    if (this.#short.length + this.#long.length === 0) return;
    this.#open();
    this.#run();
  };

  #next(): PendingWork | undefined {
    const isShort = this.#short.length > 0 && (this.#shortIsNext || this.#long.length === 0);
    this.#shortIsNext = !isShort;
    return (isShort ? this.#short : this.#long).shift();
  }

  #run(): void {
    this.#isRunning = true;
    try {
      for (let i = 0; i < inOneGo && this.#left > 0 && this.#clock.monotonicMs() <= this.#untilMs; i++)
        this.#left -= this.#next()?.work() ?? 0;
    } finally {
      this.#isRunning = false;
    }
  }
}
