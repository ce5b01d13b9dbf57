import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ErasureReason } from '../../../../src/governance/erasure/erasure-reason.ts';
import type { Vector } from '../../../../src/log/values/columns.ts';
import { VectorBuilder } from '../../../../src/log/values/vector-builder.ts';
import { addBeginnings, LettersInARow, noBeginnings } from '../../../../src/projections/rows/cells/text-beginnings.ts';

const signs = ['a', 'B', 'b', 'c', 'K', '\u212a', 'é', 'e\u0301', '\u0301', "'", '"', '\\', ' ', 'İ', 'ß', '日', '\n', '7'];
const text = fc.array(fc.constantFrom(...signs), { maxLength: 9 }).map((parts) => parts.join(''));

function beginningsOf(cells: readonly (string | null)[]): Uint8Array {
  const builder = new VectorBuilder('string', cells.length);
  for (const cell of cells) builder.append(cell);
  const vector = builder.build();
  const bits = noBeginnings();
  if (vector.kind === 'text') addBeginnings(vector, 0, cells.length, bits);
  return bits;
}

test('a column that holds what a reason repeats is never left out', () =>
  fc.assert(
    fc.property(fc.array(fc.option(text), { minLength: 1, maxLength: 5 }), text, text, fc.nat(4), (cells, before, after, at) => {
      const said = new ErasureReason(`${before}${cells[at % cells.length] ?? ''}${after}`, 'nobody at all');
      const bits = beginningsOf(cells);
      if (cells.some((cell) => cell !== null && said.has(cell))) expect(new LettersInARow(said.folded).mayHold(bits)).toBe(true);
    }),
    { numRuns: 2_000 },
  ));

test('others are, wiped cells or not; unknown and unplain beginnings are always read', () => {
  const letters = new LettersInARow('asked for it', 'VISIT-');
  expect(letters.mayHold(beginningsOf(['seen', 'note', null, 'no', '']))).toBe(false);
  expect(letters.mayHold(beginningsOf(['\0\0\0\0', 'seen']))).toBe(false);
  for (const cells of [['visit-7'], ['Asked'], ['seen', "o'n"], ['日本'], ['see\u0301'], ['a\0\0\0']]) {
    expect(letters.mayHold(beginningsOf(cells))).toBe(true);
  }
  expect(letters.mayHold(null)).toBe(true);
  // Three letters say little of a text that has six.
  expect(new LettersInARow('SELECT id FROM Visit').mayHold(beginningsOf(['visit-7', 'visit-8']))).toBe(false);
  expect(new LettersInARow('SELECT id FROM Visit').mayHold(beginningsOf(['visit-7', 'visit', 'visit-8']))).toBe(true);
  // What comes after six letters, or after three, may be composed with the last of them.
  for (const [cell, said] of [
    ['visit-\u0301', 'visit'],
    ['visité', 'visit'],
    ["visit'", 'visit'],
  ] as const) {
    expect(new LettersInARow(said).mayHold(beginningsOf([cell]))).toBe(true);
  }
  expect(letters.covers(new LettersInARow('ask'))).toBe(true);
  expect(letters.covers(new LettersInARow('seen'))).toBe(false);
});

test('of a vector, rows that are asked for', () => {
  const vector: Vector = {
    kind: 'text',
    offsets: Uint32Array.of(0, 3, 6),
    heap: new TextEncoder().encode('oneTWO'),
    nulls: null,
  };
  const bits = noBeginnings();
  addBeginnings(vector, 1, 2, bits);
  expect([new LettersInARow('one'), new LettersInARow('two')].map((each) => each.mayHold(bits))).toEqual([false, true]);
});
