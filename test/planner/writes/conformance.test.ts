/** Each form of INSERT, UPDATE, DELETE and MERGE, in one world: what it writes, what it answers, what it refuses and where. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import { FOREVER, formatInstant, parseInstant } from '../../../src/log/values/timestamp.ts';
import type { Caller } from '../../../src/governance/caller.ts';
import type { Literal } from '../../../src/planner/syntax/statement.ts';
import { analyst, type Row, rowsOf, TestStore } from '../../harness.ts';

const ann: Caller = { ...analyst, principal: 'ann', tenant: 'acme', path: 'acme' };
const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0 };

let store: TestStore;
beforeAll(async () => {
  store = await TestStore.open('2024-01-01');
  await store.register(
    'Item',
    { sku: 'string', name: 'string', n: 'integer', price: 'number', seen: 'timestamp', doc: 'json', ok: 'boolean' },
    'sku',
  );
  await store.register('Part', { sku: 'string', of: 'string', n: 'integer' }, 'sku');
  await store.register('Person', { name: 'string', region: 'string', secret: { ...plain, type: 'string', masked: true } });
  await store.invoke(analyst, 'schema', (invocation) =>
    invocation.submit({ kind: 'register-type', name: 'Free', properties: null, primaryKey: null, graphTriggers: [] }),
  );
});
afterAll(() => store.close());

let minute = 0;
beforeEach(async () => {
  store.clock.set(`2024-02-01T${String(Math.floor(++minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}:00Z`);
  for (const type of ['Item', 'Part', 'Person', 'Free']) await store.execute(`DELETE FROM ${type}`, [], ann);
});

const run = (sql: string, ...parameters: readonly Literal[]) => store.execute(sql, parameters, ann);
const counts = async (sql: string, ...parameters: readonly Literal[]): Promise<unknown> => {
  const { verb, inserted, updated, deleted, kept } = (await run(sql, ...parameters)).written!;
  return { [verb]: verb === 'insert' ? [inserted, updated, kept] : verb === 'update' ? updated : deleted };
};
const returned = async (sql: string, ...parameters: readonly Literal[]): Promise<Row[]> =>
  rowsOf((await run(sql, ...parameters)).answer);
const ask = (sql: string): Promise<Row[]> => returned(sql);
const items = (): Promise<Row[]> => store.rows('SELECT sku, name, n, price FROM Item AS OF CURRENT ORDER BY sku', ann);
async function refusal(sql: string, ...parameters: readonly Literal[]): Promise<string> {
  try {
    await run(sql, ...parameters);
  } catch (error) {
    if (error instanceof ServiceError) return `${error.code} ${error.message}`;
    throw error;
  }
  throw new Error(`was run: ${sql}`);
}

describe('INSERT', () => {
  test('takes rows of values, a query, defaults, parameters', async () => {
    expect(await counts("INSERT INTO Item (sku, name, n, price) VALUES ('a', 'A', 1, 1.5), ('b', DEFAULT, 2, 3)")).toEqual({
      insert: [2, 0, 0],
    });
    expect(await counts('INSERT INTO Item (sku, n) VALUES ($1, $2)', 'c', 9_007_199_254_740_993n)).toEqual({ insert: [1, 0, 0] });
    expect(await counts("INSERT INTO Item SELECT sku || '2', UPPER(name) FROM Item WHERE sku = 'a'")).toEqual({
      insert: [1, 0, 0],
    });
    expect(await items()).toEqual([
      { sku: 'a', name: 'A', n: 1n, price: 1.5 },
      { sku: 'a2', name: 'A', n: null, price: null },
      { sku: 'b', name: null, n: 2n, price: 3 },
      { sku: 'c', name: null, n: 9_007_199_254_740_993n, price: null },
    ]);
    expect(
      await counts(
        "WITH x AS (SELECT sku, n FROM Item WHERE n < 10) INSERT INTO Part (sku, n, of) WITH y AS (SELECT * FROM x) SELECT sku, n * 2, 'x' FROM y",
      ),
    ).toEqual({ insert: [2, 0, 0] });
    expect(await ask('SELECT sku, n FROM Part')).toEqual([
      { sku: 'a', n: 2n },
      { sku: 'b', n: 4n },
    ]);
    await run('INSERT INTO Person DEFAULT VALUES');
    await run("INSERT INTO Person (_pk, name) VALUES (NULL, 'x')");
    expect(await ask('SELECT COUNT(*) AS n FROM Person')).toEqual([{ n: 2n }]);
  });

  test('reads texts as the JSON and the instants that columns take', async () => {
    await run(`INSERT INTO Item (sku, seen, doc, ok) VALUES ('a', '2024-03-01', '{"x": [1]}', TRUE)`);
    expect(await ask('SELECT seen, doc, ok FROM Item')).toEqual([
      { seen: 1_709_251_200_000_000_000n, doc: '{"x": [1]}', ok: true },
    ]);
    expect(await refusal("INSERT INTO Item (sku, doc) VALUES ('b', '{')")).toMatch(
      /^REL_TYPE_MISMATCH column "doc": the text is not JSON/,
    );
    expect(await refusal("INSERT INTO Item (sku, seen) VALUES ('b', 'soon')")).toMatch(/^REL_TYPE_MISMATCH column "seen"/);
    expect(await refusal("INSERT INTO Item (sku, n) VALUES ('b', 'two')")).toMatch(
      /^REL_TYPE_MISMATCH row 0: column "n": string given/,
    );
  });

  test('returns rows as they are stored', async () => {
    const rows = await returned(
      "INSERT INTO Item (sku, n, price) VALUES ('a', 1, 2), ('b', 2, 2.5) RETURNING _pk AS key, price, n + 1 AS more, UPPER(sku), valid_to, system_from",
    );
    const stored = await ask('SELECT system_from FROM Item');
    expect(rows).toEqual([
      { key: 'a', price: 2, more: 2n, column_4: 'A', valid_to: 9_223_372_036_854_775_807n, ...stored[0] },
      { key: 'b', price: 2.5, more: 3n, column_4: 'B', valid_to: 9_223_372_036_854_775_807n, ...stored[1] },
    ]);
    const [row] = await returned("INSERT INTO Item (sku) VALUES ('c') RETURNING *");
    expect([row]).toEqual(await store.rows("SELECT * FROM Item AS OF CURRENT WHERE sku = 'c'", ann));
    const [made] = await returned("INSERT INTO Part (sku, n) SELECT 'p', 3 RETURNING Part.n, id, tenant_id");
    expect(made).toEqual({ n: 3n, id: 'p', tenant_id: 'acme' });
    expect(await refusal("INSERT INTO Item (sku) VALUES ('d') RETURNING CAST(sku AS INTEGER)")).toMatch(/^REL_INVALID/);
    expect(await ask("SELECT COUNT(*) AS n FROM Item WHERE sku = 'd'")).toEqual([{ n: 0n }]);
  });

  test('gives an open type the columns that it names', async () => {
    const [row] = await returned("INSERT INTO Free (id, a, b) VALUES ('x', 1, 'b') RETURNING a, b, id");
    expect(row).toEqual({ a: 1n, b: 'b', id: 'x' });
    // A wider column is returned as it is stored.
    expect(await returned("INSERT INTO Free (id, a) VALUES ('y', 1.5) RETURNING a")).toEqual([{ a: 1.5 }]);
    expect(
      await counts(
        "INSERT INTO Free (id, a, c) VALUES ('x', 7, TRUE) ON CONFLICT (id) DO UPDATE SET c = EXCLUDED.c, a = Free.a + EXCLUDED.a",
      ),
    ).toEqual({ insert: [0, 1, 0] });
    expect(await ask("SELECT a, b, c FROM Free WHERE id = 'x'")).toEqual([{ a: 8, b: 'b', c: true }]);
    expect(await refusal('UPDATE Free SET nothing = 1')).toMatch(/^REL_UNKNOWN_COLUMN 1:17: type "Free" has no column "nothing"/);
  });

  test('refuses keys that are there, all of it', async () => {
    await run("INSERT INTO Item (sku, n) VALUES ('a', 1)");
    expect(await refusal("INSERT INTO Item (sku, n) VALUES ('b', 1), ('a', 2)")).toBe(
      'REL_CONFLICT row 1: the row is there already',
    );
    expect(await refusal("INSERT INTO Item (sku, n) VALUES ('b', 1), ('b', 2)")).toBe(
      'REL_CONFLICT row 1: the row is there already',
    );
    expect(await items()).toEqual([{ sku: 'a', name: null, n: 1n, price: null }]);
  });

  test('leaves what is there, or updates it, where it says so', async () => {
    await run("INSERT INTO Item (sku, name, n) VALUES ('a', 'A', 1), ('b', 'B', 5)");
    expect(await counts("INSERT INTO Item (sku, n) VALUES ('a', 9), ('c', 3), ('c', 4) ON CONFLICT DO NOTHING")).toEqual({
      insert: [1, 0, 2],
    });
    expect(
      await returned("INSERT INTO Item (sku, n) VALUES ('c', 9), ('d', 3) ON CONFLICT (sku) DO NOTHING RETURNING sku"),
    ).toEqual([{ sku: 'd' }]);
    const upsert =
      'INSERT INTO Item AS i (sku, n, name) VALUES ($1, $2, $3), ($4, 1, $3) ON CONFLICT (sku) DO UPDATE SET n = i.n + EXCLUDED.n, price = (SELECT COUNT(*) FROM Part) WHERE i.n < 5';
    expect(await counts(upsert, 'a', 10n, 'x', 'b')).toEqual({ insert: [0, 1, 1] });
    expect(await returned(`${upsert} RETURNING sku, n, name`, 'a', 10n, 'x', 'e')).toEqual([{ sku: 'e', n: 1n, name: 'x' }]);
    expect(
      await returned(
        "INSERT INTO Item (sku, n) VALUES ('z', 0), ('a', 1) ON CONFLICT (sku) DO UPDATE SET n = excluded.n RETURNING sku, n, name",
      ),
    ).toEqual([
      { sku: 'z', n: 0n, name: null },
      { sku: 'a', n: 1n, name: 'A' },
    ]);
    const own = "INSERT INTO Item (sku, n) VALUES ('z', 0) ON CONFLICT (sku) DO UPDATE SET";
    expect(await returned(`${own} sku = excluded.sku, n = 7 RETURNING sku, n`)).toEqual([{ sku: 'z', n: 7n }]);
    expect(await returned(`${own} sku = EXCLUDED.sku RETURNING sku, n`)).toEqual([{ sku: 'z', n: 7n }]);
    expect(await refusal(`${own} sku = excluded.name`)).toMatch(/^REL_INVALID .*is the key of the row/);
    expect(await refusal("INSERT INTO Item (sku, n) VALUES ('a', 0), ('a', 1) ON CONFLICT (sku) DO UPDATE SET n = 1")).toMatch(
      /^REL_INVALID .*meets a key twice/,
    );
    expect(await refusal("INSERT INTO Item (sku) VALUES ('a') ON CONFLICT (name) DO NOTHING")).toMatch(
      /^REL_INVALID .*ON CONFLICT \("sku"\)/,
    );
    expect(await refusal("INSERT INTO Item (sku) VALUES ('a') ON CONFLICT (sku) DO UPDATE SET sku = 'b'")).toMatch(
      /^REL_INVALID .*"sku" is the key/,
    );
    expect(await refusal("INSERT INTO Item (sku) VALUES ('a') ON CONFLICT (sku) DO UPDATE SET n = sku2")).toMatch(
      /^REL_UNKNOWN_COLUMN/,
    );
    expect(
      await counts('INSERT INTO Item (sku, n) SELECT sku, n FROM Item WHERE n > 100 ON CONFLICT (sku) DO UPDATE SET n = 1'),
    ).toEqual({ insert: [0, 0, 0] });
  });

  test('writes valid time by its columns, and reads other times', async () => {
    await run("INSERT INTO Item (sku, n, valid_from, valid_to) VALUES ('timed', 1, '2024-01-01', '2025-01-01')");
    expect(await store.rows("SELECT n FROM Item AS OF '2024-06-01' WHERE sku = 'timed'", ann)).toEqual([{ n: 1n }]);
    expect(await store.rows("SELECT n FROM Item AS OF '2025-06-01' WHERE sku = 'timed'", ann)).toEqual([]);
    await run("INSERT INTO Item (sku, n, valid_from) VALUES ('timed', 2, '2025-01-01')");
    expect(await refusal("INSERT INTO Item (sku, n, valid_from) VALUES ('timed', 2, '2024-12-01')")).toMatch(/^REL_CONFLICT/);
    await run(
      "INSERT INTO Part (sku, n) SELECT sku, n FROM Item AS OF '2025-06-01' WHERE sku = 'timed' AND system_to > now() RETURNING n",
    );
    expect(await ask('SELECT n FROM Part')).toEqual([{ n: 2n }]);
  });
});

describe('UPDATE', () => {
  beforeEach(async () => {
    await run("INSERT INTO Item (sku, name, n, price) VALUES ('a', 'A', 1, 1.5), ('b', 'B', 2, 2.5), ('c', 'C', NULL, 3)");
    await run("INSERT INTO Part (sku, of, n) VALUES ('p', 'a', 10), ('q', 'a', 20), ('r', 'b', 30)");
  });

  test('sets what it names and keeps the rest', async () => {
    expect(await counts('UPDATE Item SET n = n + 1, name = LOWER(name) WHERE price > 1.5')).toEqual({ update: 2 });
    expect(await counts("UPDATE Item AS i SET (n, price) = (NULL, DEFAULT) WHERE i.sku = 'a'")).toEqual({ update: 1 });
    expect(await items()).toEqual([
      { sku: 'a', name: 'A', n: null, price: null },
      { sku: 'b', name: 'b', n: 3n, price: 2.5 },
      { sku: 'c', name: 'c', n: null, price: 3 },
    ]);
    expect(await counts('UPDATE Item SET n = 1 WHERE FALSE')).toEqual({ update: 0 });
    expect(await counts('UPDATE Item SET n = $1, name = $2', 7n, 'all')).toEqual({ update: 3 });
  });

  test('reads other tables, each row once', async () => {
    expect(await counts('UPDATE Item SET n = p.n FROM Part p WHERE p.of = Item.sku')).toEqual({ update: 2 });
    expect((await items()).map(({ n }) => n)).toEqual([10n, 30n, null]);
    expect(
      await counts(
        'UPDATE Item SET n = (SELECT SUM(n) FROM Part WHERE of = Item.sku) WHERE EXISTS (SELECT 1 FROM Part WHERE of = Item.sku)',
      ),
    ).toEqual({ update: 2 });
    expect((await items()).map(({ n }) => n)).toEqual([30n, 30n, null]);
    expect(
      await counts(
        'WITH s AS (SELECT of, COUNT(*) AS c FROM Part GROUP BY of) UPDATE Item i SET n = s.c FROM s JOIN Part q ON q.of = s.of WHERE s.of = i.sku',
      ),
    ).toEqual({ update: 2 });
    expect((await items()).map(({ n }) => n)).toEqual([2n, 1n, null]);
  });

  test('returns rows as they became, with what was read beside them', async () => {
    expect(
      await returned("UPDATE Item SET n = 5, seen = '2024-01-01' WHERE sku < 'c' RETURNING sku, n, seen, name || '!' AS x"),
    ).toEqual([
      { sku: 'a', n: 5n, seen: 1_704_067_200_000_000_000n, x: 'A!' },
      { sku: 'b', n: 5n, seen: 1_704_067_200_000_000_000n, x: 'B!' },
    ]);
    expect(
      await returned(
        "UPDATE Item i SET n = p.n FROM Part p WHERE p.of = i.sku AND p.sku = 'r' RETURNING i.n, p.n, p.sku AS part, of, price + p.n AS sum",
      ),
    ).toEqual([{ n: 30n, n_2: 30n, part: 'r', of: 'b', sum: 32.5 }]);
    const [row] = await returned("UPDATE Item i SET n = 1 FROM (SELECT 'a' AS k, 2 AS v) s WHERE s.k = i.sku RETURNING s.*, i.n");
    expect(row).toEqual({ k: 'a', v: 2n, n: 1n });
    const [all] = await returned(
      "UPDATE Item i SET n = 3 FROM (SELECT 'a' AS k) s, (SELECT 4 AS w) r WHERE s.k = i.sku RETURNING *",
    );
    expect(all).toMatchObject({ sku: 'a', n: 3n, k: 'a', w: 4n, namespace_path: 'acme' });
    expect(await refusal('UPDATE Item SET n = 1 RETURNING (SELECT 1)')).toMatch(/^REL_NOT_IMPLEMENTED/);
    expect(await refusal('UPDATE Item SET n = 1 FROM Part p WHERE p.of = Item.sku RETURNING n')).toMatch(
      /^REL_INVALID .*ambiguous/,
    );
    expect(await refusal('UPDATE Item SET n = 1 RETURNING nothing')).toMatch(/^REL_UNKNOWN_COLUMN/);
  });

  test('holds for the time that it names', async () => {
    await run("UPDATE Item SET n = 50, valid_from = '2024-06-01', valid_to = '2024-09-01' WHERE sku = 'a'");
    const at = async (instant: string): Promise<unknown> =>
      (await store.rows(`SELECT n, name FROM Item AS OF '${instant}' WHERE sku = 'a' AND system_to > now() `, ann))[0];
    expect([await at('2024-05-01'), await at('2024-07-01'), await at('2024-10-01')]).toEqual([
      { n: 1n, name: 'A' },
      { n: 50n, name: 'A' },
      { n: 1n, name: 'A' },
    ]);
    expect(await refusal("UPDATE Item SET valid_to = '2024-09-01'")).toMatch(/^REL_INVALID .*DELETE/);
  });

  test('refuses what it can not write', async () => {
    expect(await refusal("UPDATE Item SET sku = 'z'")).toMatch(/^REL_INVALID 1:17: "sku" is the key/);
    expect(await refusal("UPDATE Person SET id = 'z'")).toMatch(/"id" is the key/);
    expect(await refusal('UPDATE Item SET system_from = 1')).toMatch(/^REL_INVALID .*set by the store/);
    expect(await refusal('UPDATE Item SET n = 1, n = 2')).toMatch(/^REL_PARSE .*set twice/);
    expect(await refusal('UPDATE Nothing SET n = 1')).toMatch(/^REL_UNKNOWN_TYPE 1:8/);
    expect(await refusal("UPDATE Item SET n = 'x'")).toMatch(/^REL_TYPE_MISMATCH column "n"/);
    expect(await refusal("UPDATE Item AS OF '2024-01-01' SET n = 1")).toMatch(/^REL_PARSE/);
    expect(await refusal('UPDATE Item SET n = 1 FROM Part AS OF CURRENT WHERE TRUE')).toMatch(/^REL_PARSE .*as they stand now/);
    expect(await refusal("DELETE FROM Item WHERE sku IN (SELECT of FROM Part AS OF '2024-01-01')")).toMatch(
      /^REL_PARSE .*as they stand now/,
    );
    expect(await refusal('UPDATE "initech"."Item" SET n = 1')).toMatch(/^REL_PARSE .*read-only/);
    expect((await items()).map(({ n }) => n)).toEqual([1n, 2n, null]);
  });
});

describe('DELETE', () => {
  test('ends rows, and returns them as they were', async () => {
    await run("INSERT INTO Item (sku, n) VALUES ('a', 1), ('b', 2), ('c', 3)");
    await run("INSERT INTO Part (sku, of) VALUES ('p', 'a'), ('q', 'a')");
    expect(await returned('DELETE FROM Item i USING Part p WHERE p.of = i.sku RETURNING i.sku, i.n, p.sku AS part')).toEqual([
      { sku: 'a', n: 1n, part: 'p' },
    ]);
    expect(await counts('DELETE FROM Item WHERE n = $1', 2n)).toEqual({ delete: 1 });
    expect(await returned('DELETE FROM Item RETURNING n * 2 AS twice')).toEqual([{ twice: 6n }]);
    expect(await counts('DELETE FROM Item')).toEqual({ delete: 0 });
    expect(await items()).toEqual([]);
    await run("INSERT INTO Item (sku, n) VALUES ('a', 4)");
    expect((await items()).map(({ n }) => n)).toEqual([4n]);
  });
});

/** The values are those of PostgreSQL 15. */
describe('MERGE', () => {
  const merge = 'MERGE INTO Item t USING Part s ON t.sku = s.sku';
  const merged = async (sql: string, ...parameters: readonly Literal[]): Promise<unknown> => {
    const { verb, inserted, updated, deleted } = (await run(sql, ...parameters)).written!;
    return [verb, inserted, updated, deleted];
  };
  const stored = () => returned('SELECT sku, n, name FROM Item ORDER BY sku');

  beforeEach(async () => {
    await run("INSERT INTO Item (sku, n, name) VALUES ('a', 1, 'x'), ('b', 2, 'y'), ('c', 3, 'z'), ('d', 4, NULL)");
    await run(
      "INSERT INTO Part (sku, n, of) VALUES ('a', 10, 'u'), ('b', 20, 'd'), ('d', 0, 'u'), ('e', 50, 'i'), ('f', 60, NULL)",
    );
  });

  test('writes each row by the first clause that takes it', async () => {
    const clauses = `WHEN MATCHED AND s.of = 'd' THEN DELETE WHEN MATCHED AND s.n = 0 THEN DO NOTHING
      WHEN MATCHED THEN UPDATE SET n = t.n + s.n, name = s.of || t.name
      WHEN NOT MATCHED AND s.of IS NOT NULL THEN INSERT (sku, n) VALUES (s.sku, s.n) WHEN NOT MATCHED THEN DO NOTHING`;
    expect(await merged(`${merge} ${clauses}`)).toEqual(['merge', 1, 1, 1]);
    expect(await stored()).toEqual([
      { sku: 'a', n: 11n, name: 'ux' },
      { sku: 'c', n: 3n, name: 'z' },
      { sku: 'd', n: 4n, name: null },
      { sku: 'e', n: 50n, name: null },
    ]);
  });

  test('takes tables, values, queries and WITH, defaults and parameters', async () => {
    expect(
      await merged(
        `MERGE INTO Item AS t USING (VALUES ('x', 1), ('a', 3)) AS s(id, n) ON t.sku = s.id
         WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'new', s.n) WHEN MATCHED THEN UPDATE SET (n, name) = (DEFAULT, $1)`,
        'old',
      ),
    ).toEqual(['merge', 1, 1, 0]);
    // The target has no columns where no row of it is met: a name that both have is the source's.
    expect(
      await merged(
        "WITH w AS (SELECT 'q' AS sku, 5 AS n) MERGE INTO Item t USING w ON t.sku = w.sku WHEN NOT MATCHED THEN INSERT (sku, n) VALUES (sku, n * 2)",
      ),
    ).toEqual(['merge', 1, 0, 0]);
    expect(await merged(`${merge} AND FALSE WHEN MATCHED THEN DELETE`)).toEqual(['merge', 0, 0, 0]);
    expect((await stored()).filter(({ sku }) => ['a', 'q', 'x'].includes(String(sku)))).toEqual([
      { sku: 'a', n: null, name: 'old' },
      { sku: 'q', n: 10n, name: null },
      { sku: 'x', n: 1n, name: 'new' },
    ]);
  });

  test('refuses a row that it meets twice, and a key that is there', async () => {
    const twice = "MERGE INTO Item t USING (VALUES ('a', 1), ('a', 2)) s(id, k) ON t.sku = s.id";
    expect(await refusal(`${twice} WHEN MATCHED THEN UPDATE SET n = s.k`)).toMatch(
      /^REL_INVALID .*meets a row of the target twice/,
    );
    expect(await refusal(`${twice} WHEN MATCHED AND k = 1 THEN UPDATE SET n = 0 WHEN MATCHED THEN DELETE`)).toMatch(/twice/);
    expect(await merged(`${twice} WHEN MATCHED AND k = 1 THEN UPDATE SET n = 7 WHEN MATCHED THEN DO NOTHING`)).toEqual([
      'merge',
      0,
      1,
      0,
    ]);
    expect(
      await refusal(`${merge} AND s.n > 10 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (sku) VALUES (s.sku)`),
    ).toMatch(/^REL_CONFLICT/);
    const inserts = ['s.n > 50', 's.n = 50'].map((when) => `WHEN NOT MATCHED AND ${when} THEN INSERT (sku) VALUES ('g')`);
    expect(await refusal(`${merge} ${inserts.join(' ')}`)).toMatch(/^REL_CONFLICT .*"g" is there already, or is inserted twice/);
    expect((await stored()).map(({ n }) => n)).toEqual([7n, 2n, 3n, 4n]);
  });

  test('refuses what it can not write', async () => {
    const refused: readonly (readonly [string, RegExp])[] = [
      ['WHEN NOT MATCHED THEN INSERT (sku) VALUES (t.sku)', /^REL_(UNKNOWN_COLUMN|PARSE|INVALID)/],
      ['WHEN NOT MATCHED THEN UPDATE SET n = 1', /^REL_PARSE/],
      ["WHEN MATCHED THEN INSERT VALUES ('1')", /^REL_PARSE/],
      ['WHEN MATCHED THEN DELETE WHEN MATCHED THEN DO NOTHING', /^REL_PARSE .*no row comes to this WHEN/],
      ['WHEN MATCHED THEN UPDATE SET sku = s.of', /^REL_INVALID .*is the key of the row/],
      ['WHEN MATCHED THEN UPDATE SET nope = 1', /^REL_UNKNOWN_COLUMN/],
      ['WHEN NOT MATCHED THEN INSERT (sku) VALUES (s.sku, 1)', /^REL_INVALID/],
    ];
    for (const [clauses, why] of refused) expect(await refusal(`${merge} ${clauses}`), clauses).toMatch(why);
    const ambiguous = 'MERGE INTO Item t USING Part s ON t.sku = sku WHEN NOT MATCHED THEN INSERT (sku) VALUES (s.sku)';
    expect(await refusal(ambiguous)).toMatch(/ambiguous/);
    expect(await refusal(merge)).toMatch(/^REL_PARSE/);
  });
});

describe('FOR PORTION OF VALID_TIME', () => {
  const history = async (key: string): Promise<unknown[]> => {
    const now = (await run('SELECT 1 AS one')).answer.asOfSystem;
    const rows = await store.rows(
      `SELECT n, name, valid_from, valid_to FROM Item AS OF SYSTEM TIME ${now} WHERE sku = '${key}' AND valid_from < valid_to ORDER BY valid_from`,
      ann,
    );
    const day = (instant: unknown): string => (instant === FOREVER ? '' : formatInstant(instant as bigint).slice(0, 10));
    return rows.map((row) => [row['n'], row['name'], day(row['valid_from']), day(row['valid_to'])]);
  };
  const begin = (key: string): Promise<unknown> =>
    run(
      `INSERT INTO Item (sku, n, name, valid_from, valid_to) VALUES ('${key}', 1, 'a', '2020-01-01', '2021-01-01'), ('${key}', 2, 'b', '2021-01-01', NULL)`,
    );

  test('UPDATE writes the part of each version that lies in it', async () => {
    await begin('part-u');
    expect(
      await returned(
        "UPDATE Item FOR PORTION OF VALID_TIME FROM '2020-07-01' TO '2021-07-01' SET n = n * 10 WHERE sku = 'part-u' RETURNING n, name, valid_from",
      ),
    ).toEqual([
      { n: 10n, name: 'a', valid_from: parseInstant('2020-07-01') },
      { n: 20n, name: 'b', valid_from: parseInstant('2021-01-01') },
    ]);
    expect(await history('part-u')).toEqual([
      [1n, 'a', '2020-01-01', '2020-07-01'],
      [10n, 'a', '2020-07-01', '2021-01-01'],
      [20n, 'b', '2021-01-01', '2021-07-01'],
      [2n, 'b', '2021-07-01', ''],
    ]);
    expect(
      await counts(
        "UPDATE Item FOR PORTION OF VALID_TIME FROM $1 TO NULL AS i SET n = 0 WHERE i.sku = 'part-u' AND i.n = 2",
        '2030-01-01',
      ),
    ).toEqual({ update: 1 });
    expect((await history('part-u')).at(-1)).toEqual([0n, 'b', '2030-01-01', '']);
    expect(
      await counts("UPDATE Item FOR PORTION OF VALID_TIME FROM '2010-01-01' TO '2011-01-01' SET n = 0 WHERE sku = 'part-u'"),
    ).toEqual({ update: 0 });
  });

  test('DELETE ends them there, and what lies around stays', async () => {
    await begin('part-d');
    expect(
      await counts("DELETE FROM Item FOR PORTION OF VALID_TIME FROM '2020-07-01' TO '2021-07-01' WHERE sku = 'part-d'"),
    ).toEqual({
      delete: 1,
    });
    expect(await history('part-d')).toEqual([
      [1n, 'a', '2020-01-01', '2020-07-01'],
      [2n, 'b', '2021-07-01', ''],
    ]);
    expect(await counts("DELETE FROM Item FOR PORTION OF VALID_TIME FROM '2040-01-01' TO NULL WHERE sku = 'part-d'")).toEqual({
      delete: 1,
    });
    expect((await history('part-d')).at(-1)).toEqual([2n, 'b', '2021-07-01', '2040-01-01']);
    expect(await ask("SELECT n FROM Item WHERE sku = 'part-d'")).toEqual([{ n: 2n }]);
    // What is left is ended as any row is.
    expect(await counts("DELETE FROM Item WHERE sku = 'part-d'")).toEqual({ delete: 1 });
    expect(await ask("SELECT n FROM Item WHERE sku = 'part-d'")).toEqual([]);
    await begin('part-e');
    expect(await counts("DELETE FROM Item FOR PORTION OF VALID_TIME FROM '2000-01-01' TO NULL WHERE sku = 'part-e'")).toEqual({
      delete: 1,
    });
    expect(await history('part-e')).toEqual([]);
    await begin('part-e');
  });

  test('takes instants that make a portion, and no other table', async () => {
    expect(await refusal("UPDATE Item FOR PORTION OF VALID_TIME FROM '2021-01-01' TO '2021-01-01' SET n = 1")).toMatch(
      /^REL_INVALID .*has to end/,
    );
    expect(await refusal("DELETE FROM Item FOR PORTION OF VALID_TIME FROM 'x' TO NULL")).toMatch(/^REL_INVALID/);
    expect(await refusal("DELETE FROM Item FOR PORTION OF VALID_TIME FROM '2021-01-01' TO NULL USING Part")).toMatch(
      /^REL_NOT_IMPLEMENTED/,
    );
    expect(
      await refusal("UPDATE Item FOR PORTION OF VALID_TIME FROM '2021-01-01' TO NULL SET n = (SELECT MAX(n) FROM Part)"),
    ).toMatch(/^REL_NOT_IMPLEMENTED/);
    expect(
      await refusal("UPDATE Item FOR PORTION OF VALID_TIME FROM '2021-01-01' TO NULL SET n = 1, valid_to = '2022-01-01'"),
    ).toMatch(/^REL_INVALID/);
    expect(await refusal("UPDATE Item FOR PORTION OF SYSTEM_TIME FROM '2021-01-01' TO NULL SET n = 1")).toMatch(
      /^REL_PARSE .*VALID_TIME/,
    );
  });
});

test('a row that was written since has the statement decided again', async () => {
  await run("INSERT INTO Item (sku, n) VALUES ('a', 1), ('b', 2)");
  for (const [sql, sum] of [
    ['UPDATE Item SET n = n + 1', 7n],
    ['DELETE FROM Item WHERE n > 0', null],
    ["INSERT INTO Item (sku, n) VALUES ('a', 1) ON CONFLICT (sku) DO UPDATE SET n = Item.n + 1", 5n],
    ["INSERT INTO Item (sku, n) VALUES ('z', 1) ON CONFLICT (sku) DO UPDATE SET n = 1", 4n],
  ] as const) {
    await Promise.all([run(sql), run(sql)]);
    expect(await ask('SELECT SUM(n) AS s FROM Item')).toEqual([{ s: sum }]);
    await run('DELETE FROM Item');
    await run("INSERT INTO Item (sku, n) VALUES ('a', 1), ('b', 2)");
  }
});

test('a statement writes at most 4096 rows', async () => {
  const many = (rows: number): string =>
    `WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t WHERE i < ${rows}) INSERT INTO Item (sku, n) SELECT CAST(i AS TEXT), i FROM t`;
  expect(await refusal(many(4_097))).toMatch(/^REL_INVALID a statement writes at most 4096 rows/);
  expect(await counts(many(4_096))).toEqual({ insert: [4_096, 0, 0] });
  expect(await counts('UPDATE Item SET n = n + 1')).toEqual({ update: 4_096 });
  expect(await ask('SELECT SUM(n) AS s FROM Item')).toEqual([{ s: 8_394_752n }]);
  expect(await counts('DELETE FROM Item')).toEqual({ delete: 4_096 });
});

describe('around it', () => {
  test('questions are answered by the same door, writes are refused by the others', async () => {
    expect(rowsOf((await run('SELECT 1 AS one')).answer)).toEqual([{ one: 1n }]);
    expect((await run('SELECT 1 AS one')).written).toBeNull();
    for (const sql of [
      "INSERT INTO Item (sku) VALUES ('a')",
      'UPDATE Item SET n = 1',
      'DELETE FROM Item',
      'EXPLAIN DELETE FROM Item',
    ]) {
      expect((await store.refusal(sql, ann)).code).toBe('REL_READ_ONLY');
    }
    expect(await refusal('TRUNCATE Item')).toMatch(/^REL_READ_ONLY/);
    expect(await refusal('DELETE FROM Item; DELETE FROM Part')).toMatch(/^REL_PARSE .*one statement at a time/);
  });

  test('RETURNING is a name for who reads', async () => {
    expect(await store.rows('SELECT 1 AS returning', ann)).toEqual([{ returning: 1n }]);
  });

  test('parameters and columns are described, and nothing is run', async () => {
    const described = (sql: string) =>
      store.invoke(ann, 'query', async (invocation) => {
        const { columns, parameters } = await store.service.planner.describe(invocation, { sql, dialect: 'wide', writes: true });
        return [columns.map(({ name, type }) => `${name} ${type}`).join(), parameters.join()];
      });
    expect(await described('INSERT INTO Item (sku, n, seen, doc) VALUES ($1, $2, $3, $4) RETURNING sku, n + 1 AS m')).toEqual([
      'sku string,m integer',
      'string,integer,timestamp,json',
    ]);
    expect(
      await described('INSERT INTO Item (sku, price) SELECT $1, $2 ON CONFLICT (sku) DO UPDATE SET ok = $3 WHERE Item.n > $4'),
    ).toEqual(['', 'string,number,boolean,integer']);
    expect(await described('UPDATE Item SET seen = $1, n = Item.n + $2 FROM Part p WHERE p.n = $3 RETURNING p.of, seen')).toEqual(
      ['of string,seen timestamp', 'timestamp,integer,integer'],
    );
    const clauses = 'WHEN MATCHED AND s.n > $2 THEN UPDATE SET seen = $3 WHEN NOT MATCHED THEN INSERT (sku, ok) VALUES ($4, $5)';
    expect(await described(`MERGE INTO Item t USING Part s ON t.sku = $1 ${clauses}`)).toEqual([
      '',
      'string,integer,timestamp,string,boolean',
    ]);
    expect(await described('DELETE FROM Item WHERE sku = $1 AND price < $2 RETURNING ok')).toEqual([
      'ok boolean',
      'string,number',
    ]);
    expect(await items()).toEqual([]);
  });
});
