/** Materialized views: names for queries, and cached answers that are never anything but the query's own. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { formatInstant } from '../../../src/log/values/timestamp.ts';
import { StoreWorld } from './store-world.ts';

type Headers = Readonly<Record<string, string>>;

let world: StoreWorld;
beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_MV_MAX_ROWS: '40' });
  await world.call('POST', '/types', {
    name: 'Sale',
    properties: { key: 'string', city: 'string', amount: 'integer', rate: 'number' },
    primary_key: 'key',
  });
});
afterAll(() => world.close());

const put = (rows: readonly object[], headers: Headers = {}): Promise<unknown> =>
  world.call('POST', '/ingest?object_type=Sale', rows, headers);

async function ask(sql: string, headers: Headers = {}): Promise<{ rows: unknown[]; at: bigint }> {
  const reply = await world.query(sql, headers);
  if (reply.status !== 200) throw new Error(reply.text);
  return { rows: reply.json['rows'] as unknown[], at: BigInt(/"as_of_system":(\d+)/.exec(reply.text)![1]!) };
}

const planOf = async (sql: string): Promise<string> => JSON.stringify((await world.query(`EXPLAIN ${sql}`)).json['plan']);

/** Asks until the answer comes from the cache. */
async function cached(sql: string, headers: Headers = {}): Promise<{ rows: unknown[]; at: bigint }> {
  for (let tries = 0; tries < 100; tries++) {
    const explained = await world.query(`EXPLAIN ${sql}`, headers);
    if (explained.text.includes('by cached view')) return ask(sql, headers);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`never cached: ${sql}`);
}

describe('a name for a query', () => {
  beforeAll(() =>
    put([
      { key: 'a', city: 'Kiel', amount: 1, rate: 0.5 },
      { key: 'b', city: 'Kiel', amount: 2, rate: 0.25 },
      { key: 'c', city: 'Oslo', amount: 4, rate: 1.5 },
    ]),
  );

  test('is made once, answers as its query does, and says so when it is made again', async () => {
    const sql =
      'CREATE MATERIALIZED VIEW by_city AS SELECT city, COUNT(*) AS n, SUM(amount) AS total FROM Sale GROUP BY city REFRESH INCREMENTAL EVERY 3600';
    expect((await ask(sql)).rows).toEqual([{ view: 'by_city', refresh_secs: 3600, created: true }]);
    expect((await ask(sql)).rows).toEqual([{ view: 'by_city', refresh_secs: 3600, created: false }]);
    expect((await world.query(sql.replace('3600', '60'))).status).toBe(409);
    expect((await world.query(sql.replace('by_city', 'Sale'))).status).toBe(409);
    const expected = [
      { city: 'Kiel', n: 2, total: 3 },
      { city: 'Oslo', n: 1, total: 4 },
    ];
    expect((await ask('SELECT * FROM by_city')).rows).toEqual(expected);
    expect((await ask('SELECT city FROM by_city WHERE total > 3')).rows).toEqual([{ city: 'Oslo' }]);
    expect((await ask('SELECT s.key, v.n FROM Sale s JOIN by_city v ON s.city = v.city ORDER BY key')).rows).toEqual([
      { key: 'a', n: 2 },
      { key: 'b', n: 2 },
      { key: 'c', n: 1 },
    ]);
  });

  test.each([
    ['CREATE MATERIALIZED VIEW w AS SELECT * FROM Sale AS OF CURRENT', 'AS OF'],
    ['CREATE MATERIALIZED VIEW w AS SELECT nothing FROM Sale', '1:38'],
    ['CREATE MATERIALIZED VIEW w AS SELECT * FROM Nothing', 'Nothing'],
    ['CREATE MATERIALIZED VIEW w AS SELECT * FROM w', 'w'],
    ['CREATE MATERIALIZED VIEW w AS SELECT * FROM Sale REFRESH INCREMENTAL EVERY 0', 'seconds'],
  ])('is refused: %s', async (sql, why) => {
    const reply = await world.query(sql);
    expect(reply.status).toBeGreaterThanOrEqual(400);
    expect(reply.json['detail']).toContain(why);
  });
});

describe('a cached answer', () => {
  test('is of its instant: the same question as of then says the same; AS OF goes to the rows', async () => {
    const sql = 'SELECT * FROM by_city';
    const first = await cached(sql);
    await put([{ key: 'd', city: 'Rome', amount: 8 }]);
    const again = await ask(sql);
    expect(again).toEqual(first);
    expect(await planOf(sql)).toContain('by cached view');
    expect((await ask(`SELECT * FROM by_city AS OF SYSTEM TIME '${formatInstant(first.at)}'`)).rows).toEqual(first.rows);
    expect(
      (await ask(`SELECT city, COUNT(*) AS n, SUM(amount) AS total FROM Sale WHERE system_from <= ${first.at} GROUP BY city`))
        .rows,
    ).toEqual(first.rows);
    expect(await planOf('SELECT * FROM by_city AS OF CURRENT')).not.toContain('cached');
    expect((await ask('SELECT city FROM by_city AS OF CURRENT')).rows).toEqual([
      { city: 'Kiel' },
      { city: 'Oslo' },
      { city: 'Rome' },
    ]);
  });

  test('is no answer any more once a row that it was made of was removed for good', async () => {
    await world.call('DELETE', '/types/Sale/b?hard=true');
    expect(await planOf('SELECT * FROM by_city')).not.toContain('cached');
    expect((await ask('SELECT total FROM by_city')).rows).toEqual([{ total: 1 }, { total: 4 }, { total: 8 }]);
  });

  test('is of the reader’s grant: another path finds its own rows, and views of its own path and those above', async () => {
    const scoped = (path: string): Headers => ({ 'x-organization-id': path });
    for (const [path, key] of [
      ['acme', 'x'],
      ['acme/eu', 'y'],
      ['globex', 'z'],
    ] as const)
      await put([{ key, city: path, amount: 1 }], scoped(path));
    await world.query('CREATE MATERIALIZED VIEW cities AS SELECT city FROM Sale', scoped('acme'));
    const cities = 'SELECT city FROM cities';
    expect((await cached(cities, scoped('acme'))).rows).toEqual([{ city: 'acme' }, { city: 'acme/eu' }]);
    expect((await cached(cities, scoped('acme/eu'))).rows).toEqual([{ city: 'acme/eu' }]);
    for (const path of ['globex', 'acme-evil']) expect((await world.query(cities, scoped(path))).status).toBe(404);
    expect((await world.query(cities)).status).toBe(404);
  });

  test('goes with its view: who made it drops it, for everybody else it was never there to drop', async () => {
    const scoped = (path: string): Headers => ({ 'x-organization-id': path });
    const headers = scoped('umbrella');
    await put([{ key: 'u', city: 'one', amount: 1 }], headers);
    await world.query('CREATE MATERIALIZED VIEW gone AS SELECT city FROM Sale', headers);
    await world.call('POST', '/v1/namespaces/before/branch', { branch_from: 'main' }, headers);
    const ofBranch = { ...headers, 'x-service-branch': 'before' };
    const asked = 'SELECT city FROM gone';
    expect((await cached(asked, headers)).rows).toEqual([{ city: 'one' }]);
    const refusals = async (name: string): Promise<unknown> => {
      const replies = [scoped('umbrella/eu'), scoped('globex'), {}].map((each) =>
        world.query(`DROP MATERIALIZED VIEW ${name}`, each),
      );
      return (await Promise.all(replies)).map(({ status, json }) => [status, String(json['detail']).replace(name, '…')]);
    };
    expect(await refusals('gone')).toEqual(await refusals('never'));
    expect((await world.query('DROP MATERIALIZED VIEW never', headers)).status).toBe(404);
    expect((await ask('DROP MATERIALIZED VIEW gone', headers)).rows).toEqual([{ view: 'gone', dropped: true }]);
    expect((await world.query(asked, headers)).status).toBe(404);
    expect((await world.query('DROP MATERIALIZED VIEW gone', headers)).status).toBe(404);
    expect((await ask(asked, ofBranch)).rows).toEqual([{ city: 'one' }]);
    // As many views as before, and the same text: neither a plan nor an answer is that of the view before.
    await world.query('CREATE MATERIALIZED VIEW gone AS SELECT amount AS city FROM Sale', headers);
    expect((await ask(asked, headers)).rows).toEqual([{ city: 1 }]);
    const { json } = await world.call('GET', '/audit/entries?limit=100&action=schema', undefined, headers);
    const recorded = (json['entries'] as { template: string; decision: string }[]).map((each) => each.template);
    expect(recorded).toContain('DROP MATERIALIZED VIEW gone');
  });

  test('has its limit: above it the rows themselves are asked', async () => {
    const headers = { 'x-organization-id': 'initech' };
    await put(
      Array.from({ length: 41 }, (_, i) => ({ key: `k${i}`, city: 'C', amount: i })),
      headers,
    );
    await world.query('CREATE MATERIALIZED VIEW large AS SELECT key FROM Sale', headers);
    for (let i = 0; i < 3; i++) {
      expect((await ask('SELECT COUNT(*) AS n FROM large', headers)).rows).toEqual([{ n: 41 }]);
      expect((await world.query('EXPLAIN SELECT * FROM large', headers)).text).not.toContain('cached');
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  });
});

describe('kept up to date', () => {
  /** Of the cached answer once it is of an instant after `instant`. */
  async function renewed(view: string, instant: bigint): Promise<{ rows: unknown[]; at: bigint }> {
    for (let tries = 0; tries < 60; tries++) {
      const answer = await cached(`SELECT * FROM ${view}`);
      if (answer.at > instant) return answer;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`${view} stays as it was`);
  }

  test('by what came since, and always as the query itself was at the instant of the answer', async () => {
    await world.call('POST', '/types', {
      name: 'Tick',
      properties: { key: 'string', g: 'string', n: 'integer', x: 'number' },
      primary_key: 'key',
    });
    let seed = 7;
    const random = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below;
    const write = async (): Promise<bigint> => {
      const rows = Array.from({ length: 1 + random(4) }, () => ({
        key: `k${random(9)}`,
        g: random(5) === 0 ? null : `g${random(3)}`,
        n: random(7) === 0 ? null : random(100) - 50,
        x: random(1000) / 7,
      }));
      const { text } = await world.call('POST', '/ingest?object_type=Tick', rows);
      return BigInt(/"system_from_last":(\d+)/.exec(text)![1]!);
    };
    /** Each view, and the same over what was known by an instant. */
    const views: Readonly<Record<string, (known: string) => string>> = {
      tick_rows: (known) => `SELECT key, n FROM Tick WHERE n > -20${known === '' ? '' : ` AND ${known}`}`,
      tick_groups: (known) =>
        `SELECT COUNT(*) AS c, g, SUM(n) AS s, MIN(n) AS lo, MAX(key) AS hi, COUNT(n) AS some FROM Tick${known === '' ? '' : ` WHERE ${known}`} GROUP BY g`,
      tick_whole: (known) => `SELECT SUM(n) AS s, COUNT(*) AS c FROM Tick${known === '' ? '' : ` WHERE ${known}`}`,
      tick_doubles: (known) => `SELECT g, SUM(x) AS s, AVG(n) AS a FROM Tick${known === '' ? '' : ` WHERE ${known}`} GROUP BY g`,
      tick_having: (known) =>
        `SELECT g, COUNT(*) AS c FROM Tick${known === '' ? '' : ` WHERE ${known}`} GROUP BY g HAVING COUNT(*) > 2`,
      tick_first: (known) => `SELECT key, n FROM Tick${known === '' ? '' : ` WHERE ${known}`} ORDER BY n DESC LIMIT 3`,
    };
    await write();
    for (const [name, sql] of Object.entries(views)) {
      await ask(`CREATE MATERIALIZED VIEW ${name} AS ${sql('')} REFRESH INCREMENTAL EVERY 1`);
      await cached(`SELECT * FROM ${name}`);
    }
    for (let round = 0; round < 3; round++) {
      let last = 0n;
      for (let i = 0; i < 3; i++) last = await write();
      for (const [name, sql] of Object.entries(views)) {
        const answer = await renewed(name, last);
        expect([name, answer.rows]).toEqual([name, (await ask(sql(`system_from <= ${answer.at}`))).rows]);
      }
    }
  });

  test('the end of a version that came before is seen too', async () => {
    await put([{ key: 'ending', city: 'E', amount: 1 }]);
    await ask(
      "CREATE MATERIALIZED VIEW ends AS SELECT amount, system_from, system_to FROM Sale WHERE city = 'E' REFRESH INCREMENTAL EVERY 1",
    );
    const before = await cached('SELECT * FROM ends');
    await put([{ key: 'ending', city: 'E', amount: 2 }]);
    const after = await renewed('ends', (await ask('SELECT MAX(system_from) AS s FROM Sale')).at);
    expect(before.rows.length).toBe(1);
    const [first, second] = after.rows as { system_from: number; system_to: number }[];
    expect(first!.system_to).toBe(second!.system_from);
  }, 15_000);
});
