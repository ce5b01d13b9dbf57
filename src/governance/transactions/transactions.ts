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
const endedTransactionsMax = 1_024;

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
  readonly #transactionsParts: TransactionsDependencies;
  readonly #openByTenant = new Map<string | null, Set<OpenTransaction>>();
  /** By id, those that met others: their clients may name them when they begin again. */
  readonly #endedTransactions = new LRUCache<string, OpenTransaction>({
    maxSize: endedTransactionsMax,
    sizeCalculation: () => 1,
  });

  constructor(parts: TransactionsDependencies) {
    this.#transactionsParts = parts;
  }

  /**
   * REL_QUEUE_FULL where the caller's tenant has as many as it may. `previousTransaction`: the one that its client had before, or its id, which may
   * be forgotten by now.
   */
  begin(caller: Caller, lastTransaction?: OpenTransaction | string): OpenTransaction {
    const { state, basis, clock, ids, line, waitMsMax, bounds } = this.#transactionsParts;
    this.sweep();
    const tenant = tenantOf(caller.path);
    let openOfTenant = this.#openByTenant.get(tenant);
    if (openOfTenant === undefined) this.#openByTenant.set(tenant, (openOfTenant = new Set()));
    if (openOfTenant.size >= bounds.openMax)
      throw new ServiceError('REL_QUEUE_FULL', `${bounds.openMax} transactions are open: end one of them first`);
    const ownTransactions = openOfTenant;
    const previousTransaction =
      typeof lastTransaction === 'string' ? this.#endedTransactionOf(lastTransaction, caller) : lastTransaction;
    const contendedKeys =
      previousTransaction !== undefined && tenantOf(previousTransaction.caller.path) === tenant
        ? previousTransaction.contended
        : null;
    const begunTransaction: OpenTransaction = new OpenTransaction(ids.next(), caller, {
      state,
      basis,
      nowMs: () => clock.monotonicMs(),
      bounds,
      ticket: contendedKeys && new QueueTicket(line, tenant, contendedKeys),
      waitMsMax,
      onEnd: () => {
        ownTransactions.delete(begunTransaction);
        if (begunTransaction.met) this.#endedTransactions.set(begunTransaction.id, begunTransaction);
        if (ownTransactions.size === 0 && this.#openByTenant.get(tenant) === ownTransactions) this.#openByTenant.delete(tenant);
      },
    });
    ownTransactions.add(begunTransaction);
    return begunTransaction;
  }

  #endedTransactionOf(id: string, { principal, path }: Caller): OpenTransaction | undefined {
    const endedTransaction = this.#endedTransactions.get(id);
    return endedTransaction?.caller.principal === principal && endedTransaction.caller.path === path
      ? endedTransaction
      : undefined;
  }

  /** See `GateContract`. */
  find(id: string, caller: Caller): OpenTransaction {
    this.sweep();
    for (const openTransaction of this.#openByTenant.get(tenantOf(caller.path)) ?? [])
      if (
        openTransaction.id === id &&
        openTransaction.caller.principal === caller.principal &&
        openTransaction.caller.path === caller.path
      )
        return openTransaction;
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
    return [...this.#openByTenant.values()].flatMap((open) => [...open]);
  }
}
