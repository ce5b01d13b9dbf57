/** Reads a timestamp or integer column in any layout as 64-bit nanoseconds. */
import { assert } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';

export class Instants {
  #instantValues = new BigInt64Array(0);

  /** Instants by row number, for these rows; none of them NULL. Valid until the next call. */
  read(instantVector: Vector, instantRows: Int32Array, count: number): BigInt64Array {
    if (instantVector.kind === 'i64') return instantVector.values;
    assert(instantVector.kind === 'i32' || instantVector.kind === 'f64', 'windows lie over instants');
    if (this.#instantValues.length < instantVector.values.length)
      this.#instantValues = new BigInt64Array(instantVector.values.length);
    for (let rowIndex = 0; rowIndex < count; rowIndex++)
      this.#instantValues[instantRows[rowIndex]!] = BigInt(instantVector.values[instantRows[rowIndex]!]!);
    return this.#instantValues;
  }
}
