/** Cells of any vector of texts as an index of texts takes them. */
import type { Vector } from '../../../../log/values/columns.ts';
import type { ColumnType } from '../../../../log/values/value.ts';
import { cellAt } from '../../../../log/values/vector-builder.ts';
import type { Segment } from '../../segments/segment.ts';
import type { TextCells } from './text-builder.ts';

const encoder = new TextEncoder();

export function noTexts(rows: number): TextCells {
  return { rows, offsets: new Uint32Array(1), heap: new Uint8Array(0), codes: null, absent: new Uint8Array(rows).fill(1) };
}

/** Bytes of text that one step copies. */
const STEP_BYTES = 1 << 20;

/** Cells of chosen rows of any vector of texts, or of JSON. */
export function* chosenCells(
  vector: Vector,
  type: ColumnType,
  rows: number,
  rowAt: (chosenRow: number) => number,
): Generator<undefined, TextCells> {
  const isJson = type === 'json';
  const absent = new Uint8Array(rows);
  for (let chosenRow = 0; chosenRow < rows; chosenRow++) {
    if (vector.kind === 'null' || vector.nulls?.[rowAt(chosenRow)] === 1) absent[chosenRow] = 1;
  }
  if (vector.kind === 'dict') return { rows, absent, isJson, ...(yield* distinct(vector, rows, rowAt, absent)) };
  if (vector.kind !== 'text') return noTexts(rows);
  const offsets = new Uint32Array(rows + 1);
  for (let chosenRow = 0; chosenRow < rows; chosenRow++) {
    const row = rowAt(chosenRow);
    offsets[chosenRow + 1] =
      offsets[chosenRow]! + (absent[chosenRow] === 1 ? 0 : vector.offsets[row + 1]! - vector.offsets[row]!);
  }
  const heap = new Uint8Array(offsets[rows]!);
  for (let chosenRow = 0, rested = 0; chosenRow < rows; chosenRow++) {
    if (absent[chosenRow] === 1) continue;
    const row = rowAt(chosenRow);
    heap.set(vector.heap.subarray(vector.offsets[row], vector.offsets[row + 1]), offsets[chosenRow]);
    if (offsets[chosenRow + 1]! - rested < STEP_BYTES) continue;
    rested = offsets[chosenRow + 1]!;
    yield;
  }
  return { rows, offsets, heap, codes: null, absent, isJson };
}

/** The texts that some row has, each once. */
export function* distinct(
  { values, dictionary }: Extract<Vector, { kind: 'dict' }>,
  rows: number,
  rowAt: (chosenRow: number) => number,
  absent: Uint8Array | null,
): Generator<undefined, Pick<TextCells, 'offsets' | 'heap' | 'codes'>> {
  const numbers = new Map<number, number>();
  const codes = new Int32Array(rows);
  const bytesOf = (code: number): Uint8Array => dictionary.bytesOf?.(code) ?? encoder.encode(dictionary.text(code));
  const ends: number[] = [];
  let size = 0;
  for (let chosenRow = 0; chosenRow < rows; chosenRow++) {
    if (absent?.[chosenRow] === 1) continue;
    const code = values[rowAt(chosenRow)]!;
    let number = numbers.get(code);
    if (number === undefined) {
      numbers.set(code, (number = ends.length));
      size += bytesOf(code).length;
      ends.push(size);
    }
    codes[chosenRow] = number;
  }
  const offsets = new Uint32Array(ends.length + 1);
  offsets.set(ends, 1);
  const heap = new Uint8Array(size);
  let rested = 0;
  for (const [code, number] of numbers) {
    // A text wiped meanwhile may be shorter than it was, never longer: the index is dropped then.
    heap.set(bytesOf(code), offsets[number]);
    if (offsets[number + 1]! - rested < STEP_BYTES) continue;
    rested = offsets[number + 1]!;
    yield;
  }
  return { offsets, heap, codes };
}

/** Cells of a column as an index of texts takes them: rows first .. first+rows-1 of a segment. They are not copied: valid as long as the column is. */
export function* cellsOf(
  segment: Segment,
  vector: Vector,
  type: ColumnType | undefined,
  first: number,
  rows: number,
): Generator<undefined, TextCells> {
  const isJson = type === 'json';
  const absent = absentOf(segment, vector, first, rows);
  if (vector.kind === 'text') {
    return { rows, offsets: vector.offsets.subarray(first, first + rows + 1), heap: vector.heap, codes: null, absent, isJson };
  }
  if (vector.kind !== 'dict') {
    return noTexts(rows);
  }
  return { rows, absent, isJson, ...(yield* distinct(vector, rows, (row) => first + row, absent)) };
}

/** 1 where one of these rows has no cell; null where each has one. */
export function absentOf(segment: Segment, vector: Vector, first: number, rows: number): Uint8Array | null {
  const nulls = vector.kind === 'null' ? null : vector.nulls;
  if (segment.removedCount === 0) return nulls && nulls.subarray(first, first + rows);
  const absent = new Uint8Array(rows);
  for (let row = 0; row < rows; row++) absent[row] = segment.isRemoved(first + row) ? 1 : (nulls?.[first + row] ?? 0);
  return absent;
}

/** Whole numbers as the texts that they are written as. */
export function wholeNumberTexts(vector: Vector, rows: number, absent: Uint8Array | null): TextCells {
  if (vector.kind === 'null') return noTexts(rows);
  const offsets = new Uint32Array(rows + 1);
  const texts: string[] = [];
  for (let row = 0; row < rows; row++) {
    const cell = absent?.[row] === 1 ? null : cellAt(vector, 'integer', row);
    const text = cell === null ? '' : String(cell);
    texts.push(text);
    offsets[row + 1] = offsets[row]! + text.length;
  }
  return { rows, offsets, heap: encoder.encode(texts.join('')), codes: null, absent };
}
