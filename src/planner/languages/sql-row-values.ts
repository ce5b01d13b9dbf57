/** Takes row values, (a, b), apart: a comparison of rows becomes comparisons of their items. */
import type { Expression, Location, Query, Select } from '../syntax/statement.ts';
import { columnOf, queryOf, selectOf } from './tree-builders.ts';
import type { TokenCursor } from './token-cursor.ts';

type RowExpression = Extract<Expression, { kind: 'row' }>;
type CompareOp = '=' | '!=' | '<' | '<=' | '>' | '>=';

export function isRow(expression: Expression): expression is RowExpression {
  return expression.kind === 'row';
}

/** `=` and `!=` compare item by item; an order follows the first items that differ. */
export function combinedRow(
  sqlCursor: TokenCursor,
  op: CompareOp,
  left: Expression,
  right: Expression,
  location: Location,
): Expression {
  const [leftItems, rightItems] = [rowItems(sqlCursor, left, right), rowItems(sqlCursor, right, left)];
  sqlCursor.repeats = true;
  if (op === '=' || op === '!=') {
    const itemPairs = leftItems.map(
      (leftItem, i): Expression => ({ kind: 'binary', op, left: leftItem, right: rightItems[i]!, location }),
    );
    return chainConditions(op === '=' ? 'and' : 'or', itemPairs, location);
  }
  const strictOp = op.startsWith('<') ? '<' : '>';
  let rowComparison: Expression = { kind: 'binary', op, left: leftItems.at(-1)!, right: rightItems.at(-1)!, location };
  for (let i = leftItems.length - 2; i >= 0; i--) {
    const earlierItem: Expression = { kind: 'binary', op: strictOp, left: leftItems[i]!, right: rightItems[i]!, location };
    const equalItems: Expression = { kind: 'binary', op: '=', left: leftItems[i]!, right: rightItems[i]!, location };
    rowComparison = chainConditions('or', [earlierItem, chainConditions('and', [equalItems, rowComparison], location)], location);
  }
  return rowComparison;
}

/**
 * (a, b) = (SELECT x, y …): a query over the one that is written, so that its row is made once. Its columns have names that no
 * text can say, for those of the row to stay names of the queries around.
 */
export function rowWithQuery(
  sqlCursor: TokenCursor,
  op: CompareOp,
  row: RowExpression,
  { query, location }: { readonly query: Query; readonly location: Location },
): Expression {
  const rowColumns = row.items.map((_, i) => `#${i}`);
  const queryItems = rowColumns.map((name) => columnOf(name, location, rowAlias));
  const comparedRow = combinedRow(sqlCursor, op, row, { kind: 'row', items: queryItems, location }, location);
  const rowQuerySource = { kind: 'subquery', query, alias: rowAlias, columns: rowColumns, location } as const;
  const comparisonProjection: Select['projection'] = [{ kind: 'expression', expression: comparedRow, alias: null, location }];
  return {
    kind: 'scalar-query',
    query: queryOf(selectOf({ projection: comparisonProjection, from: rowQuerySource, where: null, location }), null),
    location,
  };
}

const rowAlias = '#row';

/** Each of its items is NULL, or none is. */
export function rowIsNull(row: RowExpression, negated: boolean, location: Location): Expression {
  const nullTests = row.items.map((operand): Expression => ({ kind: 'is-null', operand, negated, location }));
  return nullTests.length === 0
    ? { kind: 'is-null', operand: row, negated, location }
    : balanceConditions('and', nullTests, location);
}

/** IS DISTINCT FROM of rows, item by item. */
export function distinctRows(
  sqlCursor: TokenCursor,
  comparedRows: { readonly left: Expression; readonly right: Expression; readonly negated: boolean; readonly location: Location },
  distinctItems: (left: Expression, right: Expression) => Expression,
): Expression {
  const { left, right, negated, location } = comparedRows;
  const [leftItems, rightItems] = [rowItems(sqlCursor, left, right), rowItems(sqlCursor, right, left)];
  return balanceConditions(
    negated ? 'and' : 'or',
    leftItems.map((leftItem, i) => distinctItems(leftItem, rightItems[i]!)),
    location,
  );
}

/** Values in lists of rows of one statement: each is a comparison of its own. */
const listedValuesMax = 4_096;
/** Rows that are compared one by one, with nothing ahead that most of them fail. */
const fewListedRows = 16;

/** One more row of a list that rows are sought in. */
export function countListed(sqlCursor: TokenCursor, row: RowExpression): void {
  sqlCursor.listed += row.items.length;
  if (sqlCursor.listed <= listedValuesMax) return;
  throw sqlCursor.error(`lists of rows have at most ${listedValuesMax} values in one statement: join with VALUES`, row.location);
}

/** (a, b) IN ((1, 2), (3, 4)). */
export function equalRows(
  sqlCursor: TokenCursor,
  row: RowExpression,
  items: readonly Expression[],
  location: Location,
): Expression {
  const rowComparisons = items.map((item) => combinedRow(sqlCursor, '=', row, item, location));
  const anyRowEqual = balanceConditions('or', rowComparisons, location);
  if (items.length <= fewListedRows) return anyRowEqual;
  const listedColumns = row.items.map((operand, i) => listedColumn(operand, items as readonly RowExpression[], i, location));
  return chainConditions('and', [...listedColumns.filter((inListColumn) => inListColumn !== null), anyRowEqual], location);
}

/** a IN (1, 3), which is true wherever (a, b) IN ((1, 2), (3, 4)) is, and false only where that is; null where an item is no literal. */
function listedColumn(
  operand: Expression,
  listedRows: readonly RowExpression[],
  itemIndex: number,
  location: Location,
): Expression | null {
  const columnItems = listedRows.map((row) => row.items[itemIndex]!);
  return columnItems.every(({ kind }) => kind === 'literal')
    ? { kind: 'in-list', operand, items: columnItems, negated: false, location }
    : null;
}

function rowItems(sqlCursor: TokenCursor, comparedSide: Expression, otherSide: Expression): readonly Expression[] {
  const rowWidth = isRow(comparedSide) ? comparedSide.items.length : 1;
  const otherWidth = isRow(otherSide) ? otherSide.items.length : 1;
  if (!isRow(comparedSide) || rowWidth !== otherWidth) {
    throw sqlCursor.error(
      `rows of ${rowWidth} and of ${otherWidth} values are compared: both need as many`,
      comparedSide.location,
    );
  }
  return comparedSide.items;
}

function chainConditions(op: 'and' | 'or', chainedConditions: readonly Expression[], location: Location): Expression {
  return chainedConditions.reduce(
    (conditionsSoFar, nextCondition): Expression => ({
      kind: 'binary',
      op,
      left: conditionsSoFar,
      right: nextCondition,
      location,
    }),
  );
}

function balanceConditions(op: 'and' | 'or', balancedConditions: readonly Expression[], location: Location): Expression {
  if (balancedConditions.length === 1) return balancedConditions[0]!;
  const middleCondition = balancedConditions.length >> 1;
  return {
    kind: 'binary',
    op,
    left: balanceConditions(op, balancedConditions.slice(0, middleCondition), location),
    right: balanceConditions(op, balancedConditions.slice(middleCondition), location),
    location,
  };
}
