/** Tokens to calls of aggregates and of window functions, with what stands behind their brackets: FILTER, WITHIN GROUP, OVER. */
import { type AggregateFunction, aggregateFunctions, type AggregateName } from '../aggregate-functions.ts';
import type { Expression, FunctionArgument, Location, OrderItem, WindowFunction } from '../syntax/statement.ts';
import { argument } from './sql-functions.ts';
import type { Token } from './sql-lexer.ts';
import { readOver } from './sql-window-clause.ts';
import type { TokenCursor } from './token-cursor.ts';

type Read = (cursor: TokenCursor) => Expression;

interface Readers {
  readonly read: Read;
  readonly readArguments: (cursor: TokenCursor) => FunctionArgument[];
}

export const windowFunctions: ReadonlySet<string> = new Set(
  'ROW_NUMBER RANK DENSE_RANK LAG LEAD FIRST_VALUE LAST_VALUE NTILE PERCENT_RANK CUME_DIST NTH_VALUE'.split(' '),
);

/** Functions of the order of values have no frames. */
export function hasFrames(name: AggregateName): boolean {
  const { isOrdered = false }: AggregateFunction = aggregateFunctions[name];
  return !isOrdered && name !== 'median';
}

/** Whether OVER stands behind the closing bracket of this call, or of its FILTER. */
export function isWindowed(cursor: TokenCursor): boolean {
  let depth = 0;
  for (let ahead = 1; cursor.peek(ahead).kind !== 'end'; ahead++) {
    const key = cursor.key(ahead);
    if (key === '(') depth++;
    else if (key === ')' && --depth === 0 && cursor.key(ahead + 1) !== 'FILTER')
      return cursor.key(ahead + 1) === 'OVER' && (cursor.key(ahead + 2) === '(' || isWindowName(cursor.peek(ahead + 2)));
  }
  return false;
}

const isWindowName = ({ kind, reserved }: Token): boolean => (kind === 'word' || kind === 'quoted') && !reserved;

export function readWindowed(
  cursor: TokenCursor,
  name: WindowFunction,
  location: Location,
  { read, readArguments }: Readers,
): Expression {
  if (cursor.aggregates !== 'allowed')
    throw cursor.error('a window function stands in the projection or in ORDER BY', location, 'window-misplaced');
  cursor.next();
  const operands: Expression[] = [];
  if (cursor.key(1) === '*') {
    if (name !== 'count') throw cursor.error('only COUNT takes *', cursor.location, 'no-such-function');
    cursor.next();
    cursor.next();
    cursor.expect(')');
  } else {
    if (cursor.key(1) === 'DISTINCT') throw cursor.notImplemented('DISTINCT in a window function');
    operands.push(...readArguments(cursor).map(({ value }) => value));
  }
  if (cursor.key() === 'FILTER' && windowFunctions.has(name.toUpperCase()))
    throw cursor.notImplemented(`FILTER of ${name.toUpperCase()}`);
  const filter = readFilter(cursor, read);
  cursor.expect('OVER');
  const over = readOver(cursor, { read, order: cursor.readOrder });
  return { kind: 'over', function: name, arguments: operands, ...over, filter, location };
}

export function readAggregate(cursor: TokenCursor, name: AggregateName, location: Location, read: Read): Expression {
  if (cursor.aggregates === 'within')
    throw cursor.error('an aggregate within an aggregate is not implemented', cursor.location, 'not-grouped');
  if (cursor.aggregates === 'refused')
    throw cursor.error('an aggregate stands in the projection, HAVING or ORDER BY', location, 'not-grouped');
  cursor.next();
  cursor.expect('(');
  const { isOrdered = false }: AggregateFunction = aggregateFunctions[name];
  if (isOrdered) return readOrdered(cursor, name, location, read);
  if (cursor.key() === '*') {
    if (name !== 'count') throw cursor.error('only COUNT takes *', cursor.location, 'no-such-function');
    cursor.next();
    cursor.expect(')');
    return {
      kind: 'aggregate',
      function: name,
      operand: null,
      second: null,
      distinct: false,
      filter: readFilter(cursor, read),
      location,
    };
  }
  if (cursor.key() === ')') {
    const usage = name === 'count' ? 'COUNT(*) counts rows' : `${name.toUpperCase()} takes a value`;
    throw cursor.error(usage, cursor.location, name === 'count' ? 'not-of-this-call' : 'no-such-function');
  }
  const distinct = cursor.accept('DISTINCT');
  if (!distinct) cursor.accept('ALL');
  const outer = cursor.aggregates;
  cursor.aggregates = 'within';
  const value = read(cursor);
  // Names of members are texts, whatever they were.
  const operand = cursor.dialect === 'wide' && name.endsWith('_object_agg') ? asText(value) : value;
  const second = cursor.accept(',') ? read(cursor) : null;
  let orderBy: readonly OrderItem[] | null = null;
  if (cursor.key() === 'ORDER') {
    if (cursor.dialect !== 'wide')
      throw cursor.notImplemented('ORDER BY within an aggregate (order the rows in a subquery of FROM)');
    cursor.next();
    cursor.expect('BY');
    orderBy = cursor.readOrder(cursor);
  }
  cursor.aggregates = outer;
  cursor.expect(')');
  const filter = readFilter(cursor, read);
  return { kind: 'aggregate', function: name, operand, second, distinct, filter, ...(orderBy && { orderBy }), location };
}

function asText(value: Expression): Expression {
  const { location } = value;
  const type: Expression = { kind: 'column', table: null, name: 'TEXT', location };
  return { kind: 'call', name: 'CAST', arguments: [argument(value), { name: 'TYPE', value: type }], location };
}

/** MODE() and percentiles: the share in their brackets, then WITHIN GROUP (ORDER BY x). */
function readOrdered(cursor: TokenCursor, name: AggregateName, location: Location, read: Read): Expression {
  cursor.wideOnly(name.toUpperCase());
  const outer = cursor.aggregates;
  cursor.aggregates = 'within';
  const second = cursor.key() === ')' ? null : read(cursor);
  cursor.expect(')');
  cursor.expect('WITHIN');
  cursor.expect('GROUP');
  cursor.expect('(');
  cursor.expect('ORDER');
  cursor.expect('BY');
  const [item, more] = cursor.readOrder(cursor);
  if (item === undefined || more !== undefined || item.collate !== 'codepoint')
    throw cursor.error(`${name.toUpperCase()} is of one value, in the order of code points`, location, 'no-such-function');
  cursor.aggregates = outer;
  cursor.expect(')');
  const filter = readFilter(cursor, read);
  const { expression: operand, descending } = item;
  return { kind: 'aggregate', function: name, operand, second, distinct: false, filter, descending, location };
}

/** FILTER (WHERE condition) behind an aggregate. */
function readFilter(cursor: TokenCursor, read: Read): Expression | null {
  if (cursor.key() !== 'FILTER' || cursor.key(1) !== '(') return null;
  cursor.wideOnly('FILTER within an aggregate');
  cursor.next();
  cursor.expect('(');
  cursor.expect('WHERE');
  const outer = cursor.aggregates;
  cursor.aggregates = 'within';
  const condition = read(cursor);
  cursor.aggregates = outer;
  cursor.expect(')');
  return condition;
}
