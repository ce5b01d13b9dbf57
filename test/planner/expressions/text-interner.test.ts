/** Texts get the same number whichever way they come: in blocks, one by one, or as codes of another dictionary. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { TextInterner } from '../../../src/planner/expressions/text-interner.ts';

/** Lengths on both sides of a word, few letters: much is met again, much differs in its last byte only. */
const short = fc.string({ unit: fc.constantFrom('a', 'b', '\0', 'é', '😀'), maxLength: 11 });

it('numbers blocks as it numbers single texts, in order of first appearance', () => {
  fc.assert(
    fc.property(fc.array(fc.option(short), { maxLength: 3_000, size: 'max' }), fc.nat(7), (texts, shift) => {
      const encoded = texts.map((text) => Buffer.from(text ?? ''));
      // Words of the heap start anywhere in its buffer.
      const heap = Buffer.concat([Buffer.alloc(shift), ...encoded]).subarray(shift);
      const offsets = new Uint32Array(texts.length + 1);
      encoded.forEach(({ length }, i) => (offsets[i + 1] = offsets[i]! + length));
      const nulls = Uint8Array.from(texts, (text) => (text === null ? 1 : 0));
      const blocks = new TextInterner();
      const out = new Int32Array(texts.length);
      blocks.numbersOf({ kind: 'text', heap, offsets, nulls }, { selection: null, first: 0, count: texts.length }, out);
      const expected = new Map<string, number>();
      const numbers = texts.map((text) => {
        if (text === null) return 0;
        if (!expected.has(text)) expected.set(text, expected.size + 1);
        return expected.get(text)!;
      });
      expect([...out]).toEqual(numbers);
      const single = new TextInterner();
      for (const [text, number] of expected) {
        expect(single.ofText(text)).toBe(number - 1);
        expect(blocks.codeOf(text)).toBe(number - 1);
        expect(blocks.text(number - 1)).toBe(text);
      }
      expect(blocks.codeOf('never')).toBe(-1);
      expect(blocks.size).toBe(expected.size);
    }),
    { numRuns: 60 },
  );
});

it('keeps its texts while a large heap moves to the next one', () => {
  const length = 1 << 16;
  const texts = new TextInterner(1, 9 << 20);
  const text = (i: number): string => String(i).padEnd(length, 'é');
  for (let i = 0; i < 120; i++) {
    const before = texts.heap.length;
    expect(texts.ofText(text(i))).toBe(i);
    // Half of a large heap has moved by then: what is left is as much as came.
    if (texts.heap.length > before && before > 8 << 20) expect(texts.heap.length).toBeGreaterThanOrEqual(2 * before);
  }
  for (let i = 0; i < 120; i++) expect(texts.codeOf(text(i))).toBe(i);
  expect(texts.text(119)).toBe(text(119));
});

it('finds every text while a large table of slots moves to the next one', () => {
  const texts = new TextInterner();
  const count = 150_000;
  for (let i = 0; i < count; i++) {
    expect(texts.ofText(`t${i}`) === i).toBe(true);
    if (i % 3 !== 0) continue;
    // Any earlier one, moved or not, and one that is not there.
    const before = (i * 7_919) % (i + 1);
    expect(texts.codeOf(`t${before}`) === before && texts.ofText(`t${before}`) === before && !texts.has(`u${i}`)).toBe(true);
  }
  for (let i = 0; i < count; i++) if (texts.codeOf(`t${i}`) !== i) expect(`t${i}`).toBe('found');
  expect(texts.size).toBe(count);
});
