/**
 * The shared part of all standing queries over one type, branch and organisation path: the notice that rows changed, throttled,
 * and the newest change set, read from storage once for all of them.
 */
import type { Clock } from '../../../clock.ts';
import type { ChangeSet } from './change-set.ts';
import type { Subscription } from './subscription.ts';

export class Feed {
  readonly subscriptions = new Set<Subscription>();
  /** Rises with each round of news. */
  round = 0;
  /** Read in the round of this number. */
  latest: { readonly round: number; readonly changes: ChangeSet } | null = null;
  /** Pending while one subscription reads the next change set; the others wait for it. */
  reading: Promise<void> | null = null;
  readonly #feedClock: Clock;
  readonly #roundGapMs: () => number;
  readonly #roundWaiters = new Set<() => void>();
  #isRoundScheduled = false;
  #lastFeedRoundMs = Number.NEGATIVE_INFINITY;

  /** `gapMs` is how long rounds are apart at least. */
  constructor(clock: Clock, gapMs: () => number) {
    this.#feedClock = clock;
    this.#roundGapMs = gapMs;
  }

  /** Rows became visible. Changes made before the round begins are part of it. */
  notify(): void {
    if (this.#isRoundScheduled) return;
    const untilRoundMs = this.#lastFeedRoundMs + this.#roundGapMs() - this.#feedClock.monotonicMs();
    if (untilRoundMs <= 0) return this.#beginRound();
    this.#isRoundScheduled = true;
    void this.#feedClock.sleep(untilRoundMs).then(() => {
      this.#isRoundScheduled = false;
      this.#beginRound();
    });
  }

  /** Resolves at the next round after `round`, or when the signal aborts. */
  async nextRound(round: number, signal: AbortSignal): Promise<void> {
    if (this.round > round || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        this.#roundWaiters.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#roundWaiters.add(wake);
      signal.addEventListener('abort', wake, { once: true });
    });
  }

  /** Whether any subscription here may see a row of this organisation path. */
  shows(path: string | null): boolean {
    for (const subscription of this.subscriptions) if (subscription.shows(path)) return true;
    return false;
  }

  /** Columns that some query of the feed reads. */
  columns(): Set<string> {
    const subscribedColumns = new Set<string>();
    for (const { columns } of this.subscriptions) for (const subscribedColumn of columns) subscribedColumns.add(subscribedColumn);
    return subscribedColumns;
  }

  #beginRound(): void {
    this.round++;
    this.#lastFeedRoundMs = this.#feedClock.monotonicMs();
    for (const wakeWaiter of this.#roundWaiters) wakeWaiter();
  }
}
