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
  readonly #parts: RedactionChoreDependencies;

  constructor(parts: RedactionChoreDependencies) {
    this.#parts = parts;
  }

  /** Until the signal aborts, once a minute. */
  async run(signal: AbortSignal): Promise<void> {
    await onceAMinute(this.#parts.clock, signal, (until) => this.round(until));
  }

  async round(signal: AbortSignal | null = null): Promise<void> {
    const { log, redactions, yieldTurn, onRemoved } = this.#parts;
    const first = redactions.next();
    for (let next = first; next && signal?.aborted !== true; next = redactions.next()) {
      await log.redact(next.positions, yieldTurn, next.through);
    }
    if (first && signal?.aborted !== true) await onRemoved?.();
  }
}
