/**
 * Kernels beside generated code: the same questions over the same rows, in column memory and in plain arrays. Answers are
 * the same to the last bit, whatever lies in the columns.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { ServiceError } from '../../../src/errors.ts';
import type { Vector } from '../../../src/log/values/columns.ts';
import type { ColumnType } from '../../../src/log/values/value.ts';
import { Planner } from '../../../src/planner/planner.ts';
import { tell } from '../../runner/tell.ts';
import { hasTurn, inTurn, whole } from '../../runner/turn.ts';
import { Seeded } from '../../simulation/seeded.ts';
import { tuplesOf } from '../fake-snapshot.ts';
import { dictionaryOf, type KernelSegment, KernelStore, WatchedMemory } from './kernel-store.ts';

const types: Readonly<Record<string, ColumnType>> = {
  k: 'string',
  m: 'string',
  i: 'integer',
  j: 'integer',
  w: 'integer',
  l: 'integer',
  x: 'number',
  y: 'number',
  z: 'number',
  t: 'timestamp',
  e: 'number',
  g: 'integer',
  h: 'integer',
};

const few = dictionaryOf(['a', 'b', 'ab', '', 'Ä', 'a%', 'zz']);
const many = dictionaryOf(Array.from({ length: 900 }, (_, code) => `text ${(code * 7) % 900}`));

/** One segment of rows; every other one is of other layouts, and has NULLs. */
function segmentOf(random: Seeded, length: number, turn: number): KernelSegment {
  const each = <T>(make: (row: number) => T): T[] => Array.from({ length }, (_, row) => make(row));
  const pick = <T>(of: readonly T[]): T => of[random.below(of.length)]!;
  const nulls = (share: number): Uint8Array | null =>
    turn % 2 === 0 ? null : Uint8Array.from(each(() => (random.below(100) < share ? 1 : 0)));
  const i32 = (make: (row: number) => number, share = 0): Vector => ({
    kind: 'i32',
    values: Int32Array.from(each(make)),
    nulls: share > 0 ? nulls(share) : null,
  });
  const odd = [0, -0, 1.5, -1.5, 1e300, -1e300, Number.MIN_VALUE, 0.1, 0.2, 0.3, 2 ** 53, -(2 ** 53), 7];
  const columns: Record<string, Vector> = {
    k: { kind: 'dict', values: Int32Array.from(each(() => random.below(few.size))), dictionary: few, nulls: null },
    m: { kind: 'dict', values: Int32Array.from(each((row) => (row * 31) % many.size)), dictionary: many, nulls: nulls(5) },
    i: i32(() => pick([random.below(40), random.below(1_000), -5, 2_147_483_647, -2_147_483_648]), 10),
    j: i32((row) => (row + turn) % 60),
    w: {
      kind: 'f64',
      values: Float64Array.from(each(() => pick([2 ** 53 - 1, -(2 ** 53) + 1, random.below(9)]))),
      nulls: nulls(3),
    },
    l:
      turn % 3 === 1
        ? { kind: 'i64', values: BigInt64Array.from(each(() => BigInt(random.below(50)) * 10n ** 16n)), nulls: null }
        : i32(() => random.below(99)),
    x: { kind: 'f64', values: Float64Array.from(each(() => random.below(1_000_000) / 7 - 50_000)), nulls: nulls(20) },
    y: { kind: 'f64', values: Float64Array.from(each(() => pick(odd))), nulls: nulls(1) },
    z: turn % 3 === 2 ? { kind: 'null' } : { kind: 'f64', values: Float64Array.from(each(() => -random.below(3))), nulls: null },
    g: i32((row) => (row * 7 + turn * 1_000) % 12_000),
    h: i32((row) => (row * 3 + turn) % 3_000),
    e: {
      kind: 'f64',
      values: Float64Array.from(each(() => pick([Number.NaN, Infinity, -Infinity, 5, -5]))),
      nulls: nulls(9),
    },
    t: {
      kind: 'i64',
      values: BigInt64Array.from(each(() => 1_700_000_000_000_000_000n + BigInt(random.below(1_000)) * 10n ** 12n)),
      nulls: nulls(4),
    },
  };
  const live = Int32Array.from({ length: Math.ceil(length / 32) }, () => random.below(2 ** 32) | 0);
  const closed = each(() => (random.below(3) === 0 ? random.below(2_000) : 2_147_483_647));
  switch (turn % 4) {
    case 0:
      return { length, columns };
    case 1:
      return { length, columns, sift: { live, closings: null, closing: 0 } };
    case 2:
      return {
        length,
        columns,
        sift: { live: null, closings: Int32Array.from(closed), closing: 1_000 },
        first: 37,
        end: length - 5,
      };
    default:
      return {
        length,
        columns,
        sift: { live: null, closings: Float64Array.from(closed, (at) => (at > 2_000 ? Infinity : at)), closing: 700 },
        first: 3,
      };
  }
}

const planner = new Planner({ clock: systemClock, limits: { scannedRowsMax: 1e9 } });

async function answer(store: KernelStore, sql: string): Promise<unknown> {
  try {
    // Object.is tells zeros apart: so does a text of them.
    return tuplesOf(await planner.query(store.invocation(), { sql })).map((row) =>
      row.map((cell) => (Object.is(cell, -0) ? '-0' : cell)),
    );
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'REL_INVALID') return error.message;
    throw error;
  }
}

const random = new Seeded(7);
const segments = Array.from({ length: 7 }, (_, turn) =>
  segmentOf(random, turn === 3 ? 65_536 : 3_000 + random.below(9_000), turn),
);
let memory: WatchedMemory;
/** What the columns take. */
let resting: number;
let kernels: KernelStore;
let plain: KernelStore;
let cramped: KernelStore;

beforeAll(() => {
  memory = new WatchedMemory({ memoryBytes: 64 * 1024 * 1024, poison: true });
  kernels = new KernelStore(types, segments, memory);
  resting = memory.used;
  plain = new KernelStore(types, segments, null);
  const full = new WatchedMemory({ memoryBytes: 64 * 1024 * 1024 });
  full.hasRoom = false;
  cramped = new KernelStore(types, segments, full);
});

const conditions = [
  '',
  ...['i < 25', 'i <= 24.5', '25 > i', 'i >= -5', 'i > 2147483646', 'i = 2147483647', 'i != 7', 'i = 7.5', 'i != 7.5'],
  ...['i BETWEEN 3 AND 30', 'i BETWEEN 30 AND 3', 'i IN (1, 2, 3, 2147483647)', 'i IN (1, NULL)', 'i = NULL', 'i IS NULL'],
  ...['i IS NOT NULL', 'z IS NULL', 'i > -99999999999', 'i < 99999999999', 'i > 99999999999', 'i >= 9007199254740993'],
  ...['w = 9007199254740991', 'w < 9007199254740992', 'w > 3', 'w >= 9007199254740993', 'l > 100', 'l >= 100000000000000000'],
  ...['x < 0', 'x <= 100.25', 'x > -0.5', 'x >= 0 AND x < 1000', 'x BETWEEN 0 AND 1', 'x != 0', 'y = 0', 'y < 0', 'y > 0'],
  ...[
    'y <= 0',
    'y >= 0',
    'y > 7',
    'y < 1e300',
    'y > 2',
    'z < 0',
    'z = 0',
    'y IN (0, 7)',
    'e < 5',
    'e >= 5',
    'e != 5',
    'e = 5',
    'e > -5 AND e <= 5',
    'x > y',
    'x + 1 > 50',
  ],
  ...["t < '2023-11-15T00:00:00Z'", "t >= '2023-11-14T22:20:00Z' AND t < '2023-11-20T00:00:00Z'", 't > now()', 't != 5'],
  ...["k = 'a'", "k != 'a'", "k = 'nobody'", "k IN ('a', 'ab', 'x')", "k NOT IN ('a', 'b')", "k LIKE 'a%'", "k < 'b'"],
  ...["m = 'text 7'", "m LIKE '%9%'", 'm IS NULL', "m IS NULL OR m = 'text 0'", "NOT m LIKE '%9%'", "m IN ('text 1', NULL)"],
  ...["k = 'a' AND i < 100 AND x > 0 AND t > 0", "k = 'a' OR i < 3", 'i < 100 AND i + j > 50', 'i < 0 AND i > 0', 'j % 3 = 1'],
];

const aggregates = [
  'COUNT(*) AS n',
  'COUNT(*) AS n, COUNT(x) AS c, COUNT(z) AS d',
  'SUM(x) AS s, AVG(x) AS a, COUNT(*) AS n',
  'SUM(i) AS s, AVG(i) AS a, SUM(j) AS t',
  'SUM(w) AS s, SUM(j) AS t',
  'MIN(x) AS a, MAX(x) AS b, MIN(y) AS c, MAX(y) AS d, MIN(z) AS e, MAX(z) AS f',
  'MIN(i) AS a, MAX(i) AS b, MIN(t) AS c, MAX(t) AS d, MIN(l) AS e, MAX(l) AS f',
  'MIN(e) AS a, MAX(e) AS b, COUNT(e) AS c',
  'SUM(e) AS s',
  'SUM(z) AS s, SUM(x) AS x, SUM(y) AS y',
  'SUM(x * 2) AS s, COUNT(*) AS n',
];
/** Of the groups of each, too. */
const share = 3;
if (!whole)
  tell(`one in ${share} of the conditions and of the groups (npm run test:whole -- test/planner/kernels/kernel-answers.test.ts)`);

const groups = ['', 'k', 'j', 'g', 'h', 'h, k', 'k, j', 'j, k', 'm', 'i', 'k, m', 'j, i', 'k, j, i'];

const question = (what: string, group: string, where: string): string =>
  `SELECT ${group ? `${group}, ` : ''}${what} FROM T${where ? ` WHERE ${where}` : ''}${group ? ` GROUP BY ${group}` : ''}`;

describe('the same answer in column memory and in plain arrays', () => {
  test.each(inTurn(conditions, share))('where %s', async (where) => {
    for (const [what, group] of [
      [aggregates[0]!, ''],
      [aggregates[2]!, 'k'],
      [aggregates[3]!, 'k, j'],
    ] as const) {
      const sql = question(what, group, where);
      expect([sql, await answer(kernels, sql)]).toEqual([sql, await answer(plain, sql)]);
    }
    const sql = question(aggregates[4]!, 'k', where);
    expect([sql, await answer(cramped, sql)]).toEqual([sql, await answer(plain, sql)]);
    const rows = `SELECT DISTINCT k, j FROM T${where ? ` WHERE ${where}` : ''}`;
    expect(await answer(kernels, rows)).toEqual(await answer(plain, rows));
  });

  test.each(aggregates.map((what, at) => ({ what, at })))('of $what', async ({ what, at }) => {
    for (const group of groups.filter((_, index) => hasTurn(at + index, share))) {
      for (const where of group.length > 1 ? ['i < 25'] : ['', 'i < 25', 'x >= 0 AND x < 20000', 'i < 0 AND i > 0']) {
        const sql = question(what, group, where);
        expect([sql, await answer(kernels, sql)]).toEqual([sql, await answer(plain, sql)]);
      }
    }
  });

  test('kernels ran, and gave back where they worked', async () => {
    for (const sql of [question(aggregates[2]!, 'k', 'i < 25'), question(aggregates[3]!, '', 'j < 5')]) {
      const asked = memory.workspaces;
      await answer(kernels, sql);
      expect(memory.workspaces).toBeGreaterThan(asked + 1);
    }
    expect(memory.used).toBe(resting);
  });

  test('a question that ends early gives back where it worked', async () => {
    const short = new Planner({ clock: systemClock, limits: { scannedRowsMax: 5_000 } });
    await expect(short.query(kernels.invocation(), { sql: question(aggregates[2]!, 'k', 'i < 25') })).rejects.toThrow(
      'scans more',
    );
    expect(memory.used).toBe(resting);
  });

  test('sums of doubles are those of rows in order', async () => {
    let sum = 0;
    for (const { columns, length } of segments.slice(0, 1)) {
      const y = columns['x'] as Extract<Vector, { kind: 'f64' }>;
      for (let row = 0; row < length; row++) sum += y.values[row]!;
    }
    const one = new KernelStore(types, segments.slice(0, 1), new WatchedMemory({ memoryBytes: 16 * 1024 * 1024 }));
    expect(await answer(one, 'SELECT SUM(x) AS s FROM T')).toEqual([[sum]]);
  });

  test('integers beyond 2^53 are exact, beyond 2^63 refused', async () => {
    const top = { kind: 'i32', values: new Int32Array(60_000).fill(2_147_483_647), nulls: null } as const;
    const wide = Array.from({ length: 80 }, (): KernelSegment => ({ length: 60_000, columns: { i: top } }));
    const store = new KernelStore(types, wide, new WatchedMemory({ memoryBytes: 64 * 1024 * 1024 }));
    expect(await answer(store, 'SELECT SUM(i) AS s FROM T')).toEqual([[2_147_483_647n * 4_800_000n]]);
  });
});
