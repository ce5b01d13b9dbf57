/**
 * Cells of one column fetched by row number into buffers that are used again and again: how a join puts the columns of its
 * other side beside a row only once it is known to come out. Loops are generated per layout, so that each stays a plain
 * loop over one kind of array.
 */
import type { Vector } from '../../log/values/columns.ts';
import { generateFunction } from '../expressions/generate-function.ts';

/** Which cells, and where they go. */
export interface Fetch {
  /** Row of the source per output; -1 is NULL. */
  readonly rows: Int32Array;
  readonly count: number;
  /** Row numbers of the outputs; null is 0 .. count-1. Text can't be put in places: it lies one after the other. */
  readonly targetRows: Int32Array | null;
  /** Above every place. */
  readonly length: number;
  /** Whether some row is -1. */
  readonly absent: boolean;
}

type GatheredWords = Int32Array | Float64Array | Uint8Array;
type MoveCells = (
  source: GatheredWords,
  nulls: Uint8Array | null,
  rows: Int32Array,
  targetRows: Int32Array | null,
  count: number,
  target: GatheredWords,
  targetNulls: Uint8Array,
) => void;

/** The vector that `fetch` returns is valid until the next call. */
export class Gatherer {
  #gatheredNulls = new Uint8Array(0);
  #gatheredInt32s = new Int32Array(0);
  #gatheredDoubles = new Float64Array(0);
  #gatheredBigInts = new BigInt64Array(0);
  #gatheredBytes = new Uint8Array(0);
  #gatheredFloats = new Float32Array(0);
  #gatheredOffsets = new Uint32Array(1);

  fetch(sourceVector: Vector, wantedRows: Fetch): Vector {
    const { length } = wantedRows;
    if (sourceVector.kind === 'null') return sourceVector;
    const isNullable = sourceVector.nulls !== null || wantedRows.absent;
    if (isNullable && this.#gatheredNulls.length < length) this.#gatheredNulls = new Uint8Array(gathererRoom(length));
    const targetNulls = isNullable ? this.#gatheredNulls : null;
    switch (sourceVector.kind) {
      case 'i32':
      case 'dict': {
        if (this.#gatheredInt32s.length < length) this.#gatheredInt32s = new Int32Array(gathererRoom(length));
        this.#moveWords('i', sourceVector.values, sourceVector.nulls, wantedRows, this.#gatheredInt32s);
        if (sourceVector.kind === 'i32') return { kind: 'i32', values: this.#gatheredInt32s, nulls: targetNulls };
        return { kind: 'dict', values: this.#gatheredInt32s, dictionary: sourceVector.dictionary, nulls: targetNulls };
      }
      case 'f64':
        if (this.#gatheredDoubles.length < length) this.#gatheredDoubles = new Float64Array(gathererRoom(length));
        this.#moveWords('f', sourceVector.values, sourceVector.nulls, wantedRows, this.#gatheredDoubles);
        return { kind: 'f64', values: this.#gatheredDoubles, nulls: targetNulls };
      case 'i64':
        if (this.#gatheredBigInts.length < length) this.#gatheredBigInts = new BigInt64Array(gathererRoom(length));
        this.#moveWords(
          'l',
          int32WordsOf(sourceVector.values),
          sourceVector.nulls,
          wantedRows,
          int32WordsOf(this.#gatheredBigInts),
        );
        return { kind: 'i64', values: this.#gatheredBigInts, nulls: targetNulls };
      case 'bool':
        if (this.#gatheredBytes.length < length) this.#gatheredBytes = new Uint8Array(gathererRoom(length));
        this.#moveWords('b', sourceVector.values, sourceVector.nulls, wantedRows, this.#gatheredBytes);
        return { kind: 'bool', values: this.#gatheredBytes, nulls: targetNulls };
      case 'vec':
        return this.#gatherFloats(sourceVector, wantedRows, targetNulls);
      case 'text':
        return this.#gatherTexts(sourceVector, wantedRows, targetNulls);
    }
  }

  #moveWords(
    layoutLetter: 'i' | 'f' | 'l' | 'b',
    sourceWords: GatheredWords,
    sourceNulls: Uint8Array | null,
    wantedRows: Fetch,
    targetWords: GatheredWords,
  ): void {
    const { rows, targetRows, count, absent } = wantedRows;
    moveLoop(layoutLetter, sourceNulls !== null, absent, targetRows !== null)(
      sourceWords,
      sourceNulls,
      rows,
      targetRows,
      count,
      targetWords,
      this.#gatheredNulls,
    );
  }

  #gatherFloats(vectorColumn: Extract<Vector, { kind: 'vec' }>, wantedRows: Fetch, targetNulls: Uint8Array | null): Vector {
    const { rows, targetRows, count, length } = wantedRows;
    const { values, dims } = vectorColumn;
    if (this.#gatheredFloats.length < length * dims) this.#gatheredFloats = new Float32Array(gathererRoom(length) * dims);
    for (let j = 0; j < count; j++) {
      const sourceRow = rows[j]!;
      const targetRow = targetRows ? targetRows[j]! : j;
      if (targetNulls) targetNulls[targetRow] = sourceRow < 0 || vectorColumn.nulls?.[sourceRow] === 1 ? 1 : 0;
      if (sourceRow >= 0) this.#gatheredFloats.set(values.subarray(sourceRow * dims, (sourceRow + 1) * dims), targetRow * dims);
    }
    return { kind: 'vec', values: this.#gatheredFloats, dims, nulls: targetNulls };
  }

  #gatherTexts(textColumn: Extract<Vector, { kind: 'text' }>, wantedRows: Fetch, targetNulls: Uint8Array | null): Vector {
    const { rows, count } = wantedRows;
    const { offsets, heap } = textColumn;
    let textBytes = 0;
    for (let j = 0; j < count; j++) {
      const sourceRow = rows[j]!;
      const isNull = sourceRow < 0 || (textColumn.nulls !== null && textColumn.nulls[sourceRow] === 1);
      if (targetNulls !== null) targetNulls[j] = isNull ? 1 : 0;
      if (!isNull) textBytes += offsets[sourceRow + 1]! - offsets[sourceRow]!;
    }
    if (this.#gatheredOffsets.length <= count) this.#gatheredOffsets = new Uint32Array(gathererRoom(count) + 1);
    if (this.#gatheredBytes.length < textBytes) this.#gatheredBytes = new Uint8Array(gathererRoom(textBytes));
    const targetHeap = this.#gatheredBytes;
    let targetOffset = 0;
    for (let j = 0; j < count; j++) {
      if (targetNulls === null || targetNulls[j] === 0) {
        const cellOffset = offsets[rows[j]!]!;
        const cellSize = offsets[rows[j]! + 1]! - cellOffset;
        if (cellSize <= 32) for (let k = 0; k < cellSize; k++) targetHeap[targetOffset + k] = heap[cellOffset + k]!;
        else targetHeap.set(heap.subarray(cellOffset, cellOffset + cellSize), targetOffset);
        targetOffset += cellSize;
      }
      this.#gatheredOffsets[j + 1] = targetOffset;
    }
    return { kind: 'text', offsets: this.#gatheredOffsets, heap: targetHeap, nulls: targetNulls };
  }
}

const moveLoops: (MoveCells | undefined)[] = [];

/** One loop per layout; the letter is in its text, so that no two layouts share V8's type feedback. */
function moveLoop(layoutLetter: 'i' | 'f' | 'l' | 'b', nulls: boolean, absent: boolean, hasTargets: boolean): MoveCells {
  const moveKey = 'iflb'.indexOf(layoutLetter) * 8 + (nulls ? 4 : 0) + (absent ? 2 : 0) + (hasTargets ? 1 : 0);
  return (moveLoops[moveKey] ??= generateFunction<MoveCells>(
    ['source', 'nulls', 'rows', 'places', 'count', 'target', 'targetNulls'],
    [
      `"use strict"; /* ${layoutLetter} */`,
      'for (let j = 0; j < count; j++) {',
      hasTargets ? 'const r = rows[j], p = places[j];' : 'const r = rows[j], p = j;',
      absent ? `if (r < 0) { targetNulls[p] = 1; ${moveCellCode(layoutLetter, '0')} continue; }` : '',
      nulls ? 'targetNulls[p] = nulls[r];' : absent ? 'targetNulls[p] = 0;' : '',
      moveCellCode(layoutLetter, 'source[#]'),
      '}',
    ].join('\n'),
  ));
}

/** `#` in the value is the row it comes from. */
function moveCellCode(layoutLetter: string, movedCode: string): string {
  if (layoutLetter !== 'l') return `target[p] = ${movedCode.replace('#', 'r')};`;
  return `target[2 * p] = ${movedCode.replace('#', '2 * r')}; target[2 * p + 1] = ${movedCode.replace('#', '2 * r + 1')};`;
}

function int32WordsOf(values: BigInt64Array): Int32Array {
  return new Int32Array(values.buffer, values.byteOffset, values.length * 2);
}

function gathererRoom(gatheredLength: number): number {
  return Math.max(1024, gatheredLength + (gatheredLength >> 1));
}
