/** Rows of virtual relations, made of the objects that one caller sees: hidden types appear in none of them. */
import { assert, ServiceError } from '../../errors.ts';
import type { Cell } from '../../log/values/value.ts';
import type { BranchView, GovernedSnapshot } from '../../governance/gate-contract.ts';
import type { Catalogue } from '../expressions/functions/scalar-function.ts';
import type { VirtualRead } from '../logical-plan.ts';
import type { CatalogueCache, SeenTables } from './catalogue-cache.ts';
import { type CatalogueContents, type CatalogueTables, factsOf, type ViewColumns } from './catalogue-contents.ts';
import type { Draws } from './random-draws.ts';
import type { FunctionContext } from './catalogue-functions.ts';
import { CatalogueNames, owner } from './object-names.ts';
import { type PiecesRead, readSelected } from './relation-rows.ts';
import { findRows, mayHave, type Relation, relations } from './relations.ts';
import type { Cells } from './row-maker.ts';
import type { ClientSession } from './client-session.ts';
import type { Value } from './catalogue-types.ts';

export interface VirtualRequest {
  readonly session: ClientSession | undefined;
  readonly snapshot: GovernedSnapshot;
  readonly branches: readonly BranchView[];
  readonly columnsOf: ViewColumns;
  /** Throws where the caller may know nothing of types. */
  readonly check: () => void;
  /** Random numbers for a statement without a session. */
  readonly draws: () => Draws;
  /** Rises when columns of views may be others. */
  readonly lookupEpoch: number;
}

/** The catalogue as one caller sees it. */
export interface SeenCatalogue extends Catalogue, FunctionContext {
  read(read: VirtualRead): PiecesRead;
}

/** The session of callers through a door without users and databases. */
const noSession: ClientSession = {
  user: owner.name,
  database: owner.name,
  process: 0,
  variables: {
    all: () => [],
    instants: 'timestamptz',
    set: (name) => {
      throw new ServiceError('REL_NOT_FOUND', `there is no setting ${JSON.stringify(name.slice(0, 100))}`);
    },
  },
};

export function seenCatalogue(virtualRequest: VirtualRequest, catalogueCache: CatalogueCache): SeenCatalogue {
  const { session = noSession, snapshot, branches, columnsOf, check } = virtualRequest;
  let knownTables: SeenTables | null = null;
  const seenTables = (): SeenTables => (knownTables ??= catalogueCache.find(snapshot, session, virtualRequest.lookupEpoch));
  const tables = (): CatalogueTables => seenTables().tables;
  const catalogueFacts = factsOf({ session, tables, branches, offers: snapshot.offers, viewColumns: columnsOf, check });
  const catalogueNames = new CatalogueNames(catalogueFacts);
  let sessionDraws = session.draws;
  return {
    isCatalogue: true,
    facts: catalogueFacts,
    names: catalogueNames,
    get draws() {
      return (sessionDraws ??= virtualRequest.draws());
    },
    *read({ relation: relationPath, columns, among: relationFilters }) {
      check();
      const readRelation = relations.get(relationPath);
      assert(readRelation, 'a plan reads relations that there are');
      // Looking up a number or a name takes all tables.
      if (relationFilters.length > 0) while (tables().makeSome()) yield;
      const selectedRows = selectRows(readRelation, catalogueFacts, relationFilters);
      if (selectedRows === null) yield* seenTables().rowsOf(readRelation).read(columns, catalogueFacts, catalogueNames);
      else yield* readSelected(readRelation, selectedRows, columns, catalogueFacts, catalogueNames);
    },
  };
}

/** So many values are looked up at most: with more of them, reading what is kept takes less. */
const relationLookupsMax = 128;

/** Finds rows by the column whose values select them, of several the one with the fewest; null: all rows have to be read. */
function selectRows(relation: Relation, facts: CatalogueContents, among: VirtualRead['among']): Iterable<Cells> | null {
  const lists = among.map(({ column, cells }) => ({ column, values: [...new Set(cells)].map(catalogueValueOf) }));
  if (lists.some(({ column, values }) => !mayHave(relation, column, values))) return [];
  for (const { column, values } of lists.sort((a, b) => a.values.length - b.values.length)) {
    if (values.length > relationLookupsMax) return null;
    const known = values.map((value) => findRows(relation, facts, column, value));
    if (known.every((each) => each !== null)) return chainRows(known);
  }
  return null;
}

const catalogueValueOf = (filterCell: Cell): Value =>
  typeof filterCell === 'bigint' ? Number(filterCell) : (filterCell as Value);

function* chainRows<T>(rowLists: readonly Iterable<T>[]): Iterable<T> {
  for (const rowList of rowLists) yield* rowList;
}
