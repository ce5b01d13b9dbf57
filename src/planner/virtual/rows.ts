/** Rows of the relations that nobody stores, made of what one caller sees: a type that is hidden from it is in none of them. */
import { assert } from '../../errors.ts';
import type { BranchView, GovernedSnapshot } from '../../governance/gate-contract.ts';
import type { Cell } from '../../log/values/value.ts';
import type { VirtualColumn } from '../logical-plan.ts';
import { cellOf } from './cells.ts';
import { factsOf, type ViewColumns } from './facts.ts';
import { CatalogueNames, owner } from './names.ts';
import { relations } from './relations.ts';
import type { Session } from './session.ts';

export interface VirtualRequest {
  readonly session: Session | undefined;
  readonly snapshot: GovernedSnapshot;
  readonly branches: readonly BranchView[];
  readonly columnsOf: ViewColumns;
}

/** For who asks through a door without users and databases. */
const nobody: Session = {
  user: owner.name,
  database: owner.name,
  process: 0,
  variables: { all: () => [], instants: 'timestamptz' },
};

export function virtualRows({
  session,
  snapshot,
  branches,
  columnsOf,
}: VirtualRequest): (relation: string, columns: readonly VirtualColumn[]) => Iterable<readonly Cell[]> {
  const facts = factsOf(session ?? nobody, snapshot, branches, columnsOf);
  const names = new CatalogueNames(facts);
  return function* (path: string, columns: readonly VirtualColumn[]): Iterable<readonly Cell[]> {
    const relation = relations.get(path);
    assert(relation, 'a plan reads relations that there are');
    for (const row of relation.rows(facts)) yield columns.map(({ place, wire }) => cellOf(row[place]!, wire, names));
  };
}
