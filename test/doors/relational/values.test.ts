/** Values on the wire: a parameter is of the type that it states, or of what it stands beside, wherever it stands. */
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StoreWorld } from '../http/store-world.ts';
import { cellsOf, framed } from './frames.ts';
import { execute, describe as describeMessage, RawClient, sync } from './raw-client.ts';
import { connected, relationalSecret, stateOf } from './relational-client.ts';

let world: StoreWorld;
let client: pg.Client;
let raw: RawClient;

const oids = { bool: 16, int8: 20, int2: 21, int4: 23, text: 25, float8: 701, date: 1082, timestamp: 1114, timestamptz: 1184 };

beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: relationalSecret });
  client = await connected(world);
  raw = await RawClient.ready(world.others.find(({ name }) => name === 'relational')!.port, relationalSecret);
  await client.query('CREATE TABLE V (id int PRIMARY KEY, n int, x float8, s text, ts timestamptz, j json)');
  await client.query("INSERT INTO V VALUES (1, 10, 1.5, 'a', '2024-05-01 10:00:00+00', '{}')");
});

afterAll(async () => {
  raw.close();
  await client.end();
  await world.close();
});

const int16 = (value: number): Buffer => Buffer.from([value >> 8, value & 255]);
const int32 = (value: number): Buffer => Buffer.from([value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255]);

/** What a statement with parameters of stated types answers: type of its first column, and the cell of its first row. */
async function asked(sql: string, types: readonly number[], values: readonly (string | null)[]): Promise<unknown> {
  const parse = framed('P', Buffer.concat([Buffer.from(`\0${sql}\0`), int16(types.length), ...types.map(int32)]));
  const cells = values.map((value) =>
    value === null ? int32(-1) : Buffer.concat([int32(Buffer.byteLength(value)), Buffer.from(value)]),
  );
  const bind = framed('B', Buffer.concat([Buffer.from('\0\0'), int16(0), int16(values.length), ...cells, int16(0)]));
  const replies = await raw.ask(parse, bind, describeMessage('P'), execute(), sync);
  const error = replies.find(({ type }) => type === 'E');
  if (error) return /\0C([0-9A-Z]{5})\0/.exec(error.body.toString('latin1'))![1];
  const fields = replies.find(({ type }) => type === 'T')!.body;
  const end = fields.indexOf(0, 2);
  const row = replies.find(({ type }) => type === 'D');
  return [fields.readInt32BE(end + 7), row === undefined ? undefined : (cellsOf(row.body)[0]?.toString() ?? null)];
}

const noon = '2024-05-01 12:00:00+00';

describe('a stated type is the type of the parameter everywhere', () => {
  test.each<[string, number, string | null, number, string | null]>([
    ['SELECT $1', oids.timestamptz, '2024-05-01 14:00:00+02', oids.timestamptz, noon],
    ['SELECT $1', oids.timestamptz, null, oids.timestamptz, null],
    ['SELECT $1', oids.int4, '7', oids.int8, '7'],
    ['SELECT $1', oids.int4, null, oids.int8, null],
    ['SELECT $1', oids.bool, null, oids.bool, null],
    ['SELECT $1', oids.float8, '1.5', oids.float8, '1.5'],
    ['SELECT $1', 114, '{"a":1}', 3802, '{"a":1}'],
    ['SELECT COALESCE(ts, $1) FROM V', oids.timestamptz, noon, oids.timestamptz, '2024-05-01 10:00:00+00'],
    ['SELECT COALESCE($1, ts) FROM V', oids.timestamptz, noon, oids.timestamptz, noon],
    ['SELECT CASE WHEN n = 1 THEN ts ELSE $1 END FROM V', oids.timestamptz, noon, oids.timestamptz, noon],
    ['SELECT GREATEST(ts, $1) FROM V', oids.timestamptz, noon, oids.timestamptz, noon],
    ['SELECT LEAST($1, ts) FROM V', oids.timestamptz, noon, oids.timestamptz, '2024-05-01 10:00:00+00'],
    ['SELECT ts FROM V WHERE n = 0 UNION SELECT $1', oids.timestamptz, noon, oids.timestamptz, noon],
    ['SELECT $1 UNION SELECT ts FROM V WHERE n = 0', oids.timestamptz, noon, oids.timestamptz, noon],
    ['VALUES ($1)', oids.timestamptz, noon, oids.timestamptz, noon],
    ['SELECT v FROM (VALUES ($1)) t(v)', oids.timestamptz, noon, oids.timestamptz, noon],
    ['SELECT MAX($1) FROM V', oids.timestamptz, noon, oids.timestamptz, noon],
    ['SELECT NULLIF($1, ts) FROM V', oids.timestamptz, noon, oids.timestamptz, noon],
    ['SELECT $1::timestamptz', oids.timestamptz, noon, oids.timestamptz, noon],
    ['SELECT $1::text', oids.timestamptz, noon, oids.text, noon],
    ['SELECT $1', oids.date, '2024-05-01', oids.date, '2024-05-01'],
    ['SELECT $1::text', oids.date, '2024-05-01', oids.text, '2024-05-01'],
    ['SELECT $1 - 1', oids.date, '2024-05-01', oids.date, '2024-04-30'],
    ['SELECT COALESCE($1, current_date)', oids.date, '2024-05-01', oids.date, '2024-05-01'],
    ['VALUES ($1)', oids.date, '2024-05-01', oids.date, '2024-05-01'],
    ['SELECT id FROM V WHERE ts < $1', oids.timestamptz, noon, oids.int8, '1'],
    ['SELECT id FROM V WHERE ts BETWEEN $1 AND now()', oids.timestamptz, '2024-05-01', oids.int8, '1'],
    ['SELECT id FROM V WHERE ts IN ($1)', oids.timestamptz, '2024-05-01 10:00:00+00', oids.int8, '1'],
  ])('%s of type %i', async (sql, type, value, told, cell) => {
    expect(await asked(sql, [type], [value])).toEqual([told, cell]);
  });
});

describe('a parameter without a type takes that of what it stands beside', () => {
  test.each<[string, unknown[], unknown]>([
    ['SELECT n + $1 AS v FROM V', [5], '15'],
    ['SELECT $1 + n AS v FROM V', [5], '15'],
    ['SELECT n - $1 AS v FROM V', [5], '5'],
    ['SELECT n * $1 AS v FROM V', [5], '50'],
    ['SELECT n / $1 AS v FROM V', [4], 2.5],
    ['SELECT n % $1 AS v FROM V', [4], '2'],
    ['SELECT x * $1 AS v FROM V', [2], 3],
    ['SELECT (n + 1) * $1 AS v FROM V', [2], '22'],
    ['SELECT SUM(n * $1) AS v FROM V', [2], '20'],
    ['SELECT n AS v FROM V ORDER BY n * $1', [-1], '10'],
    ['SELECT n AS v FROM V GROUP BY n HAVING SUM(n) > $1', [9], '10'],
    ['SELECT ts AS v FROM V WHERE n = 0 UNION SELECT $1', ['2024-05-01'], new Date('2024-05-01T00:00:00Z')],
    ['SELECT COALESCE(NULL, $1, n) AS v FROM V', ['4'], '4'],
    ["SELECT n + '5' AS v FROM V WHERE n = '10'", [], '15'],
    ['SELECT CASE WHEN n = $1 THEN $2 ELSE n END AS v FROM V', [10, 3], '3'],
  ])('%s', async (sql, values, expected) => {
    expect((await client.query(sql, values)).rows).toEqual([{ v: expected }]);
  });
});

test('a text becomes an instant by one grammar, as a literal, a cast, a parameter and in COPY', async () => {
  const instant = async (sql: string, values?: unknown[]): Promise<string> =>
    client.query(sql, values).then(
      ({ rows }) => (rows[0] as { v: Date }).v.toISOString(),
      (error: { code: string }) => error.code,
    );
  const rows: [string, string][] = [
    ['20240501', '2024-05-01T00:00:00.000Z'],
    ['20240501T101112', '2024-05-01T10:11:12.000Z'],
    ['2024-05-01 10:11', '2024-05-01T10:11:00.000Z'],
    ['2024-05-01 10:11:12+02', '2024-05-01T08:11:12.000Z'],
    ['2024-05-01T10:11:12.5-05:30', '2024-05-01T15:41:12.500Z'],
    ['2024-05-01 24:00:00 UTC', '2024-05-02T00:00:00.000Z'],
    ['1714557600123456789', '2024-05-01T10:00:00.123Z'],
    ['1714557600', '22007'],
    ['2024', '22007'],
    ['2024-02-30', '22008'],
    ['2024-05-01 25:00', '22008'],
    ['seven', '22007'],
  ];
  for (const [i, [text, expected]] of rows.entries()) {
    const id = String(100 + i);
    expect([text, await instant('SELECT ts AS v FROM V WHERE n = 0 UNION SELECT $1', [text])]).toEqual([text, expected]);
    expect([text, await instant(`SELECT '${text}'::timestamptz AS v`)]).toEqual([text, expected]);
    expect([text, await instant(`SELECT TIMESTAMP '${text}' AS v`)]).toEqual([text, expected]);
    expect([
      text,
      await instant(`SELECT CAST(s || '${text.slice(1)}' AS timestamp) AS v FROM (VALUES ('${text[0]}')) t(s)`),
    ]).toEqual([text, expected]);
    expect([text, await instant(`INSERT INTO V (id, ts) VALUES (${id}, '${text}') RETURNING ts AS v`)]).toEqual([text, expected]);
    expect([text, await instant('INSERT INTO V (id, ts) VALUES ($1, $2) RETURNING ts AS v', [200 + i, text])]).toEqual([
      text,
      expected,
    ]);
  }
  await client.query('DELETE FROM V WHERE id >= 100');
});

test('an instant as text has six digits of a second, and nine where the session asks for them', async () => {
  const text = "SELECT TIMESTAMPTZ '2024-05-01T10:00:00.123456789Z'";
  const told = async (): Promise<unknown> =>
    (await client.query({ text, rowMode: 'array', types: { getTypeParser: () => String } })).rows;
  expect(await told()).toEqual([['2024-05-01 10:00:00.123456+00']]);
  await client.query('SET annals.timestamp_digits = 9');
  expect(await told()).toEqual([['2024-05-01 10:00:00.123456789+00']]);
  await client.query('RESET annals.timestamp_digits');
});

test('a text beside an integer is refused with the casts that make them comparable', async () => {
  await expect(client.query('SELECT 1 FROM V a JOIN V b ON a.s = b.n')).rejects.toThrow(
    'write CAST(<the number> AS TEXT), or CAST(<the text> AS INTEGER)',
  );
});

test('json is jsonb to clients, in the binary format with the number of its form', async () => {
  const value = '\u0001{"é":[1,2.50]}';
  const bind = framed(
    'B',
    Buffer.concat([
      Buffer.from('\0\0'),
      int16(1),
      int16(1),
      int16(1),
      int32(Buffer.byteLength(value)),
      Buffer.from(value),
      int16(1),
      int16(1),
    ]),
  );
  for (const stated of [0, 3802]) {
    const sql = 'UPDATE V SET j = $1 WHERE id = 1 RETURNING j';
    const parse = framed('P', Buffer.concat([Buffer.from(`\0${sql}\0`), int16(1), int32(stated)]));
    const replies = await raw.ask(parse, bind, describeMessage('P'), execute(), sync);
    expect(cellsOf(replies.find(({ type }) => type === 'D')!.body)[0]!.toString()).toBe(value);
  }
});

test('an interval is microseconds, days and months in the binary format', async () => {
  const parse = framed('P', Buffer.concat([Buffer.from("\0SELECT interval '1 mon -2 days 00:00:01'\0"), int16(0)]));
  const bind = framed('B', Buffer.concat([Buffer.from('\0\0'), int16(0), int16(0), int16(1), int16(1)]));
  const replies = await raw.ask(parse, bind, describeMessage('P'), execute(), sync);
  const [cell] = cellsOf(replies.find(({ type }) => type === 'D')!.body);
  expect(cell!.toString('hex')).toBe('00000000000f4240fffffffe00000001');
});

test('a count of values that is not the one of the statement is told by its own state', async () => {
  expect(await asked('SELECT $1, $2', [23], ['1'])).toBe('08P01');
  expect(await asked('SELECT $1', [], ['1', '2'])).toBe('08P01');
  expect(await asked('SELECT $1', [], [])).toBe('08P01');
  expect(await stateOf(client.query('SELECT $1'))).toBe('42P02');
});

test('errors have the states that Postgres gives them', async () => {
  const expected = [
    ['SELECT nope(1)', '42883'],
    ['SELECT s + n FROM V', '42883'],
    ["SELECT 'a' + 1", '22P02'],
    ["SELECT 1 WHERE 'a' || 'b'", '42804'],
    ['SELECT s, COUNT(*) FROM V', '42803'],
    ['SELECT n FROM V WHERE COUNT(*) > 1', '42803'],
    ['SELECT n FROM V GROUP BY s', '42803'],
    ['SELECT a.id FROM V a, V a', '42712'],
    ['SELECT id FROM V a, V b', '42702'],
    ['SELECT CASE WHEN TRUE THEN n ELSE s END FROM V', '42804'],
    ['SELECT COALESCE(n, ts) FROM V', '42804'],
    ['SELECT n FROM V UNION SELECT s FROM V', '42804'],
    ['SELECT n, s FROM V UNION SELECT n FROM V', '42601'],
    ['SELECT n FROM V LIMIT -1', '2201W'],
    ['SELECT n FROM V OFFSET -1', '2201X'],
    ['SELECT n FROM V ORDER BY 7', '42P10'],
    ['SELECT (SELECT i FROM (VALUES (1), (2)) t(i))', '21000'],
    ['SELECT 9223372036854775807 + n FROM V', '22003'],
    ['SELECT 9223372036854775808', '22003'],
    ['SELECT LN(0)', '2201E'],
    ['SELECT POWER(0, -1)', '2201F'],
    ['SELECT SQRT(-1)', '2201F'],
    ["SELECT s ~ '(' FROM V", '2201B'],
    ["SELECT 'x'::nosuch", '42704'],
    ["SELECT ts FROM V WHERE ts = '2024-13-01'", '22008'],
    ["SELECT ts FROM V WHERE ts = 'soon'", '22007'],
    ["SELECT '{'::json", '22P02'],
    ["SELECT 'maybe'::bool", '22P02'],
    ['SELECT ROW_NUMBER() OVER () FROM V WHERE ROW_NUMBER() OVER () = 1', '42P20'],
    ['INSERT INTO V (id, id) VALUES (1, 2)', '42701'],
    ['INSERT INTO V (id, n) VALUES (1)', '42601'],
    ['INSERT INTO V (id) VALUES (1) ON CONFLICT (s) DO NOTHING', '42P10'],
    ["INSERT INTO V (id, n) VALUES (7, 'x')", '22P02'],
    ['INSERT INTO V (n) VALUES (7)', '23502'],
    ['CREATE TABLE T2 (a int, a int)', '42701'],
    ['CREATE TABLE T2 (a int, PRIMARY KEY (b))', '42703'],
    ['CREATE TABLE other.T2 (a int)', '3F000'],
    ['SELECT * FROM nowhere', '42P01'],
    ['SELECT q.n FROM V', '42P01'],
    ['SELECT * FROM nowhere(1)', '42883'],
    ["SELECT n FROM V WHERE s LIKE 'a' ESCAPE '!!'", '22025'],
    ['SELECT id FROM V WHERE id = ANY($1', '42601'],
    ['UPDATE V SET n = 1, n = 2', '42601'],
    ['UPDATE V SET (n, n) = (1, 2)', '42601'],
    ["SELECT n FROM V LIMIT 'x'", '22P02'],
    ['SELECT n FROM V LIMIT n', '42P10'],
    ['SELECT n FROM V OFFSET TRUE', '42804'],
    ['SELECT RANK() FROM V', '42809'],
    ['SELECT UPPER(DISTINCT s) FROM V', '42809'],
    ['SELECT UPPER(s) OVER () FROM V', '42809'],
    ['SELECT COUNT() FROM V', '42809'],
    ['SELECT SUM(*) FROM V', '42883'],
    ['SELECT SUM(n, n) FROM V', '42883'],
    ['SELECT SUM(MAX(n)) FROM V', '42803'],
    ["SELECT E'\\u12'", '22025'],
    ["SELECT E'\\uD800'", '42601'],
    ["SELECT B'2'", '22P02'],
    ["SELECT X'g'", '22P02'],
    ["SELECT B'1'", '0A000'],
    ['INSERT INTO V (id) VALUES (1) ON CONFLICT (nope) DO NOTHING', '42703'],
    ['CREATE TABLE T2 (a nosuch)', '42704'],
  ] as const;
  const told: unknown[] = [];
  for (const [sql] of expected) told.push([sql, await stateOf(client.query(sql))]);
  expect(told).toEqual(expected);
});

test('a date takes and gives days, an instant no integers', async () => {
  const value = async (sql: string, values?: unknown[]): Promise<unknown> =>
    client.query(sql, values).then(
      ({ rows }) => Object.values(rows[0] as object)[0],
      (error: { code: string }) => error.code,
    );
  expect(await value("SELECT CAST(DATE '2024-05-08' - 7 AS text)")).toBe('2024-05-01');
  expect(await value("SELECT 7 + DATE '2024-05-01' = DATE '2024-05-08'")).toBe(true);
  expect(await value("SELECT DATE '2024-05-08' - DATE '2024-05-01'")).toBe('7');
  expect(await value("SELECT DATE '2024-05-08' - '2024-05-01'")).toBe('7');
  expect(await value('SELECT current_date - 7 < current_date')).toBe(true);
  expect(await value("SELECT GREATEST(DATE '2024-05-08', DATE '2024-05-01') - DATE '2024-05-01'")).toBe('7');
  expect(await value('SELECT ts + 1 FROM V')).toBe('42883');
  expect(await value('SELECT now() - 7')).toBe('42883');
  expect(await value("SELECT DATE '2024-05-08' * 2")).toBe('42883');
  expect(await value('SELECT 20240501::date')).toBe('42846');
});

test('an integer that does not fit its cast is refused', async () => {
  for (const [sql, expected] of [
    ['SELECT 3000000000::int4', '22003'],
    ['SELECT 70000::int2', '22003'],
    ['SELECT CAST(3000000000 AS INTEGER)', '22003'],
    ['SELECT CAST(n * 1000000000 AS int) FROM V', '22003'],
    ["SELECT '3000000000'::int4", '22003'],
    ['SELECT 1e300::real', '22003'],
    ['SELECT 1e30::int8', '22003'],
    ['SELECT 2147483647::int4', 'answered'],
    ['SELECT 3000000000::bigint', 'answered'],
  ] as const)
    expect([sql, await stateOf(client.query(sql))]).toEqual([sql, expected]);
  for (const [type, value, expected] of [
    [oids.int2, '70000', '22003'],
    [oids.int4, '3000000000', '22003'],
    [oids.int8, '9223372036854775808', '22003'],
  ] as const)
    expect(await asked('SELECT $1', [type], [value])).toBe(expected);
  await expect(world.rows('SELECT 3000000000::int4 AS v')).rejects.toThrow('integer out of range');
});

describe('literals are written as Postgres reads them', () => {
  test.each<[string, string]>([
    [String.raw`SELECT E'a\nb\t\\\'''\x41\101\u00e9\U0001F600' AS v`, "a\nb\t\\''AAé😀"],
    [String.raw`SELECT 'a\nb' AS v`, String.raw`a\nb`],
    [String.raw`SELECT U&'d\0061t\+000061 \\' AS v`, 'data \\'],
    ["SELECT U&'d!0061t' UESCAPE '!' AS v", 'dat'],
    [String.raw`SELECT U&"s\0061" AS v FROM (SELECT 'x' AS sa) t`, 'x'],
    ['SELECT $$it\'s; "so"$$ AS v', 'it\'s; "so"'],
    ['SELECT $a$ $b$ $$ $b$ $a$ AS v', ' $b$ $$ $b$ '],
    ["SELECT N'x' AS v", 'x'],
    ["SELECT 'a' -- more\n  'b'\n'c' AS v", 'abc'],
    ["SELECT 'a''b' AS v", "a'b"],
    ["SELECT int4 '7' + 1 || '' AS v", '8'],
    ["SELECT bool 't' || '' AS v", 'true'],
    ["SELECT float8 '1.5' || '' AS v", '1.5'],
    ["SELECT double precision '1.5' || '' AS v", '1.5'],
    ["SELECT timestamptz '2024-05-01 12:00+02'::text AS v", '2024-05-01 10:00:00+00'],
    ["SELECT timestamp with time zone '2024-05-01 12:00+02'::text AS v", '2024-05-01 10:00:00+00'],
    ["SELECT timestamp without time zone '2024-05-01 12:00'::text AS v", '2024-05-01 12:00:00'],
    ["SELECT date '20240501'::text AS v", '2024-05-01'],
    ["SELECT json '{\"a\": 1}' ->> 'a' AS v", '1'],
    ["SELECT varchar(2) 'abc' AS v", 'ab'],
    ["SELECT '7'::pg_catalog.int4 || '' AS v", '7'],
    ["SELECT CAST('x' AS character varying(10)) AS v", 'x'],
  ])('%s', async (sql, expected) => {
    expect((await client.query(sql)).rows).toEqual([{ v: expected }]);
    expect((await client.query({ text: sql, values: [] })).rows).toEqual([{ v: expected }]);
  });

  test('statements are told apart around them, and what is no literal is refused with its own state', async () => {
    const [first, second] = (await client.query(
      String.raw`SELECT E'a\';b' AS v; SELECT $x$;$x$ AS v`,
    )) as unknown as pg.QueryResult[];
    expect([first!.rows, second!.rows]).toEqual([[{ v: "a';b" }], [{ v: ';' }]]);
    for (const [sql, state] of [
      ["SELECT B'101'", '0A000'],
      ["SELECT X'1F'", '0A000'],
      [String.raw`SELECT E'\ud83d'`, '42601'],
      [String.raw`SELECT E'\xff'`, '22021'],
      ["SELECT E'a", '42601'],
      ['SELECT $a$ b', '42601'],
      ["SELECT int4 'x'", '22P02'],
      ["SELECT 'x'::nosuch", '42704'],
    ] as const)
      expect([sql, await stateOf(client.query(sql))]).toEqual([sql, state]);
  });
});
