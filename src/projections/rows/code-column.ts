/** Small integers of a segment's rows that are nearly always all the same: no memory until one differs. */
export interface SavedCodes {
  readonly constant: number;
  readonly values: Int32Array | null;
}

export class CodeColumn {
  /** The value of every row while `values` is null. */
  #constant: number;
  #values: Int32Array | null = null;

  constructor(constant: number) {
    this.#constant = constant;
  }

  /** The one value of all rows, or null when they differ. */
  get constant(): number | null {
    return this.#values ? null : this.#constant;
  }

  get values(): Int32Array | null {
    return this.#values;
  }

  at(row: number): number {
    const values = this.#values;
    // Rows that nobody set since the array was made lie beyond its end.
    return values !== null && row < values.length ? values[row]! : this.#constant;
  }

  /** Gives rows from..to one value; rows are appended in order. */
  fill(value: number, from: number, to: number, capacity: number): void {
    if (!this.#values) {
      if (from === 0) this.#constant = value;
      if (value === this.#constant) return;
    }
    this.#own(capacity, to).fill(value, from, to);
  }

  set(row: number, value: number, capacity: number): void {
    if (!this.#values && value === this.#constant) return;
    this.#own(capacity, row + 1)[row] = value;
  }

  saved(length: number): SavedCodes {
    return { constant: this.#constant, values: this.#values ? this.#values.slice(0, length) : null };
  }

  static restored(state: SavedCodes): CodeColumn {
    const column = new CodeColumn(state.constant);
    column.#values = state.values;
    return column;
  }

  #own(capacity: number, atLeast: number): Int32Array {
    const size = Math.max(capacity, atLeast);
    if (!this.#values) {
      this.#values = new Int32Array(size).fill(this.#constant);
    } else if (this.#values.length < atLeast) {
      // Rows that nobody set yet keep the constant: chains rely on "none" being the default.
      const wide = new Int32Array(size).fill(this.#constant, this.#values.length);
      wide.set(this.#values);
      this.#values = wide;
    }
    return this.#values;
  }
}
