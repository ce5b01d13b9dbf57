import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Timeline } from '../../src/log/values/timeline.ts';

/** Entries as (positions, nanoseconds until the next one beyond them). Starts near where the low 32 bits overflow. */
const entries = fc.array(
  fc.tuple(fc.integer({ min: 1, max: 5 }), fc.constantFrom(0n, 1n, 1000n, 2n ** 31n, 2n ** 32n, 2n ** 40n)),
  {
    minLength: 1,
    maxLength: 12,
  },
);
const starts = fc.constantFrom(1n, 2n ** 32n - 3n, 2n ** 33n - 7n, -5n, 1_700_000_000_123_456_789n);

function build(start: bigint, list: readonly (readonly [number, bigint])[]): { timeline: Timeline; times: bigint[] } {
  const timeline = new Timeline();
  const times: bigint[] = [];
  let time = start;
  for (const [count, gap] of list) {
    timeline.append(times.length, time, count);
    for (let i = 0; i < count; i++) times.push(time + BigInt(i));
    time += BigInt(count) + gap;
  }
  return { timeline, times };
}

describe('positions and instants', () => {
  test('every position has the time of its entry plus its place in it, and the other way round', () => {
    fc.assert(
      fc.property(starts, entries, (start, list) => {
        const { timeline, times } = build(start, list);
        expect(times.map((_, position) => timeline.timeOf(position))).toEqual(times);
        expect(times.map((time) => timeline.positionAt(time))).toEqual(times.map((_, position) => position));
      }),
    );
  });

  test('positionAfter counts the positions at or below an instant, to the nanosecond', () => {
    fc.assert(
      fc.property(starts, entries, (start, list) => {
        const { timeline, times } = build(start, list);
        for (const time of times.flatMap((each) => [each - 1n, each, each + 1n])) {
          expect(timeline.positionAfter(time)).toBe(times.filter((each) => each <= time).length);
          if (!times.includes(time)) expect(timeline.positionAt(time)).toBe(-1);
        }
      }),
    );
  });

  test('times written for rows are the times of their positions, whatever the words carry', () => {
    fc.assert(
      fc.property(
        starts,
        entries,
        fc.infiniteStream(fc.boolean()),
        fc.boolean(),
        fc.integer({ min: 0, max: 3 }),
        (start, list, picks, compact, base) => {
          const { timeline, times } = build(start, list);
          const positions = times.map((_, position) => position).filter((position) => position >= base && picks.next().value);
          const deltas = Int32Array.from(positions, (position) => position - base);
          const rows = Int32Array.from(positions, (_, row) => row).filter((row) => row % 2 === 0);
          const target = new BigInt64Array(positions.length);
          timeline.writeTimes(target, { base, deltas }, rows, 0, rows.length, compact);
          rows.forEach((row, k) => expect(target[compact ? k : row]).toBe(times[positions[row]!]));
          const whole = new BigInt64Array(positions.length + 1);
          timeline.writeTimes(whole.subarray(1), { base, deltas }, null, 0, positions.length, false);
          expect([...whole.subarray(1)]).toEqual(positions.map((position) => times[position]));
        },
      ),
    );
  });
});
