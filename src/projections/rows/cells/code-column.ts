/** Small integers of a segment's rows that are nearly always all the same: no memory until one differs, and then little. */
import type { Extents } from './column-extents.ts';

export type Codes = Uint8Array | Uint16Array | Int32Array;

export interface SavedCodes {
  readonly constant: number;
  readonly values: Codes | null;
}

export class CodeColumn {
  /** The value of every row while `values` is null. */
  #constant: number;
  #values: Codes | null = null;
  /** Where `values` rest once the segment was sealed. */
  #extents: Extents | null = null;

  constructor(constant: number) {
    this.#constant = constant;
  }

  /** The one value of all rows, or null when they differ. */
  get constant(): number | null {
    return this.#values ? null : this.#constant;
  }

  get values(): Codes | null {
    return this.#values;
  }

  codeAt(row: number): number {
    const values = this.#values;
    // Rows that were never set lie beyond the end of the array.
    return values !== null && row < values.length ? values[row]! : this.#constant;
  }

  /** Gives rows from..to one value; rows are appended in order. */
  fill(value: number, from: number, to: number, capacity: number): void {
    if (!this.#values) {
      if (from === 0) this.#constant = value;
      if (value === this.#constant) return;
    }
    this.#own(value, capacity, to).fill(value, from, to);
  }

  set(row: number, value: number, capacity: number): void {
    if (!this.#values && value === this.#constant) return;
    this.#own(value, capacity, row + 1)[row] = value;
  }

  /** No row follows: the narrowest array of just that length, or none where all are alike after all. */
  seal(length: number, extents: Extents): void {
    this.#extents = extents;
    const before = this.#values;
    if (!before) return;
    let least = this.codeAt(0);
    let most = least;
    for (let row = 1; row < length; row++) {
      const value = this.codeAt(row);
      if (value < least) least = value;
      if (value > most) most = value;
    }
    if (least === most) {
      this.#constant = least;
      this.#values = null;
    } else {
      const fits = least >= 0 && most < 256 ? Uint8Array : least >= 0 && most < 65_536 ? Uint16Array : Int32Array;
      const values = extents.allocate<Codes>(fits, length);
      for (let row = 0; row < length; row++) values[row] = this.codeAt(row);
      this.#values = values;
    }
    extents.giveBack(before);
  }

  savedState(length: number): SavedCodes {
    return { constant: this.#constant, values: this.#values ? this.#values.slice(0, length) : null };
  }

  /** The same without a copy. */
  sharedState(): SavedCodes {
    return { constant: this.#constant, values: this.#values };
  }

  static fromSaved(state: SavedCodes, extents: Extents): CodeColumn {
    const column = new CodeColumn(state.constant);
    column.#extents = extents;
    column.#values = state.values && extents.settle(state.values, state.values.length);
    return column;
  }

  /** An array that reaches row `atLeast` - 1 and holds `value`. */
  #own(value: number, capacity: number, atLeast: number): Codes {
    const before = this.#values;
    const holds = before instanceof Int32Array || (value >= 0 && value < (before instanceof Uint8Array ? 256 : 65_536));
    if (before && holds && before.length >= atLeast) return before;
    const size = Math.max(capacity, atLeast);
    // Rows that are not set yet keep the constant: chains rely on "none" being the default.
    const wide = new Int32Array(size).fill(this.#constant, before?.length ?? 0);
    if (before) {
      wide.set(before);
      this.#extents?.giveBack(before);
    }
    return (this.#values = wide);
  }
}
