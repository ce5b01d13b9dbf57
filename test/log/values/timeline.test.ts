import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Timeline } from '../../../src/log/values/timeline.ts';

const runs = fc.array(fc.record({ count: fc.integer({ min: 0, max: 5 }), gap: fc.integer({ min: 0, max: 3 }) }), {
  maxLength: 200,
});

test('positions and instants map to each other exactly, as a list of pairs says', () => {
  fc.assert(
    fc.property(runs, fc.bigInt({ min: -5n, max: 1200n }), (list, probe) => {
      const timeline = new Timeline();
      const times: bigint[] = [];
      let time = 0n;
      for (const { count, gap } of list) {
        time += BigInt(gap);
        timeline.append(times.length, time, count);
        for (let i = 0; i < count; i++) times.push(time++);
      }
      expect(timeline.end).toBe(times.length);
      times.forEach((expected, position) => expect(timeline.timeOf(position)).toBe(expected));
      for (const instant of [probe, ...times.slice(0, 5)]) {
        expect(timeline.positionAfter(instant)).toBe(times.filter((at) => at <= instant).length);
      }
    }),
    { numRuns: 200 },
  );
});

test('runs that continue each other are one run', () => {
  const timeline = new Timeline();
  timeline.append(0, 10n, 5);
  timeline.append(5, 15n, 5);
  expect(timeline.runs).toBe(1);
  timeline.append(10, 21n, 1);
  expect(timeline.runs).toBe(2);
});

test('a log that begins above position 0 counts from there', () => {
  const timeline = new Timeline();
  timeline.append(100, 10n, 2);
  expect(timeline.positionAfter(9n)).toBe(100);
  expect(timeline.positionAfter(10n)).toBe(101);
});

test('time that does not rise, gaps and positions beyond the end fail an assertion', () => {
  const timeline = new Timeline();
  timeline.append(0, 10n, 5);
  expect(() => timeline.append(5, 14n, 1)).toThrow(/time rises/);
  expect(() => timeline.append(6, 20n, 1)).toThrow(/time rises/);
  expect(() => timeline.timeOf(5)).toThrow();
});
