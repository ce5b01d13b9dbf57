/** The interface by which a join looks up the rows of a key on the side that it holds. */
import type { Vector } from '../../log/values/columns.ts';
import type { Batch } from './operator.ts';

/**
 * Rows with one key are a chain in the order of rows: `find` gives its first row, `following` the next. A chain costs four
 * bytes a row and is made back to front in one pass, without counting first.
 */
export interface RowIndex {
  readonly bytes: number;
  /** Next row with the same key, + 1; 0 ends the chain. */
  readonly following: Int32Array;
  /** No two rows share a key. */
  readonly unique: boolean;
  /** First row + 1 with the key of each row of a batch into `out`, by place in it; 0 for NULL and where there is none. */
  find(keys: readonly Vector[], batch: Batch, out: Int32Array): void;
}

/** Rows after which the building of an index hands control back. */
export type Building = Generator<undefined, RowIndex, void>;

export const rowsPerStep = 16_384;
