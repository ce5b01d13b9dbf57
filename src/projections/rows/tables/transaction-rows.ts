/** Rows written over those of a branch for one reader alone. They never reach the log, and end with their reader. */
import { type CommittedEntry, positionsOf, scopeOfName } from '../../../log/entries/entry.ts';
import type { ForkedTimeline } from '../../../log/values/forked-timeline.ts';
import type { CatalogReader, RowReader } from '../../access-paths.ts';
import { subjectProperty } from '../../catalog/subject-property.ts';
import { SnapshotRows, type SharedRows } from '../scan/snapshot-rows.ts';
import { TenantRows } from './tenant-rows.ts';
import type { BranchLayer } from './branch-layer.ts';

interface TransactionRowsDependencies extends SharedRows {
  readonly layer: BranchLayer;
  readonly tenant: string | null;
  readonly timeline: ForkedTimeline;
}

export class TransactionRows {
  readonly #parts: TransactionRowsDependencies;

  constructor(parts: TransactionRowsDependencies) {
    this.#parts = parts;
  }

  /** Rows below a position, its own included. */
  reader(catalog: CatalogReader, basis: number): RowReader {
    const { layer, tenant } = this.#parts;
    return new SnapshotRows(this.#parts, layer, { tenant, catalog }, basis, catalog);
  }

  /** The rows of the branch, for decide functions. */
  tenantRows(catalog: CatalogReader): TenantRows {
    const { layer, tenant, scopes, timeline } = this.#parts;
    return new TenantRows(layer, tenant, scopes, catalog, timeline, (basis) => this.reader(catalog, basis));
  }

  /** Takes an entry with rows or a type, at a position of its own. */
  apply(entry: CommittedEntry): void {
    const { layer, scopes, timeline } = this.#parts;
    const { body, context, position, time } = entry;
    timeline.append(position, time, positionsOf(body));
    if (body.kind === 'rows') layer.append(entry, body, scopes.encode(context.path));
    if (body.kind === 'type') layer.define(scopeOfName(entry, body), body.definition, subjectProperty(body.definition), false);
  }

  get bytes(): number {
    return this.#parts.layer.bytes;
  }
}
