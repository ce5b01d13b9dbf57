/**
 * Tokens to expressions: precedence climbing, loosest first: OR, AND, NOT, comparisons (which do not chain), vector
 * distances and other operators (`||`, `~`, `->`), sums, products, sign, `::`. Source: specification, "SQL dialect" rules 6, 7, 8, 10 and 11.
 *
 * AND and OR chains become balanced trees: both operators are associative in three-valued logic, and a thousand
 * conditions then nest ten deep instead of a thousand.
 */
import { aggregateNamed } from '../aggregate-functions.ts';
import { intervalUnits } from '../expressions/functions/instants.ts';
import { matchModes } from '../../governance/text-search/text-query.ts';
import type {
  Select,
  BinaryOp,
  ColumnRef,
  Expression,
  FunctionArgument,
  Interval,
  Location,
  WindowFunction,
} from '../syntax/statement.ts';
import { argument, readSpecialCall, readTypedLiteral, readTypeSuffix } from './sql-functions.ts';
import { hasFrames, isWindowed, readAggregate, readWindowed, windowFunctions } from './sql-aggregates.ts';
import { combinedRow, countListed, distinctRows, equalRows, isRow, rowIsNull, rowWithQuery } from './sql-row-values.ts';
import { readLike, readSimilar } from './sql-patterns.ts';
import type { Token } from './sql-lexer.ts';
import { itemsMax, type TokenCursor } from './token-cursor.ts';

export function readExpression(cursor: TokenCursor): Expression {
  // One of a list, of which there may be a hundred thousand.
  const after = cursor.token.kind === 'literal' ? cursor.key(1) : '';
  if (after === ',' || after === ')') return readOperand(cursor);
  return cursor.nest(() => readChain(cursor, 'or'));
}

/** `column` or `table.column`. */
export function readColumn(cursor: TokenCursor): ColumnRef {
  const location = cursor.location;
  const quoted = cursor.token.kind === 'quoted';
  let first = cursor.name('a column name');
  if (cursor.dialect === 'wide' && catalogueSchemas.has(first) && cursor.key() === '.' && cursor.key(2) === '.') {
    cursor.next();
    first = cursor.name('a relation of the catalogue');
  }
  if (!cursor.accept('.')) return { kind: 'column', table: null, name: first, location, ...(quoted ? { quoted } : {}) };
  return { kind: 'column', table: first, name: cursor.name('a column name'), location };
}

const catalogueSchemas: ReadonlySet<string> = new Set(['pg_catalog', 'information_schema']);

/** INTERVAL 'N unit'. */
export function readInterval(cursor: TokenCursor): Interval {
  const location = cursor.location;
  cursor.expect('INTERVAL');
  const slot = cursor.literal('s', "an interval such as '7 days'");
  return { slot, location };
}

/** `(a, b, NAME => c)`: the arguments of a call, both brackets included. */
export function readArguments(cursor: TokenCursor, equalsNames = false): FunctionArgument[] {
  cursor.expect('(');
  const list: FunctionArgument[] = [];
  if (cursor.accept(')')) return list;
  if (cursor.key() === 'DISTINCT' || cursor.key() === '*')
    throw cursor.error(
      `only aggregates take ${cursor.key()}`,
      cursor.location,
      cursor.key() === '*' ? 'no-such-function' : 'not-of-this-call',
    );
  do {
    if (list.length === itemsMax) throw cursor.error(`a call has at most ${itemsMax} arguments`);
    // Before => stands a name and nothing else: FROM => 'a'.
    const arrow = cursor.token.kind === 'word' && cursor.key(1) === '=>';
    const named = arrow || (cursor.isName() && (cursor.key(1) === '=>' || (equalsNames && cursor.key(1) === '=')));
    const name = named ? cursor.next().text.toUpperCase() : null;
    if (named) cursor.next();
    list.push({ name, value: readDirection(cursor) ?? readExpression(cursor) });
  } while (cursor.accept(','));
  cursor.expect(')');
  return list;
}

/** IN that ends a list of arguments is the word for a direction: DEGREE(id, in). */
function readDirection(cursor: TokenCursor): Expression | null {
  if (cursor.key() !== 'IN' || cursor.key(1) !== ')') return null;
  const { location } = cursor;
  return { kind: 'column', table: null, name: cursor.next().text, location };
}

function readChain(cursor: TokenCursor, op: 'or' | 'and'): Expression {
  const read = op === 'or' ? readConjunction : readNegation;
  const first = read(cursor);
  const key = op === 'or' ? 'OR' : 'AND';
  if (cursor.key() !== key) return first;
  const operands = [first];
  const locations: Location[] = [];
  while (cursor.key() === key) {
    locations.push(cursor.location);
    cursor.next();
    operands.push(read(cursor));
  }
  return balancedTree(op, operands, locations, 0, operands.length);
}

function readConjunction(cursor: TokenCursor): Expression {
  return readChain(cursor, 'and');
}

function balancedTree(op: 'or' | 'and', operands: Expression[], locations: Location[], from: number, to: number): Expression {
  if (to - from === 1) return operands[from]!;
  const middle = (from + to) >> 1;
  return {
    kind: 'binary',
    op,
    left: balancedTree(op, operands, locations, from, middle),
    right: balancedTree(op, operands, locations, middle, to),
    location: locations[middle - 1]!,
  };
}

function readNegation(cursor: TokenCursor): Expression {
  if (cursor.key() !== 'NOT') return readComparison(cursor);
  const location = cursor.location;
  cursor.next();
  return cursor.nest(() => ({ kind: 'not', operand: readNegation(cursor), location }));
}

const comparisons: ReadonlySet<string> = new Set(['=', '!=', '<', '<=', '>', '>=']);
type CompareOp = '=' | '!=' | '<' | '<=' | '>' | '>=';

/** ANY, SOME or ALL over a subquery; = ANY and != ALL over a list in its brackets, which is IN. */
function readQuantified(cursor: TokenCursor, operand: Expression, op: CompareOp, location: Location): Expression | null {
  const word = cursor.key();
  if ((word !== 'ANY' && word !== 'SOME' && word !== 'ALL') || cursor.key(1) !== '(') return null;
  cursor.next();
  cursor.expect('(');
  if (cursor.key() === 'ARRAY' && cursor.key(1) === '[') {
    const negated = op === '!=' && word === 'ALL';
    if (!negated && (op !== '=' || word === 'ALL')) {
      if (cursor.dialect !== 'wide') throw cursor.notImplemented(`${op} ${word} over a list`);
      return readAnyElement(cursor, operand, op, word, location);
    }
    const { arguments: items } = readArray(cursor);
    if (cursor.accept('::')) {
      cursor.name('a type');
      cursor.expect('[');
      cursor.expect(']');
    }
    cursor.expect(')');
    return { kind: 'in-list', operand, items: items.map(({ value }) => value), negated, location };
  }
  if (!startsQuery(cursor)) return readAnyElement(cursor, operand, op, word, location);
  const query = cursor.subquery();
  cursor.expect(')');
  return { kind: 'quantified', op, all: word === 'ALL', operand, query, location };
}

/** A comparison with the elements of an array; the bracket before it is read. */
function readAnyElement(cursor: TokenCursor, operand: Expression, op: CompareOp, word: string, location: Location): Expression {
  if (cursor.dialect !== 'wide') throw cursor.expectedError(`a subquery or ARRAY[…] behind ${word}`);
  const array = readExpression(cursor);
  cursor.expect(')');
  const name = `${op} ${word === 'ALL' ? word : 'ANY'}`;
  return { kind: 'call', name, arguments: [argument(operand), argument(array)], location };
}

function startsQuery(cursor: TokenCursor): boolean {
  const key = cursor.key();
  return key === 'SELECT' || key === 'WITH' || (key === 'VALUES' && cursor.key(1) === '(');
}

function readComparison(cursor: TokenCursor): Expression {
  const left = readVectorDistance(cursor);
  const key = cursor.key();
  if (key === '') return left;
  const location = cursor.location;
  if (comparisons.has(key)) {
    cursor.next();
    const quantified = readQuantified(cursor, left, key as CompareOp, location);
    if (quantified) return quantified;
    const right = readVectorDistance(cursor);
    if (isRow(left) && right.kind === 'scalar-query' && cursor.dialect === 'wide')
      return rowWithQuery(cursor, key as CompareOp, left, right);
    if (isRow(left) || isRow(right)) return combinedRow(cursor, key as CompareOp, left, right, location);
    if (key !== '=' && key !== '!=') {
      refusePhonetic(cursor, left);
      refusePhonetic(cursor, right);
    }
    if (comparisons.has(cursor.key())) throw cursor.error('comparisons do not chain; use AND or parentheses');
    return { kind: 'binary', op: key as BinaryOp, left, right, location };
  }
  const condition = readPredicate(cursor, left, location);
  if (condition !== left) refusePhonetic(cursor, left);
  return condition;
}

/** IS [NOT] NULL, UNKNOWN, TRUE, FALSE or DISTINCT FROM, [NOT] IN, [NOT] BETWEEN, [NOT] LIKE; the operand itself where none follows. */
function readPredicate(cursor: TokenCursor, operand: Expression, location: Location): Expression {
  if (cursor.accept('IS')) {
    const negated = cursor.accept('NOT');
    if (cursor.isLiteral('b')) return readIsBoolean(cursor, operand, negated, location);
    if (cursor.accept('DISTINCT')) {
      cursor.expect('FROM');
      return readIsDistinct(cursor, operand, negated, location);
    }
    if (!cursor.accept('NULL') && !cursor.accept('UNKNOWN')) throw cursor.expectedError('NULL, TRUE, FALSE or DISTINCT FROM');
    if (isRow(operand)) return rowIsNull(operand, negated, location);
    return { kind: 'is-null', operand, negated, location };
  }
  const negated = cursor.key() === 'NOT' && predicateWords.has(cursor.key(1));
  const word = cursor.key(negated ? 1 : 0);
  // `SELECT a ilike FROM t`, `SELECT a similar FROM t`.
  if (word === 'ILIKE' && !startsOperand(cursor.peek(negated ? 2 : 1))) return operand;
  if (word === 'SIMILAR') {
    if (cursor.key(negated ? 2 : 1) !== 'TO') return operand;
    cursor.wideOnly(word);
  }
  if (word === 'OVERLAPS' && !negated && isRow(operand) && cursor.dialect === 'wide')
    return readOverlaps(cursor, operand, location);
  // The same words may be aliases: `SELECT a contains FROM t`.
  if (refusedPredicates.has(word) && startsOperand(cursor.peek(negated ? 2 : 1))) throw cursor.notImplemented(word);
  if (!predicateWords.has(word)) return operand;
  if (negated) cursor.next();
  cursor.next();
  if (word === 'IN') return readIn(cursor, operand, negated, location);
  if (word === 'BETWEEN') {
    const low = readVectorDistance(cursor);
    cursor.expect('AND');
    const high = readVectorDistance(cursor);
    if (!isRow(operand)) return { kind: 'between', operand, low, high, negated, location };
    const [least, most] = [combinedRow(cursor, '>=', operand, low, location), combinedRow(cursor, '<=', operand, high, location)];
    const between: Expression = { kind: 'binary', op: 'and', left: least, right: most, location };
    return negated ? { kind: 'not', operand: between, location } : between;
  }
  const like =
    word === 'SIMILAR'
      ? readSimilar(cursor, operand, location, readVectorDistance)
      : readLike(cursor, { operand, word, location }, readVectorDistance);
  return negated ? { kind: 'not', operand: like, location } : like;
}

/** `(start, end) OVERLAPS (start, length)`: a call of four values. */
function readOverlaps(cursor: TokenCursor, left: Extract<Expression, { kind: 'row' }>, location: Location): Expression {
  cursor.next();
  const right = readVectorDistance(cursor);
  if (!isRow(right) || left.items.length !== 2 || right.items.length !== 2)
    throw cursor.error('OVERLAPS compares (start, end) with (start, end)', location);
  return { kind: 'call', name: 'OVERLAPS', arguments: [...left.items, ...right.items].map((item) => argument(item)), location };
}

/** Never NULL: CASE WHEN operand = literal THEN … ELSE … END, of which both ends are said by the literal, which is no NULL. */
function readIsBoolean(cursor: TokenCursor, operand: Expression, negated: boolean, location: Location): Expression {
  const literal = readOperand(cursor);
  const constant = (truth: boolean): Expression => ({ kind: 'is-null', operand: literal, negated: truth, location });
  const when: Expression = { kind: 'binary', op: '=', left: operand, right: literal, location };
  // oxlint-disable-next-line no-thenable -- the word of the language; nobody awaits a branch
  const branches = [{ when, then: constant(!negated) }];
  return { kind: 'case', operand: null, branches, otherwise: constant(negated), isTest: true, location };
}

/** IS DISTINCT FROM: as !=, but with NULL as a value like any other, so never NULL itself. */
function readIsDistinct(cursor: TokenCursor, left: Expression, negated: boolean, location: Location): Expression {
  const isNullLiteral = cursor.token.kind === 'literal' && cursor.token.text === 'null';
  const right = readVectorDistance(cursor);
  cursor.repeats = true;
  if (isRow(left) || isRow(right)) {
    const each = (a: Expression, b: Expression): Expression => distinctValues(a, b, negated, location);
    return distinctRows(cursor, { left, right, negated, location }, each);
  }
  if (isNullLiteral) return { kind: 'is-null', operand: left, negated: !negated, location };
  return distinctValues(left, right, negated, location);
}

function distinctValues(left: Expression, right: Expression, negated: boolean, location: Location): Expression {
  const isNull = (operand: Expression): Expression => ({ kind: 'is-null', operand, negated: false, location });
  const equal: Expression = { kind: 'binary', op: '=', left, right, location };
  const truth = (test: Expression): Expression => (negated ? test : { kind: 'not', operand: test, location });
  // oxlint-disable no-thenable -- the word of the language; nobody awaits a branch
  const branches = [
    { when: isNull(left), then: truth(isNull(right)) },
    { when: isNull(right), then: truth(isNull(left)) },
  ];
  // oxlint-enable no-thenable
  return { kind: 'case', operand: null, branches, otherwise: truth(equal), isTest: true, location };
}

const predicateWords: ReadonlySet<string> = new Set(['IN', 'BETWEEN', 'LIKE', 'ILIKE', 'SIMILAR']);
const refusedPredicates: ReadonlySet<string> = new Set('OVERLAPS CONTAINS PRECEDES SUCCEEDS MEETS'.split(' '));

function startsOperand(token: Token): boolean {
  return !token.reserved || token.kind === 'literal' || token.key === '(';
}

function readIn(cursor: TokenCursor, operand: Expression, negated: boolean, location: Location): Expression {
  cursor.expect('(');
  if (startsQuery(cursor)) {
    const query = cursor.subquery();
    cursor.expect(')');
    return { kind: 'in-query', operand, query, negated, location };
  }
  const items: Expression[] = [];
  let nulls = 0;
  if (cursor.accept(')')) return { kind: 'in-list', operand, items, negated, location };
  do {
    const { count, text } = cursor.token;
    if (count === undefined) {
      const isNull = cursor.token.kind === 'literal' && text === 'null';
      const item = readExpression(cursor);
      // One NULL says what a hundred thousand say.
      if (isNull && item.kind === 'literal' && nulls++ > 0 && !isRow(operand)) continue;
      items.push(item);
      if (isRow(operand)) countListed(cursor, operand);
      continue;
    }
    const { location: first } = cursor;
    items.push({ kind: 'literal', slot: cursor.next().slot, count, location: first });
  } while (cursor.accept(','));
  cursor.expect(')');
  if (!isRow(operand)) return { kind: 'in-list', operand, items, negated, location };
  const anyEqual = equalRows(cursor, operand, items, location);
  return negated ? { kind: 'not', operand: anyEqual, location } : anyEqual;
}

const phonetics: ReadonlySet<string> = new Set(['SOUNDEX', 'METAPHONE', 'COLOGNE']);

function refusePhonetic(cursor: TokenCursor, operand: Expression): void {
  if (operand.kind !== 'call' || !phonetics.has(operand.name)) return;
  throw cursor.error(`${operand.name} is compared with = or != only`, operand.location);
}

const namedOperators: ReadonlySet<string> = new Set(
  '<=> <-> <#> || -> ->> #> #>> #- ? ?| ?& ~ ~* !~ !~* @> <@ && & | # << >> ^@'.split(' '),
);
/** Operators before their operand, and the functions that they are. */
const prefixOperators: ReadonlyMap<string, string> = new Map([
  ['~', '#~'],
  ['@', 'ABS'],
  ['|/', 'SQRT'],
  ['||/', 'CBRT'],
]);

function readVectorDistance(cursor: TokenCursor): Expression {
  let left = readSum(cursor);
  for (;;) {
    const location = cursor.location;
    const name = acceptOperator(cursor);
    if (name === null) return left;
    cursor.countLink();
    const right = readSum(cursor);
    left = { kind: 'call', name, arguments: [argument(left), argument(right)], location };
  }
}

/** An operator, or OPERATOR(pg_catalog.~). */
function acceptOperator(cursor: TokenCursor): string | null {
  if (namedOperators.has(cursor.key())) return cursor.next().key;
  if (cursor.key() !== 'OPERATOR' || cursor.key(1) !== '(' || cursor.dialect !== 'wide') return null;
  cursor.next();
  cursor.next();
  if (cursor.accept('PG_CATALOG')) cursor.expect('.');
  const name = cursor.key();
  if (!namedOperators.has(name)) throw cursor.expectedError(`one of ${[...namedOperators].join(' ')}`);
  cursor.next();
  cursor.expect(')');
  return name;
}

function readSum(cursor: TokenCursor): Expression {
  let left = readProduct(cursor);
  for (let key = cursor.key(); key === '+' || key === '-'; key = cursor.key()) {
    cursor.countLink();
    const location = cursor.location;
    cursor.next();
    left = { kind: 'binary', op: key, left, right: readProduct(cursor), location };
  }
  return left;
}

function readProduct(cursor: TokenCursor): Expression {
  let left = readPower(cursor);
  for (let key = cursor.key(); key === '*' || key === '/' || key === '%'; key = cursor.key()) {
    cursor.countLink();
    const location = cursor.location;
    cursor.next();
    left = { kind: 'binary', op: key, left, right: readPower(cursor), location };
  }
  return left;
}

function readPower(cursor: TokenCursor): Expression {
  let left = readZoned(cursor);
  while (cursor.key() === '^') {
    cursor.countLink();
    const location = cursor.location;
    const name = cursor.next().key;
    left = { kind: 'call', name, arguments: [argument(left), argument(readZoned(cursor))], location };
  }
  return left;
}

/** `x AT TIME ZONE zone`, any number of times. */
function readZoned(cursor: TokenCursor): Expression {
  let left = readSigned(cursor);
  while (cursor.key() === 'AT' && cursor.key(1) === 'TIME' && cursor.key(2) === 'ZONE') {
    cursor.wideOnly('AT TIME ZONE');
    cursor.countLink();
    const { location } = cursor;
    for (let i = 0; i < 3; i++) cursor.next();
    left = { kind: 'call', name: 'TIMEZONE', arguments: [argument(readSigned(cursor)), argument(left)], location };
  }
  return left;
}

function readSigned(cursor: TokenCursor): Expression {
  const key = cursor.key();
  const prefix = prefixOperators.get(key);
  if (prefix !== undefined) return readPrefix(cursor, prefix);
  if (key !== '-' && key !== '+') return readTypeSuffix(cursor, readOperand(cursor), readExpression);
  const location = cursor.location;
  cursor.next();
  return cursor.nest(() => {
    const operand = readSigned(cursor);
    return key === '+' ? operand : { kind: 'negate', operand, location };
  });
}

/** An operator before its operand binds looser than a sum. */
function readPrefix(cursor: TokenCursor, name: string): Expression {
  const { location } = cursor;
  cursor.next();
  return cursor.nest(() => ({ kind: 'call', name, arguments: [argument(readSum(cursor))], location }));
}

function readOperand(cursor: TokenCursor): Expression {
  const { token } = cursor;
  if (token.kind === 'literal') {
    const location = cursor.location;
    const { slot, typed } = cursor.next();
    return { kind: 'literal', slot, location, ...(typed && { typed }) };
  }
  if (token.key === '(') return readParenthesised(cursor);
  if (token.key === 'CASE') return cursor.nest(() => readCase(cursor));
  const opens = cursor.key(1) === '(';
  if (opens && (token.key === 'LEFT' || token.key === 'RIGHT')) return readCall(cursor);
  if (token.reserved) throw cursor.expectedError('an expression');
  // Functions qualified by Postgres' own schemas are those that a bare name finds.
  const isOwn = token.key === 'PG_CATALOG' || token.key === 'INFORMATION_SCHEMA';
  if (isOwn && cursor.key(1) === '.' && cursor.key(3) === '(' && cursor.dialect === 'wide') {
    cursor.next();
    cursor.next();
    return readOperand(cursor);
  }
  if (token.kind === 'quoted' && opens && cursor.dialect === 'wide') return readCall(cursor);
  if (token.kind === 'word') {
    if (token.key === 'EXISTS' && opens) return readExists(cursor);
    const typed = isInstantWord(cursor) ? null : readTypedLiteral(cursor);
    if (typed) return typed;
    if (token.key === 'ARRAY' && opens && cursor.dialect === 'wide') return readQueryArray(cursor);
    if (token.key === 'ROW' && opens && cursor.dialect === 'wide') return readRow(cursor);
    if (opens) return readCall(cursor);
    if (sessionWords.has(token.key) && cursor.dialect === 'wide' && cursor.key(1) !== '.') {
      const { location } = cursor;
      return { kind: 'call', name: cursor.next().key, arguments: [], location };
    }
    if (token.key === 'INTERVAL' && cursor.peek(1).kind === 'literal') {
      return readIntervalExpression(cursor);
    }
    if (isInstantWord(cursor)) {
      const { location } = cursor;
      cursor.next();
      const { slot, location: where } = cursor.literal('s', 'an instant in quotes');
      return { kind: 'call', name: token.key, arguments: [argument({ kind: 'literal', slot, location: where })], location };
    }
    if (token.key === 'LOCALTIMESTAMP' && cursor.dialect === 'wide' && cursor.key(1) !== '.') return readCurrent(cursor);
    if (token.key === 'CURRENT_TIMESTAMP' || token.key === 'CURRENT_DATE') return readCurrent(cursor);
    if (token.key === 'LOOKUP' && !cursor.peek(1).reserved && cursor.key(2) === '(') return readLookup(cursor);
    if (token.key === 'ARRAY' && cursor.key(1) === '[') return readArray(cursor);
  }
  return readColumn(cursor);
}

/** Functions that are called without brackets. */
const sessionWords: ReadonlySet<string> = new Set(
  'CURRENT_USER SESSION_USER CURRENT_ROLE CURRENT_CATALOG CURRENT_SCHEMA'.split(' '),
);

/** DATE or TIMESTAMP right before a text. */
function isInstantWord(cursor: TokenCursor): boolean {
  const { key } = cursor.token;
  return (key === 'DATE' || key === 'TIMESTAMP') && cursor.peek(1).kind === 'literal';
}

/** The instant of the snapshot, and the day that it is in. */
function readCurrent(cursor: TokenCursor): Expression {
  const { location } = cursor;
  const now: Expression = { kind: 'now', location };
  const { key } = cursor.next();
  if (key === 'CURRENT_TIMESTAMP') return now;
  return { kind: 'call', name: key === 'CURRENT_DATE' ? 'DATE' : 'TIMESTAMP', arguments: [argument(now)], location };
}

/** INTERVAL 'n unit' or INTERVAL 'n' UNIT. */
export function readIntervalExpression(cursor: TokenCursor): Expression {
  const { location } = cursor;
  const interval = readInterval(cursor);
  const unit = cursor.key().toLowerCase().replace(/s$/, '');
  const isUnit = cursor.token.kind === 'word' && intervalUnits.has(unit);
  if (isUnit) cursor.next();
  return { kind: 'interval', interval, unit: isUnit ? unit : null, location };
}

function readParenthesised(cursor: TokenCursor): Expression {
  const location = cursor.location;
  cursor.expect('(');
  if (startsQuery(cursor)) {
    const query = cursor.subquery();
    cursor.expect(')');
    return { kind: 'scalar-query', query, location };
  }
  const items = [readExpression(cursor)];
  while (cursor.accept(',')) items.push(readExpression(cursor));
  cursor.expect(')');
  if (items.length === 1 && cursor.key() === '.' && cursor.dialect === 'wide') {
    cursor.next();
    return { kind: 'call', name: `.${cursor.name('a field')}`, arguments: [argument(items[0]!)], location };
  }
  if (items.length === 1) return items[0]!;
  const overlaps = cursor.key() === 'OVERLAPS' && cursor.dialect === 'wide';
  if (refusedPredicates.has(cursor.key()) && !overlaps) throw cursor.notImplemented(cursor.key(), location);
  return { kind: 'row', items, location };
}

/** ROW(a, b), which is (a, b), but may have one item. */
function readRow(cursor: TokenCursor): Expression {
  const { location } = cursor;
  cursor.next();
  cursor.expect('(');
  const items: Expression[] = [];
  if (cursor.accept(')')) return { kind: 'row', items, location };
  do items.push(readExpression(cursor));
  while (cursor.accept(','));
  cursor.expect(')');
  return { kind: 'row', items, location };
}

function readExists(cursor: TokenCursor): Expression {
  const { location } = cursor;
  cursor.next();
  cursor.expect('(');
  if (!startsQuery(cursor)) throw cursor.expectedError('a subquery behind EXISTS');
  const query = cursor.subquery();
  cursor.expect(')');
  return { kind: 'exists', query, location };
}

function readCase(cursor: TokenCursor): Expression {
  const location = cursor.location;
  cursor.expect('CASE');
  const operand = cursor.key() === 'WHEN' ? null : readExpression(cursor);
  const branches: { when: Expression; then: Expression }[] = [];
  while (cursor.accept('WHEN')) {
    const when = readExpression(cursor);
    cursor.expect('THEN');
    // oxlint-disable-next-line no-thenable -- the word of the language; nobody awaits a branch
    branches.push({ when, then: readExpression(cursor) });
  }
  if (branches.length === 0) throw cursor.expectedError('WHEN');
  const otherwise = cursor.accept('ELSE') ? readExpression(cursor) : null;
  cursor.expect('END');
  return { kind: 'case', operand, branches, otherwise, location };
}

/** LOOKUP table(column) -> field. */
function readLookup(cursor: TokenCursor): Expression {
  const location = cursor.location;
  cursor.next();
  const table: ColumnRef = { kind: 'column', table: null, location: cursor.location, name: cursor.name('a lookup table') };
  cursor.expect('(');
  const key = readColumn(cursor);
  cursor.expect(')');
  cursor.expect('->');
  const field: ColumnRef = { kind: 'column', table: null, location: cursor.location, name: cursor.name('a field') };
  return {
    kind: 'call',
    name: 'LOOKUP',
    arguments: [argument(table, 'TABLE'), argument(key, 'KEY'), argument(field, 'FIELD')],
    location,
  };
}

function readArray(cursor: TokenCursor): Extract<Expression, { kind: 'call' }> {
  const location = cursor.location;
  cursor.next();
  cursor.expect('[');
  const items: FunctionArgument[] = [];
  if (!cursor.accept(']')) {
    do items.push(argument(readExpression(cursor)));
    while (cursor.accept(','));
    cursor.expect(']');
  }
  return { kind: 'call', name: 'ARRAY', arguments: items, location };
}

/** ARRAY(SELECT x …): the values of a query of one column, in its order. */
function readQueryArray(cursor: TokenCursor): Expression {
  const { location } = cursor;
  cursor.next();
  cursor.expect('(');
  const query = cursor.subquery();
  cursor.expect(')');
  const value: ColumnRef = { kind: 'column', table: null, name: '#value', location };
  const all: Expression = {
    kind: 'aggregate',
    function: 'array',
    operand: value,
    second: null,
    distinct: false,
    filter: null,
    location,
  };
  const from = { kind: 'subquery' as const, query, alias: '#values', columns: [value.name], location };
  const select: Select = {
    kind: 'select',
    distinct: false,
    projection: [{ kind: 'expression', expression: all, alias: null, location }],
    from,
    where: null,
    groupBy: [],
    window: null,
    having: null,
    rankBy: [],
    compute: [],
    location,
  };
  const whole = { with: [], body: select, asOf: null, orderBy: [], limit: null, offset: null, after: null, facets: [], location };
  return { kind: 'call', name: '_ARRAY', arguments: [argument({ kind: 'scalar-query', query: whole, location })], location };
}

const wideFunctions: ReadonlySet<string> = new Set(
  'COALESCE ROW_NUMBER RANK DENSE_RANK NTILE PERCENT_RANK CUME_DIST NTH_VALUE'.split(' '),
);

const readers = { read: readExpression, readArguments };

function readCall(cursor: TokenCursor): Expression {
  const location = cursor.location;
  const name = cursor.token.text.toUpperCase();
  if (wideFunctions.has(name)) cursor.wideOnly(name);
  const aggregate = aggregateNamed(name);
  const isAggregate = aggregate !== undefined && cursor.aggregates !== 'functions';
  const overFrames = windowFunctions.has(name) || (isAggregate && hasFrames(aggregate));
  if (cursor.aggregates !== 'functions' && overFrames && isWindowed(cursor))
    return readWindowed(cursor, isAggregate ? aggregate : (name.toLowerCase() as WindowFunction), location, readers);
  if (cursor.aggregates !== 'functions' && windowFunctions.has(name) && !isAggregate) {
    throw cursor.error(`${name} is a window function: OVER (...) stands behind it`, location, 'not-of-this-call');
  }
  const call = isAggregate ? readAggregate(cursor, aggregate, location, readExpression) : readFunction(cursor, name, location);
  if (!isAggregate && (cursor.key() === 'OVER' || cursor.key() === 'FILTER') && cursor.key(1) === '(')
    throw cursor.error(`${name} is no aggregate: it takes no ${cursor.key()}`, cursor.location, 'not-of-this-call');
  if (cursor.key() === 'OVER' && cursor.key(1) === '(') throw cursor.notImplemented(`${name} over a window`);
  return call;
}

function readFunction(cursor: TokenCursor, name: string, location: Location): Expression {
  cursor.next();
  if (name === 'NOW') {
    cursor.expect('(');
    cursor.expect(')');
    return { kind: 'now', location };
  }
  if (name === 'MATCH') return readMatch(cursor, location);
  const special = readSpecialCall(cursor, name, location, { read: readExpression, readSide: readVectorDistance });
  if (special) return special;
  return { kind: 'call', name, arguments: readArguments(cursor, name === 'SIMILAR'), location };
}

const writtenModes: ReadonlySet<string> = new Set(matchModes.filter((mode) => mode !== 'ANY'));

/** MATCH(column[, column …], 'text'[, MODE]). */
function readMatch(cursor: TokenCursor, location: Location): Expression {
  cursor.expect('(');
  const list = [argument(readColumn(cursor))];
  cursor.expect(',');
  while (!cursor.isLiteral('s')) {
    list.push(argument(readColumn(cursor)));
    cursor.expect(',');
  }
  const text = cursor.literal('s', 'the text to match, in quotes');
  list.push(argument({ kind: 'literal', slot: text.slot, location: text.location }));
  if (cursor.accept(',')) {
    const mode = cursor.key();
    if (!writtenModes.has(mode)) throw cursor.expectedError(`one of ${[...writtenModes].join(', ')}`);
    list.push(argument({ kind: 'column', table: null, name: mode, location: cursor.location }, 'MODE'));
    cursor.next();
  }
  cursor.expect(')');
  return { kind: 'call', name: 'MATCH', arguments: list, location };
}
