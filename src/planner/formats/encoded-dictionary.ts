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
  readonly #sourceDictionary: Dictionary;
  readonly #encodeEntry: (text: string) => Uint8Array;
  #usedHeapBytes = 1;

  constructor(sourceDictionary: Dictionary, encodeEntry: (text: string) => Uint8Array) {
    this.#sourceDictionary = sourceDictionary;
    this.#encodeEntry = encodeEntry;
    this.starts = new Int32Array(sourceDictionary.size);
    this.ends = new Int32Array(sourceDictionary.size);
  }

  /** Makes the bytes of `entryCode` known. */
  add(entryCode: number): void {
    const entryBytes = this.#encodeEntry(this.#sourceDictionary.text(entryCode));
    const entryEnd = this.#usedHeapBytes + entryBytes.length;
    if (entryEnd + wordSlack > this.heap.length) {
      const largerHeap = new Uint8Array(Math.max(entryEnd + wordSlack, this.heap.length * 2));
      largerHeap.set(this.heap.subarray(0, this.#usedHeapBytes));
      this.heap = largerHeap;
      this.view = viewOf(largerHeap);
    }
    if (entryCode >= this.ends.length) {
      this.starts = growOffsets(this.starts, this.#sourceDictionary.size);
      this.ends = growOffsets(this.ends, this.#sourceDictionary.size);
    }
    this.heap.set(entryBytes, this.#usedHeapBytes);
    this.starts[entryCode] = this.#usedHeapBytes;
    this.ends[entryCode] = this.#usedHeapBytes = entryEnd;
  }
}

function growOffsets(offsets: Int32Array, length: number): Int32Array {
  const largerOffsets = new Int32Array(length);
  largerOffsets.set(offsets);
  return largerOffsets;
}
