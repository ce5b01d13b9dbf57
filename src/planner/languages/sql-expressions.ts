/**
 * Tokens to expressions: precedence climbing, loosest first: OR, AND, NOT, comparisons (which do not chain), vector
 * distances, sums, products, sign. Source: specification, "SQL dialect" rules 6, 7, 8, 10 and 11.
 *
 * AND and OR chains become balanced trees: both operators are associative in three-valued logic, and a thousand
 * conditions then nest ten deep instead of a thousand.
 */
import type { BinaryOp, ColumnRef, Expression, FunctionArgument, Interval, Place } from '../statement.ts';
import type { Token } from './sql-lexer.ts';
import type { TokenCursor } from './token-cursor.ts';

type AggregateName = 'count' | 'sum' | 'avg' | 'min' | 'max';

export function readExpression(cursor: TokenCursor): Expression {
  return cursor.nested(() => readChain(cursor, 'or'));
}

/** `column` or `table.column`. */
export function readColumn(cursor: TokenCursor): ColumnRef {
  const place = cursor.place;
  const quoted = cursor.token.kind === 'quoted';
  const first = cursor.name('a column name');
  if (!cursor.accept('.')) return { kind: 'column', table: null, name: first, place, ...(quoted ? { quoted } : {}) };
  return { kind: 'column', table: first, name: cursor.name('a column name'), place };
}

/** INTERVAL 'N unit'. */
export function readInterval(cursor: TokenCursor): Interval {
  const place = cursor.place;
  cursor.expect('INTERVAL');
  const slot = cursor.literal('s', "an interval such as '7 days'");
  return { slot, place };
}

/** `(a, b, NAME => c)`: the arguments of a call, both brackets included. */
export function readArguments(cursor: TokenCursor, equalsNames = false): FunctionArgument[] {
  cursor.expect('(');
  const list: FunctionArgument[] = [];
  if (cursor.accept(')')) return list;
  do {
    const named = cursor.isName() && (cursor.key(1) === '=>' || (equalsNames && cursor.key(1) === '='));
    const name = named ? cursor.next().text.toUpperCase() : null;
    if (named) cursor.next();
    list.push({ name, value: readExpression(cursor) });
  } while (cursor.accept(','));
  cursor.expect(')');
  return list;
}

function readChain(cursor: TokenCursor, op: 'or' | 'and'): Expression {
  const read = op === 'or' ? readConjunction : readNegation;
  const first = read(cursor);
  const key = op === 'or' ? 'OR' : 'AND';
  if (cursor.key() !== key) return first;
  const operands = [first];
  const places: Place[] = [];
  while (cursor.key() === key) {
    places.push(cursor.place);
    cursor.next();
    operands.push(read(cursor));
  }
  return balanced(op, operands, places, 0, operands.length);
}

function readConjunction(cursor: TokenCursor): Expression {
  return readChain(cursor, 'and');
}

function balanced(op: 'or' | 'and', operands: Expression[], places: Place[], from: number, to: number): Expression {
  if (to - from === 1) return operands[from]!;
  const middle = (from + to) >> 1;
  return {
    kind: 'binary',
    op,
    left: balanced(op, operands, places, from, middle),
    right: balanced(op, operands, places, middle, to),
    place: places[middle - 1]!,
  };
}

function readNegation(cursor: TokenCursor): Expression {
  if (cursor.key() !== 'NOT') return readComparison(cursor);
  const place = cursor.place;
  cursor.next();
  return cursor.nested(() => ({ kind: 'not', operand: readNegation(cursor), place }));
}

const comparisons: ReadonlySet<string> = new Set(['=', '!=', '<', '<=', '>', '>=']);

function readComparison(cursor: TokenCursor): Expression {
  const left = readVectorDistance(cursor);
  const key = cursor.key();
  if (key === '') return left;
  const place = cursor.place;
  if (comparisons.has(key)) {
    cursor.next();
    const right = readVectorDistance(cursor);
    if (key !== '=' && key !== '!=') {
      refusePhonetic(cursor, left);
      refusePhonetic(cursor, right);
    }
    if (comparisons.has(cursor.key())) throw cursor.error('comparisons do not chain; use AND or parentheses');
    return { kind: 'binary', op: key as BinaryOp, left, right, place };
  }
  const condition = readPredicate(cursor, left, place);
  if (condition !== left) refusePhonetic(cursor, left);
  return condition;
}

/** IS [NOT] NULL, IS [NOT] TRUE, IS [NOT] FALSE, [NOT] IN, [NOT] BETWEEN, [NOT] LIKE; the operand itself where none follows. */
function readPredicate(cursor: TokenCursor, operand: Expression, place: Place): Expression {
  if (cursor.accept('IS')) {
    const negated = cursor.accept('NOT');
    if (cursor.isLiteral('b')) return readIsBoolean(cursor, operand, negated, place);
    if (!cursor.accept('NULL')) throw cursor.expected('NULL, TRUE or FALSE');
    return { kind: 'is-null', operand, negated, place };
  }
  const negated = cursor.key() === 'NOT' && predicateWords.has(cursor.key(1));
  const word = cursor.key(negated ? 1 : 0);
  // The same words may be aliases: `SELECT a contains FROM t`.
  if (refusedPredicates.has(word) && startsOperand(cursor.peek(negated ? 2 : 1))) throw cursor.notImplemented(word);
  if (!predicateWords.has(word)) return operand;
  if (negated) cursor.next();
  cursor.next();
  if (word === 'IN') return readIn(cursor, operand, negated, place);
  if (word === 'BETWEEN') {
    const low = readVectorDistance(cursor);
    cursor.expect('AND');
    return { kind: 'between', operand, low, high: readVectorDistance(cursor), negated, place };
  }
  const like: Expression = { kind: 'binary', op: 'like', left: operand, right: readVectorDistance(cursor), place };
  if (cursor.key() === 'ESCAPE') throw cursor.notImplemented('ESCAPE');
  return negated ? { kind: 'not', operand: like, place } : like;
}

/** Never NULL: CASE WHEN operand = literal THEN … ELSE … END, of which both ends are said by the literal, which is no NULL. */
function readIsBoolean(cursor: TokenCursor, operand: Expression, negated: boolean, place: Place): Expression {
  const literal = readOperand(cursor);
  const constant = (truth: boolean): Expression => ({ kind: 'is-null', operand: literal, negated: truth, place });
  const when: Expression = { kind: 'binary', op: '=', left: operand, right: literal, place };
  // oxlint-disable-next-line no-thenable -- the word of the language; nobody awaits a branch
  return { kind: 'case', operand: null, branches: [{ when, then: constant(!negated) }], otherwise: constant(negated), place };
}

const predicateWords: ReadonlySet<string> = new Set(['IN', 'BETWEEN', 'LIKE']);
const refusedPredicates: ReadonlySet<string> = new Set('OVERLAPS CONTAINS PRECEDES SUCCEEDS MEETS ILIKE SIMILAR'.split(' '));

function startsOperand(token: Token): boolean {
  return !token.reserved || token.kind === 'literal' || token.key === '(';
}

function readIn(cursor: TokenCursor, operand: Expression, negated: boolean, place: Place): Expression {
  cursor.expect('(');
  if (cursor.key() === 'SELECT' || cursor.key() === 'WITH') {
    const query = cursor.subquery();
    cursor.expect(')');
    return { kind: 'in-query', operand, query, negated, place };
  }
  const items: Expression[] = [];
  do {
    // Of a hundred thousand values, none goes down through every level of the grammar.
    const after = cursor.key(1);
    const alone = cursor.token.kind === 'literal' && (after === ',' || after === ')');
    items.push(alone ? readOperand(cursor) : readExpression(cursor));
  } while (cursor.accept(','));
  cursor.expect(')');
  return { kind: 'in-list', operand, items, negated, place };
}

const phonetics: ReadonlySet<string> = new Set(['SOUNDEX', 'METAPHONE', 'COLOGNE']);

function refusePhonetic(cursor: TokenCursor, operand: Expression): void {
  if (operand.kind !== 'call' || !phonetics.has(operand.name)) return;
  throw cursor.error(`${operand.name} is compared with = or != only`, operand.place);
}

const vectorDistances: ReadonlySet<string> = new Set(['<=>', '<->', '<#>']);

function readVectorDistance(cursor: TokenCursor): Expression {
  let left = readSum(cursor);
  while (vectorDistances.has(cursor.key())) {
    cursor.linked();
    const place = cursor.place;
    const name = cursor.next().key;
    const right = readSum(cursor);
    left = { kind: 'call', name, arguments: [argument(left), argument(right)], place };
  }
  return left;
}

function readSum(cursor: TokenCursor): Expression {
  let left = readProduct(cursor);
  for (let key = cursor.key(); key === '+' || key === '-'; key = cursor.key()) {
    cursor.linked();
    const place = cursor.place;
    cursor.next();
    left = { kind: 'binary', op: key, left, right: readProduct(cursor), place };
  }
  return left;
}

function readProduct(cursor: TokenCursor): Expression {
  let left = readSigned(cursor);
  for (let key = cursor.key(); key === '*' || key === '/' || key === '%'; key = cursor.key()) {
    cursor.linked();
    const place = cursor.place;
    cursor.next();
    left = { kind: 'binary', op: key, left, right: readSigned(cursor), place };
  }
  return left;
}

function readSigned(cursor: TokenCursor): Expression {
  const key = cursor.key();
  if (key !== '-' && key !== '+') return readOperand(cursor);
  const place = cursor.place;
  cursor.next();
  return cursor.nested(() => {
    const operand = readSigned(cursor);
    return key === '+' ? operand : { kind: 'negate', operand, place };
  });
}

function readOperand(cursor: TokenCursor): Expression {
  const { token } = cursor;
  if (token.kind === 'literal') {
    const place = cursor.place;
    return { kind: 'literal', slot: cursor.next().slot, place };
  }
  if (token.key === '(') return readParenthesised(cursor);
  if (token.key === 'CASE') return cursor.nested(() => readCase(cursor));
  if (token.reserved) throw cursor.expected('an expression');
  if (token.kind === 'word') {
    if (cursor.key(1) === '(') return readCall(cursor);
    if (token.key === 'INTERVAL' && cursor.peek(1).kind === 'literal') {
      const { place } = cursor;
      return { kind: 'interval', interval: readInterval(cursor), place };
    }
    if (token.key === 'LOOKUP' && !cursor.peek(1).reserved && cursor.key(2) === '(') return readLookup(cursor);
    if (token.key === 'ARRAY' && cursor.key(1) === '[') return readArray(cursor);
  }
  return readColumn(cursor);
}

function readParenthesised(cursor: TokenCursor): Expression {
  const place = cursor.place;
  cursor.expect('(');
  if (cursor.key() === 'SELECT' || cursor.key() === 'WITH') {
    throw cursor.error('a subquery stands in FROM or after IN', place);
  }
  const inner = readExpression(cursor);
  if (cursor.key() === ',') {
    let depth = 1;
    let ahead = 0;
    for (; depth > 0 && cursor.peek(ahead).kind !== 'end'; ahead++) {
      if (cursor.key(ahead) === '(') depth++;
      if (cursor.key(ahead) === ')') depth--;
    }
    throw cursor.notImplemented(refusedPredicates.has(cursor.key(ahead)) ? cursor.key(ahead) : 'a row of values', place);
  }
  cursor.expect(')');
  return inner;
}

function readCase(cursor: TokenCursor): Expression {
  const place = cursor.place;
  cursor.expect('CASE');
  const operand = cursor.key() === 'WHEN' ? null : readExpression(cursor);
  const branches: { when: Expression; then: Expression }[] = [];
  while (cursor.accept('WHEN')) {
    const when = readExpression(cursor);
    cursor.expect('THEN');
    // oxlint-disable-next-line no-thenable -- the word of the language; nobody awaits a branch
    branches.push({ when, then: readExpression(cursor) });
  }
  if (branches.length === 0) throw cursor.expected('WHEN');
  const otherwise = cursor.accept('ELSE') ? readExpression(cursor) : null;
  cursor.expect('END');
  return { kind: 'case', operand, branches, otherwise, place };
}

/** LOOKUP table(column) -> field. */
function readLookup(cursor: TokenCursor): Expression {
  const place = cursor.place;
  cursor.next();
  const table: ColumnRef = { kind: 'column', table: null, place: cursor.place, name: cursor.name('a lookup table') };
  cursor.expect('(');
  const key = readColumn(cursor);
  cursor.expect(')');
  cursor.expect('->');
  const field: ColumnRef = { kind: 'column', table: null, place: cursor.place, name: cursor.name('a field') };
  return {
    kind: 'call',
    name: 'LOOKUP',
    arguments: [argument(table, 'TABLE'), argument(key, 'KEY'), argument(field, 'FIELD')],
    place,
  };
}

function readArray(cursor: TokenCursor): Expression {
  const place = cursor.place;
  cursor.next();
  cursor.expect('[');
  const items: FunctionArgument[] = [];
  if (!cursor.accept(']')) {
    do items.push(argument(readExpression(cursor)));
    while (cursor.accept(','));
    cursor.expect(']');
  }
  return { kind: 'call', name: 'ARRAY', arguments: items, place };
}

const aggregateNames: ReadonlyMap<string, AggregateName> = new Map([
  ['COUNT', 'count'],
  ['SUM', 'sum'],
  ['AVG', 'avg'],
  ['MIN', 'min'],
  ['MAX', 'max'],
]);

const refusedFunctions: ReadonlySet<string> = new Set('COALESCE ROW_NUMBER RANK DENSE_RANK NTILE LAG LEAD EXISTS'.split(' '));

function readCall(cursor: TokenCursor): Expression {
  const place = cursor.place;
  const name = cursor.token.text.toUpperCase();
  if (refusedFunctions.has(name)) throw cursor.notImplemented(name);
  const aggregate = aggregateNames.get(name);
  const call =
    aggregate && cursor.aggregates !== 'functions' ? readAggregate(cursor, aggregate, place) : readFunction(cursor, name, place);
  if (cursor.key() === 'OVER' && (cursor.key(1) === '(' || !cursor.peek(1).reserved)) {
    throw cursor.notImplemented('a window (OVER)');
  }
  if (cursor.key() === 'FILTER' && cursor.key(1) === '(') throw cursor.notImplemented('FILTER within an aggregate');
  return call;
}

function readAggregate(cursor: TokenCursor, name: AggregateName, place: Place): Expression {
  if (cursor.aggregates === 'within') throw cursor.notImplemented('an aggregate within an aggregate');
  if (cursor.aggregates === 'refused') throw cursor.error('an aggregate stands in the projection, HAVING or ORDER BY');
  cursor.next();
  cursor.expect('(');
  if (cursor.key() === '*') {
    if (name !== 'count') throw cursor.error(`only COUNT takes *`);
    cursor.next();
    cursor.expect(')');
    return { kind: 'aggregate', function: name, operand: null, distinct: false, place };
  }
  const distinct = cursor.accept('DISTINCT');
  const outer = cursor.aggregates;
  cursor.aggregates = 'within';
  const operand = readExpression(cursor);
  cursor.aggregates = outer;
  cursor.expect(')');
  return { kind: 'aggregate', function: name, operand, distinct, place };
}

function readFunction(cursor: TokenCursor, name: string, place: Place): Expression {
  cursor.next();
  if (name === 'NOW') {
    cursor.expect('(');
    cursor.expect(')');
    return { kind: 'now', place };
  }
  if (name === 'MATCH') return readMatch(cursor, place);
  return { kind: 'call', name, arguments: readArguments(cursor, name === 'SIMILAR'), place };
}

const matchModes: ReadonlySet<string> = new Set(['PHRASE', 'FUZZY', 'STEMMED', 'BOOLEAN', 'SUFFIX', 'INFIX']);

/** MATCH(column[, column …], 'text'[, MODE]). */
function readMatch(cursor: TokenCursor, place: Place): Expression {
  cursor.expect('(');
  const list = [argument(readColumn(cursor))];
  cursor.expect(',');
  while (!cursor.isLiteral('s')) {
    list.push(argument(readColumn(cursor)));
    cursor.expect(',');
  }
  const text = cursor.literal('s', 'the text to match, in quotes');
  list.push(argument({ kind: 'literal', slot: text.slot, place: text.place }));
  if (cursor.accept(',')) {
    const mode = cursor.key();
    if (!matchModes.has(mode)) throw cursor.expected('PHRASE, FUZZY, STEMMED, BOOLEAN, SUFFIX or INFIX');
    list.push(argument({ kind: 'column', table: null, name: mode, place: cursor.place }, 'MODE'));
    cursor.next();
  }
  cursor.expect(')');
  return { kind: 'call', name: 'MATCH', arguments: list, place };
}

function argument(value: Expression, name: string | null = null): FunctionArgument {
  return { name, value };
}
