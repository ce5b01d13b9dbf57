/** Integers beyond 2^53 and instants: what is sent is what is sought and stored, and what a reply gives can be sent back. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { adminRoutes, dataRoutes } from '../../../src/doors/http/routes/all.ts';
import { parseExactJson } from '../../../src/doors/shared/read-exact-json.ts';
import { every } from './every-route.ts';
import { StoreWorld } from './store-world.ts';

const odd = '9007199254740993';
const even = '9007199254740992';

let world: StoreWorld;
let memory: string;
beforeAll(async () => {
  world = await StoreWorld.open();
  const properties = { id: 'string', k: 'integer', note: 'string', doc: 'json' };
  await world.call('POST', '/types', { name: 'Mv', properties, primary_key: 'id' });
  const row = (id: string, k: string): string => `{"id":"${id}","k":${k},"note":"alpha ${id}","doc":{"k":${k}}}`;
  await world.call('POST', '/ingest?object_type=Mv', `[${row('even', even)},${row('odd', odd)}]`);
  const { text } = await world.call('POST', '/memory/remember', `{"content":"kettle","purpose":"test","fields":{"n":${odd}}}`);
  memory = (parseExactJson(contentOf(text)) as { id: string }).id;
});
afterAll(() => world.close());

/** What an envelope says, as it was sent. */
const contentOf = (text: string): string => (JSON.parse(text) as { content: [{ text: string }] }).content[0].text;

const where = (op: string, value: string): string => `"filters":[{"field":"k","op":"${op}","value":${value}}]`;
/** Filters that the row of the odd value passes, and the other does not. */
const filters: readonly string[] = [
  where('eq', odd),
  where('ne', even),
  where('gt', even),
  where('gte', odd),
  where('in', `[1,${odd}]`),
  where('between', `[${odd},${odd}]`),
];
/** And those that the other alone passes. */
const others: readonly string[] = [where('eq', even), where('lt', odd), where('lte', even)];
const tool = (name: string, members: string): string => `{"name":"${name}","arguments":{"purpose":"test",${members}}}`;
const rpc = (name: string, members: string): string =>
  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${tool(name, members)}}`;
const messages = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };

interface Sent {
  readonly path?: string;
  readonly body: string;
  readonly headers?: Record<string, string>;
  /** Which of the two values the reply holds; the other it does not. */
  readonly shows: string;
}

const shows = (value: string, bodies: readonly string[]): Sent[] => bodies.map((body) => ({ body, shows: value }));

/** By route: requests with an integer that a double would change. */
const exact: Readonly<Record<string, () => readonly Sent[]>> = {
  'POST /search': () => [
    ...shows(
      odd,
      filters.flatMap((each) => [`{"from":"Mv",${each}}`, `{"query":"alpha","type":"Mv",${each}}`]),
    ),
    ...shows(
      odd,
      filters.map((each) => `{"queries":[{"from":"Mv",${each}}]}`),
    ),
    ...shows(
      even,
      others.flatMap((each) => [`{"from":"Mv",${each}}`, `{"queries":[{"from":"Mv",${each}}]}`]),
    ),
    ...shows(odd, [`{"from":"Mv","filters":{"or":[{"field":"k","op":"eq","value":${odd}}]}}`]),
  ],
  'POST /multi-search': () =>
    shows(
      odd,
      filters.map((each) => `{"queries":[{"query":"alpha","type":"Mv",${each}}]}`),
    ),
  'POST /graphql': () => shows(odd, [`{"query":"query($k: Int) { Mv(where: {k: $k}) { k } }","variables":{"k":${odd}}}`]),
  'POST /mcp/tools/call': () =>
    shows(odd, [
      tool('get_entities', `"entity_type":"Mv","filters":{"k":${odd}}`),
      tool('search_entities', '"query":"alpha odd","entity_type":"Mv","limit":1'),
      tool('query', `"sql":"SELECT doc FROM Mv WHERE k = ${odd}"`),
      tool('hybrid_search', '"query":"alpha odd","entity_type":"Mv","limit":1'),
    ]),
  'POST /mcp': () =>
    [
      rpc('get_entities', `"entity_type":"Mv","filters":{"k":${odd}}`),
      rpc('query', `"sql":"SELECT doc FROM Mv WHERE k = ${odd}"`),
    ].map((body) => ({ body, shows: odd, headers: messages })),
};

/** By route: writes of such an integer into the column `n` of a type, which is read back by SQL. */
const written: Readonly<Record<string, () => readonly (Omit<Sent, 'shows'> & { readonly type: string })[]>> = {
  'POST /ingest': () => [{ path: '/ingest?object_type=A1', body: `[{"id":"a","n":${odd}}]`, type: 'A1' }],
  'POST /ingest/auto': () => [{ path: '/ingest/auto?object_type=A2', body: `[{"id":"a","n":${odd}}]`, type: 'A2' }],
  'POST /ingest/bulk': () => [{ path: '/ingest/bulk?object_type=A1', body: `{"id":"b","n":${odd}}\n`, type: 'A1' }],
  'PATCH /types/:name/:id': () => [{ path: '/types/A1/c', body: `{"n":${odd}}`, type: 'A1' }],
  'POST /memory/remember': () => [{ body: `{"content":"x","purpose":"test","fields":{"n":${odd}}}`, type: 'MemoryItem' }],
  'POST /memory/remember/batch': () => [
    { body: `{"purpose":"test","items":[{"content":"x","fields":{"n":${odd}}}]}`, type: 'MemoryItem' },
  ],
  'POST /memory/consolidate': () => [{ body: `{"purpose":"test","id":"${memory}","content":"kettle 2"}`, type: 'MemoryItem' }],
  'POST /rag/ingest': () => [
    { body: `{"purpose":"test","chunks":[{"content":"x","metadata":{"n":${odd}}}]}`, type: 'DocumentChunk' },
  ],
  'POST /mcp/tools/call': () => [{ body: tool('remember', `"content":"x","fields":{"n":${odd}}`), type: 'MemoryItem' }],
  'POST /mcp': () => [{ body: rpc('remember', `"content":"x","fields":{"n":${odd}}`), headers: messages, type: 'MemoryItem' }],
};

/** Bodies in which no value of a cell is sent: names, texts, bounds, words of SQL; steps of workflows refuse such integers by name. */
const takesNone: readonly string[] = `
POST /query|POST /query/stream|POST /query/arrow|POST /sparql|POST /lookup/register|POST /exhibits|POST /exhibits/:id/links
POST /types|POST /types/:name/schema|POST /ontology/migrate|POST /v1/namespaces/:name/branch|POST /schema/branches/:name
POST /mcp/initialize|POST /tokens/self/rotate|POST /api/v1/audit/export|POST /nl_query
POST /memory/recall|POST /memory/associate|POST /memory/associate/batch|POST /memory/summarise|POST /memory/replay/:id
POST /memory/quarantine/:id|POST /jobs|POST /jobs/:id/run|POST /jobs/:id/pause|POST /jobs/:id/resume|POST /jobs/:id/cancel|POST /workflows|POST /workflows/runs|POST /workflows/runs/:id/approve
PUT /types/:name/retention|POST /rules|POST /rules/sigma|POST /rules/:id/test|PUT /rules/:id
POST /tenants|PATCH /tenants/:id|POST /tenants/:id/suspend|POST /tenants/:id/reactivate|PUT /tenants/:id/quota
POST /tenants/:id/members|PATCH /tenants/:id/members/:pid|POST /tenants/:id/sharing|PATCH /tenants/:id/sharing/:aid
PUT /tenants/:id/config/search|POST /api/v1/tenants|POST /api/v1/tenants/:id/suspend|POST /api/v1/tenants/:id/resume
POST /admin/tokens|POST /admin/tokens/:id/rotate|POST /admin/audit/export|PUT /admin/policies/:id|POST /admin/policies/:id/rehearsal|POST /admin/compact
POST /admin/reindex|POST /admin/rotate-dek|POST /admin/backup|POST /admin/restore|PATCH /platform/tenants/:id/tier
POST /platform/tenants/:id/suspend|POST /platform/tenants/:id/reactivate`
  .trim()
  .split(/[|\n]/);

describe('integers beyond 2^53', () => {
  test('are sent by every route that takes a body, or it takes none', () => {
    const all = every.map(({ route }) => route).filter((route) => /^(POST|PUT|PATCH) /.test(route));
    const bodiless = [...dataRoutes, ...adminRoutes].filter((route) => route.body === undefined && route.reads === undefined);
    const known = [
      ...takesNone,
      ...Object.keys(exact),
      ...Object.keys(written),
      ...bodiless.map(({ method, path }) => `${method} ${path}`),
    ];
    expect(all.filter((route) => !known.includes(route))).toEqual([]);
    expect(takesNone.filter((route) => !all.includes(route))).toEqual([]);
  });

  test.each(Object.keys(exact))('%s finds the row that is meant, and shows it exactly', async (route) => {
    for (const { body, shows: value, headers = {} } of exact[route]!()) {
      const [method, path] = route.split(' ') as [string, string];
      const { status, text } = await world.call(method, path, body, headers);
      const rest = text.replaceAll(value, '');
      expect([body, status, text.includes(value), rest.includes(value === odd ? even : odd)]).toEqual([body, 200, true, false]);
    }
  });

  test.each(Object.keys(written))('%s stores what was sent', async (route) => {
    await world.call('POST', '/types', { name: 'A1', properties: { id: 'string', n: 'integer' }, primary_key: 'id' });
    await world.call('POST', '/ingest?object_type=A1', [{ id: 'c', n: 1 }]);
    for (const { path, body, type, headers = {} } of written[route]!()) {
      const [method, url] = route.split(' ') as [string, string];
      const reply = await world.call(method, path ?? url, body, { 'x-service-purpose': 'test', ...headers });
      expect([reply.status, reply.text], body).toEqual([expect.toSatisfy((status) => status < 300), expect.any(String)]);
      const read = (): Promise<{ text: string }> => world.query(`SELECT * FROM ${type} ORDER BY system_from DESC LIMIT 2`);
      await expect.poll(async () => (await read()).text).toContain(odd);
    }
  });

  test('are what they were in the record of a call', async () => {
    await world.call('POST', '/mcp/tools/call', tool('get_entities', `"entity_type":"Mv","filters":{"k":${odd}}`));
    const { text } = await world.query("SELECT arguments FROM ToolCall WHERE name = 'get_entities'");
    expect([text.includes(odd), text.includes(even)]).toEqual([true, false]);
  });

  test('are integers of 64 bits, and beyond them numbers', async () => {
    await world.call('POST', '/ingest/auto?object_type=Wide', '[{"id":"a","k":9223372036854775807,"x":1e20}]');
    const find = async (field: string, value: string): Promise<unknown> =>
      (await world.call('POST', '/search', `{"from":"Wide","filters":[{"field":"${field}","op":"eq","value":${value}}]}`)).json[
        'count'
      ];
    expect(await find('k', '9223372036854775807')).toBe(1);
    expect(await find('k', '9223372036854775806')).toBe(0);
    expect(await find('k', '99999999999999999999')).toBe(0);
    expect(await find('x', '100000000000000000000')).toBe(1);
  });

  test('a number that no double holds is refused, and so is an attribute that a policy could not compare', async () => {
    expect((await world.call('POST', '/memory/remember', '{"content":"x","purpose":"test","fields":{"n":1e400}}')).status).toBe(
      400,
    );
    const minted = await world.admin('POST', '/admin/tokens', `{"principal":"x","attributes":{"n":${odd}}}`);
    expect([minted.status, minted.json['detail']]).toEqual([400, expect.stringContaining('2^53')]);
  });

  test('the reader reads what JSON.parse reads, texts that look like numbers included', () => {
    const texts = [
      `{"a":"${odd}","b":"\\"${odd}","c":["\\\\",${odd},"x${odd}"],"${odd}":-${odd}}`,
      `[1.${odd},1e-${odd},${odd}.5,0.${odd},${odd}e2,9007199254740991,-9007199254740991,1234567890123456]`,
      `{"a":{"b":[{"c":${odd}}]},"d":null}`,
      `{"\\u0022":"\\u${'0031'}${odd}"}`,
    ];
    for (const text of texts) {
      const rounded = JSON.stringify(parseExactJson(text), (_, value: unknown) =>
        typeof value === 'bigint' ? Number(value) : value,
      );
      expect(rounded).toBe(JSON.stringify(JSON.parse(text)));
    }
    expect(parseExactJson(texts[0]!)).toMatchObject({ c: ['\\', BigInt(odd), `x${odd}`], [odd]: -BigInt(odd), a: odd });
    for (const text of [`{${odd}:1}`, `0${odd}`, `--${odd}`, `[${odd} 1]`, `"${odd}`, `${odd}x`])
      expect(() => parseExactJson(text), text).toThrow(SyntaxError);
  });
});

describe('instants', () => {
  const systemFrom = (text: string): string => /"system_from":(\d+)/.exec(text)![1]!;

  test('that a reply gives are taken as they came, as a number and as text, on every surface', async () => {
    const first = await world.call('POST', '/ingest?object_type=Mv', '[{"id":"t","k":1,"note":"gamma"}]');
    const since = systemFrom(first.text);
    const row = (await world.query("SELECT * FROM Mv WHERE id = 't'")).text;
    expect(systemFrom(row)).toBe(since);
    const remembered = await world.call('POST', '/memory/remember', { content: 'gamma ray', purpose: 'test' });
    const { id, valid_from: from } = parseExactJson(contentOf(remembered.text)) as { id: string; valid_from: bigint };
    const recalled = await world.call('POST', '/memory/recall', { query: 'gamma', purpose: 'test' });
    const { as_of_system: at } = parseExactJson(contentOf(recalled.text)) as { as_of_system: bigint };
    const sent = async (method: string, path: string, body?: string): Promise<unknown> => {
      const { status, text } = await world.call(method, path, body, { 'x-service-purpose': 'test' });
      return [path, body, status, status < 300 ? '' : text];
    };
    const good = (method: string, path: string, body?: string): Promise<void> =>
      expect(sent(method, path, body)).resolves.toEqual([path, body, expect.toSatisfy((status) => status < 300), '']);
    for (const quote of ['', '"']) {
      const [since_, at_, from_] = [since, at, from].map((each) => `${quote}${each}${quote}`);
      await good('POST', '/memory/recall', `{"query":"gamma","as_of":${at_}}`);
      await good('POST', '/memory/remember', `{"content":"gamma","valid_from":${from_}}`);
      await good('POST', '/search', `{"query":"gamma","type":"Mv","as_of":${since_},"as_of_system":${since_}}`);
      await good('POST', '/multi-search', `{"queries":[{"query":"gamma","type":"Mv"}],"as_of_system":${since_}}`);
      await good('POST', '/graphql', `{"query":"{ Mv { id } }","as_of":${since_},"as_of_system":${since_}}`);
      await good('POST', '/mcp/tools/call', tool('recall', `"query":"gamma","as_of":${at_}`));
      await good('POST', '/ingest?object_type=Mv', `[{"id":"u","k":1,"valid_from":${since}}]`);
      await good('POST', '/query', `{"sql":"SELECT id FROM Mv AS OF SYSTEM TIME ${since}"}`);
    }
    for (const path of [`/audit/entries?since=${since}&until=9223372036854775807`, `/memory/recall?q=gamma&as_of=${at}`])
      await good('GET', path);
    await good('PATCH', `/types/Mv/t?when=${since}`, '{"k":2}');
    await good('POST', '/memory/consolidate', `{"id":"${id}","content":"gamma burst","expected_version":${from}}`);
  });

  test('in seconds or milliseconds are refused, and a number of 1985 is not', async () => {
    const hint = 'nanoseconds; did you mean milliseconds?';
    for (const value of ['1795752551', '1795752551738', '"1795752551738"', '-1795752551']) {
      for (const [path, body] of [
        ['/memory/recall', `{"query":"x","purpose":"test","as_of":${value}}`],
        ['/memory/remember', `{"content":"x","purpose":"test","valid_from":${value}}`],
        ['/memory/consolidate', `{"id":"${memory}","content":"x","purpose":"test","expected_version":${value}}`],
        ['/search', `{"query":"x","type":"Mv","as_of":${value}}`],
        ['/graphql', `{"query":"{ Mv { id } }","as_of_system":${value}}`],
        ['/mcp/tools/call', tool('recall', `"query":"x","as_of":${value}`)],
      ] as const) {
        const { status, text } = await world.call('POST', path, body);
        expect([path, body, status, text]).toEqual([path, body, 400, expect.stringContaining(hint)]);
      }
      if (value.startsWith('"')) continue;
      const ingested = await world.call('POST', '/ingest?object_type=Mv', `[{"id":"v","k":1,"valid_from":${value}}]`);
      expect([value, ingested.json['accepted'], ingested.text]).toEqual([
        value,
        0,
        expect.stringContaining('did you mean milliseconds?'),
      ]);
    }
    expect((await world.query('SELECT id FROM Mv AS OF SYSTEM TIME 1795752551738')).text).toContain('did you mean milliseconds?');
    const old = `{"content":"old","purpose":"test","valid_from":473385600000000000}`;
    expect((await world.call('POST', '/memory/remember', old)).status).toBe(200);
  });
});

test('an integer that no double comes near is refused, and none of its digits is read', () => {
  const largest = `1${'0'.repeat(308)}`;
  expect(parseExactJson(`[${largest},-${largest}]`)).toEqual([BigInt(largest), -BigInt(largest)]);
  for (const digits of ['9'.repeat(311), '-9'.padEnd(100_000, '9')])
    expect(() => parseExactJson(`{"a":[${digits}]}`)).toThrow('a number is too large');
});
