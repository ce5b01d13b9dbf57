/** TPC-H's 22 questions as they are written, at a small scale, beside DuckDB: the same rows in the same order. */
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tpchQueries, tpchSizes, tpchTables } from '../../bench/tpch.ts';
import { formatInstant } from '../../src/log/values/timestamp.ts';
import { rowsOf, TestStore } from '../harness.ts';

const sizes = tpchSizes(8_000);
const types = { integer: 'BIGINT', number: 'DOUBLE', string: 'VARCHAR', timestamp: 'DATE' } as const;

let store: TestStore;
let duckdb: DuckDBConnection;

beforeAll(async () => {
  store = await TestStore.open();
  duckdb = await (await DuckDBInstance.create(':memory:', { threads: '1' })).connect();
  for (const table of tpchTables) {
    const names = Object.keys(table.columns);
    await store.register(table.name, table.columns, null);
    const rows = Array.from({ length: table.rows(sizes) }, (_, i) => table.row(i, sizes));
    for (let first = 0; first < rows.length; first += 2_000) {
      const piece = rows.slice(first, first + 2_000);
      await store.put(
        table.name,
        piece.map((row) => Object.fromEntries(names.map((name, c) => [name, row[c]!]))),
      );
    }
    const columns = Object.entries(table.columns).map(([name, type]) => `${name} ${types[type]}`);
    await duckdb.run(`CREATE TABLE ${table.name} (${columns.join(', ')})`);
    const values = rows.map((row) => `(${row.map((cell) => (typeof cell === 'string' ? `'${cell}'` : cell)).join(', ')})`);
    for (let first = 0; first < values.length; first += 2_000) {
      await duckdb.run(`INSERT INTO ${table.name} VALUES ${values.slice(first, first + 2_000).join(', ')}`);
    }
  }
});
afterAll(async () => {
  duckdb.closeSync();
  await store.close();
});

/** Decimals are doubles here: DuckDB takes them for ones where they have an exponent. */
function asDoubles(sql: string): string {
  return sql.replaceAll(/\b\d+\.\d+\b/g, '$&e0');
}

/** Sums of doubles depend on the order of addition in their last digits. */
function shown(cell: unknown, type: string): string {
  if (cell === null || cell === undefined) return 'NULL';
  if (type === 'timestamp') return formatInstant(cell as bigint).slice(0, 10);
  return typeof cell === 'number' ? cell.toPrecision(10) : String(cell as string | bigint | boolean);
}

function theirs(cell: unknown): string {
  if (cell === null) return 'NULL';
  return typeof cell === 'number' ? cell.toPrecision(10) : String(cell as string | bigint | boolean);
}

describe('TPC-H as written', () => {
  test.each(tpchQueries.map((sql, i) => [`Q${i + 1}`, sql] as const))('%s', async (_, sql) => {
    const answer = await store.answer(sql);
    const ours = rowsOf(answer).map((row) => answer.columns.map(({ name, type }) => shown(row[name], type)));
    const peer = (await duckdb.runAndReadAll(asDoubles(sql))).getRows().map((row) => row.map(theirs));
    const numbers = answer.columns.map(({ type }) => type === 'number');
    const comparable = (rows: readonly (readonly string[])[]): string[][] =>
      rows.map((row) => row.map((cell, c) => (numbers[c] && cell !== 'NULL' ? Number(cell).toPrecision(10) : cell)));
    expect(comparable(ours)).toEqual(comparable(peer));
    expect(ours.length).toBeGreaterThan(0);
  });
});
