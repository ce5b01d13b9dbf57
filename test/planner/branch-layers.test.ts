/**
 * A history that is spread over three branches answers as the same history on main does: every operator meets the
 * dictionaries, layouts and overlays of three tables in one scan.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Caller } from '../../src/governance/caller.ts';
import { analyst, type InputRow, TestStore } from '../harness.ts';

const onTrial: Caller = { ...analyst, branch: 'trial' };
const batches = 9;
const rowsPerBatch = 700;

/** Updates, new keys and NULLs in every batch; names are mostly distinct, so that their columns are spelled out. */
function batch(number: number): InputRow[] {
  return Array.from({ length: rowsPerBatch }, (_, i) => {
    const key = (i * 7 + number * 311) % 2_500;
    return {
      id: `k${key}`,
      city: (key + number) % 11 === 0 ? null : `city ${(key * number) % (5 + number)}`,
      name: `name ${key} of ${number}`,
      n: number % 2 === 0 ? key : key * 3_000_000_000,
      x: key / 7,
      ok: key % 3 === 0,
    };
  });
}

const columns = { id: 'string', city: 'string', name: 'string', n: 'integer', x: 'number', ok: 'boolean' } as const;

let whole: TestStore;
let layered: TestStore;

async function fork(name: string, source: string): Promise<void> {
  await layered.invoke(analyst, 'schema', (invocation) =>
    invocation.submit({ kind: 'fork-branch', name, source, shares: 'everything' }),
  );
}

beforeAll(async () => {
  whole = await TestStore.open();
  layered = await TestStore.open();
  for (const store of [whole, layered]) await store.register('T', columns);
  let branch = 'main';
  for (let number = 1; number <= batches; number++) {
    if (number === 4) await fork((branch = 'dev'), 'main');
    if (number === 7) await fork((branch = 'trial'), 'dev');
    await whole.put('T', batch(number));
    await layered.put('T', batch(number), { ...analyst, branch });
    // What the branches below go on to write is nobody's business above.
    if (number >= 4) await layered.put('T', batch(number + 50), analyst);
    if (number >= 7) await layered.put('T', batch(number + 70), { ...analyst, branch: 'dev' });
  }
});
afterAll(() => Promise.all([whole.close(), layered.close()]));

const current = 'FROM T AS OF CURRENT';

test.each([
  'SELECT id, city, name, n, x, ok FROM T',
  `SELECT id, city, name, n, x, ok ${current}`,
  `SELECT COUNT(*) AS c, SUM(n) AS s, AVG(x) AS a, MIN(name) AS low, MAX(city) AS high ${current}`,
  `SELECT city, COUNT(*) AS c, SUM(n) AS s, MIN(name) AS low ${current} GROUP BY city ORDER BY city`,
  `SELECT city, ok, COUNT(*) AS c FROM T GROUP BY city, ok ORDER BY city, ok`,
  `SELECT DISTINCT city ${current} ORDER BY city DESC`,
  `SELECT name ${current} ORDER BY name LIMIT 50`,
  `SELECT city, name ${current} ORDER BY city, name DESC LIMIT 200`,
  `SELECT id ${current} WHERE city = 'city 3' ORDER BY id`,
  `SELECT id ${current} WHERE city IN ('city 1', 'city 12', 'nowhere') ORDER BY id`,
  `SELECT id FROM T WHERE name LIKE '%9 of 8' ORDER BY id`,
  `SELECT id, n ${current} WHERE n > 4000000000 AND city IS NOT NULL ORDER BY n, id`,
  `SELECT id FROM T WHERE city > 'city 3' AND NOT ok ORDER BY id, name LIMIT 300`,
  `SELECT id, name FROM T WHERE _pk = 'k311' ORDER BY name`,
  `SELECT id, name ${current} WHERE _pk IN ('k311', 'k622', 'k7') ORDER BY id`,
  `SELECT a.id, b.name FROM T AS a JOIN T AS b ON a.name = b.name AS OF CURRENT WHERE a.city = 'city 2' ORDER BY a.id`,
  `SELECT id ${current} WHERE city IN (SELECT city FROM T WHERE ok) ORDER BY id LIMIT 100`,
  `SELECT id FROM T AS OF CURRENT WHERE system_to = 9223372036854775807 ORDER BY id`,
  `SELECT COUNT(*) AS c FROM T WHERE system_to < 9223372036854775807`,
])('%s', async (sql) => {
  expect(await layered.rows(sql, onTrial)).toEqual(await whole.rows(sql));
});
