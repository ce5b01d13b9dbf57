/** The columnar door over HTTP, as its own client and plain requests see it. */
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client';
import { tableFromIPC } from 'apache-arrow';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StoreWorld } from '../http/store-world.ts';
import { columnarUrl, request } from './columnar-client.ts';

const secret = 'columnar-secret';
let world: StoreWorld;
let client: ClickHouseClient;

const ask = async (query: string, parameters: Readonly<Record<string, string>> = {}, init: RequestInit = {}) =>
  request(world, secret, { query, ...parameters }, init);
const text = async (query: string, parameters: Readonly<Record<string, string>> = {}): Promise<string> =>
  (await ask(query, parameters, { method: 'POST' })).text;

beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: secret });
  // Its log says what is expected here: errors.
  const log = { level: ClickHouseLogLevel.OFF };
  client = createClient({ url: columnarUrl(world), username: 'me', password: secret, log });
  await world.call('POST', '/types', {
    name: 'Reading',
    primary_key: 'id',
    properties: {
      id: 'string',
      big: 'integer',
      ratio: 'number',
      flag: 'boolean',
      at: 'timestamp',
      note: 'string',
      doc: 'json',
      place: { type: 'vector', dims: 2 },
    },
  });
});

afterAll(async () => {
  await client?.close();
  await world?.close();
});

const columns = 'id, big, ratio, flag, at, note';
const rows = [
  {
    id: 'a',
    big: '9223372036854775807',
    ratio: 0.1,
    flag: true,
    at: '2024-05-01 10:00:00.123456789',
    note: 'a "quote", a\ttab\nand a \\',
  },
  { id: 'b', big: '-9223372036854775808', ratio: -1.5e300, flag: false, at: '1969-12-31 23:59:59.999999999', note: '' },
  { id: 'c', big: null, ratio: null, flag: null, at: null, note: null },
];

describe('its client', () => {
  test('pings, and inserts rows that come back as they were', async () => {
    expect((await client.ping()).success).toBe(true);
    await client.insert({ table: 'Reading', values: rows, format: 'JSONEachRow' });
    const result = await client.query({ query: `SELECT ${columns} FROM Reading ORDER BY id`, format: 'JSONEachRow' });
    expect(await result.json()).toEqual(rows);
  });

  test('binds parameters by name and type', async () => {
    const result = await client.query({
      query: 'SELECT id FROM Reading WHERE big = {n:Int64} OR note = {s:String} OR at = {t:DateTime64(9)} ORDER BY id',
      query_params: { n: '9223372036854775807', s: 'none', t: '1969-12-31 23:59:59.999999999' },
      format: 'JSONCompactEachRow',
    });
    expect(await result.json()).toEqual([['a'], ['b']]);
  });

  test('is told which parameter does not fit its type', async () => {
    const asked = client.query({ query: 'SELECT {n:Int8}', query_params: { n: '128' } });
    await expect(asked).rejects.toMatchObject({ code: '457', type: 'BAD_QUERY_PARAMETER' });
  });

  test('pages by LIMIT m, n', async () => {
    expect(await text("SELECT id FROM Reading WHERE id IN ('a', 'b', 'c') ORDER BY id LIMIT 1, 1")).toBe('b\n');
  });

  test('reads meta and rows of JSON', async () => {
    const result = await client.query({ query: 'SELECT count() AS n, max(big) AS m FROM Reading', format: 'JSON' });
    expect(await result.json()).toMatchObject({
      meta: [
        { name: 'n', type: 'Nullable(Int64)' },
        { name: 'm', type: 'Nullable(Int64)' },
      ],
      data: [{ n: '3', m: '9223372036854775807' }],
      rows: 1,
    });
  });

  test('is told an error by its number and type, and goes on', async () => {
    await expect(client.query({ query: 'SELECT * FROM Nowhere' })).rejects.toMatchObject({ code: '60', type: 'UNKNOWN_TABLE' });
    await expect(client.query({ query: 'SELECT nothing FROM Reading' })).rejects.toMatchObject({ code: '47' });
    await expect(client.query({ query: 'SELECT frobnicate(1)' })).rejects.toMatchObject({ code: '46' });
    await expect(client.query({ query: 'SELEC 1' })).rejects.toMatchObject({ code: '62', type: 'SYNTAX_ERROR' });
    await expect(client.command({ query: 'ALTER TABLE Reading DELETE WHERE 1' })).rejects.toMatchObject({ code: '48' });
    await expect(client.query({ query: 'SELECT 1', clickhouse_settings: { not_there: 1 } as never })).rejects.toMatchObject({
      code: '115',
    });
    const result = await client.query({ query: 'SELECT 1 AS one', format: 'JSONEachRow' });
    expect(await result.json()).toEqual([{ one: '1' }]);
  });

  test('makes an unknown table by its first INSERT', async () => {
    await client.insert({ table: 'Fresh', values: [{ id: 'x', n: 7 }], format: 'JSONEachRow' });
    expect(await text('SELECT id, n FROM Fresh')).toBe('x\t7\n');
    expect((await world.rows('SELECT id FROM Fresh')).map((row) => row['id'])).toEqual(['x']);
  });

  test('cancels a question by its signal', async () => {
    const controller = new AbortController();
    const asked = client.query({
      query:
        'SELECT count() FROM Reading a, Reading b, Reading c, Reading d, Reading e, Reading f, Reading g, Reading h, Reading i, Reading j, Reading k, Reading l, Reading m, Reading n, Reading o, Reading p',
      abort_signal: controller.signal,
      query_id: 'given up',
    });
    setTimeout(() => controller.abort(), 30);
    await expect(asked).rejects.toThrow();
    // The server has given it up as well: its name is free again.
    await expect.poll(() => text('SELECT 1', { query_id: 'given up' }), { timeout: 120_000 }).toBe('1\n');
  });
});

describe('forms of answers', () => {
  const query = `SELECT ${columns}, place FROM Reading WHERE id IN ('a', 'c') ORDER BY id`;

  test.each([
    [
      'TabSeparated',
      'a\t9223372036854775807\t0.1\ttrue\t2024-05-01 10:00:00.123456789\ta "quote", a\\ttab\\nand a \\\\\t[]\nc\t\\N\t\\N\t\\N\t\\N\t\\N\t[]\n',
    ],
    [
      'CSVWithNames',
      '"id","big","ratio","flag","at","note","place"\n' +
        '"a",9223372036854775807,0.1,true,"2024-05-01 10:00:00.123456789","a ""quote"", a\ttab\nand a \\","[]"\n"c",\\N,\\N,\\N,\\N,\\N,"[]"\n',
    ],
    [
      'JSONCompactEachRow',
      '["a","9223372036854775807",0.1,true,"2024-05-01 10:00:00.123456789","a \\"quote\\", a\\ttab\\nand a \\\\",[]]\n["c",null,null,null,null,null,[]]\n',
    ],
  ])('%s', async (format, expected) => {
    expect(await text(`${query} FORMAT ${format}`)).toBe(expected);
  });

  test('integers of JSON lose their quotes where the setting says so', async () => {
    const asked =
      "SELECT big FROM Reading WHERE id = 'a' SETTINGS output_format_json_quote_64bit_integers = 0 FORMAT JSONEachRow";
    expect(await text(asked)).toBe('{"big":9223372036854775807}\n');
  });

  test.each(['ArrowStream', 'Arrow'])('%s', async (format) => {
    const { bytes } = await ask(`${query} FORMAT ${format}`);
    expect([...tableFromIPC(bytes).getChild('big')!]).toEqual([9_223_372_036_854_775_807n, null]);
  });

  test('names its columns and their types', async () => {
    expect(await text('SELECT id, at, system_from FROM Reading WHERE 1 = 0 FORMAT TSVWithNamesAndTypes')).toBe(
      "id\tat\tsystem_from\nNullable(String)\tNullable(DateTime64(9, 'UTC'))\tNullable(Int64)\n",
    );
  });

  test('one that there is not is 73', async () => {
    const { status, headers } = await ask('SELECT 1 FORMAT Prettiest');
    expect([status, headers.get('x-clickhouse-exception-code')]).toEqual([400, '73']);
  });
});

describe('forms of rows', () => {
  const insert = (body: string | Uint8Array, init: RequestInit = {}) =>
    request(world, secret, {}, { method: 'POST', body: body as never, ...init });

  test.each([
    ['JSONCompactEachRow', '["j1", "12", 0.5, false, "2024-05-01 00:00:00", "x"]\n["j2", null, null, null, null, null]\n'],
    ['CSV', '"j1",12,0.5,false,"2024-05-01 00:00:00","x"\n"j2",\\N,\\N,\\N,\\N,\\N\n'],
    ['TSV', 'j1\t12\t0.5\tfalse\t2024-05-01 00:00:00\tx\nj2\t\\N\t\\N\t\\N\t\\N\t\\N\n'],
    [
      'CSVWithNames',
      '"note","id","big","ratio","flag","at"\n"x","j1",12,0.5,false,"2024-05-01 00:00:00"\n\\N,"j2",\\N,\\N,\\N,\\N\n',
    ],
    ['Values', "('j1', 12, .5, false, '2024-05-01 00:00:00', 'x'), ('j2', NULL, NULL, NULL, NULL, NULL);"],
  ])('%s, in the body behind the statement', async (format, data) => {
    const head =
      format === 'Values'
        ? `INSERT INTO default.Reading (${columns}) VALUES `
        : `INSERT INTO \`Reading\` (${columns}) FORMAT ${format}\n`;
    const { status, text: told } = await insert(head + data);
    expect([status, told]).toEqual([200, '']);
    expect(await text(`SELECT ${columns} FROM Reading WHERE id LIKE 'j%' ORDER BY id`)).toBe(
      'j1\t12\t0.5\tfalse\t2024-05-01 00:00:00.000000000\tx\nj2\t\\N\t\\N\t\\N\t\\N\t\\N\n',
    );
  });

  const answered =
    '["t1","9223372036854775807",0.5,true,"2024-05-01 10:00:00.123456789","{\\"n\\":[1,-9223372036854775808]}",[1,2.5]]\n' +
    '["t2","-9223372036854775808",-2,false,"1969-12-31 23:59:59.999999999","\\"a text\\"",[]]\n' +
    '["t3",null,null,null,null,null,[]]\n';
  const typed = "SELECT id, big, ratio, flag, at, doc, place FROM Reading WHERE id LIKE 't_' ORDER BY id";

  test.each([
    [
      'JSONEachRow',
      '{"id":"t1","big":9223372036854775807,"ratio":"0.5","flag":1,"at":"2024-05-01 10:00:00.123456789","doc":{"n":[1,-9223372036854775808]},"place":[1,2.5]}\n{"id":"t2","big":"-9223372036854775808","ratio":-2,"flag":false,"at":-1,"doc":"a text","place":[]}\n{"id":"t3"}\n',
    ],
    [
      'TSV',
      't1\t9223372036854775807\t0.5\t1\t2024-05-01 10:00:00.123456789\t{"n":[1,-9223372036854775808]}\t[1,2.5]\nt2\t-9223372036854775808\t-2\t0\t1969-12-31 23:59:59.999999999\t"a text"\t[]\nt3\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\n',
    ],
    [
      'CSV',
      '"t1","9223372036854775807",0.5,1,"2024-05-01 10:00:00.123456789","{""n"":[1,-9223372036854775808]}","[1,2.5]"\n"t2",-9223372036854775808,-2,false,"1969-12-31 23:59:59.999999999","""a text""","[]"\n"t3",,,,,,\n',
    ],
    [
      'Values',
      "('t1', 9223372036854775807, 0.5, 1, '2024-05-01 10:00:00.123456789', '{\"n\":[1,-9223372036854775808]}', [1, 2.5]), ('t2', -9223372036854775808, -2, 0, '1969-12-31 23:59:59.999999999', 'a text', []), ('t3', NULL, NULL, NULL, NULL, NULL, NULL)",
    ],
  ])('of every type, to the last digit: %s', async (format, data) => {
    const tail = format === 'Values' ? 'VALUES' : `FORMAT ${format}`;
    expect((await insert(`INSERT INTO Reading (id, big, ratio, flag, at, doc, place) ${tail}\n${data}`)).text).toBe('');
    expect(await text(`${typed} FORMAT JSONCompactEachRow`)).toBe(answered);
  });

  test.each(['JSONEachRow', 'JSONCompactEachRow', 'CSV', 'TSV', 'CSVWithNames', 'TSVWithNames'])(
    'that were read come back as they were: %s',
    async (format) => {
      const read = (await ask(`${typed} FORMAT ${format}`)).bytes;
      const again = `INSERT INTO Reading (id, big, ratio, flag, at, doc, place) FORMAT ${format}\n`;
      expect((await insert(Buffer.concat([Buffer.from(again), read]))).text).toBe('');
      expect(await text(`${typed} FORMAT JSONCompactEachRow`)).toBe(answered);
    },
  );

  test('compressed by gzip, both ways', async () => {
    const body = gzipSync(`INSERT INTO Reading (id, note) FORMAT JSONEachRow\n${'{"id":"z","note":"zipped"}\n'.repeat(3)}`);
    expect((await insert(body, { headers: { 'content-encoding': 'gzip' } })).status).toBe(200);
    const asked = "SELECT note FROM Reading WHERE id = 'z'";
    const headers = { 'accept-encoding': 'gzip' };
    // fetch unfolds it.
    const zipped = await ask(asked, { enable_http_compression: '1' }, { headers });
    expect([zipped.headers.get('content-encoding'), zipped.text]).toEqual(['gzip', 'zipped\n']);
    expect((await ask(asked, {}, { headers })).headers.get('content-encoding')).toBeNull();
  });

  test('whose statement comes in pieces', async () => {
    const pieces = ['/* a', ' */ INS', 'ERT INTO Read', 'ing (id, note) VAL', "UES ('p1', 'é", "'), ('p", "2', 'z')"];
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const piece = pieces.shift();
        if (piece === undefined) return controller.close();
        controller.enqueue(Buffer.from(piece));
        await new Promise((resolve) => setTimeout(resolve, 5));
      },
    });
    expect((await insert('', { body, duplex: 'half' } as RequestInit)).status).toBe(200);
    expect(await text("SELECT id, note FROM Reading WHERE id LIKE 'p%' ORDER BY id")).toBe('p1\té\np2\tz\n');
  });

  test('whose statement never comes', async () => {
    const { status, headers } = await insert(' '.repeat(6 << 20));
    expect([status, headers.get('x-clickhouse-exception-code')]).toEqual([413, '307']);
  });

  test('behind a statement in the URL, with texts that look like numbers', async () => {
    const sent = { query: 'INSERT INTO Lone (id, note) FORMAT CSV' };
    expect((await request(world, secret, sent, { method: 'POST', body: '"l1","007"\n"l2",""\n' })).status).toBe(200);
    expect(await text('SELECT id, note FROM Lone ORDER BY id FORMAT JSONCompactEachRow')).toBe('["l1","007"]\n["l2",""]\n');
  });

  test('a row that is wrong ends the INSERT and is named', async () => {
    const {
      status,
      text: told,
      headers,
    } = await insert('INSERT INTO Reading (id, big) FORMAT JSONEachRow\n{"id":"ok","big":1}\n{"id":"no","big":"many"}\n');
    expect([status, headers.get('x-clickhouse-exception-code')]).toEqual([400, '117']);
    expect(told).toContain('row 2');
  });

  test('what is left of a body behind a row that is wrong is read over, and the connection goes on', async () => {
    const body = `INSERT INTO Reading (id, big) FORMAT JSONEachRow\n{"id":"no","big":"many"}\n${'{"id":"not","big":1}\n'.repeat(200_000)}`;
    expect((await insert(body)).status).toBe(400);
    expect(await text("SELECT id FROM Reading WHERE id LIKE 'no%'")).toBe('');
  });

  test('rows are not taken by GET, nor where a session is readonly', async () => {
    const { headers } = await ask("INSERT INTO Reading (id) VALUES ('no')");
    expect(headers.get('x-clickhouse-exception-code')).toBe('164');
    const { headers: alike } = await request(
      world,
      secret,
      { readonly: '1' },
      { method: 'POST', body: "INSERT INTO Reading (id) VALUES ('no')" },
    );
    expect(alike.get('x-clickhouse-exception-code')).toBe('164');
  });
});

describe('the catalogue', () => {
  test('lists tables, columns, databases, settings and functions', async () => {
    expect((await text('SHOW TABLES')).split('\n')).toContain('Reading');
    expect(await text("SHOW TABLES LIKE 'Read%'")).toBe('Reading\n');
    expect((await text('SHOW DATABASES')).split('\n')).toEqual(expect.arrayContaining(['default', 'system']));
    expect(await text('EXISTS TABLE Reading')).toBe('1\n');
    expect(await text('EXISTS TABLE Nowhere')).toBe('0\n');
    expect((await text('DESCRIBE TABLE Reading')).split('\n')).toContain('big\tNullable(Int64)\t\t\t\t\t');
    expect(await text("SELECT value FROM system.settings WHERE name = 'readonly'")).toBe('0\n');
    expect(await text("SELECT count() FROM system.functions WHERE name = 'LOWER'")).toBe('1\n');
    expect(await text('SELECT * FROM system.one')).toBe('0\n');
    expect(await text('SELECT version(), currentDatabase()')).toMatch(/^\d+\.\d+\.\d+\.\d+\tdefault\n$/);
    expect((await text('SHOW TABLES FROM system')).split('\n')).toEqual(expect.arrayContaining(['one', 'tables']));
    expect(await text('SHOW TABLES FROM system')).not.toContain('Reading');
    expect(await text('EXISTS TABLE system.one')).toBe('1\n');
    expect(await text('DESCRIBE TABLE system.one')).toBe('dummy\tNullable(Int64)\t\t\t\t\t\n');
    expect((await ask('DESCRIBE TABLE Nowhere')).headers.get('x-clickhouse-exception-code')).toBe('60');
  });
});

describe('time, purpose and branch', () => {
  test('what was believed then, by a setting', async () => {
    const first = (await text("SELECT system_from FROM Reading WHERE id = 'a'")).trim();
    await client.insert({ table: 'Reading', values: [{ id: 'a', note: 'later' }], format: 'JSONEachRow' });
    const then = { annals_as_of_system: first };
    expect(await text("SELECT note = 'later' FROM Reading WHERE id = 'a'")).toBe('true\n');
    expect(await text("SELECT note = 'later' FROM Reading WHERE id = 'a'", then)).toBe('false\n');
  });

  test('a branch is a database', async () => {
    await world.call('POST', '/v1/namespaces/side/branch', { branch_from: 'main' });
    const { status } = await request(
      world,
      secret,
      { database: 'side' },
      { method: 'POST', body: "INSERT INTO Reading (id, note) VALUES ('s', 'aside')" },
    );
    expect(status).toBe(200);
    expect(await text("SELECT note FROM Reading WHERE id = 's'", { database: 'side' })).toBe('aside\n');
    expect(await text("SELECT note FROM side.Reading WHERE id = 's'", { database: 'side' })).toBe('aside\n');
    expect(await text("SELECT note FROM Reading WHERE id = 's'")).toBe('');
    const { status: missing, headers } = await ask('SELECT 1 FROM Reading', { database: 'nowhere' });
    expect([missing, headers.get('x-clickhouse-exception-code')]).toEqual([404, '81']);
  });
});

describe('sessions and running questions', () => {
  test('SET stands for the next request of the session', async () => {
    expect((await ask("SET annals_as_of_system = '2001-01-01'", { session_id: 'one' }, { method: 'POST' })).status).toBe(200);
    expect(await text('SELECT count() FROM Reading', { session_id: 'one' })).toBe('0\n');
    expect(await text('SELECT count() > 0 FROM Reading', { session_id: 'two' })).toBe('true\n');
    expect((await ask('SELECT 1', { session_id: 'three', session_check: '1' })).headers.get('x-clickhouse-exception-code')).toBe(
      '372',
    );
  });

  test('KILL QUERY ends one of one’s own', async () => {
    const join = Array.from({ length: 16 }, (_, i) => `Reading r${i}`).join(', ');
    const long = ask(`SELECT count() FROM ${join}`, { query_id: 'long' });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await text("KILL QUERY WHERE query_id = 'long'")).toContain('long');
    expect((await long).headers.get('x-clickhouse-exception-code')).toBe('394');
    expect(await text("KILL QUERY WHERE query_id = 'long'")).toBe('');
  });
});

describe('what a question may take', () => {
  const join = Array.from({ length: 16 }, (_, i) => `Reading r${i}`).join(', ');

  test('time, by max_execution_time', async () => {
    const { headers } = await ask(`SELECT count() FROM ${join}`, { max_execution_time: '0.2' });
    expect(headers.get('x-clickhouse-exception-code')).toBe('159');
  });

  test('rows, by max_result_rows', async () => {
    expect((await ask('SELECT id FROM Reading', { max_result_rows: '1' })).headers.get('x-clickhouse-exception-code')).toBe(
      '396',
    );
  });
});

describe('credentials', () => {
  test.each([
    [{ 'x-columnar-key': secret }, 200],
    [{ 'x-clickhouse-key': secret, 'x-clickhouse-user': 'me' }, 200],
    [{ authorization: `Basic ${Buffer.from(`me:${secret}`).toString('base64')}` }, 200],
    [{ 'x-columnar-key': 'wrong' }, 401],
    [{}, 401],
  ])('%j is answered by %i', async (headers, status) => {
    const reply = await fetch(`${columnarUrl(world)}/?query=SELECT+1`, { headers: headers as Record<string, string> });
    expect(reply.status).toBe(status);
    expect(reply.headers.get('x-clickhouse-exception-code')).toBe(status === 200 ? null : '516');
  });

  test('a password in the URL is refused', async () => {
    const reply = await fetch(`${columnarUrl(world)}/?query=SELECT+1&user=me&password=${secret}`);
    expect(reply.status).toBe(401);
  });
});
