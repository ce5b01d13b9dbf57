/** What conditions ask of rows, as small numbers: how a row's class is found is a feature's own business. */
import type { Vector } from '../../../log/values/columns.ts';
import { evaluate } from './fold.ts';
import type { Expr } from './syntax.ts';
import type { Value } from './values.ts';

/** What a condition is about, by row, as small numbers. */
export interface Feature {
  /** What it reads, in the order in which `classify` gets it. */
  readonly columns: readonly string[];
  /** Classes that have occurred or can: those below it are defined. Grows while rows are looked at. */
  readonly size: number;
  /** What each of the feature's atoms is in rows of a class. */
  statesOf(label: number): Uint8Array;
  /** out[k] |= class of row k << shift. */
  classify(vectors: readonly Vector[], rows: Rows, shift: number, out: Int32Array): void;
}

export interface Rows {
  readonly selection: Int32Array | null;
  readonly first: number;
  readonly count: number;
}

/** What an atom is in one row. */
export const IS_FALSE = 0;
export const IS_TRUE = 1;
export const ERRS = 2;

export function stateOf(atom: Expr, cell: (name: string) => Value | undefined): number {
  const outcome = evaluate(atom, cell);
  return outcome === true ? IS_TRUE : outcome === false ? IS_FALSE : ERRS;
}
