/**
 * A bloom filter of one column of one sealed segment: says for sure that a value is not there, for about 98 of 100 that are
 * not. Texts go by their bytes, numbers and codes by their double, so that a value has one hash in whatever width it rests.
 */
import type { Vector } from '../../../log/values/columns.ts';
import { hashBytes } from './byte-hash.ts';

/** Eight bits a row of a full segment: 64 KiB. */
const BLOOM_BITS = 19;
const BLOOM_PROBES = 4;

const hashedDouble = new Float64Array(1);
const doubleWords = new Int32Array(hashedDouble.buffer);

export function hashText(textHeap: Uint8Array, start: number, end: number): number {
  return hashBytes(textHeap, start, end, 0);
}

export function hashNumber(hashedCell: number): number {
  // Zero has two forms.
  hashedDouble[0] = hashedCell + 0;
  let cellHash = Math.imul(doubleWords[0]! ^ Math.imul(doubleWords[1]!, 0x9e3779b1), 0x85ebca6b);
  cellHash = Math.imul(cellHash ^ (cellHash >>> 15), 0xc2b2ae35);
  return cellHash ^ (cellHash >>> 13);
}

export class Bloom {
  readonly #bloomBits = new Int32Array(2 ** (BLOOM_BITS - 5));

  /** Over the first `rows` cells; null where a column has cells of another kind. */
  static fromVector(vector: Vector, rows: number): Bloom | null {
    if (vector.kind === 'null' || vector.kind === 'bool' || vector.kind === 'vec') return null;
    const bloom = new Bloom();
    const { nulls } = vector;
    for (let row = 0; row < rows; row++) {
      if (nulls !== null && nulls[row] === 1) continue;
      if (vector.kind === 'text') bloom.#addCellHash(hashText(vector.heap, vector.offsets[row]!, vector.offsets[row + 1]!));
      else bloom.#addCellHash(hashNumber(Number(vector.values[row]!)));
    }
    return bloom;
  }

  mayHold(cellHash: number): boolean {
    const probeStep = probeStepOf(cellHash);
    for (let probe = 0, probeHash = cellHash; probe < BLOOM_PROBES; probe++, probeHash = (probeHash + probeStep) | 0) {
      const bloomBit = probeHash >>> (32 - BLOOM_BITS);
      if ((this.#bloomBits[bloomBit >>> 5]! & (1 << (bloomBit & 31))) === 0) return false;
    }
    return true;
  }

  #addCellHash(cellHash: number): void {
    const probeStep = probeStepOf(cellHash);
    for (let probe = 0, probeHash = cellHash; probe < BLOOM_PROBES; probe++, probeHash = (probeHash + probeStep) | 0) {
      const bloomBit = probeHash >>> (32 - BLOOM_BITS);
      this.#bloomBits[bloomBit >>> 5]! |= 1 << (bloomBit & 31);
    }
  }
}

function probeStepOf(cellHash: number): number {
  return Math.imul(cellHash ^ (cellHash >>> 16), 0x7feb352d) | 1;
}
