/** What sketched columns change: which side of a join is held, and what EXPLAIN tells; never an answer, never for strangers. */
import { describe, expect, test } from 'vitest';
import type { Caller } from '../../../src/governance/caller.ts';
import { analyst, type InputRow, rowsOf, TestStore } from '../../harness.ts';

const at = (path: string): Caller => ({ ...analyst, path });
const sketched = { SERVICE_SKETCH_COLUMNS: 'code,size' };

const parts = (count: number, from = 0): InputRow[] =>
  Array.from({ length: count }, (_, i) => ({
    _pk: `p${from + i}`,
    code: `code ${(from + i) % 800}`,
    size: i % 4 === 0 ? null : (from + i) % 100,
    other: i % 3,
  }));

async function filled(settings: Readonly<Record<string, string>> = sketched, path = 'acme'): Promise<TestStore> {
  const store = await TestStore.open('2024-01-01', settings);
  await store.register('Part', { code: 'string', size: 'integer', other: 'integer' });
  await store.register('Sale', { part: 'string', n: 'integer' });
  store.clock.wallNs += 1_000_000_000n;
  await store.put('Part', parts(4000), at(path));
  await store.put(
    'Sale',
    Array.from({ length: 500 }, (_, i) => ({ _pk: `o${i}`, part: `p${i * 7}`, n: i })),
    at(path),
  );
  return store;
}

const plan = async (store: TestStore, sql: string, path = 'acme'): Promise<string> =>
  (await store.answer(`EXPLAIN ${sql}`, at(path))).plan!;
const filterOf = async (store: TestStore, where: string, path = 'acme'): Promise<string> => {
  const text = await plan(store, `SELECT _pk FROM Part WHERE ${where}`, path);
  return /about (\d+) rows$/.exec(text.split('\n').find((line) => line.includes('filter'))!)?.[1] ?? 'nothing';
};

const joined = "SELECT o.n AS n, p.size AS size FROM Part p JOIN Sale o ON o.part = p._pk WHERE p.code = 'code 7'";

describe('a plan', () => {
  test('holds the side of which a sketch says that it is the smaller one; the answer stays', async () => {
    const [plain, informed] = [await filled({}), await filled()];
    expect(await plan(plain, joined)).toContain('holding right');
    expect(await plan(informed, joined)).toContain('holding left');
    const answers = await Promise.all([plain, informed].map(async (store) => rowsOf(await store.answer(joined, at('acme')))));
    expect(answers[1]).toEqual(answers[0]);
    expect(answers[0]!.length).toBeGreaterThan(0);
    await Promise.all([plain.close(), informed.close()]);
  });

  test('goes by how many groups there can be', async () => {
    const grouped =
      'SELECT g.code AS code, o.n AS n FROM (SELECT size AS code FROM Part GROUP BY size) g JOIN Sale o ON o.n = g.code';
    const [plain, informed] = [await filled({}), await filled()];
    expect(await plan(plain, grouped)).toContain('holding right');
    expect(await plan(informed, grouped)).toContain('holding left');
    await Promise.all([plain.close(), informed.close()]);
  });
});

describe('EXPLAIN', () => {
  test('tells what a filter over sketched columns lets through, by the values asked for', async () => {
    const store = await filled();
    expect(await filterOf(store, "code = 'code 7'")).toBe('5');
    expect(await filterOf(store, "code IN ('code 7', 'code 9')")).toBe('10');
    expect(await filterOf(store, 'size IS NULL')).toBe('1000');
    expect(await filterOf(store, 'size IS NOT NULL')).toBe('3000');
    expect(await filterOf(store, "size IS NULL AND code = 'code 7'")).toBe('1');
    expect(await filterOf(store, "size IS NULL OR code = 'code 7'")).toBe('1005');
    // Values 1 .. 99 but those that 4 divides: 24 of 75 are below 33, 12 of them from 17 on.
    const [below, above, between] = [
      await filterOf(store, 'size < 33'),
      await filterOf(store, '33 <= size'),
      await filterOf(store, 'size BETWEEN 17 AND 32'),
    ];
    expect(Math.abs(Number(below) - 960)).toBeLessThan(200);
    expect(Number(below) + Number(above)).toBe(3000);
    expect(Math.abs(Number(between) - 480)).toBeLessThan(200);
    expect(await filterOf(store, 'other = 1')).toBe('nothing');
    expect(await filterOf(store, 'size IS NULL AND other = 1')).toBe('100');
    await store.close();
  });

  test('goes on with new rows, forgets removed ones, and tells the same at one basis whoever asked before', async () => {
    const [asked, unasked] = [await filled(), await filled()];
    const withSizes = parts(4000, 4000).map((row, i) => ({ ...row, size: i % 100 }));
    for (const store of [asked, unasked]) {
      store.clock.wallNs += 1_000_000_000n;
      if (store === asked) expect(await filterOf(store, 'size IS NULL')).toBe('1000');
      await store.put('Part', withSizes, at('acme'));
      store.clock.wallNs += 1_000_000_000n;
      if (store === asked) expect(await filterOf(store, 'size IS NULL')).toBe('1000');
      await store.invoke(at('acme'), 'remove', (invocation) =>
        invocation.submit({ kind: 'remove-rows', type: 'Part', keys: parts(2000).map(({ _pk }) => String(_pk)) }),
      );
      store.clock.wallNs += 1_000_000_000n;
    }
    for (const where of ['size IS NULL', 'size < 50', "code = 'code 7'", "code >= 'code 5'"]) {
      expect(await filterOf(asked, where)).toBe(await filterOf(unasked, where));
    }
    expect(await filterOf(asked, 'size IS NULL')).toBe('500');
    await Promise.all([asked.close(), unasked.close()]);
  });

  test('an invocation that began earlier is told of the rows of then, and spoils nothing', async () => {
    const store = await filled();
    const sql = 'EXPLAIN SELECT _pk FROM Part WHERE size IS NULL';
    const [then, now] = await store.invoke(at('acme'), 'query', async (invocation) => {
      const snapshot = invocation.snapshot();
      const held = { ...invocation, caller: invocation.caller, describe: () => undefined, snapshot: () => snapshot };
      store.clock.wallNs += 1_000_000_000n;
      await store.put(
        'Part',
        parts(4000, 4000).map((row) => ({ ...row, size: 1 })),
        at('acme'),
      );
      const now = await filterOf(store, 'size IS NULL');
      return [(await store.service.planner.query(held, { sql })).plan, now];
    });
    // Of 8,000 rows that are open now a quarter was missing a size then, an eighth is now.
    expect(now).toBe('1000');
    expect(then).toContain('(size is null); kernel; about 2000 rows');
    expect(await filterOf(store, 'size IS NULL')).toBe('1000');
    await store.close();
  });

  test('what others wrote does not show, and a view that stands for rows does not stand in for them', async () => {
    const [quiet, busy] = [await filled(), await filled()];
    await busy.put(
      'Part',
      Array.from({ length: 3000 }, (_, i) => ({ _pk: `x${i}`, code: 'code 7', size: 1 })),
      at('globex'),
    );
    await busy.put('Part', [{ _pk: 'null path', code: 'code 7' }]);
    for (const sql of [
      joined,
      "SELECT _pk FROM Part WHERE code = 'code 7'",
      'SELECT _pk FROM Part WHERE size > 50 AND code IS NULL',
    ]) {
      expect(await plan(busy, sql)).toBe(await plan(quiet, sql));
    }
    expect(await filterOf(busy, "code = 'code 7'", 'globex')).toBe('3000');
    expect(await filterOf(busy, "code = 'code 7'")).toBe('5');
    await Promise.all([quiet.close(), busy.close()]);
  });
});
