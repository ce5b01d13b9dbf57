/**
 * Atoms over several columns, or over arithmetic: their value in a row is their class. Comparisons of integers are done a
 * block at a time in doubles; a row where one of them would not be exact, and whatever else, is evaluated as Cedar would.
 */
import type { Vector } from '../../../log/values/columns.ts';
import type { ColumnType } from '../../../log/values/value.ts';
import { cellAt, millisecondsOf, wordsOf } from './cells.ts';
import { ERRS, IS_FALSE, IS_TRUE, stateOf, type Feature, type Rows } from './features.ts';
import { columnsOf, type Expr } from './syntax.ts';
import { Instant, type Value } from './values.ts';

type Comparison = '==' | '!=' | '<' | '<=' | '>' | '>=';

/** Flags of a row's arithmetic, beside its number. */
const ABSENT = 1;
const INEXACT = 2;

export class ComputedAtom implements Feature {
  readonly columns: readonly string[];
  readonly size = 3;
  readonly #atom: Expr;
  readonly #types: readonly ColumnType[];
  readonly #comparison: { readonly op: Comparison; readonly left: Expr; readonly right: Expr } | null;

  constructor(atom: Expr, typeOf: (column: string) => ColumnType) {
    this.#atom = atom;
    this.columns = columnsOf(atom);
    this.#types = this.columns.map(typeOf);
    this.#comparison = numericComparison(atom);
  }

  statesOf(label: number): Uint8Array {
    return Uint8Array.of(label);
  }

  classify(vectors: readonly Vector[], rows: Rows, shift: number, out: Int32Array): void {
    const { selection, first, count } = rows;
    let row = 0;
    const cell = (name: string): Value | undefined => {
      const at = this.columns.indexOf(name);
      return cellAt(vectors[at]!, row, this.#types[at]!);
    };
    if (this.#comparison === null) {
      for (let k = 0; k < count; k++) {
        row = selection === null ? first + k : selection[k]!;
        out[k]! |= stateOf(this.#atom, cell) << shift;
      }
      return;
    }
    const { op, left, right } = this.#comparison;
    const flags = new Uint8Array(count);
    const a = this.#numbers(left, vectors, rows, flags);
    const b = this.#numbers(right, vectors, rows, flags);
    for (let k = 0; k < count; k++) {
      let state: number;
      if (flags[k] === 0) state = holds(op, a[k]!, b[k]!) ? IS_TRUE : IS_FALSE;
      else if ((flags[k]! & ABSENT) !== 0) state = ERRS;
      else {
        row = selection === null ? first + k : selection[k]!;
        state = stateOf(this.#atom, cell);
      }
      out[k]! |= state << shift;
    }
  }

  #numbers(expr: Expr, vectors: readonly Vector[], rows: Rows, flags: Uint8Array): Float64Array {
    const result = new Float64Array(rows.count);
    switch (expr.op) {
      case 'value':
        return result.fill(Number(expr.value instanceof Instant ? expr.value.ms : (expr.value as bigint)));
      case 'column':
        loadNumbers(vectors[this.columns.indexOf(expr.name)]!, expr.type, rows, result, flags);
        return result;
      case 'negate': {
        const arg = this.#numbers(expr.arg, vectors, rows, flags);
        for (let k = 0; k < result.length; k++) result[k] = -arg[k]!;
        return result;
      }
      case '+':
      case '-':
      case '*': {
        const a = this.#numbers(expr.left, vectors, rows, flags);
        const b = this.#numbers(expr.right, vectors, rows, flags);
        const { op } = expr;
        for (let k = 0; k < result.length; k++) {
          const of = op === '+' ? a[k]! + b[k]! : op === '-' ? a[k]! - b[k]! : a[k]! * b[k]!;
          // Rounding never crosses 2^53, so a result below it is exact, and above it nothing is sure.
          if (!(of <= Number.MAX_SAFE_INTEGER && of >= Number.MIN_SAFE_INTEGER)) flags[k]! |= INEXACT;
          result[k] = of;
        }
        return result;
      }
      default:
        return result;
    }
  }
}

function holds(op: Comparison, a: number, b: number): boolean {
  switch (op) {
    case '==':
      return a === b;
    case '!=':
      return a !== b;
    case '<':
      return a < b;
    case '<=':
      return a <= b;
    case '>':
      return a > b;
    case '>=':
      return a >= b;
  }
}

/** Null for what is no comparison of two integers or two instants. */
function numericComparison(atom: Expr): { op: Comparison; left: Expr; right: Expr } | null {
  switch (atom.op) {
    case '==':
    case '!=':
    case '<':
    case '<=':
    case '>':
    case '>=': {
      const { op, left, right } = atom;
      const integers = isArithmetic(left) && isArithmetic(right);
      return integers || (isInstant(left) && isInstant(right)) ? { op, left, right } : null;
    }
    default:
      return null;
  }
}

function isArithmetic(expr: Expr): boolean {
  switch (expr.op) {
    case 'value':
      return typeof expr.value === 'bigint' && Number.isSafeInteger(Number(expr.value));
    case 'column':
      return expr.type === 'integer';
    case 'negate':
      return isArithmetic(expr.arg);
    case '+':
    case '-':
    case '*':
      return isArithmetic(expr.left) && isArithmetic(expr.right);
    default:
      return false;
  }
}

function isInstant(expr: Expr): boolean {
  if (expr.op === 'column') return expr.type === 'timestamp';
  return expr.op === 'value' && expr.value instanceof Instant && Number.isSafeInteger(Number(expr.value.ms));
}

function loadNumbers(
  vector: Vector,
  type: ColumnType,
  { selection, first, count }: Rows,
  result: Float64Array,
  flags: Uint8Array,
): void {
  if (vector.kind === 'null') {
    for (let k = 0; k < count; k++) flags[k]! |= ABSENT;
    return;
  }
  const { nulls } = vector;
  const words = vector.kind === 'i64' ? wordsOf(vector.values) : null;
  const values = vector.kind === 'i32' || vector.kind === 'f64' ? vector.values : null;
  for (let k = 0; k < count; k++) {
    const row = selection === null ? first + k : selection[k]!;
    if (nulls !== null && nulls[row] === 1) {
      flags[k]! |= ABSENT;
      continue;
    }
    let of: number;
    if (values !== null) of = values[row]!;
    else {
      const [low, high] = [words![2 * row]!, words![2 * row + 1]!];
      of = type === 'timestamp' ? millisecondsOf(low, high) : high * 4_294_967_296 + (low >>> 0);
    }
    if (!(of <= Number.MAX_SAFE_INTEGER && of >= Number.MIN_SAFE_INTEGER)) flags[k]! |= INEXACT;
    result[k] = of;
  }
}
