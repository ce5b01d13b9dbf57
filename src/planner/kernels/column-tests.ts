/**
 * Conditions that kernels judge: one column against constants. A constant is translated once per layout, into a range of values
 * or a set of codes; where neither expresses the condition exactly, it is left to generated code.
 */
import type { Dictionary, Vector } from '../../log/values/columns.ts';
import {
  type Bound,
  type BoundColumn,
  childrenOf,
  columnsIn,
  type CompareOp,
  mayRaise,
  partsOf,
} from '../expressions/bound-expression.ts';
import type { KernelContext, Parameter } from '../expressions/kernel-context.ts';

/** A necessary and sufficient condition on one column. */
export interface ColumnTest {
  readonly column: number;
  readonly bound: Bound;
}

/** Rows with a value from `least` to `most`, or all other rows with a value. Nothing lies within where `least > most`. */
export interface Range<T extends number | bigint> {
  readonly least: T;
  readonly most: T;
  readonly outside: boolean;
}

/** The condition of a test on the values of a vector. NULL satisfies `isNull` alone. */
export type Demand =
  | { readonly kind: 'isNull' }
  | { readonly kind: 'isNotNull' }
  | ({ readonly kind: 'i32' } & Range<number>)
  | ({ readonly kind: 'f64' } & Range<number>)
  | ({ readonly kind: 'i64' } & Range<bigint>)
  | { readonly kind: 'set'; readonly items: readonly number[]; readonly outside: boolean }
  | { readonly kind: 'codes'; readonly table: Uint8Array };

export interface SplitPredicate {
  readonly tests: readonly ColumnTest[];
  /** The condition that remains for generated code; null: nothing. */
  readonly rest: Bound | null;
}

const setMax = 16;
/** Texts that are judged in one turn, and parts of conditions that are. */
const codesMax = 4_096;
const judgedMax = 16_384;
const i32Least = -2_147_483_648;
const i32Most = 2_147_483_647;
const i64Least = -(2n ** 63n);
const i64Most = 2n ** 63n - 1n;

export function splitPredicate(predicate: Bound): SplitPredicate {
  const conjuncts = predicate.kind === 'and' ? predicate.operands : [predicate];
  const tests: ColumnTest[] = [];
  const rest: Bound[] = [];
  for (const bound of conjuncts) {
    const column = testedColumn(bound);
    if (column === null) rest.push(bound);
    else tests.push({ column: column.index, bound });
  }
  const [first] = rest;
  return { tests, rest: rest.length > 1 ? { kind: 'and', operands: rest, type: 'boolean' } : (first ?? null) };
}

/** The column of a condition that has the form of a test. */
function testedColumn(bound: Bound): BoundColumn | null {
  const inner = bound.kind === 'not' ? bound.operand : bound;
  if (inner.kind === 'is-null') return inner.operand.kind === 'column' ? inner.operand : null;
  const column = numericColumn(bound);
  if (column) return column;
  // A predicate over a single text column is judged once per distinct text.
  if (mayRaise(bound) || bound.type !== 'boolean' || columnsIn(bound).size !== 1) return null;
  const text = columnOf(bound);
  return text?.type === 'string' ? text : null;
}

function numericColumn(bound: Bound): BoundColumn | null {
  const isNumber = (each: Bound): each is BoundColumn =>
    each.kind === 'column' && (each.type === 'integer' || each.type === 'number' || each.type === 'timestamp');
  const isConstant = (each: Bound): boolean => each.kind === 'parameter';
  switch (bound.kind) {
    case 'compare':
      if (isNumber(bound.left) && isConstant(bound.right)) return bound.left;
      return isNumber(bound.right) && isConstant(bound.left) ? bound.right : null;
    case 'between':
      return isNumber(bound.operand) && isConstant(bound.low) && isConstant(bound.high) ? bound.operand : null;
    case 'in':
      return isNumber(bound.operand) && bound.items.length <= setMax && bound.items.every(isConstant) ? bound.operand : null;
    default:
      return null;
  }
}

function columnOf(bound: Bound): BoundColumn | null {
  let boundColumn: BoundColumn | null = null;
  const look = (each: Bound): void => {
    if (each.kind === 'column') boundColumn ??= each;
  };
  visit(bound, look);
  return boundColumn;
}

function visit(bound: Bound, look: (each: Bound) => void): void {
  look(bound);
  for (const child of childrenOf(bound)) visit(child, look);
}

/** Translates the test into a demand on a vector; null where kernels can't express it. */
export function demandOf({ bound }: ColumnTest, vector: Vector, context: KernelContext): Demand | null {
  if (bound.kind === 'is-null') return { kind: 'isNull' };
  if (bound.kind === 'not' && bound.operand.kind === 'is-null') return { kind: 'isNotNull' };
  if (vector.kind === 'dict') return demandOfCodes(bound, vector.dictionary, context);
  if (vector.kind !== 'i32' && vector.kind !== 'f64' && vector.kind !== 'i64') return null;
  const parameter = (each: Bound): Parameter | null => (each.kind === 'parameter' ? context.parameters[each.index]! : null);
  switch (bound.kind) {
    case 'compare': {
      const turned = bound.left.kind !== 'column';
      const column = turned ? bound.right : bound.left;
      const value = parameter(turned ? bound.left : bound.right);
      return value && range(vector.kind, column, turned ? mirrored[bound.op] : bound.op, value);
    }
    case 'between': {
      const [low, high] = [parameter(bound.low), parameter(bound.high)];
      const least = low && range(vector.kind, bound.operand, '>=', low);
      const most = high && range(vector.kind, bound.operand, '<=', high);
      return least && most && both(least, most);
    }
    case 'in': {
      if (vector.kind !== 'i32') return null;
      const items: number[] = [];
      for (const item of bound.items) {
        const demand = range('i32', bound.operand, '=', parameter(item)!);
        if (demand?.kind !== 'i32') return null;
        if (demand.least === demand.most) items.push(demand.least);
      }
      return { kind: 'set', items, outside: false };
    }
    default:
      return null;
  }
}

const mirrored: Readonly<Record<CompareOp, CompareOp>> = { '=': '=', '!=': '!=', '<': '>', '<=': '>=', '>': '<', '>=': '<=' };

/** Both of two demands in one range, where they are ranges of one kind. */
export function both(a: Demand, b: Demand): Demand | null {
  if ((a.kind === 'i32' || a.kind === 'f64') && b.kind === a.kind && !a.outside && !b.outside)
    return { kind: a.kind, least: Math.max(a.least, b.least), most: Math.min(a.most, b.most), outside: false };
  if (a.kind === 'i64' && b.kind === 'i64' && !a.outside && !b.outside) {
    const least = a.least > b.least ? a.least : b.least;
    return { kind: 'i64', least, most: a.most < b.most ? a.most : b.most, outside: false };
  }
  return null;
}

function range(layout: 'i32' | 'f64' | 'i64', column: Bound, op: CompareOp, { letter, cell }: Parameter): Demand | null {
  const outside = op === '!=';
  // Nothing compares with NULL.
  if (letter === 'z') return { kind: 'i32', least: 1, most: 0, outside: false };
  if (typeof cell !== 'number' && typeof cell !== 'bigint') return null;
  if (layout === 'f64') {
    // An integer that no double equals lies between two of them.
    if (letter === 'b' || Number.isNaN(Number(cell))) return null;
    return { kind: 'f64', ...doubles(outside ? '=' : op, Number(cell)), outside };
  }
  if (typeof cell === 'number' && !Number.isFinite(cell)) return null;
  const whole = integers(outside ? '=' : op, cell);
  if (layout === 'i32') {
    const least = whole.least < i32Least ? i32Least : whole.least;
    const most = whole.most > i32Most ? i32Most : whole.most;
    if (least > most) return { kind: 'i32', least: 1, most: 0, outside };
    return { kind: 'i32', least: Number(least), most: Number(most), outside };
  }
  // Beside a number such a column is read as doubles, which rounds.
  return column.type === 'number' ? null : { kind: 'i64', ...whole, outside };
}

function doubles(op: CompareOp, value: number): { least: number; most: number } {
  switch (op) {
    case '<':
      return { least: Number.NEGATIVE_INFINITY, most: nextBelow(value) };
    case '<=':
      return { least: Number.NEGATIVE_INFINITY, most: value };
    case '>':
      return { least: -nextBelow(-value), most: Number.POSITIVE_INFINITY };
    case '>=':
      return { least: value, most: Number.POSITIVE_INFINITY };
    default:
      return { least: value, most: value };
  }
}

const bits = new BigInt64Array(1);
const double = new Float64Array(bits.buffer);

/** The greatest double below another one. */
function nextBelow(value: number): number {
  if (value === 0) return -Number.MIN_VALUE;
  double[0] = value;
  bits[0]! += value > 0 ? -1n : 1n;
  // Below the least double there is none: a NaN, which nothing is within.
  return double[0];
}

/** Whole numbers of 64 bits that compare so with a value, exactly. */
function integers(op: CompareOp, value: number | bigint): { least: bigint; most: bigint } {
  const down = typeof value === 'bigint' ? value : BigInt(Math.floor(value));
  const up = typeof value === 'bigint' ? value : BigInt(Math.ceil(value));
  const clampToInt64 = (least: bigint, most: bigint): { least: bigint; most: bigint } => {
    if (least > i64Most || most < i64Least) return { least: 1n, most: 0n };
    return { least: least < i64Least ? i64Least : least, most: most > i64Most ? i64Most : most };
  };
  switch (op) {
    case '<':
      return clampToInt64(i64Least, up - 1n);
    case '<=':
      return clampToInt64(i64Least, down);
    case '>':
      return clampToInt64(down + 1n, i64Most);
    case '>=':
      return clampToInt64(up, i64Most);
    default:
      return clampToInt64(up, down);
  }
}

function demandOfCodes(bound: Bound, dictionary: Dictionary, context: KernelContext): Demand | null {
  const wanted = textsOf(bound, context);
  if (wanted) {
    const items = wanted.texts.map((text) => dictionary.codeOf(text)).filter((code) => code >= 0);
    return { kind: 'set', items, outside: wanted.outside };
  }
  if (dictionary.size > codesMax || dictionary.size * partsOf(bound) > judgedMax) return null;
  const table = context.truthTable(bound, dictionary, dictionary.size);
  // A condition that holds for NULL is not one on values alone.
  if ((table.ofNull & 1) === 1) return null;
  for (let code = 0; code < table.bytes.length; code++) if (table.bytes[code] === 0) table.fill(code);
  return { kind: 'codes', table: table.bytes };
}

/** The few texts that a column must equal, or must not. */
function textsOf(bound: Bound, context: KernelContext): { texts: string[]; outside: boolean } | null {
  const textOf = (each: Bound): string | null | undefined => {
    if (each.kind !== 'parameter') return undefined;
    const { cell } = context.parameters[each.index]!;
    return cell === null || typeof cell === 'string' ? cell : undefined;
  };
  if (bound.kind === 'compare' && (bound.op === '=' || bound.op === '!=')) {
    const other = bound.left.kind === 'column' ? bound.right : bound.right.kind === 'column' ? bound.left : null;
    const text = other && textOf(other);
    return typeof text === 'string' ? { texts: [text], outside: bound.op === '!=' } : null;
  }
  if (bound.kind !== 'in' || bound.operand.kind !== 'column' || bound.items.length > setMax) return null;
  const texts = bound.items.map(textOf);
  return texts.includes(undefined) ? null : { texts: texts.filter((text) => typeof text === 'string'), outside: false };
}
