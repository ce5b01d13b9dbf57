/** Transactions that are open, by tenant: how many there may be, and which of them were left. */
import { LRUCache } from 'lru-cache';
import { ServiceError } from '../../errors.ts';
import { tenantOf } from '../../log/values/value.ts';
import type { Clock, Ids } from '../../clock.ts';
import type { Basis } from '../../log/log-store.ts';
import type { Caller } from '../caller.ts';
import { isShownTo } from '../jobs/job-runner.ts';
import { QueueTicket, type ConflictQueue } from './conflict-queue.ts';
import { type ForkedState, OpenTransaction, type TransactionBounds } from './transaction.ts';

/** Each remembers a few keys. A size: for a number of them the cache would take its room at once. */
const endedMax = 1_024;

export interface TransactionsBounds extends TransactionBounds {
  readonly openMax: number;
}

export const transactionBounds: TransactionsBounds = { rowsMax: 100_000, bytesMax: 64 * 2 ** 20, idleMs: 60_000, openMax: 1_000 };

interface TransactionsDependencies {
  readonly state: ForkedState;
  readonly basis: () => Basis;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly ids: Pick<Ids, 'next'>;
  readonly line: ConflictQueue;
  /** Time that a statement may take. */
  readonly waitMsMax: number;
  readonly bounds: TransactionsBounds;
}

export class Transactions {
  readonly #parts: TransactionsDependencies;
  readonly #open = new Map<string | null, Set<OpenTransaction>>();
  /** By id, those that met others: their clients may name them when they begin again. */
  readonly #ended = new LRUCache<string, OpenTransaction>({ maxSize: endedMax, sizeCalculation: () => 1 });

  constructor(parts: TransactionsDependencies) {
    this.#parts = parts;
  }

  /**
   * REL_QUEUE_FULL where the caller's tenant has as many as it may. `after`: the one that its client had before, or its id, which may
   * be forgotten by now.
   */
  begin(caller: Caller, last?: OpenTransaction | string): OpenTransaction {
    const { state, basis, clock, ids, line, waitMsMax, bounds } = this.#parts;
    this.sweep();
    const tenant = tenantOf(caller.path);
    let open = this.#open.get(tenant);
    if (open === undefined) this.#open.set(tenant, (open = new Set()));
    if (open.size >= bounds.openMax)
      throw new ServiceError('REL_QUEUE_FULL', `${bounds.openMax} transactions are open: end one of them first`);
    const own = open;
    const after = typeof last === 'string' ? this.#endedOf(last, caller) : last;
    const contended = after !== undefined && tenantOf(after.caller.path) === tenant ? after.contended : null;
    const begun: OpenTransaction = new OpenTransaction(ids.next(), caller, {
      state,
      basis,
      nowMs: () => clock.monotonicMs(),
      bounds,
      ticket: contended && new QueueTicket(line, tenant, contended),
      waitMsMax,
      onEnd: () => {
        own.delete(begun);
        if (begun.met) this.#ended.set(begun.id, begun);
        if (own.size === 0 && this.#open.get(tenant) === own) this.#open.delete(tenant);
      },
    });
    own.add(begun);
    return begun;
  }

  #endedOf(id: string, { principal, path }: Caller): OpenTransaction | undefined {
    const ended = this.#ended.get(id);
    return ended?.caller.principal === principal && ended.caller.path === path ? ended : undefined;
  }

  /** See `GateContract`. */
  find(id: string, caller: Caller): OpenTransaction {
    this.sweep();
    for (const each of this.#open.get(tenantOf(caller.path)) ?? [])
      if (each.id === id && each.caller.principal === caller.principal && each.caller.path === caller.path) return each;
    throw new ServiceError('REL_NOT_FOUND', 'no such transaction');
  }

  /** Ends those that were left alone for too long. */
  sweep(): void {
    for (const transaction of this.all()) transaction.checkIdle();
  }

  /** Transactions of the caller, and of callers that it manages. */
  shownTo(caller: Caller): readonly OpenTransaction[] {
    this.sweep();
    return this.all().filter(({ caller: owner }) => isShownTo(caller, owner));
  }

  all(): readonly OpenTransaction[] {
    return [...this.#open.values()].flatMap((open) => [...open]);
  }
}
