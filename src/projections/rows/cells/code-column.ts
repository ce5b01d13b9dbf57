/** Small integers of a segment's rows that are nearly always all the same: no memory until one differs, and then little. */
import type { Extents } from './column-extents.ts';

export type Codes = Uint8Array | Uint16Array | Int32Array;

export interface SavedCodes {
  readonly constant: number;
  readonly values: Codes | null;
}

export class CodeColumn {
  /** The value of every row while `values` is null. */
  #constantCode: number;
  #rowCodes: Codes | null = null;
  /** Where `values` rest once the segment was sealed. */
  #codeExtents: Extents | null = null;

  constructor(constantCode: number) {
    this.#constantCode = constantCode;
  }

  /** The one value of all rows, or null when they differ. */
  get constant(): number | null {
    return this.#rowCodes ? null : this.#constantCode;
  }

  get values(): Codes | null {
    return this.#rowCodes;
  }

  codeAt(row: number): number {
    const rowCodes = this.#rowCodes;
    // Rows that were never set lie beyond the end of the array.
    return rowCodes !== null && row < rowCodes.length ? rowCodes[row]! : this.#constantCode;
  }

  /** Gives rows from..to one value; rows are appended in order. */
  fill(filledCode: number, firstRow: number, rowsEnd: number, capacity: number): void {
    if (!this.#rowCodes) {
      if (firstRow === 0) this.#constantCode = filledCode;
      if (filledCode === this.#constantCode) return;
    }
    this.#writableCodes(filledCode, capacity, rowsEnd).fill(filledCode, firstRow, rowsEnd);
  }

  set(row: number, rowCode: number, capacity: number): void {
    if (!this.#rowCodes && rowCode === this.#constantCode) return;
    this.#writableCodes(rowCode, capacity, row + 1)[row] = rowCode;
  }

  /** No row follows: the narrowest array of just that length, or none where all are alike after all. */
  seal(length: number, extents: Extents): void {
    this.#codeExtents = extents;
    const unsealedCodes = this.#rowCodes;
    if (!unsealedCodes) return;
    let leastCode = this.codeAt(0);
    let greatestCode = leastCode;
    for (let row = 1; row < length; row++) {
      const rowCode = this.codeAt(row);
      if (rowCode < leastCode) leastCode = rowCode;
      if (rowCode > greatestCode) greatestCode = rowCode;
    }
    if (leastCode === greatestCode) {
      this.#constantCode = leastCode;
      this.#rowCodes = null;
    } else {
      const narrowArray =
        leastCode >= 0 && greatestCode < 256 ? Uint8Array : leastCode >= 0 && greatestCode < 65_536 ? Uint16Array : Int32Array;
      const sealedCodes = extents.allocate<Codes>(narrowArray, length);
      for (let row = 0; row < length; row++) sealedCodes[row] = this.codeAt(row);
      this.#rowCodes = sealedCodes;
    }
    extents.giveBack(unsealedCodes);
  }

  savedState(length: number): SavedCodes {
    return { constant: this.#constantCode, values: this.#rowCodes ? this.#rowCodes.slice(0, length) : null };
  }

  /** The same without a copy. */
  sharedState(): SavedCodes {
    return { constant: this.#constantCode, values: this.#rowCodes };
  }

  static fromSaved(savedCodes: SavedCodes, extents: Extents): CodeColumn {
    const codeColumn = new CodeColumn(savedCodes.constant);
    codeColumn.#codeExtents = extents;
    codeColumn.#rowCodes = savedCodes.values && extents.settle(savedCodes.values, savedCodes.values.length);
    return codeColumn;
  }

  /** An array that reaches row `leastRows` - 1 and holds `widestCode`. */
  #writableCodes(widestCode: number, capacity: number, leastRows: number): Codes {
    const earlierCodes = this.#rowCodes;
    const canHoldCode =
      earlierCodes instanceof Int32Array || (widestCode >= 0 && widestCode < (earlierCodes instanceof Uint8Array ? 256 : 65_536));
    if (earlierCodes && canHoldCode && earlierCodes.length >= leastRows) return earlierCodes;
    const codeCapacity = Math.max(capacity, leastRows);
    // Rows that are not set yet keep the constant: chains rely on "none" being the default.
    const widenedCodes = new Int32Array(codeCapacity).fill(this.#constantCode, earlierCodes?.length ?? 0);
    if (earlierCodes) {
      widenedCodes.set(earlierCodes);
      this.#codeExtents?.giveBack(earlierCodes);
    }
    return (this.#rowCodes = widenedCodes);
  }
}
