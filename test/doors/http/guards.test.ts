/** Types declare what a reader must state: POST /types, POST /types/:name/schema and /ontology/migrate take it, GET shows it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tenantlessCaller } from '../../../src/governance/caller.ts';
import type { Command } from '../../../src/projections/command.ts';
import type { Reply } from './door-world.ts';
import { EventStream } from './event-stream.ts';
import { StoreWorld } from './store-world.ts';

let world: StoreWorld;
beforeAll(async () => {
  world = await StoreWorld.open();
});
afterAll(() => world.close());

const post = (path: string, body: unknown) => world.call('POST', path, body);
const shown = async (name: string): Promise<Record<string, unknown>> => (await world.call('GET', `/types/${name}`)).json;

test('a type is protected, needs a scope, and has columns that reference another', async () => {
  const properties = { name: 'string', of: { type: 'string', references: 'Plain' } };
  const reply = await post('/types', { name: 'Both', properties, protected: true, access_scope: true });
  expect(reply.status).toBe(201);
  expect(reply.json).toMatchObject({ protected: true, access_scope: true, properties: { of: { references: 'Plain' } } });
  const type = await shown('Both');
  expect(type).toMatchObject({ protected: true, access_scope: true });
  expect(type['properties']).toMatchObject({ name: expect.not.objectContaining({ references: expect.anything() }) });
});

test('a type that says nothing is neither, and what GET shows registers the same type again', async () => {
  await post('/types', { name: 'Plain', properties: { name: 'string' } });
  expect(await shown('Plain')).toMatchObject({ protected: false, access_scope: false });
  for (const name of ['Plain', 'Both']) {
    const again = await post('/types', await shown(name));
    expect([again.status, again.json['changed']]).toEqual([200, false]);
  }
});

test('a guard is raised later, alone or with columns, and taken back by an administrator alone', async () => {
  await post('/types', { name: 'Later', properties: { name: 'string' } });
  expect((await post('/types/Later/schema', { properties: {}, protected: true })).json).toMatchObject({
    changed: true,
    protected: true,
  });
  expect((await post('/types/Later/schema', { properties: { more: 'integer' } })).json).toMatchObject({
    protected: true,
    access_scope: false,
  });
  const lowered = await post('/types/Later/schema', { properties: {}, protected: false });
  expect([lowered.status, lowered.json['type']]).toEqual([403, 'urn:annals:errors/REL_ACL']);
  expect(lowered.json['detail']).toContain('platform-admin');
  const bare = await post('/types/Later/schema', { properties: { name: { type: 'string', masked: true } } });
  expect(bare.status).toBe(200);
  expect((await post('/types/Later/schema', { properties: { name: 'string' } })).status).toBe(403);
  const administrator = await world.tokenFor({ roles: ['platform-admin'] });
  const taken = { properties: { name: 'string' }, protected: false };
  const reply = await world.call('POST', '/types/Later/schema', taken, administrator);
  expect([reply.status, reply.json['protected']]).toEqual([200, false]);
  expect(await shown('Later')).toMatchObject({
    protected: false,
    properties: { name: expect.not.objectContaining({ masked: true }) },
  });
});

test('a migration registers and raises guards', async () => {
  const types = [
    { name: 'Migrated', properties: { a: 'string' }, access_scope: true },
    { name: 'Plain', access_scope: true },
  ];
  const reply = await post('/ontology/migrate', { types });
  expect(reply.json).toMatchObject({
    types: [
      { name: 'Migrated', access_scope: true, protected: false, changed: true },
      { name: 'Plain', access_scope: true, protected: false, changed: true },
    ],
  });
  expect(await shown('Plain')).toMatchObject({ access_scope: true });
});

test('a guard that is no yes or no, and a reference that is no text, are refused', async () => {
  for (const more of [{ protected: 'yes' }, { access_scope: 1 }, { properties: { a: { type: 'string', references: 5 } } }]) {
    expect((await post('/types', { name: 'Wrong', ...more })).status).toBe(400);
  }
});

const ingested = async (type: string, row: object, headers: Record<string, string> = opened): Promise<void> => {
  const { status, json } = await world.call('POST', `/ingest?object_type=${type}`, row, headers);
  expect([status, json['accepted']]).toEqual([200, 1]);
};
const codeOf = ({ status, json }: Reply): unknown => [status, String(json['type']).split('/').at(-1)];
const cleared = 'x-service-access-scope-ref';
const glass = 'x-service-break-glass';
/** Of somebody who may break the glass, and is cleared for two scopes. */
let opened: Record<string, string>;
let authorization: string;

describe('what a guard closes', () => {
  beforeAll(async () => {
    ({ authorization } = await world.tokenFor({
      principal: 'officer',
      roles: ['break-glass'],
      attributes: { access_scopes: 'scope-1, scope-2' },
    }));
    opened = { authorization, [glass]: 'imminent threat', [cleared]: 'scope-2' };
    await post('/types', { name: 'Source', properties: { name: 'string' }, protected: true });
    await post('/types', { name: 'Scoped', properties: { name: 'string' }, access_scope: true });
    await post('/types', { name: 'Report', properties: { text: 'string', origin: { type: 'string', references: 'Source' } } });
    await ingested('Source', { id: 's', name: 'canary' });
    await ingested('Scoped', { id: 's', name: 'canary' });
    await ingested('Report', { id: 'r', text: 'seen', origin: 's' });
  });

  const refusals = {
    'SELECT * FROM Source': 'REL_HUMINT',
    'SELECT COUNT(*) FROM Source': 'REL_HUMINT',
    'EXPLAIN SELECT * FROM Source': 'REL_HUMINT',
    'SELECT name FROM Scoped': 'REL_ACCESS_SCOPE',
    'SELECT r.text FROM Report r JOIN Source s ON r.text = s.name': 'REL_HUMINT',
    'SELECT origin FROM Report': 'REL_PROTECTED_COLUMN',
    "SELECT text FROM Report WHERE origin = 's'": 'REL_PROTECTED_COLUMN',
  };

  test.each(Object.entries(refusals))('%s is refused with %s to who states nothing', async (sql, code) => {
    for (const headers of [{}, { authorization }]) {
      const reply = await world.query(sql, headers);
      expect(codeOf(reply)).toEqual([403, `REL_${code.slice(4)}`]);
      expect(reply.text).not.toContain('canary');
    }
    expect((await world.query('SELECT text FROM Report')).json['rows']).toEqual([{ text: 'seen' }]);
  });

  test.each(Object.keys(refusals))('%s is answered to who may, and says what opens it', async (sql) => {
    expect((await world.query(sql, opened)).status).toBe(200);
  });

  test('a reason opens nothing without the right to state one, nor a scope that the credential is not cleared for', async () => {
    expect(codeOf(await world.query('SELECT name FROM Source', { [glass]: 'curious' }))).toEqual([403, 'REL_ACL']);
    expect(codeOf(await world.query('SELECT origin FROM Report', { [glass]: 'curious' }))).toEqual([403, 'REL_PROTECTED_COLUMN']);
    for (const ref of ['scope', 'scope-1, scope-2', 'scope-3', ' ']) {
      expect(codeOf(await world.query('SELECT name FROM Scoped', { authorization, [cleared]: ref }))).toEqual([
        403,
        'REL_ACCESS_SCOPE',
      ]);
    }
    expect(codeOf(await world.query('SELECT name FROM Source', { authorization, [glass]: ' ' }))).toEqual([403, 'REL_HUMINT']);
    // What opens the one leaves the other shut.
    expect(codeOf(await world.query('SELECT name FROM Scoped', { authorization, [glass]: 'threat' }))).toEqual([
      403,
      'REL_ACCESS_SCOPE',
    ]);
    expect(codeOf(await world.query('SELECT name FROM Source', { authorization, [cleared]: 'scope-1' }))).toEqual([
      403,
      'REL_HUMINT',
    ]);
  });

  test('a policy that names the reason opens it, for the rows that it is about only', async () => {
    const admin = tenantlessCaller('root', 'admin', 'test');
    const administer = (command: Command): Promise<unknown> =>
      world.service.gate.invoke(admin, { action: 'administer', purpose: null, correlationId: 'c' }, (invocation) =>
        invocation.submit(command),
      );
    const permit = (id: string, condition: string): Promise<unknown> =>
      administer({ kind: 'put-policy', id, text: `permit(principal, action, resource) when { ${condition} };` });
    const asked = async (reason = 'drill'): Promise<unknown> =>
      codeOf(await world.query('SELECT COUNT(*) FROM Source', { [glass]: reason }));
    try {
      await permit('drill', 'context has break_glass && context.break_glass == "drill"');
      expect((await world.query('SELECT COUNT(*) FROM Source', { [glass]: 'drill' })).status).toBe(200);
      expect(await asked('other')).toEqual([403, 'REL_ACL']);
      expect(codeOf(await world.query('SELECT COUNT(*) FROM Source'))).toEqual([403, 'REL_HUMINT']);
      // Beside a permit for all rows, one that names the reason for some rows opens nothing.
      await permit('drill', 'context has break_glass && resource has name && resource.name == "canary"');
      expect((await world.query('SELECT COUNT(*) FROM Source', { [glass]: 'drill' })).status).toBe(200);
      await permit('all', 'true');
      expect(await asked()).toEqual([403, 'REL_ACL']);
    } finally {
      await administer({ kind: 'delete-policy', id: 'drill' });
      await administer({ kind: 'delete-policy', id: 'all' });
    }
  });

  test('is written as it is read', async () => {
    const write = async (type: string, row: object, headers: Record<string, string>): Promise<unknown> =>
      codeOf(await world.call('POST', `/ingest?object_type=${type}`, row, headers));
    expect(await write('Source', { id: 'x' }, { authorization })).toEqual([403, 'REL_HUMINT']);
    expect(await write('Source', { id: 'x' }, { [glass]: 'threat' })).toEqual([403, 'REL_ACL']);
    expect(await write('Scoped', { id: 'x' }, { authorization })).toEqual([403, 'REL_ACCESS_SCOPE']);
    expect(await write('Report', { id: 'x', origin: 's' }, { authorization })).toEqual([403, 'REL_PROTECTED_COLUMN']);
    await ingested('Report', { id: 'y', text: 'no source' }, { authorization });
    for (const hard of ['', '?hard=true']) {
      const end = (headers: Record<string, string>): Promise<Reply> =>
        world.call('DELETE', `/types/Source/gone${hard}`, undefined, headers);
      expect(codeOf(await end({ authorization }))).toEqual([403, 'REL_HUMINT']);
      expect((await end(opened)).status).toBe(404);
    }
    expect((await world.rows('SELECT id FROM Source', opened)).map(({ id }) => id)).toEqual(['s']);
  });

  test('is stated by header, body or query, in one way', async () => {
    const sql = 'SELECT name FROM Source';
    const asked = (body: object, headers: Record<string, string> = {}): Promise<Reply> =>
      world.call('POST', '/query', { sql, ...body }, { authorization, ...headers });
    expect((await asked({ break_glass: 'threat' })).status).toBe(200);
    expect((await asked({ break_glass: 'threat' }, { [glass]: 'threat' })).status).toBe(200);
    expect(codeOf(await asked({ break_glass: 'threat' }, { [glass]: 'other' }))).toEqual([400, 'REL_INVALID']);
    expect(codeOf(await asked({ break_glass: 'x'.repeat(1_025) }))).toEqual([400, 'REL_INVALID']);
    expect(codeOf(await asked({ break_glass: 5 }))).toEqual([400, 'REL_INVALID']);
    const scoped = { sql: 'SELECT name FROM Scoped', access_scope_ref: 'scope-1' };
    expect((await world.call('POST', '/query', scoped, { authorization })).status).toBe(200);
    for (const path of ['/query/arrow', '/query/stream']) {
      expect((await world.call('POST', path, { sql, break_glass: 'threat' }, { authorization })).status).toBe(200);
      expect(codeOf(await world.call('POST', path, { sql }, { authorization }))).toEqual([403, 'REL_HUMINT']);
    }
    const exported = (more: string): Promise<Reply> =>
      world.call('GET', `/export?sql=${encodeURIComponent(sql)}${more}`, undefined, { authorization });
    expect((await exported('&break_glass=threat')).status).toBe(200);
    expect(codeOf(await exported(''))).toEqual([403, 'REL_HUMINT']);
    expect(codeOf(await exported('&break_glass=a&break_glass=b'))).toEqual([400, 'REL_INVALID']);
  });

  test('stands in the audit trail with the reason, whether or not it opened anything', async () => {
    const who = await world.tokenFor({ principal: 'recorded', roles: ['break-glass'] });
    await world.query('SELECT name FROM Source', { ...who, [glass]: 'threat' });
    await world.query('SELECT name FROM Scoped', { ...who, [cleared]: 'scope-9' });
    await world.query('SELECT text FROM Report', who);
    const { json } = await world.call('GET', '/audit/entries?principal=recorded');
    const entries = json['entries'] as Record<string, unknown>[];
    expect(entries.map((entry) => [entry['decision'], entry['code'], entry['break_glass'], entry['access_scope_ref']])).toEqual([
      ['allow', null, 'threat', null],
      ['deny', 'REL_ACCESS_SCOPE', null, 'scope-9'],
      ['allow', null, null, null],
    ]);
  });

  test('is followed by whoever stated the reason when they began to', async () => {
    const query = new URLSearchParams({ sql: 'SELECT name FROM Source', purpose: 'test' }).toString();
    const follow = (headers: Record<string, string>): EventStream =>
      new EventStream(world.door.port, `/watch/stream?${query}`, headers);
    const shut = await follow({ authorization }).opened();
    await shut.untilEnded();
    expect([shut.status, shut.body]).toEqual([403, expect.stringContaining('REL_HUMINT') as unknown]);
    const open = await follow(opened).opened();
    const told = (): unknown[] =>
      open.events.filter(({ event }) => event !== 'heartbeat').map(({ data }) => (JSON.parse(data) as { row: unknown }).row);
    await open.until(() => told().length === 1);
    await ingested('Source', { id: 't', name: 'second' });
    await open.until(() => told().length === 2);
    expect(told()).toEqual([{ name: 'canary' }, { name: 'second' }]);
    await open.close();
    await world.call('DELETE', '/types/Source/t?hard=true', undefined, opened);
  });

  test('stays shut on branches that were forked before', async () => {
    await post('/types', { name: 'Late', properties: { name: 'string' } });
    await post('/ingest?object_type=Late', { id: 'l', name: 'canary' });
    await post('/v1/namespaces/aside/branch', { branch_from: 'main' });
    const aside = (headers = {}): Promise<Reply> =>
      world.call('POST', '/query', { sql: 'SELECT name FROM Late', branch: 'aside' }, headers);
    expect((await aside()).status).toBe(200);
    await post('/types/Late/schema', { properties: {}, protected: true });
    expect(codeOf(await aside())).toEqual([403, 'REL_HUMINT']);
    expect((await aside(opened)).status).toBe(200);
  });
});

test('edges of a type that is guarded later are guarded as its rows are, whoever wrote them before', async () => {
  const triggers = [{ link_type: 'LATE_SENT', src_field: 'sender', dst_field: 'receiver' }];
  const properties = { id: 'string', sender: 'string', receiver: 'string' };
  await post('/types', { name: 'Letter', properties, primary_key: 'id', graph_triggers: triggers });
  await post('/ingest?object_type=Letter', { id: 'l1', sender: 'ada', receiver: 'bob' });
  await post('/types', { name: 'Party', properties: { id: 'string' }, primary_key: 'id' });
  await post('/ingest?object_type=Party', [{ id: 'ada' }, { id: 'bob' }]);
  const asked = [
    'SELECT from_id, to_id FROM LATE_SENT',
    'MATCH (a:Party)-[r:LATE_SENT]->(b:Party) RETURN a.id, b.id',
    "GRAPH_PAGERANK('Party', 'LATE_SENT')",
  ];
  const answered = async (): Promise<readonly (readonly [number, boolean])[]> => {
    const replies = await Promise.all(asked.map((sql) => post('/query', { sql })));
    const sparql = await world.call('POST', '/sparql', 'SELECT ?s ?o WHERE { ?s <urn:annals:LATE_SENT:to_id> ?o }', {
      'content-type': 'application/sparql-query',
    });
    const searched = await post('/search', { query: 'ada', type: 'LATE_SENT' });
    const exported = await world.call('GET', `/export?sql=${encodeURIComponent(asked[0]!)}`);
    return [...replies, searched, exported, sparql].map(({ status, text }) => [status, text.includes('bob')]);
  };
  expect((await answered()).slice(0, 3)).toEqual(Array(3).fill([200, true]));
  expect((await post('/types/Letter/schema', { properties: {}, protected: true })).status).toBe(200);
  const told = await Promise.all(['/types/LATE_SENT', '/types'].map((path) => world.call('GET', path)));
  const listed = (told[1]!.json['types'] as { name: string; protected: boolean }[]).find(({ name }) => name === 'LATE_SENT');
  expect([told[0]!.json['protected'], listed?.protected]).toEqual([true, true]);
  const late = await answered();
  expect(late.filter(([, shows]) => shows)).toEqual([]);
  expect(late.slice(0, 3).map(([status]) => status)).toEqual([403, 403, 403]);
  const holder = await world.tokenFor({ roles: ['break-glass'] });
  const opened = await world.call('POST', '/query', { sql: asked[0], break_glass: 'case 7' }, holder);
  expect([opened.status, opened.json['rows']]).toEqual([200, [{ from_id: 'ada', to_id: 'bob' }]]);
});
