/**
 * A private fork of a branch that never reaches the log: only its owner reads what is decided on it. Its positions and times are
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
import type { TransactionRows } from './rows/tables/transaction-rows.ts';

export class TransactionBranch {
  readonly #state: CurrentState;
  readonly #options: { readonly tokensMax: number; newKey(): string };
  readonly #catalog: DraftedTypes;
  readonly #rows: TransactionRows;
  readonly #tenant: string | null;
  #next: NextPosition;
  #leaf = 0;

  /** Throws REL_NOT_FOUND for a name that means no branch to the tenant. */
  constructor(
    state: CurrentState,
    options: { readonly tokensMax: number; newKey(): string },
    branch: string,
    tenant: string | null,
    { position, instant }: Basis,
  ) {
    const fork = state.branches.idOf(branch, tenant);
    if (fork === undefined) throw unknownBranch(branch);
    this.#state = state;
    this.#options = options;
    this.#tenant = tenant;
    this.#catalog = new DraftedTypes(state.catalog.catalogOn(fork, tenant));
    this.#rows = state.rows.privately({ branch: fork, tenant }, position);
    this.#next = { position, time: instant + 1n };
  }

  /** Where what is decided next begins. */
  get next(): NextPosition {
    return this.#next;
  }

  get bytes(): number {
    return this.#rows.bytes;
  }

  /**
   * Decides on the state of this branch, and applies the result, unless this is the last use of the branch (`isLast`). An error
   * refuses the command and leaves the branch unchanged. `keys` are used for rows that bring none, before any that are made;
   * those that were used are returned.
   */
  write(
    command: Command,
    entry: EntryContext,
    {
      checks,
      keys = [],
      before,
      isLast = false,
    }: { checks: WriteChecks; keys?: readonly string[]; before?: (decision: Decision) => void; isLast?: boolean },
  ): { readonly decision: Decision; readonly keys: readonly string[] } {
    const used: string[] = [];
    const newKey = (): string => {
      const key = keys[used.length] ?? this.#options.newKey();
      used.push(key);
      return key;
    };
    const { tokensMax } = this.#options;
    const decision = decide(command, this.#deciding(), decideContext(entry, { newKey, tokensMax }, checks), this.#next);
    before?.(decision);
    if (!isLast) this.take(decision.drafts);
    return { decision, keys: used };
  }

  #deciding(): CurrentState {
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
    } = this.#state;
    const own = [this.#catalog, this.#rows.tenantRows(this.#catalog)] as const;
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
      own,
    };
  }

  /** Applies drafts decided here, or on another fork of the same basis in the same state. */
  take(drafts: readonly EntryDraft[]): void {
    for (const { context, body } of drafts) {
      const { position, time } = this.#next;
      const positions = positionsOf(body);
      // Written field by field, in the order of the log's own: a spread makes another hidden class each time, which slows every
      // reader.
      const entry: CommittedEntry = { context, body, leaf: this.#leaf++, position, positions, time };
      if (body.kind === 'type') this.#catalog.add(body.definition);
      this.#rows.apply(entry);
      this.#next = { position: position + positions, time: time + BigInt(positions) };
    }
  }

  /** The snapshot of the basis, with what was written here. */
  pathsOver(paths: AccessPaths): AccessPaths {
    const { position, time } = this.#next;
    const [catalog, tenant] = [this.#catalog, this.#tenant];
    const rows = this.#rows.reader(catalog, position);
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
