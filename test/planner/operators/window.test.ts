/** Windows against their definition in bigints: every row, every window that holds it. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Cell, ColumnType } from '../../../src/log/values/value.ts';
import type { WindowNode } from '../../../src/planner/logical-plan.ts';
import { windowOperator } from '../../../src/planner/operators/time-windows.ts';
import {
  ArraySource,
  arrayExecution,
  type CellRow,
  type Drained,
  drain,
  type Layout,
  plainLayout,
} from '../execution/array-source.ts';

const second = 1_000_000_000n;

function windowed(
  type: WindowNode['type'],
  lengths: readonly bigint[],
  types: readonly ColumnType[],
  rows: readonly CellRow[],
  layout: Layout = plainLayout,
  partition: readonly number[] = [],
): Drained {
  const columns = types.map((each, i) => ({ name: `c${i}`, type: each }));
  const node = {
    kind: 'window',
    type,
    input: { kind: 'scan', columns },
    column: 0,
    intervals: lengths.map((_, slot) => ({ slot, location: { line: 1, column: 1 } })),
    partition,
    columns: [...columns, { name: 'window_start', type: 'timestamp' }, { name: 'window_end', type: 'timestamp' }],
  } as unknown as WindowNode;
  const execution = arrayExecution({ literals: lengths.map((length) => `${length / second} seconds`) });
  return drain(windowOperator(new ArraySource(types, rows, layout), node, execution), [...types, 'timestamp', 'timestamp']);
}

const shown = (rows: readonly CellRow[]): string[] => rows.map((row) => row.map(String).join('|'));

const instant = fc.oneof(
  fc.integer({ min: -200, max: 200 }).map((n): Cell => (BigInt(n) * second) / 4n),
  fc.constantFrom<Cell>(null, 1_700_000_000_000_000_001n, -1_700_000_000_000_000_001n, -1n, 0n, 4_294_967_296n),
);
const layout: fc.Arbitrary<Layout> = fc.record({
  blockRows: fc.integer({ min: 1, max: 7 }),
  sparse: fc.boolean(),
  text: fc.constantFrom('shared', 'per block', 'plain'),
  wide: fc.boolean(),
});
const kind = fc.constantFrom<ColumnType>('timestamp', 'integer');
const rowsOf = fc.array(fc.tuple(instant, fc.constantFrom<Cell>('a', 'b', null)), { maxLength: 30 });
const seconds = fc.integer({ min: 1, max: 40 }).map((n) => BigInt(n) * second);

/** Every window start that could hold the instant, tried one by one around it. */
function startsOf(at: bigint, slide: bigint, size: bigint): bigint[] {
  const starts: bigint[] = [];
  const around = at / slide;
  for (let k = around - size / slide - 2n; k <= around + 2n; k++)
    if (k * slide <= at && at < k * slide + size) starts.push(k * slide);
  return starts;
}

describe('TUMBLE', () => {
  test('gives each row its window, floored before the epoch too, and none to NULL', () => {
    fc.assert(
      fc.property(kind, rowsOf, layout, seconds, (type, rows, how, size) => {
        const wanted = rows.flatMap((row) =>
          row[0] === null ? [] : startsOf(row[0] as bigint, size, size).map((start) => [...row, start, start + size]),
        );
        expect(shown(windowed('tumble', [size], [type, 'string'], rows, how).rows)).toEqual(shown(wanted));
      }),
      { numRuns: 400 },
    );
  });

  test('is exact at the ends of time, and refuses a window that goes beyond', () => {
    const size = 10n * second;
    const edge = 9_223_372_036_000_000_000n;
    expect(windowed('tumble', [size], ['timestamp'], [[edge - size]]).rows).toEqual([
      [edge - size, 9_223_372_020n * second, 9_223_372_030n * second],
    ]);
    for (const beyond of [9_223_372_036_854_775_807n, -9_223_372_036_854_775_808n])
      expect(() => windowed('tumble', [size], ['timestamp'], [[beyond]])).toThrow('integer overflow');
  });

  test('of no length is refused', () => {
    expect(() => windowed('tumble', [0n], ['timestamp'], [])).toThrow('above zero');
  });
});

describe('HOP', () => {
  test('gives each row every window that holds it, the earliest first, whatever slide and size', () => {
    fc.assert(
      fc.property(kind, rowsOf, layout, seconds, seconds, (type, rows, how, slide, size) => {
        const wanted = rows.flatMap((row) =>
          row[0] === null ? [] : startsOf(row[0] as bigint, slide, size).map((start) => [...row, start, start + size]),
        );
        expect(shown(windowed('hop', [slide, size], [type, 'string'], rows, how).rows)).toEqual(shown(wanted));
      }),
      { numRuns: 400 },
    );
  });

  test('into thousands of windows comes out in pieces; into more than ten thousand it is refused', () => {
    const rows: CellRow[] = [[0n], [second]];
    const { rows: out, largest } = windowed('hop', [second, 10_000n * second], ['timestamp'], rows);
    expect(out.length).toBe(20_000);
    expect(out[10_000]).toEqual([second, -9_998n * second, 2n * second]);
    expect(largest).toBeLessThanOrEqual(4_096);
    expect(() => windowed('hop', [second, 10_001n * second], ['timestamp'], rows)).toThrow('more than 10000 windows');
    expect(() => windowed('hop', [2n * second, 20_001n * second], ['timestamp'], rows)).toThrow('more than 10000 windows');
  });
});

describe('SESSION', () => {
  test('parts the rows of a partition where the gap is at least as long as given', () => {
    fc.assert(
      fc.property(kind, rowsOf, layout, seconds, fc.boolean(), (type, rows, how, gap, parted) => {
        const present = rows.filter(([at]) => at !== null) as [bigint, Cell][];
        const parts = parted ? [...new Set(present.map(([, part]) => part))] : [undefined];
        const wanted = parts.flatMap((part) => {
          const own = present.filter((row) => !parted || row[1] === part).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
          const sessions: [bigint, Cell][][] = [];
          for (const row of own) {
            const open = sessions.at(-1);
            if (open && row[0] - open.at(-1)![0] < gap) open.push(row);
            else sessions.push([row]);
          }
          return sessions.flatMap((each) => each.map((row) => [...row, each[0]![0], each.at(-1)![0] + gap]));
        });
        expect(shown(windowed('session', [gap], [type, 'string'], rows, how, parted ? [1] : []).rows)).toEqual(shown(wanted));
      }),
      { numRuns: 400 },
    );
  });

  test('over many rows works and answers in pieces', () => {
    const rows: CellRow[] = Array.from({ length: 50_000 }, (_, i) => [BigInt((i * 7919) % 50_000) * second]);
    const { rows: out, calls, largest } = windowed('session', [2n * second], ['timestamp'], rows);
    expect(out.every(([, start, end]) => start === 0n && end === 50_001n * second)).toBe(true);
    expect(out.map(([at]) => at)).toEqual(Array.from({ length: 50_000 }, (_, i) => BigInt(i) * second));
    expect(largest).toBeLessThanOrEqual(4_096);
    expect(calls).toBeGreaterThan(60);
  });
});
