/**
 * The queries of a MERGE, one for each clause that writes: its rows, on one snapshot, without those that a clause before it takes.
 */
import type { Expression, ProjectionItem, Query, Source } from '../syntax/statement.ts';
import type { MergeClause, MergeStatement } from '../syntax/write-statement.ts';
import { both, item, keyOf, nullOf, ownPath, selectOf, tableOf } from './write-queries.ts';

/** WHEN MATCHED: the key of each row, then what it sets. WHEN NOT MATCHED: the values of each row. */
export function clauseRows(statement: MergeStatement, clause: MergeClause, path: string | null): Query {
  const { target, source, with: common, nullSlot, location } = statement;
  const isTaken = takes(statement, clause);
  if (clause.matched) {
    const set = clause.do === 'update' ? clause.set : [];
    const projection = [keyOf(target), ...set.map(({ value }, i) => item(value, `\0set ${i}`))];
    const where = both(ownPath(target, nullSlot, path), isTaken);
    return selectOf({ projection, from: metRows(statement), where }, common, location);
  }
  // The target is read within EXISTS: its columns have no value here, and the source may have columns of the same names.
  const met: ProjectionItem[] = [item(nullOf(statement), '\0met')];
  const where = both(statement.on, ownPath(target, nullSlot, path));
  const query = selectOf({ projection: met, from: tableOf(target), where }, [], location);
  const isMet: Expression = { kind: 'exists', query, location };
  const isUnmet: Expression = { kind: 'not', operand: isMet, location };
  const values = clause.do === 'insert' ? clause.values : [];
  const projection = values.map((value, i) => item(value, `\0value ${i}`));
  return selectOf({ projection, from: source, where: both(isUnmet, isTaken) }, common, location);
}

/** Source and target side by side: where ON names a column that both have, this says so. */
export function metQuery(statement: MergeStatement): Query {
  const { with: common, location } = statement;
  return selectOf({ projection: [item(nullOf(statement), '\0met')], from: metRows(statement), where: null }, common, location);
}

function metRows({ target, source, on, location }: MergeStatement): Source {
  return { kind: 'join', type: 'inner', left: tableOf(target), right: source, on, using: null, location };
}

/** Conditions are asked in their order, and none behind the first that holds. */
function takes(statement: MergeStatement, clause: MergeClause): Expression {
  const truth = (is: boolean): Expression => ({
    kind: 'is-null',
    operand: nullOf(statement),
    negated: !is,
    location: clause.location,
  });
  const before = statement.clauses
    .slice(0, statement.clauses.indexOf(clause))
    .filter(({ matched }) => matched === clause.matched);
  // oxlint-disable no-thenable -- the word of the language; nobody awaits a branch
  const branches = [
    ...before.map(({ when }) => ({ when: when ?? truth(true), then: truth(false) })),
    ...(clause.when === null ? [] : [{ when: clause.when, then: truth(true) }]),
  ];
  // oxlint-enable no-thenable
  if (branches.length === 0) return truth(true);
  const otherwise = truth(clause.when === null);
  return { kind: 'case', operand: null, branches, otherwise, isTest: true, location: clause.location };
}
