/**
 * Answers checked against each other on random tables with a history and random predicates, so that no expected answer
 * has to be written down: partitioning by a predicate and its negation (TLP), counting with and without the filter
 * (NoREC), AS OF against the predicate that defines it, pages against the whole, ORDER BY and DISTINCT against sorting
 * and deduplicating outside.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { formatInstant } from '../../src/log/values/timestamp.ts';
import { compareText } from '../../src/log/values/value.ts';
import { Planner } from '../../src/planner/planner.ts';
import { analyst, type Row, rowsOf, type TestStore } from '../harness.ts';
import { asOf, multiset, openRandomTable, predicate, shown } from './random-table.ts';
import { whole } from '../runner/turn.ts';

const runs = { numRuns: Number(process.env['SQL_ORACLE_RUNS'] ?? (whole ? 120 : 16)) };

let store: TestStore;
let instants: bigint[];

beforeAll(async () => {
  store = await openRandomTable();
  instants = (await store.column('SELECT system_from FROM T')) as bigint[];
});
afterAll(async () => {
  await store.close();
});

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

describe('execution does not change the answer', () => {
  test.each([1, 7, 64])('rows exchanged %i at a time', async (blockRows) => {
    const planner = new Planner({ clock: store.clock, limits: { blockRows } });
    const order = fc.constantFrom('', ' ORDER BY s DESC, j', ' ORDER BY x LIMIT 9', ' LIMIT 17');
    const asked = fc.oneof(
      fc.tuple(predicate, asOf, order).map(([p, when, tail]) => `SELECT * FROM T${when} WHERE ${p}${tail}`),
      fc
        .tuple(predicate, fc.constantFrom('s', 'b', 'x', 'j', 's, b'))
        .map(
          ([p, group]) =>
            `SELECT ${group}, COUNT(*) AS n, SUM(j) AS sum, AVG(j) AS avg, MAX(s) AS last FROM T WHERE ${p} GROUP BY ${group} ORDER BY ${group}`,
        ),
      predicate.map((p) => `SELECT DISTINCT s, b FROM T WHERE ${p} ORDER BY s, b`),
    );
    await fc.assert(
      fc.asyncProperty(asked, async (sql) => {
        const answer = await store.invoke(analyst, 'query', (invocation) => planner.query(invocation, { sql }));
        expect(shown(rowsOf(answer))).toEqual(shown(await store.rows(sql)));
      }),
      { numRuns: Math.ceil(runs.numRuns / 2) },
    );
  });
});
