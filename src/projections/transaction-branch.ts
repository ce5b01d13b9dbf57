/**
 * The private fork of a branch on which a transaction's writes are decided. It never reaches the log, and only the transaction reads it. Its positions and times are
 * provisional; they begin where those of its basis end.
 */
import { type CommittedEntry, type EntryContext, type EntryDraft, positionsOf } from '../log/entries/entry.ts';
import type { Basis, NextPosition } from '../log/log-store.ts';
import type { AccessPaths } from './access-paths.ts';
import { unknownBranch } from './branches/commands.ts';
import { DraftedTypes } from './catalog/drafted-types.ts';
import type { Command } from './command.ts';
import { decide, type CurrentState } from './decide.ts';
import { type Decision, decideContext, type WriteChecks } from './decision.ts';
import type { TransactionRows } from './rows/scan/transaction-rows.ts';

export class TransactionBranch {
  readonly #committedState: CurrentState;
  readonly #transactionOptions: { readonly tokensMax: number; newKey(): string };
  readonly #draftedTypes: DraftedTypes;
  readonly #transactionRows: TransactionRows;
  readonly #transactionTenant: string | null;
  #nextProvisional: NextPosition;
  #provisionalLeaf = 0;

  /** Throws REL_NOT_FOUND for a name that means no branch to the tenant. */
  constructor(
    committedState: CurrentState,
    transactionOptions: { readonly tokensMax: number; newKey(): string },
    branch: string,
    tenant: string | null,
    { position, instant }: Basis,
  ) {
    const branchFork = committedState.branches.idOf(branch, tenant);
    if (branchFork === undefined) throw unknownBranch(branch);
    this.#committedState = committedState;
    this.#transactionOptions = transactionOptions;
    this.#transactionTenant = tenant;
    this.#draftedTypes = new DraftedTypes(committedState.catalog.catalogOn(branchFork, tenant));
    this.#transactionRows = committedState.rows.privately({ branch: branchFork, tenant }, position);
    this.#nextProvisional = { position, time: instant + 1n };
  }

  /** Where what is decided next begins. */
  get next(): NextPosition {
    return this.#nextProvisional;
  }

  get bytes(): number {
    return this.#transactionRows.bytes;
  }

  /**
   * Decides on the state of this branch, and applies the result, unless this is the last use of the branch (`isLast`). An error
   * refuses the command and leaves the branch unchanged. `reservedKeys` are used for rows that bring none, before any that are made;
   * those that were used are returned.
   */
  write(
    command: Command,
    entry: EntryContext,
    {
      checks,
      keys: reservedKeys = [],
      before: beforeApply,
      isLast = false,
    }: { checks: WriteChecks; keys?: readonly string[]; before?: (decision: Decision) => void; isLast?: boolean },
  ): { readonly decision: Decision; readonly keys: readonly string[] } {
    const usedRowKeys: string[] = [];
    const newKey = (): string => {
      const key = reservedKeys[usedRowKeys.length] ?? this.#transactionOptions.newKey();
      usedRowKeys.push(key);
      return key;
    };
    const { tokensMax } = this.#transactionOptions;
    const decision = decide(
      command,
      this.#stateToDecideOn(),
      decideContext(entry, { newKey, tokensMax }, checks),
      this.#nextProvisional,
    );
    beforeApply?.(decision);
    if (!isLast) this.take(decision.drafts);
    return { decision, keys: usedRowKeys };
  }

  #stateToDecideOn(): CurrentState {
    const {
      branches,
      catalog,
      directory,
      erasures,
      exhibits,
      judgements,
      jobs,
      policies,
      receipts,
      removedKeys,
      retention,
      rows,
      rules,
      tenants,
      views,
    } = this.#committedState;
    const transactionRows = [this.#draftedTypes, this.#transactionRows.tenantRows(this.#draftedTypes)] as const;
    return {
      branches,
      catalog,
      directory,
      erasures,
      exhibits,
      judgements,
      jobs,
      policies,
      receipts,
      removedKeys,
      retention,
      rows,
      rules,
      tenants,
      views,
      own: transactionRows,
    };
  }

  /** Applies drafts decided here, or on another fork of the same basis in the same state. */
  take(drafts: readonly EntryDraft[]): void {
    for (const { context, body } of drafts) {
      const { position, time } = this.#nextProvisional;
      const positionCount = positionsOf(body);
      // Written field by field, in the order of the log's own: a spread makes another hidden class each time, which slows every
      // reader.
      const provisionalEntry: CommittedEntry = {
        context,
        body,
        leaf: this.#provisionalLeaf++,
        position,
        positions: positionCount,
        time,
      };
      if (body.kind === 'type') this.#draftedTypes.add(body.definition);
      this.#transactionRows.apply(provisionalEntry);
      this.#nextProvisional = { position: position + positionCount, time: time + BigInt(positionCount) };
    }
  }

  /** The snapshot of the basis, with what was written here. */
  pathsOver(paths: AccessPaths): AccessPaths {
    const { position, time } = this.#nextProvisional;
    const [catalog, tenant] = [this.#draftedTypes, this.#transactionTenant];
    const rows = this.#transactionRows.reader(catalog, position);
    // Written out, as `takeSnapshot` is.
    return {
      tenant: paths.tenant,
      catalog,
      protection: paths.protection,
      protectionEpoch: paths.protectionEpoch,
      rows,
      pathsOf: (owner) => (owner === tenant ? { ...paths.pathsOf(owner), catalog, rows } : paths.pathsOf(owner)),
      branch: paths.branch,
      branchId: paths.branchId,
      position: paths.position,
      instant: time - 1n,
      removals: paths.removals,
      recalls: paths.recalls,
      embeddings: paths.embeddings,
      erasures: paths.erasures,
      textLanguage: paths.textLanguage,
      searchAt: paths.searchAt,
      views: paths.views,
      judgements: paths.judgements,
      rules: paths.rules,
      isPrivate: true,
    };
  }
}
