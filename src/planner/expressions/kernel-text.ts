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

export function compareWords(leftWords: Words, rightWords: Words, op: CompareOp): string {
  const equalWords = `(${leftWords.low} === ${rightWords.low}) & (${leftWords.high} === ${rightWords.high})`;
  if (op === '=') return `(${equalWords})`;
  if (op === '!=') return `(1 - (${equalWords}))`;
  const strictSign = op.slice(0, 1);
  return `((${leftWords.high} ${strictSign} ${rightWords.high}) | ((${leftWords.high} === ${rightWords.high}) & (${leftWords.low} >>> 0 ${op} ${rightWords.low} >>> 0)))`;
}

export const opposite: Readonly<Record<CompareOp, CompareOp>> = {
  '=': '!=',
  '!=': '=',
  '<': '>=',
  '<=': '>',
  '>': '<=',
  '>=': '<',
};

export function both(leftOk: string | null, rightOk: string): string;
export function both(leftOk: string | null, rightOk: string | null): string | null;
export function both(leftOk: string | null, rightOk: string | null): string | null {
  if (leftOk === null || rightOk === null) return leftOk ?? rightOk;
  if (leftOk === '0' || rightOk === '0') return '0';
  return `(${leftOk} & ${rightOk})`;
}

export function signOf(op: CompareOp, isStrict: boolean): string {
  if (op === '=') return isStrict ? '===' : '==';
  if (op === '!=') return isStrict ? '!==' : '!=';
  return op;
}

export function isTextual(bound: Bound): boolean {
  return bound.type === 'string' || bound.type === 'json';
}

export function touchesText(bound: Bound, columns: readonly Vector[]): boolean {
  for (const index of columnsIn(bound)) {
    const vectorKind = columns[index]!.kind;
    if (vectorKind === 'text' || vectorKind === 'dict') return true;
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
