/** Rules of the specification seen from outside, over the whole store: rows in two times, types, tokens, audit. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { adminSecret, StoreWorld } from './store-world.ts';
import { send } from './door-world.ts';

let world: StoreWorld;
beforeAll(async () => {
  world = await StoreWorld.open();
});
afterAll(() => world.close());

const ingest = (type: string, body: unknown, query = '', headers = {}) =>
  world.call('POST', `/ingest?object_type=${type}${query}`, body, headers);

describe('types', () => {
  const person = {
    name: 'Person',
    properties: {
      name: { type: 'string', required: true, indexed: true },
      age: { type: 'integer' },
      face: { type: 'vector', dims: 3 },
      extra: 'json',
    },
    primary_key: 'name',
  };

  test('a type is registered once (201), and the same again is a no-op (200)', async () => {
    const first = await world.call('POST', '/types', person);
    expect([first.status, first.json['changed']]).toEqual([201, true]);
    const again = await world.call('POST', '/types', person);
    expect([again.status, again.json['changed'], again.json['ontology_version']]).toEqual([
      200,
      false,
      first.json['ontology_version'],
    ]);
  });

  test('what GET shows can be posted again', async () => {
    const shown = (await world.call('GET', '/types/Person')).json;
    expect(shown).toMatchObject({
      name: 'Person',
      primary_key: 'name',
      open: false,
      properties: {
        name: { type: 'string', required: true, indexed: true },
        face: { type: 'vector', dims: 3 },
        extra: { type: 'json' },
      },
    });
    expect((await world.call('POST', '/types', shown)).status).toBe(200);
    await world.call('POST', '/ingest/auto?object_type=Loose', { a: 1 });
    const loose = (await world.call('GET', '/types/Loose')).json;
    expect((await world.call('POST', '/types', loose)).status).toBe(200);
    const copy = await world.call('POST', '/types', { ...loose, name: 'LooseCopy' });
    expect(copy.json).toMatchObject({ name: 'LooseCopy', open: true, properties: loose['properties'] });
  });

  test('a conflicting definition is 409', async () => {
    const reply = await world.call('POST', '/types', { ...person, primary_key: 'age' });
    expect([reply.status, reply.json['type']]).toEqual([409, 'urn:annals:errors/REL_CONFLICT']);
  });

  test.each([
    ['an unknown attribute', { name: 'X', properties: { a: { type: 'string', requierd: true } } }],
    ['an unknown column type', { name: 'X', properties: { a: 'text' } }],
    ['an unknown field', { name: 'X', propertys: {} }],
    ['no name', { properties: {} }],
    ['a name that is too long', { name: 'x'.repeat(129) }],
    ['a system column', { name: 'X', properties: { system_from: 'integer' } }],
    ['a vector without dims', { name: 'X', properties: { v: 'vector' } }],
    ['a primary key that is not a property', { name: 'X', properties: { a: 'string' }, primary_key: 'b' }],
    ['__proto__ as a property', '{"name":"X","properties":{"__proto__":"string"}}'],
  ])('%s is 400', async (_name, body) => {
    expect((await world.call('POST', '/types', body)).status).toBe(400);
    expect((await world.call('GET', '/types/X')).status).toBe(404);
  });

  test('a schema evolves by adding and widening; narrowing is 409', async () => {
    const before = (await world.call('GET', '/types')).json['ontology_version'] as number;
    const added = await world.call('POST', '/types/Person/schema', { properties: { city: 'string', age: 'number' } });
    expect(added.json).toMatchObject({
      changed: true,
      ontology_version: before + 1,
      properties: { city: { type: 'string' }, age: { type: 'number' } },
    });
    expect((await world.call('POST', '/types/Person/schema', { properties: { age: 'integer' } })).status).toBe(409);
    const unknown = await world.call('POST', '/types/Nobody/schema', { properties: { a: 'string' } });
    expect([unknown.status, unknown.json['type']]).toEqual([404, 'urn:annals:errors/REL_UNKNOWN_TYPE']);
  });

  test('/ontology/migrate registers and evolves, in order', async () => {
    const reply = await world.call('POST', '/ontology/migrate', {
      types: [
        { name: 'Car', properties: { plate: 'string' }, primary_key: 'plate' },
        { name: 'Person', properties: { height: 'number' } },
      ],
    });
    expect(reply.status).toBe(200);
    expect((reply.json['types'] as { name: string; changed: boolean }[]).map(({ name, changed }) => [name, changed])).toEqual([
      ['Car', true],
      ['Person', true],
    ]);
    const listed = (await world.call('GET', '/types')).json;
    expect(listed['ontology_version']).toBe(reply.json['ontology_version']);
    expect((listed['types'] as { name: string }[]).map((type) => type.name)).toEqual(expect.arrayContaining(['Car', 'Person']));
  });

  test('/ontology/migrate does all of it or nothing', async () => {
    const before = (await world.call('GET', '/types')).json;
    for (const last of [
      { name: 'Person', properties: { height: 'boolean' } },
      { name: 'SourceTrueIdentity', properties: { a: 'string' } },
      { name: 'Van', properties: { doors: 'boolean' } },
      { name: 'Person', primary_key: 'another' },
    ]) {
      const types = [
        { name: 'Van', properties: { doors: 'integer' } },
        { name: 'Person', properties: { shoe: 'number' } },
      ];
      expect((await world.call('POST', '/ontology/migrate', { types: [...types, last] })).status).toBeGreaterThanOrEqual(400);
      expect((await world.call('GET', '/types')).json).toEqual(before);
    }
    // A type that comes twice is registered, then evolved; a second time nothing changes.
    const twice = [
      { name: 'Van', properties: { doors: 'integer' } },
      { name: 'Van', properties: { doors: 'number', plate: 'string' } },
      { name: 'Truck', open: true, properties: { axles: 'integer' } },
    ];
    const first = await world.call('POST', '/ontology/migrate', { types: twice });
    expect(first.json['types']).toMatchObject([
      { changed: true },
      { changed: true },
      { name: 'Truck', open: true, changed: true },
    ]);
    expect((await world.call('GET', '/types/Van')).json['properties']).toMatchObject({
      doors: { type: 'number' },
      plate: { type: 'string' },
    });
    const again = await world.call('POST', '/ontology/migrate', { types: twice.slice(1) });
    expect(again.json['types']).toMatchObject([{ changed: false }, { changed: false }]);
    expect(again.json['ontology_version']).toBe(first.json['ontology_version']);
  });
});

describe('ingest', () => {
  test('of an unregistered type is 404, and makes nothing', async () => {
    const reply = await ingest('Unheard', { a: 1 });
    expect([reply.status, reply.json['type']]).toEqual([404, 'urn:annals:errors/REL_UNKNOWN_TYPE']);
    expect((await world.call('GET', '/types/Unheard')).status).toBe(404);
  });

  test('rows that fail required-property validation are rejected in the response, the others are kept', async () => {
    await world.call('POST', '/types', {
      name: 'Strict',
      properties: { key: { type: 'string', required: true }, n: 'integer' },
      primary_key: 'key',
    });
    const rows = '{"key":"a","n":1}\n{"n":2}\n{"key":"b","n":"three"}\n{"key":"c","m":4}\n{"key":"d","n":5}\n';
    const reply = await ingest('Strict', rows);
    expect(reply.json).toMatchObject({ accepted: 2, rejected: 3, ids: ['a', 'd'] });
    expect((reply.json['errors'] as { index: number; code: string }[]).map(({ index, code }) => [index, code])).toEqual([
      [1, 'REL_REQUIRED'],
      [2, 'REL_TYPE_MISMATCH'],
      [3, 'REL_UNKNOWN_COLUMN'],
    ]);
    expect(await world.rows('SELECT key, n FROM Strict ORDER BY key')).toEqual([
      { key: 'a', n: 1 },
      { key: 'd', n: 5 },
    ]);
  });

  test('atomic=true writes all rows or none', async () => {
    await world.call('POST', '/types', {
      name: 'Whole',
      properties: { key: { type: 'string', required: true } },
      primary_key: 'key',
    });
    const refused = await ingest('Whole', '{"key":"a"}\n{"key":null}\n{"key":"b"}\n', '&atomic=true');
    expect([refused.status, refused.json['detail']]).toEqual([400, expect.stringContaining('1')]);
    expect(await world.rows('SELECT * FROM Whole')).toEqual([]);
    expect((await ingest('Whole', '{"key":"a"}\n{"key":"b"}\n', '&atomic=true')).json).toMatchObject({ accepted: 2 });
  });

  test('every row has a system_from of its own, and the reply names the first and the last', async () => {
    await world.call('POST', '/types', { name: 'Timed' });
    const { json, text } = await ingest('Timed', '{"id":"a"}\n{"id":"b"}\n{"id":"c"}\n');
    expect(json).toMatchObject({ accepted: 3, durability: 'synced' });
    const [first, last] = [/"system_from":(\d+)/.exec(text)?.[1], /"system_from_last":(\d+)/.exec(text)?.[1]];
    const shown = (await world.query('SELECT system_from FROM Timed')).text.match(/"system_from":\d+/g);
    expect(shown).toEqual([BigInt(first!), BigInt(first!) + 1n, BigInt(last!)].map((instant) => `"system_from":${instant}`));
  });

  test('a purpose that is not registered is 403', async () => {
    const reply = await ingest('Timed', { id: 'x' }, '&purpose=marketing');
    expect([reply.status, reply.json['type']]).toEqual([403, 'urn:annals:errors/REL_PURPOSE_UNKNOWN']);
  });
});

describe('rows in two times', () => {
  test('an update closes the old version and keeps it; a delete ends validity and keeps the row', async () => {
    await world.call('POST', '/types', { name: 'Fact', properties: { key: 'string', value: 'string' }, primary_key: 'key' });
    await ingest('Fact', { key: 'k', value: 'old' });
    await ingest('Fact', { key: 'k', value: 'new' });
    expect((await world.rows('SELECT value FROM Fact')).map((row) => row['value'])).toEqual(['old', 'new']);
    expect(await world.rows('SELECT value FROM Fact AS OF CURRENT')).toEqual([{ value: 'new' }]);

    const deleted = await world.call('DELETE', '/types/Fact/k');
    expect(deleted.json).toMatchObject({ type: 'Fact', id: 'k', deleted: 'soft' });
    expect(await world.rows('SELECT value FROM Fact AS OF CURRENT')).toEqual([]);
    expect((await world.rows('SELECT value FROM Fact')).length).toBe(3);

    const removed = await world.call('DELETE', '/types/Fact/k?hard=true');
    expect(removed.json).toMatchObject({ deleted: 'hard' });
    expect(await world.rows('SELECT value FROM Fact')).toEqual([]);
  });

  test('deleting what is not there is 404; deleting in an unknown type is 404', async () => {
    expect((await world.call('DELETE', '/types/Fact/nobody')).json['type']).toBe('urn:annals:errors/REL_NOT_FOUND');
    expect((await world.call('DELETE', '/types/Nothing/nobody')).json['type']).toBe('urn:annals:errors/REL_UNKNOWN_TYPE');
  });

  test('keys may hold anything that a URL can carry', async () => {
    for (const key of ['a/b', '50%', 'ü ñ', '?x=1&y#z', '..', 'a+b']) {
      await ingest('Fact', { key, value: 'v' });
      const reply = await world.call('DELETE', `/types/Fact/${encodeURIComponent(key)}`);
      expect([key, reply.status, reply.json['id']]).toEqual([key, 200, key]);
    }
  });
});

describe('query errors', () => {
  test.each([
    ['SELEC * FROM Fact', 400, 'REL_PARSE', /^1:1: /],
    ['SELECT *\nFROM Fact WHERE', 400, 'REL_PARSE', /^2:\d+: /],
    ['SELECT * FROM Nowhere', 404, 'REL_UNKNOWN_TYPE', /Nowhere/],
    ['SELECT nothing FROM Fact', 400, 'REL_UNKNOWN_COLUMN', /nothing/],
    ["INSERT INTO Fact (key) VALUES ('x')", 400, 'REL_READ_ONLY', /read-only, use ingest/],
    ["UPDATE Fact SET value = 'x'", 400, 'REL_READ_ONLY', /read-only, use ingest/],
    ['DELETE FROM Fact', 400, 'REL_READ_ONLY', /read-only, use ingest/],
    ['ALTER TABLE Fact ADD COLUMN x', 501, 'REL_NOT_IMPLEMENTED', /./],
    ['SELECT * FROM Fact LIMIT 1 OFFSET 1', 400, 'REL_PARSE', /OFFSET/],
    ["PURPOSE 'nobody' SELECT * FROM Fact", 403, 'REL_PURPOSE_UNKNOWN', /nobody/],
    ['SELECT * FROM LawfulInterceptRecord', 403, 'REL_HUMINT', /./],
    ['', 400, 'REL_PARSE', /./],
  ])('%j', async (sql, status, code, detail) => {
    const reply = await world.query(sql);
    expect([reply.status, reply.json['type']]).toEqual([status, `urn:annals:errors/${code}`]);
    expect(reply.json['detail']).toMatch(detail);
  });

  test('EXPLAIN returns a plan without rows of the type; ANALYZE adds what it took', async () => {
    const plain = await world.query("EXPLAIN SELECT value FROM Fact WHERE key = 'k'");
    expect((plain.json['plan'] as string[]).join('\n')).toMatch(/scan Fact/);
    expect(plain.json).not.toHaveProperty('actual_rows');
    const analyzed = await world.query('EXPLAIN ANALYZE SELECT value FROM Fact');
    expect(analyzed.json).toMatchObject({
      actual_rows: expect.any(Number) as unknown,
      processing_time_ms: expect.any(Number) as unknown,
      operators: [
        { part: 'answer', depth: 0, operator: 'project', state: 'read', rows_in: 12, rows_out: 12, memory_bytes: null },
        {
          part: 'answer',
          depth: 1,
          operator: 'scan',
          state: 'read',
          rows_in: null,
          rows_out: 12,
          rows_expected: 12,
          index: null,
        },
      ],
    });
  });

  test('a result over the cap is 406', async () => {
    const small = await StoreWorld.open({ SERVICE_MAX_RESULT_ROWS: '10' });
    await small.call('POST', '/ingest/auto?object_type=Many', '{"a":1}\n'.repeat(11));
    const reply = await small.query('SELECT * FROM Many');
    expect([reply.status, reply.json['type']]).toEqual([406, 'urn:annals:errors/REL_RESULT_CAP']);
    expect((await small.query('SELECT * FROM Many LIMIT 10')).status).toBe(200);
    await small.close();
  });
});

describe('tokens', () => {
  test('the bootstrap secret and the admin credential never authenticate data routes', async () => {
    const other = await StoreWorld.open({ SERVICE_BEARER_TOKEN: 'bootstrap-secret' });
    for (const secret of ['bootstrap-secret', adminSecret]) {
      expect((await other.call('POST', '/query', { sql: 'SELECT 1' }, { authorization: `Bearer ${secret}` })).status).toBe(401);
      expect((await other.call('POST', '/tokens/self/rotate', undefined, { authorization: `Bearer ${secret}` })).status).toBe(
        401,
      );
    }
    await other.close();
  });

  test('a mint shows its secret once and the registry holds none', async () => {
    const minted = await world.admin('POST', '/admin/tokens', {
      tenant_id: 'acme',
      principal: 'ana',
      roles: ['analyst'],
      attributes: { clearance: 2 },
      purposes: ['analytics'],
      expires_in_secs: 3600,
    });
    expect(minted.status).toBe(201);
    expect(minted.json).toMatchObject({ tenant_id: 'acme', organization: null, principal: 'ana', roles: ['analyst'] });
    expect(minted.json['expires_at']).toMatch(/^\d{4}-.*Z$/);
    const list = await world.admin('GET', '/admin/tokens');
    expect(list.text).toContain(minted.json['id'] as string);
    expect(list.text).not.toContain(minted.json['token'] as string);
    expect(list.text).not.toMatch(/[0-9a-f]{64}/);
  });

  test('a mint with a field it does not know, or a bad one, is 400', async () => {
    for (const body of [
      { tenant: 'acme' },
      { expires_in_secs: 0 },
      { roles: 'admin' },
      { tenant_id: 'a//b' },
      { tenant_id: 'acme', organization: 'globex' },
    ]) {
      expect((await world.admin('POST', '/admin/tokens', body)).status).toBe(400);
    }
  });

  test('a token bound to a tenant stays in it, whatever its header says', async () => {
    const bound = await world.tokenFor({ tenant_id: 'acme' });
    const ask = (path: string) => world.query('SELECT * FROM Fact', { ...bound, 'x-organization-id': path });
    for (const path of ['acme', 'acme/eu']) expect((await ask(path)).status).toBe(200);
    for (const path of ['globex', 'acme-evil', 'ACME']) {
      const reply = await ask(path);
      expect([path, reply.status, reply.json['type']]).toEqual([path, 403, 'urn:annals:errors/REL_XORG']);
    }
  });

  test('a PURPOSE clause agrees with the purpose of the request or stands alone', async () => {
    const sql = "PURPOSE 'test' SELECT * FROM Fact LIMIT 1";
    const who = await world.tokenFor({});
    expect((await world.call('POST', '/query', { sql }, who)).status).toBe(200);
    expect((await world.call('POST', '/query', { sql, purpose: 'test' }, who)).status).toBe(200);
    expect((await world.call('POST', '/query', { sql, purpose: 'analytics' }, who)).status).toBe(400);
    expect((await world.call('POST', '/query', { sql }, { ...who, 'x-service-purpose': 'analytics' })).status).toBe(400);
  });

  test('a token restricted to purposes must state one of them', async () => {
    const bound = await world.tokenFor({ purposes: ['test'] });
    expect((await world.query('SELECT * FROM Fact', bound)).json['type']).toBe('urn:annals:errors/REL_PURPOSE');
    expect((await world.call('POST', '/query', { sql: 'SELECT * FROM Fact', purpose: 'test' }, bound)).status).toBe(200);
    expect((await world.call('POST', '/query', { sql: 'SELECT * FROM Fact', purpose: 'analytics' }, bound)).status).toBe(403);
    // Routes without a field for it take it from the header.
    expect((await world.call('GET', '/types', undefined, { ...bound, 'x-service-purpose': 'analytics' })).status).toBe(403);
    for (const path of ['/types', '/tokens/self', '/audit/count', '/status']) {
      expect((await world.call('GET', path, undefined, { ...bound, 'x-service-purpose': 'test' })).status).toBe(200);
    }
  });

  test('rotating ends the old secret at once', async () => {
    const old = await world.tokenFor({ principal: 'rotating' });
    const rotated = await world.call('POST', '/tokens/self/rotate', undefined, old);
    expect(rotated.json).toMatchObject({ principal: 'rotating', token: expect.any(String) as unknown });
    expect((await world.query('SELECT * FROM Fact', old)).status).toBe(401);
    const fresh = { authorization: `Bearer ${rotated.json['token'] as string}` };
    expect((await world.query('SELECT * FROM Fact', fresh)).status).toBe(200);
  });

  test('one sees and revokes the tokens of one’s own tenant, and no others', async () => {
    const mine = await world.tokenFor({ tenant_id: 'initech', principal: 'peter' });
    const theirs = (await world.admin('POST', '/admin/tokens', { tenant_id: 'globex' })).json['id'] as string;
    const listed = (await world.call('GET', '/tokens/self', undefined, mine)).json['tokens'] as {
      id: string;
      tenant_id: string;
    }[];
    expect(listed.map((token) => token.tenant_id)).toEqual(['initech']);
    expect((await world.call('DELETE', `/tokens/self/${theirs}`, undefined, mine)).status).toBe(404);
    expect((await world.call('DELETE', `/tokens/self/${listed[0]!.id}`, undefined, mine)).json).toEqual({
      id: listed[0]!.id,
      revoked: true,
    });
    expect((await world.call('GET', '/tokens/self', undefined, mine)).status).toBe(401);
  });

  test('the administrator lists, rotates and revokes any', async () => {
    const { json } = await world.admin('POST', '/admin/tokens', { tenant_id: 'umbrella' });
    const rotated = await world.admin('POST', `/admin/tokens/${json['id'] as string}/rotate`);
    expect(rotated.json).toMatchObject({ tenant_id: 'umbrella', token: expect.any(String) as unknown });
    expect((await world.admin('DELETE', `/admin/tokens/${json['id'] as string}`)).status).toBe(404);
    expect((await world.admin('DELETE', `/admin/tokens/${rotated.json['id'] as string}`)).status).toBe(200);
  });

  test('minting past SERVICE_TOKEN_REGISTRY_MAX is 409', async () => {
    const small = await StoreWorld.open({ SERVICE_TOKEN_REGISTRY_MAX: '2' });
    expect((await small.admin('POST', '/admin/tokens', {})).status).toBe(201);
    const over = await small.admin('POST', '/admin/tokens', {});
    expect([over.status, over.json['type']]).toEqual([409, 'urn:annals:errors/REL_TOKEN_CAP']);
    await small.close();
  });

  test('without an admin credential the admin surface is 401 on free and 503 on server', async () => {
    const bare = await StoreWorld.open({ SERVICE_ADMIN_TOKEN: '' });
    expect((await send(bare.door.adminPort, 'GET', '/admin/tokens')).status).toBe(401);
    await bare.close();
    const server = await StoreWorld.open({
      SERVICE_PROFILE: 'server',
      SERVICE_HTTP_BIND: '127.0.0.1',
      SERVICE_ADMIN_TOKEN: '',
      SERVICE_BEARER_TOKEN: 'bootstrap-secret',
      SERVICE_PURPOSES: 'test',
      SERVICE_ERASURE_SIGNING_KEY: '11'.repeat(32),
      SERVICE_KEK: '22'.repeat(32),
    });
    for (const authorization of ['', 'Bearer bootstrap-secret']) {
      const reply = await send(server.door.adminPort, 'GET', '/admin/tokens', undefined, { authorization });
      expect([reply.status, reply.json['type']]).toEqual([503, 'urn:annals:errors/REL_UNAVAILABLE']);
    }
    await server.close();
  });
});

describe('audit', () => {
  test('every invocation leaves one entry: allowed, denied and failed', async () => {
    const principal = 'audited';
    const who = await world.tokenFor({ principal });
    await world.query("SELECT * FROM Fact WHERE key = 'canary-literal'", who);
    await world.query('SELEC', who);
    await world.query("PURPOSE 'nobody' SELECT * FROM Fact", who);
    await ingest('Fact', { key: 'audited', value: 'v' }, '&purpose=test', who);
    await world.call('POST', '/query', { q: 1 }, who);
    const { json, text } = await world.call('GET', `/audit/entries?principal=${principal}`);
    const entries = json['entries'] as Record<string, unknown>[];
    expect(
      entries.map((entry) => [entry['action'], entry['decision'], entry['code'], entry['object_type'], entry['purpose']]),
    ).toEqual([
      ['query', 'allow', null, 'Fact', null],
      ['query', 'error', 'REL_PARSE', null, null],
      ['query', 'deny', 'REL_PURPOSE_UNKNOWN', expect.anything(), 'nobody'],
      ['ingest', 'allow', null, 'Fact', 'test'],
      ['query', 'error', 'REL_INVALID', null, null],
    ]);
    expect(entries[0]).toMatchObject({
      template: expect.stringContaining('?') as unknown,
      query_digest: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown,
    });
    expect(text).not.toContain('canary-literal');
    const { json: counted } = await world.call('GET', `/audit/count?principal=${principal}`);
    expect(counted).toEqual({ count: 5, by_kind: { query: 4, ingest: 1 }, tree_size: expect.any(Number) });
  });

  test('a question over several types is found under each of them', async () => {
    await world.call('POST', '/types', { name: 'Other', properties: { id: 'string' } });
    const principal = 'joiner';
    const who = await world.tokenFor({ principal });
    expect((await world.query('SELECT a.id FROM Fact a JOIN Other b ON a.id = b.id', who)).status).toBe(200);
    for (const [type, count] of [
      ['Fact', 1],
      ['Other', 1],
      ['Fac', 0],
    ] as const) {
      const counted = await world.call('GET', `/audit/count?principal=${principal}&object_type=${type}`);
      expect(counted.json['count'], type).toBe(count);
    }
  });

  test('pages by a cursor, and refuses limits that are out of range', async () => {
    const first = (await world.call('GET', '/audit/entries?limit=2')).json;
    const second = (await world.call('GET', `/audit/entries?limit=2&after=${encodeURIComponent(first['next'] as string)}`)).json;
    const ids = [
      ...(first['entries'] as { correlation_id: string }[]),
      ...(second['entries'] as { correlation_id: string }[]),
    ].map((entry) => entry.correlation_id);
    expect(new Set(ids).size).toBe(4);
    for (const limit of ['0', '1001', '-1', 'x'])
      expect((await world.call('GET', `/audit/entries?limit=${limit}`)).status).toBe(400);
    for (const filter of ['after=garbage', 'after=1.2.3', 'since=yesterday', 'until=2024-13-01', 'since=1&since=2']) {
      expect([filter, (await world.call('GET', `/audit/entries?${filter}`)).status]).toEqual([filter, 400]);
    }
  });

  test('the admin listener sees entries of every tenant', async () => {
    const { json } = await world.admin('GET', '/admin/tokens/audit?limit=1000');
    const tenants = new Set((json['entries'] as { tenant_id: string | null }[]).map((entry) => entry.tenant_id));
    expect(tenants.has('acme')).toBe(true);
    expect(tenants.has(null)).toBe(true);
  });
});

describe('open development', () => {
  test('needs no credential while no token exists; the first one ends it', async () => {
    const bare = await StoreWorld.open({ SERVICE_OPEN_DEV_ALLOWED: 'true', SERVICE_ADMIN_TOKEN: '' });
    const ask = (headers: Record<string, string> = {}) =>
      send(bare.door.port, 'POST', '/query', { sql: 'SELECT * FROM Note' }, headers);
    expect((await send(bare.door.port, 'POST', '/ingest/auto?object_type=Note', { id: 'n' })).status).toBe(200);
    expect((await ask()).status).toBe(200);
    expect((await ask({ authorization: 'Bearer made-up' })).status).toBe(401);

    const minted = await send(bare.door.adminPort, 'POST', '/admin/tokens', {});
    expect(minted.status).toBe(201);
    expect((await ask()).status).toBe(401);
    expect((await ask({ authorization: `Bearer ${minted.json['token'] as string}` })).status).toBe(200);
    await bare.close();
  });

  test('is not open where nobody allowed it', async () => {
    const bare = await StoreWorld.open({ SERVICE_ADMIN_TOKEN: '' });
    expect((await send(bare.door.port, 'GET', '/status')).status).toBe(401);
    await bare.close();
  });
});
