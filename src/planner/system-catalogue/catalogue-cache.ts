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
const seenCataloguesMax = 64;

export class CatalogueCache {
  readonly #catalogueBytesMax: number;
  /** By key, the one asked for last at the end. */
  readonly #catalogues = new Map<string, CachedCatalogue>();

  constructor(catalogueBytesMax: number) {
    this.#catalogueBytesMax = catalogueBytesMax;
  }

  clear(): void {
    this.#catalogues.clear();
  }

  find(snapshot: GovernedSnapshot, { user, database, variables }: ClientSession, lookupEpoch: number): SeenTables {
    const { instants } = variables;
    const catalogueTypes = snapshot.catalog.types();
    const { views: catalogueViews } = snapshot;
    if (snapshot.isPrivate) return new SeenTables(new CatalogueTables(catalogueTypes, namedViews(snapshot), instants));
    const catalogueKey = JSON.stringify([snapshot.grantKey, snapshot.branchId, user, database, instants, lookupEpoch]);
    let catalogue = this.#catalogues.get(catalogueKey);
    this.#catalogues.delete(catalogueKey);
    if (
      catalogue === undefined ||
      !areSameDefinitions(catalogue.types, catalogueTypes) ||
      !areSameDefinitions(catalogue.views, catalogueViews)
    ) {
      const seenBefore = catalogue?.seen.tables.isWhole === true ? catalogue.seen : null;
      const catalogueTables = new CatalogueTables(catalogueTypes, namedViews(snapshot), instants, seenBefore?.tables ?? null);
      catalogue = { types: catalogueTypes, views: catalogueViews, seen: new SeenTables(catalogueTables, seenBefore) };
    }
    this.#catalogues.set(catalogueKey, catalogue);
    this.#evictOldestCatalogues();
    return catalogue.seen;
  }

  #evictOldestCatalogues(): void {
    let catalogueBytes = 0;
    for (const { seen: seenTables } of this.#catalogues.values()) catalogueBytes += seenTables.bytes;
    for (const [catalogueKey, { seen }] of this.#catalogues) {
      if (catalogueBytes <= this.#catalogueBytesMax && this.#catalogues.size <= seenCataloguesMax) return;
      this.#catalogues.delete(catalogueKey);
      catalogueBytes -= seen.bytes;
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
  readonly #relationRows = new Map<string, RelationRows>();
  /** Rows as they were before a type or a view changed, of relations that nobody has read since. */
  readonly #relationRowsBefore: Map<string, RelationRows>;

  constructor(tables: CatalogueTables, seenBefore: SeenTables | null = null) {
    this.tables = tables;
    this.#relationRowsBefore = new Map(
      seenBefore === null ? [] : [...seenBefore.#relationRowsBefore, ...seenBefore.#relationRows],
    );
  }

  get bytes(): number {
    let catalogueBytes = this.tables.bytes;
    for (const relationRows of [...this.#relationRows.values(), ...this.#relationRowsBefore.values()])
      catalogueBytes += relationRows.bytes;
    return catalogueBytes;
  }

  rowsOf(relation: Relation): RelationRows {
    const relationPath = `${relation.schema}.${relation.name}`;
    const knownRows = this.#relationRows.get(relationPath);
    if (knownRows) return knownRows;
    const relationRows = new RelationRows(relation, shownRelations, this.#relationRowsBefore.get(relationPath));
    this.#relationRowsBefore.delete(relationPath);
    // Rows that are about no table may tell of the session.
    const { ofTable, ofColumns } = relation.maker ?? {};
    if (ofTable || ofColumns) this.#relationRows.set(relationPath, relationRows);
    return relationRows;
  }
}

function areSameDefinitions<T>(definitions: readonly T[], otherDefinitions: readonly T[]): boolean {
  return (
    definitions === otherDefinitions ||
    (definitions.length === otherDefinitions.length && definitions.every((definition, i) => definition === otherDefinitions[i]))
  );
}
