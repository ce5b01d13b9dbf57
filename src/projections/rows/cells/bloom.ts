/**
 * A bloom filter of one column of one sealed segment: says for sure that a value is not there, for about 98 of 100 that are
 * not. Texts go by their bytes, numbers and codes by their double, so that a value has one hash in whatever width it rests.
 */
import type { Vector } from '../../../log/values/columns.ts';
import { hashBytes } from './byte-hash.ts';

/** Eight bits a row of a full segment: 64 KiB. */
const BITS = 19;
const PROBES = 4;

const double = new Float64Array(1);
const words = new Int32Array(double.buffer);

export function hashText(bytes: Uint8Array, start: number, end: number): number {
  return hashBytes(bytes, start, end, 0);
}

export function hashNumber(value: number): number {
  // Zero has two forms.
  double[0] = value + 0;
  let hash = Math.imul(words[0]! ^ Math.imul(words[1]!, 0x9e3779b1), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 15), 0xc2b2ae35);
  return hash ^ (hash >>> 13);
}

export class Bloom {
  readonly #bits = new Int32Array(2 ** (BITS - 5));

  /** Over the first `rows` cells; null where a column has cells of another kind. */
  static fromVector(vector: Vector, rows: number): Bloom | null {
    if (vector.kind === 'null' || vector.kind === 'bool' || vector.kind === 'vec') return null;
    const bloom = new Bloom();
    const { nulls } = vector;
    for (let row = 0; row < rows; row++) {
      if (nulls !== null && nulls[row] === 1) continue;
      if (vector.kind === 'text') bloom.#add(hashText(vector.heap, vector.offsets[row]!, vector.offsets[row + 1]!));
      else bloom.#add(hashNumber(Number(vector.values[row]!)));
    }
    return bloom;
  }

  mayHold(hash: number): boolean {
    const step = stepOf(hash);
    for (let probe = 0, at = hash; probe < PROBES; probe++, at = (at + step) | 0) {
      const bit = at >>> (32 - BITS);
      if ((this.#bits[bit >>> 5]! & (1 << (bit & 31))) === 0) return false;
    }
    return true;
  }

  #add(hash: number): void {
    const step = stepOf(hash);
    for (let probe = 0, at = hash; probe < PROBES; probe++, at = (at + step) | 0) {
      const bit = at >>> (32 - BITS);
      this.#bits[bit >>> 5]! |= 1 << (bit & 31);
    }
  }
}

function stepOf(hash: number): number {
  return Math.imul(hash ^ (hash >>> 16), 0x7feb352d) | 1;
}
