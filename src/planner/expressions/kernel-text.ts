/** Self-contained pieces of kernel text: signs, rails and halves put together. */
import type { Vector } from '../../log/values/columns.ts';
import { type Bound, columnsIn, type CompareOp } from './bound-expression.ts';

/** `int`: an exact integer in a double. `code`: a code of the context's interner of the whole expression. */
export type Rep = 'int' | 'num' | 'big' | 'bool' | 'code';

/** A value as code; `ok` is code that is 1 where the value is not NULL, or null where it never is. */
export interface Value {
  readonly code: string;
  readonly ok: string | null;
  readonly rep: Rep;
}

/** Code that is 1 (or true) exactly where a condition is true, and exactly where it is false. NULL is neither. */
export interface Rails {
  readonly isTrue: string;
  readonly isFalse: string;
}

export const never: Rails = { isTrue: '0', isFalse: '0' };

/** The low half is signed: an order between two of them takes `>>> 0`. */
export interface Words {
  readonly high: string;
  readonly low: string;
}

export function compareWords(left: Words, right: Words, op: CompareOp): string {
  const equal = `(${left.low} === ${right.low}) & (${left.high} === ${right.high})`;
  if (op === '=') return `(${equal})`;
  if (op === '!=') return `(1 - (${equal}))`;
  const strict = op.slice(0, 1);
  return `((${left.high} ${strict} ${right.high}) | ((${left.high} === ${right.high}) & (${left.low} >>> 0 ${op} ${right.low} >>> 0)))`;
}

export const opposite: Readonly<Record<CompareOp, CompareOp>> = {
  '=': '!=',
  '!=': '=',
  '<': '>=',
  '<=': '>',
  '>': '<=',
  '>=': '<',
};

export function both(left: string | null, right: string): string;
export function both(left: string | null, right: string | null): string | null;
export function both(left: string | null, right: string | null): string | null {
  if (left === null || right === null) return left ?? right;
  if (left === '0' || right === '0') return '0';
  return `(${left} & ${right})`;
}

export function signOf(op: CompareOp, strict: boolean): string {
  if (op === '=') return strict ? '===' : '==';
  if (op === '!=') return strict ? '!==' : '!=';
  return op;
}

export function isTextual(bound: Bound): boolean {
  return bound.type === 'string' || bound.type === 'json';
}

export function touchesText(bound: Bound, columns: readonly Vector[]): boolean {
  for (const index of columnsIn(bound)) {
    const kind = columns[index]!.kind;
    if (kind === 'text' || kind === 'dict') return true;
  }
  return false;
}

export function resultsOf({ branches, otherwise }: Extract<Bound, { kind: 'case' }>): readonly Bound[] {
  return [...branches.map(({ result }) => result), ...(otherwise ? [otherwise] : [])];
}

/** A value as an evaluator takes it. */
export function cellOf({ code, rep }: Value): string {
  return rep === 'int' ? `BigInt(${code})` : rep === 'bool' ? `(${code} === 1)` : code;
}

/** One side of a comparison: a number-like value, or text as bytes (heap, start, end) and as a string. */
export interface Operand {
  readonly bound: Bound;
  readonly ok: string | null;
  readonly value: Value | null;
  readonly bytes: string | null;
  readonly string: string | null;
}

/** The form in which a function's results go on. */
export function repOf({ type, function: signature }: Extract<Bound, { kind: 'call' }>): Rep {
  if (type === 'boolean') return 'bool';
  if (type === 'number') return 'num';
  return signature.small === true ? 'int' : 'big';
}

/** A cell that may be null as a value of that form. */
export function scalarOf(cell: string, rep: Rep): string {
  if (rep === 'bool') return `(${cell} === true ? 1 : 0)`;
  if (rep === 'big') return `(${cell} ?? 0n)`;
  return rep === 'int' ? `Number(${cell} ?? 0n)` : `(${cell} ?? 0)`;
}
