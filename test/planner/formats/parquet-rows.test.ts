/** Parquet files, read by hyparquet and by DuckDB. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBConnection, DuckDBListValue } from '@duckdb/node-api';
import { type AsyncBuffer, parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cell } from '../../../src/log/values/value.ts';
import { writeParquetPieces } from '../../../src/planner/formats/parquet-rows.ts';
import { hardColumns, hardRows, layouts, letsOut, type Rows, rowsOf } from './output-fixtures.ts';

const written = (rows: Rows, facts: ReadonlyMap<string, string> = new Map()): Buffer =>
  Buffer.concat([...writeParquetPieces(rows, facts)]);

const fileOf = (bytes: Buffer): AsyncBuffer => ({
  byteLength: bytes.length,
  slice: (start, end) => Uint8Array.from(bytes.subarray(start, end)).buffer,
});

let directory: string;
let duckdb: DuckDBConnection;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'annals-parquet-'));
  duckdb = await DuckDBConnection.create();
});
afterAll(() => {
  duckdb.closeSync();
  rmSync(directory, { recursive: true, force: true });
});

async function byDuckdb(bytes: Buffer): Promise<{ types: string[]; rows: unknown[][] }> {
  const path = join(directory, 'rows.parquet');
  writeFileSync(path, bytes);
  const reader = await duckdb.runAndReadAll(`SELECT * FROM read_parquet('${path}')`);
  const rows = reader
    .getRows()
    .map((row) => row.map((cell) => (cell instanceof DuckDBListValue ? Float32Array.from(cell.items as number[]) : cell)));
  const described = await duckdb.runAndReadAll(`DESCRIBE SELECT * FROM read_parquet('${path}')`);
  return { types: described.getRows().map(([, type]) => String(type)), rows };
}

async function byHyparquet(bytes: Buffer): Promise<unknown[][]> {
  const rows = await parquetReadObjects({ file: fileOf(bytes), compressors });
  return rows.map((row) =>
    Object.values(row).map((cell, i) => (i === 7 && Array.isArray(cell) ? Float32Array.from(cell as number[]) : (cell ?? null))),
  );
}

/** JavaScript's decoders, those of the two readers too, take a mark at the start of a text for a byte order mark. */
const unmarked = (cell: Cell): Cell => (typeof cell === 'string' ? cell.replace(/^\ufeff/, '') : cell);

/** hyparquet parses JSON columns. */
const parsed = (row: readonly Cell[]): unknown[] =>
  row.map((cell, i) => (i === 6 && cell !== null ? (JSON.parse(cell as string) as unknown) : unmarked(cell)));

describe('a Parquet file', () => {
  test.each(layouts)('gives DuckDB every cell back, rows kept %s', async (layout) => {
    const rows = hardRows();
    const bytes = written(rowsOf(hardColumns, rows, layout));
    const read = await byDuckdb(bytes);
    expect(read.types).toEqual(['VARCHAR', 'VARCHAR', 'BIGINT', 'DOUBLE', 'BOOLEAN', 'BIGINT', 'JSON', 'FLOAT[]', 'VARCHAR']);
    expect(read.rows).toEqual(rows.map((row) => row.map(unmarked)));
    expect(letsOut(bytes)).toBe(false);
  });

  test.each(layouts)('gives hyparquet every cell back, rows kept %s', async (layout) => {
    const rows = hardRows();
    expect(await byHyparquet(written(rowsOf(hardColumns, rows, layout)))).toEqual(rows.map(parsed));
  });

  test('holds every byte of a text', () => {
    expect(written(rowsOf([{ name: 't', type: 'string' }], [['\ufeffmark']])).includes('\ufeffmark')).toBe(true);
  });

  test('keeps minus zero beside many zeros', async () => {
    const rows: Cell[][] = Array.from({ length: 500 }, (_, i) => [i % 2 === 0 ? 0 : -0]);
    expect((await byDuckdb(written(rowsOf([{ name: 'x', type: 'number' }], rows)))).rows).toEqual(rows);
  });

  test('keeps facts, and says which integers are instants', async () => {
    const metadata = await parquetMetadataAsync(
      fileOf(written(rowsOf(hardColumns, hardRows()), new Map([['annals.row_count', '120']]))),
    );
    const pairs = new Map(metadata.key_value_metadata!.map(({ key, value }) => [key, value]));
    expect(pairs.get('annals.row_count')).toBe('120');
    expect(JSON.parse(pairs.get('annals.types')!)).toMatchObject({ n: 'integer', at: 'timestamp', doc: 'json' });
    expect(metadata.num_rows).toBe(120n);
  });

  test('of no rows has its columns', async () => {
    const read = await byDuckdb(written({ columns: hardColumns, batches: [] }));
    expect([read.types.length, read.rows.length]).toEqual([hardColumns.length, 0]);
  });

  test('of long vectors has smaller row groups, each with its rows', async () => {
    const rows: Cell[][] = Array.from({ length: 200 }, (_, i) => [
      BigInt(i),
      i % 9 === 0 ? null : Float32Array.from({ length: 1_024 }, (_x, j) => i + j / 8),
    ]);
    const bytes = written(
      rowsOf(
        [
          { name: 'n', type: 'integer' },
          { name: 'v', type: 'vector' },
        ],
        rows,
        'mixed',
      ),
    );
    expect((await parquetMetadataAsync(fileOf(bytes))).row_groups.length).toBeGreaterThan(3);
    expect((await byDuckdb(bytes)).rows).toEqual(rows);
  });

  test.each(layouts)('of long texts has smaller row groups, each with its rows, kept %s', async (layout) => {
    const rows: Cell[][] = Array.from({ length: 300 }, (_, i) => [BigInt(i), i % 9 === 0 ? null : `${i % 7} `.repeat(8_000)]);
    const columns = [
      { name: 'n', type: 'integer' },
      { name: 't', type: 'string' },
    ] as const;
    const bytes = written(rowsOf(columns, rows, layout));
    expect((await parquetMetadataAsync(fileOf(bytes))).row_groups.length).toBeGreaterThan(5);
    expect((await byDuckdb(bytes)).rows).toEqual(rows);
  });
});
