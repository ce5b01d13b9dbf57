/**
 * The same questions to an independent engine: every stored version of the random table is copied to DuckDB, and answers
 * must agree row by row. Instants are 64-bit integers there; NULLs come last in both.
 */
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { formatInstant, parseInstant } from '../../src/log/values/timestamp.ts';
import type { Cell } from '../../src/log/values/value.ts';
import type { Row, TestStore } from '../harness.ts';
import { asOf, instants, openRandomTable, predicate } from './random-table.ts';
import { whole } from '../runner/turn.ts';

const runs = { numRuns: Number(process.env['SQL_ORACLE_RUNS'] ?? (whole ? 150 : 20)) };
const day = 86_400_000_000_000n;

let store: TestStore;
let duckdb: DuckDBConnection;

beforeAll(async () => {
  store = await openRandomTable();
  const instance = await DuckDBInstance.create(':memory:', {
    threads: '1',
    default_null_order: 'nulls_last',
  });
  duckdb = await instance.connect();
  // With it, 1.5.5 answers `-9223372036854775808 != (-1 * j)` with no rows.
  await duckdb.run('PRAGMA disable_optimizer');
  await duckdb.run(
    'CREATE TABLE T (_pk VARCHAR, valid_from BIGINT, valid_to BIGINT, system_from BIGINT, system_to BIGINT, ' +
      'k VARCHAR, i BIGINT, j BIGINT, x DOUBLE, s VARCHAR, b BOOLEAN, t BIGINT)',
  );
  const names = ['_pk', 'valid_from', 'valid_to', 'system_from', 'system_to', 'k', 'i', 'j', 'x', 's', 'b', 't'];
  const rows = await store.rows(`SELECT ${names.join(', ')} FROM T`);
  const values = rows.map((row) => `(${names.map((name) => literal(row[name]!)).join(', ')})`);
  await duckdb.run(`INSERT INTO T VALUES ${values.join(', ')}`);
});
afterAll(async () => {
  duckdb.closeSync();
  await store.close();
});

function literal(cell: Cell): string {
  if (cell === null) return 'NULL';
  if (typeof cell === 'string') return `'${cell.replaceAll("'", "''")}'`;
  return Object.is(cell, -0) ? "'-0.0'::DOUBLE" : String(cell);
}

/** Our dialect's instants and AS OF as the integers and predicates that they mean. */
function translated(sql: string): string {
  const now = store.clock.wallNs;
  const axes: Readonly<Record<string, (ns: bigint) => string>> = {
    valid: (ns) => `valid_from <= ${ns} AND valid_to > ${ns}`,
    system: (ns) => `system_from <= ${ns} AND system_to > ${ns}`,
  };
  const asOfClause = / AS OF (CURRENT|SYSTEM TIME '([^']+)'|'([^']+)')/;
  const clause = asOfClause.exec(sql);
  const bounds = clause
    ? clause[1] === 'CURRENT'
      ? `${axes['valid']!(now)} AND ${axes['system']!(now)}`
      : clause[2] !== undefined
        ? axes['system']!(parseInstant(clause[2]))
        : axes['valid']!(parseInstant(clause[3]!))
    : 'TRUE';
  let text = sql.replace(asOfClause, '').replace('FROM T', `FROM (SELECT * FROM T WHERE ${bounds}) T`);
  text = text.replaceAll("now() - INTERVAL '5 days'", String(now - 5n * day)).replaceAll('now()', String(now));
  for (const instant of [...instants, '2024-01-09']) text = text.replaceAll(`'${instant}'`, String(parseInstant(instant)));
  return text;
}

/** Cells as text. Doubles are compared to twelve digits: the order of a sum is each engine's own. */
function shown(cells: Iterable<Cell>): string {
  return [...cells]
    .map((cell) => (typeof cell === 'number' ? String(Number(cell.toPrecision(12)) + 0) : String(cell)))
    .join(' | ');
}

async function theirs(sql: string): Promise<string[]> {
  const reader = await duckdb.runAndReadAll(translated(sql));
  return (reader.getRows() as Cell[][]).map(shown);
}

async function ours(sql: string): Promise<string[]> {
  return (await store.rows(sql)).map((row: Row) => shown(Object.values(row)));
}

async function agree(sql: string): Promise<void> {
  expect(await ours(sql), sql).toEqual(await theirs(sql));
}

describe('DuckDB answers the same', () => {
  test('there is something to ask about', async () => {
    expect(await ours('SELECT COUNT(*) AS n FROM T')).toEqual(await theirs('SELECT COUNT(*) AS n FROM T'));
    expect(Number((await ours('SELECT COUNT(*) AS n FROM T'))[0])).toBeGreaterThan(400);
    expect(formatInstant(store.clock.wallNs) > '2024-01-09').toBe(true);
  });

  test('which versions a predicate keeps', async () => {
    await fc.assert(
      fc.asyncProperty(predicate, asOf, (p, when) => agree(`SELECT system_from FROM T${when} WHERE ${p} ORDER BY system_from`)),
      runs,
    );
  });

  test('what an expression is worth', async () => {
    const value = fc.constantFrom(
      'j + 3',
      'j - x',
      'x * 2',
      '-j',
      'j / 2',
      'j % 2',
      'i % 3',
      '(j * 2 - 1) % 4',
      'x + x',
      'CASE j WHEN 1 THEN s WHEN 2 THEN k END',
      "CASE s WHEN 'a' THEN 1 ELSE j END",
    );
    await fc.assert(
      fc.asyncProperty(predicate, value, asOf, (p, v, when) =>
        agree(`SELECT system_from, ${v} AS v, (${p}) AS p FROM T${when} ORDER BY system_from`),
      ),
      runs,
    );
  });

  test('what groups add up to', async () => {
    const group = fc.constantFrom('s', 'b', 'j', 'x', 't', 'k', 's, b', 'j, x, b', 'j % 2');
    const aggregates =
      'COUNT(*) AS n, COUNT(x) AS xs, COUNT(DISTINCT s) AS ss, COUNT(DISTINCT x) AS xd, SUM(j) AS sum, AVG(j) AS mean, MIN(i) AS low, MAX(i) AS high, MIN(s) AS first, MAX(s) AS last, MIN(x) AS xl, MAX(t) AS tm, SUM(x) AS xs2';
    const having = fc.constantFrom(
      '',
      ' HAVING COUNT(*) > 3',
      ' HAVING SUM(j) BETWEEN -2 AND 2',
      ' HAVING MAX(s) IS NULL',
      " HAVING MIN(s) = ''",
    );
    await fc.assert(
      fc.asyncProperty(group, having, predicate, asOf, (g, h, p, when) => {
        const columns = g.split(', ').map((column, i) => `${column} AS g${i}`);
        const order = columns.map((_, i) => `g${i}`).join(', ');
        return agree(`SELECT ${columns.join(', ')}, ${aggregates} FROM T${when} WHERE ${p} GROUP BY ${g}${h} ORDER BY ${order}`);
      }),
      runs,
    );
  });

  test('what the whole adds up to', async () => {
    const aggregates =
      'COUNT(*) AS n, COUNT(i) AS c, SUM(j) AS sum, AVG(x) AS mean, MIN(x) AS low, MAX(x) AS high, MIN(t) AS first, MAX(k) AS last';
    await fc.assert(
      fc.asyncProperty(predicate, asOf, (p, when) => agree(`SELECT ${aggregates} FROM T${when} WHERE ${p}`)),
      runs,
    );
  });

  test('in which order rows come, NULLs included', async () => {
    const item = fc
      .tuple(fc.constantFrom('i', 'j', 'x', 's', 't', 'k', 'j * 2', 'x - 1'), fc.constantFrom('', ' ASC', ' DESC'))
      .map((parts) => parts.join(''));
    await fc.assert(
      fc.asyncProperty(
        fc.array(item, { minLength: 1, maxLength: 3 }),
        fc.constantFrom('', ' LIMIT 10', ' LIMIT 200'),
        asOf,
        (items, limit, when) => agree(`SELECT system_from, s, x FROM T${when} ORDER BY ${items.join(', ')}, system_from${limit}`),
      ),
      runs,
    );
  });

  test('which combinations are distinct', async () => {
    const columns = fc.constantFrom('s', 'b, j', 'x', 't, s', 'i, b, x');
    await fc.assert(
      fc.asyncProperty(columns, predicate, (list, p) => agree(`SELECT DISTINCT ${list} FROM T WHERE ${p} ORDER BY ${list}`)),
      runs,
    );
  });
});
