/**
 * Ends of the edges of a sealed segment: which rows have the same cell in one of its columns, and the first row that has each.
 * Numbering the nodes of many segments then looks each of them up once a segment. It holds no text: texts are in the column
 * alone.
 */
import type { DistinctCells } from '../../../log/values/columns.ts';
import type { Progress, SteppedJob } from '../../../log/threads/stepping-job.ts';
import { hashBytes, sameBytes } from '../cells/byte-hash.ts';
import { SEGMENT_ROWS } from '../segments/segment-column.ts';
import type { TextCells } from './text/text-builder.ts';

/** Rises with every change of what the bytes are. */
export const END_RUN_FORMAT = 1;

const HEADER_BYTES = 8;
/** Rows between two steps. */
const STEP_ROWS = 16_384;

/** Numbers of rows and of cells, as words; by row, the number of its cell; by cell, the first row that has it, rising. */
export class EndRun implements DistinctCells {
  readonly rows: number;
  readonly codes: Uint16Array;
  readonly firsts: Uint16Array;
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    const [rows = 0, cells = 0] = new Uint32Array(bytes.buffer, bytes.byteOffset, 2);
    const codesAt = bytes.byteOffset + HEADER_BYTES;
    this.rows = rows;
    this.codes = new Uint16Array(bytes.buffer, codesAt, rows);
    this.firsts = new Uint16Array(bytes.buffer, codesAt + this.codes.byteLength, cells);
    this.bytes = bytes;
  }
}

/** Most bytes that a run of so many rows takes. */
export function endRunBytes(rows: number): number {
  return HEADER_BYTES + 4 * rows;
}

export const endRunJob: SteppedJob<TextCells, Uint8Array> = {
  module: import.meta.url,
  name: 'endRunJob',
  steps: endRunSteps,
};

function* endRunSteps(cells: TextCells): Generator<Progress, Uint8Array> {
  const { rows } = cells;
  const endGroups = new Found(rows);
  for (let first = 0; first < rows; first += STEP_ROWS) {
    endGroups.add(cells, first, Math.min(rows, first + STEP_ROWS));
    yield { done: first, of: rows };
  }
  return endGroups.bytes();
}

class Found {
  /** By row; where there is no cell, it says nothing. */
  readonly #codes: Uint16Array;
  readonly #firsts: Uint16Array;
  readonly #hashes: Int32Array;
  #count = 0;
  /** Number of a cell plus one; 0 is free. */
  readonly #slots = new Int32Array(2 * SEGMENT_ROWS);

  constructor(rows: number) {
    this.#codes = new Uint16Array(rows);
    this.#firsts = new Uint16Array(rows);
    this.#hashes = new Int32Array(rows);
  }

  add({ offsets, heap, codes, absent }: TextCells, from: number, to: number): void {
    const slots = this.#slots;
    const mask = slots.length - 1;
    for (let row = from; row < to; row++) {
      if (absent?.[row] === 1) continue;
      const text = codes === null ? row : codes[row]!;
      const start = offsets[text]!;
      const size = offsets[text + 1]! - start;
      const hash = hashBytes(heap, start, start + size, 0);
      let slot = hash & mask;
      for (; slots[slot] !== 0; slot = (slot + 1) & mask) {
        const cell = slots[slot]! - 1;
        if (this.#hashes[cell] !== hash) continue;
        const first = this.#firsts[cell]!;
        const other = codes === null ? first : codes[first]!;
        if (offsets[other + 1]! - offsets[other]! === size && sameBytes(heap, start, heap, offsets[other]!, size)) break;
      }
      if (slots[slot] === 0) {
        this.#hashes[this.#count] = hash;
        this.#firsts[this.#count] = row;
        slots[slot] = ++this.#count;
      }
      this.#codes[row] = slots[slot]! - 1;
    }
  }

  bytes(): Uint8Array {
    const rows = this.#codes.length;
    const bytes = new Uint8Array(new SharedArrayBuffer(HEADER_BYTES + 2 * (rows + this.#count)));
    new Uint32Array(bytes.buffer, 0, 2).set([rows, this.#count]);
    const { codes, firsts } = new EndRun(bytes);
    codes.set(this.#codes);
    firsts.set(this.#firsts.subarray(0, this.#count));
    return bytes;
  }
}
