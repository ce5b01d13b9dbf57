/** Cells of any vector of texts as an index of texts takes them. */
import type { Vector } from '../../../../log/columns.ts';
import type { TextCells } from './text-builder.ts';

const encoder = new TextEncoder();

export function noTexts(rows: number): TextCells {
  return { rows, offsets: new Uint32Array(1), heap: new Uint8Array(0), codes: null, absent: new Uint8Array(rows).fill(1) };
}

/** Cells of chosen rows of any vector of texts. */
export function chosenCells(vector: Vector, rows: number, rowAt: (place: number) => number): TextCells {
  const absent = new Uint8Array(rows);
  for (let place = 0; place < rows; place++) {
    if (vector.kind === 'null' || vector.nulls?.[rowAt(place)] === 1) absent[place] = 1;
  }
  if (vector.kind === 'dict') return { rows, absent, ...distinct(vector, rows, rowAt, absent) };
  if (vector.kind !== 'text') return noTexts(rows);
  const offsets = new Uint32Array(rows + 1);
  for (let place = 0; place < rows; place++) {
    const row = rowAt(place);
    offsets[place + 1] = offsets[place]! + (absent[place] === 1 ? 0 : vector.offsets[row + 1]! - vector.offsets[row]!);
  }
  const heap = new Uint8Array(offsets[rows]!);
  for (let place = 0; place < rows; place++) {
    if (absent[place] === 1) continue;
    const row = rowAt(place);
    heap.set(vector.heap.subarray(vector.offsets[row], vector.offsets[row + 1]), offsets[place]);
  }
  return { rows, offsets, heap, codes: null, absent };
}

/** The texts that some row has, each once. */
export function distinct(
  { values, dictionary }: Extract<Vector, { kind: 'dict' }>,
  rows: number,
  rowAt: (place: number) => number,
  absent: Uint8Array | null,
): Pick<TextCells, 'offsets' | 'heap' | 'codes'> {
  const numbers = new Map<number, number>();
  const codes = new Int32Array(rows);
  const texts: Uint8Array[] = [];
  let size = 0;
  for (let place = 0; place < rows; place++) {
    if (absent?.[place] === 1) continue;
    const code = values[rowAt(place)]!;
    let number = numbers.get(code);
    if (number === undefined) {
      const bytes = dictionary.bytesOf?.(code).slice() ?? encoder.encode(dictionary.text(code));
      number = texts.push(bytes) - 1;
      size += bytes.length;
      numbers.set(code, number);
    }
    codes[place] = number;
  }
  const offsets = new Uint32Array(texts.length + 1);
  const heap = new Uint8Array(size);
  for (const [number, bytes] of texts.entries()) {
    heap.set(bytes, offsets[number]);
    offsets[number + 1] = offsets[number]! + bytes.length;
  }
  return { offsets, heap, codes };
}
