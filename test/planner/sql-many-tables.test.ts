/** Questions over several tables where a single answer does not show the rule: scopes, instants, exactness, bounds. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { Planner } from '../../src/planner/planner.ts';
import { analyst, TestStore } from '../harness.ts';
import { FakeStore, type Row, rowsOf } from './fake-snapshot.ts';
import { openPeople } from './people.ts';

let store: TestStore;

beforeAll(async () => {
  store = await openPeople();
});
afterAll(async () => {
  await store.close();
});

describe('the one AS OF of a statement', () => {
  const questions: [string, string][] = [
    ['both sides of a join', 'SELECT COUNT(*) FROM Person a JOIN Person b ON a.id = b.id'],
    ['arms of a union', 'SELECT id FROM Person UNION ALL SELECT id FROM Person'],
    ['a subquery in FROM', 'SELECT COUNT(*) FROM (SELECT id FROM Person)'],
    ['a subquery behind IN', 'SELECT COUNT(*) FROM Person WHERE age IN (SELECT age FROM Person WHERE age = 25)'],
    ['a common table', 'WITH p AS (SELECT id FROM Person) SELECT COUNT(*) FROM p'],
    [
      'a recursion',
      "WITH RECURSIVE p(id) AS (SELECT id FROM Person WHERE id = 'a' UNION SELECT Person.id FROM p JOIN Person ON Person.id > p.id) SELECT COUNT(*) FROM p",
    ],
  ];

  /** The clause behind the last table of the text. */
  function asOf(sql: string, clause: string): string {
    const end = Math.max(
      ...[...sql.matchAll(/FROM Person(?: [ab])?|ON (?:a\.id = b\.id|Person\.id > p\.id)/g)].map((m) => m.index + m[0].length),
    );
    return `${sql.slice(0, end)} ${clause}${sql.slice(end)}`;
  }

  test.each(questions)('holds for %s', async (_, sql) => {
    const before = "AS OF SYSTEM TIME '2024-01-15'";
    const answers = await Promise.all([store.rows(asOf(sql, before)), store.rows(asOf(sql, "AS OF SYSTEM TIME '2023-12-31'"))]);
    // A store that was asked on that day: five people, none of them changed yet.
    const early = await earlyPeople();
    expect(answers[0]).toEqual(await early.rows(sql));
    expect(answers[1]).not.toEqual(answers[0]);
    await early.close();
  });

  async function earlyPeople(): Promise<TestStore> {
    const early = await TestStore.open('2023-12-31');
    const rows = await store.rows("SELECT id, age FROM Person AS OF SYSTEM TIME '2024-01-15'");
    await early.register('Person', { id: 'string', age: 'integer' }, 'id');
    early.clock.set('2024-01-01');
    await early.put('Person', rows);
    return early;
  }

  test('is one, wherever it stands', async () => {
    const twice = "SELECT id FROM (SELECT id FROM Person AS OF '2024-01-15') AS OF '2024-01-15'";
    expect((await store.refusal(twice)).code).toBe('REL_PARSE');
  });
});

describe('a scope', () => {
  const acme = { ...analyst, principal: 'acme', path: 'acme' };
  const evil = { ...analyst, principal: 'evil', path: 'acme-evil' };
  const questions = [
    'SELECT a.n, b.n FROM T a JOIN T b ON a.g = b.g',
    'SELECT a.n, b.n FROM T a FULL JOIN T b ON a.n = b.n + 1',
    'SELECT n FROM T WHERE g IN (SELECT g FROM T)',
    'SELECT n FROM T WHERE n + 1 NOT IN (SELECT n FROM T)',
    'SELECT n FROM T UNION SELECT n + 10 FROM T',
    'WITH RECURSIVE r(n) AS (SELECT MIN(n) FROM T UNION SELECT T.n FROM r JOIN T ON T.n > r.n) SELECT n FROM r',
    'SELECT n FROM T RANK BY CUSTOM(n, 2) LIMIT 1 FACETS n, g',
    'EXPLAIN SELECT a.n FROM T a JOIN T b ON a.g = b.g WHERE a.n IN (SELECT n FROM T)',
  ];

  test('is the same with strangers in the store and without', async () => {
    const [alone, crowded] = [await TestStore.open(), await TestStore.open()];
    for (const world of [alone, crowded]) {
      await world.register('T', { n: 'integer', g: 'string' });
      if (world === crowded) {
        await world.put(
          'T',
          Array.from({ length: 50 }, (_, i) => ({ n: i, g: 'x' })),
          evil,
        );
      }
      await world.put(
        'T',
        [
          { n: 1, g: 'x' },
          { n: 2, g: 'x' },
          { n: 3, g: 'y' },
        ],
        acme,
      );
      if (world === crowded)
        await world.put(
          'T',
          [
            { n: 2, g: 'x' },
            { n: 4, g: 'y' },
          ],
          analyst,
        );
    }
    for (const sql of questions) {
      const [one, other] = await Promise.all([alone.answer(sql, acme), crowded.answer(sql, acme)]);
      expect(shown(other), sql).toEqual(shown(one));
    }
    await alone.close();
    await crowded.close();

    function shown({ plan, facets, estimatedTotalHits, rowCount }: Awaited<ReturnType<TestStore['answer']>>) {
      return { plan, facets, estimatedTotalHits, rowCount };
    }
  });
});

test('the record of a question names every type that it reads', async () => {
  const two = await TestStore.open();
  await two.put('A', [{ id: '1' }]);
  await two.put('B', [{ id: '1' }]);
  const recorded = async (sql: string): Promise<string | null | undefined> => {
    const caller = { ...analyst, principal: sql.slice(0, 60) };
    await two.answer(sql, caller);
    const { entries } = await two.invoke(caller, 'audit', (invocation) => invocation.audit().entries({ limit: 100 }));
    return entries.find(({ principal, action }) => principal === caller.principal && action === 'query')?.objectType;
  };
  expect(await recorded('SELECT a.id FROM A a JOIN B b ON a.id = b.id')).toBe('A,B');
  expect(await recorded('SELECT id FROM A WHERE id IN (SELECT id FROM B)')).toBe('A,B');
  expect(await recorded('WITH c AS (SELECT id FROM B) SELECT id FROM c UNION SELECT id FROM A')).toBe('B,A');
  expect(await recorded('SELECT id FROM A')).toBe('A');
  await two.close();
});

describe('FACETS', () => {
  test('count the matching set, whatever the page', async () => {
    const sql = 'SELECT id FROM Person WHERE age >= 25 LIMIT 2 FACETS city, age, active';
    const { facets, rowCount } = await store.answer(sql);
    expect(rowCount).toBe(2);
    const values = await store.rows('SELECT city, COUNT(*) AS n FROM Person WHERE age >= 25 AND city IS NOT NULL GROUP BY city');
    expect(Object.fromEntries(facets!.counts.get('city')!)).toEqual(
      Object.fromEntries(values.map(({ city, n }) => [city, Number(n)])),
    );
    const [figures] = await store.rows(
      'SELECT MIN(age) AS min, MAX(age) AS max, SUM(age) AS sum, AVG(age) AS avg FROM Person WHERE age >= 25',
    );
    expect(facets!.stats.get('age')).toMatchObject(figures!);
    expect([...facets!.stats.keys()]).toEqual(['age']);
    const { cursor } = await store.answer(sql);
    const next = await store.answer(sql.replace('LIMIT 2', `LIMIT 2 AFTER '${cursor}'`));
    expect(next.facets).toEqual(facets);
  });

  test('of a join are of its rows', async () => {
    const { facets } = await store.answer(
      'SELECT a.id FROM Person a JOIN Person b ON a.id = b.id AS OF CURRENT LIMIT 1 FACETS a.city',
    );
    expect(facets!.counts.get('city')!.get('Lyon')).toBe(1);
  });
});

describe('RANK BY', () => {
  test('RECENCY halves nothing: it is e ^ -(age / half life)', async () => {
    const year = 31_557_600;
    const { instant } = await store.invoke(analyst, 'query', async (invocation) => invocation.snapshot());
    for (const { joined, _score } of await store.rows(`SELECT joined FROM Person RANK BY RECENCY(joined, ${year})`)) {
      const age = joined === null ? Infinity : Number(instant - (joined as bigint)) / 1e9;
      expect(_score).toBeCloseTo(Math.exp(-age / year), 6);
    }
  });

  test('breaks ties by key, then by system_from', async () => {
    const rows = await store.rows('SELECT _pk, system_from FROM Person RANK BY CUSTOM(age, 0)');
    const sorted = rows.toSorted((a, b) =>
      a['_pk']! < b['_pk']!
        ? -1
        : a['_pk']! > b['_pk']!
          ? 1
          : Number((a['system_from'] as bigint) - (b['system_from'] as bigint)),
    );
    expect(rows).toEqual(sorted);
  });
});

test('integers beyond 2^53 meet nobody but themselves, numbers and instants included', async () => {
  const exact = await TestStore.open();
  const least = 2n ** 53n;
  await exact.register('I', { i: 'integer' });
  await exact.register('N', { x: 'number' });
  await exact.put('I', [{ i: least }, { i: least + 1n }, { i: least + 2n }, { i: 7 }]);
  await exact.put('N', [{ x: 2 ** 53 }, { x: 2 ** 53 + 2 }, { x: 7 }, { x: 7.5 }]);
  const expected = [7n, least, least + 2n];
  for (const on of ['i = x', 'x = i', 'i = x AND i + 0 = x']) {
    expect(await exact.column(`SELECT i FROM I JOIN N ON ${on} ORDER BY i`), on).toEqual(expected);
    expect(await exact.column(`SELECT i FROM N JOIN I ON ${on} ORDER BY i`), on).toEqual(expected);
  }
  expect(await exact.column('SELECT i FROM I WHERE i IN (SELECT x FROM N) ORDER BY i')).toEqual(expected);
  expect(await exact.column('SELECT x FROM N WHERE x NOT IN (SELECT i FROM I)')).toEqual([7.5]);
  expect((await exact.refusal('SELECT i FROM I UNION SELECT x FROM N')).code).toBe('REL_INVALID');
  expect(await exact.column('SELECT i FROM I WHERE i < 8 UNION SELECT x FROM N WHERE x < 8')).toEqual([7, 7.5]);
  await exact.close();
});

test('vectors can be shown, ranked by, equal, added and counted, and nothing orders or groups by them', async () => {
  const plain = { required: false, masked: false, indexed: false, subject: false };
  const vectors = await TestStore.open();
  await vectors.register('V', { n: 'integer', v: { ...plain, type: 'vector', dims: 2 } });
  await vectors.put('V', [
    { n: 1, v: [3, 4] },
    { n: 2, v: [0, 1] },
    { n: 3, v: null },
  ]);
  expect(await vectors.rows('SELECT n FROM V RANK BY DIST(v, 0, 0)')).toEqual([
    { n: 1n, _score: 5 },
    { n: 2n, _score: 1 },
    { n: 3n, _score: 0 },
  ]);
  expect((await vectors.answer('SELECT v FROM V UNION ALL SELECT v FROM V')).rowCount).toBe(6);
  expect(await vectors.rows('SELECT a.n FROM V a JOIN V b ON a.v = b.v AND a.n = b.n')).toEqual([{ n: 1n }, { n: 2n }]);
  expect((await vectors.refusal('SELECT n FROM V RANK BY DIST(v, 0)')).code).toBe('REL_INVALID');
  // pgvector's answers.
  const sums = 'SELECT SUM(v) AS s, AVG(v) AS a, COUNT(v) AS n, COUNT(DISTINCT v) AS d, SUM(DISTINCT v) AS x FROM';
  const twice = '(SELECT v FROM V UNION ALL SELECT v FROM V WHERE n = 1)';
  expect(await vectors.rows(`${sums} ${twice} AS t`)).toEqual([{ s: '[6,9]', a: '[2,3]', n: 3n, d: 2n, x: '[3,5]' }]);
  expect(await vectors.rows(`${sums} V WHERE n > 2`)).toEqual([{ s: null, a: null, n: 0n, d: 0n, x: null }]);
  expect(await vectors.rows("SELECT n, AVG(v) AS a FROM V GROUP BY n HAVING SUM(v) <-> '[0,0]' > 1 ORDER BY n")).toEqual([
    { n: 1n, a: '[3,4]' },
  ]);
  const mixed = "SELECT SUM(CAST(CASE WHEN n = 1 THEN '[1]' ELSE '[1,2]' END AS vector)) FROM V";
  expect((await vectors.refusal(mixed)).message).toMatch(/different vector dimensions 1 and 2/);
  expect((await vectors.refusal("SELECT SUM(CAST('[3e38]' AS vector)) FROM V")).message).toMatch(/overflow/);
  expect((await vectors.refusal('SELECT SUM(v) OVER () FROM V')).code).toBe('REL_TYPE_MISMATCH');
  for (const sql of [
    'SELECT v FROM V UNION SELECT v FROM V',
    'SELECT DISTINCT v FROM V',
    'SELECT n FROM V WHERE v IN (SELECT v FROM V)',
    'SELECT COUNT(*) FROM V GROUP BY v',
    'SELECT n FROM V ORDER BY v',
    'SELECT n FROM V FACETS v',
  ]) {
    expect((await vectors.refusal(sql)).code, sql).toBe('REL_TYPE_MISMATCH');
  }
  await vectors.close();
});

describe('however much a statement asks for', () => {
  const rows: Row[] = Array.from({ length: 20_000 }, (_, i) => ({ n: BigInt(i), c: `text ${i % 7}` }));
  const fake = new FakeStore([{ name: 'T', properties: { n: 'integer', c: 'string' }, rows }]);

  async function turns(sql: string, limits = {}): Promise<{ readonly count: number; readonly end: string }> {
    let count = 0;
    const yieldTurn = () => {
      count++;
      return new Promise<void>((resolve) => setImmediate(resolve));
    };
    const planner = new Planner({ clock: systemClock, limits: { timeoutMs: 1_000, ...limits }, yieldTurn });
    const end = await planner.query(fake.invocation(), { sql }).then(
      () => 'answered',
      ({ code }) => String(code),
    );
    return { count, end };
  }

  test.each([
    ['a cross join', 'SELECT COUNT(*) FROM T a JOIN T b ON 1 = 1 JOIN T c ON 1 = 1', 'REL_TIMEOUT'],
    ['pairs that never match', 'SELECT a.n FROM T a JOIN T b ON a.n + b.n < 0', 'REL_TIMEOUT'],
    [
      'an endless recursion',
      'WITH RECURSIVE r(n) AS (SELECT n FROM T UNION ALL SELECT n FROM r) SELECT COUNT(*) FROM r',
      'REL_SCAN_CAP',
    ],
    [
      'a recursion that doubles',
      'WITH RECURSIVE r(n) AS (SELECT n FROM T WHERE n < 2 UNION ALL SELECT a.n FROM r a JOIN r b ON 1 = 1) SELECT COUNT(*) FROM r',
      'REL_',
    ],
    ['a subquery behind IN', 'SELECT n FROM T WHERE n IN (SELECT a.n FROM T a JOIN T b ON a.n + b.n < 0)', 'REL_TIMEOUT'],
    ['facets', 'SELECT a.n FROM T a JOIN T b ON a.n + b.n < 0 LIMIT 0 FACETS a.n', 'REL_TIMEOUT'],
  ])('%s ends, and others have their turns', async (_, sql, code) => {
    // As many rows as take several turns, however fast the machine is.
    const timeoutMs = code === 'REL_TIMEOUT' ? 1_000 : 60_000;
    const { count, end } = await turns(sql, { scannedRowsMax: 10_000_000, timeoutMs });
    expect(end).toContain(code);
    expect(count).toBeGreaterThan(3);
  });

  test('a subquery counts toward the rows and the memory of its statement', async () => {
    const within = 'SELECT n FROM T WHERE n IN (SELECT n FROM T)';
    expect((await turns(within, { scannedRowsMax: 39_999 })).end).toBe('REL_SCAN_CAP');
    expect((await turns(within, { scannedRowsMax: 40_000 })).end).toBe('answered');
    const sparse = 'SELECT n FROM T WHERE n IN (SELECT n * 1000003 FROM T) LIMIT 0';
    expect((await turns(sparse, { memoryBytesMax: 200_000 })).end).toBe('REL_MEMORY_CAP');
    expect((await turns(sparse, { memoryBytesMax: 5_000_000 })).end).toBe('answered');
  });

  test('a long statement leaves turns before it runs', async () => {
    const list = Array.from({ length: 20_000 }, (_, i) => i);
    expect((await turns(`SELECT n FROM T WHERE n IN (${list.join(', ')}) LIMIT 0`)).count).toBeGreaterThan(5);
    const { end } = await turns(`SELECT n FROM T WHERE ${list.map((n) => `n < ${n}`).join(' OR ')}`);
    expect(end).toBe('REL_PARSE');
  });

  test('conditions by the thousand are tested in pieces, to the same rows', async () => {
    const planner = new Planner({ clock: systemClock, limits: { blockRows: 300 } });
    const few = new FakeStore([{ name: 'T', properties: { n: 'integer', c: 'string' }, rows: rows.slice(0, 700) }]);
    const found = async (where: string): Promise<bigint[]> => {
      const sql = `SELECT n FROM T WHERE ${where}`;
      return rowsOf(await planner.query(few.invocation(), { sql })).map(({ n }) => n as bigint);
    };
    const steps = Array.from({ length: 2_000 }, (_, i) => i);
    const any = steps.map((i) => `n > ${i * 10} AND n < ${i * 10 + 3}`);
    expect(await found(any.map((each) => `(${each})`).join(' OR '))).toEqual(
      rows
        .slice(0, 700)
        .map(({ n }) => n as bigint)
        .filter((n) => n % 10n === 1n || n % 10n === 2n),
    );
    // The last one is NULL on every row, and what it stands beside is not.
    expect(await found(`n < 2 OR ${steps.map((i) => `n < -${i}`).join(' OR ')} OR c = NULL`)).toEqual([0n, 1n]);
    expect(await found(`n < 5 AND ${steps.map((i) => `n != ${i + 3}`).join(' AND ')} AND 10 % (n - 1) > 0`)).toEqual([]);
    expect(await found(`n < 5 AND ${steps.map((i) => `n != ${i + 3}`).join(' AND ')}`)).toEqual([0n, 1n, 2n]);
  });

  test('what unfolds has an end', async () => {
    const doubled = Array.from(
      { length: 12 },
      (_, i) => `c${i + 1} AS (SELECT a.n FROM ${i ? `c${i}` : 'T'} a JOIN ${i ? `c${i}` : 'T'} b ON a.n = b.n)`,
    );
    expect((await turns(`WITH ${doubled.join(', ')} SELECT COUNT(*) FROM c12`)).end).toBe('REL_PARSE');
    expect((await turns(`SELECT ${Array.from({ length: 3_000 }, () => '*').join(', ')} FROM T`)).end).toBe('REL_PARSE');
    const joins = Array.from({ length: 64 }, (_, i) => `JOIN T t${i} ON 1 = 1`).join(' ');
    expect((await turns(`SELECT t1.n FROM T ${joins}`)).end).toBe('REL_PARSE');
  });
});

test('the same question at the same basis gives the same rows in the same order, whichever side is held', async () => {
  const left: Row[] = Array.from({ length: 500 }, (_, i) => ({ k: BigInt(i % 50), a: i / 2 }));
  const right: Row[] = Array.from({ length: 20 }, (_, i) => ({ k: BigInt(i % 10), b: i / 4 }));
  const fake = new FakeStore([
    { name: 'L', properties: { k: 'integer', a: 'number' }, rows: left },
    { name: 'R', properties: { k: 'integer', b: 'number' }, rows: right },
  ]);
  const planner = new Planner({ clock: systemClock });
  const pairs = async (sql: string): Promise<string[]> => {
    const { batches } = await planner.query(fake.invocation(), { sql });
    return batches.flatMap(({ columns, first, count }) =>
      Array.from({ length: count }, (_, j) =>
        columns.map((vector) => ('values' in vector ? vector.values[first + j] : null)).join(),
      ),
    );
  };
  const byLeft = left.flatMap(({ k, a }) => right.filter((row) => row['k'] === k).map(({ b }) => `${a},${b}`));
  const byRight = right.flatMap(({ k, b }) => left.filter((row) => row['k'] === k).map(({ a }) => `${a},${b}`));
  expect(await pairs('SELECT a, b FROM L JOIN R ON L.k = R.k')).toEqual(byLeft);
  expect(await pairs('SELECT a, b FROM R JOIN L ON L.k = R.k')).toEqual(byRight);
  expect(await pairs('SELECT a, b FROM R JOIN L ON L.k = R.k LIMIT 7')).toEqual(byRight.slice(0, 7));
});

/** A plan as deep as the cube of the queries around each other would exhaust the stack of every pass behind it. */
test.each([
  ['one table', (n: number) => `Person p${n} WHERE`],
  ['two tables', (n: number) => `Person p${n}, Person q${n} WHERE p${n}.id = q${n}.id AND`],
])('39 values around each other, each of %s, are planned', async (_, from) => {
  let value = '0';
  for (let n = 39; n > 0; n--)
    value = `(SELECT MAX(p${n}.age) FROM ${from(n)} p${n}.age <= p${n - 1}.age AND p${n}.age >= 0 + ${value})`;
  expect(await store.rows(`SELECT COUNT(${value}) AS n FROM Person p0 WHERE p0.id = 'nobody'`)).toHaveLength(1);
});
