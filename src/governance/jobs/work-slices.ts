/** Long work of the store's own in slices: each ends after a moment, and others have their turn before the next. */
import type { Clock } from '../../clock.ts';

const usualSliceMs = 1.5;

interface SlicesOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly yieldTurn: () => Promise<void>;
  readonly sliceMs?: number;
}

export class WorkSlices {
  readonly #sliceClock: Pick<Clock, 'monotonicMs'>;
  readonly #yieldTurn: () => Promise<void>;
  readonly #sliceMs: number;
  #sliceBeganMs: number;

  constructor({ clock, yieldTurn, sliceMs = usualSliceMs }: SlicesOptions) {
    this.#sliceClock = clock;
    this.#yieldTurn = yieldTurn;
    this.#sliceMs = sliceMs;
    this.#sliceBeganMs = clock.monotonicMs();
  }

  isOver(): boolean {
    return this.#sliceClock.monotonicMs() - this.#sliceBeganMs > this.#sliceMs;
  }

  /** Gives others their turn; resolves when the next slice begins. */
  async next(): Promise<void> {
    await this.#yieldTurn();
    this.#sliceBeganMs = this.#sliceClock.monotonicMs();
  }

  /** Ends the slice where it is over. */
  async turn(): Promise<void> {
    if (this.isOver()) await this.next();
  }

  async finish<T>(workSteps: Generator<undefined, T, void>): Promise<T> {
    for (;;) {
      const workStep = workSteps.next();
      if (workStep.done === true) return workStep.value;
      if (this.isOver()) await this.next();
    }
  }
}
