/** CSV that comes back as it was: through our own reader, csv-parse and DuckDB, NULL and the empty text told apart. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBConnection } from '@duckdb/node-api';
import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cell, ColumnType } from '../../../src/log/values/value.ts';
import { writeCsvChunks } from '../../../src/planner/formats/csv-rows.ts';
import type { OutputColumn } from '../../../src/planner/planner-contract.ts';
import { definition, property, read, cells as readCells } from './ingest-fixtures.ts';
import { hardColumns, hardRows, layouts, letsOut, type Rows, rowsOf } from './output-fixtures.ts';

const written = (rows: Rows, chunkBytes?: number): Buffer => Buffer.concat([...writeCsvChunks(rows, chunkBytes)]);

let directory: string;
let duckdb: DuckDBConnection;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'annals-csv-'));
  duckdb = await DuckDBConnection.create();
});
afterAll(() => {
  duckdb.closeSync();
  rmSync(directory, { recursive: true, force: true });
});

/** Rows as our own reader takes them into a type that declares the columns, or into one that learns them. */
async function byOwnReader(columns: readonly OutputColumn[], csv: Buffer, open = false): Promise<Cell[][]> {
  const properties = Object.fromEntries(columns.map(({ name, type }) => [name, property(type, type === 'vector' ? 3 : 0)]));
  const { batches, error } = await read(csv, { definition: definition(open ? {} : properties, open) });
  expect(error).toBeNull();
  expect(batches.flatMap(({ rejections }) => rejections)).toEqual([]);
  return readCells(batches).map((row) => columns.map(({ name }) => (row[name] ?? null) as Cell));
}

const duckdbTypes: Readonly<Record<ColumnType, string>> = {
  string: 'VARCHAR',
  integer: 'BIGINT',
  number: 'DOUBLE',
  boolean: 'BOOLEAN',
  timestamp: 'BIGINT',
  json: 'VARCHAR',
  vector: 'VARCHAR',
};

async function byDuckdb(columns: readonly OutputColumn[], csv: Buffer): Promise<unknown[][]> {
  const path = join(directory, 'rows.csv');
  writeFileSync(path, csv);
  const types = columns.map(({ name, type }) => `'${name}': '${duckdbTypes[type]}'`).join(', ');
  const reader = await duckdb.runAndReadAll(
    `SELECT * FROM read_csv('${path}', header = true, columns = {${types}}, delim = ',', quote = '"', escape = '"',
       nullstr = '', allow_quoted_nulls = false, comment = '', new_line = '\\r\\n')`,
  );
  return reader.getRows();
}

/** A vector is JSON text to those who have no such type; JavaScript's decoders drop a mark at the start of a text. */
const asText = (row: readonly Cell[]): Exclude<Cell, Float32Array>[] =>
  row.map((cell) =>
    cell instanceof Float32Array
      ? `[${[...cell].map((value) => (Object.is(value, -0) ? '-0' : shortest(value))).join(',')}]`
      : typeof cell === 'string'
        ? cell.replace(/^\ufeff/, '')
        : cell,
  );

function spelled(cell: Exclude<Cell, Float32Array>, { type }: OutputColumn): string | null {
  if (typeof cell !== 'number') return cell === null ? null : String(cell);
  if (Object.is(cell, -0)) return '-0';
  return type === 'number' && Math.abs(cell) > Number.MAX_SAFE_INTEGER ? cell.toExponential() : String(cell);
}

function shortest(value: number): string {
  for (let precision = 1; precision < 9; precision++) {
    if (Math.fround(Number(value.toPrecision(precision))) === value) return String(Number(value.toPrecision(precision)));
  }
  return String(Number(value.toPrecision(9)));
}

describe('CSV', () => {
  test('is as RFC 4180 has it, with CRLF and a header', () => {
    const columns = [
      { name: 'a', type: 'string' },
      { name: 'b,"c"', type: 'string' },
      { name: 'n', type: 'integer' },
    ] as const;
    const csv = written(
      rowsOf(columns, [
        ['', null, 9_223_372_036_854_775_807n],
        ['x"y', 'a\r\nb', -9_223_372_036_854_775_808n],
        ['007', 'true', 0n],
        ['é', 'nil', null],
      ]),
    );
    expect(csv.toString()).toBe(
      '"a","b,""c""","n"\r\n"",,9223372036854775807\r\n"x""y","a\r\nb",-9223372036854775808\r\n"007","true",0\r\n"é","nil",\r\n',
    );
  });

  test.each(layouts)('gives our own reader every cell back, rows kept %s', async (layout) => {
    const rows = hardRows();
    const csv = written(rowsOf(hardColumns, rows, layout));
    expect(await byOwnReader(hardColumns, csv)).toEqual(rows);
    expect(letsOut(csv)).toBe(false);
  });

  test.each(layouts)('gives DuckDB every cell back, rows kept %s', async (layout) => {
    const rows = hardRows();
    expect(await byDuckdb(hardColumns, written(rowsOf(hardColumns, rows, layout)))).toEqual(rows.map(asText));
  });

  test('gives csv-parse every cell back as text', () => {
    const rows = hardRows();
    const records = parse(written(rowsOf(hardColumns, rows)), {
      cast: (value, { quoting }) => (value === '' && !quoting ? null : value),
    });
    expect(records[0]).toEqual(hardColumns.map(({ name }) => name));
    expect(records.slice(1)).toEqual(
      rows.map((row) => row.map((cell, i) => (typeof cell === 'string' ? cell : spelled(asText([cell])[0]!, hardColumns[i]!)))),
    );
  });

  test('in pieces is the same bytes, and pieces keep their size', () => {
    const rows = rowsOf(hardColumns, hardRows(400), 'mixed');
    const pieces = [...writeCsvChunks(rows, 2_000)];
    expect(pieces.length).toBeGreaterThan(10);
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(4_000);
    expect(Buffer.concat(pieces).equals(written(rows))).toBe(true);
  });

  test('of no rows is a header', () => {
    expect(written({ columns: [{ name: 'a', type: 'string' }], batches: [] }).toString()).toBe('"a"\r\n');
  });

  test('a header that begins with a mark is no file with a byte order mark', async () => {
    const columns = [{ name: '\ufeffa', type: 'string' }] as const;
    const csv = written(rowsOf(columns, [['x']]));
    expect(csv.toString()).toBe('"\ufeffa"\r\n"x"\r\n');
    expect(await byOwnReader(columns, csv)).toEqual([['x']]);
  });

  test('numbers that have no text in CSV are NULL', () => {
    const vector = { kind: 'f64' as const, values: Float64Array.of(Number.NaN, Infinity, 1.5), nulls: null };
    const batches = [{ columns: [vector, vector], selection: null, first: 0, count: 3 }];
    const columns = [
      { name: 'x', type: 'number' },
      { name: 'y', type: 'number' },
    ] as const;
    expect(written({ columns, batches }).toString()).toBe('"x","y"\r\n,\r\n,\r\n1.5,1.5\r\n');
  });

  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 20 }),
    fc.string({ unit: fc.constantFrom('"', ',', '\r', '\n', 'a', ' ', '0', '-', 'é', '😀'), maxLength: 8 }),
    fc.constantFrom('', 'true', 'false', '1', '-0', '1e3', 'null', '[1]', '{}'),
  );
  const columns = [
    { name: 'k', type: 'string' },
    { name: 't', type: 'string' },
    { name: 'n', type: 'integer' },
    { name: 'x', type: 'number' },
  ] as const;
  const row = fc.tuple(
    text,
    fc.option(text),
    fc.option(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })),
    fc.option(fc.double({ noNaN: true, noDefaultInfinity: true })),
  );

  test('of any texts, integers and numbers comes back, however the rows are kept', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(row, { maxLength: 12 }), fc.constantFrom(...layouts), async (rows, layout) => {
        const csv = written(rowsOf(columns, rows, layout));
        expect(await byOwnReader(columns, csv)).toEqual(rows);
      }),
      { numRuns: 300 },
    );
  });

  test('of texts comes back as texts where nobody has declared the columns', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(text, text), { minLength: 1, maxLength: 8 }), async (rows) => {
        const open = columns.slice(0, 2);
        expect(await byOwnReader(open, written(rowsOf(open, rows)), true)).toEqual(rows);
      }),
      { numRuns: 300 },
    );
  });

  test('of texts comes back through DuckDB', async () => {
    // DuckDB ends a text at NUL.
    const texts = fc.array(fc.tuple(text, fc.option(text)), { minLength: 1, maxLength: 30 });
    const plain = texts.map((rows) => rows.map((cells) => cells.map((cell) => cell?.replaceAll('\0', '') ?? null)));
    const two = columns.slice(0, 2);
    await fc.assert(
      fc.asyncProperty(plain, async (rows) => {
        expect(await byDuckdb(two, written(rowsOf(two, rows)))).toEqual(rows.map(asText));
      }),
      { numRuns: 60 },
    );
  });
});
