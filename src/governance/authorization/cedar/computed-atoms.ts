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
  readonly #atomExpr: Expr;
  readonly #atomColumnTypes: readonly ColumnType[];
  readonly #numericComparison: { readonly op: Comparison; readonly left: Expr; readonly right: Expr } | null;

  constructor(atom: Expr, typeOf: (column: string) => ColumnType) {
    this.#atomExpr = atom;
    this.columns = columnsOf(atom);
    this.#atomColumnTypes = this.columns.map(typeOf);
    this.#numericComparison = numericComparison(atom);
  }

  statesOf(label: number): Uint8Array {
    return Uint8Array.of(label);
  }

  classify(vectors: readonly Vector[], rows: Rows, shift: number, classesOut: Int32Array): void {
    const { selection, first, count } = rows;
    let row = 0;
    const cell = (name: string): Value | undefined => {
      const at = this.columns.indexOf(name);
      return cellAt(vectors[at]!, row, this.#atomColumnTypes[at]!);
    };
    if (this.#numericComparison === null) {
      for (let k = 0; k < count; k++) {
        row = selection === null ? first + k : selection[k]!;
        classesOut[k]! |= stateOf(this.#atomExpr, cell) << shift;
      }
      return;
    }
    const { op, left, right } = this.#numericComparison;
    const operandFlags = new Uint8Array(count);
    const leftNumbers = this.#operandNumbers(left, vectors, rows, operandFlags);
    const rightNumbers = this.#operandNumbers(right, vectors, rows, operandFlags);
    for (let k = 0; k < count; k++) {
      let atomState: number;
      if (operandFlags[k] === 0) atomState = comparisonHolds(op, leftNumbers[k]!, rightNumbers[k]!) ? IS_TRUE : IS_FALSE;
      else if ((operandFlags[k]! & ABSENT) !== 0) atomState = ERRS;
      else {
        row = selection === null ? first + k : selection[k]!;
        atomState = stateOf(this.#atomExpr, cell);
      }
      classesOut[k]! |= atomState << shift;
    }
  }

  #operandNumbers(expr: Expr, vectors: readonly Vector[], rows: Rows, operandFlags: Uint8Array): Float64Array {
    const operandNumbers = new Float64Array(rows.count);
    switch (expr.op) {
      case 'value':
        return operandNumbers.fill(Number(expr.value instanceof Instant ? expr.value.ms : (expr.value as bigint)));
      case 'column':
        loadColumnNumbers(vectors[this.columns.indexOf(expr.name)]!, expr.type, rows, operandNumbers, operandFlags);
        return operandNumbers;
      case 'negate': {
        const negatedNumbers = this.#operandNumbers(expr.arg, vectors, rows, operandFlags);
        for (let k = 0; k < operandNumbers.length; k++) operandNumbers[k] = -negatedNumbers[k]!;
        return operandNumbers;
      }
      case '+':
      case '-':
      case '*': {
        const a = this.#operandNumbers(expr.left, vectors, rows, operandFlags);
        const b = this.#operandNumbers(expr.right, vectors, rows, operandFlags);
        const { op } = expr;
        for (let k = 0; k < operandNumbers.length; k++) {
          const arithmeticResult = op === '+' ? a[k]! + b[k]! : op === '-' ? a[k]! - b[k]! : a[k]! * b[k]!;
          // Rounding never crosses 2^53, so a result below it is exact, and above it nothing is sure.
          if (!(arithmeticResult <= Number.MAX_SAFE_INTEGER && arithmeticResult >= Number.MIN_SAFE_INTEGER))
            operandFlags[k]! |= INEXACT;
          operandNumbers[k] = arithmeticResult;
        }
        return operandNumbers;
      }
      default:
        return operandNumbers;
    }
  }
}

function comparisonHolds(op: Comparison, a: number, b: number): boolean {
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
      const integers = isArithmeticExpr(left) && isArithmeticExpr(right);
      return integers || (isInstantExpr(left) && isInstantExpr(right)) ? { op, left, right } : null;
    }
    default:
      return null;
  }
}

function isArithmeticExpr(expr: Expr): boolean {
  switch (expr.op) {
    case 'value':
      return typeof expr.value === 'bigint' && Number.isSafeInteger(Number(expr.value));
    case 'column':
      return expr.type === 'integer';
    case 'negate':
      return isArithmeticExpr(expr.arg);
    case '+':
    case '-':
    case '*':
      return isArithmeticExpr(expr.left) && isArithmeticExpr(expr.right);
    default:
      return false;
  }
}

function isInstantExpr(expr: Expr): boolean {
  if (expr.op === 'column') return expr.type === 'timestamp';
  return expr.op === 'value' && expr.value instanceof Instant && Number.isSafeInteger(Number(expr.value.ms));
}

function loadColumnNumbers(
  vector: Vector,
  type: ColumnType,
  { selection, first, count }: Rows,
  columnNumbers: Float64Array,
  operandFlags: Uint8Array,
): void {
  if (vector.kind === 'null') {
    for (let k = 0; k < count; k++) operandFlags[k]! |= ABSENT;
    return;
  }
  const { nulls } = vector;
  const cellWords = vector.kind === 'i64' ? wordsOf(vector.values) : null;
  const numberCells = vector.kind === 'i32' || vector.kind === 'f64' ? vector.values : null;
  for (let k = 0; k < count; k++) {
    const row = selection === null ? first + k : selection[k]!;
    if (nulls !== null && nulls[row] === 1) {
      operandFlags[k]! |= ABSENT;
      continue;
    }
    let cellNumber: number;
    if (numberCells !== null) cellNumber = numberCells[row]!;
    else {
      const [low, high] = [cellWords![2 * row]!, cellWords![2 * row + 1]!];
      cellNumber = type === 'timestamp' ? millisecondsOf(low, high) : high * 4_294_967_296 + (low >>> 0);
    }
    if (!(cellNumber <= Number.MAX_SAFE_INTEGER && cellNumber >= Number.MIN_SAFE_INTEGER)) operandFlags[k]! |= INEXACT;
    columnNumbers[k] = cellNumber;
  }
}
