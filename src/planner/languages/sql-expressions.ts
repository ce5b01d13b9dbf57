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

export function readExpression(sqlCursor: TokenCursor): Expression {
  // One of a list, of which there may be a hundred thousand.
  const keyBehindLiteral = sqlCursor.token.kind === 'literal' ? sqlCursor.key(1) : '';
  if (keyBehindLiteral === ',' || keyBehindLiteral === ')') return readOperand(sqlCursor);
  return sqlCursor.nest(() => readChain(sqlCursor, 'or'));
}

/** `column` or `table.column`. */
export function readColumn(sqlCursor: TokenCursor): ColumnRef {
  const location = sqlCursor.location;
  const isQuoted = sqlCursor.token.kind === 'quoted';
  let firstName = sqlCursor.name('a column name');
  if (sqlCursor.dialect === 'wide' && catalogueSchemas.has(firstName) && sqlCursor.key() === '.' && sqlCursor.key(2) === '.') {
    sqlCursor.next();
    firstName = sqlCursor.name('a relation of the catalogue');
  }
  if (!sqlCursor.accept('.'))
    return { kind: 'column', table: null, name: firstName, location, ...(isQuoted ? { quoted: isQuoted } : {}) };
  return { kind: 'column', table: firstName, name: sqlCursor.name('a column name'), location };
}

const catalogueSchemas: ReadonlySet<string> = new Set(['pg_catalog', 'information_schema']);

/** INTERVAL 'N unit'. */
export function readInterval(sqlCursor: TokenCursor): Interval {
  const location = sqlCursor.location;
  sqlCursor.expect('INTERVAL');
  const slot = sqlCursor.literal('s', "an interval such as '7 days'");
  return { slot, location };
}

/** `(a, b, NAME => c)`: the arguments of a call, both brackets included. */
export function readArguments(sqlCursor: TokenCursor, allowsEqualsNames = false): FunctionArgument[] {
  sqlCursor.expect('(');
  const callArguments: FunctionArgument[] = [];
  if (sqlCursor.accept(')')) return callArguments;
  if (sqlCursor.key() === 'DISTINCT' || sqlCursor.key() === '*')
    throw sqlCursor.error(
      `only aggregates take ${sqlCursor.key()}`,
      sqlCursor.location,
      sqlCursor.key() === '*' ? 'no-such-function' : 'not-of-this-call',
    );
  do {
    if (callArguments.length === itemsMax) throw sqlCursor.error(`a call has at most ${itemsMax} arguments`);
    // Before => stands a name and nothing else: FROM => 'a'.
    const hasArrow = sqlCursor.token.kind === 'word' && sqlCursor.key(1) === '=>';
    const isNamed =
      hasArrow || (sqlCursor.isName() && (sqlCursor.key(1) === '=>' || (allowsEqualsNames && sqlCursor.key(1) === '=')));
    const argumentName = isNamed ? sqlCursor.next().text.toUpperCase() : null;
    if (isNamed) sqlCursor.next();
    callArguments.push({ name: argumentName, value: readDirection(sqlCursor) ?? readExpression(sqlCursor) });
  } while (sqlCursor.accept(','));
  sqlCursor.expect(')');
  return callArguments;
}

/** IN that ends a list of arguments is the word for a direction: DEGREE(id, in). */
function readDirection(sqlCursor: TokenCursor): Expression | null {
  if (sqlCursor.key() !== 'IN' || sqlCursor.key(1) !== ')') return null;
  const { location } = sqlCursor;
  return { kind: 'column', table: null, name: sqlCursor.next().text, location };
}

function readChain(sqlCursor: TokenCursor, chainOp: 'or' | 'and'): Expression {
  const readChained = chainOp === 'or' ? readConjunction : readNegation;
  const firstOperand = readChained(sqlCursor);
  const chainKey = chainOp === 'or' ? 'OR' : 'AND';
  if (sqlCursor.key() !== chainKey) return firstOperand;
  const chainOperands = [firstOperand];
  const locations: Location[] = [];
  while (sqlCursor.key() === chainKey) {
    locations.push(sqlCursor.location);
    sqlCursor.next();
    chainOperands.push(readChained(sqlCursor));
  }
  return balanceOperands(chainOp, chainOperands, locations, 0, chainOperands.length);
}

function readConjunction(sqlCursor: TokenCursor): Expression {
  return readChain(sqlCursor, 'and');
}

function balanceOperands(
  op: 'or' | 'and',
  chainOperands: Expression[],
  locations: Location[],
  firstOperand: number,
  operandsEnd: number,
): Expression {
  if (operandsEnd - firstOperand === 1) return chainOperands[firstOperand]!;
  const middleOperand = (firstOperand + operandsEnd) >> 1;
  return {
    kind: 'binary',
    op,
    left: balanceOperands(op, chainOperands, locations, firstOperand, middleOperand),
    right: balanceOperands(op, chainOperands, locations, middleOperand, operandsEnd),
    location: locations[middleOperand - 1]!,
  };
}

function readNegation(sqlCursor: TokenCursor): Expression {
  if (sqlCursor.key() !== 'NOT') return readComparison(sqlCursor);
  const location = sqlCursor.location;
  sqlCursor.next();
  return sqlCursor.nest(() => ({ kind: 'not', operand: readNegation(sqlCursor), location }));
}

const comparisonSigns: ReadonlySet<string> = new Set(['=', '!=', '<', '<=', '>', '>=']);
type CompareOp = '=' | '!=' | '<' | '<=' | '>' | '>=';

/** ANY, SOME or ALL over a subquery; = ANY and != ALL over a list in its brackets, which is IN. */
function readQuantified(
  sqlCursor: TokenCursor,
  operand: Expression,
  compareOp: CompareOp,
  location: Location,
): Expression | null {
  const quantifier = sqlCursor.key();
  if ((quantifier !== 'ANY' && quantifier !== 'SOME' && quantifier !== 'ALL') || sqlCursor.key(1) !== '(') return null;
  sqlCursor.next();
  sqlCursor.expect('(');
  if (sqlCursor.key() === 'ARRAY' && sqlCursor.key(1) === '[') {
    const isNegated = compareOp === '!=' && quantifier === 'ALL';
    if (!isNegated && (compareOp !== '=' || quantifier === 'ALL')) {
      if (sqlCursor.dialect !== 'wide') throw sqlCursor.notImplemented(`${compareOp} ${quantifier} over a list`);
      return readAnyElement(sqlCursor, operand, compareOp, quantifier, location);
    }
    const { arguments: arrayItems } = readArray(sqlCursor);
    if (sqlCursor.accept('::')) {
      sqlCursor.name('a type');
      sqlCursor.expect('[');
      sqlCursor.expect(']');
    }
    sqlCursor.expect(')');
    return { kind: 'in-list', operand, items: arrayItems.map(({ value }) => value), negated: isNegated, location };
  }
  if (!startsSubquery(sqlCursor)) return readAnyElement(sqlCursor, operand, compareOp, quantifier, location);
  const quantifiedQuery = sqlCursor.subquery();
  sqlCursor.expect(')');
  return { kind: 'quantified', op: compareOp, all: quantifier === 'ALL', operand, query: quantifiedQuery, location };
}

/** A comparison with the elements of an array; the bracket before it is read. */
function readAnyElement(
  sqlCursor: TokenCursor,
  operand: Expression,
  compareOp: CompareOp,
  quantifier: string,
  location: Location,
): Expression {
  if (sqlCursor.dialect !== 'wide') throw sqlCursor.expectedError(`a subquery or ARRAY[…] behind ${quantifier}`);
  const arrayExpression = readExpression(sqlCursor);
  sqlCursor.expect(')');
  const quantifiedOperator = `${compareOp} ${quantifier === 'ALL' ? quantifier : 'ANY'}`;
  return { kind: 'call', name: quantifiedOperator, arguments: [argument(operand), argument(arrayExpression)], location };
}

function startsSubquery(sqlCursor: TokenCursor): boolean {
  const queryKey = sqlCursor.key();
  return queryKey === 'SELECT' || queryKey === 'WITH' || (queryKey === 'VALUES' && sqlCursor.key(1) === '(');
}

function readComparison(sqlCursor: TokenCursor): Expression {
  const leftOperand = readVectorDistance(sqlCursor);
  const comparisonKey = sqlCursor.key();
  if (comparisonKey === '') return leftOperand;
  const location = sqlCursor.location;
  if (comparisonSigns.has(comparisonKey)) {
    sqlCursor.next();
    const quantifiedComparison = readQuantified(sqlCursor, leftOperand, comparisonKey as CompareOp, location);
    if (quantifiedComparison) return quantifiedComparison;
    const rightOperand = readVectorDistance(sqlCursor);
    if (isRow(leftOperand) && rightOperand.kind === 'scalar-query' && sqlCursor.dialect === 'wide')
      return rowWithQuery(sqlCursor, comparisonKey as CompareOp, leftOperand, rightOperand);
    if (isRow(leftOperand) || isRow(rightOperand))
      return combinedRow(sqlCursor, comparisonKey as CompareOp, leftOperand, rightOperand, location);
    if (comparisonKey !== '=' && comparisonKey !== '!=') {
      refusePhonetic(sqlCursor, leftOperand);
      refusePhonetic(sqlCursor, rightOperand);
    }
    if (comparisonSigns.has(sqlCursor.key())) throw sqlCursor.error('comparisons do not chain; use AND or parentheses');
    return { kind: 'binary', op: comparisonKey as BinaryOp, left: leftOperand, right: rightOperand, location };
  }
  const predicateCondition = readPredicate(sqlCursor, leftOperand, location);
  if (predicateCondition !== leftOperand) refusePhonetic(sqlCursor, leftOperand);
  return predicateCondition;
}

/** IS [NOT] NULL, UNKNOWN, TRUE, FALSE or DISTINCT FROM, [NOT] IN, [NOT] BETWEEN, [NOT] LIKE; the operand itself where none follows. */
function readPredicate(sqlCursor: TokenCursor, operand: Expression, location: Location): Expression {
  if (sqlCursor.accept('IS')) {
    const isNegated = sqlCursor.accept('NOT');
    if (sqlCursor.isLiteral('b')) return readIsBoolean(sqlCursor, operand, isNegated, location);
    if (sqlCursor.accept('DISTINCT')) {
      sqlCursor.expect('FROM');
      return readIsDistinct(sqlCursor, operand, isNegated, location);
    }
    if (!sqlCursor.accept('NULL') && !sqlCursor.accept('UNKNOWN'))
      throw sqlCursor.expectedError('NULL, TRUE, FALSE or DISTINCT FROM');
    if (isRow(operand)) return rowIsNull(operand, isNegated, location);
    return { kind: 'is-null', operand, negated: isNegated, location };
  }
  const negated = sqlCursor.key() === 'NOT' && predicateWords.has(sqlCursor.key(1));
  const predicateWord = sqlCursor.key(negated ? 1 : 0);
  // `SELECT a ilike FROM t`, `SELECT a similar FROM t`.
  if (predicateWord === 'ILIKE' && !startsOperandLexeme(sqlCursor.peek(negated ? 2 : 1))) return operand;
  if (predicateWord === 'SIMILAR') {
    if (sqlCursor.key(negated ? 2 : 1) !== 'TO') return operand;
    sqlCursor.wideOnly(predicateWord);
  }
  if (predicateWord === 'OVERLAPS' && !negated && isRow(operand) && sqlCursor.dialect === 'wide')
    return readOverlaps(sqlCursor, operand, location);
  // The same words may be aliases: `SELECT a contains FROM t`.
  if (refusedPredicates.has(predicateWord) && startsOperandLexeme(sqlCursor.peek(negated ? 2 : 1)))
    throw sqlCursor.notImplemented(predicateWord);
  if (!predicateWords.has(predicateWord)) return operand;
  if (negated) sqlCursor.next();
  sqlCursor.next();
  if (predicateWord === 'IN') return readIn(sqlCursor, operand, negated, location);
  if (predicateWord === 'BETWEEN') {
    const lowBound = readVectorDistance(sqlCursor);
    sqlCursor.expect('AND');
    const highBound = readVectorDistance(sqlCursor);
    if (!isRow(operand)) return { kind: 'between', operand, low: lowBound, high: highBound, negated, location };
    const [leastRow, mostRow] = [
      combinedRow(sqlCursor, '>=', operand, lowBound, location),
      combinedRow(sqlCursor, '<=', operand, highBound, location),
    ];
    const betweenRows: Expression = { kind: 'binary', op: 'and', left: leastRow, right: mostRow, location };
    return negated ? { kind: 'not', operand: betweenRows, location } : betweenRows;
  }
  const likePredicate =
    predicateWord === 'SIMILAR'
      ? readSimilar(sqlCursor, operand, location, readVectorDistance)
      : readLike(sqlCursor, { operand, word: predicateWord, location }, readVectorDistance);
  return negated ? { kind: 'not', operand: likePredicate, location } : likePredicate;
}

/** `(start, end) OVERLAPS (start, length)`: a call of four values. */
function readOverlaps(sqlCursor: TokenCursor, leftPeriod: Extract<Expression, { kind: 'row' }>, location: Location): Expression {
  sqlCursor.next();
  const rightPeriod = readVectorDistance(sqlCursor);
  if (!isRow(rightPeriod) || leftPeriod.items.length !== 2 || rightPeriod.items.length !== 2)
    throw sqlCursor.error('OVERLAPS compares (start, end) with (start, end)', location);
  return {
    kind: 'call',
    name: 'OVERLAPS',
    arguments: [...leftPeriod.items, ...rightPeriod.items].map((item) => argument(item)),
    location,
  };
}

/** Never NULL: CASE WHEN operand = literal THEN … ELSE … END, of which both ends are said by the literal, which is no NULL. */
function readIsBoolean(sqlCursor: TokenCursor, operand: Expression, negated: boolean, location: Location): Expression {
  const truthLiteral = readOperand(sqlCursor);
  const truthConstant = (truth: boolean): Expression => ({ kind: 'is-null', operand: truthLiteral, negated: truth, location });
  const truthComparison: Expression = { kind: 'binary', op: '=', left: operand, right: truthLiteral, location };
  // oxlint-disable-next-line no-thenable -- the word of the language; nobody awaits a branch
  const truthBranches = [{ when: truthComparison, then: truthConstant(!negated) }];
  return { kind: 'case', operand: null, branches: truthBranches, otherwise: truthConstant(negated), isTest: true, location };
}

/** IS DISTINCT FROM: as !=, but with NULL as a value like any other, so never NULL itself. */
function readIsDistinct(sqlCursor: TokenCursor, left: Expression, negated: boolean, location: Location): Expression {
  const isNullLiteral = sqlCursor.token.kind === 'literal' && sqlCursor.token.text === 'null';
  const distinctFrom = readVectorDistance(sqlCursor);
  sqlCursor.repeats = true;
  if (isRow(left) || isRow(distinctFrom)) {
    const distinctItems = (a: Expression, b: Expression): Expression => distinctValues(a, b, negated, location);
    return distinctRows(sqlCursor, { left, right: distinctFrom, negated, location }, distinctItems);
  }
  if (isNullLiteral) return { kind: 'is-null', operand: left, negated: !negated, location };
  return distinctValues(left, distinctFrom, negated, location);
}

function distinctValues(left: Expression, right: Expression, negated: boolean, location: Location): Expression {
  const isNullTest = (operand: Expression): Expression => ({ kind: 'is-null', operand, negated: false, location });
  const equalTest: Expression = { kind: 'binary', op: '=', left, right, location };
  const distinctTruth = (test: Expression): Expression => (negated ? test : { kind: 'not', operand: test, location });
  // oxlint-disable no-thenable -- the word of the language; nobody awaits a branch
  const nullBranches = [
    { when: isNullTest(left), then: distinctTruth(isNullTest(right)) },
    { when: isNullTest(right), then: distinctTruth(isNullTest(left)) },
  ];
  // oxlint-enable no-thenable
  return { kind: 'case', operand: null, branches: nullBranches, otherwise: distinctTruth(equalTest), isTest: true, location };
}

const predicateWords: ReadonlySet<string> = new Set(['IN', 'BETWEEN', 'LIKE', 'ILIKE', 'SIMILAR']);
const refusedPredicates: ReadonlySet<string> = new Set('OVERLAPS CONTAINS PRECEDES SUCCEEDS MEETS'.split(' '));

function startsOperandLexeme(token: Token): boolean {
  return !token.reserved || token.kind === 'literal' || token.key === '(';
}

function readIn(sqlCursor: TokenCursor, operand: Expression, negated: boolean, location: Location): Expression {
  sqlCursor.expect('(');
  if (startsSubquery(sqlCursor)) {
    const inQuery = sqlCursor.subquery();
    sqlCursor.expect(')');
    return { kind: 'in-query', operand, query: inQuery, negated, location };
  }
  const inListItems: Expression[] = [];
  let nullCount = 0;
  if (sqlCursor.accept(')')) return { kind: 'in-list', operand, items: inListItems, negated, location };
  do {
    const { count, text } = sqlCursor.token;
    if (count === undefined) {
      const isNull = sqlCursor.token.kind === 'literal' && text === 'null';
      const inListItem = readExpression(sqlCursor);
      // One NULL says what a hundred thousand say.
      if (isNull && inListItem.kind === 'literal' && nullCount++ > 0 && !isRow(operand)) continue;
      inListItems.push(inListItem);
      if (isRow(operand)) countListed(sqlCursor, operand);
      continue;
    }
    const { location: markerLocation } = sqlCursor;
    inListItems.push({ kind: 'literal', slot: sqlCursor.next().slot, count, location: markerLocation });
  } while (sqlCursor.accept(','));
  sqlCursor.expect(')');
  if (!isRow(operand)) return { kind: 'in-list', operand, items: inListItems, negated, location };
  const anyEqualRow = equalRows(sqlCursor, operand, inListItems, location);
  return negated ? { kind: 'not', operand: anyEqualRow, location } : anyEqualRow;
}

const phoneticCalls: ReadonlySet<string> = new Set(['SOUNDEX', 'METAPHONE', 'COLOGNE']);

function refusePhonetic(sqlCursor: TokenCursor, operand: Expression): void {
  if (operand.kind !== 'call' || !phoneticCalls.has(operand.name)) return;
  throw sqlCursor.error(`${operand.name} is compared with = or != only`, operand.location);
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

function readVectorDistance(sqlCursor: TokenCursor): Expression {
  let leftOperand = readSqlSum(sqlCursor);
  for (;;) {
    const location = sqlCursor.location;
    const namedOperator = acceptOperator(sqlCursor);
    if (namedOperator === null) return leftOperand;
    sqlCursor.countLink();
    const rightOperand = readSqlSum(sqlCursor);
    leftOperand = { kind: 'call', name: namedOperator, arguments: [argument(leftOperand), argument(rightOperand)], location };
  }
}

/** An operator, or OPERATOR(pg_catalog.~). */
function acceptOperator(sqlCursor: TokenCursor): string | null {
  if (namedOperators.has(sqlCursor.key())) return sqlCursor.next().key;
  if (sqlCursor.key() !== 'OPERATOR' || sqlCursor.key(1) !== '(' || sqlCursor.dialect !== 'wide') return null;
  sqlCursor.next();
  sqlCursor.next();
  if (sqlCursor.accept('PG_CATALOG')) sqlCursor.expect('.');
  const operatorName = sqlCursor.key();
  if (!namedOperators.has(operatorName)) throw sqlCursor.expectedError(`one of ${[...namedOperators].join(' ')}`);
  sqlCursor.next();
  sqlCursor.expect(')');
  return operatorName;
}

function readSqlSum(sqlCursor: TokenCursor): Expression {
  let sumSoFar = readSqlProduct(sqlCursor);
  for (let sumSign = sqlCursor.key(); sumSign === '+' || sumSign === '-'; sumSign = sqlCursor.key()) {
    sqlCursor.countLink();
    const location = sqlCursor.location;
    sqlCursor.next();
    sumSoFar = { kind: 'binary', op: sumSign, left: sumSoFar, right: readSqlProduct(sqlCursor), location };
  }
  return sumSoFar;
}

function readSqlProduct(sqlCursor: TokenCursor): Expression {
  let productSoFar = readSqlPower(sqlCursor);
  for (
    let productSign = sqlCursor.key();
    productSign === '*' || productSign === '/' || productSign === '%';
    productSign = sqlCursor.key()
  ) {
    sqlCursor.countLink();
    const location = sqlCursor.location;
    sqlCursor.next();
    productSoFar = { kind: 'binary', op: productSign, left: productSoFar, right: readSqlPower(sqlCursor), location };
  }
  return productSoFar;
}

function readSqlPower(sqlCursor: TokenCursor): Expression {
  let powerBase = readAtTimeZone(sqlCursor);
  while (sqlCursor.key() === '^') {
    sqlCursor.countLink();
    const location = sqlCursor.location;
    const powerOperator = sqlCursor.next().key;
    powerBase = {
      kind: 'call',
      name: powerOperator,
      arguments: [argument(powerBase), argument(readAtTimeZone(sqlCursor))],
      location,
    };
  }
  return powerBase;
}

/** `x AT TIME ZONE zone`, any number of times. */
function readAtTimeZone(sqlCursor: TokenCursor): Expression {
  let zonedOperand = readSignedOperand(sqlCursor);
  while (sqlCursor.key() === 'AT' && sqlCursor.key(1) === 'TIME' && sqlCursor.key(2) === 'ZONE') {
    sqlCursor.wideOnly('AT TIME ZONE');
    sqlCursor.countLink();
    const { location } = sqlCursor;
    for (let i = 0; i < 3; i++) sqlCursor.next();
    zonedOperand = {
      kind: 'call',
      name: 'TIMEZONE',
      arguments: [argument(readSignedOperand(sqlCursor)), argument(zonedOperand)],
      location,
    };
  }
  return zonedOperand;
}

function readSignedOperand(sqlCursor: TokenCursor): Expression {
  const signKey = sqlCursor.key();
  const prefixFunction = prefixOperators.get(signKey);
  if (prefixFunction !== undefined) return readPrefix(sqlCursor, prefixFunction);
  if (signKey !== '-' && signKey !== '+') return readTypeSuffix(sqlCursor, readOperand(sqlCursor), readExpression);
  const location = sqlCursor.location;
  sqlCursor.next();
  return sqlCursor.nest(() => {
    const signedOperand = readSignedOperand(sqlCursor);
    return signKey === '+' ? signedOperand : { kind: 'negate', operand: signedOperand, location };
  });
}

/** An operator before its operand binds looser than a sum. */
function readPrefix(sqlCursor: TokenCursor, name: string): Expression {
  const { location } = sqlCursor;
  sqlCursor.next();
  return sqlCursor.nest(() => ({ kind: 'call', name, arguments: [argument(readSqlSum(sqlCursor))], location }));
}

function readOperand(sqlCursor: TokenCursor): Expression {
  const { token: operandLexeme } = sqlCursor;
  if (operandLexeme.kind === 'literal') {
    const location = sqlCursor.location;
    const { slot, typed: typedLiteral } = sqlCursor.next();
    return { kind: 'literal', slot, location, ...(typedLiteral && { typed: typedLiteral }) };
  }
  if (operandLexeme.key === '(') return readParenthesised(sqlCursor);
  if (operandLexeme.key === 'CASE') return sqlCursor.nest(() => readSqlCase(sqlCursor));
  const opensBracket = sqlCursor.key(1) === '(';
  if (opensBracket && (operandLexeme.key === 'LEFT' || operandLexeme.key === 'RIGHT')) return readCall(sqlCursor);
  if (operandLexeme.reserved) throw sqlCursor.expectedError('an expression');
  // Functions qualified by Postgres' own schemas are those that a bare name finds.
  const isCatalogueSchema = operandLexeme.key === 'PG_CATALOG' || operandLexeme.key === 'INFORMATION_SCHEMA';
  if (isCatalogueSchema && sqlCursor.key(1) === '.' && sqlCursor.key(3) === '(' && sqlCursor.dialect === 'wide') {
    sqlCursor.next();
    sqlCursor.next();
    return readOperand(sqlCursor);
  }
  if (operandLexeme.kind === 'quoted' && opensBracket && sqlCursor.dialect === 'wide') return readCall(sqlCursor);
  if (operandLexeme.kind === 'word') {
    if (operandLexeme.key === 'EXISTS' && opensBracket) return readExists(sqlCursor);
    const typedLiteral = isInstantWord(sqlCursor) ? null : readTypedLiteral(sqlCursor);
    if (typedLiteral) return typedLiteral;
    if (operandLexeme.key === 'ARRAY' && opensBracket && sqlCursor.dialect === 'wide') return readQueryArray(sqlCursor);
    if (operandLexeme.key === 'ROW' && opensBracket && sqlCursor.dialect === 'wide') return readRow(sqlCursor);
    if (opensBracket) return readCall(sqlCursor);
    if (sessionWords.has(operandLexeme.key) && sqlCursor.dialect === 'wide' && sqlCursor.key(1) !== '.') {
      const { location } = sqlCursor;
      return { kind: 'call', name: sqlCursor.next().key, arguments: [], location };
    }
    if (operandLexeme.key === 'INTERVAL' && sqlCursor.peek(1).kind === 'literal') {
      return readIntervalExpression(sqlCursor);
    }
    if (isInstantWord(sqlCursor)) {
      const { location } = sqlCursor;
      sqlCursor.next();
      const { slot, location: instantLocation } = sqlCursor.literal('s', 'an instant in quotes');
      return {
        kind: 'call',
        name: operandLexeme.key,
        arguments: [argument({ kind: 'literal', slot, location: instantLocation })],
        location,
      };
    }
    if (operandLexeme.key === 'LOCALTIMESTAMP' && sqlCursor.dialect === 'wide' && sqlCursor.key(1) !== '.')
      return readCurrent(sqlCursor);
    if (operandLexeme.key === 'CURRENT_TIMESTAMP' || operandLexeme.key === 'CURRENT_DATE') return readCurrent(sqlCursor);
    if (operandLexeme.key === 'LOOKUP' && !sqlCursor.peek(1).reserved && sqlCursor.key(2) === '(') return readLookup(sqlCursor);
    if (operandLexeme.key === 'ARRAY' && sqlCursor.key(1) === '[') return readArray(sqlCursor);
  }
  return readColumn(sqlCursor);
}

/** Functions that are called without brackets. */
const sessionWords: ReadonlySet<string> = new Set(
  'CURRENT_USER SESSION_USER CURRENT_ROLE CURRENT_CATALOG CURRENT_SCHEMA'.split(' '),
);

/** DATE or TIMESTAMP right before a text. */
function isInstantWord(sqlCursor: TokenCursor): boolean {
  const { key } = sqlCursor.token;
  return (key === 'DATE' || key === 'TIMESTAMP') && sqlCursor.peek(1).kind === 'literal';
}

/** The instant of the snapshot, and the day that it is in. */
function readCurrent(sqlCursor: TokenCursor): Expression {
  const { location } = sqlCursor;
  const currentInstant: Expression = { kind: 'now', location };
  const { key: currentWord } = sqlCursor.next();
  if (currentWord === 'CURRENT_TIMESTAMP') return currentInstant;
  return {
    kind: 'call',
    name: currentWord === 'CURRENT_DATE' ? 'DATE' : 'TIMESTAMP',
    arguments: [argument(currentInstant)],
    location,
  };
}

/** INTERVAL 'n unit' or INTERVAL 'n' UNIT. */
export function readIntervalExpression(sqlCursor: TokenCursor): Expression {
  const { location } = sqlCursor;
  const intervalSlot = readInterval(sqlCursor);
  const intervalUnit = sqlCursor.key().toLowerCase().replace(/s$/, '');
  const isUnit = sqlCursor.token.kind === 'word' && intervalUnits.has(intervalUnit);
  if (isUnit) sqlCursor.next();
  return { kind: 'interval', interval: intervalSlot, unit: isUnit ? intervalUnit : null, location };
}

function readParenthesised(sqlCursor: TokenCursor): Expression {
  const location = sqlCursor.location;
  sqlCursor.expect('(');
  if (startsSubquery(sqlCursor)) {
    const scalarQuery = sqlCursor.subquery();
    sqlCursor.expect(')');
    return { kind: 'scalar-query', query: scalarQuery, location };
  }
  const bracketedItems = [readExpression(sqlCursor)];
  while (sqlCursor.accept(',')) bracketedItems.push(readExpression(sqlCursor));
  sqlCursor.expect(')');
  if (bracketedItems.length === 1 && sqlCursor.key() === '.' && sqlCursor.dialect === 'wide') {
    sqlCursor.next();
    return { kind: 'call', name: `.${sqlCursor.name('a field')}`, arguments: [argument(bracketedItems[0]!)], location };
  }
  if (bracketedItems.length === 1) return bracketedItems[0]!;
  const isOverlaps = sqlCursor.key() === 'OVERLAPS' && sqlCursor.dialect === 'wide';
  if (refusedPredicates.has(sqlCursor.key()) && !isOverlaps) throw sqlCursor.notImplemented(sqlCursor.key(), location);
  return { kind: 'row', items: bracketedItems, location };
}

/** ROW(a, b), which is (a, b), but may have one item. */
function readRow(sqlCursor: TokenCursor): Expression {
  const { location } = sqlCursor;
  sqlCursor.next();
  sqlCursor.expect('(');
  const rowItems: Expression[] = [];
  if (sqlCursor.accept(')')) return { kind: 'row', items: rowItems, location };
  do rowItems.push(readExpression(sqlCursor));
  while (sqlCursor.accept(','));
  sqlCursor.expect(')');
  return { kind: 'row', items: rowItems, location };
}

function readExists(sqlCursor: TokenCursor): Expression {
  const { location } = sqlCursor;
  sqlCursor.next();
  sqlCursor.expect('(');
  if (!startsSubquery(sqlCursor)) throw sqlCursor.expectedError('a subquery behind EXISTS');
  const existsQuery = sqlCursor.subquery();
  sqlCursor.expect(')');
  return { kind: 'exists', query: existsQuery, location };
}

function readSqlCase(sqlCursor: TokenCursor): Expression {
  const location = sqlCursor.location;
  sqlCursor.expect('CASE');
  const caseOperand = sqlCursor.key() === 'WHEN' ? null : readExpression(sqlCursor);
  const caseBranches: { when: Expression; then: Expression }[] = [];
  while (sqlCursor.accept('WHEN')) {
    const whenCondition = readExpression(sqlCursor);
    sqlCursor.expect('THEN');
    // oxlint-disable-next-line no-thenable -- the word of the language; nobody awaits a branch
    caseBranches.push({ when: whenCondition, then: readExpression(sqlCursor) });
  }
  if (caseBranches.length === 0) throw sqlCursor.expectedError('WHEN');
  const elseExpression = sqlCursor.accept('ELSE') ? readExpression(sqlCursor) : null;
  sqlCursor.expect('END');
  return { kind: 'case', operand: caseOperand, branches: caseBranches, otherwise: elseExpression, location };
}

/** LOOKUP table(column) -> field. */
function readLookup(sqlCursor: TokenCursor): Expression {
  const location = sqlCursor.location;
  sqlCursor.next();
  const lookupTable: ColumnRef = {
    kind: 'column',
    table: null,
    location: sqlCursor.location,
    name: sqlCursor.name('a lookup table'),
  };
  sqlCursor.expect('(');
  const lookupKey = readColumn(sqlCursor);
  sqlCursor.expect(')');
  sqlCursor.expect('->');
  const lookupField: ColumnRef = { kind: 'column', table: null, location: sqlCursor.location, name: sqlCursor.name('a field') };
  return {
    kind: 'call',
    name: 'LOOKUP',
    arguments: [argument(lookupTable, 'TABLE'), argument(lookupKey, 'KEY'), argument(lookupField, 'FIELD')],
    location,
  };
}

function readArray(sqlCursor: TokenCursor): Extract<Expression, { kind: 'call' }> {
  const location = sqlCursor.location;
  sqlCursor.next();
  sqlCursor.expect('[');
  const arrayItems: FunctionArgument[] = [];
  if (!sqlCursor.accept(']')) {
    do arrayItems.push(argument(readExpression(sqlCursor)));
    while (sqlCursor.accept(','));
    sqlCursor.expect(']');
  }
  return { kind: 'call', name: 'ARRAY', arguments: arrayItems, location };
}

/** ARRAY(SELECT x …): the values of a query of one column, in its order. */
function readQueryArray(sqlCursor: TokenCursor): Expression {
  const { location } = sqlCursor;
  sqlCursor.next();
  sqlCursor.expect('(');
  const arrayQuery = sqlCursor.subquery();
  sqlCursor.expect(')');
  const arrayValue: ColumnRef = { kind: 'column', table: null, name: '#value', location };
  const arrayAggregate: Expression = {
    kind: 'aggregate',
    function: 'array',
    operand: arrayValue,
    second: null,
    distinct: false,
    filter: null,
    location,
  };
  const arraySource = { kind: 'subquery' as const, query: arrayQuery, alias: '#values', columns: [arrayValue.name], location };
  const arraySelect: Select = {
    kind: 'select',
    distinct: false,
    projection: [{ kind: 'expression', expression: arrayAggregate, alias: null, location }],
    from: arraySource,
    where: null,
    groupBy: [],
    window: null,
    having: null,
    rankBy: [],
    compute: [],
    location,
  };
  const wholeArrayQuery = {
    with: [],
    body: arraySelect,
    asOf: null,
    orderBy: [],
    limit: null,
    offset: null,
    after: null,
    facets: [],
    location,
  };
  return {
    kind: 'call',
    name: '_ARRAY',
    arguments: [argument({ kind: 'scalar-query', query: wholeArrayQuery, location })],
    location,
  };
}

const wideFunctions: ReadonlySet<string> = new Set(
  'COALESCE ROW_NUMBER RANK DENSE_RANK NTILE PERCENT_RANK CUME_DIST NTH_VALUE'.split(' '),
);

const expressionReaders = { read: readExpression, readArguments };

function readCall(sqlCursor: TokenCursor): Expression {
  const location = sqlCursor.location;
  const callName = sqlCursor.token.text.toUpperCase();
  if (wideFunctions.has(callName)) sqlCursor.wideOnly(callName);
  const aggregate = aggregateNamed(callName);
  const isAggregate = aggregate !== undefined && sqlCursor.aggregates !== 'functions';
  const takesFrames = windowFunctions.has(callName) || (isAggregate && hasFrames(aggregate));
  if (sqlCursor.aggregates !== 'functions' && takesFrames && isWindowed(sqlCursor))
    return readWindowed(
      sqlCursor,
      isAggregate ? aggregate : (callName.toLowerCase() as WindowFunction),
      location,
      expressionReaders,
    );
  if (sqlCursor.aggregates !== 'functions' && windowFunctions.has(callName) && !isAggregate) {
    throw sqlCursor.error(`${callName} is a window function: OVER (...) stands behind it`, location, 'not-of-this-call');
  }
  const calledExpression = isAggregate
    ? readAggregate(sqlCursor, aggregate, location, readExpression)
    : readFunction(sqlCursor, callName, location);
  if (!isAggregate && (sqlCursor.key() === 'OVER' || sqlCursor.key() === 'FILTER') && sqlCursor.key(1) === '(')
    throw sqlCursor.error(`${callName} is no aggregate: it takes no ${sqlCursor.key()}`, sqlCursor.location, 'not-of-this-call');
  if (sqlCursor.key() === 'OVER' && sqlCursor.key(1) === '(') throw sqlCursor.notImplemented(`${callName} over a window`);
  return calledExpression;
}

function readFunction(sqlCursor: TokenCursor, functionName: string, location: Location): Expression {
  sqlCursor.next();
  if (functionName === 'NOW') {
    sqlCursor.expect('(');
    sqlCursor.expect(')');
    return { kind: 'now', location };
  }
  if (functionName === 'MATCH') return readMatch(sqlCursor, location);
  const specialCall = readSpecialCall(sqlCursor, functionName, location, { read: readExpression, readSide: readVectorDistance });
  if (specialCall) return specialCall;
  return { kind: 'call', name: functionName, arguments: readArguments(sqlCursor, functionName === 'SIMILAR'), location };
}

const writtenModes: ReadonlySet<string> = new Set(matchModes.filter((mode) => mode !== 'ANY'));

/** MATCH(column[, column …], 'text'[, MODE]). */
function readMatch(sqlCursor: TokenCursor, location: Location): Expression {
  sqlCursor.expect('(');
  const matchArguments = [argument(readColumn(sqlCursor))];
  sqlCursor.expect(',');
  while (!sqlCursor.isLiteral('s')) {
    matchArguments.push(argument(readColumn(sqlCursor)));
    sqlCursor.expect(',');
  }
  const matchText = sqlCursor.literal('s', 'the text to match, in quotes');
  matchArguments.push(argument({ kind: 'literal', slot: matchText.slot, location: matchText.location }));
  if (sqlCursor.accept(',')) {
    const matchMode = sqlCursor.key();
    if (!writtenModes.has(matchMode)) throw sqlCursor.expectedError(`one of ${[...writtenModes].join(', ')}`);
    matchArguments.push(argument({ kind: 'column', table: null, name: matchMode, location: sqlCursor.location }, 'MODE'));
    sqlCursor.next();
  }
  sqlCursor.expect(')');
  return { kind: 'call', name: 'MATCH', arguments: matchArguments, location };
}
