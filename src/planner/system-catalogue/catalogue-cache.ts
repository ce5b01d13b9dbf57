/**
 * Keeps what was derived of the catalogue for the next question of the same view. A view is a grant, an identity of a session, and the
 * very types and views that are seen under them: one caller never sees what only another may see.
 */
import type { ViewRecord } from '../../projections/access-paths.ts';
import type { GovernedSnapshot } from '../../governance/gate-contract.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { namedViews } from '../languages/view-source.ts';
import { CatalogueTables } from './catalogue-contents.ts';
import { RelationRows } from './relation-rows.ts';
import { type Relation, shownRelations } from './relations.ts';
import type { ClientSession } from './client-session.ts';

/** Views that are kept at most, however small they are. */
const viewsMax = 64;

export class CatalogueCache {
  readonly #bytesMax: number;
  /** By key, the one asked for last at the end. */
  readonly #catalogues = new Map<string, CachedCatalogue>();

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  clear(): void {
    this.#catalogues.clear();
  }

  find(snapshot: GovernedSnapshot, { user, database, variables }: ClientSession, lookupEpoch: number): SeenTables {
    const { instants } = variables;
    const types = snapshot.catalog.types();
    const { views } = snapshot;
    if (snapshot.isPrivate) return new SeenTables(new CatalogueTables(types, namedViews(snapshot), instants));
    const key = JSON.stringify([snapshot.grantKey, snapshot.branchId, user, database, instants, lookupEpoch]);
    let catalogue = this.#catalogues.get(key);
    this.#catalogues.delete(key);
    if (catalogue === undefined || !isSame(catalogue.types, types) || !isSame(catalogue.views, views)) {
      const before = catalogue?.seen.tables.isWhole === true ? catalogue.seen : null;
      const tables = new CatalogueTables(types, namedViews(snapshot), instants, before?.tables ?? null);
      catalogue = { types, views, seen: new SeenTables(tables, before) };
    }
    this.#catalogues.set(key, catalogue);
    this.#letGo();
    return catalogue.seen;
  }

  #letGo(): void {
    let bytes = 0;
    for (const { seen } of this.#catalogues.values()) bytes += seen.bytes;
    for (const [key, { seen }] of this.#catalogues) {
      if (bytes <= this.#bytesMax && this.#catalogues.size <= viewsMax) return;
      this.#catalogues.delete(key);
      bytes -= seen.bytes;
    }
  }
}

interface CachedCatalogue {
  readonly types: readonly TypeDefinition[];
  readonly views: readonly ViewRecord[];
  readonly seen: SeenTables;
}

/** Tables that a caller sees, and the rows that tell of them. */
export class SeenTables {
  readonly tables: CatalogueTables;
  readonly #rows = new Map<string, RelationRows>();
  /** Rows as they were before a type or a view changed, of relations that nobody has read since. */
  readonly #before: Map<string, RelationRows>;

  constructor(tables: CatalogueTables, before: SeenTables | null = null) {
    this.tables = tables;
    this.#before = new Map(before === null ? [] : [...before.#before, ...before.#rows]);
  }

  get bytes(): number {
    let bytes = this.tables.bytes;
    for (const rows of [...this.#rows.values(), ...this.#before.values()]) bytes += rows.bytes;
    return bytes;
  }

  rowsOf(relation: Relation): RelationRows {
    const path = `${relation.schema}.${relation.name}`;
    const known = this.#rows.get(path);
    if (known) return known;
    const rows = new RelationRows(relation, shownRelations, this.#before.get(path));
    this.#before.delete(path);
    // Rows that are about no table may tell of the session.
    const { ofTable, ofColumns } = relation.maker ?? {};
    if (ofTable || ofColumns) this.#rows.set(path, rows);
    return rows;
  }
}

function isSame<T>(some: readonly T[], others: readonly T[]): boolean {
  return some === others || (some.length === others.length && some.every((each, i) => each === others[i]));
}
