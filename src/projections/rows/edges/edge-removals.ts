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
  readonly #type: TypeDefinition;
  readonly #context: EdgeRemovalContext;
  /** By link type. */
  readonly #keys = new Map<string, EdgeKeys>();

  constructor(type: TypeDefinition, edgeContext: EdgeRemovalContext) {
    this.#type = type;
    this.#context = edgeContext;
  }

  /** Edges of a row that stands go with it. Says why they can't; then none of them does. */
  take(key: string): Refusal | null {
    const { rows, path, catalog } = this.#context;
    if (this.#type.graphTriggers.length === 0) return null;
    const versions = rows.versions(this.#type.name)!;
    const code = rows.scopes.codeOf(path);
    const ends = new EdgeEnds(this.#type, new RowCells(this.#type, null, versions), path);
    const edgesByType = new Map<string, Set<string>>();
    for (const version of versions.allVersions(versions.newestOf(code, key))) {
      const each = ends.endsOf(key, version);
      if ('code' in each) continue;
      for (const { link, key: edge } of each) {
        const links = rows.versions(link);
        if (catalog.type(link) === undefined || links === undefined || links.newestOf(code, edge) < 0) continue;
        edgesByType.set(link, (edgesByType.get(link) ?? new Set()).add(edge));
      }
    }
    for (const [link, edges] of edgesByType) {
      const why = this.#refusalOf(catalog.type(link)!, [...edges]);
      if (why !== null) return why;
    }
    for (const [link, edges] of edgesByType) {
      const known = this.#keys.get(link) ?? new Map<string, Set<string>>();
      this.#keys.set(link, known);
      for (const edge of edges) known.set(edge, (known.get(edge) ?? new Set()).add(key));
    }
    return null;
  }

  bodies(): RemovalBody[] {
    const { catalog, path, rows, sealing } = this.#context;
    return [...this.#keys].map(([link, edges]) => removalOf(catalog.type(link)!, [...edges.keys()], path, rows, sealing, edges));
  }

  #refusalOf(link: TypeDefinition, edges: readonly string[]): Refusal | null {
    const { checks, path, rows, at, holds } = this.#context;
    const why = checks.refusalOf?.(link.name) ?? null;
    if (why !== null) return refusal('REL_ACL', `its edge of ${JSON.stringify(link.name)} can't be removed: ${why.message}`);
    const test = checks.rowCheck?.testFor(link) ?? null;
    if (test !== null && (test === 'none' || refusedKeys(test, link.name, edges, { path, rows, at }, 'all').size > 0)) {
      return refusal('REL_ACL', `its edge of ${JSON.stringify(link.name)} can't be removed: ${notPermitted}`);
    }
    const held = holds.holdsOn(link.name, removalOf(link, edges, path, rows, null).positions);
    return held.length === 0 ? null : refusal('REL_CONFLICT', `an edge of the row is under legal hold: ${heldBy(held)}`);
  }
}
