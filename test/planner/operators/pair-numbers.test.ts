/** Pairs to numbers in order of first appearance, while the table grows a few pairs at a time. */
import { expect, test } from 'vitest';
import { PairNumbers } from '../../../src/planner/operators/pair-numbers.ts';
import { Seeded } from '../../simulation/seeded.ts';

/** More than a place can be kept for. */
const wide = 1 << 30;

function find(pairs: PairNumbers, left: number, right: number): number {
  const found = Int32Array.of(left);
  pairs.find(found, Int32Array.of(right), 1);
  return found[0]! - 1;
}

test('every pair keeps the number that it got first, at every size of the table', () => {
  const pairs = new PairNumbers();
  const known = new Map<string, number>();
  const random = new Seeded(7);
  let size = 0;
  for (let step = 0; step < 400_000; step++) {
    const [left, right] = [random.below(3_000), random.below(400)];
    const key = `${left} ${right}`;
    if (step % 5 === 0 && find(pairs, left, right) !== (known.get(key) ?? -1)) expect(key).toBe('found');
    if (!known.has(key)) known.set(key, size++);
    if (pairs.numberOf(left, right) !== known.get(key)) expect(key).toBe('numbered as before');
  }
  expect(pairs.size).toBe(size);
  expect(size).toBeGreaterThan(300_000);
  const numbers = Int32Array.from({ length: size }, (_, i) => i);
  const [lefts, rights] = [pairs.lefts(numbers), pairs.rights(numbers)];
  for (const [key, number] of known) {
    if (key !== `${lefts[number]} ${rights[number]}`) expect(key).toBe(String(number));
    if (find(pairs, lefts[number]!, rights[number]!) !== number) expect(key).toBe('found');
  }
});

test('no batch has to wait for a whole table to move', () => {
  const pairs = new PairNumbers();
  const batch = 1_024;
  let moving = 0;
  let longest = 0;
  let together = 0;
  for (let first = 0; first < 1_000_000; first += batch) {
    // Only the first pair of a left number is found without the table.
    const left = Int32Array.from({ length: batch }, (_, i) => (first + i) % 1_000);
    const right = Int32Array.from({ length: batch }, (_, i) => Math.floor((first + i) / 1_000));
    const before = pairs.bytes;
    pairs.assign(left, right, batch, wide, wide);
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

test('the first pair of a left number and those after it are found, no others', () => {
  const [dependent, free] = [new PairNumbers(), new PairNumbers()];
  for (let i = 0; i < 100_000; i++) {
    if (dependent.numberOf(i, i % 7) !== i || free.numberOf(i % 7, i) !== i) expect(i).toBe('a number');
  }
  expect([find(free, 3, 99_999), find(free, 4, 99_999), find(free, 7, 0)]).toEqual([-1, 99_999, -1]);
  expect(find(dependent, 70_000, 0)).toBe(70_000);
  expect(find(dependent, 70_000, 1)).toBe(-1);
  expect(dependent.numberOf(70_000, 1)).toBe(100_000);
  expect(find(dependent, 70_000, 1)).toBe(100_000);
  expect(find(dependent, 70_001, 0)).toBe(-1);
});
