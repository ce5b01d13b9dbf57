/**
 * Three-valued evaluation of one expression over single cells: for expressions computed once per statement (constants) or once
 * per dictionary code. Rows go through `kernel-code.ts`, which must agree with this to the last bit.
 */
import { AssertionError, assert, ServiceError } from '../../errors.ts';
import { formatInstant, nanosecondsOf, parseInstant, parseZonedInstant } from '../../log/values/timestamp.ts';
import { type Cell, compareText, I64_MAX, I64_MIN } from '../../log/values/value.ts';
import { intervalNanoseconds } from './interval-literal.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Literal, Location } from '../syntax/statement.ts';
import { type ArithmeticOp, type Bound, type CompareOp, isConstantSet } from './bound-expression.ts';
import { likeMatches, type LikePattern, likeText } from './like.ts';
import { cosine, direction, distance, elapsedNs, foldCase, nanoseconds, type ScalarFunction } from './ranking-functions.ts';
import type { SearchRules } from './search-rules.ts';
import { type Catalogue, countedEvaluator } from './functions/scalar-function.ts';
import { phoneticCode } from './phonetic.ts';

export interface Environment {
  readonly literals: readonly Literal[];
  /** Where a literal stands in this statement's text: a cached tree has the places of another one. */
  readonly locationOf: (slot: number) => Location;
  /** The instant of `now()`, in ns. */
  readonly instant: bigint;
  readonly parameters: readonly Cell[];
  /** The rules by which texts are searched. */
  readonly rules: () => SearchRules;
  readonly catalogue: () => Catalogue;
  /** The values of a long list. */
  readonly valuesOf: (list: Bound) => Pick<CellSet, 'has' | 'hasNull'>;
  /** The pattern of a LIKE whose pattern is a text of the statement. */
  readonly patternOf: (like: Bound, text: string) => LikePattern;
  /** Rows of the subqueries behind IN, as far as they have run. */
  readonly sets: readonly CellSet[];
  /** Results of the other subqueries. */
  readonly results: readonly Cell[];
  /** The one cell that column references read, when there are any. */
  readonly cell: Cell;
}

/** Cells of one comparable type. */
export interface CellSet {
  readonly isEmpty: boolean;
  readonly hasNull: boolean;
  has(cell: Cell): boolean;
}

type BoundOf<Kind extends Bound['kind']> = Extract<Bound, { kind: Kind }>;

export function evaluate(bound: Bound, env: Environment): Cell {
  switch (bound.kind) {
    case 'column':
      return env.cell;
    case 'literal':
      return literalValue(bound, env);
    case 'constant':
      return bound.cell;
    case 'now':
      return env.instant;
    case 'parameter':
      return env.parameters[bound.index]!;
    case 'subquery':
      return env.results[bound.index]!;
    case 'literals':
      throw new AssertionError('values of a list are asked for one by one');
    case 'outer':
      throw new AssertionError('queries that name others are joins by now');
    case 'compare':
      return evaluateCompare(bound, env);
    case 'and':
    case 'or':
      return evaluateConnective(bound, env);
    case 'not': {
      const operandCell = evaluate(bound.operand, env);
      return operandCell === null ? null : !operandCell;
    }
    case 'is-null':
      return evaluate(bound.operand, env) === null;
    case 'between':
      return evaluateBetween(bound, env);
    case 'in':
      return evaluateIn(bound, env);
    case 'in-set':
      return evaluateInSet(bound, env);
    case 'like':
      return evaluateLike(bound, env);
    case 'match':
      return evaluateMatch(bound, env);
    case 'arithmetic':
      return evaluateArithmetic(bound, env);
    case 'negate': {
      const operandCell = evaluate(bound.operand, env);
      if (operandCell === null) return null;
      return bound.type === 'integer' ? exactArithmetic('-', 0n, operandCell) : numberArithmetic('-', 0, Number(operandCell));
    }
    case 'same-folded': {
      const operandValue = evaluate(bound.operand, env);
      const textCell = evaluate(bound.text, env);
      return operandValue === null || textCell === null ? null : foldCase(String(operandValue)) === foldCase(String(textCell));
    }
    case 'function':
      return evaluateScalar(
        bound.name,
        bound.operands.map((operandValue) => evaluate(operandValue, env)),
      );
    case 'call':
      return evaluateCall(
        bound,
        bound.operands.map((operandValue) => evaluate(operandValue, env)),
        env,
      );
    case 'coalesce':
      return evaluateCoalesce(bound, env);
    case 'to-number':
      return exactNumber(evaluate(bound.operand, env));
    case 'lookup':
      return bound.table.value(bound.field, evaluate(bound.operand, env));
    case 'phonetic': {
      const textCell = evaluate(bound.operand, env);
      if (textCell === null) return null;
      assert(typeof textCell === 'string', 'a sound is bound to text');
      return phoneticCode(bound.function, textCell);
    }
    case 'case':
      return evaluateCase(bound, env);
  }
}

function evaluateCompare({ op, left: leftOperand, right: rightOperand }: BoundOf<'compare'>, env: Environment): Cell {
  const left = evaluate(leftOperand, env);
  const right = evaluate(rightOperand, env);
  return left === null || right === null ? null : orderFits(op, compareCells(left, right));
}

/** AND and OR: the first operand that decides, else NULL where one is NULL. */
function evaluateConnective({ kind, operands }: BoundOf<'and' | 'or'>, env: Environment): Cell {
  const deciding = kind === 'or';
  let unknown = false;
  for (const operand of operands) {
    const value = evaluate(operand, env);
    if (value === deciding) return deciding;
    unknown ||= value === null;
  }
  return unknown ? null : !deciding;
}

function evaluateBetween(bound: BoundOf<'between'>, env: Environment): Cell {
  const operand = evaluate(bound.operand, env);
  const low = evaluate(bound.low, env);
  const high = evaluate(bound.high, env);
  const above = operand === null || low === null ? null : compareCells(operand, low) >= 0;
  const below = operand === null || high === null ? null : compareCells(operand, high) <= 0;
  return above === false || below === false ? false : above === null || below === null ? null : true;
}

function evaluateIn(bound: BoundOf<'in'>, env: Environment): Cell {
  const operand = evaluate(bound.operand, env);
  if (operand === null) return null;
  if (isConstantSet(bound)) {
    const values = env.valuesOf(bound);
    return values.has(operand) ? true : values.hasNull ? null : false;
  }
  let unknown = false;
  for (const item of bound.items) {
    const value = evaluate(item, env);
    if (value === null) unknown = true;
    else if (compareCells(operand, value) === 0) return true;
  }
  return unknown ? null : false;
}

function evaluateInSet(bound: BoundOf<'in-set'>, env: Environment): Cell {
  const operand = evaluate(bound.operand, env);
  const set = env.sets[bound.set]!;
  if (set.isEmpty) return false;
  if (operand === null) return null;
  return set.has(operand) ? true : set.hasNull ? null : false;
}

function evaluateLike(bound: BoundOf<'like'>, env: Environment): Cell {
  const text = evaluate(bound.operand, env);
  const pattern = evaluate(bound.pattern, env);
  if (text === null || pattern === null) return null;
  assert(typeof text === 'string' && typeof pattern === 'string', 'LIKE is bound to text');
  const isFixed = bound.pattern.kind === 'parameter';
  return isFixed ? likeText(env.patternOf(bound, pattern), text) : likeMatches(pattern, text, bound.escapes);
}

function evaluateMatch({ operand, query: queryOperand, mode }: BoundOf<'match'>, env: Environment): Cell {
  const text = evaluate(operand, env);
  const query = evaluate(queryOperand, env);
  if (text === null || query === null) return null;
  assert(typeof text === 'string' && typeof query === 'string', 'MATCH is bound to text');
  const matcher = env.rules().matcher(query, mode, operand.kind === 'column' ? operand.name : '');
  return matcher.matches(text, operand.type === 'json');
}

function evaluateArithmetic(bound: BoundOf<'arithmetic'>, env: Environment): Cell {
  const left = evaluate(bound.left, env);
  const right = evaluate(bound.right, env);
  if (left === null || right === null) return null;
  return bound.type === 'number'
    ? numberArithmetic(bound.op, Number(left), Number(right))
    : exactArithmetic(bound.op, left, right);
}

function evaluateCoalesce({ operands, type }: BoundOf<'coalesce'>, env: Environment): Cell {
  for (const operand of operands) {
    const value = evaluate(operand, env);
    if (value !== null) return convertToType(value, type);
  }
  return null;
}

function exactNumber(value: Cell): Cell {
  if (typeof value !== 'bigint') return value;
  if (BigInt(Number(value)) !== value) throw inexactNumber();
  return Number(value);
}

function evaluateCase(bound: BoundOf<'case'>, env: Environment): Cell {
  const operand = bound.operand && evaluate(bound.operand, env);
  for (const branch of bound.branches) {
    const when = evaluate(branch.when, env);
    const taken = bound.operand ? operand !== null && when !== null && compareCells(operand, when) === 0 : when === true;
    if (taken) return convertToType(evaluate(branch.result, env), bound.type);
  }
  return bound.otherwise ? convertToType(evaluate(bound.otherwise, env), bound.type) : null;
}

/** A function's result for these cells. */
function evaluateCall(
  { function: signature, type }: Extract<Bound, { kind: 'call' }>,
  argumentCells: readonly Cell[],
  callEnvironment: Pick<Environment, 'rules' | 'catalogue'>,
): Cell {
  if (signature.takesNull !== true && argumentCells.includes(null)) return null;
  return convertToType(countedEvaluator(signature, callEnvironment)(...argumentCells), type);
}

/** Exact across integer and number; text in codepoint order; false before true. */
export function compareCells(leftCell: Cell, rightCell: Cell): number {
  if (typeof leftCell === 'string' && typeof rightCell === 'string') return compareText(leftCell, rightCell);
  assert(
    leftCell !== null && rightCell !== null && typeof leftCell !== 'object' && typeof rightCell !== 'object',
    'comparable cells',
  );
  return leftCell < rightCell ? -1 : leftCell > rightCell ? 1 : 0;
}

export function integerOverflow(): ServiceError {
  return new ServiceError('REL_INVALID', 'integer overflow: a result does not fit 64 bits', { reason: 'out-of-range' });
}

export function numberOverflow(): ServiceError {
  return new ServiceError('REL_INVALID', 'number overflow: a result is too large for a double', { reason: 'out-of-range' });
}

export function inexactNumber(): ServiceError {
  return new ServiceError(
    'REL_INVALID',
    'an integer beyond 2^53 is no exact number: both sides of a set operation need one type',
  );
}

function orderFits(compareOp: CompareOp, comparisonOrder: number): boolean {
  switch (compareOp) {
    case '=':
      return comparisonOrder === 0;
    case '!=':
      return comparisonOrder !== 0;
    case '<':
      return comparisonOrder < 0;
    case '<=':
      return comparisonOrder <= 0;
    case '>':
      return comparisonOrder > 0;
    case '>=':
      return comparisonOrder >= 0;
  }
}

function evaluateScalar(name: ScalarFunction, scalarOperands: readonly Cell[]): number | null {
  const nonNullCells = scalarOperands.filter((cell) => cell !== null);
  if (name === 'greatest') return nonNullCells.length === 0 ? null : Math.max(...nonNullCells.map(Number));
  if (name === 'known') return nonNullCells.length === 0 ? 0 : Number(nonNullCells[0]);
  if (nonNullCells.length < scalarOperands.length) return null;
  const [firstCell, secondCell] = scalarOperands;
  switch (name) {
    case 'exp':
      return finiteResult(Math.exp(Number(firstCell)));
    case 'abs':
      return Math.abs(Number(firstCell));
    case 'nanoseconds':
      return finiteResult(nanoseconds(Number(firstCell)));
    case 'elapsed':
      return elapsedNs(firstCell as bigint, secondCell as bigint);
    case 'cosine':
      assert(firstCell instanceof Float32Array, 'a cosine is of a vector');
      return cosine(firstCell, 0, firstCell.length, direction(scalarOperands.slice(1).map(Number)));
    case 'distance':
      assert(firstCell instanceof Float32Array, 'a distance is from a vector');
      return distance(firstCell, 0, firstCell.length, scalarOperands.slice(1).map(Number));
  }
}

function finiteResult(doubleResult: number): number {
  if (!Number.isFinite(doubleResult)) throw numberOverflow();
  return doubleResult;
}

function numberArithmetic(op: ArithmeticOp, left: number, right: number): number | null {
  if ((op === '/' || op === '%') && right === 0) return null;
  const arithmeticResult =
    op === '+' ? left + right : op === '-' ? left - right : op === '*' ? left * right : op === '/' ? left / right : left % right;
  return finiteResult(arithmeticResult);
}

function exactArithmetic(op: ArithmeticOp, left: Cell, right: Cell): bigint | null {
  assert(typeof left === 'bigint' && typeof right === 'bigint', 'exact arithmetic is bound to integers');
  if (op === '%' && right === 0n) return null;
  assert(op !== '/', 'division yields a number');
  const exactResult = op === '+' ? left + right : op === '-' ? left - right : op === '*' ? left * right : left % right;
  if (exactResult > I64_MAX || exactResult < I64_MIN) throw integerOverflow();
  return exactResult;
}

function convertToType(evaluatedCell: Cell, type: Bound['type']): Cell {
  return type === 'number' && typeof evaluatedCell === 'bigint' ? Number(evaluatedCell) : evaluatedCell;
}

function literalValue(bound: Extract<Bound, { kind: 'literal' }>, env: Environment): Cell {
  const literalCell = env.literals[bound.slot]!;
  if (literalCell === null || bound.as === 'value') return literalCell;
  if (bound.as === 'instant' && typeof literalCell === 'bigint') return literalCell;
  try {
    if (bound.as === 'basis' && typeof literalCell === 'bigint') return nanosecondsOf(literalCell);
    assert(typeof literalCell === 'string', 'an instant or interval is text');
    if (bound.as === 'interval') return intervalNanoseconds(literalCell);
    if (bound.zoned) return parseZonedInstant(literalCell);
    return bound.as === 'basis' ? parseBasis(literalCell) : parseInstant(typedInstant(literalCell));
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    // Malformed beside a column is a mismatch with its type; AS OF and INTERVAL have a form of their own in the dialect.
    const literalErrorCode = bound.as === 'instant' ? 'REL_TYPE_MISMATCH' : 'REL_PARSE';
    throw errorAt(literalErrorCode, error.message, env.locationOf(bound.slot), error.facts.reason);
  }
}

/** Accepts a space where the ISO form has a T, as people type it. */
function typedInstant(text: string): string {
  return text.trim().replace(/^(\d{4}-\d{2}-\d{2}) (?=\d)/, '$1T');
}

/** Parses the instant of AS OF: +00 is Z; for another offset the error gives the UTC form. */
function parseBasis(text: string): bigint {
  const instantForm = typedInstant(text);
  const zoneOffset = /([+-])(\d{2})(?::?(\d{2}))?$/.exec(instantForm);
  const localInstant = zoneOffset && instantForm.slice(0, zoneOffset.index);
  if (zoneOffset === null || !localInstant!.includes('T')) return parseInstant(instantForm);
  const [, sign, hours, minutes] = zoneOffset;
  if (Number(hours) === 0 && Number(minutes ?? 0) === 0) return parseInstant(`${localInstant!}Z`);
  if (minutes === undefined) return parseInstant(instantForm);
  const zoneOffsetNs = BigInt(Number(hours) * 60 + Number(minutes)) * 60_000_000_000n;
  const utcInstant = parseInstant(`${localInstant!}Z`) - (sign === '+' ? zoneOffsetNs : -zoneOffsetNs);
  throw new ServiceError('REL_INVALID', `timestamps are UTC: write ${formatInstant(utcInstant)} for this offset`);
}

/** An instant that must be there: AS OF NULL means nothing. */
export function asInstant(cell: Cell): bigint {
  if (typeof cell !== 'bigint') throw new ServiceError('REL_INVALID', 'an instant must not be NULL');
  return cell;
}
