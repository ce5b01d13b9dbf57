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

const END_RUN_HEADER_BYTES = 8;
/** Rows between two steps. */
const END_RUN_STEP_ROWS = 16_384;

/** Numbers of rows and of cells, as words; by row, the number of its cell; by cell, the first row that has it, rising. */
export class EndRun implements DistinctCells {
  readonly rows: number;
  readonly codes: Uint16Array;
  readonly firsts: Uint16Array;
  readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    const [rows = 0, distinctCount = 0] = new Uint32Array(bytes.buffer, bytes.byteOffset, 2);
    const codesOffset = bytes.byteOffset + END_RUN_HEADER_BYTES;
    this.rows = rows;
    this.codes = new Uint16Array(bytes.buffer, codesOffset, rows);
    this.firsts = new Uint16Array(bytes.buffer, codesOffset + this.codes.byteLength, distinctCount);
    this.bytes = bytes;
  }
}

/** Most bytes that a run of so many rows takes. */
export function endRunBytes(rows: number): number {
  return END_RUN_HEADER_BYTES + 4 * rows;
}

export const endRunJob: SteppedJob<TextCells, Uint8Array> = {
  module: import.meta.url,
  name: 'endRunJob',
  steps: endRunSteps,
};

function* endRunSteps(endCells: TextCells): Generator<Progress, Uint8Array> {
  const { rows } = endCells;
  const endGroups = new EndGroups(rows);
  for (let firstRow = 0; firstRow < rows; firstRow += END_RUN_STEP_ROWS) {
    endGroups.add(endCells, firstRow, Math.min(rows, firstRow + END_RUN_STEP_ROWS));
    yield { done: firstRow, of: rows };
  }
  return endGroups.bytes();
}

class EndGroups {
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
    const endSlots = this.#slots;
    const endSlotMask = endSlots.length - 1;
    for (let row = from; row < to; row++) {
      if (absent?.[row] === 1) continue;
      const textId = codes === null ? row : codes[row]!;
      const endStart = offsets[textId]!;
      const endTextBytes = offsets[textId + 1]! - endStart;
      const endHash = hashBytes(heap, endStart, endStart + endTextBytes, 0);
      let endSlot = endHash & endSlotMask;
      for (; endSlots[endSlot] !== 0; endSlot = (endSlot + 1) & endSlotMask) {
        const distinctEnd = endSlots[endSlot]! - 1;
        if (this.#hashes[distinctEnd] !== endHash) continue;
        const firstRowOfEnd = this.#firsts[distinctEnd]!;
        const otherTextId = codes === null ? firstRowOfEnd : codes[firstRowOfEnd]!;
        if (
          offsets[otherTextId + 1]! - offsets[otherTextId]! === endTextBytes &&
          sameBytes(heap, endStart, heap, offsets[otherTextId]!, endTextBytes)
        )
          break;
      }
      if (endSlots[endSlot] === 0) {
        this.#hashes[this.#count] = endHash;
        this.#firsts[this.#count] = row;
        endSlots[endSlot] = ++this.#count;
      }
      this.#codes[row] = endSlots[endSlot]! - 1;
    }
  }

  bytes(): Uint8Array {
    const endRows = this.#codes.length;
    const endRunBuffer = new Uint8Array(new SharedArrayBuffer(END_RUN_HEADER_BYTES + 2 * (endRows + this.#count)));
    new Uint32Array(endRunBuffer.buffer, 0, 2).set([endRows, this.#count]);
    const { codes, firsts } = new EndRun(endRunBuffer);
    codes.set(this.#codes);
    firsts.set(this.#firsts.subarray(0, this.#count));
    return endRunBuffer;
  }
}
