/** Arrow IPC streams on their way in: as pyarrow and apache-arrow write them, as our own writer does, and as nobody should. */
import { readdirSync, readFileSync } from 'node:fs';
import {
  Dictionary,
  Field,
  Int32,
  Int64,
  RecordBatch,
  Schema,
  Struct,
  Table,
  tableFromArrays,
  tableToIPC,
  Utf8,
  makeData,
  vectorFromArray,
} from 'apache-arrow';
import { describe, expect, test } from 'vitest';
import { writeArrowPieces } from '../../../src/planner/formats/arrow-rows.ts';
import { BodyReader } from '../../../src/planner/formats/ingest-reader.ts';
import { cells, definition, property, read, typesOf } from './ingest-fixtures.ts';
import { hardColumns, hardRows, rowsOf } from './output-fixtures.ts';

const folder = new URL('../../../fixtures/arrow/', import.meta.url);
const fixture = (name: string): Buffer => readFileSync(new URL(`${name}.arrow`, folder));
const streamOf = (columns: Parameters<typeof tableFromArrays>[0]): Uint8Array => tableToIPC(tableFromArrays(columns), 'stream');
const messages = (batches: Awaited<ReturnType<typeof read>>['batches']): string[] =>
  batches.flatMap(({ rejections }) => rejections.map(({ index, code, detail }) => `${index} ${code} ${detail}`));

const everyType = [
  {
    i8: -128n,
    i16: -32768n,
    i32: -2147483648n,
    i64: -9223372036854775808n,
    u8: 0n,
    u16: 0n,
    u32: 0n,
    u64: 0n,
    f16: 1.5,
    f32: 1.5,
    f64: 0.1,
    flag: true,
    text: 'é',
    large: 'a',
    view: 'short',
    ts_s: 0n,
    ts_ms: 0n,
    ts_us: 0n,
    ts_ns: -9223372036854775807n,
    d32: 0n,
    d64: 0n,
    dec0: 5n,
    dec2: 0.1,
    dec256: 1.5,
    vec: Float32Array.of(1, 2.5),
    vars: Float32Array.of(1, 2, 3),
    largevec: Float32Array.of(1),
    dict: 'green',
    dictn: 1099511627776n,
  },
  {
    i8: 127n,
    i16: 32767n,
    i32: 2147483647n,
    i64: 9223372036854775807n,
    u8: 255n,
    u16: 65535n,
    u32: 4294967295n,
    u64: 9223372036854775807n,
    f16: -0.25,
    f32: Math.fround(-0.1),
    f64: -1.5e300,
    flag: false,
    text: '',
    ts_s: 1714557600_000000000n,
    ts_ms: 1714557600_123000000n,
    ts_us: 1714557600_123456000n,
    ts_ns: 9223372036854775807n,
    d32: 1714521600_000000000n,
    d64: 1714521600_000000000n,
    dec0: -9223372036854775808n,
    dec2: -12345.67,
    dec256: -2.25,
    vec: Float32Array.of(-1, 0),
    dict: 'red',
    dictn: 10n,
  },
  {
    text: 'long text that is over twelve',
    large: '',
    view: 'a view longer than twelve bytes',
    vars: Float32Array.of(-1, 0, 4),
    largevec: Float32Array.of(2),
  },
  {
    i8: 0n,
    i16: 0n,
    i32: 0n,
    i64: 0n,
    u8: 1n,
    u16: 1n,
    u32: 1n,
    u64: 1n,
    f16: 65504,
    f32: Math.fround(3e38),
    f64: 5e-324,
    flag: true,
    large: '東京',
    view: '',
    ts_s: -1000000000n,
    ts_ms: -1000000n,
    ts_us: -1000n,
    ts_ns: -1n,
    d32: -86400_000000000n,
    d64: -86400_000000000n,
    dec0: 0n,
    dec2: 0,
    dec256: 0,
    vec: Float32Array.of(0.5, 0.25),
    vars: Float32Array.of(0.5, 0.25, 1),
    largevec: Float32Array.of(3),
    dict: 'green',
    dictn: 1099511627776n,
  },
];

describe('a stream of pyarrow', () => {
  test.each([1 << 20, 1, 777])('gives the cells of every type that is read, in chunks of %i bytes', async (size) => {
    const { batches, error } = await read(fixture('every-type'), {}, size);
    expect(error).toBeNull();
    expect(messages(batches)).toEqual([]);
    expect(cells(batches)).toEqual(everyType);
    const types = typesOf(batches[0]!);
    expect([types['u64'], types['dec0'], types['dec2'], types['ts_s'], types['d32'], types['vec'], types['dictn']]).toEqual([
      'integer',
      'integer',
      'number',
      'timestamp',
      'timestamp',
      'vector',
      'integer',
    ]);
  });

  test('gives slices of columns, and batches of its batches', async () => {
    const { batches } = await read(fixture('slices'), { batchRows: 2 });
    expect(cells(batches)).toEqual([everyType[1], everyType[2], everyType[3]]);
    expect(batches.map(({ firstIndex, rows }) => [firstIndex, rows.length])).toEqual([
      [0, 2],
      [2, 1],
    ]);
  });

  test('adds to dictionaries and replaces them', async () => {
    expect(cells((await read(fixture('dictionary-deltas'))).batches).map(({ c }) => c)).toEqual(['a', 'b', 'c', 'a']);
    expect(cells((await read(fixture('dictionary-replaced'))).batches).map(({ c }) => c)).toEqual(['a', 'b', 'z', 'x']);
  });

  test.each(['lz4', 'zstd'])('is refused by the name of its compression: %s', async (name) => {
    const { error } = await read(fixture(name));
    expect(error).toMatchObject({ code: 'REL_NOT_IMPLEMENTED', message: expect.stringContaining(name.toUpperCase()) });
  });

  test.each(readdirSync(folder).filter((name) => name.startsWith('unread-')))('is refused by its type: %s', async (name) => {
    const { error } = await read(fixture(name.replace('.arrow', '')));
    expect(error).toMatchObject({ code: 'REL_TYPE_MISMATCH', message: expect.stringMatching(/^column "\w+": .* supported/) });
  });
});

describe('a stream', () => {
  test('of our own writer comes back as it was', async () => {
    const rows = hardRows();
    const bytes = Buffer.concat([...writeArrowPieces(rowsOf(hardColumns, rows), new Map())]);
    const { batches, error } = await read(bytes);
    expect([error, messages(batches)]).toEqual([null, []]);
    const expected = rows.map((row) =>
      Object.fromEntries(hardColumns.map(({ name }, i) => [name, row[i]!] as const).filter(([, cell]) => cell !== null)),
    );
    expect(cells(batches)).toEqual(expected);
    expect(typesOf(batches[0]!)).toMatchObject({ at: 'timestamp', doc: 'json', v: 'vector' });
  });

  test('of apache-arrow is read, dictionaries too', async () => {
    const { batches } = await read(streamOf({ id: ['a', 'b', 'a'], n: Int32Array.of(1, 2, 3), x: Float64Array.of(1, 2.5, -0) }));
    expect(cells(batches)).toEqual([
      { id: 'a', n: 1n, x: 1 },
      { id: 'b', n: 2n, x: 2.5 },
      { id: 'a', n: 3n, x: -0 },
    ]);
  });

  test('is one batch where all rows are written or none', async () => {
    const batch = tableFromArrays({ n: Int32Array.from({ length: 6_000 }, (_, i) => i) });
    const bytes = tableToIPC(batch.concat(batch), 'stream');
    const { batches } = await read(bytes, { batchRows: Infinity, batchBytes: Infinity });
    expect(batches.map(({ rows }) => rows.length)).toEqual([12_000]);
  });

  test('gives others their turns within one message', async () => {
    let turns = 0;
    const bytes = streamOf({ n: Int32Array.from({ length: 20_000 }, (_, i) => i) });
    const yieldTurn = async (): Promise<void> => void turns++;
    await read(bytes, { batchRows: Infinity, batchBytes: Infinity, yieldTurn });
    expect(turns).toBe(4);
  });

  test('refuses a row alone whose cell its column does not take', async () => {
    const bytes = streamOf({ a: ['x', 'y', 'z'], x: Float64Array.of(1, Number.NaN, 3) });
    const { batches } = await read(bytes);
    expect(messages(batches)).toEqual(['1 REL_TYPE_MISMATCH x is not a finite number']);
    expect(cells(batches)).toEqual([
      { a: 'x', x: 1 },
      { a: 'z', x: 3 },
    ]);
    expect([...batches[0]!.indexes!]).toEqual([0, 2]);
  });

  test('has text for JSON where the type says so, and no other', async () => {
    const type = definition({ id: property('string'), doc: property('json'), at: property('timestamp'), n: property('number') });
    const id = vectorFromArray([7n, 8n], new Int64());
    const doc = vectorFromArray(['{"a":[1]}', '{"a":1,"a":2}'], new Utf8());
    const at = vectorFromArray(['2024-05-01', 'x'], new Utf8());
    const { batches } = await read(tableToIPC(new Table({ id, doc, at }), 'stream'), { definition: type });
    expect(cells(batches)).toEqual([{ id: '7', doc: '{"a":[1]}', at: '2024-05-01' }]);
    expect(messages(batches)).toEqual(['1 REL_TYPE_MISMATCH doc the property "a" is given twice']);
  });

  test('is told what its schema says that the type has not', async () => {
    const type = definition({ name: property('string'), v: property('vector', 3) });
    const refused = async (columns: Parameters<typeof streamOf>[0]): Promise<unknown> =>
      (await read(streamOf(columns), { definition: type })).error;
    expect(await refused({ nome: ['x'] })).toMatchObject({
      code: 'REL_UNKNOWN_COLUMN',
      message: expect.stringContaining('name'),
    });
    expect(await refused({ name: Int32Array.of(1) })).toMatchObject({ code: 'REL_TYPE_MISMATCH' });
    expect(await refused({ system_from: Int32Array.of(1) })).toMatchObject({ code: 'REL_INVALID' });
    expect(
      (await read(fixture('every-type'), { definition: definition({ vec: property('vector', 3) }, true) })).error,
    ).toMatchObject({
      message: 'column "vec" has 2 dimensions instead of 3',
    });
  });

  test('tells which cells were sent: all of them', async () => {
    const { batches } = await read(streamOf({ id: ['a'], n: Int32Array.of(1) }), { tracksSent: true });
    expect([...batches[0]!.sent!]).toEqual([
      ['id', Uint8Array.of(1)],
      ['n', Uint8Array.of(1)],
    ]);
  });

  test('that is cut, or goes on behind its end, is told so', async () => {
    const bytes = streamOf({ n: Int32Array.of(1, 2) });
    expect((await read(bytes.slice(0, -20))).error).toMatchObject({
      code: 'REL_PARSE',
      message: expect.stringContaining('ends inside'),
    });
    // Its end may be that of the bytes.
    expect((await read(bytes.slice(0, -8))).error).toBeNull();
    const { batches, error } = await read(Buffer.concat([bytes, bytes]));
    expect(cells(batches)).toHaveLength(2);
    expect(error).toMatchObject({ code: 'REL_PARSE', message: expect.stringContaining('behind the end') });
  });

  test('that a few bytes of a dictionary stand for counts as what it comes to', async () => {
    const type = new Dictionary(new Utf8(), new Int32());
    const dictionary = vectorFromArray(['x'.repeat(1 << 20)], new Utf8());
    const data = makeData({ type, length: 24, nullCount: 0, data: new Int32Array(24), dictionary });
    const schema = new Schema([new Field('c', type, true)]);
    const children = [data];
    const batch = new RecordBatch(schema, makeData({ type: new Struct(schema.fields), length: 24, nullCount: 0, children }));
    const bytes = tableToIPC(new Table([batch]), 'stream');
    expect(bytes.length).toBeLessThan(1.2e6);
    const whole = { batchRows: Infinity, batchBytes: Infinity, limitBytes: 8 << 20 };
    expect((await read(bytes, whole)).error).toMatchObject({ code: 'REL_TOO_LARGE' });
    const { batches } = await read(bytes, { batchRows: 1e6, batchBytes: 8 << 20 });
    expect(Math.max(...batches.map(({ rows }) => rows.length))).toBe(8);
  });

  test('of a file is told to come as a stream', async () => {
    const { error } = await read(tableToIPC(tableFromArrays({ n: Int32Array.of(1) }), 'file'));
    expect(error).toMatchObject({ code: 'REL_PARSE', message: expect.stringContaining('vnd.apache.arrow.stream') });
  });

  test('keeps the largest integers, and refuses what is larger', async () => {
    const bytes = streamOf({ n: BigUint64Array.of(2n ** 63n - 1n, 2n ** 63n) });
    const { batches } = await read(bytes);
    expect(cells(batches)).toEqual([{ n: 2n ** 63n - 1n }]);
    expect(messages(batches)).toEqual(['1 REL_TYPE_MISMATCH n is beyond a 64-bit integer']);
  });

  test('keeps integers as narrow as rows of JSON do', async () => {
    const bytes = tableToIPC(new Table({ n: vectorFromArray([1n, 2n, null], new Int64()) }), 'stream');
    expect((await read(bytes)).batches[0]!.rows.columns[0]!.vector.kind).toBe('i32');
  });
});

test('no byte that is changed makes it read what is not there', () => {
  const bytes = fixture('every-type');
  for (let at = 0; at < bytes.length; at += 3) {
    const changed = Buffer.from(bytes);
    changed[at]! ^= 0xff;
    const reader = new BodyReader({ definition: null, batchRows: 100, batchBytes: 1e6 });
    try {
      reader.push(changed);
      for (const last of [false, true]) while (reader.read(last) !== null || reader.isBusy);
    } catch (error) {
      expect(error).toMatchObject({ code: expect.stringMatching(/^REL_(?!INTERNAL)/) });
    }
  }
});
