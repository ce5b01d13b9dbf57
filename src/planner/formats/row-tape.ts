/**
 * One row between the bytes and the columns: which column each cell belongs to, what kind of token it is and where its
 * bytes lie. A reader fills the tape, the columns take it whole or refuse it whole, so a bad cell never leaves half a
 * row behind. Flat arrays that are reused for every row: nothing is allocated.
 */
import type { ErrorCode } from '../../errors.ts';

/**
 * The kind of a lexeme. `wide` is an integer of up to i64 that a double may not hold, `huge` an integer beyond i64 or a number
 * beyond a double (JSON text only), `escaped` a text with JSON escapes.
 */
export const cellKind = {
  null: 0,
  false: 1,
  true: 2,
  integer: 3,
  wide: 4,
  number: 5,
  text: 6,
  escaped: 7,
  json: 8,
  huge: 9,
} as const;

export type CellKind = (typeof cellKind)[keyof typeof cellKind];

export interface RowProblem {
  readonly code: ErrorCode;
  readonly detail: string;
}

/** Few: a body may be one small row. */
const tapeCellsMin = 24;

export class RowTape {
  bytes: Uint8Array = new Uint8Array(0);
  count = 0;
  /** Column of each cell. */
  slots = new Int32Array(tapeCellsMin);
  kinds = new Uint8Array(tapeCellsMin);
  /** Bytes of the token; of a text without its quotes. */
  starts = new Int32Array(tapeCellsMin);
  ends = new Int32Array(tapeCellsMin);
  /** Value of an `integer` or `number`. */
  numbers = new Float64Array(tapeCellsMin);
  /** The first reason to refuse the row, where its syntax is sound. */
  problem: RowProblem | null = null;

  reset(bytes: Uint8Array): void {
    this.bytes = bytes;
    this.count = 0;
    this.problem = null;
  }

  /** Makes room for a row of `columns` cells and one more: a column given twice is noticed once it is on the tape. */
  reserve(columns: number): void {
    if (columns < this.slots.length) return;
    const tapeCells = columns * 2;
    const { slots, kinds, starts, ends, numbers } = this;
    (this.slots = new Int32Array(tapeCells)).set(slots);
    (this.kinds = new Uint8Array(tapeCells)).set(kinds);
    (this.starts = new Int32Array(tapeCells)).set(starts);
    (this.ends = new Int32Array(tapeCells)).set(ends);
    (this.numbers = new Float64Array(tapeCells)).set(numbers);
  }

  /** Keeps the first problem, which is the first in the text as well. */
  refuse(code: ErrorCode, detail: string): void {
    this.problem ??= { code, detail };
  }
}
