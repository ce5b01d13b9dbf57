/** Reads a timestamp or integer column in any layout as 64-bit nanoseconds. */
import { assert } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';

export class Instants {
  #values = new BigInt64Array(0);

  /** Instants by row number, for these rows; none of them NULL. Valid until the next call. */
  read(vector: Vector, rows: Int32Array, count: number): BigInt64Array {
    if (vector.kind === 'i64') return vector.values;
    assert(vector.kind === 'i32' || vector.kind === 'f64', 'windows lie over instants');
    if (this.#values.length < vector.values.length) this.#values = new BigInt64Array(vector.values.length);
    for (let n = 0; n < count; n++) this.#values[rows[n]!] = BigInt(vector.values[rows[n]!]!);
    return this.#values;
  }
}
