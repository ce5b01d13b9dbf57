/** Long work of the store's own in slices: each ends after a moment, and others have their turn before the next. */
import type { Clock } from '../../clock.ts';

const usualMs = 1.5;

interface SlicesOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly yieldTurn: () => Promise<void>;
  readonly sliceMs?: number;
}

export class WorkSlices {
  readonly #clock: Pick<Clock, 'monotonicMs'>;
  readonly #yieldTurn: () => Promise<void>;
  readonly #sliceMs: number;
  #beganMs: number;

  constructor({ clock, yieldTurn, sliceMs = usualMs }: SlicesOptions) {
    this.#clock = clock;
    this.#yieldTurn = yieldTurn;
    this.#sliceMs = sliceMs;
    this.#beganMs = clock.monotonicMs();
  }

  isOver(): boolean {
    return this.#clock.monotonicMs() - this.#beganMs > this.#sliceMs;
  }

  /** Gives others their turn; resolves when the next slice begins. */
  async next(): Promise<void> {
    await this.#yieldTurn();
    this.#beganMs = this.#clock.monotonicMs();
  }

  /** Ends the slice where it is over. */
  async turn(): Promise<void> {
    if (this.isOver()) await this.next();
  }

  async finish<T>(steps: Generator<undefined, T, void>): Promise<T> {
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      if (this.isOver()) await this.next();
    }
  }
}
