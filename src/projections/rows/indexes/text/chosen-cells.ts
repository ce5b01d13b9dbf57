/** Cells of any vector of texts as an index of texts takes them. */
import type { Vector } from '../../../../log/values/columns.ts';
import type { ColumnType } from '../../../../log/values/value.ts';
import { cellAt } from '../../../../log/values/vector-builder.ts';
import type { Segment } from '../../segments/segment.ts';
import type { TextCells } from './text-builder.ts';

const cellTextEncoder = new TextEncoder();

export function noTexts(rows: number): TextCells {
  return { rows, offsets: new Uint32Array(1), heap: new Uint8Array(0), codes: null, absent: new Uint8Array(rows).fill(1) };
}

/** Bytes of text that one step copies. */
const CHOSEN_STEP_BYTES = 1 << 20;

/** Cells of chosen rows of any vector of texts, or of JSON. */
export function* chosenCells(
  chosenVector: Vector,
  type: ColumnType,
  rows: number,
  chosenRowAt: (chosenRow: number) => number,
): Generator<undefined, TextCells> {
  const isJson = type === 'json';
  const absentCells = new Uint8Array(rows);
  for (let chosenRow = 0; chosenRow < rows; chosenRow++) {
    if (chosenVector.kind === 'null' || chosenVector.nulls?.[chosenRowAt(chosenRow)] === 1) absentCells[chosenRow] = 1;
  }
  if (chosenVector.kind === 'dict')
    return { rows, absent: absentCells, isJson, ...(yield* distinct(chosenVector, rows, chosenRowAt, absentCells)) };
  if (chosenVector.kind !== 'text') return noTexts(rows);
  const offsets = new Uint32Array(rows + 1);
  for (let chosenRow = 0; chosenRow < rows; chosenRow++) {
    const row = chosenRowAt(chosenRow);
    offsets[chosenRow + 1] =
      offsets[chosenRow]! + (absentCells[chosenRow] === 1 ? 0 : chosenVector.offsets[row + 1]! - chosenVector.offsets[row]!);
  }
  const heap = new Uint8Array(offsets[rows]!);
  for (let chosenRow = 0, restedBytes = 0; chosenRow < rows; chosenRow++) {
    if (absentCells[chosenRow] === 1) continue;
    const row = chosenRowAt(chosenRow);
    heap.set(chosenVector.heap.subarray(chosenVector.offsets[row], chosenVector.offsets[row + 1]), offsets[chosenRow]);
    if (offsets[chosenRow + 1]! - restedBytes < CHOSEN_STEP_BYTES) continue;
    restedBytes = offsets[chosenRow + 1]!;
    yield;
  }
  return { rows, offsets, heap, codes: null, absent: absentCells, isJson };
}

/** The texts that some row has, each once. */
export function* distinct(
  { values, dictionary }: Extract<Vector, { kind: 'dict' }>,
  rows: number,
  chosenRowAt: (chosenRow: number) => number,
  absent: Uint8Array | null,
): Generator<undefined, Pick<TextCells, 'offsets' | 'heap' | 'codes'>> {
  const textIdsByCode = new Map<number, number>();
  const codes = new Int32Array(rows);
  const textBytesOf = (code: number): Uint8Array => dictionary.bytesOf?.(code) ?? cellTextEncoder.encode(dictionary.text(code));
  const textEnds: number[] = [];
  let distinctBytes = 0;
  for (let chosenRow = 0; chosenRow < rows; chosenRow++) {
    if (absent?.[chosenRow] === 1) continue;
    const dictionaryCode = values[chosenRowAt(chosenRow)]!;
    let textId = textIdsByCode.get(dictionaryCode);
    if (textId === undefined) {
      textIdsByCode.set(dictionaryCode, (textId = textEnds.length));
      distinctBytes += textBytesOf(dictionaryCode).length;
      textEnds.push(distinctBytes);
    }
    codes[chosenRow] = textId;
  }
  const offsets = new Uint32Array(textEnds.length + 1);
  offsets.set(textEnds, 1);
  const heap = new Uint8Array(distinctBytes);
  let restedBytes = 0;
  for (const [code, number] of textIdsByCode) {
    // A text wiped meanwhile may be shorter than it was, never longer: the index is dropped then.
    heap.set(textBytesOf(code), offsets[number]);
    if (offsets[number + 1]! - restedBytes < CHOSEN_STEP_BYTES) continue;
    restedBytes = offsets[number + 1]!;
    yield;
  }
  return { offsets, heap, codes };
}

/** Cells of a column as an index of texts takes them: rows first .. first+rows-1 of a segment. They are not copied: valid as long as the column is. */
export function* cellsOf(
  segment: Segment,
  indexedVector: Vector,
  type: ColumnType | undefined,
  firstRow: number,
  rows: number,
): Generator<undefined, TextCells> {
  const isJson = type === 'json';
  const absent = absentOf(segment, indexedVector, firstRow, rows);
  if (indexedVector.kind === 'text') {
    return {
      rows,
      offsets: indexedVector.offsets.subarray(firstRow, firstRow + rows + 1),
      heap: indexedVector.heap,
      codes: null,
      absent,
      isJson,
    };
  }
  if (indexedVector.kind !== 'dict') {
    return noTexts(rows);
  }
  return { rows, absent, isJson, ...(yield* distinct(indexedVector, rows, (row) => firstRow + row, absent)) };
}

/** 1 where one of these rows has no cell; null where each has one. */
export function absentOf(segment: Segment, vector: Vector, firstRow: number, rows: number): Uint8Array | null {
  const absentNulls = vector.kind === 'null' ? null : vector.nulls;
  if (segment.removedCount === 0) return absentNulls && absentNulls.subarray(firstRow, firstRow + rows);
  const absent = new Uint8Array(rows);
  for (let row = 0; row < rows; row++) absent[row] = segment.isRemoved(firstRow + row) ? 1 : (absentNulls?.[firstRow + row] ?? 0);
  return absent;
}

/** Whole numbers as the texts that they are written as. */
export function wholeNumberTexts(vector: Vector, rows: number, absent: Uint8Array | null): TextCells {
  if (vector.kind === 'null') return noTexts(rows);
  const offsets = new Uint32Array(rows + 1);
  const numberTexts: string[] = [];
  for (let row = 0; row < rows; row++) {
    const numberCell = absent?.[row] === 1 ? null : cellAt(vector, 'integer', row);
    const numberText = numberCell === null ? '' : String(numberCell);
    numberTexts.push(numberText);
    offsets[row + 1] = offsets[row]! + numberText.length;
  }
  return { rows, offsets, heap: cellTextEncoder.encode(numberTexts.join('')), codes: null, absent };
}
