/** Arrow IPC streams, read by the library that everybody else reads them with. */
import { type Table, tableFromIPC } from 'apache-arrow';
import { describe, expect, test } from 'vitest';
import type { Cell } from '../../../src/log/values/value.ts';
import { writeArrowPieces } from '../../../src/planner/formats/arrow-rows.ts';
import { hardColumns, hardRows, layouts, letsOut, type Rows, rowsOf } from './output-fixtures.ts';

const written = (rows: Rows, facts: ReadonlyMap<string, string> = new Map()): Buffer =>
  Buffer.concat([...writeArrowPieces(rows, facts)]);

function cellsOf(table: Table): unknown[][] {
  const columns = table.schema.fields.map((_, i) => table.getChildAt(i)!);
  return Array.from({ length: table.numRows }, (_, row) =>
    columns.map((column) => {
      const cell: unknown = column.get(row);
      return cell !== null && typeof cell === 'object' ? Float32Array.from(cell as Iterable<number>) : cell;
    }),
  );
}

/** The library takes a mark at the start of a text for a byte order mark. */
const asRead = (rows: readonly Cell[][]): Cell[][] =>
  rows.map((row) => row.map((cell) => (typeof cell === 'string' ? cell.replace(/^\ufeff/, '') : cell)));

describe('an Arrow stream', () => {
  test.each(layouts)('gives every cell back, rows kept %s', (layout) => {
    const rows = hardRows();
    const bytes = written(rowsOf(hardColumns, rows, layout));
    expect(cellsOf(tableFromIPC(bytes))).toEqual(asRead(rows));
    expect(letsOut(bytes)).toBe(false);
  });

  test('is the same, bit by bit, however the store keeps the rows', () => {
    const rows = hardRows();
    const plain = written(rowsOf(hardColumns, rows));
    for (const layout of layouts) expect(written(rowsOf(hardColumns, rows, layout)).equals(plain)).toBe(true);
  });

  test('holds every byte of a text', () => {
    const bytes = written(rowsOf([{ name: 't', type: 'string' }], [['\ufeffmark']]));
    expect(bytes.includes('\ufeffmark')).toBe(true);
  });

  test('keeps minus zero', () => {
    const [row] = cellsOf(tableFromIPC(written(rowsOf([{ name: 'x', type: 'number' }], [[-0]]))));
    expect(row).toEqual([-0]);
  });

  test('says what the columns are, and the facts of the answer', () => {
    const { schema } = tableFromIPC(written(rowsOf(hardColumns, hardRows()), new Map([['annals.row_count', '120']])));
    expect(schema.fields.map((field) => `${field.name} ${field.type} ${field.metadata.get('annals.type')}`)).toEqual([
      'key Utf8 string',
      'text Utf8 string',
      'n Int64 integer',
      'x Float64 number',
      'yes Bool boolean',
      'at Int64 timestamp',
      'doc Utf8 json',
      'v FixedSizeList[3]<Float32> vector',
      'never Utf8 string',
    ]);
    expect(schema.fields[6]!.metadata.get('ARROW:extension:name')).toBe('arrow.json');
    expect(schema.metadata.get('annals.row_count')).toBe('120');
  });

  test('of no rows has its schema', () => {
    const table = tableFromIPC(written({ columns: hardColumns, batches: [] }));
    expect([table.numRows, table.schema.fields.length]).toEqual([0, hardColumns.length]);
    const empty = tableFromIPC(written(rowsOf(hardColumns, [], 'plain')));
    expect(empty.schema.fields[7]!.type.toString()).toBe('FixedSizeList[1]<Float32>');
  });

  test('of vectors whose lengths differ is refused before the first byte', () => {
    const columns = [{ name: 'v', type: 'vector' }] as const;
    const batch = (cell: Cell) => rowsOf(columns, [[cell]]).batches[0]!;
    const batches = [batch(Float32Array.of(1)), batch(Float32Array.of(1, 2))];
    expect(() => writeArrowPieces({ columns, batches }, new Map())).toThrow(
      expect.objectContaining({ code: 'REL_TYPE_MISMATCH' }) as Error,
    );
  });

  test('integers of a column widen to one type: 32 bits, doubles and 64 bits', () => {
    const columns = [
      { name: 'n', type: 'integer' },
      { name: 'x', type: 'number' },
    ] as const;
    const values = [5, -7, 2 ** 40, -(2 ** 40) - 1, 2 ** 53 - 1, -(2 ** 53) + 1];
    const batches = [
      { kind: 'i32' as const, values: Int32Array.of(5, -7), nulls: null },
      { kind: 'f64' as const, values: Float64Array.from(values.slice(2)), nulls: null },
      { kind: 'i64' as const, values: BigInt64Array.of(2n ** 60n), nulls: null },
    ].map((vector) => ({ columns: [vector, vector], selection: null, first: 0, count: vector.values.length }));
    const cells = cellsOf(tableFromIPC(written({ columns, batches })));
    expect(cells.map(([n]) => n)).toEqual([...values.map(BigInt), 2n ** 60n]);
    expect(cells.map(([, x]) => x)).toEqual([...values, 2 ** 60]);
  });

  test.each(layouts)('of long texts has more batches, each with its rows, kept %s', (layout) => {
    const rows: Cell[][] = Array.from({ length: 300 }, (_, i) => [BigInt(i), i % 9 === 0 ? null : `${i % 7} `.repeat(60_000)]);
    const columns = [
      { name: 'n', type: 'integer' },
      { name: 't', type: 'string' },
    ] as const;
    const table = tableFromIPC(written(rowsOf(columns, rows, layout)));
    expect(table.batches.length).toBeGreaterThan(3);
    expect(cellsOf(table)).toEqual(rows);
  });
});
