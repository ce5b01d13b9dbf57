/** The draining of a door: it refuses new work while its listeners stay open, so that clients get an answer. */
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';

export class Drain {
  readonly #clock: Pick<Clock, 'sleep' | 'monotonicMs'>;
  readonly #drainMs: number;
  #begunMs: number | null = null;

  constructor(clock: Pick<Clock, 'sleep' | 'monotonicMs'>, drainMs: number) {
    this.#clock = clock;
    this.#drainMs = drainMs;
  }

  get hasBegun(): boolean {
    return this.#begunMs !== null;
  }

  begin(): void {
    this.#begunMs ??= this.#clock.monotonicMs();
  }

  /** Resolves when the drain time is over, or the awaited work is. */
  end(over: AbortSignal): Promise<void> {
    const passedMs = this.#clock.monotonicMs() - (this.#begunMs ?? 0);
    return this.#clock.sleep(Math.max(0, this.#drainMs - passedMs), over);
  }
}

export const shuttingDown = (): ServiceError =>
  new ServiceError('REL_UNAVAILABLE', 'the server is shutting down: connect again later', { retryAfterSecs: 1 });
