/** What is accepted can be read back exactly; what can't be stored exactly is refused, with its row and why. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StoreWorld } from './store-world.ts';

let world: StoreWorld;
beforeAll(async () => {
  world = await StoreWorld.open();
});
afterAll(() => world.close());

let types = 0;
const freshType = (): string => `V${++types}`;

const ingest = (type: string, body: string | Uint8Array, path = '/ingest/auto') =>
  world.call('POST', `${path}?object_type=${type}`, body);

/** The text of column `x` of the one row of a type. */
async function written(type: string): Promise<string | undefined> {
  const { text } = await world.query(`SELECT x FROM ${type}`);
  return /^\{"rows":\[\{"x":(.*)\}\],"row_count":1,/s.exec(text)?.[1];
}

describe('integers', () => {
  const extremes = [
    '9223372036854775807',
    '-9223372036854775808',
    '9007199254740993',
    '9007199254740991',
    '-9007199254740993',
    '2147483648',
    '-2147483649',
    '0',
  ];

  test.each(extremes)('%s comes back digit by digit from every body form', async (digits) => {
    const bodies = [`{"x":${digits}}`, `[{"x":${digits}}]`, `{"rows":[{"x":${digits}}]}`, `x\n${digits}\n`];
    for (const body of bodies) {
      const type = freshType();
      expect((await ingest(type, body)).json).toMatchObject({ accepted: 1, rejected: 0 });
      expect([body, await written(type)]).toEqual([body, digits]);
    }
  });

  test('all of them in one column, filtered exactly', async () => {
    const type = freshType();
    await ingest(type, extremes.map((digits) => `{"x":${digits}}`).join('\n'));
    for (const digits of extremes) {
      const { text } = await world.query(`SELECT x FROM ${type} WHERE x = ${digits}`);
      expect(text).toContain(`"rows":[{"x":${digits}}]`);
    }
  });

  test.each(['9223372036854775808', '-9223372036854775809', '1e400', '123456789012345678901234567890'])(
    '%s is refused in a declared integer column',
    async (digits) => {
      const type = freshType();
      await world.call('POST', '/types', { name: type, properties: { x: 'integer' } });
      const reply = await ingest(type, `{"x":${digits}}\n{"x":1}\n`, '/ingest');
      expect(reply.json).toMatchObject({ accepted: 1, rejected: 1, errors: [{ index: 0 }] });
      expect(await written(type)).toBe('1');
    },
  );

  test('the end of time is written as it is', async () => {
    const type = freshType();
    await ingest(type, '{"id":"a","x":1,"valid_from":-9223372036854775808,"valid_to":9223372036854775807}');
    const { text } = await world.query(`SELECT valid_from, valid_to, system_to FROM ${type}`);
    expect(text).toContain('{"valid_from":-9223372036854775808,"valid_to":9223372036854775807,"system_to":9223372036854775807}');
  });
});

describe('text', () => {
  test.each([
    ['escapes', '"\\"\\\\\\/\\b\\f\\n\\r\\t"', '"\\/\b\f\n\r\t'],
    ['NUL and other controls', '"\\u0000\\u001f"', '\u0000\u001f'],
    ['a pair of surrogates', '"\\ud83d\\ude42"', '🙂'],
    ['the last codepoint', '"\\udbff\\udfff"', '\u{10ffff}'],
    ['not normalised', '"e\\u0301"', 'e\u0301'],
    ['a thing like a prototype', '"__proto__"', '__proto__'],
    ['nothing', '""', ''],
  ])('%s comes back as it was', async (_name, json, text) => {
    const type = freshType();
    await ingest(type, `{"x":${json}}`);
    expect(await world.rows(`SELECT x FROM ${type}`)).toEqual([{ x: text }]);
  });

  test.each([
    ['a lone high surrogate', '{"x":"\\ud800"}'],
    ['a lone low surrogate', '{"x":"\\udc00"}'],
    ['surrogates the wrong way round', '{"x":"\\udc00\\ud800"}'],
    ['bytes that are not UTF-8', Buffer.concat([Buffer.from('{"x":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')])],
    ['an encoded surrogate', Buffer.concat([Buffer.from('{"x":"'), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from('"}')])],
    ['an overlong form', Buffer.concat([Buffer.from('{"x":"'), Buffer.from([0xc0, 0xaf]), Buffer.from('"}')])],
  ])('%s is refused, and its neighbour is not', async (_name, row) => {
    const type = freshType();
    const body = Buffer.concat([Buffer.from('{"x":"before"}\n'), Buffer.from(row), Buffer.from('\n')]);
    const reply = await ingest(type, body);
    expect(reply.json).toMatchObject({ accepted: 1, rejected: 1, errors: [{ index: 1, code: 'REL_INVALID' }] });
    expect(await world.rows(`SELECT x FROM ${type}`)).toEqual([{ x: 'before' }]);
  });
});

describe('numbers', () => {
  test.each(['0.1', '-0.5', '5e-324', '1.7976931348623157e308', '1e21', '123456789.125'])(
    '%s is the same double',
    async (digits) => {
      const type = freshType();
      await ingest(type, `{"x":${digits}}`);
      expect(Number(await written(type))).toBe(Number(digits));
    },
  );

  test.each(['NaN', 'Infinity', '-Infinity', '+1', '01', '.5', '1.', '0x10', '1_000'])(
    '%s is not JSON, so the row is refused',
    async (word) => {
      const type = freshType();
      const reply = await ingest(type, `{"x":0.5}\n{"x":${word}}\n`);
      expect(reply.json).toMatchObject({ accepted: 1, rejected: 1, errors: [{ index: 1, code: 'REL_PARSE' }] });
    },
  );
});

describe('names and nesting', () => {
  test('__proto__ and constructor are names like any other, or refused: never a prototype', async () => {
    const type = freshType();
    const reply = await ingest(type, '{"id":"a","constructor":"c","toString":"t","hasOwnProperty":"h"}');
    expect(reply.json).toMatchObject({ accepted: 1 });
    const [row] = await world.rows(`SELECT constructor, toString, hasOwnProperty FROM ${type}`);
    expect(Object.entries(row!)).toEqual([
      ['constructor', 'c'],
      ['toString', 't'],
      ['hasOwnProperty', 'h'],
    ]);
    const poisoned = await ingest(freshType(), '{"id":"a","__proto__":{"admin":true}}');
    expect(poisoned.json).toMatchObject({ accepted: 0, rejected: 1 });
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });

  test('a name given twice in a row is refused', async () => {
    const reply = await ingest(freshType(), '{"x":1,"x":2}');
    expect(reply.json).toMatchObject({ accepted: 0, rejected: 1 });
  });

  test('64 levels are kept as given, 65 are refused', async () => {
    const nested = (levels: number): string => `${'['.repeat(levels)}1${']'.repeat(levels)}`;
    const type = freshType();
    // The row itself is the first level.
    expect((await ingest(type, `{"x":${nested(63)}}`)).json).toMatchObject({ accepted: 1 });
    expect(await written(type)).toBe(nested(63));
    expect((await ingest(freshType(), `{"x":${nested(64)}}`)).json).toMatchObject({ accepted: 0, rejected: 1 });
    expect((await ingest(freshType(), `{"x":${'['.repeat(100_000)}`)).status).toBeLessThan(500);
  });

  test('JSON columns come back as they were given', async () => {
    const type = freshType();
    const json = '{"b":[1,2.50,{"c":null}],"a":"\\u00e9 9007199254740993"}';
    await ingest(type, `{"x":${json}}`);
    expect(await written(type)).toBe(json);
  });
});

describe('a column of an open type whose scalars are of different kinds', () => {
  test('is text, and the reply says so', async () => {
    const type = freshType();
    const reply = await ingest(
      type,
      '{"id":"a","x":1776}\n{"id":"b","x":"The Land Girls"}\n{"id":"c","x":2.5}\n{"id":"d","x":true}',
    );
    expect(reply.json).toMatchObject({ accepted: 4, notices: ['x: text, numbers or booleans in one column, stored as text'] });
    const titles = async (where: string): Promise<unknown> =>
      ((await world.query(`SELECT id FROM ${type} WHERE ${where}`)).json['rows'] as { id: string }[]).map(({ id }) => id);
    expect(await titles("x = 'The Land Girls'")).toEqual(['b']);
    expect(await titles("x LIKE 'The %'")).toEqual(['b']);
    expect(await titles("x = '1776' OR x = 'true'")).toEqual(['a', 'd']);
  });

  test('is text from its later batches on, in all rows; a branch from before reads what it had', async () => {
    const type = freshType();
    const numbers = Array.from({ length: 5_000 }, (_, i) => `{"id":"${i}","x":${i}}`).join('\n');
    await ingest(type, '{"id":"0","y":1}');
    const before = `before_${type}`;
    expect((await world.query(`BRANCH ${before} FROM main`)).status).toBe(200);
    const reply = await ingest(type, `${numbers}\n{"id":"a","x":"text"}`);
    expect(reply.json).toMatchObject({ accepted: 5_001, rejected: 0 });
    const count = async (where: string): Promise<unknown> =>
      (await world.query(`SELECT COUNT(*) AS n FROM ${type} AS OF CURRENT WHERE ${where}`)).json['rows'];
    expect(await count("x = '4711'")).toEqual([{ n: 1 }]);
    expect(await count("x = 'text'")).toEqual([{ n: 1 }]);
    expect(await count("x LIKE '1%'")).toEqual([{ n: 1_111 }]);
    const { json } = await world.call('POST', '/query', { sql: `SELECT id, y FROM ${type}`, branch: before });
    expect(json['rows']).toEqual([{ id: '0', y: 1 }]);
  });
});
