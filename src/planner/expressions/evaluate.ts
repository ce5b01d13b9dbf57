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
      const value = evaluate(bound.operand, env);
      return value === null ? null : !value;
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
      const value = evaluate(bound.operand, env);
      if (value === null) return null;
      return bound.type === 'integer' ? exact('-', 0n, value) : numberArithmetic('-', 0, Number(value));
    }
    case 'same-folded': {
      const operand = evaluate(bound.operand, env);
      const text = evaluate(bound.text, env);
      return operand === null || text === null ? null : foldCase(String(operand)) === foldCase(String(text));
    }
    case 'function':
      return scalar(
        bound.name,
        bound.operands.map((operand) => evaluate(operand, env)),
      );
    case 'call':
      return evaluateCall(
        bound,
        bound.operands.map((operand) => evaluate(operand, env)),
        env,
      );
    case 'coalesce':
      return evaluateCoalesce(bound, env);
    case 'to-number':
      return exactNumber(evaluate(bound.operand, env));
    case 'lookup':
      return bound.table.value(bound.field, evaluate(bound.operand, env));
    case 'phonetic': {
      const text = evaluate(bound.operand, env);
      if (text === null) return null;
      assert(typeof text === 'string', 'a sound is bound to text');
      return phoneticCode(bound.function, text);
    }
    case 'case':
      return evaluateCase(bound, env);
  }
}

function evaluateCompare({ op, left: leftOperand, right: rightOperand }: BoundOf<'compare'>, env: Environment): Cell {
  const left = evaluate(leftOperand, env);
  const right = evaluate(rightOperand, env);
  return left === null || right === null ? null : holds(op, compareCells(left, right));
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
  return bound.type === 'number' ? numberArithmetic(bound.op, Number(left), Number(right)) : exact(bound.op, left, right);
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
  cells: readonly Cell[],
  within: Pick<Environment, 'rules' | 'catalogue'>,
): Cell {
  if (signature.takesNull !== true && cells.includes(null)) return null;
  return convertToType(countedEvaluator(signature, within)(...cells), type);
}

/** Exact across integer and number; text in codepoint order; false before true. */
export function compareCells(a: Cell, b: Cell): number {
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b);
  assert(a !== null && b !== null && typeof a !== 'object' && typeof b !== 'object', 'comparable cells');
  return a < b ? -1 : a > b ? 1 : 0;
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

function holds(op: CompareOp, order: number): boolean {
  switch (op) {
    case '=':
      return order === 0;
    case '!=':
      return order !== 0;
    case '<':
      return order < 0;
    case '<=':
      return order <= 0;
    case '>':
      return order > 0;
    case '>=':
      return order >= 0;
  }
}

function scalar(name: ScalarFunction, cells: readonly Cell[]): number | null {
  const known = cells.filter((cell) => cell !== null);
  if (name === 'greatest') return known.length === 0 ? null : Math.max(...known.map(Number));
  if (name === 'known') return known.length === 0 ? 0 : Number(known[0]);
  if (known.length < cells.length) return null;
  const [first, second] = cells;
  switch (name) {
    case 'exp':
      return finite(Math.exp(Number(first)));
    case 'abs':
      return Math.abs(Number(first));
    case 'nanoseconds':
      return finite(nanoseconds(Number(first)));
    case 'elapsed':
      return elapsedNs(first as bigint, second as bigint);
    case 'cosine':
      assert(first instanceof Float32Array, 'a cosine is of a vector');
      return cosine(first, 0, first.length, direction(cells.slice(1).map(Number)));
    case 'distance':
      assert(first instanceof Float32Array, 'a distance is from a vector');
      return distance(first, 0, first.length, cells.slice(1).map(Number));
  }
}

function finite(result: number): number {
  if (!Number.isFinite(result)) throw numberOverflow();
  return result;
}

function numberArithmetic(op: ArithmeticOp, left: number, right: number): number | null {
  if ((op === '/' || op === '%') && right === 0) return null;
  const result =
    op === '+' ? left + right : op === '-' ? left - right : op === '*' ? left * right : op === '/' ? left / right : left % right;
  return finite(result);
}

function exact(op: ArithmeticOp, left: Cell, right: Cell): bigint | null {
  assert(typeof left === 'bigint' && typeof right === 'bigint', 'exact arithmetic is bound to integers');
  if (op === '%' && right === 0n) return null;
  assert(op !== '/', 'division yields a number');
  const result = op === '+' ? left + right : op === '-' ? left - right : op === '*' ? left * right : left % right;
  if (result > I64_MAX || result < I64_MIN) throw integerOverflow();
  return result;
}

function convertToType(value: Cell, type: Bound['type']): Cell {
  return type === 'number' && typeof value === 'bigint' ? Number(value) : value;
}

function literalValue(bound: Extract<Bound, { kind: 'literal' }>, env: Environment): Cell {
  const literal = env.literals[bound.slot]!;
  if (literal === null || bound.as === 'value') return literal;
  if (bound.as === 'instant' && typeof literal === 'bigint') return literal;
  try {
    if (bound.as === 'basis' && typeof literal === 'bigint') return nanosecondsOf(literal);
    assert(typeof literal === 'string', 'an instant or interval is text');
    if (bound.as === 'interval') return intervalNanoseconds(literal);
    if (bound.zoned) return parseZonedInstant(literal);
    return bound.as === 'basis' ? parseBasis(literal) : parseInstant(typedInstant(literal));
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    // Malformed beside a column is a mismatch with its type; AS OF and INTERVAL have a form of their own in the dialect.
    const code = bound.as === 'instant' ? 'REL_TYPE_MISMATCH' : 'REL_PARSE';
    throw errorAt(code, error.message, env.locationOf(bound.slot), error.facts.reason);
  }
}

/** Accepts a space where the ISO form has a T, as people type it. */
function typedInstant(text: string): string {
  return text.trim().replace(/^(\d{4}-\d{2}-\d{2}) (?=\d)/, '$1T');
}

/** Parses the instant of AS OF: +00 is Z; for another offset the error gives the UTC form. */
function parseBasis(text: string): bigint {
  const form = typedInstant(text);
  const offset = /([+-])(\d{2})(?::?(\d{2}))?$/.exec(form);
  const local = offset && form.slice(0, offset.index);
  if (offset === null || !local!.includes('T')) return parseInstant(form);
  const [, sign, hours, minutes] = offset;
  if (Number(hours) === 0 && Number(minutes ?? 0) === 0) return parseInstant(`${local!}Z`);
  if (minutes === undefined) return parseInstant(form);
  const away = BigInt(Number(hours) * 60 + Number(minutes)) * 60_000_000_000n;
  const utc = parseInstant(`${local!}Z`) - (sign === '+' ? away : -away);
  throw new ServiceError('REL_INVALID', `timestamps are UTC: write ${formatInstant(utc)} for this offset`);
}

/** An instant that must be there: AS OF NULL means nothing. */
export function asInstant(cell: Cell): bigint {
  if (typeof cell !== 'bigint') throw new ServiceError('REL_INVALID', 'an instant must not be NULL');
  return cell;
}
