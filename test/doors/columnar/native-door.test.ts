/** The native door of one server, through a client of its protocol as it was recorded. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StoreWorld } from '../http/store-world.ts';
import {
  blockBytes,
  helloBytes,
  NativeClient,
  NativeError,
  type NativeOptions,
  nativePort,
  nativeSecret,
  queryBytes,
  text,
  varint,
} from './native-client.ts';

let world: StoreWorld;

beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: nativeSecret });
  const properties = {
    id: 'string',
    whole: 'integer',
    share: 'number',
    sure: 'boolean',
    at: 'timestamp',
    facts: 'json',
    place: { type: 'vector', dims: 2 },
    word: 'string',
  };
  const reply = await world.call('POST', '/types', { name: 'Thing', properties, primary_key: 'id' });
  expect(reply.status).toBe(201);
  const lines = [
    '{"id":"a","whole":9223372036854775807,"share":0.1,"sure":true,"at":"2262-04-11T23:47:16.854775806Z","facts":{"x":[1]},"place":[1.5,-2],"word":"één"}',
    '{"id":"b","whole":-9223372036854775808,"share":-1e300,"sure":false,"at":"1970-01-01T00:00:00.123456789Z","facts":null,"place":[0,3],"word":""}',
    '{"id":"c"}',
  ];
  const ingested = await fetch(`${world.door.dataUrl}/ingest?object_type=Thing`, {
    method: 'POST',
    headers: { authorization: `Bearer ${world.token}`, 'content-type': 'application/x-ndjson' },
    body: lines.join('\n'),
  });
  expect(await ingested.json()).toMatchObject({ accepted: 3 });
});

afterAll(() => world.close());

async function withClient<T>(run: (client: NativeClient) => Promise<T>, options: NativeOptions = {}): Promise<T> {
  const client = await NativeClient.connect(nativePort(world), options);
  try {
    return await run(client);
  } finally {
    client.end();
  }
}

const refusalOf = (asked: Promise<unknown>): Promise<NativeError> =>
  asked.then(
    (answer) => {
      throw new Error(`answered ${String(answer)}`);
    },
    (error: NativeError) => error,
  );

const everyCell = 'SELECT id, whole, share, sure, at, facts, place, word, system_to FROM Thing ORDER BY id';
const rows = [
  [
    'a',
    9_223_372_036_854_775_807n,
    0.1,
    true,
    9_223_372_036_854_775_806n,
    '{"x":[1]}',
    [1.5, -2],
    'één',
    9_223_372_036_854_775_807n,
  ],
  ['b', -9_223_372_036_854_775_808n, -1e300, false, 123_456_789n, null, [0, 3], '', 9_223_372_036_854_775_807n],
  ['c', null, null, null, null, null, [], null, 9_223_372_036_854_775_807n],
];

describe('answers', () => {
  test.each([false, true])('every type as it is, compressed: %s', async (compressed) => {
    const answer = await withClient((client) => client.query(everyCell), { compressed });
    expect(answer.types).toEqual([
      'Nullable(String)',
      'Nullable(Int64)',
      'Nullable(Float64)',
      'Nullable(Bool)',
      "Nullable(DateTime64(9, 'UTC'))",
      'Nullable(String)',
      'Array(Float32)',
      'Nullable(String)',
      'Nullable(Int64)',
    ]);
    expect(answer.names).toEqual(['id', 'whole', 'share', 'sure', 'at', 'facts', 'place', 'word', 'system_to']);
    expect(answer.rows).toEqual(rows);
    expect(answer.packets).toEqual(['header', 'rows', 'profile', 'progress', 'end of rows', 'end']);
    expect(answer.profile).toEqual({ rows: 3, blocks: 1, beforeLimit: null });
  });

  test('a client of 2018 has flags as numbers and instants as nanoseconds', async () => {
    const answer = await withClient((client) => client.query("SELECT sure, at FROM Thing WHERE _pk = 'b'"), { revision: 54_412 });
    expect(answer.types).toEqual(['Nullable(UInt8)', 'Nullable(Int64)']);
    expect(answer.rows).toEqual([[0, 123_456_789n]]);
  });

  test('one of no rows tells its columns', async () => {
    const answer = await withClient((client) => client.query("SELECT id FROM Thing WHERE id = 'never'"));
    expect(answer).toMatchObject({ names: ['id'], rows: [], blocks: 0 });
    expect(answer.packets).toEqual(['header', 'profile', 'progress', 'end of rows', 'end']);
  });

  test.each([false, true])('many rows leave in blocks of 65,536, compressed: %s', async (compressed) => {
    const lines = Array.from({ length: 20_000 }, (_, i) => JSON.stringify({ n: i, word: `w${i % 7}`, at: i % 3 ? i : null }));
    const body = {
      method: 'POST',
      headers: { authorization: `Bearer ${world.token}`, 'content-type': 'application/x-ndjson' },
      body: lines.join('\n'),
    };
    const type = compressed ? 'ManyPacked' : 'Many';
    for (let i = 0; i < 4; i++)
      expect((await fetch(`${world.door.dataUrl}/ingest/auto?object_type=${type}`, body)).status).toBe(200);
    const answer = await withClient((client) => client.query(`SELECT n, word, at FROM ${type}`), { compressed });
    expect(answer.rows).toHaveLength(80_000);
    expect(answer.blocks).toBe(2);
    const counted = new Map<string, number>();
    for (const row of answer.rows) counted.set(String(row), (counted.get(String(row)) ?? 0) + 1);
    expect(counted.size).toBe(20_000);
    expect(new Set(counted.values())).toEqual(new Set([4]));
    expect(counted.get('5,w5,5')).toBe(4);
  });

  test('LIMIT tells how many rows there were', async () => {
    const { profile } = await withClient((client) => client.query('SELECT id FROM Thing LIMIT 2'));
    expect(profile).toEqual({ rows: 2, blocks: 1, beforeLimit: 3 });
  });
});

describe('statements', () => {
  const rowsOf = async (sql: string, options: NativeOptions = {}) =>
    (await withClient((client) => client.query(sql), options)).rows;

  test('FORMAT is the client’s business, and SETTINGS may stand in the text', async () => {
    expect(await rowsOf("SELECT id FROM Thing WHERE id = 'a' FORMAT Pretty")).toEqual([['a']]);
    expect(
      await rowsOf("SELECT COUNT(*) AS n FROM Thing SETTINGS annals_as_of = '2000-01-01', max_threads = 1 FORMAT JSON;"),
    ).toEqual([[0n]]);
  });

  test('names in back-quotes, count(), ClickHouse’s strings', async () => {
    expect(await rowsOf('SELECT count() AS `n\\`s` FROM default.`Thing`')).toEqual([[3n]]);
    expect(await rowsOf("SELECT id FROM Thing WHERE id = 'a\\' OR id <> \\'' OR id = 'b'")).toEqual([['b']]);
  });

  test('what there is, is listed with the types that this client is told', async () => {
    expect(await rowsOf('SHOW DATABASES')).toContainEqual(['default']);
    expect(await rowsOf("SHOW TABLES LIKE 'Thin%'")).toEqual([['Thing']]);
    expect(await rowsOf('EXISTS TABLE Nowhere')).toEqual([[0n]]);
    for (const [revision, at] of [
      [54_453, "Nullable(DateTime64(9, 'UTC'))"],
      [54_412, 'Nullable(Int64)'],
    ] as const) {
      const described = await rowsOf('DESCRIBE TABLE Thing', { revision });
      expect(described.find(([name]) => name === 'at')![1]).toBe(at);
    }
    expect((await refusalOf(withClient((client) => client.query('DESCRIBE TABLE Nowhere')))).code).toBe(60);
    expect((await rowsOf('EXPLAIN SELECT id FROM Thing')).length).toBeGreaterThan(0);
  });

  test('SET and USE last for the connection', async () => {
    await withClient(async (client) => {
      const count = async () => (await client.query('SELECT COUNT(*) AS n FROM Thing')).rows[0]![0];
      expect((await client.query("SET annals_as_of = '2000-01-01'")).packets).toEqual(['end']);
      expect(await count()).toBe(0n);
      await client.query("SET annals_as_of = ''");
      expect(await count()).toBe(3n);
      expect((await refusalOf(client.query("SET annals_as_of = '2000-01-01', nothing = 1"))).code).toBe(115);
      expect(await count()).toBe(3n);
      expect((await world.query("BRANCH used FROM 'main'")).status).toBe(200);
      await client.query('USE used');
      expect((await client.query('SELECT currentDatabase() AS d')).rows).toEqual([['used']]);
      expect((await refusalOf(client.query('USE nowhere'))).code).toBe(81);
    });
  });

  test.each([
    ["INSERT INTO Thing (id) VALUES ('x')", 164],
    ['INSERT INTO Thing FORMAT Native', 164],
    ['CREATE TABLE t (a Int64) ENGINE = Memory', 48],
    ["ALTER TABLE Thing DELETE WHERE id = 'a'", 48],
    ['SELECT nothing(id) AS n FROM Thing', 46],
    ['SELECT nothing FROM Thing', 47],
    ['SELECT id FROM', 62],
    ['SELECT id FROM Thing SETTINGS nothing = 1', 115],
    ['SELECT id FROM Thing SETTINGS max_result_rows = 1', 396],
    ['', 62],
  ])('%s is refused with %i', async (sql, code) => {
    expect((await refusalOf(withClient((client) => client.query(sql)))).code).toBe(code);
  });

  test('a long one is read in turns', async () => {
    const numbers = Array.from({ length: 100_000 }, (_, i) => i);
    expect(await rowsOf(`SELECT id FROM Thing WHERE whole NOT IN (${numbers.join(', ')}) ORDER BY id`)).toEqual([['a'], ['b']]);
    const error = await refusalOf(withClient((client) => client.query(`SELECT '${'x'.repeat(1 << 20)}'`)));
    expect(error.message).toContain('longer than 1048576 characters');
  });

  test('one that the client sends a setting with which there is not, is refused with 115', async () => {
    const asked = withClient((client) => client.query('SELECT 1 AS one', { settings: { nothing: '1' } }));
    expect((await refusalOf(asked)).code).toBe(115);
  });

  const endless = `SELECT COUNT(*) AS n FROM Thing a${Array.from({ length: 30 }, (_, i) => `, Thing b${i}`).join('')}`;

  test('KILL QUERY ends one of one’s own, by its id', async () => {
    await withClient((own) =>
      withClient(async (other) => {
        own.ask(endless, { id: 'long one' });
        const ended = refusalOf(own.answer());
        while ((await other.query("KILL QUERY WHERE query_id = 'long one'")).rows.length === 0) await other.ping();
        expect((await ended).code).toBe(394);
        expect((await own.query('SELECT 1 AS one')).rows).toEqual([[1n]]);
      }),
    );
  });

  test('max_execution_time ends one with 159', async () => {
    expect((await refusalOf(withClient((client) => client.query(endless, { settings: { max_execution_time: '1' } })))).code).toBe(
      159,
    );
  });

  test('a client that is gone ends its own', async () => {
    const client = await NativeClient.connect(nativePort(world));
    client.ask(endless, { id: 'left' });
    client.end();
    // The id is free again once it has ended.
    await withClient(async (other) => {
      for (;;) {
        const again = await other.query('SELECT 1 AS one', { id: 'left' }).catch((error: NativeError) => error);
        if (!(again instanceof NativeError)) return expect(again.rows).toEqual([[1n]]);
        expect(again.code).toBe(216);
      }
    });
  });
});

describe('a connection', () => {
  test('is greeted, pinged and asked again and again', async () => {
    const client = await NativeClient.bare(nativePort(world));
    client.send(helloBytes({}));
    expect(await client.greeting()).toEqual(['ClickHouse', 20, 9, 54_440, 'UTC', 'annals', 1]);
    await client.ping();
    for (let i = 0; i < 3; i++) expect((await client.query('SELECT COUNT(*) AS n FROM Thing')).rows).toEqual([[3n]]);
    await client.ping();
    client.end();
  });

  test('goes on after an error', async () => {
    await withClient(async (client) => {
      const error = await refusalOf(client.query('SELECT nothing FROM Nowhere'));
      expect(error.code).toBe(60);
      expect(error.message).toMatch(/^DB::Exception: .*Nowhere/);
      expect((await client.query('SELECT COUNT(*) AS n FROM Thing')).rows).toEqual([[3n]]);
    });
  });

  test('tells which tables there are', async () => {
    expect(await withClient((client) => client.tables(['Thing', 'Nowhere']))).toEqual(['Thing']);
  });

  test('is ended by another protocol, and by what makes no sense', async () => {
    const browser = await NativeClient.bare(nativePort(world));
    browser.send(Buffer.from('GET / HTTP/1.1\r\n\r\n'));
    expect((await browser.bytes(24)).toString()).toBe('HTTP/1.0 400 Bad Request');
    await browser.ended();
    await withClient(async (client) => {
      client.send(varint(77));
      expect((await refusalOf(client.answer())).message).toContain('Unknown packet 77');
      await client.ended();
    });
  });

  test('takes no rows beside a question', async () => {
    await withClient(async (client) => {
      const table = Buffer.concat([
        varint(2),
        text('ext'),
        Buffer.from('010002ffffffff000101', 'hex'),
        text('a'),
        text('UInt8'),
        Buffer.from([1]),
      ]);
      client.send(queryBytes('SELECT a FROM ext'), table, blockBytes(false));
      const error = await refusalOf(client.answer());
      expect(error.code).toBe(48);
      expect(error.message).toContain('external table "ext"');
      await client.ended();
    });
  });

  test('ends its question by Cancel, and serves the next', async () => {
    await withClient(async (client) => {
      client.ask(
        'SELECT COUNT(*) AS n FROM Thing a, Thing b, Thing c, Thing d, Thing e, Thing f, Thing g, Thing h, Thing i, Thing j, Thing k, Thing l, Thing m, Thing n, Thing o, Thing p',
      );
      client.cancel();
      expect((await client.answer()).packets).toEqual(['end']);
      expect((await client.query('SELECT COUNT(*) AS n FROM Thing')).rows).toEqual([[3n]]);
    });
  });

  test('has its messages in order where several are sent at once', async () => {
    await withClient(async (client) => {
      client.ask("SELECT id FROM Thing WHERE id = 'a'");
      client.ask("SELECT id FROM Thing WHERE id = 'b'");
      expect((await client.answer()).rows).toEqual([['a']]);
      expect((await client.answer()).rows).toEqual([['b']]);
    });
  });
});

describe('who asks', () => {
  test('is told by the password, and refused without it', async () => {
    const error = await refusalOf(withClient((client) => client.ping(), { password: 'wrong' }));
    expect(error.code).toBe(516);
    const { authorization } = await world.tokenFor({ principal: 'somebody' });
    const password = authorization.slice('Bearer '.length);
    expect((await withClient((client) => client.query('SELECT COUNT(*) AS n FROM Thing'), { password })).rows).toEqual([[3n]]);
  });

  test('names a branch as database', async () => {
    expect((await world.query("BRANCH dev FROM 'main'")).status).toBe(200);
    expect((await withClient((client) => client.query('SELECT COUNT(*) AS n FROM Thing'), { database: 'default' })).rows).toEqual(
      [[3n]],
    );
    expect((await withClient((client) => client.query('SELECT COUNT(*) AS n FROM Thing'), { database: 'dev' })).rows).toEqual([
      [3n],
    ]);
    const headers = { 'x-service-branch': 'dev' };
    expect((await world.call('POST', '/ingest?object_type=Thing', { id: 'on dev' }, headers)).status).toBe(200);
    for (const [database, rows] of [
      ['dev', [['on dev']]],
      ['default', []],
    ] as const)
      expect((await withClient((client) => client.query("SELECT id FROM Thing WHERE id = 'on dev'"), { database })).rows).toEqual(
        rows,
      );
    const error = await refusalOf(withClient((client) => client.ping(), { database: 'nowhere' }));
    expect(error.message).toContain('nowhere');
  });

  test('states what it asks about by settings', async () => {
    const before = { settings: { annals_as_of: '2000-01-01T00:00:00Z' } };
    await withClient(async (client) => {
      expect((await client.query('SELECT COUNT(*) AS n FROM Thing', before)).rows).toEqual([[0n]]);
      expect((await client.query('SELECT COUNT(*) AS n FROM Thing')).rows).toEqual([[3n]]);
    });
  });

  test('sees masks as /query shows them, and nothing of a protected type', async () => {
    const properties = {
      id: 'string',
      name: { type: 'string', masked: true },
      n: { type: 'integer', masked: true },
      open: 'string',
    };
    await world.call('POST', '/types', { name: 'Masked', properties, primary_key: 'id' });
    await world.call('POST', '/ingest?object_type=Masked', { id: 'm', name: 'Ada', n: 7, open: 'word' });
    const [shown] = await world.rows('SELECT name, n, open FROM Masked AS OF CURRENT');
    const { names, rows: found } = await withClient((client) => client.query('SELECT name, n, open FROM Masked'));
    expect(Object.fromEntries(names.map((name, i) => [name, found[0]![i]]))).toEqual(shown);
    expect(shown).toMatchObject({ open: 'word' });
    expect(shown!['name']).not.toBe('Ada');
    expect((await refusalOf(withClient((client) => client.query('SELECT * FROM SourceTrueIdentity')))).code).toBeGreaterThan(0);
  });

  test('leaves a record that names the door', async () => {
    await withClient((client) => client.query("SELECT word FROM Thing WHERE _pk = 'a'"));
    const { json } = await world.admin('GET', '/admin/audit/entries?limit=1000');
    const last = (json['entries'] as Record<string, unknown>[]).findLast(({ door }) => door === 'columnar-native');
    expect(last).toMatchObject({ action: 'query', object_type: 'Thing', row_count: 1, decision: 'allow' });
  });
});

describe('a long answer', () => {
  /** Some 40 MB, of which no socket holds a third. */
  const wide = `SELECT ${Array.from({ length: 60 }, (_, i) => `n AS n${i}`).join(', ')} FROM Many`;

  test.each([false, true])(
    'waits for a client that does not read, and is ended by its Cancel, compressed: %s',
    async (compressed) => {
      await withClient(
        async (client) => {
          client.ask(wide);
          await client.begun();
          client.socket.pause();
          client.cancel();
          client.socket.resume();
          const answer = await client.answer();
          expect(answer.rows.length).toBeLessThan(80_000);
          expect(answer.packets.at(-1)).toBe('end');
          expect((await client.query('SELECT 1 AS one')).rows).toEqual([[1n]]);
        },
        { compressed },
      );
    },
  );

  test('goes no further once rows of it were erased', async () => {
    const properties = { id: 'string', person: { type: 'string', subject: true }, n: 'string' };
    await world.call('POST', '/types', { name: 'Owned', properties, primary_key: 'id' });
    const lines = Array.from({ length: 20_000 }, (_, i) =>
      JSON.stringify({ id: `o${i}`, person: `p${i % 50}`, n: 'x'.repeat(40) }),
    );
    const headers = { authorization: `Bearer ${world.token}`, 'content-type': 'application/x-ndjson' };
    const body = { method: 'POST', headers, body: lines.join('\n') };
    expect(await (await fetch(`${world.door.dataUrl}/ingest?object_type=Owned`, body)).json()).toMatchObject({
      accepted: 20_000,
    });
    await withClient(async (client) => {
      client.ask(wide.replace('Many', 'Owned'));
      await client.begun();
      client.socket.pause();
      expect((await world.query("ERASE SUBJECT 'p1' REASON 'asked to' CERTIFY")).status).toBe(200);
      client.socket.resume();
      const error = await refusalOf(client.answer());
      expect(error.message).toMatch(/the connection was ended|rows of the answer were erased/);
    });
  });

  test('is sent to its end while the server shuts down; who asks nothing is let go of without a word', async () => {
    // However long a busy machine takes over it.
    const own = await StoreWorld.open({ SERVICE_BEARER_TOKEN: nativeSecret, SERVICE_DRAIN_TIMEOUT_SECS: '120' });
    const lines = Array.from({ length: 20_000 }, (_, i) => JSON.stringify({ n: i })).join('\n');
    const headers = { authorization: `Bearer ${own.token}`, 'content-type': 'application/x-ndjson' };
    await fetch(`${own.door.dataUrl}/ingest/auto?object_type=Many`, { method: 'POST', headers, body: lines });
    const [busy, idle] = [await NativeClient.connect(nativePort(own)), await NativeClient.connect(nativePort(own))];
    busy.ask(wide);
    await busy.begun();
    const closed = own.close();
    await idle.ended();
    expect(idle.waiting).toBe(0);
    expect((await busy.answer()).rows).toHaveLength(20_000);
    await busy.ended();
    await closed;
  });
});
