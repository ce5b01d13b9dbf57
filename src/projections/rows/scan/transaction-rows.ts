/** Rows that a transaction has written over those of its branch. Only the transaction reads them; they never reach the log. */
import { type CommittedEntry, positionsOf, scopeOfName } from '../../../log/entries/entry.ts';
import type { ForkedTimeline } from '../../../log/values/forked-timeline.ts';
import type { CatalogReader, RowReader } from '../../access-paths.ts';
import { subjectProperty } from '../../catalog/subject-property.ts';
import { SnapshotRows, type SharedRows } from './snapshot-rows.ts';
import { TenantRows } from '../tables/tenant-rows.ts';
import type { BranchLayer } from '../tables/branch-layer.ts';

interface TransactionRowsDependencies extends SharedRows {
  readonly layer: BranchLayer;
  readonly tenant: string | null;
  readonly timeline: ForkedTimeline;
}

export class TransactionRows {
  readonly #transactionParts: TransactionRowsDependencies;

  constructor(transactionParts: TransactionRowsDependencies) {
    this.#transactionParts = transactionParts;
  }

  /** Rows below a position, its own included. */
  reader(catalog: CatalogReader, basis: number): RowReader {
    const { layer, tenant } = this.#transactionParts;
    return new SnapshotRows(this.#transactionParts, layer, { tenant, catalog }, basis, catalog);
  }

  /** The rows of the branch, for decide functions. */
  tenantRows(catalog: CatalogReader): TenantRows {
    const { layer, tenant, scopes, timeline } = this.#transactionParts;
    return new TenantRows(layer, tenant, scopes, catalog, timeline, (basis) => this.reader(catalog, basis));
  }

  /** Takes an entry with rows or a type, at a position of its own. */
  apply(transactionEntry: CommittedEntry): void {
    const { layer, scopes, timeline } = this.#transactionParts;
    const { body, context, position, time } = transactionEntry;
    timeline.append(position, time, positionsOf(body));
    if (body.kind === 'rows') layer.append(transactionEntry, body, scopes.encode(context.path));
    if (body.kind === 'type')
      layer.define(scopeOfName(transactionEntry, body), body.definition, subjectProperty(body.definition), false);
  }

  get bytes(): number {
    return this.#transactionParts.layer.bytes;
  }
}
