/** Rows of virtual relations, made of the objects that one caller sees: hidden types appear in none of them. */
import { ServiceError } from '../../errors.ts';
import { assert } from '../../errors.ts';
import type { BranchView, GovernedSnapshot } from '../../governance/gate-contract.ts';
import type { Cell } from '../../log/values/value.ts';
import type { Catalogue } from '../expressions/functions/scalar-function.ts';
import type { VirtualRead } from '../logical-plan.ts';
import { cellMaker } from './cells.ts';
import { type CatalogueContents, factsOf, type ViewColumns } from './catalogue-contents.ts';
import type { Draws } from './draws.ts';
import type { FunctionContext } from './functions.ts';
import type { Cells } from './row-maker.ts';
import { CatalogueNames, owner } from './names.ts';
import { type Relation, relations } from './relations.ts';
import type { Session } from './session.ts';
import type { Value } from './types.ts';

export interface VirtualRequest {
  readonly session: Session | undefined;
  readonly snapshot: GovernedSnapshot;
  readonly branches: readonly BranchView[];
  readonly columnsOf: ViewColumns;
  /** Throws where the caller may know nothing of types. */
  readonly check: () => void;
  /** Random numbers for a statement without a session. */
  readonly draws: () => Draws;
}

/** The catalogue as one caller sees it. */
export interface SeenCatalogue extends Catalogue, FunctionContext {
  rows(read: VirtualRead): Iterable<readonly Cell[]>;
}

/** The session of callers through a door without users and databases. */
const nobody: Session = {
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

export function seenCatalogue({ session, snapshot, branches, columnsOf, check, draws }: VirtualRequest): SeenCatalogue {
  const facts = factsOf(session ?? nobody, snapshot, branches, columnsOf, check);
  const names = new CatalogueNames(facts);
  function* rows({ relation: path, columns, among }: VirtualRead): Iterable<readonly Cell[]> {
    check();
    const relation = relations.get(path);
    assert(relation, 'a plan reads relations that there are');
    const makers = columns.map(({ name, place, wire }) => ({ name, other: relation.base[place]!, make: cellMaker(wire, names) }));
    for (const cells of findRows(relation, facts, among) ?? relation.cells(facts))
      yield makers.map(({ name, other, make }) => make(cells[name] ?? other));
  }
  let own = session?.draws;
  return {
    isCatalogue: true,
    facts,
    names,
    rows,
    get draws() {
      return (own ??= draws());
    },
  };
}

/** Finds rows by the first column whose values select them. */
function findRows(relation: Relation, facts: CatalogueContents, among: VirtualRead['among']): Iterable<Cells> | null {
  for (const { column, cells } of among) {
    const values = [...new Set(cells)].map((cell) => (typeof cell === 'bigint' ? Number(cell) : (cell as Value)));
    const known = values.map((value) => relation.findRows(facts, column, value));
    if (known.every((each) => each !== null)) return chain(known);
  }
  return null;
}

function* chain<T>(lists: readonly Iterable<T>[]): Iterable<T> {
  for (const list of lists) yield* list;
}
