/** Tests of conditions on rows, as small numbers; each feature has its own way to find a row's class. */
import type { Vector } from '../../../log/values/columns.ts';
import { evaluate } from './fold.ts';
import type { Expr } from './syntax.ts';
import type { Value } from './values.ts';

/** A test of conditions on rows: gives each row a class, a small number. */
export interface Feature {
  /** Columns that it reads, in the order in which `classify` gets them. */
  readonly columns: readonly string[];
  /** Classes that have occurred or can: those below it are defined. Grows while rows are looked at. */
  readonly size: number;
  /** The states of the feature's atoms in rows of a class. */
  statesOf(label: number): Uint8Array;
  /** out[k] |= class of row k << shift. */
  classify(vectors: readonly Vector[], rows: Rows, shift: number, out: Int32Array): void;
}

export interface Rows {
  readonly selection: Int32Array | null;
  readonly first: number;
  readonly count: number;
}

/** States of an atom in one row. */
export const IS_FALSE = 0;
export const IS_TRUE = 1;
export const ERRS = 2;

export function stateOf(atom: Expr, cell: (name: string) => Value | undefined): number {
  const atomOutcome = evaluate(atom, cell);
  return atomOutcome === true ? IS_TRUE : atomOutcome === false ? IS_FALSE : ERRS;
}
