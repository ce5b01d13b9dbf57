/** An aggregate function as a fold over cells: what `cell-accumulators.ts` runs by group, and window functions by frame. */
import type { Cell, ColumnType } from '../../log/values/value.ts';

/** One function for all groups. `S` is the state of a group with at least one value. */
export interface Folding<S> {
  readonly yields: ColumnType;
  readonly takesNull?: boolean;
  /** NULL where this is absent. */
  readonly ofNothing?: Cell;
  start(): S;
  /** Returns how many bytes more it holds. */
  take(state: S, cell: Cell, second: Cell): number;
  finish(state: S): Cell;
}
