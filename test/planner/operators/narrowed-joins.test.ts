/**
 * Joins whose one side is told the keys of the other, beside loops over the same rows: every type of join, either side the
 * larger one, keys of every layout, below groups, conditions and further joins.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { seedBase } from '../../runner/seed.ts';
import { rowsOf, TestStore } from '../../harness.ts';
import { Choices } from '../generator/random.ts';

type Pair = {
  readonly id: number;
  readonly k: number | null;
  readonly v: number;
};

const layouts = { small: 1, far: 2 ** 45, half: 0.5 } as const;
const sizes = { large: 2_400, few: 25, some: 300 } as const;
const tables = new Map<string, Pair[]>();
let store: TestStore;

beforeAll(async () => {
  store = await TestStore.open();
  store.dialect = 'wide';
  for (const [layout, unit] of Object.entries(layouts)) {
    const type = unit < 1 ? 'number' : 'integer';
    for (const [size, count] of Object.entries(sizes)) {
      const choices = new Choices(seedBase, 0x7d_01, count * 10 + layout.length);
      const rows = Array.from({ length: count }, (_, id): Pair => {
        return { id, k: choices.chance(8) ? null : (choices.below(60) - 5) * unit, v: choices.below(100) };
      });
      const name = `${size}_${layout}`;
      tables.set(name, rows);
      await store.register(name, { id: 'integer', k: type, v: 'integer' });
      await store.put(
        name,
        rows.map((row) => ({ ...row })),
      );
    }
  }
});
afterAll(() => store.close());

type Key = number | null;
const meets = (a: Key, b: Key): boolean => a !== null && a === b;

async function found(sql: string): Promise<string[]> {
  const rows = rowsOf(await store.answer(sql)).map((row) => Object.values(row).map(String).join(' '));
  return rows.sort();
}

function shown(rows: readonly (readonly (Key | undefined)[])[]): string[] {
  return rows.map((row) => row.map((cell) => String(cell ?? null)).join(' ')).sort();
}

const cases = Object.keys(layouts).flatMap((layout) =>
  [
    ['large', 'few'],
    ['few', 'large'],
    ['some', 'large'],
  ].map(([a, b]) => [`${a!}_${layout}`, `${b!}_${layout}`] as const),
);

test.each(cases)('%s and %s', async (left, right) => {
  const [a, b] = [tables.get(left)!, tables.get(right)!];
  const partners = (row: Pair): Pair[] => b.filter(({ k }) => meets(row.k, k));
  const unmet = b.filter(({ k }) => !a.some((row) => meets(row.k, k)));
  const inner = a.flatMap((row) => partners(row).map((other) => [row.id, other.id]));
  const lone = a.filter((row) => partners(row).length === 0).map(({ id }) => [id, null]);
  const rest = unmet.map(({ id }) => [null, id]);
  const join = (type: string): string => `SELECT a.id, b.id AS other FROM ${left} a ${type} JOIN ${right} b ON a.k = b.k`;
  expect(await found(join('INNER'))).toEqual(shown(inner));
  expect(await found(join('LEFT'))).toEqual(shown([...inner, ...lone]));
  expect(await found(join('RIGHT'))).toEqual(shown([...inner, ...rest]));
  expect(await found(join('FULL'))).toEqual(shown([...inner, ...lone, ...rest]));

  const exists = `(SELECT 1 FROM ${right} b WHERE b.k = a.k AND b.v > a.v)`;
  const larger = (row: Pair): boolean => partners(row).some(({ v }) => v > row.v);
  expect(await found(`SELECT id FROM ${left} a WHERE EXISTS ${exists}`)).toEqual(shown(a.filter(larger).map(({ id }) => [id])));
  expect(await found(`SELECT id FROM ${left} a WHERE NOT EXISTS ${exists}`)).toEqual(
    shown(a.filter((row) => !larger(row)).map(({ id }) => [id])),
  );
  expect(await found(`SELECT id FROM ${left} a WHERE a.v < 50 OR EXISTS ${exists}`)).toEqual(
    shown(a.filter((row) => row.v < 50 || larger(row)).map(({ id }) => [id])),
  );
  const summed = (row: Pair): Key => (partners(row).length === 0 ? null : partners(row).reduce((sum, { v }) => sum + v, 0));
  expect(await found(`SELECT id, (SELECT SUM(v) FROM ${right} b WHERE b.k = a.k) AS s FROM ${left} a`)).toEqual(
    shown(a.map((row) => [row.id, summed(row)])),
  );
  const groups = `(SELECT k, COUNT(*) AS n FROM ${right} WHERE v > 10 GROUP BY k)`;
  expect(await found(`SELECT a.id, g.n FROM ${left} a JOIN ${groups} g ON g.k = a.k WHERE a.v < 40`)).toEqual(
    shown(
      a.flatMap((row) => {
        const n = partners(row).filter(({ v }) => v > 10).length;
        return row.v < 40 && n > 0 ? [[row.id, n]] : [];
      }),
    ),
  );
  const outer = `${left} a LEFT JOIN (SELECT b.k, c.v FROM ${right} b LEFT JOIN ${left} c ON c.id = b.v) d ON d.k = a.k AND a.v > 20`;
  expect(await found(`SELECT a.id, d.v FROM ${outer} WHERE a.v < 60`)).toEqual(
    shown(
      a.flatMap((row): (readonly (Key | undefined)[])[] => {
        if (row.v >= 60) return [];
        const met = row.v > 20 ? partners(row) : [];
        return met.length === 0 ? [[row.id, null]] : met.map(({ v }) => [row.id, a.find(({ id }) => id === v)?.v]);
      }),
    ),
  );
});

test('rows that are looked up by few keys are those that a scan finds: of declared and made keys, in every version', async () => {
  await store.register('keyed', { id: 'string', v: 'integer' }, 'id');
  await store.register('counted', { n: 'integer', v: 'integer' }, 'n');
  await store.register('asks', { id: 'string', one: 'string', n: 'integer' }, 'id');
  const [many, some] = [1_500, 40];
  for (const version of [0, 1]) {
    // The second time a part of them: some keys have two versions, in the order in which they came.
    const ids = Array.from({ length: many }, (_, i) => i).filter((i) => version === 0 || i % 3 === 0);
    await store.put(
      'keyed',
      ids.map((i) => ({ id: `k${i}`, v: i + version })),
    );
    await store.put(
      'counted',
      ids.map((i) => ({ n: i, v: i + version })),
    );
  }
  await store.delete('keyed', ['k6']);
  const choices = new Choices(seedBase, 0x7d_02);
  const asks = Array.from({ length: some }, (_, i) => ({
    id: `a${i}`,
    one: choices.chance(10) ? null : `k${choices.below(many + 50)}`,
    n: choices.chance(10) ? null : choices.below(many + 50),
  }));
  await store.put('asks', asks);
  for (const time of ['', ' AS OF CURRENT']) {
    const all = async (type: string, key: string): Promise<Map<string, unknown[]>> => {
      const rows = new Map<string, unknown[]>();
      for (const row of rowsOf(await store.answer(`SELECT ${key} AS key, v FROM ${type}${time} LIMIT 100000`)))
        rows.set(String(row['key']), [...(rows.get(String(row['key'])) ?? []), row['v']]);
      return rows;
    };
    for (const [type, key, own] of [
      ['keyed', 'id', 'one'],
      ['keyed', '_pk', 'one'],
      ['counted', 'n', 'n'],
    ] as const) {
      const stored = await all(type, key);
      const expected = asks.flatMap(({ id, [own]: wanted }) =>
        (wanted === null ? [] : (stored.get(String(wanted)) ?? [])).map((v) => `${id} ${String(v)}`),
      );
      const sql = `SELECT a.id, b.v FROM asks a JOIN ${type} b ON b.${key} = a.${own}${time}`;
      const answer = await store.answer(sql);
      expect(
        rowsOf(answer).map((row) => Object.values(row).map(String).join(' ')),
        sql,
      ).toEqual(expected);
    }
  }
});
