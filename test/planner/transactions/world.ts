/** Transactions over a whole store without doors, statement by statement. */
import { ServiceError } from '../../../src/errors.ts';
import type { Caller } from '../../../src/governance/caller.ts';
import type { Action, Invocation, Transaction } from '../../../src/governance/gate-contract.ts';
import type { Executed } from '../../../src/planner/planner-contract.ts';
import type { Literal } from '../../../src/planner/syntax/statement.ts';
import type { Outcome } from '../../../src/projections/command.ts';
import { analyst, type InputRow, type Row, rowsOf, type TestStore } from '../../harness.ts';

export const ann: Caller = { ...analyst, principal: 'ann', tenant: 'acme', path: 'acme' };
export const bob: Caller = { ...ann, principal: 'bob' };

export class Teller {
  readonly store: TestStore;
  readonly caller: Caller;
  readonly transaction: Transaction;

  constructor(store: TestStore, caller = ann, after: Transaction | string | null = null) {
    this.store = store;
    this.caller = caller;
    this.transaction = store.service.gate.begin(caller, after);
  }

  /** The next one of the same client. */
  next(): Teller {
    return new Teller(this.store, this.caller, this.transaction);
  }

  invoke<T>(action: Action, run: (invocation: Invocation) => Promise<T>): Promise<T> {
    const { caller, transaction } = this;
    return this.store.service.gate.invoke(caller, { action, purpose: null, correlationId: 'test', transaction }, run);
  }

  run(sql: string, ...parameters: readonly Literal[]): Promise<Executed> {
    return this.invoke('query', (invocation) => this.store.service.planner.execute(invocation, { sql, parameters }));
  }

  async rows(sql: string, ...parameters: readonly Literal[]): Promise<Row[]> {
    return rowsOf((await this.run(sql, ...parameters)).answer);
  }

  put(type: string, rows: readonly InputRow[]): Promise<Outcome> {
    return this.store.put(type, rows, this.caller, (run) => this.invoke('ingest', run));
  }

  commit(): Promise<Outcome | null> {
    return this.invoke('ingest', (invocation) => invocation.commit({ sync: true }));
  }
}

/** Code and, where the same may succeed again, that it is stale. */
export async function refused(doing: Promise<unknown>): Promise<string> {
  try {
    await doing;
  } catch (error) {
    if (error instanceof ServiceError) return error.facts.stale ? `${error.code} stale` : error.code;
    throw error;
  }
  throw new Error('was done');
}
