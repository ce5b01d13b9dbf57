/**
 * The queries of a MERGE, one for each clause that writes: its rows, on one snapshot, without those that a clause before it takes.
 */
import type { Expression, ProjectionItem, Query, Source } from '../syntax/statement.ts';
import type { MergeClause, MergeStatement } from '../syntax/write-statement.ts';
import { both, item, keyOf, nullOf, ownPath, selectOf, tableOf } from './write-queries.ts';

/** WHEN MATCHED: the key of each row, then what it sets. WHEN NOT MATCHED: the values of each row. */
export function clauseRows(statement: MergeStatement, clause: MergeClause, path: string | null): Query {
  const { target, source, with: commonTables, nullSlot, location } = statement;
  const isClauseTaken = isTakenByClause(statement, clause);
  if (clause.matched) {
    const mergeSet = clause.do === 'update' ? clause.set : [];
    const clauseProjection = [keyOf(target), ...mergeSet.map(({ value }, i) => item(value, `\0set ${i}`))];
    const clauseCondition = both(ownPath(target, nullSlot, path), isClauseTaken);
    return selectOf(
      { projection: clauseProjection, from: metRowsSource(statement), where: clauseCondition },
      commonTables,
      location,
    );
  }
  // The target is read within EXISTS: its columns have no value here, and the source may have columns of the same names.
  const metProjection: ProjectionItem[] = [item(nullOf(statement), '\0met')];
  const where = both(statement.on, ownPath(target, nullSlot, path));
  const metQueryOfClause = selectOf({ projection: metProjection, from: tableOf(target), where }, [], location);
  const isMet: Expression = { kind: 'exists', query: metQueryOfClause, location };
  const isUnmet: Expression = { kind: 'not', operand: isMet, location };
  const insertedValues = clause.do === 'insert' ? clause.values : [];
  const projection = insertedValues.map((value, i) => item(value, `\0value ${i}`));
  return selectOf({ projection, from: source, where: both(isUnmet, isClauseTaken) }, commonTables, location);
}

/** Source and target side by side: where ON names a column that both have, this says so. */
export function metQuery(statement: MergeStatement): Query {
  const { with: common, location } = statement;
  return selectOf(
    { projection: [item(nullOf(statement), '\0met')], from: metRowsSource(statement), where: null },
    common,
    location,
  );
}

function metRowsSource({ target, source, on, location }: MergeStatement): Source {
  return { kind: 'join', type: 'inner', left: tableOf(target), right: source, on, using: null, location };
}

/** Conditions are asked in their order, and none behind the first that holds. */
function isTakenByClause(statement: MergeStatement, clause: MergeClause): Expression {
  const truthOf = (is: boolean): Expression => ({
    kind: 'is-null',
    operand: nullOf(statement),
    negated: !is,
    location: clause.location,
  });
  const earlierClauses = statement.clauses
    .slice(0, statement.clauses.indexOf(clause))
    .filter(({ matched }) => matched === clause.matched);
  // oxlint-disable no-thenable -- the word of the language; nobody awaits a branch
  const clauseBranches = [
    ...earlierClauses.map(({ when }) => ({ when: when ?? truthOf(true), then: truthOf(false) })),
    ...(clause.when === null ? [] : [{ when: clause.when, then: truthOf(true) }]),
  ];
  // oxlint-enable no-thenable
  if (clauseBranches.length === 0) return truthOf(true);
  const clauseDefault = truthOf(clause.when === null);
  return {
    kind: 'case',
    operand: null,
    branches: clauseBranches,
    otherwise: clauseDefault,
    isTest: true,
    location: clause.location,
  };
}
