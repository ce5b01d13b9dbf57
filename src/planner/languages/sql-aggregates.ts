/** Tokens to calls of aggregates and of window functions, with what stands behind their brackets: FILTER, WITHIN GROUP, OVER. */
import { type AggregateFunction, aggregateFunctions, type AggregateName } from '../aggregate-functions.ts';
import type { Expression, FunctionArgument, Location, OrderItem, WindowFunction } from '../syntax/statement.ts';
import { argument } from './sql-functions.ts';
import type { Token } from './sql-lexer.ts';
import { readOver } from './sql-window-clause.ts';
import type { TokenCursor } from './token-cursor.ts';

type ReadExpression = (cursor: TokenCursor) => Expression;

interface SqlReaders {
  readonly read: ReadExpression;
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
export function isWindowed(sqlCursor: TokenCursor): boolean {
  let bracketDepth = 0;
  for (let lexemesAhead = 1; sqlCursor.peek(lexemesAhead).kind !== 'end'; lexemesAhead++) {
    const keyAhead = sqlCursor.key(lexemesAhead);
    if (keyAhead === '(') bracketDepth++;
    else if (keyAhead === ')' && --bracketDepth === 0 && sqlCursor.key(lexemesAhead + 1) !== 'FILTER')
      return (
        sqlCursor.key(lexemesAhead + 1) === 'OVER' &&
        (sqlCursor.key(lexemesAhead + 2) === '(' || isWindowName(sqlCursor.peek(lexemesAhead + 2)))
      );
  }
  return false;
}

const isWindowName = ({ kind, reserved }: Token): boolean => (kind === 'word' || kind === 'quoted') && !reserved;

export function readWindowed(
  sqlCursor: TokenCursor,
  name: WindowFunction,
  location: Location,
  { read: readOperand, readArguments }: SqlReaders,
): Expression {
  if (sqlCursor.aggregates !== 'allowed')
    throw sqlCursor.error('a window function stands in the projection or in ORDER BY', location, 'window-misplaced');
  sqlCursor.next();
  const windowOperands: Expression[] = [];
  if (sqlCursor.key(1) === '*') {
    if (name !== 'count') throw sqlCursor.error('only COUNT takes *', sqlCursor.location, 'no-such-function');
    sqlCursor.next();
    sqlCursor.next();
    sqlCursor.expect(')');
  } else {
    if (sqlCursor.key(1) === 'DISTINCT') throw sqlCursor.notImplemented('DISTINCT in a window function');
    windowOperands.push(...readArguments(sqlCursor).map(({ value }) => value));
  }
  if (sqlCursor.key() === 'FILTER' && windowFunctions.has(name.toUpperCase()))
    throw sqlCursor.notImplemented(`FILTER of ${name.toUpperCase()}`);
  const windowFilter = readAggregateFilter(sqlCursor, readOperand);
  sqlCursor.expect('OVER');
  const overClause = readOver(sqlCursor, { read: readOperand, order: sqlCursor.readOrder });
  return { kind: 'over', function: name, arguments: windowOperands, ...overClause, filter: windowFilter, location };
}

export function readAggregate(
  sqlCursor: TokenCursor,
  name: AggregateName,
  location: Location,
  readOperand: ReadExpression,
): Expression {
  if (sqlCursor.aggregates === 'within')
    throw sqlCursor.error('an aggregate within an aggregate is not implemented', sqlCursor.location, 'not-grouped');
  if (sqlCursor.aggregates === 'refused')
    throw sqlCursor.error('an aggregate stands in the projection, HAVING or ORDER BY', location, 'not-grouped');
  sqlCursor.next();
  sqlCursor.expect('(');
  const { isOrdered = false }: AggregateFunction = aggregateFunctions[name];
  if (isOrdered) return readOrderedSet(sqlCursor, name, location, readOperand);
  if (sqlCursor.key() === '*') {
    if (name !== 'count') throw sqlCursor.error('only COUNT takes *', sqlCursor.location, 'no-such-function');
    sqlCursor.next();
    sqlCursor.expect(')');
    return {
      kind: 'aggregate',
      function: name,
      operand: null,
      second: null,
      distinct: false,
      filter: readAggregateFilter(sqlCursor, readOperand),
      location,
    };
  }
  if (sqlCursor.key() === ')') {
    const aggregateUsage = name === 'count' ? 'COUNT(*) counts rows' : `${name.toUpperCase()} takes a value`;
    throw sqlCursor.error(aggregateUsage, sqlCursor.location, name === 'count' ? 'not-of-this-call' : 'no-such-function');
  }
  const isDistinct = sqlCursor.accept('DISTINCT');
  if (!isDistinct) sqlCursor.accept('ALL');
  const outerAggregates = sqlCursor.aggregates;
  sqlCursor.aggregates = 'within';
  const aggregatedValue = readOperand(sqlCursor);
  // Names of members are texts, whatever they were.
  const aggregateOperand =
    sqlCursor.dialect === 'wide' && name.endsWith('_object_agg') ? castAsText(aggregatedValue) : aggregatedValue;
  const secondOperand = sqlCursor.accept(',') ? readOperand(sqlCursor) : null;
  let orderBy: readonly OrderItem[] | null = null;
  if (sqlCursor.key() === 'ORDER') {
    if (sqlCursor.dialect !== 'wide')
      throw sqlCursor.notImplemented('ORDER BY within an aggregate (order the rows in a subquery of FROM)');
    sqlCursor.next();
    sqlCursor.expect('BY');
    orderBy = sqlCursor.readOrder(sqlCursor);
  }
  sqlCursor.aggregates = outerAggregates;
  sqlCursor.expect(')');
  const aggregateFilter = readAggregateFilter(sqlCursor, readOperand);
  return {
    kind: 'aggregate',
    function: name,
    operand: aggregateOperand,
    second: secondOperand,
    distinct: isDistinct,
    filter: aggregateFilter,
    ...(orderBy && { orderBy }),
    location,
  };
}

function castAsText(jsonKey: Expression): Expression {
  const { location } = jsonKey;
  const textType: Expression = { kind: 'column', table: null, name: 'TEXT', location };
  return { kind: 'call', name: 'CAST', arguments: [argument(jsonKey), { name: 'TYPE', value: textType }], location };
}

/** MODE() and percentiles: the share in their brackets, then WITHIN GROUP (ORDER BY x). */
function readOrderedSet(
  sqlCursor: TokenCursor,
  name: AggregateName,
  location: Location,
  readOperand: ReadExpression,
): Expression {
  sqlCursor.wideOnly(name.toUpperCase());
  const outerAggregates = sqlCursor.aggregates;
  sqlCursor.aggregates = 'within';
  const secondOperand = sqlCursor.key() === ')' ? null : readOperand(sqlCursor);
  sqlCursor.expect(')');
  sqlCursor.expect('WITHIN');
  sqlCursor.expect('GROUP');
  sqlCursor.expect('(');
  sqlCursor.expect('ORDER');
  sqlCursor.expect('BY');
  const [orderedItem, secondItem] = sqlCursor.readOrder(sqlCursor);
  if (orderedItem === undefined || secondItem !== undefined || orderedItem.collate !== 'codepoint')
    throw sqlCursor.error(`${name.toUpperCase()} is of one value, in the order of code points`, location, 'no-such-function');
  sqlCursor.aggregates = outerAggregates;
  sqlCursor.expect(')');
  const orderedSetFilter = readAggregateFilter(sqlCursor, readOperand);
  const { expression: operand, descending } = orderedItem;
  return {
    kind: 'aggregate',
    function: name,
    operand,
    second: secondOperand,
    distinct: false,
    filter: orderedSetFilter,
    descending,
    location,
  };
}

/** FILTER (WHERE condition) behind an aggregate. */
function readAggregateFilter(sqlCursor: TokenCursor, readCondition: ReadExpression): Expression | null {
  if (sqlCursor.key() !== 'FILTER' || sqlCursor.key(1) !== '(') return null;
  sqlCursor.wideOnly('FILTER within an aggregate');
  sqlCursor.next();
  sqlCursor.expect('(');
  sqlCursor.expect('WHERE');
  const outerAggregates = sqlCursor.aggregates;
  sqlCursor.aggregates = 'within';
  const filterCondition = readCondition(sqlCursor);
  sqlCursor.aggregates = outerAggregates;
  sqlCursor.expect(')');
  return filterCondition;
}
