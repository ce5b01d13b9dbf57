/**
 * Removes rows from the log's files some time after their removal for good hid them: rewriting a file costs the same for one row
 * as for a thousand, so removals of a while share it.
 */
import type { Clock } from '../../clock.ts';
import type { LogStore } from '../../log/log-store.ts';
import type { Redactions } from '../../projections/redactions/projection.ts';
import { onceAMinute } from '../jobs/minute-rounds.ts';

export interface RedactionChoreDependencies {
  readonly log: Pick<LogStore, 'redact'>;
  readonly redactions: Pick<Redactions, 'next'>;
  readonly clock: Clock;
  readonly yieldTurn: () => Promise<void>;
  /** Called when rows were removed for good since the last time. */
  readonly onRemoved?: () => Promise<void>;
}

export class RedactionChore {
  readonly #redactionParts: RedactionChoreDependencies;

  constructor(parts: RedactionChoreDependencies) {
    this.#redactionParts = parts;
  }

  /** Until the signal aborts, once a minute. */
  async run(signal: AbortSignal): Promise<void> {
    await onceAMinute(this.#redactionParts.clock, signal, (until) => this.round(until));
  }

  async round(signal: AbortSignal | null = null): Promise<void> {
    const { log, redactions, yieldTurn, onRemoved } = this.#redactionParts;
    const firstRedaction = redactions.next();
    for (let nextRedaction = firstRedaction; nextRedaction && signal?.aborted !== true; nextRedaction = redactions.next()) {
      await log.redact(nextRedaction.positions, yieldTurn, nextRedaction.through);
    }
    if (firstRedaction && signal?.aborted !== true) await onRemoved?.();
  }
}
