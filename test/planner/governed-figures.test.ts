/** Figures beside the rows: estimates, totals, plans and units tell of what the caller sees, however much lies hidden between. */
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { Caller } from '../../src/governance/caller.ts';
import type { Answer } from '../../src/planner/planner-contract.ts';
import { Planner } from '../../src/planner/planner.ts';
import { analyst, type InputRow, rowsOf, TestStore } from '../harness.ts';
import { FakeStore, type Row } from './fake-snapshot.ts';

describe('matches beyond LIMIT are counted up to a row, whatever batches rows come in', () => {
  const rows = Array.from({ length: 170_000 }, (_, i): Row => ({ n: BigInt(i) }));
  const layouts = [{}, { blockRows: 1_000 }, { blockRows: 777 }, { segmentRows: 65_536, blockRows: 4_099 }].map(
    (layout) => new FakeStore([{ name: 'T', properties: { n: 'integer' }, rows, ...layout }]),
  );
  const planner = new Planner({ clock: systemClock });

  test.each([
    // The page, then every third of so many more.
    ['SELECT n FROM T WHERE n % 3 = 0 LIMIT 5', 5 + 43_690, true],
    ['SELECT n FROM T LIMIT 5', 100_000, true],
    ['SELECT n FROM T LIMIT 100000', 100_001, true],
    ['SELECT n FROM T LIMIT 169999', 170_000, true],
    ['SELECT n FROM T LIMIT 170000', 170_000, false],
    ['SELECT n FROM T WHERE n >= 169990 LIMIT 5', 10, true],
  ])('%s', async (sql, hits, more) => {
    for (const store of layouts) {
      const { estimatedTotalHits, nextCursor } = await planner.query(store.invocation(), { sql });
      expect([estimatedTotalHits, nextCursor !== null]).toEqual([hits, more]);
    }
  });
});

const admin: Caller = { ...analyst, principal: 'root', credential: 'admin' };
const clerk: Caller = { ...analyst, principal: 'cleo', path: 'acme', roles: ['clerk'] };
const other: Caller = { ...analyst, principal: 'otto', path: 'acme' };

/** One row in so many is hidden: by what it holds, and some in another type that a join reads. */
async function worldOf(hidden: number): Promise<TestStore> {
  const store = await TestStore.open('2024-01-01', { SERVICE_SKETCH_COLUMNS: 'n,region' });
  for (const type of ['Person', 'City']) {
    await store.register(type, { key: 'string', region: 'string', n: 'integer' }, 'key');
    const rows: InputRow[] = Array.from({ length: 300 }, (_, i) => ({ key: `k${i}`, region: 'EU', n: i % 10 }));
    for (let i = 0; i < 300; i += 50) {
      store.clock.wallNs += 1_000_000n;
      const secret = Array.from({ length: hidden }, (_, h): InputRow => ({ key: `h${i}.${h}`, region: 'XX', n: h }));
      await store.put(type, [...rows.slice(i, i + 50), ...secret.slice(0, hidden / 2)], other);
      if (hidden > 0) await store.put(type, secret, other);
    }
  }
  const texts = {
    all: 'permit(principal, action, resource);',
    rows: 'forbid(principal in Role::"clerk", action, resource is Row) when { resource.region == "XX" };',
  };
  store.clock.set('2024-02-01');
  for (const [id, text] of Object.entries(texts)) {
    const command = { kind: 'put-policy', id, text } as const;
    await store.service.gate.invoke(admin, { action: 'administer', purpose: 'test', correlationId: 'c' }, (invocation) =>
      invocation.submit(command),
    );
  }
  store.clock.set('2024-03-01');
  return store;
}

const questions = [
  'SELECT key, n FROM Person',
  'SELECT key, n FROM Person LIMIT 7',
  'SELECT key, n FROM Person AS OF CURRENT LIMIT 7',
  "SELECT key, n FROM Person AS OF SYSTEM TIME '2024-01-01T00:00:00.003Z' LIMIT 7",
  "SELECT key FROM Person WHERE n = 3 AND region = 'EU' LIMIT 2",
  "SELECT key FROM Person WHERE key IN ('k1', 'h0.1')",
  "SELECT key FROM Person WHERE key = 'h0.1'",
  'SELECT n, COUNT(*) AS c FROM Person GROUP BY n ORDER BY c DESC, n',
  'SELECT DISTINCT region FROM Person',
  'SELECT COUNT(*) FROM Person a JOIN City b ON a.key = b.key AND b.n = 3',
  'SELECT n FROM Person WHERE n > 4 FACETS n, region',
  'SELECT n FROM Person UNION SELECT n FROM City ORDER BY n LIMIT 3',
  'SELECT key FROM Person ORDER BY n LIMIT 3',
  'SELECT key FROM Person LIMIT 3 WITH PROVENANCE',
  'SELECT key FROM Person WHERE n > 8 LIMIT 2',
  "SELECT key FROM Person WHERE region = 'XX' OR n > 9 LIMIT 2",
  'SELECT a.key, b.n FROM Person a LEFT JOIN City b ON a.n = b.n WHERE a.n < 3 LIMIT 4',
  'SELECT key FROM Person p WHERE EXISTS (SELECT 1 FROM City c WHERE c.n = p.n AND c.key > p.key)',
  'SELECT key, (SELECT MAX(c.key) FROM City c WHERE c.n = p.n) AS m FROM Person p LIMIT 3',
  'SELECT n FROM Person WHERE n IN (SELECT n FROM City) AND EXISTS (SELECT 1 FROM City WHERE n = 11) LIMIT 3',
  "SELECT region, COUNT(DISTINCT n) AS d, STRING_AGG(key, ',') AS k FROM Person GROUP BY region",
  'SELECT key, SUM(n) OVER (PARTITION BY region ORDER BY key) AS s FROM Person',
  "SELECT key FROM Person WHERE MATCH(key, 'k1 k2 h0')",
];

test('a world where rows are hidden answers as one without them', { timeout: 60_000 }, async () => {
  const worlds = [await worldOf(0), await worldOf(2), await worldOf(120)];
  try {
    for (const question of questions) {
      for (const sql of [question, `EXPLAIN ${question}`, `EXPLAIN ANALYZE ${question}`]) {
        const [nothing, ...others] = await Promise.all(worlds.map(async (store) => told(await store.answer(sql, clerk))));
        for (const world of others) expect(world, sql).toEqual(nothing);
      }
    }
  } finally {
    for (const store of worlds) await store.close();
  }
});

/** All but what differs with the number of commits. */
function told(answer: Answer): unknown {
  const { columns, rowCount, costUnits, estimatedTotalHits, facets, plan, actualRows, asOfSystem } = answer;
  const provenance = answer.provenance?.map(({ source, method, confidence }) => [source, method, confidence]);
  const more = answer.nextCursor !== null;
  return {
    columns,
    rows: rowsOf(answer),
    rowCount,
    costUnits,
    estimatedTotalHits,
    facets,
    plan,
    actualRows,
    asOfSystem,
    provenance,
    more,
  };
}

test('joins are arranged by what their asker sees, at each run, and not by what others write', async () => {
  const store = await TestStore.open('2024-01-01');
  for (const type of ['Person', 'City']) await store.register(type, { key: 'string', n: 'integer' }, 'key');
  let written = 0;
  const put = (type: string, count: number, who: Caller): Promise<unknown> => {
    const rows = Array.from({ length: count }, (): InputRow => ({ key: `k${written++}`, n: written % 10 }));
    return store.put(type, rows, who);
  };
  // Which side of the join is held.
  const planned = async (): Promise<readonly string[]> => {
    const lines = await store.rows('EXPLAIN SELECT p.key FROM Person p JOIN City c ON p.n = c.n', other);
    return lines.map(({ plan }) => String(plan)).filter((line) => /join/.test(line));
  };
  await put('Person', 10, other);
  await put('City', 100, other);
  const first = await planned();
  for (const type of ['Person', 'City']) await put(type, 12_000, { ...other, path: 'globex' });
  expect(await planned()).toEqual(first);
  await put('Person', 500, other);
  expect(await planned()).not.toEqual(first);
  await store.close();
});
