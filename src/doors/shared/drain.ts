/** The draining of a door: it refuses new work while its listeners stay open, so that clients get an answer. */
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';

export class Drain {
  readonly #drainClock: Pick<Clock, 'sleep' | 'monotonicMs'>;
  readonly #drainLimitMs: number;
  #drainBegunMs: number | null = null;

  constructor(drainClock: Pick<Clock, 'sleep' | 'monotonicMs'>, drainMs: number) {
    this.#drainClock = drainClock;
    this.#drainLimitMs = drainMs;
  }

  get hasBegun(): boolean {
    return this.#drainBegunMs !== null;
  }

  begin(): void {
    this.#drainBegunMs ??= this.#drainClock.monotonicMs();
  }

  /** Resolves when the drain time is over, or the awaited work is. */
  end(drainOver: AbortSignal): Promise<void> {
    const drainedMs = this.#drainClock.monotonicMs() - (this.#drainBegunMs ?? 0);
    return this.#drainClock.sleep(Math.max(0, this.#drainLimitMs - drainedMs), drainOver);
  }
}

export const shuttingDown = (): ServiceError =>
  new ServiceError('REL_UNAVAILABLE', 'the server is shutting down: connect again later', { retryAfterSecs: 1 });
