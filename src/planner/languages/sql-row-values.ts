/** Takes row values, (a, b), apart: a comparison of rows becomes comparisons of their items. */
import type { Expression, Location, Query, Select } from '../syntax/statement.ts';
import { columnOf, queryOf, selectOf } from './tree-builders.ts';
import type { TokenCursor } from './token-cursor.ts';

type Row = Extract<Expression, { kind: 'row' }>;
type CompareOp = '=' | '!=' | '<' | '<=' | '>' | '>=';

export function isRow(expression: Expression): expression is Row {
  return expression.kind === 'row';
}

/** `=` and `!=` compare item by item; an order follows the first items that differ. */
export function combinedRow(
  cursor: TokenCursor,
  op: CompareOp,
  left: Expression,
  right: Expression,
  location: Location,
): Expression {
  const [a, b] = [itemsOf(cursor, left, right), itemsOf(cursor, right, left)];
  cursor.repeats = true;
  if (op === '=' || op === '!=') {
    const pairs = a.map((item, i): Expression => ({ kind: 'binary', op, left: item, right: b[i]!, location }));
    return chain(op === '=' ? 'and' : 'or', pairs, location);
  }
  const strict = op.startsWith('<') ? '<' : '>';
  let whole: Expression = { kind: 'binary', op, left: a.at(-1)!, right: b.at(-1)!, location };
  for (let i = a.length - 2; i >= 0; i--) {
    const before: Expression = { kind: 'binary', op: strict, left: a[i]!, right: b[i]!, location };
    const equal: Expression = { kind: 'binary', op: '=', left: a[i]!, right: b[i]!, location };
    whole = chain('or', [before, chain('and', [equal, whole], location)], location);
  }
  return whole;
}

/**
 * (a, b) = (SELECT x, y …): a query over the one that is written, so that its row is made once. Its columns have names that no
 * text can say, for those of the row to stay names of the queries around.
 */
export function rowWithQuery(
  cursor: TokenCursor,
  op: CompareOp,
  row: Row,
  { query, location }: { readonly query: Query; readonly location: Location },
): Expression {
  const columns = row.items.map((_, i) => `#${i}`);
  const items = columns.map((name) => columnOf(name, location, rowName));
  const compared = combinedRow(cursor, op, row, { kind: 'row', items, location }, location);
  const from = { kind: 'subquery', query, alias: rowName, columns, location } as const;
  const projection: Select['projection'] = [{ kind: 'expression', expression: compared, alias: null, location }];
  return { kind: 'scalar-query', query: queryOf(selectOf({ projection, from, where: null, location }), null), location };
}

const rowName = '#row';

/** Each of its items is NULL, or none is. */
export function rowIsNull(row: Row, negated: boolean, location: Location): Expression {
  const tests = row.items.map((operand): Expression => ({ kind: 'is-null', operand, negated, location }));
  return tests.length === 0 ? { kind: 'is-null', operand: row, negated, location } : balancedTree('and', tests, location);
}

/** IS DISTINCT FROM of rows, item by item. */
export function distinctRows(
  cursor: TokenCursor,
  compared: { readonly left: Expression; readonly right: Expression; readonly negated: boolean; readonly location: Location },
  distinct: (left: Expression, right: Expression) => Expression,
): Expression {
  const { left, right, negated, location } = compared;
  const [a, b] = [itemsOf(cursor, left, right), itemsOf(cursor, right, left)];
  return balancedTree(
    negated ? 'and' : 'or',
    a.map((item, i) => distinct(item, b[i]!)),
    location,
  );
}

/** Values in lists of rows of one statement: each is a comparison of its own. */
const listedMax = 4_096;
/** Rows that are compared one by one, with nothing ahead that most of them fail. */
const fewRows = 16;

/** One more row of a list that rows are sought in. */
export function countListed(cursor: TokenCursor, row: Row): void {
  cursor.listed += row.items.length;
  if (cursor.listed <= listedMax) return;
  throw cursor.error(`lists of rows have at most ${listedMax} values in one statement: join with VALUES`, row.location);
}

/** (a, b) IN ((1, 2), (3, 4)). */
export function equalRows(cursor: TokenCursor, row: Row, items: readonly Expression[], location: Location): Expression {
  const equal = items.map((item) => combinedRow(cursor, '=', row, item, location));
  const anyEqual = balancedTree('or', equal, location);
  if (items.length <= fewRows) return anyEqual;
  const columns = row.items.map((operand, i) => columnIn(operand, items as readonly Row[], i, location));
  return chain('and', [...columns.filter((each) => each !== null), anyEqual], location);
}

/** a IN (1, 3), which is true wherever (a, b) IN ((1, 2), (3, 4)) is, and false only where that is; null where an item is no literal. */
function columnIn(operand: Expression, rows: readonly Row[], at: number, location: Location): Expression | null {
  const items = rows.map((row) => row.items[at]!);
  return items.every(({ kind }) => kind === 'literal') ? { kind: 'in-list', operand, items, negated: false, location } : null;
}

function itemsOf(cursor: TokenCursor, side: Expression, other: Expression): readonly Expression[] {
  const width = isRow(side) ? side.items.length : 1;
  const otherWidth = isRow(other) ? other.items.length : 1;
  if (!isRow(side) || width !== otherWidth) {
    throw cursor.error(`rows of ${width} and of ${otherWidth} values are compared: both need as many`, side.location);
  }
  return side.items;
}

function chain(op: 'and' | 'or', parts: readonly Expression[], location: Location): Expression {
  return parts.reduce((left, right): Expression => ({ kind: 'binary', op, left, right, location }));
}

function balancedTree(op: 'and' | 'or', parts: readonly Expression[], location: Location): Expression {
  if (parts.length === 1) return parts[0]!;
  const middle = parts.length >> 1;
  return {
    kind: 'binary',
    op,
    left: balancedTree(op, parts.slice(0, middle), location),
    right: balancedTree(op, parts.slice(middle), location),
    location,
  };
}
