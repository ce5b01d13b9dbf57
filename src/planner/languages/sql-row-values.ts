/** Takes row values, (a, b), apart: a comparison of rows becomes comparisons of their items. */
import type { Expression, Location } from '../statement.ts';
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
  place: Location,
): Expression {
  const [a, b] = [itemsOf(cursor, left, right), itemsOf(cursor, right, left)];
  if (op === '=' || op === '!=') {
    const pairs = a.map((item, i): Expression => ({ kind: 'binary', op, left: item, right: b[i]!, place }));
    return chain(op === '=' ? 'and' : 'or', pairs, place);
  }
  const strict = op.startsWith('<') ? '<' : '>';
  let whole: Expression = { kind: 'binary', op, left: a.at(-1)!, right: b.at(-1)!, place };
  for (let i = a.length - 2; i >= 0; i--) {
    const before: Expression = { kind: 'binary', op: strict, left: a[i]!, right: b[i]!, place };
    const equal: Expression = { kind: 'binary', op: '=', left: a[i]!, right: b[i]!, place };
    whole = chain('or', [before, chain('and', [equal, whole], place)], place);
  }
  return whole;
}

/** (a, b) IN ((1, 2), (3, 4)). */
export function equalRows(cursor: TokenCursor, row: Row, items: readonly Expression[], place: Location): Expression {
  const equal = items.map((item) => combinedRow(cursor, '=', row, item, place));
  return balancedTree('or', equal, place);
}

function itemsOf(cursor: TokenCursor, side: Expression, other: Expression): readonly Expression[] {
  const width = isRow(side) ? side.items.length : 1;
  const otherWidth = isRow(other) ? other.items.length : 1;
  if (!isRow(side) || width !== otherWidth) {
    throw cursor.error(`rows of ${width} and of ${otherWidth} values are compared: both need as many`, side.place);
  }
  return side.items;
}

function chain(op: 'and' | 'or', parts: readonly Expression[], place: Location): Expression {
  return parts.reduce((left, right): Expression => ({ kind: 'binary', op, left, right, place }));
}

function balancedTree(op: 'and' | 'or', parts: readonly Expression[], place: Location): Expression {
  if (parts.length === 1) return parts[0]!;
  const middle = parts.length >> 1;
  return {
    kind: 'binary',
    op,
    left: balancedTree(op, parts.slice(0, middle), place),
    right: balancedTree(op, parts.slice(middle), place),
    place,
  };
}
