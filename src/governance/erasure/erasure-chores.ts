/**
 * Background work on erasures and schedules: an interrupted erasure continues, and a row whose time is over is removed for good.
 * Work that needs a decision (a remainder of the subject; a hold) waits.
 */
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import type { Retention } from '../../projections/retention/projection.ts';
import { tenantlessCaller } from '../caller.ts';
import type { GateContract } from '../gate-contract.ts';
import type { SubjectErasure } from './subject-erasure.ts';
import { onceAMinute } from '../jobs/minute-rounds.ts';

export interface ErasureChoresDependencies {
  readonly gate: Pick<GateContract, 'invoke'>;
  readonly desk: Pick<SubjectErasure, 'resume'>;
  readonly retention: Pick<Retention, 'due'>;
  readonly clock: Clock;
  readonly ids: { next(): string };
}

/** Rows that are removed in one round, at most. */
const dueRetentionsMax = 10_000;
const erasureCaretaker = tenantlessCaller('annals', 'operator', 'internal');

export class ErasureChores {
  readonly #erasureChoreParts: ErasureChoresDependencies;

  constructor(parts: ErasureChoresDependencies) {
    this.#erasureChoreParts = parts;
  }

  /** Until the signal aborts, once a minute. */
  async run(signal: AbortSignal): Promise<void> {
    await onceAMinute(this.#erasureChoreParts.clock, signal, (until) => this.round(until));
  }

  async round(signal: AbortSignal | null = null): Promise<void> {
    await this.#erasureChoreParts.desk.resume();
    await this.#expireRetentions(signal);
  }

  async #expireRetentions(signal: AbortSignal | null): Promise<void> {
    const { gate, retention, clock, ids } = this.#erasureChoreParts;
    const dueRetentions = retention.due(clock.now(), dueRetentionsMax);
    if (dueRetentions.length === 0) return;
    const expiryRequest = { action: 'administer', purpose: null, correlationId: ids.next() } as const;
    await gate.invoke(erasureCaretaker, expiryRequest, async (invocation) => {
      for (const { id } of dueRetentions) {
        if (signal?.aborted) return;
        try {
          await invocation.submit({ kind: 'expire-retention', id });
        } catch (error) {
          // Held, or removed meanwhile: the others are due all the same.
          if (!(error instanceof ServiceError) || (error.kind !== 'conflict' && error.kind !== 'not_found')) throw error;
        }
      }
    });
  }
}
