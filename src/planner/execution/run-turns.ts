/**
 * Turns of the event loop that statements take while they are planned and run, and the time that they may take: in the foreground,
 * where a caller waits, or in the background, where others go first.
 */
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import { type Result, run, type RunRequest, type Scheduler } from './executor.ts';
import { TurnQueue } from './turn-queue.ts';

/** Work of one statement between two turns of others, where it can be cut. */
export const sliceMs = 1.5;
/** The same in the background: a caller who asks meanwhile waits for it. */
const backgroundSliceMs = 0.3;

export interface RunTurnsOptions {
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly resultRowsMax: number;
  /** Gives other work a turn; absent: a queue of its own. */
  readonly yieldTurn: (() => Promise<void>) | undefined;
  readonly yieldBackground: (() => Promise<void>) | undefined;
}

export class RunTurns {
  readonly foreground: Scheduler;
  readonly #background: Scheduler;
  readonly #options: RunTurnsOptions;

  constructor(options: RunTurnsOptions) {
    const queue = new TurnQueue();
    this.#options = options;
    this.foreground = { yield: options.yieldTurn ?? (() => queue.next()) };
    this.#background = { yield: options.yieldBackground ?? this.foreground.yield };
  }

  schedulerOf(inBackground: boolean): Scheduler {
    return inBackground ? this.#background : this.foreground;
  }

  /** Yields a turn at each call: REL_CANCELLED once the caller is gone, REL_TIMEOUT once its time is over. */
  limited(signal?: AbortSignal): () => Promise<void> {
    const { clock, timeoutMs } = this.#options;
    const startedMs = clock.monotonicMs();
    return async () => {
      await this.foreground.yield();
      if (signal?.aborted) throw new ServiceError('REL_CANCELLED', 'the caller went away');
      if (clock.monotonicMs() - startedMs > timeoutMs)
        throw new ServiceError('REL_TIMEOUT', `the query ran longer than ${timeoutMs} ms`);
    };
  }

  /** Yields turns while a statement is planned, once a slice is over: a short text may take long to plan. */
  planning(isLong: boolean, signal: AbortSignal | undefined): () => Promise<void> {
    const { clock } = this.#options;
    const yieldTurn = this.limited(signal);
    let startedMs = clock.monotonicMs();
    return async () => {
      if (!isLong && clock.monotonicMs() - startedMs < sliceMs) return;
      await yieldTurn();
      startedMs = clock.monotonicMs();
    };
  }

  /** Runs a plan. Its job, where it is listed as one, ends with it. */
  async run(request: RunRequest, inBackground: boolean): Promise<Result> {
    const { clock, resultRowsMax } = this.#options;
    const { longWork } = request.execution;
    const timeoutMs = inBackground ? Number.POSITIVE_INFINITY : this.#options.timeoutMs;
    const slice = inBackground ? backgroundSliceMs : sliceMs;
    const scheduler = this.schedulerOf(inBackground);
    try {
      const result = await run({ clock, scheduler, timeoutMs, resultRowsMax, sliceMs: slice }, request);
      await longWork?.finish();
      return result;
    } catch (error) {
      throw longWork === null ? error : await longWork.finish(error);
    }
  }
}
