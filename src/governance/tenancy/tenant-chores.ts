/**
 * Background work on tenants and agreements: an interrupted purge continues, and an agreement whose time is over is recorded as
 * expired. Neither changes what a caller may see: rows of a deleted tenant are out of reach at once, and the clock decides
 * whether an agreement is in force.
 */
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import { isEnded, stateAt } from '../../projections/tenants/agreements.ts';
import type { Tenants } from '../../projections/tenants/projection.ts';
import { tenantlessCaller } from '../caller.ts';
import type { GateContract, Invocation } from '../gate-contract.ts';
import { purgeTenant } from './purge-steps.ts';
import { onceAMinute } from '../jobs/minute-rounds.ts';

export interface TenantChoresDependencies {
  readonly gate: Pick<GateContract, 'invoke'>;
  readonly tenants: Pick<Tenants, 'purging' | 'agreements'>;
  readonly clock: Clock;
  readonly ids: { next(): string };
  readonly yieldTurn: () => Promise<void>;
}

const tenantCaretaker = tenantlessCaller('annals', 'operator', 'internal');

export class TenantChores {
  readonly #tenantChoreParts: TenantChoresDependencies;

  constructor(parts: TenantChoresDependencies) {
    this.#tenantChoreParts = parts;
  }

  /** Until the signal aborts, once a minute. */
  async run(signal: AbortSignal): Promise<void> {
    await onceAMinute(this.#tenantChoreParts.clock, signal, (until) => this.round(until));
  }

  /** A purge that is under way when the signal aborts stops between two of its steps: a drain does not wait for all of it. */
  async round(signal: AbortSignal | null = null): Promise<void> {
    const { tenants, clock, yieldTurn } = this.#tenantChoreParts;
    const nextPurgeStep = async (): Promise<void> => {
      await yieldTurn();
      if (signal?.aborted)
        throw new ServiceError('REL_UNAVAILABLE', 'the service is draining; the purge continues after the next start');
    };
    for (const id of tenants.purging()) await this.#invokeTenantChore((invocation) => purgeTenant(invocation, id, nextPurgeStep));
    const now = clock.now();
    for (const agreement of tenants.agreements()) {
      if (isEnded(agreement) || stateAt(agreement, now) !== 'expired') continue;
      const { id } = agreement;
      await this.#invokeTenantChore((invocation) =>
        invocation.submit({ kind: 'move-agreement', id, to: 'expired', side: 'clock' }),
      );
    }
  }

  #invokeTenantChore<T>(runTenantChore: (invocation: Invocation) => Promise<T>): Promise<T> {
    const choreRequest = { action: 'administer', purpose: null, correlationId: this.#tenantChoreParts.ids.next() } as const;
    return this.#tenantChoreParts.gate.invoke(tenantCaretaker, choreRequest, runTenantChore);
  }
}
