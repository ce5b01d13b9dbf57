/** Answers as Arrow, files and events over the whole store: what leaves, when it may, and what is recorded of it. */
import { request as httpRequest } from 'node:http';
import { tableFromIPC } from 'apache-arrow';
import { parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StoreWorld } from './store-world.ts';

let world: StoreWorld;
beforeAll(async () => {
  world = await StoreWorld.open();
  await world.call('POST', '/types', {
    name: 'Item',
    properties: { key: 'string', n: 'integer', x: 'number', text: 'string', doc: 'json', v: { type: 'vector', dims: 2 } },
    primary_key: 'key',
  });
  const rows = [
    '{"key":"a","n":9223372036854775807,"x":-0.0,"text":"","doc":{"k": 1.0},"v":[0.5,-1]}',
    '{"key":"b","n":-9223372036854775808,"x":1e20,"text":"é, \\"q\\"\\r\\n😀"}',
    '{"key":"c"}',
  ];
  const reply = await world.call('POST', '/ingest?object_type=Item', rows.join('\n'));
  if (reply.json['accepted'] !== 3) throw new Error(reply.text);
});
afterAll(() => world.close());

interface Raw {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
}

async function call(method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<Raw> {
  const reply = await fetch(world.door.dataUrl + path, {
    method,
    headers: { authorization: `Bearer ${world.token}`, ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: reply.status, headers: reply.headers, bytes: Buffer.from(await reply.arrayBuffer()) };
}

const exported = (parameters: Record<string, string>, headers: Record<string, string> = {}): Promise<Raw> =>
  call('GET', `/export?${new URLSearchParams(parameters).toString()}`, undefined, headers);

const typeOf = ({ headers }: Raw): string | null => headers.get('content-type');
const problemOf = ({ bytes }: Raw): Record<string, unknown> => JSON.parse(bytes.toString()) as Record<string, unknown>;
const lastRecords = async (limit: number): Promise<Record<string, unknown>[]> => {
  const { json } = await world.call('GET', '/audit/entries?limit=1000');
  return (json['entries'] as Record<string, unknown>[]).slice(-limit);
};

interface ServerEvent {
  readonly event: string;
  readonly data: string;
}

function eventsOf(text: string): ServerEvent[] {
  return text
    .split('\n\n')
    .filter((block) => block !== '' && !block.startsWith(':'))
    .map((block) => {
      const [event, data, ...rest] = block.split('\n');
      expect(rest).toEqual([]);
      return { event: event!.replace('event: ', ''), data: data!.replace('data: ', '') };
    });
}

const sql = 'SELECT key, n, x, text, doc, v, valid_to FROM Item';

describe('POST /query/arrow', () => {
  test('is an Arrow stream whose schema carries the envelope', async () => {
    const reply = await call('POST', '/query/arrow', { sql });
    expect([reply.status, typeOf(reply)]).toEqual([200, 'application/vnd.apache.arrow.stream']);
    const table = tableFromIPC(reply.bytes);
    const column = (name: string): unknown[] => Array.from(table.getChild(name)!);
    expect(column('key')).toEqual(['a', 'b', 'c']);
    expect(column('n')).toEqual([9_223_372_036_854_775_807n, -9_223_372_036_854_775_808n, null]);
    expect(column('x')).toEqual([-0, 1e20, null]);
    expect(column('text')).toEqual(['', 'é, "q"\r\n😀', null]);
    expect(column('doc')).toEqual(['{"k": 1.0}', null, null]);
    expect(column('valid_to')).toEqual([9_223_372_036_854_775_807n, 9_223_372_036_854_775_807n, 9_223_372_036_854_775_807n]);
    const facts = table.schema.metadata;
    expect(facts.get('annals.row_count')).toBe('3');
    expect(facts.get('annals.as_of_system')).toBe(reply.headers.get('x-service-as-of-system'));
    expect(JSON.parse(facts.get('annals.envelope')!)).toMatchObject({
      row_count: 3,
      columns: ['key', 'n', 'x', 'text', 'doc', 'v', 'valid_to'],
    });
  });

  test('carries provenance, of which files of rows only have no place', async () => {
    const asked = { sql: 'SELECT key FROM Item WITH PROVENANCE' };
    const { bytes } = await call('POST', '/query/arrow', asked);
    const envelope = JSON.parse(tableFromIPC(bytes).schema.metadata.get('annals.envelope')!) as { provenance: object[] };
    expect(envelope.provenance).toHaveLength(3);
    for (const format of ['csv', 'json', 'ndjson']) {
      const refused = await exported({ ...asked, format });
      expect([refused.status, problemOf(refused)['type']]).toEqual([400, 'urn:annals:errors/REL_INVALID']);
    }
    expect((await exported({ ...asked, format: 'parquet' })).status).toBe(200);
  });

  test('of no rows has its columns', async () => {
    const { bytes } = await call('POST', '/query/arrow', { sql: "SELECT key, v FROM Item WHERE key = 'none'" });
    const table = tableFromIPC(bytes);
    expect([table.numRows, table.schema.fields.map(({ name }) => name)]).toEqual([0, ['key', 'v']]);
  });

  test('answers failures as problem records', async () => {
    for (const [body, status, code] of [
      [{ sql: 'SELECT nothing FROM Item' }, 400, 'REL_UNKNOWN_COLUMN'],
      [{ sql: 'SELECT FROM' }, 400, 'REL_PARSE'],
      [{}, 400, 'REL_INVALID'],
      [{ sql: 'SELECT * FROM SigintIntercept' }, 403, 'REL_HUMINT'],
      [{ sql: "SIMILAR_IMAGE('media-1')" }, 501, 'REL_NOT_IMPLEMENTED'],
    ] as const) {
      for (const route of ['/query/arrow', '/query/stream']) {
        const reply = await call('POST', route, body);
        expect([reply.status, typeOf(reply)], `${route} ${JSON.stringify(body)}`).toEqual([status, 'application/problem+json']);
        expect(problemOf(reply)['type']).toBe(`urn:annals:errors/${code}`);
      }
    }
  });
});

describe('GET /export', () => {
  test('is CSV, exact, NULL and the empty text told apart', async () => {
    const reply = await exported({ sql });
    expect([reply.status, typeOf(reply)]).toEqual([200, 'text/csv; charset=utf-8; header=present']);
    expect(reply.headers.get('content-disposition')).toBe('attachment; filename="export.csv"');
    expect(reply.headers.get('x-service-row-count')).toBe('3');
    expect(reply.bytes.toString()).toBe(
      '"key","n","x","text","doc","v","valid_to"\r\n' +
        '"a",9223372036854775807,-0,"","{""k"": 1.0}","[0.5,-1]",9223372036854775807\r\n' +
        '"b",-9223372036854775808,1e+20,"é, ""q""\r\n😀",,,9223372036854775807\r\n' +
        '"c",,,,,,9223372036854775807\r\n',
    );
  });

  test('is JSON, NDJSON, Arrow or Parquet when asked by name or by Accept', async () => {
    const named = (format: string) => exported({ query: 'SELECT key, n FROM Item', format });
    const accepted = (accept: string) => exported({ query: 'SELECT key, n FROM Item' }, { accept });
    const json = '[{"key":"a","n":9223372036854775807},{"key":"b","n":-9223372036854775808},{"key":"c","n":null}]';
    const lines = `${json.slice(1, -1).replaceAll('},{', '}\n{')}\n`;
    for (const reply of [await named('json'), await accepted('application/json')]) {
      expect([typeOf(reply), reply.bytes.toString()]).toEqual(['application/json; charset=utf-8', json]);
    }
    for (const reply of [await named('ndjson'), await accepted('text/html, text/csv;q=0.5, application/x-ndjson;q=0.8')]) {
      expect([typeOf(reply), reply.bytes.toString()]).toEqual(['application/x-ndjson; charset=utf-8', lines]);
    }
    for (const reply of [await named('arrow'), await accepted('application/vnd.apache.arrow.stream')]) {
      expect([...tableFromIPC(reply.bytes).getChild('n')!]).toEqual([
        9_223_372_036_854_775_807n,
        -9_223_372_036_854_775_808n,
        null,
      ]);
    }
    for (const reply of [await named('parquet'), await accepted('application/vnd.apache.parquet')]) {
      const { buffer, byteOffset, length } = reply.bytes;
      const file = buffer.slice(byteOffset, byteOffset + length) as ArrayBuffer;
      expect(await parquetReadObjects({ file, compressors })).toEqual([
        { key: 'a', n: 9_223_372_036_854_775_807n },
        { key: 'b', n: -9_223_372_036_854_775_808n },
        { key: 'c', n: null },
      ]);
    }
    expect(typeOf(await accepted('image/png, */*'))).toMatch(/^text\/csv/);
  });

  test('takes one question, and a question only', async () => {
    for (const parameters of [{}, { sql: 'SELECT 1 FROM Item', query: 'SELECT 1 FROM Item' }, { sql, format: 'xlsx' }]) {
      const reply = await exported(parameters as Record<string, string>);
      expect([reply.status, problemOf(reply)['type']]).toEqual([400, 'urn:annals:errors/REL_INVALID']);
    }
    for (const statement of ['BRANCH other FROM main', "WATCH PURPOSE 'p' SELECT key FROM Item"]) {
      const reply = await exported({ sql: statement });
      expect([reply.status, problemOf(reply)['detail']]).toEqual([400, expect.stringContaining('only queries')]);
    }
    expect((await exported({ sql: 'DELETE FROM Item' })).status).toBe(400);
    expect((await exported({ sql, branch: 'nowhere' })).status).toBe(404);
    expect((await exported({ sql: `SELECT key FROM Item WHERE key = '\ud800'` })).status).toBe(200);
  });

  test('is an action of its own, recorded before the first byte with its purpose and its rows', async () => {
    await exported({ sql: "PURPOSE 'test' SELECT key FROM Item", purpose: 'test' });
    await exported({ sql: 'SELECT nothing FROM Item' });
    const [first, second] = (await lastRecords(3)).filter(({ action }) => action === 'export').slice(-2);
    expect(first).toMatchObject({ action: 'export', purpose: 'test', object_type: 'Item', row_count: 3, decision: 'allow' });
    expect(second).toMatchObject({ action: 'export', row_count: 0 });
    expect((await exported({ sql }, { 'x-service-purpose': 'test' })).status).toBe(200);
    expect((await exported({ sql, purpose: 'analytics' }, { 'x-service-purpose': 'test' })).status).toBe(400);
  });

  test('HEAD has the headers and no body; other verbs are refused', async () => {
    const head = await call('HEAD', `/export?${new URLSearchParams({ sql }).toString()}`);
    expect([head.status, typeOf(head), head.bytes.length]).toEqual([200, 'text/csv; charset=utf-8; header=present', 0]);
    for (const [verb, path, allow] of [
      ['POST', '/export', 'GET, HEAD'],
      ['OPTIONS', '/export', 'GET, HEAD'],
      ['GET', '/query/arrow', 'POST'],
      ['OPTIONS', '/query/stream', 'POST'],
    ] as const) {
      const reply = await call(verb, path);
      expect([reply.status, reply.headers.get('allow')]).toEqual([405, allow]);
    }
  });
});

describe('POST /query/stream', () => {
  test('sends the schema, rows in groups, then the envelope', async () => {
    const lines = Array.from(
      { length: 1_234 },
      (_, i) => `{"id":"${i}","n":${9_007_199_254_740_993n + BigInt(i)},"doc":[${i},\t{}]}`,
    );
    const many = await world.call('POST', '/ingest/auto?object_type=Many', lines.join('\n'));
    expect(many.json['accepted']).toBe(1_234);
    const reply = await call('POST', '/query/stream', { sql: 'SELECT id, n, doc FROM Many LIMIT 1200' });
    expect([reply.status, typeOf(reply), reply.headers.get('cache-control')]).toEqual([
      200,
      'text/event-stream; charset=utf-8',
      'no-store',
    ]);
    const events = eventsOf(reply.bytes.toString());
    expect(events.map(({ event }) => event)).toEqual(['schema', 'rows', 'rows', 'rows', 'end']);
    expect(JSON.parse(events[0]!.data)).toMatchObject({
      columns: [
        { name: 'id', type: 'string' },
        { name: 'n', type: 'integer' },
        { name: 'doc', type: 'json' },
      ],
    });
    const groups = events.slice(1, 4).map(({ data }) => JSON.parse(data) as { id: string }[]);
    expect(groups.map(({ length }) => length)).toEqual([500, 500, 200]);
    expect(groups.flat().map(({ id }) => id)).toEqual(Array.from({ length: 1_200 }, (_, i) => String(i)));
    expect(events[1]!.data).toContain('"n":9007199254740993,');
    expect(JSON.parse(events[4]!.data)).toMatchObject({
      row_count: 1_200,
      estimatedTotalHits: 1_234,
      columns: ['id', 'n', 'doc'],
    });
    expect(events[4]!.data).toContain('"cursor"');
  });

  test('an answer without rows is a schema and an end', async () => {
    const { bytes } = await call('POST', '/query/stream', { sql: "SELECT key FROM Item WHERE key = 'none'" });
    expect(eventsOf(bytes.toString()).map(({ event }) => event)).toEqual(['schema', 'end']);
  });
});

describe('typo_tolerance', () => {
  const spelled = [
    { typo_tolerance: { enabled: false, min_word_size: 4, disable_on_words: ['sku'], disable_on_attributes: ['id'] } },
    { typoTolerance: { enabled: true, minWordSize: 0, disableOnWords: [], disableOnAttributes: [] } },
  ];
  const wrong = [
    { typo_tolerance: { unknown: 1 } },
    { typo_tolerance: { min_word_size: -1 } },
    { typo_tolerance: { min_word_size: 1.5 } },
    { typo_tolerance: { enabled: 'yes' } },
    { typoTolerance: { disable_on_words: 'sku' } },
    { typo_tolerance: true },
    { typo_tolerance: {}, typoTolerance: {} },
    { typo_tolerance: { min_word_size: 1, minWordSize: 2 } },
  ];

  test.each(['/query', '/query/arrow', '/query/stream'])('has one shape on %s', async (route) => {
    for (const member of spelled) expect((await call('POST', route, { sql, ...member })).status).toBe(200);
    for (const member of wrong) {
      const reply = await call('POST', route, { sql, ...member });
      expect([reply.status, problemOf(reply)['type']], JSON.stringify(member)).toEqual([400, 'urn:annals:errors/REL_INVALID']);
    }
  });

  test('finds words that differ by an edit, where it is asked for', async () => {
    const words = async (query: string, tolerance?: object): Promise<number> => {
      const statement = `SELECT key FROM Item WHERE MATCH(text, '${query}')`;
      const body = { sql: statement, ...(tolerance && { typo_tolerance: tolerance }) };
      return problemOf(await call('POST', '/query', body))['row_count'] as number;
    };
    expect([await words('q'), await words('qq'), await words('qq', {})]).toEqual([1, 0, 1]);
    for (const off of [
      { enabled: false },
      { min_word_size: 3 },
      { disable_on_words: ['qq'] },
      { disable_on_attributes: ['text'] },
    ])
      expect(await words('qq', off)).toBe(0);
  });
});

test('/openapi.json names the three, with their parameters', async () => {
  const { json } = await world.call('GET', '/openapi.json');
  const paths = json['paths'] as Record<string, Record<string, { parameters?: { name: string }[] }>>;
  const named = paths['/export']?.['get']?.parameters?.map(({ name }) => name);
  expect(named).toEqual(expect.arrayContaining(['sql', 'query', 'format', 'purpose', 'branch']));
  expect([paths['/query/arrow']?.['post'], paths['/query/stream']?.['post']]).not.toContain(undefined);
});

test('a client that goes away in the middle leaves a server that answers', async () => {
  const rows = Array.from({ length: 20_000 }, (_, i) => `{"id":"${i}","text":"${'x'.repeat(200)}"}`);
  for (let from = 0; from < rows.length; from += 4_000) {
    await world.call('POST', '/ingest/auto?object_type=Wide', rows.slice(from, from + 4_000).join('\n'));
  }
  const paths = ['csv', 'json', 'ndjson', 'arrow', 'parquet'].map(
    (format) => `/export?${new URLSearchParams({ sql: 'SELECT * FROM Wide', format }).toString()}`,
  );
  await Promise.all(
    paths.map(
      (path) =>
        new Promise<void>((resolve, reject) => {
          const request = httpRequest(
            { port: world.door.port, path, headers: { authorization: `Bearer ${world.token}` } },
            (response) => {
              response.once('data', () => {
                request.destroy();
                resolve();
              });
            },
          );
          request.on('error', reject);
          request.end();
        }),
    ),
  );
  expect((await call('GET', '/health')).status).toBe(200);
  const whole = await exported({ sql: 'SELECT id FROM Wide', format: 'csv' });
  expect(whole.bytes.toString().split('\r\n').length).toBe(20_002);
});
