import { describe, expect, it } from 'vitest';
import type { Dictionary, Vector } from '../../../src/log/values/columns.ts';
import type { Cell, ColumnType } from '../../../src/log/values/value.ts';
import { VectorBuilder } from '../../../src/log/values/vector-builder.ts';
import { ByteWriter } from '../../../src/planner/formats/byte-writer.ts';
import { moreRows, RowsText, writeNdjson, writeRowChunks } from '../../../src/planner/formats/json-rows.ts';
import type { OutputBatch } from '../../../src/planner/planner-contract.ts';
import { rowsText } from './ingest-fixtures.ts';

function column(type: ColumnType, cells: readonly Cell[]): Vector {
  const builder = new VectorBuilder(type);
  for (const cell of cells) builder.append(cell);
  return builder.build();
}

function one(type: ColumnType, vector: Vector, count: number, selection: Int32Array | null = null): string {
  return rowsText({ columns: [{ name: 'v', type }], batches: [{ columns: [vector], selection, first: 0, count }] });
}

function textOf(type: ColumnType, cell: Cell): string {
  return one(type, column(type, [cell]), 1).slice(6, -2);
}

describe('cells as JSON', () => {
  const integers = [
    0n,
    1n,
    -1n,
    9n,
    10n,
    999_999_999n,
    1_000_000_000n,
    2_147_483_647n,
    -2_147_483_648n,
    2_147_483_648n,
    4_294_967_296n,
    9_007_199_254_740_991n,
    -9_007_199_254_740_991n,
    9_007_199_254_740_992n,
    9_007_199_254_740_993n,
    1_000_000_000_000_000_000n,
    1_709_210_096_123_456_789n,
    9_223_372_036_854_775_807n,
    -9_223_372_036_854_775_808n,
    -9_223_372_036_854_775_807n,
  ];
  for (const value of integers) {
    it(`the integer and the instant ${value}`, () => {
      expect(textOf('integer', value)).toBe(String(value));
      expect(textOf('timestamp', value)).toBe(String(value));
    });
  }

  it('decimals are as short as they can be', () => {
    for (let i = 0; i < 3000; i++) {
      for (const value of [i / 100, -i / 100, i / 10, (i * 7919) / 1000, i * 1.1, 1e13 + i / 100, 1e14 + i / 100]) {
        expect(textOf('number', value)).toBe(Object.is(value, -0) ? '-0' : String(value));
      }
    }
  });

  it('every power of two and its neighbours', () => {
    for (let bit = 0n; bit < 63n; bit++) {
      for (const value of [(1n << bit) - 1n, 1n << bit, (1n << bit) + 1n, -(1n << bit)]) {
        expect(textOf('timestamp', value)).toBe(String(value));
      }
    }
  });

  const numbers = [
    0,
    -0,
    1,
    -1,
    0.1,
    -2.5,
    1e15,
    1e21,
    1e-7,
    5e-324,
    Number.MAX_VALUE,
    123456789.12345679,
    999999999999999,
    2 ** 53,
  ];
  for (const value of numbers) {
    it(`the number ${Object.is(value, -0) ? '-0' : value}`, () => {
      expect(JSON.parse(textOf('number', value))).toBe(value);
    });
  }

  it('a number of digits that are not its own is no integer to a reader', () => {
    for (const value of [18_212_517_589_954_392, 2 ** 53 + 2, -(2 ** 60), 1e20]) {
      const text = textOf('number', value);
      expect([Number(text), /[.e]/.test(text)]).toEqual([value, true]);
    }
    expect(textOf('number', 2 ** 53 - 1)).toBe('9007199254740991');
  });

  it('numbers that JSON has no word for are null', () => {
    const vector: Vector = { kind: 'f64', values: Float64Array.of(Number.NaN, Infinity, -Infinity), nulls: null };
    expect(one('number', vector, 3)).toBe('[{"v":null},{"v":null},{"v":null}]');
  });

  for (const text of ['', 'plain', '\ufeffmark', '"\\\b\f\n\r\t\u0000\u001f', 'é€😀', '\u2028', 'x'.repeat(5000), '</script>']) {
    it(`the text ${JSON.stringify(text.slice(0, 20))}`, () => {
      expect(JSON.parse(textOf('string', text))).toBe(text);
    });
  }

  it('booleans, nulls, JSON as given, vectors in their shortest form', () => {
    expect(one('boolean', column('boolean', [true, null, false]), 3)).toBe('[{"v":true},{"v":null},{"v":false}]');
    expect(one('string', { kind: 'null' }, 2)).toBe('[{"v":null},{"v":null}]');
    expect(textOf('json', '{ "a":\n1.0 }')).toBe('{ "a":\n1.0 }');
    expect(textOf('vector', Float32Array.of(0.1, -2, 3.4028234663852886e38, 16777217.0))).toBe('[0.1,-2,3.4028235e+38,16777216]');
  });

  it('dictionary codes, each as its text', () => {
    const texts = ['a', 'quo"te', 'é', ...Array.from({ length: 5000 }, (_, i) => `t${i}`)];
    const dictionary: Dictionary = { size: texts.length, text: (code) => texts[code]!, codeOf: (text) => texts.indexOf(text) };
    const values = Int32Array.from([2, 0, 1, 2, 5002, 5002, 1, 0]);
    const nulls = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 1);
    const rows = JSON.parse(one('string', { kind: 'dict', values, dictionary, nulls }, 8)) as { v: string | null }[];
    expect(rows.map(({ v }) => v)).toEqual(['é', 'a', 'quo"te', 'é', 't4999', 't4999', 'quo"te', null]);
    const json: Dictionary = { size: 1, text: () => '[1,\n2]', codeOf: () => 0 };
    expect(one('json', { kind: 'dict', values: Int32Array.of(0), dictionary: json, nulls: null }, 1)).toBe('[{"v":[1,\n2]}]');
  });
});

describe('rows', () => {
  const answer = {
    columns: [
      { name: 'quo"te', type: 'string' as const },
      { name: 'n', type: 'integer' as const },
    ],
    batches: [
      {
        columns: [column('string', ['a', 'b', 'c']), column('integer', [1n, null, 3n])],
        selection: Int32Array.of(0, 2),
        first: 0,
        count: 2,
      },
      { columns: [column('string', ['d', 'e', 'f']), column('integer', [4n, 5n, 6n])], selection: null, first: 1, count: 2 },
    ],
  };

  it('are what JSON.stringify makes of them, columns without a value and names of any letters between them', () => {
    const until = 9_223_372_036_854_775_807n;
    const names = ['first', 'empty', 'naïve “name” \\', 'at', 'again', 'until', 'void', '日本', 'last one of all'];
    const types: readonly ColumnType[] = [
      ...(['string', 'string', 'integer', 'timestamp', 'timestamp', 'timestamp'] as const),
      ...(['json', 'string', 'boolean'] as const),
    ];
    for (const count of [1, 2, 15, 16, 40]) {
      const at = (i: number): bigint => 1_795_280_881_297_787_871n + BigInt(i >> 1);
      const rows = Array.from({ length: count }, (_, i): readonly Cell[] => [
        `key ${i}`,
        null,
        BigInt(i),
        at(i),
        at(i),
        i % 7 === 3 ? at(i) : until,
        null,
        i % 5 === 0 ? null : `é${i}`,
        i % 2 === 0,
      ]);
      const columns = names.map((name, i) => ({ name, type: types[i]! }));
      const vectors = columns.map(
        ({ type }, i): Vector =>
          i === 1 || i === 6
            ? { kind: 'null' }
            : column(
                type,
                rows.map((row) => row[i]!),
              ),
      );
      const json = (cell: Cell): string => (typeof cell === 'bigint' ? String(cell) : JSON.stringify(cell));
      const expected = rows.map((row) => `{${row.map((cell, i) => `${JSON.stringify(names[i])}:${json(cell)}`).join()}}`);
      const batches = [{ columns: vectors, selection: null, first: 0, count }];
      expect(rowsText({ columns, batches })).toBe(`[${expected.join()}]`);
      expect(writeNdjson({ columns, batches }).toString()).toBe(expected.map((line) => `${line}\n`).join(''));
    }
  });

  it('follow selections and offsets, in order', () => {
    expect(JSON.parse(rowsText(answer))).toEqual([
      { 'quo"te': 'a', n: 1 },
      { 'quo"te': 'c', n: 3 },
      { 'quo"te': 'e', n: 5 },
      { 'quo"te': 'f', n: 6 },
    ]);
    expect(rowsText({ columns: [], batches: [] })).toBe('[]');
    expect(rowsText({ columns: [], batches: [{ columns: [], selection: null, first: 0, count: 2 }] })).toBe('[{},{}]');
  });

  it('in pieces are the same bytes', () => {
    const pieces = [...writeRowChunks(answer, 'array', 10)];
    expect(pieces.length).toBeGreaterThan(3);
    expect(Buffer.concat(pieces).toString()).toBe(rowsText(answer));
  });

  it('as NDJSON keep one line each, whatever JSON columns hold', () => {
    const lines = writeNdjson({
      columns: [{ name: 'j', type: 'json' }],
      batches: [{ columns: [column('json', ['[1,\r\n2]', '"x\\n"'])], selection: null, first: 0, count: 2 }],
    }).toString();
    expect(
      lines
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual([{ j: [1, 2] }, { j: 'x\n' }]);
  });
});

describe('texts', () => {
  it('are escaped wherever in them the character stands', () => {
    for (const special of ['"', '\\', '\n', '\u0001', '\u001f', '\u007f', ' ', '!', '#', '[', ']', 'ä', '\u2028']) {
      for (let before = 0; before < 9; before++) {
        for (let after = 0; after < 6; after++) {
          const text = `${'a'.repeat(before)}${special}${'~'.repeat(after)}`;
          expect(textOf('string', text)).toBe(JSON.stringify(text));
        }
      }
    }
  });
});

describe('instants that follow each other', () => {
  it.each([1_700_000_000_000_000_005n, -7n, -1_700_000_000_000_000_005n, 4_294_967_290n, 9_223_372_036_854_775_800n])(
    'from %s',
    (from) => {
      const cells = Array.from({ length: 8 }, (_, i) => from + BigInt(i));
      const text = one('timestamp', column('timestamp', cells), cells.length);
      expect(text).toBe(`[${cells.map((cell) => `{"v":${cell}}`).join()}]`);
    },
  );

  it('with others between them', () => {
    const cells = [
      1_700_000_000_000_000_001n,
      1_700_000_000_000_000_002n,
      1_700_000_000_000_000_002n,
      3n,
      1_700_000_000_000_000_003n,
    ];
    const text = one('timestamp', column('timestamp', cells), cells.length);
    expect(text).toBe(`[${cells.map((cell) => `{"v":${cell}}`).join()}]`);
  });
});

describe('an answer in one piece', () => {
  it('is none where it would be too long, however few its rows are', () => {
    const texts = ['a'.repeat(900), 'ä'.repeat(900), 'c'];
    const rows = {
      columns: [{ name: 'v', type: 'string' as const }],
      batches: [{ columns: [column('string', texts)], selection: null, first: 0, count: texts.length }],
    };
    const taken = (bytesMax: number, rowsMax = 10): boolean =>
      new RowsText(new ByteWriter(64), { rowsMax, bytesMax }).take(rows.columns, rows.batches[0]!);
    // The closing bracket is not of the rows.
    const bytes = Buffer.byteLength(rowsText(rows)) - 1;
    expect(taken(bytes)).toBe(true);
    expect(taken(bytes - 1)).toBe(false);
    expect(taken(2_000)).toBe(false);
    expect(taken(bytes, 3)).toBe(true);
    expect(taken(bytes, 2)).toBe(false);
    expect(Buffer.concat([...writeRowChunks(rows)]).toString()).toBe(rowsText(rows));
  });

  it('goes on in pieces where the next rows are too many', () => {
    const batchOf = (texts: string[]): OutputBatch => ({
      columns: [column('string', texts)],
      selection: null,
      first: 0,
      count: texts.length,
    });
    const columns = [{ name: 'v', type: 'string' as const }];
    const batches = [batchOf(['a', 'b']), batchOf(['c', 'd', 'e']), batchOf(['f'])];
    const row = ',{"v":"a"}'.length;
    for (const [taken, rowsMax, bytesMax] of [
      [0, 1, 1_000],
      [1, 4, 1_000],
      [3, 6, 1_000],
      [0, 10, row],
      [1, 10, 4 * row],
      [3, 10, 6 * row],
    ] as const) {
      const writer = new ByteWriter(64);
      writer.string('ä:');
      const text = new RowsText(writer, { rowsMax, bytesMax });
      const kept = batches.map((batch) => text.take(columns, batch));
      // What is refused ends the taking: a later batch that would fit comes behind it.
      expect(kept).toEqual([taken > 0, taken > 1, taken > 2]);
      expect(text.bytes).toBe([0, 2, 5, 6][taken]! * row);
      text.leaveOpen();
      const rest = Buffer.concat([...moreRows({ columns, batches: batches.slice(taken) }, { after: text.rows })]);
      expect(`${writer.take().toString()}${rest.toString()}`).toBe(`ä:${rowsText({ columns, batches })}`);
    }
  });
});
