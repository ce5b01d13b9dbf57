/** Rows that are read many at a time must come out as the general reader has them, to the byte and the error. */
import { expect, it } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import type { TypeDefinition } from '../../../src/log/entries/entry.ts';
import { ColumnSet } from '../../../src/planner/formats/column-set.ts';
import type { IngestBatch, IngestOptions } from '../../../src/planner/formats/ingest-batch.ts';
import { BodyReader } from '../../../src/planner/formats/ingest-reader.ts';
import { JsonReader } from '../../../src/planner/formats/json-reader.ts';
import { PredictedRows } from '../../../src/planner/formats/predicted-rows.ts';
import { RowTape } from '../../../src/planner/formats/row-tape.ts';
import { Dice } from '../../fuzz/mutate.ts';
import { definition, property } from './ingest-fixtures.ts';

interface Read {
  readonly batches: IngestBatch[];
  readonly error: unknown;
}

/** Chunks are overwritten once they were handed over: nobody may still look at them. */
function readAll(body: Uint8Array, chunkBytes: number, options: Partial<IngestOptions>): Read {
  const reader = new BodyReader({ definition: null, batchRows: 1000, batchBytes: 1e9, ...options });
  const batches: IngestBatch[] = [];
  try {
    for (let at = 0; at < body.length; at += chunkBytes) {
      const chunk = Uint8Array.from(body.subarray(at, at + chunkBytes));
      reader.push(chunk);
      for (let batch = reader.read(false); batch !== null; batch = reader.read(false)) batches.push(batch);
      chunk.fill(0xaa);
    }
    for (let batch = reader.read(true); batch !== null; batch = reader.read(true)) batches.push(batch);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { batches, error: `${error.code} ${error.message}` };
  }
  return { batches, error: null };
}

function expectSame(
  body: string | Uint8Array,
  options: Partial<IngestOptions> = {},
  chunks: readonly number[] = [1 << 20],
): Read {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  let general: Read | null = null;
  for (const chunkBytes of chunks) {
    general = readAll(bytes, chunkBytes, { ...options, predictBytesMin: Number.POSITIVE_INFINITY });
    const predicted = readAll(bytes, chunkBytes, { ...options, predictBytesMin: 0 });
    if (told(predicted) !== told(general)) expect(predicted).toEqual(general);
  }
  return general!;
}

const closed = definition({
  id: property('string'),
  text: property('string'),
  n: property('integer'),
  x: property('number'),
  ok: property('boolean'),
  at: property('timestamp'),
  any: property('json'),
  'k "é"': property('string'),
  vec: property('vector', 2),
});
const types: readonly (TypeDefinition | null)[] = [null, closed, { ...closed, open: true }, definition({}, true)];

const plain: Readonly<Record<string, readonly string[]>> = {
  id: ['"a"', '"row-0000017"', '17', '-3', '999999999999999'],
  text: ['""', '"x"', '"a text of more than sixteen bytes, and some"', '"grüße, 東京 🙂"', '"exactly sixteen."', '"\u007f"'],
  n: ['0', '7', '-1', '2147483647', '2147483648', '-2147483649', '9007199254740991', '9007199254740992', '-9223372036854775808'],
  x: [
    '0.5',
    '1',
    '-0.25',
    '3.141592653589793',
    '0.30000000000000004',
    '1e3',
    '2.5E-7',
    '123456789012345',
    '9007199254740992',
    '-0',
    '0.0',
  ],
  ok: ['true', 'false'],
  at: ['1700000000000000000', '"2024-05-01"', '"2024-02-29T23:59:59.123456789Z"', '-1', '"2024-05-01T00:00:00+02:00"'],
  any: ['null'],
  'k "é"': ['"v"'],
};

const nasty = [
  'null',
  '"esc\\"aped"',
  '"\\u00e9\\ud83d\\ude42"',
  '"\\ud800"',
  '"\t"',
  '-0',
  '007',
  '1.',
  '-',
  '1e999',
  '12345678901234567890',
  '9223372036854775808',
  '9223372036854775807',
  '9007199254740993',
  '0.1234567890123456789012345',
  '1e',
  'tru',
  'nulL',
  'NaN',
  '"not a day"',
  '"2024-13-01"',
  '{"a":[1,{"b":2}]}',
  '[0.5,1]',
  '[[1]]',
  '{"a":1,"a":2}',
  `${'['.repeat(65)}${']'.repeat(65)}`,
  '"unfinished',
  '',
];

const names = Object.keys(plain);

/** Rows that mostly look alike: how a value is spelled, and what is missing, drifts slowly; now and then something breaks. */
function generated(dice: Dice): Buffer {
  const form = dice.roll(3);
  const order = names.filter(() => dice.roll(4) > 0);
  const surprises = [0, 3, 30][dice.roll(3)]!;
  const space = dice.roll(3) === 0 ? ' ' : '';
  const rows: string[] = [];
  const pick = (values: readonly string[]): string => dice.pick(values);
  for (let i = 0, count = 1 + dice.roll(60); i < count; i++) {
    const cells = order.flatMap((name) => {
      if (dice.roll(10) === 0) return [];
      const value = dice.roll(100) < surprises ? pick(nasty) : dice.roll(12) === 0 ? 'null' : pick(plain[name]!);
      return [`${JSON.stringify(name)}:${space}${value}`];
    });
    if (dice.roll(100) < surprises) {
      const strange = [
        '"id":"twice"',
        '"new":1',
        '"_pk":5',
        '"valid_from":"2024-05-01"',
        '"_provenance":{"source":"s"}',
        '"id" : "x"',
        '"\\u0069d":1',
      ];
      cells.splice(dice.roll(cells.length + 1), 0, pick(strange));
    }
    if (dice.roll(100) < surprises) cells.reverse();
    let row = `{${cells.join(`,${space}`)}}`;
    if (dice.roll(200) < surprises)
      row = pick(['', ' ', '[]', '7', `${row} x`, `${row}}`, ` ${row} `, row.slice(0, -1), `\t${row}\r`, '{}']);
    rows.push(row);
  }
  const text =
    form === 0
      ? rows.join(pick(['\n', '\r\n', '\n\n', ' \n']))
      : `${form === 1 ? '[' : '{"rows": ['}${rows.join(pick([',', ', ', ',\n', ' ,\r\n ']))}]${form === 1 ? '' : ',"more":1}'}`;
  const bytes = Buffer.from(text);
  if (dice.roll(8) === 0) bytes[dice.roll(bytes.length)] = dice.roll(256);
  return bytes;
}

it('are the same as one by one, whatever the rows, the type and the batches', () => {
  for (let seed = 1; seed <= 1500; seed++) {
    const dice = new Dice(seed);
    const body = generated(dice);
    const options = {
      definition: types[dice.roll(types.length)]!,
      batchRows: 1 + dice.roll(40),
      batchBytes: 50 + dice.roll(3000),
    };
    expectSame(body, options, [1 + dice.roll(200), body.length]);
  }
});

const orders = (count: number, from = 0): string[] =>
  Array.from(
    { length: count },
    (_, i) =>
      `{"id":"order-${from + i}","n":${(from + i) * 1_000_003},"x":${i / 4 + 0.5},"ok":${i % 3 === 0},"at":"2024-05-01T10:00:00Z","text":"düne ${i} and a longer tail"}`,
  );

it('are the same cut at every byte', () => {
  const body = Buffer.from(`${orders(12).join('\n')}\n`);
  const whole = told(readAll(body, body.length, { predictBytesMin: Number.POSITIVE_INFINITY }));
  for (let cut = 1; cut < body.length; cut++) {
    const reader = new BodyReader({ definition: null, batchRows: 1000, batchBytes: 1e9, predictBytesMin: 0 });
    for (const part of [body.subarray(0, cut), body.subarray(cut)]) {
      reader.push(part);
      expect(reader.read(false)).toBeNull();
    }
    expect(told({ batches: [reader.read(true)!], error: null })).toBe(whole);
  }
});

it('fill more than the scanner holds at once, beyond its bytes and its rows', () => {
  for (const body of [`${orders(3000).join('\n')}\n`, `[${orders(3000).join(',')}]`, `{"rows":[${orders(3000).join(' ,\n')}]}`]) {
    for (const rows of [1000, 1024, 5000]) {
      const { batches, error } = expectSame(body, { definition: types[3]!, batchRows: rows }, [65_536, 7000]);
      expect(error).toBeNull();
      expect(batches.reduce((sum, batch) => sum + batch.rows.length, 0)).toBe(3000);
    }
  }
  const rowOfItsOwn = `{"id":"long","text":"${'x'.repeat(70_000)}"}`;
  expectSame([...orders(30), rowOfItsOwn, ...orders(30), rowOfItsOwn, rowOfItsOwn].join('\n'), {}, [1 << 20, 65_536]);
  const instants = Array.from(
    { length: 1000 },
    (_, i) =>
      `{${Array.from({ length: 9 }, (_, j) => `"_t${j}":1`)
        .join()
        .replaceAll('_', 'c')},"at":"2024-05-0${1 + (i % 9)}"}`,
  );
  expectSame(instants.join('\n'), { definition: closed.open ? closed : { ...closed, open: true } });
});

it('have as many columns and as long names as the scanner takes, and more', () => {
  for (const [columns, size] of [
    [127, 3],
    [128, 3],
    [129, 3],
    [200, 90],
    [128, 126],
    [100, 128],
  ] as const) {
    const row = (i: number): string =>
      `{${Array.from({ length: columns }, (_, j) => `"${`c${j}`.padEnd(size, '_')}":${i + j}`).join()}}`;
    expectSame(Array.from({ length: 40 }, (_, i) => row(i)).join('\n'), {}, [1 << 20, 5000]);
  }
});

it('bring texts of every length, beside the end of the bytes as well', () => {
  const rows = Array.from({ length: 140 }, (_, i) => `{"text":"${'é'.repeat(i % 2)}${'x'.repeat(i)}","n":${i}}`);
  for (let lines = 100; lines < 140; lines++) expectSame(rows.slice(0, lines).join('\n'));
});

it('are the same with every token in every column, in the middle of a run', () => {
  const good: Readonly<Record<string, string>> = { id: '"k"', text: '"t"', n: '5', x: '0.5', ok: 'true', at: '1', any: 'null' };
  const odd = [
    '18446744073709551617',
    '-18446744073709551615',
    '1.5',
    '.5',
    '-.5',
    '+1',
    '1e',
    '1e+',
    '1e-',
    '1.e1',
    '00',
    '-00',
    '00.5',
    '1.0e5',
    '1E400',
  ];
  const words = [
    'falsy',
    'false1',
    'trues',
    'nul',
    'nill',
    '"x" ',
    ' "x"',
    ' 1 ',
    '1 ',
    '99999999999999999999',
    '9007199254740993.0',
    '4503599627370497.5',
  ];
  const controls = Array.from({ length: 33 }, (_, i) => `"a${String.fromCharCode(i)}b"`);
  const highs = ['"ü"', '"an ü behind sixteen"', '"2024-05-0é"', '"2024-05-01\\u0041"'];
  const tokens = [...new Set([...Object.values(plain).flat(), ...nasty, ...odd, ...words, ...controls, ...highs])];
  const names = Object.keys(good);
  const row = (name: string, token: string): string =>
    `{${names.map((each) => `"${each}":${each === name ? token : good[each]}`).join()}}`;
  for (const definition of [closed, null]) {
    for (const name of names) {
      const around = Array.from({ length: 9 }, () => row('', ''));
      for (const token of tokens) expectSame([...around, row(name, token), ...around].join('\n'), { definition });
    }
  }
});

it('are refused where their text is not UTF-8, among rows of which some are not ASCII', () => {
  const body = Buffer.from(orders(60).join('\n'));
  for (const byte of [0x80, 0xc3, 0xff]) {
    const broken = Buffer.from(body);
    broken[body.indexOf(' 40 and')] = byte;
    expect(expectSame(broken).batches[0]!.rejections).toMatchObject([{ index: 40, code: 'REL_INVALID' }]);
    // A text of a few bytes, and the last ones of a longer text, where nothing else is beyond ASCII.
    const ascii = Buffer.from(orders(60).join('\n').replaceAll('ü', 'u'));
    for (const place of ['order-30', 'tail"}\n{"id":"order-31']) {
      const other = Buffer.from(ascii);
      other[ascii.indexOf(place) + 2] = byte;
      expect(expectSame(other).batches[0]!.rejections).toMatchObject([{ index: 30, code: 'REL_INVALID' }]);
    }
  }
});

it('bring escapes as one by one: known ones, unknown ones, and every kind of unit', () => {
  const escapes = Array.from({ length: 128 }, (_, i) => `\\${String.fromCharCode(i)}`);
  for (const unit of ['0000', '0041', '007f', '0080', '07fF', '0800', 'D7ff', 'd800', 'dc00', 'dfff', 'E000', 'ffff']) {
    escapes.push(`\\u${unit}`);
    for (let place = 0; place < 4; place++) {
      for (const letter of '/:@G`g') escapes.push(`\\u${unit.slice(0, place)}${letter}${unit.slice(place + 1)}`);
    }
  }
  escapes.push(
    '\\ud83d\\ude42',
    '\\u00',
    '\\',
    '\\n\\n\\\\\\"',
    `${'x'.repeat(15)}\\n${'y'.repeat(16)}\\t${'é'.repeat(9)}\\u00e9`,
  );
  const row = (text: string): string => `{"id":"k","text":"a${text} b","n":1}`;
  const around = Array.from({ length: 9 }, (_, i) => row(String(i)));
  for (const escape of escapes) expectSame([...around, row(escape), ...around].join('\n'));
});

it('bring instants as one by one: every day of four years and of the turns of centuries, every precision, and what is none', () => {
  const dice = new Dice(6);
  const days: string[] = [];
  for (const year of [1699, 1700, 1899, 1900, 1969, 1970, 2000, 2023, 2024, 2100, 2200, 2201]) {
    for (let month = 1; month <= 12; month++) {
      for (const day of [1, 2, 27, 28, 29, 30, 31]) {
        const time = new Date(Date.UTC(year, month - 1, day));
        // Days that a month does not have are refused; here are those that it has.
        if (time.getUTCMonth() === month - 1) days.push(time.toISOString().slice(0, 10));
      }
    }
  }
  const two = (below: number): string => String(dice.roll(below)).padStart(2, '0');
  const texts = days.map((day, i) => {
    const digits = Array.from({ length: i % 10 }, () => dice.roll(10)).join('');
    return i % 7 === 0 ? day : `${day}T${two(24)}:${two(60)}:${two(60)}${digits === '' ? '' : `.${digits}`}Z`;
  });
  const options = { definition: closed, batchRows: 1e6 };
  const rows = (list: readonly string[]): string => list.map((at) => `{"at":"${at}"}`).join('\n');
  expect(expectSame(rows(texts), options).batches[0]!.rejections).toEqual([]);
  const broken = texts.slice(0, 400).map((text, i) => {
    const place = dice.roll(text.length);
    const letter = dice.pick('0129:-TZ. x/'.split(''));
    return i % 3 === 0 ? text.slice(0, place) + text.slice(place + 1) : text.slice(0, place) + letter + text.slice(place + 1);
  });
  // Each among good ones, so that it is met in the middle of a run.
  for (const text of broken) expectSame(rows([...texts.slice(0, 12), text, ...texts.slice(12, 20)]), options);
});

it('bring numbers exactly as Number reads them', () => {
  const dice = new Dice(5);
  const digits = (count: number): string => Array.from({ length: count }, () => dice.roll(10)).join('');
  const rows = Array.from({ length: 20_000 }, () => {
    const whole = String(Number(digits(1 + dice.roll(9))));
    const exponent = dice.roll(4) === 0 ? `e${['', '-', '+'][dice.roll(3)]}${dice.roll(40)}` : '';
    return `${dice.roll(2) === 0 ? '-' : ''}${whole}.${digits(1 + dice.roll(14))}${exponent}`;
  });
  const { batches } = readAll(Buffer.from(rows.map((x) => `{"x":${x}}`).join('\n')), 65_536, {
    predictBytesMin: 0,
    batchRows: 1e6,
  });
  const { vector } = batches[0]!.rows.columns[0]!;
  if (vector.kind !== 'f64') throw new Error(`${vector.kind} for numbers`);
  expect([...vector.values].every((value, i) => Object.is(value, Number(rows[i])))).toBe(true);
});

it('keep a batch apart from the next, which the scanner writes over', () => {
  const first = readAll(Buffer.from(orders(5000).join('\n')), 65_536, { predictBytesMin: 0, batchRows: 100 });
  const before = told(first);
  readAll(Buffer.from(orders(5000, 77_777).join('\n')), 65_536, { predictBytesMin: 0, batchRows: 100 });
  expect(told(first)).toBe(before);
});

it('are taken at once: all of a shape, up to one that is another', () => {
  const tape = new RowTape();
  const columns = new ColumnSet(null, tape, false);
  const json = new JsonReader(columns, tape);
  const predicted = new PredictedRows(columns, 0);
  const rows = orders(500);
  rows[400] = rows[400]!.replace('"ok":', '"okay":');
  const window = Buffer.from(`${rows.join('\n')}\n`);
  json.open(window, 0, window.length, true);
  const limits = { byLine: true, rows: 1000, bytes: 1e9 };
  expect(predicted.read(window, 0, window.length, true, limits)).toBeNull();
  expect(json.readRow(0)).toBe('row');
  columns.commit();
  predicted.learn(tape);
  const end = predicted.read(window, json.position + 1, window.length, true, limits);
  expect(end).toMatchObject({ rows: 399, surprised: true });
  expect(window.subarray(end!.at).toString()).toBe(
    rows
      .slice(400)
      .map((row) => `${row}\n`)
      .join(''),
  );
  expect(columns.rows).toBe(400);
});

it('of two bodies at once do not mix', () => {
  const bodies = [orders(800, 10_000), orders(800, 50_000)].map((rows) => Buffer.from(rows.join('\n')));
  const options = { batchRows: 50, batchBytes: 1e9 };
  const open = (): BodyReader => new BodyReader({ ...options, definition: null, predictBytesMin: 0 });
  const readers = bodies.map((body) => ({ body, reader: open(), batches: [] as IngestBatch[] }));
  for (let at = 0; at < bodies[1]!.length; at += 30_000) {
    for (const { body, reader } of readers) reader.push(body.subarray(at, at + 30_000));
    // A batch of one, then a batch of the other: each finds what the other has left.
    for (let more = true; more; ) {
      more = false;
      for (const { reader, batches } of readers) {
        const batch = reader.read(false);
        if (batch === null) continue;
        batches.push(batch);
        more = true;
      }
    }
  }
  for (const { body, reader, batches } of readers) {
    for (let batch = reader.read(true); batch !== null; batch = reader.read(true)) batches.push(batch);
    const alone = readAll(body, 30_000, { ...options, predictBytesMin: Number.POSITIVE_INFINITY });
    expect(told({ batches, error: null })).toBe(told(alone));
  }
});

/** All of it, to the last byte. */
function told({ batches, error }: Read): string {
  const columns = (batch: IngestBatch): unknown[] =>
    batch.rows.columns.map(({ name, type, vector }) => [
      name,
      type,
      ...Object.values(vector).map((part: unknown) =>
        ArrayBuffer.isView(part) ? Buffer.from(part.buffer, part.byteOffset, part.byteLength).toString('latin1') : part,
      ),
    ]);
  return JSON.stringify([
    error,
    batches.map((batch) => [{ ...batch, rows: batch.rows.length, indexes: batch.indexes && [...batch.indexes] }, columns(batch)]),
  ]);
}
