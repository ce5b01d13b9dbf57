/** Pairs to numbers in order of first appearance, while the table grows a few pairs at a time. */
import { expect, test } from 'vitest';
import { PairNumbers } from '../../../src/planner/operators/pair-numbers.ts';
import { Seeded } from '../../simulation/seeded.ts';

/** More than a place can be kept for. */
const wide = 1 << 30;

test('every pair keeps the number that it got first, at every size of the table', () => {
  const pairs = new PairNumbers();
  const known = new Map<string, number>();
  const random = new Seeded(7);
  let size = 0;
  for (let step = 0; step < 400_000; step++) {
    const [left, right] = [random.below(3_000), random.below(400)];
    const key = `${left} ${right}`;
    if (step % 5 === 0 && pairs.find(left, right) !== (known.get(key) ?? -1)) expect(key).toBe('found');
    if (!known.has(key)) known.set(key, size++);
    if (pairs.numberOf(left, right) !== known.get(key)) expect(key).toBe('numbered as before');
  }
  expect(pairs.size).toBe(size);
  expect(size).toBeGreaterThan(300_000);
  const numbers = Int32Array.from({ length: size }, (_, i) => i);
  const [lefts, rights] = [pairs.lefts(numbers), pairs.rights(numbers)];
  for (const [key, number] of known) {
    if (key !== `${lefts[number]} ${rights[number]}`) expect(key).toBe(String(number));
    if (pairs.find(lefts[number]!, rights[number]!) !== number) expect(key).toBe('found');
  }
});

test('no batch has to wait for a whole table to move', () => {
  const pairs = new PairNumbers();
  const batch = 1_024;
  let moving = 0;
  let longest = 0;
  let together = 0;
  for (let first = 0; first < 1_000_000; first += batch) {
    const left = Int32Array.from({ length: batch }, (_, i) => first + i);
    const before = pairs.bytes;
    pairs.assign(left, new Int32Array(batch).fill(3), batch, wide, wide);
    // Both tables are held while one moves into the other.
    if (pairs.bytes < before) {
      moving++;
      longest = Math.max(longest, together);
      together = 0;
    } else together++;
  }
  expect(moving).toBeGreaterThan(3);
  expect(longest).toBeGreaterThan(30);
});
