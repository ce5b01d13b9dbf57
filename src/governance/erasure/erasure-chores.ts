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
const dueMax = 10_000;
const caretaker = tenantlessCaller('annals', 'operator', 'internal');

export class ErasureChores {
  readonly #parts: ErasureChoresDependencies;

  constructor(parts: ErasureChoresDependencies) {
    this.#parts = parts;
  }

  /** Until the signal aborts, once a minute. */
  async run(signal: AbortSignal): Promise<void> {
    await onceAMinute(this.#parts.clock, signal, (until) => this.round(until));
  }

  async round(signal: AbortSignal | null = null): Promise<void> {
    await this.#parts.desk.resume();
    await this.#expire(signal);
  }

  async #expire(signal: AbortSignal | null): Promise<void> {
    const { gate, retention, clock, ids } = this.#parts;
    const due = retention.due(clock.now(), dueMax);
    if (due.length === 0) return;
    const request = { action: 'administer', purpose: null, correlationId: ids.next() } as const;
    await gate.invoke(caretaker, request, async (invocation) => {
      for (const { id } of due) {
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
