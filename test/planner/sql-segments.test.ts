/**
 * The oracles again where storage takes short cuts: a type of several sealed segments and a mutable head, in which zone
 * maps, live bits, closings and the key index decide what is not read. Each question is asked a second time in words
 * that no short cut understands.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { formatInstant } from '../../src/log/values/timestamp.ts';
import type { Cell } from '../../src/log/values/value.ts';
import { tell } from '../runner/tell.ts';
import { hasTurn, whole } from '../runner/turn.ts';
import { multiset } from './random-table.ts';
import { TestStore } from '../harness.ts';

let store: TestStore;
/** Instants between the writes, by what they follow. */
const after: Record<'first' | 'update' | 'delete' | 'second' | 'correction', bigint> = {
  first: 0n,
  update: 0n,
  delete: 0n,
  second: 0n,
  correction: 0n,
};

beforeAll(async () => {
  store = await TestStore.open('2024-01-01');
  await store.register('B', { k: 'string', n: 'integer', s: 'string', x: 'number', b: 'boolean' }, 'k');
  const row = (i: number, turn: number) => ({
    k: `k${i}`,
    n: i,
    s: i % 11 === 0 ? null : `s${(i * 7 + turn) % 1000}`,
    x: i % 13 === 0 ? null : i / 8 - turn,
    b: i % 5 === 0 ? null : i % 2 === turn % 2,
  });
  const range = (from: number, to: number, step = 1) =>
    Array.from({ length: Math.ceil((to - from) / step) }, (_, i) => from + i * step);
  const passed = (name: keyof typeof after): void => {
    store.clock.wallNs += 3_600_000_000_000n;
    after[name] = store.clock.wallNs;
    store.clock.wallNs += 3_600_000_000_000n;
  };
  await store.put(
    'B',
    range(0, 70_000).map((i) => row(i, 0)),
  );
  passed('first');
  await store.put(
    'B',
    range(0, 30_000, 3).map((i) => row(i, 1)),
  );
  passed('update');
  await store.delete(
    'B',
    range(40_000, 41_000, 2).map((i) => `k${i}`),
  );
  passed('delete');
  await store.put(
    'B',
    range(70_000, 190_000).map((i) => row(i, 2)),
  );
  passed('second');
  const late = { valid_from: formatInstant(after.first), valid_to: formatInstant(after.update) };
  await store.put(
    'B',
    range(50_000, 50_100).map((i) => ({ ...row(i, 3), ...late })),
  );
  passed('correction');
  await store.register('Title', { k: 'string', j: 'json', t: 'string', many: 'json', all: 'string' }, 'k');
  await store.put(
    'Title',
    range(0, 66_000).map((i) => {
      const [few, all] = [[`The "${i % 7}" Land`, i % 7, true, null, 'é, ü\n'][i % 5]!, i % 3 === 0 ? i : `${i} Girls`];
      return { k: `k${i}`, j: few, t: few === null ? null : String(few), many: all, all: String(all) };
    }),
  );
}, 120_000);
afterAll(async () => {
  await store.close();
});

const count = async (sql: string): Promise<Cell> => (await store.column(sql))[0]!;
/** Instants at which a predicate or a key is looked at. */
const share = 3;
if (!whole)
  tell(`one in ${share} of the instants of each predicate and key (npm run test:whole -- test/planner/sql-segments.test.ts)`);
const moments = ['first', 'update', 'delete', 'second', 'correction'] as const;

const predicates = [
  'n < 1000',
  '1000 > n',
  '189990 <= n AND 0.5 < x',
  '100000 <= n AND 150000 > n',
  'n >= 189990',
  'n = 65536',
  'n BETWEEN 65530 AND 65540',
  'n < 0',
  'n > 70000 AND x < 9000',
  'x > 16000.5',
  'x = 0',
  "s = 's7'",
  "s = 'absent'",
  "s IN ('s1', 's999')",
  "s < 's1'",
  "s LIKE 's99%'",
  's IS NULL',
  'b',
  'NOT b AND n % 2 = 0',
  "k = 'k30'",
  "k = 'k40000'",
  "k IN ('k3', 'k69999', 'k70000', 'k50050', 'nobody')",
  "_pk = 'k50000'",
  "k = 'k30' AND n > 5",
  "k > 'k99998'",
  'system_from > now()',
  "system_from >= now() - INTERVAL '5 hours'",
  'system_to < 9223372036854775807',
  'valid_to <= now()',
];

describe('sealed segments and the head answer as one table', () => {
  test('there are several segments', async () => expect(await count('SELECT COUNT(*) AS n FROM B')).toBe(200_800n));

  test.each(predicates)('filtering and evaluating agree: %s', async (p) => {
    const asOf = ['', ' AS OF CURRENT', ...moments.map((moment) => ` AS OF SYSTEM TIME '${formatInstant(after[moment])}'`)];
    const all = [...asOf, ` AS OF '${formatInstant(after.delete)}'`];
    for (const when of all.filter((_, index) => hasTurn(index + predicates.indexOf(p), share))) {
      const kept = await count(`SELECT COUNT(*) AS n FROM B${when} WHERE ${p}`);
      const evaluated = await count(`SELECT SUM(CASE WHEN ${p} THEN 1 ELSE 0 END) AS n FROM B${when}`);
      expect([when, kept]).toEqual([when, evaluated]);
    }
  });

  test.each(moments)('AS OF is the predicate that defines it: after %s', async (moment) => {
    const at = after[moment];
    const shown =
      'COUNT(*) AS n, SUM(n) AS sum, COUNT(s) AS ss, MIN(k) AS first, MAX(s) AS last, MIN(system_from) AS low, MAX(system_from) AS high';
    expect(await store.rows(`SELECT ${shown} FROM B AS OF SYSTEM TIME '${formatInstant(at)}'`)).toEqual(
      await store.rows(`SELECT ${shown} FROM B WHERE system_from <= ${at} AND system_to > ${at}`),
    );
    expect(await store.rows(`SELECT ${shown} FROM B AS OF '${formatInstant(at)}'`)).toEqual(
      await store.rows(`SELECT ${shown} FROM B WHERE valid_from <= ${at} AND valid_to > ${at}`),
    );
  });

  test('a key finds exactly the versions that reading everything finds', async () => {
    for (const [at, key] of [
      'k0',
      'k3',
      'k4',
      'k29997',
      'k40000',
      'k40001',
      'k50050',
      'k65535',
      'k65536',
      'k129999',
      'k130000',
      'k189999',
      'k190000',
    ].entries()) {
      const all = ['', ' AS OF CURRENT', ...moments.map((moment) => ` AS OF SYSTEM TIME '${formatInstant(after[moment])}'`)];
      for (const when of all.filter((_, index) => hasTurn(index + at, share))) {
        expect(await store.rows(`SELECT * FROM B${when} WHERE k = '${key}' ORDER BY system_from`)).toEqual(
          await store.rows(`SELECT * FROM B${when} WHERE k LIKE '${key}' ORDER BY system_from`),
        );
      }
    }
  });

  test('TLP over groups', async () => {
    const grouped = 'SELECT b, COUNT(*) AS n, SUM(n) AS sum FROM B AS OF CURRENT';
    for (const p of ['n < 66000', "s = 's7'", 'x > 10000']) {
      const parts = await Promise.all(
        [p, `NOT (${p})`, `(${p}) IS NULL`].map((each) => store.rows(`${grouped} WHERE ${each} GROUP BY b`)),
      );
      const whole = await store.rows(`${grouped} GROUP BY b`);
      for (const { b, n, sum } of whole) {
        const same = parts.flat().filter((row) => row['b'] === b);
        const added = (name: string) => same.reduce((total, row) => total + (row[name] as bigint), 0n);
        expect([added('n'), added('sum')]).toEqual([n, sum]);
      }
    }
  });

  test('pages make up the whole', async () => {
    for (const [when, p] of [
      ['', 'n % 3 = 0'],
      [' AS OF CURRENT', "s LIKE 's5%'"],
    ]) {
      const whole = await store.column(`SELECT system_from FROM B${when} WHERE ${p}`);
      const pages: Cell[] = [];
      for (let cursor = ''; ; ) {
        const page = await store.answer(`SELECT system_from FROM B${when} WHERE ${p} LIMIT 9000${cursor}`);
        pages.push(...(await store.column(`SELECT system_from FROM B${when} WHERE ${p} LIMIT 9000${cursor}`)));
        if (page.cursor === null) break;
        cursor = ` AFTER '${page.nextCursor}'`;
      }
      expect(pages).toEqual(whole);
    }
  });

  test('the first rows of an order are those of sorting everything', async () => {
    for (const order of ['n DESC', 's, n', 'x DESC, k', 'b, s DESC, n', 'n % 100, n DESC']) {
      const sql = `SELECT n, s, x, b, k FROM B AS OF CURRENT ORDER BY ${order}`;
      const whole = await store.rows(sql);
      expect(await store.rows(`${sql} LIMIT 25`)).toEqual(whole.slice(0, 25));
      expect(whole.length).toBe(189_500);
    }
  });

  /** The text column holds what json comes to beside a text. */
  test('json beside a text answers as a text column does', async () => {
    const asked = async (from: string, condition: string) =>
      await store.column(`SELECT k FROM ${from} WHERE ${condition} ORDER BY system_from`);
    for (const [condition, least] of [
      [`$ = 'The "3" Land'`, 1_000],
      [`'The "3" Land' != $`, 1_000],
      ["$ = '4'", 1_000],
      ["$ IN ('true', '4', NULL)", 1_000],
      ["NOT $ IN ('true', '4')", 1_000],
      ["$ LIKE 'The %'", 1_000],
      ["NOT $ LIKE '%Land'", 1_000],
      ["$ ILIKE 'the %'", 1_000],
      ["$ > 'T' AND $ <= 'a'", 1_000],
      ["$ BETWEEN 'A' AND 'Z'", 1_000],
      ["CASE $ WHEN '4' THEN true WHEN 'true' THEN true ELSE false END", 1_000],
      ["# = '7 Girls'", 1],
      ["# = '9'", 1],
      ["# LIKE '9%Girls'", 700],
      ["# IN ('9', '7 Girls', '8', 'absent')", 2],
      ["$ IN (SELECT t FROM Title WHERE k = 'k0')", 1_000],
      [`'The "3" Land' IN (SELECT $ FROM Title WHERE k = 'k10') AND k < 'k2'`, 1_000],
      ["# = ANY (SELECT s.all FROM Title s WHERE s.k IN ('k1', 'k3'))", 2],
      ["EXISTS (SELECT 1 FROM Title s WHERE s.t = $ AND s.k < 'k1')", 1_000],
    ] as const) {
      const said = (many: string, few: string) => condition.replaceAll('$', few).replaceAll('#', many);
      const found = await asked('Title', said('many', 'j'));
      expect([condition, found]).toEqual([condition, await asked('Title', said('all', 't'))]);
      expect(found.length, condition).toBeGreaterThanOrEqual(least);
    }
    for (const [left, right] of [
      ['many', 'all'],
      ['all', 'many'],
    ]) {
      const joined = `SELECT COUNT(*) AS n FROM Title a JOIN Title b ON a.${left} = b.${right}`;
      expect(await count(joined)).toBe(66_000n);
      expect(await count(`${joined} WHERE a.k LIKE 'k1%' AND b.j = '4'`)).toEqual(
        await count(`SELECT COUNT(*) AS n FROM Title WHERE k LIKE 'k1%' AND t = '4'`),
      );
    }
    expect(
      await count(`SELECT COUNT(*) AS n FROM Title a LEFT JOIN Title b ON a.many = b.all AND b.t = '4' WHERE b.k IS NULL`),
    ).toBe(await count(`SELECT COUNT(*) AS n FROM Title WHERE t IS NULL OR t != '4'`));
  });

  test('a comparison that can hold for no row is an error, or a notice', async () => {
    expect((await store.refusal('SELECT k FROM Title WHERE j = 4')).message).toContain('compare json with a text, or CAST it');
    const notices = async (condition: string) => (await store.answer(`SELECT k FROM Title WHERE ${condition}`)).notices;
    expect(await notices("j = '4'")).toEqual([]);
    expect(await notices(`j = '"4"'`)).toEqual(['1:31: json is compared by its value; write the text without its double quotes']);
    expect(await notices(`j = '"5"' OR many LIKE 'x'`)).toHaveLength(1);
    expect(await notices('t = NULL')).toEqual(['1:31: a comparison with NULL holds for no row; write IS NULL or IS NOT NULL']);
    expect(await notices('t IS NULL')).toEqual([]);
  });

  test('DISTINCT and GROUP BY agree', async () => {
    expect(multiset(await store.rows('SELECT DISTINCT s, b FROM B'))).toEqual(
      multiset(await store.rows('SELECT s, b FROM B GROUP BY s, b')),
    );
  });
});
