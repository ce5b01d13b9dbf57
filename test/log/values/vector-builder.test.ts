/** Columns built cell by cell hold those cells and no others, whatever room was made for them; one of a single cell has no more. */
import { describe, expect, it } from 'vitest';
import type { Vector } from '../../../src/log/values/columns.ts';
import type { Cell, ColumnType } from '../../../src/log/values/value.ts';
import { cellAt, VectorBuilder } from '../../../src/log/values/vector-builder.ts';

const cells: readonly (readonly [ColumnType, readonly Cell[]])[] = [
  ['string', ['a', 'grüße 🙂', '', 'x'.repeat(300), null, 'b', 'ß🙂x'.repeat(2_000)]],
  ['json', ['{"a":1}', null, '[]']],
  ['integer', [1n, -2_147_483_649n, null, 9_223_372_036_854_775_807n, 0n]],
  ['timestamp', [1_700_000_000_000_000_000n, null, -1n]],
  ['number', [0.5, null, 1e300]],
  ['boolean', [true, false, null, true]],
  ['vector', [Float32Array.of(1, 2), null, Float32Array.of(3, 4)]],
];

function built(type: ColumnType, given: readonly Cell[], capacity: number): Vector {
  const builder = new VectorBuilder(type, capacity);
  for (const cell of given) builder.append(cell);
  return builder.build();
}

function arraysOf(vector: Vector): readonly ArrayBufferView[] {
  if (vector.kind === 'null' || vector.kind === 'dict') throw new Error('a column with cells of its own');
  return vector.kind === 'text' ? [vector.offsets, vector.heap] : [vector.values];
}

describe.each(cells)('%s', (type, given) => {
  it.each([1, 2, 3, 64])('has its cells where room was made for %i', (capacity) => {
    for (let length = 1; length <= given.length; length++) {
      const vector = built(type, given.slice(0, length), capacity);
      expect(Array.from({ length }, (_, row) => cellAt(vector, type, row))).toEqual(given.slice(0, length));
      const [first, heap] = arraysOf(vector) as readonly Uint8Array[];
      if (vector.kind === 'text') expect([first!.length, heap!.length]).toEqual([length + 1, vector.offsets[length]]);
      else expect(first!.length).toBe(vector.kind === 'vec' ? length * vector.dims : length);
    }
  });
});

it('a column of one cell takes the memory of that cell', () => {
  const bytes = new TextEncoder().encode('an order');
  const texts = new VectorBuilder('string', 1);
  texts.appendText(bytes, 0, bytes.length);
  const others = [built('integer', [7n], 1), built('number', [0.5], 1), built('boolean', [true], 1)];
  for (const array of [texts.build(), ...others].flatMap(arraysOf)) expect(array.buffer.byteLength).toBe(array.byteLength);
});

it('a long text takes the memory of its bytes, not of the most they could be', () => {
  const [, heap] = arraysOf(built('string', ['ß'.repeat(5_000)], 1));
  expect(heap!.buffer.byteLength).toBe(10_000);
});

it.each(['x\ud800', `${'x'.repeat(5_000)}\ud800`])('half of a surrogate pair is refused', (text) => {
  expect(() => built('string', [text], 1)).toThrow('lone surrogate');
});
