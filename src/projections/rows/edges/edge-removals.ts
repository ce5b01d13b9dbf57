/** Edges that go for good with their rows: those of every version of a row, whatever ends it named. Pure. */
import type { RemovalBody, TypeDefinition } from '../../../log/entries/entry.ts';
import type { NextPosition } from '../../../log/log-store.ts';
import type { CatalogReader, HoldReader } from '../../access-paths.ts';
import type { WriteChecks } from '../../decision.ts';
import { heldBy } from '../../retention/holds.ts';
import type { TenantRows } from '../tables/tenant-rows.ts';
import { EdgeEnds, type Refusal, refusal } from './edge-ends.ts';
import { removalOf, type SourceSealing } from '../checks/removal-entry.ts';
import { RowCells } from '../cells/row-cells.ts';
import { notPermitted, refusedKeys } from '../checks/row-check.ts';

export interface EdgeRemovalContext {
  readonly path: string | null;
  readonly catalog: CatalogReader;
  readonly rows: TenantRows;
  readonly holds: HoldReader;
  readonly checks: WriteChecks;
  /** Seals the sources of rows made from an edge, as for the rows with which the edges go. */
  readonly sealing: SourceSealing | null;
  readonly at: NextPosition;
}

/** Keys of edges, each with those of the rows that it goes with. */
type EdgeKeys = Map<string, Set<string>>;

export class EdgeRemovals {
  readonly #edgeSourceType: TypeDefinition;
  readonly #context: EdgeRemovalContext;
  /** By link type. */
  readonly #edgeKeysByLink = new Map<string, EdgeKeys>();

  constructor(type: TypeDefinition, edgeContext: EdgeRemovalContext) {
    this.#edgeSourceType = type;
    this.#context = edgeContext;
  }

  /** Edges of a row that stands go with it. Says why they can't; then none of them does. */
  take(removedRowKey: string): Refusal | null {
    const { rows, path, catalog } = this.#context;
    if (this.#edgeSourceType.graphTriggers.length === 0) return null;
    const rowVersions = rows.versions(this.#edgeSourceType.name)!;
    const pathCode = rows.scopes.codeOf(path);
    const edgeEnds = new EdgeEnds(this.#edgeSourceType, new RowCells(this.#edgeSourceType, null, rowVersions), path);
    const edgesByType = new Map<string, Set<string>>();
    for (const version of rowVersions.allVersions(rowVersions.newestOf(pathCode, removedRowKey))) {
      const endsOfVersion = edgeEnds.endsOf(removedRowKey, version);
      if ('code' in endsOfVersion) continue;
      for (const { link, key: edgeKey } of endsOfVersion) {
        const linkVersions = rows.versions(link);
        if (catalog.type(link) === undefined || linkVersions === undefined || linkVersions.newestOf(pathCode, edgeKey) < 0)
          continue;
        edgesByType.set(link, (edgesByType.get(link) ?? new Set()).add(edgeKey));
      }
    }
    for (const [link, edgeKeys] of edgesByType) {
      const edgeRefusal = this.#edgeRefusalOf(catalog.type(link)!, [...edgeKeys]);
      if (edgeRefusal !== null) return edgeRefusal;
    }
    for (const [link, edges] of edgesByType) {
      const rowsByEdge = this.#edgeKeysByLink.get(link) ?? new Map<string, Set<string>>();
      this.#edgeKeysByLink.set(link, rowsByEdge);
      for (const edgeKey of edges) rowsByEdge.set(edgeKey, (rowsByEdge.get(edgeKey) ?? new Set()).add(removedRowKey));
    }
    return null;
  }

  bodies(): RemovalBody[] {
    const { catalog, path, rows, sealing } = this.#context;
    return [...this.#edgeKeysByLink].map(([link, edgeKeys]) =>
      removalOf(catalog.type(link)!, [...edgeKeys.keys()], path, rows, sealing, edgeKeys),
    );
  }

  #edgeRefusalOf(linkType: TypeDefinition, edgeKeys: readonly string[]): Refusal | null {
    const { checks, path, rows, at, holds } = this.#context;
    const linkRefusal = checks.refusalOf?.(linkType.name) ?? null;
    if (linkRefusal !== null)
      return refusal('REL_ACL', `its edge of ${JSON.stringify(linkType.name)} can't be removed: ${linkRefusal.message}`);
    const linkRowTest = checks.rowCheck?.testFor(linkType) ?? null;
    if (
      linkRowTest !== null &&
      (linkRowTest === 'none' || refusedKeys(linkRowTest, linkType.name, edgeKeys, { path, rows, at }, 'all').size > 0)
    ) {
      return refusal('REL_ACL', `its edge of ${JSON.stringify(linkType.name)} can't be removed: ${notPermitted}`);
    }
    const holdIds = holds.holdsOn(linkType.name, removalOf(linkType, edgeKeys, path, rows, null).positions);
    return holdIds.length === 0 ? null : refusal('REL_CONFLICT', `an edge of the row is under legal hold: ${heldBy(holdIds)}`);
  }
}
