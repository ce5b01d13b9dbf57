/**
 * Answers checked against each other on random tables with a history and random predicates, so that no expected answer
 * has to be written down: partitioning by a predicate and its negation (TLP), counting with and without the filter
 * (NoREC), AS OF against the predicate that defines it, pages against the whole, ORDER BY and DISTINCT against sorting
 * and deduplicating outside.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { formatInstant } from '../../src/log/timestamp.ts';
import { compareText } from '../../src/log/value.ts';
import { type Row, TestStore } from '../harness.ts';

const keys = 24;
const changes = 160;
const runs = { numRuns: Number(process.env['SQL_ORACLE_RUNS'] ?? 120) };

let store: TestStore;
let instants: bigint[];

beforeAll(async () => {
  store = await TestStore.open('2024-01-01');
  await store.register(
    'T',
    { k: 'string', i: 'integer', j: 'integer', x: 'number', s: 'string', b: 'boolean', t: 'timestamp' },
    'k',
  );
  await grow(store);
  instants = (await store.column('SELECT system_from FROM T')) as bigint[];
});
afterAll(async () => {
  await store.close();
});

/** A history of single and bulk writes, corrections with bounds, and deletions; the same in every run. */
async function grow(target: TestStore): Promise<void> {
  const [history] = fc.sample(fc.array(change, { minLength: changes, maxLength: changes }), { numRuns: 1, seed: 20240101 });
  for (const step of history!) {
    target.clock.wallNs += BigInt(step.minutes) * 60_000_000_000n;
    if (step.kind === 'delete') {
      if ((await target.column(`SELECT k FROM T AS OF CURRENT WHERE k = 'k${step.key}'`)).length > 0)
        await target.delete('T', [`k${step.key}`]);
      continue;
    }
    const bounds = step.bounds && {
      valid_from: formatInstant(target.clock.wallNs - BigInt(step.bounds.back) * 3_600_000_000_000n),
      ...(step.bounds.length > 0 && {
        valid_to: formatInstant(target.clock.wallNs + BigInt(step.bounds.length - step.bounds.back) * 3_600_000_000_000n),
      }),
    };
    await target.put(
      'T',
      step.rows.map((row) => ({ ...row, k: `k${row.k}`, ...bounds })),
    );
  }
}

const integer = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constantFrom(9007199254740993n, -9223372036854775808n, 2147483648));
const text = fc.constantFrom('', 'a', 'A', 'ab', 'b%', 'ä', 'z', '\u{1F600}', '\uffee');
const instant = fc.constantFrom('2024-01-01', '2024-01-02T03:04:05', '1969-12-31T23:59:59.999Z');
const orNull = <T>(value: fc.Arbitrary<T>) => fc.option(value, { freq: 4 });

const row = fc.record({
  k: fc.integer({ min: 0, max: keys - 1 }),
  i: orNull(integer),
  j: orNull(fc.integer({ min: -2, max: 2 })),
  x: orNull(fc.constantFrom(-1.5, -0, 0, 0.1, 2, 1e300)),
  s: orNull(text),
  b: orNull(fc.boolean()),
  t: orNull(instant),
});

const change = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('put' as const),
      minutes: fc.integer({ min: 0, max: 300 }),
      rows: fc.uniqueArray(row, { minLength: 1, maxLength: 6, selector: ({ k }) => k }),
      bounds: fc.option(fc.record({ back: fc.integer({ min: 0, max: 48 }), length: fc.integer({ min: 0, max: 24 }) }), {
        freq: 3,
      }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('delete' as const),
      minutes: fc.integer({ min: 0, max: 300 }),
      key: fc.integer({ min: 0, max: keys - 1 }),
    }),
  },
);

const comparison = fc.constantFrom('=', '!=', '<', '<=', '>', '>=');
const quoted = (value: string) => `'${value.replaceAll("'", "''")}'`;

/** Predicates over the columns of T, with NULLs in every place. */
const predicate = fc.letrec<{ bool: string; number: string }>((tie) => ({
  number: fc.oneof(
    { maxDepth: 2 },
    fc.constantFrom('i', 'j', 'x', 'NULL'),
    integer.map(String),
    fc.constantFrom('0.5', '-1.5', '1e300'),
    // Kept small, so that arithmetic never leaves 64 bits: an error would depend on which rows are evaluated.
    fc
      .tuple(fc.constantFrom('j', '2', '-1'), fc.constantFrom('+', '-', '*'), fc.constantFrom('j', '3'))
      .map((parts) => `(${parts.join(' ')})`),
  ),
  bool: fc.oneof(
    { maxDepth: 3 },
    fc.tuple(tie('number'), comparison, tie('number')).map((parts) => parts.join(' ')),
    fc.tuple(fc.constantFrom('s', 'k'), comparison, text.map(quoted)).map((parts) => parts.join(' ')),
    fc.tuple(comparison, instant.map(quoted)).map(([op, value]) => `t ${op} ${value}`),
    fc.constantFrom(
      'b',
      'b = TRUE',
      'b != FALSE',
      's = k',
      's IS NULL',
      'x IS NOT NULL',
      "s LIKE 'a%'",
      "s LIKE '%b\\%'",
      "s NOT LIKE '_'",
      "k LIKE 'k1%'",
    ),
    fc
      .tuple(
        fc.constantFrom('i', 'j', 'x'),
        fc.constantFrom('IN', 'NOT IN'),
        fc.array(orNull(integer), { minLength: 1, maxLength: 4 }),
      )
      .map(([column, word, list]) => `${column} ${word} (${list.map((each) => each ?? 'NULL').join(', ')})`),
    fc
      .tuple(fc.constantFrom('s', 'k'), fc.constantFrom('IN', 'NOT IN'), fc.array(orNull(text), { minLength: 1, maxLength: 3 }))
      .map(
        ([column, word, list]) => `${column} ${word} (${list.map((each) => (each === null ? 'NULL' : quoted(each))).join(', ')})`,
      ),
    fc
      .tuple(tie('number'), fc.constantFrom('BETWEEN', 'NOT BETWEEN'), tie('number'), tie('number'))
      .map(([v, word, low, high]) => `${v} ${word} ${low} AND ${high}`),
    fc
      .tuple(
        fc.constantFrom('valid_from', 'system_from', 'valid_to'),
        comparison,
        fc.constantFrom('now()', "now() - INTERVAL '5 days'", "'2024-01-09'"),
      )
      .map((parts) => parts.join(' ')),
    fc.tuple(tie('bool'), fc.constantFrom('AND', 'OR'), tie('bool')).map(([l, op, r]) => `(${l}) ${op} (${r})`),
    tie('bool').map((inner) => `NOT (${inner})`),
    fc.tuple(tie('bool'), tie('number')).map(([when, value]) => `CASE WHEN ${when} THEN ${value} ELSE j END > 0`),
  ),
})).bool;

const asOf = fc.constantFrom('', '', ' AS OF CURRENT', " AS OF '2024-01-08'", " AS OF SYSTEM TIME '2024-01-08T12:00:00'");

const shown = (rows: readonly Row[]) =>
  rows.map((each) =>
    JSON.stringify(each, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : Object.is(value, -0) ? '-0' : value)),
  );
const multiset = (...parts: readonly (readonly Row[])[]) => parts.flatMap(shown).toSorted();

describe('TLP: a predicate, its negation and its NULL make up the whole', () => {
  test('rows', async () => {
    await fc.assert(
      fc.asyncProperty(predicate, asOf, async (p, when) => {
        const from = `SELECT * FROM T${when}`;
        const [whole, ...parts] = await Promise.all(
          [from, `${from} WHERE ${p}`, `${from} WHERE NOT (${p})`, `${from} WHERE (${p}) IS NULL`].map((sql) => store.rows(sql)),
        );
        expect(multiset(...parts)).toEqual(multiset(whole!));
      }),
      runs,
    );
  });

  test('aggregates', async () => {
    await fc.assert(
      fc.asyncProperty(predicate, asOf, async (p, when) => {
        const from = `SELECT COUNT(*) AS n, COUNT(s) AS c, SUM(j) AS sum, MIN(i) AS low, MAX(i) AS high, MIN(s) AS first FROM T${when}`;
        const [[whole], ...parts] = await Promise.all(
          [from, `${from} WHERE ${p}`, `${from} WHERE NOT (${p})`, `${from} WHERE (${p}) IS NULL`].map((sql) => store.rows(sql)),
        );
        const cells = (name: string) => parts.map((each) => each[0]![name]).filter((each) => each !== null);
        const sum = (name: string) => (cells(name) as bigint[]).reduce((a, b) => a + b, 0n);
        const least = (list: bigint[], sign: bigint) =>
          list.reduce<bigint | null>((a, b) => (a === null || sign * b < sign * a ? b : a), null);
        expect(sum('n')).toBe(whole!['n']);
        expect(sum('c')).toBe(whole!['c']);
        expect(sum('sum')).toBe(whole!['sum'] ?? 0n);
        expect(least(cells('low') as bigint[], 1n)).toBe(whole!['low']);
        expect(least(cells('high') as bigint[], -1n)).toBe(whole!['high']);
        expect((cells('first') as string[]).toSorted(compareText)[0] ?? null).toBe(whole!['first']);
      }),
      runs,
    );
  });

  test('groups: the counts of each key add up', async () => {
    await fc.assert(
      fc.asyncProperty(predicate, fc.constantFrom('s', 'b', 'j', 'x', 't', 's, b'), async (p, group) => {
        const counts = async (where: string) => {
          const rows = await store.rows(`SELECT ${group}, COUNT(*) AS n FROM T${where} GROUP BY ${group}`);
          return new Map(rows.map(({ n, ...key }) => [shown([key])[0]!, n as bigint]));
        };
        const [whole, ...parts] = await Promise.all(
          ['', ` WHERE ${p}`, ` WHERE NOT (${p})`, ` WHERE (${p}) IS NULL`].map(counts),
        );
        const added = new Map<string, bigint>();
        for (const part of parts) for (const [key, n] of part) added.set(key, (added.get(key) ?? 0n) + n);
        expect(added).toEqual(whole);
      }),
      runs,
    );
  });

  test('HAVING: groups that pass, fail and are unknown make up all groups', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('MAX(j) > 0', 'COUNT(i) != 2', 'SUM(j) BETWEEN -1 AND 1', "MIN(s) = 'a'"),
        fc.constantFrom('k', 's', 'b'),
        async (h, group) => {
          const from = `SELECT ${group}, COUNT(*) AS n FROM T GROUP BY ${group}`;
          const [whole, ...parts] = await Promise.all(
            [from, `${from} HAVING ${h}`, `${from} HAVING NOT (${h})`, `${from} HAVING (${h}) IS NULL`].map((sql) =>
              store.rows(sql),
            ),
          );
          expect(multiset(...parts)).toEqual(multiset(whole!));
        },
      ),
      { numRuns: 12 },
    );
  });
});

describe('NoREC: filtering and evaluating agree', () => {
  test('rows that WHERE keeps are those for which the projected predicate is true', async () => {
    await fc.assert(
      fc.asyncProperty(predicate, asOf, async (p, when) => {
        const kept = await store.column(`SELECT COUNT(*) AS n FROM T${when} WHERE ${p}`);
        const evaluated = await store.column(`SELECT (${p}) AS p FROM T${when}`);
        const counted = await store.column(`SELECT SUM(CASE WHEN ${p} THEN 1 ELSE 0 END) AS n FROM T${when}`);
        const truths = BigInt(evaluated.filter((each) => each === true).length);
        expect(kept).toEqual([truths]);
        expect(counted[0] ?? 0n).toBe(truths);
      }),
      runs,
    );
  });
});

describe('AS OF is the predicate that defines it', () => {
  const moment = fc.nat().map((n) => instants[n % instants.length]! + BigInt((n % 3) - 1));

  test('on the axis of belief, at and beside every instant of the history', async () => {
    await fc.assert(
      fc.asyncProperty(moment, predicate, async (at, p) => {
        const when = formatInstant(at);
        expect(await store.rows(`SELECT * FROM T AS OF SYSTEM TIME '${when}' WHERE ${p}`)).toEqual(
          await store.rows(`SELECT * FROM T WHERE system_from <= ${at} AND system_to > ${at} AND (${p})`),
        );
      }),
      runs,
    );
  });

  test('on the axis of truth', async () => {
    await fc.assert(
      fc.asyncProperty(moment, predicate, async (at, p) => {
        const when = formatInstant(at);
        expect(await store.rows(`SELECT * FROM T AS OF '${when}' WHERE ${p}`)).toEqual(
          await store.rows(`SELECT * FROM T WHERE valid_from <= ${at} AND valid_to > ${at} AND (${p})`),
        );
      }),
      runs,
    );
  });

  test('believed at one instant, a key has one version for each moment of truth', async () => {
    await fc.assert(
      fc.asyncProperty(moment, moment, async (believed, valid) => {
        const ks = await store.column(
          `SELECT k FROM T AS OF SYSTEM TIME '${formatInstant(believed)}' WHERE valid_from <= ${valid} AND valid_to > ${valid}`,
        );
        expect(new Set(ks).size).toBe(ks.length);
      }),
      runs,
    );
  });
});

describe('pages and orders', () => {
  test('pages of any size make up the whole, in its order', async () => {
    await fc.assert(
      fc.asyncProperty(predicate, asOf, fc.integer({ min: 1, max: 50 }), async (p, when, size) => {
        const whole = await store.rows(`SELECT * FROM T${when} WHERE ${p}`);
        const pages: Row[] = [];
        for (let after = ''; ; ) {
          const page = await store.rows(`SELECT * FROM T${when} WHERE ${p} LIMIT ${size}${after}`);
          pages.push(...page);
          if (page.length < size) break;
          after = ` AFTER '${String(page.at(-1)!['system_from'])}'`;
        }
        expect(pages).toEqual(whole);
      }),
      runs,
    );
  });

  test('ORDER BY … LIMIT n is the beginning of ORDER BY', async () => {
    const order = fc.array(
      fc
        .tuple(fc.constantFrom('i', 'j', 'x', 's', 't', 'k', 'j + 1'), fc.constantFrom('', ' DESC'))
        .map((parts) => parts.join('')),
      { minLength: 1, maxLength: 3 },
    );
    await fc.assert(
      fc.asyncProperty(order, fc.integer({ min: 0, max: 60 }), asOf, async (items, n, when) => {
        const sql = `SELECT * FROM T${when} ORDER BY ${items.join(', ')}`;
        const whole = await store.rows(sql);
        expect(await store.rows(`${sql} LIMIT ${n}`)).toEqual(whole.slice(0, n));
        expect(multiset(whole)).toEqual(multiset(await store.rows(`SELECT * FROM T${when}`)));
      }),
      runs,
    );
  });

  test('ORDER BY text is codepoint order', async () => {
    const sorted = (await store.column('SELECT s FROM T WHERE s IS NOT NULL ORDER BY s')) as string[];
    expect(sorted).toEqual([...sorted].toSorted(compareText));
    expect(new Set(sorted).size).toBeGreaterThan(5);
  });

  test('DISTINCT keeps one of each', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom('s', 'b, j', 'x', 'i, s, b', 't', 'j + 1'), predicate, async (columns, p) => {
        const all = shown(await store.rows(`SELECT ${columns} FROM T WHERE ${p}`));
        const distinct = shown(await store.rows(`SELECT DISTINCT ${columns} FROM T WHERE ${p}`));
        expect(distinct.length).toBe(new Set(distinct).size);
        expect(new Set(distinct)).toEqual(new Set(all));
      }),
      runs,
    );
  });
});
