/** The entries of a dictionary as bytes, each encoded the first time that a cell names it: codes that no row of the answer
 * holds are never looked at, since a dictionary is of all rows of a column, and not all of them are the caller's. */
import type { Dictionary } from '../../log/values/columns.ts';
import { viewOf, wordSlack } from './short-copies.ts';

export class EncodedDictionary {
  heap = new Uint8Array(1_024);
  /** The heap, for `copyWords`: there are bytes enough behind every entry. */
  view = viewOf(this.heap);
  /** Bytes of `code`: heap[starts[code] .. ends[code]]; ends[code] is 0 until the code is encoded. */
  starts: Int32Array;
  ends: Int32Array;
  readonly #dictionary: Dictionary;
  readonly #encode: (text: string) => Uint8Array;
  #used = 1;

  constructor(dictionary: Dictionary, encode: (text: string) => Uint8Array) {
    this.#dictionary = dictionary;
    this.#encode = encode;
    this.starts = new Int32Array(dictionary.size);
    this.ends = new Int32Array(dictionary.size);
  }

  /** Makes the bytes of `code` known. */
  add(code: number): void {
    const bytes = this.#encode(this.#dictionary.text(code));
    const end = this.#used + bytes.length;
    if (end + wordSlack > this.heap.length) {
      const larger = new Uint8Array(Math.max(end + wordSlack, this.heap.length * 2));
      larger.set(this.heap.subarray(0, this.#used));
      this.heap = larger;
      this.view = viewOf(larger);
    }
    if (code >= this.ends.length) {
      this.starts = growArray(this.starts, this.#dictionary.size);
      this.ends = growArray(this.ends, this.#dictionary.size);
    }
    this.heap.set(bytes, this.#used);
    this.starts[code] = this.#used;
    this.ends[code] = this.#used = end;
  }
}

function growArray(array: Int32Array, length: number): Int32Array {
  const larger = new Int32Array(length);
  larger.set(array);
  return larger;
}
