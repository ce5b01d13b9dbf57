/** Names of types belong to tenants: who defines one, who inherits it, what agreements share of it, and what nobody else learns. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EventStream } from './event-stream.ts';
import { TenantWorld } from './tenant-world.ts';

type Headers = Record<string, string>;

let world: TenantWorld;
/** Tokens without a role. */
let acme: Headers;
let globex: Headers;
beforeAll(async () => {
  world = await TenantWorld.open();
  acme = world.clerk;
  globex = await world.store.tokenFor({ principal: 'gil', tenant_id: 'globex' });
});
afterAll(() => world.close());

const query = async (who: Headers, sql: string): Promise<Record<string, unknown>> => world.ok(who, 'POST', '/query', { sql });
const rows = async (who: Headers, sql: string): Promise<readonly Record<string, unknown>[]> =>
  (await query(who, sql))['rows'] as Record<string, unknown>[];
const put = async (who: Headers, type: string, ...given: object[]): Promise<void> => {
  const reply = await world.call(who, 'POST', `/ingest?object_type=${type}`, given);
  expect([reply.status, reply.json['rejected']], reply.text).toEqual([200, 0]);
};

async function share(type: string, terms: object = {}): Promise<string> {
  const body = { assignee: 'globex', target: { types: [type] }, history: 'full', ...terms };
  const { id } = await world.ok(world.acme, 'POST', '/tenants/acme/sharing', body, 201);
  await world.ok(world.globex, 'PATCH', `/tenants/globex/sharing/${id as string}`, { state: 'accepted' });
  await world.ok(world.acme, 'PATCH', `/tenants/acme/sharing/${id as string}`, { state: 'active' });
  return id as string;
}

describe('one name in two tenants', () => {
  test('is two types, with columns, guards, masks and conflicts of their own', async () => {
    const parcel = (properties: object) => ({ name: 'Parcel', properties, primary_key: 'id' });
    await world.ok(acme, 'POST', '/types', parcel({ id: 'string', weight: 'number' }), 201);
    await world.ok(globex, 'POST', '/types', parcel({ id: 'integer', colour: 'string' }), 201);
    expect(await world.refusal(acme, 'POST', '/types', parcel({ id: 'string' }))).toEqual([409, 'REL_CONFLICT']);
    await put(acme, 'Parcel', { id: 'a', weight: 1.5 });
    await put(globex, 'Parcel', { id: 7, colour: 'red' });
    expect(await rows(acme, 'SELECT id, weight FROM Parcel')).toEqual([{ id: 'a', weight: 1.5 }]);
    expect(await rows(globex, 'SELECT id, colour FROM Parcel')).toEqual([{ id: 7, colour: 'red' }]);
    expect(await world.refusal(acme, 'POST', '/query', { sql: 'SELECT colour FROM Parcel' })).toEqual([
      400,
      'REL_UNKNOWN_COLUMN',
    ]);

    const before = await world.ok(acme, 'GET', '/types');
    const change = { properties: { weight: 'string', zz: { type: 'string', required: true } }, protected: true };
    expect((await world.call(globex, 'POST', '/types/Parcel/schema', change)).status).toBe(200);
    expect(await world.ok(acme, 'GET', '/types')).toEqual(before);
    await put(acme, 'Parcel', { id: 'b', weight: 2 });
    expect(await rows(acme, 'SELECT id FROM Parcel ORDER BY id')).toEqual([{ id: 'a' }, { id: 'b' }]);
    expect(await world.refusal(globex, 'POST', '/query', { sql: 'SELECT id FROM Parcel' })).toEqual([403, 'REL_HUMINT']);
  });

  test('what nobody but one tenant has, and what nobody has, are answered alike', async () => {
    await world.ok(acme, 'POST', '/types', { name: 'Secret', properties: { id: 'string' } }, 201);
    for (const [method, path, body] of [
      ['POST', '/query', { sql: 'SELECT * FROM NAME' }],
      ['POST', '/query', { sql: 'SELECT * FROM "acme"."NAME"' }],
      ['POST', '/query', { sql: 'EXPLAIN POLICY SELECT * FROM NAME' }],
      ['GET', '/types/NAME', undefined],
      ['POST', '/types/NAME/schema', { properties: { a: 'string' } }],
      ['POST', '/ingest?object_type=NAME', [{ id: 'a' }]],
      ['DELETE', '/types/NAME/a', undefined],
    ] as const) {
      const [one, other] = await Promise.all(
        ['Secret', 'Nobody'].map(async (name) => {
          const named = JSON.parse(JSON.stringify([path, body ?? null]).replaceAll('NAME', name)) as [string, object | null];
          const reply = await world.call(globex, method, named[0], named[1] ?? undefined);
          const { correlation_id: _, processing_time_ms: __, elapsed_ms: ___, as_of_system: ____, ...rest } = reply.json;
          return [reply.status, JSON.stringify(rest).replaceAll(name, 'NAME')];
        }),
      );
      expect([path, ...one!]).toEqual([path, ...other!]);
    }
  });
});

describe('a type that is registered without a tenant', () => {
  beforeAll(async () => {
    const type = { name: 'Ship', properties: { id: 'string', tons: 'integer' }, primary_key: 'id' };
    await world.ok(world.platform, 'POST', '/types', type, 201);
    await world.ok(world.platform, 'POST', '/types', { name: 'Open' }, 201);
  });

  test('is everybody’s, until one adds to it', async () => {
    await put(acme, 'Ship', { id: 's', tons: 3 });
    await put(globex, 'Ship', { id: 's', tons: 4 });
    await world.ok(globex, 'POST', '/types/Ship/schema', { properties: { tons: 'number', flag: 'string' } });
    await put(globex, 'Ship', { id: 't', tons: 0.5, flag: 'NL' });
    expect(await rows(globex, 'SELECT * FROM Ship ORDER BY id')).toMatchObject([{ tons: 4 }, { tons: 0.5, flag: 'NL' }]);
    expect((await query(acme, 'SELECT * FROM Ship'))['columns']).not.toContain('flag');
    expect((await world.call(acme, 'POST', '/ingest?object_type=Ship', [{ id: 'u', tons: 0.5 }])).json['rejected']).toBe(1);
    // The store's own changes reach whoever inherits, and nobody else.
    await world.ok(world.platform, 'POST', '/types/Ship/schema', { properties: { port: 'string' } });
    expect((await query(acme, 'SELECT * FROM Ship'))['columns']).toContain('port');
    expect((await query(globex, 'SELECT * FROM Ship'))['columns']).not.toContain('port');
  });

  test('keys of its rows are names that the writer alone sees, and types of columns are the writer’s own', async () => {
    await put(acme, 'Open', { id: '1', phone: '+49 30', 'ssn_of_john.smith': 'x' });
    await put(globex, 'Open', { id: '1', phone: 5 });
    expect((await query(globex, 'SELECT * FROM Open'))['columns']).not.toContain('ssn_of_john.smith');
    expect(JSON.stringify(await world.ok(globex, 'GET', '/types'))).not.toContain('ssn_of');
    expect(await rows(acme, 'SELECT phone FROM Open')).toEqual([{ phone: '+49 30' }]);
    expect(await rows(globex, 'SELECT phone FROM Open')).toEqual([{ phone: 5 }]);
  });

  test('can be registered anew by a tenant that has no rows of it, and by no other', async () => {
    const own = { name: 'Ship', properties: { hull: 'string' } };
    expect(await world.refusal(acme, 'POST', '/types', own)).toEqual([409, 'REL_CONFLICT']);
    const initech = await world.store.tokenFor({ tenant_id: 'initech' });
    await world.ok(initech, 'POST', '/types', own, 201);
    await put(initech, 'Ship', { hull: 'wood' });
    expect(await rows(initech, 'SELECT hull FROM Ship')).toEqual([{ hull: 'wood' }]);
    const builtin = { name: 'MemoryItem', properties: { content: 'integer' } };
    expect(await world.refusal(initech, 'POST', '/types', builtin)).toEqual([409, 'REL_CONFLICT']);
  });
});

describe('what guards a type', () => {
  test('is raised by whoever defines types, and taken back by the tenant’s administrator', async () => {
    await world.ok(acme, 'POST', '/types', { name: 'Dossier', properties: { id: 'string', who: 'string' } }, 201);
    await put(acme, 'Dossier', { id: 'c', who: 'Ann' });
    await world.ok(acme, 'POST', '/types/Dossier/schema', {
      properties: { who: { type: 'string', masked: true } },
      protected: true,
    });
    expect(await world.refusal(acme, 'POST', '/query', { sql: 'SELECT id FROM Dossier' })).toEqual([403, 'REL_HUMINT']);
    const back = { properties: { who: 'string' }, protected: false };
    const below = await world.store.tokenFor({ principal: 'eve', tenant_id: 'acme/eu', roles: ['tenant-admin'] });
    for (const who of [acme, below, globex]) {
      const expected = who === globex ? [404, 'REL_UNKNOWN_TYPE'] : [403, 'REL_ACL'];
      expect(await world.refusal(who, 'POST', '/types/Dossier/schema', back)).toEqual(expected);
    }
    await world.ok(world.acme, 'POST', '/types/Dossier/schema', back);
    expect(await rows(acme, 'SELECT who FROM Dossier')).toEqual([{ who: 'Ann' }]);
    const everybodys = { name: 'Strongbox', properties: { id: 'string' }, protected: true };
    await world.ok(world.platform, 'POST', '/types', everybodys, 201);
    const nobodys = await world.store.tokenFor({ principal: 'eve', roles: ['tenant-admin'] });
    const open = { properties: {}, protected: false };
    expect(await world.refusal(nobodys, 'POST', '/types/Strongbox/schema', open)).toEqual([403, 'REL_ACL']);
    await world.ok(world.platform, 'POST', '/types/Strongbox/schema', open);
  });
});

describe('what rows of a type are', () => {
  const meaning = { edge: { from: 'payer', to: 'payee' }, role: 'payment', identifier: ['reference', 'bank'], language: 'pt-BR' };
  const properties = {
    id: 'string',
    payer: 'string',
    payee: 'string',
    reference: 'integer',
    bank: 'string',
    emb: { type: 'vector', dims: 2 },
  };
  const said = async (name: string) => {
    const { edge, role, identifier, language } = await world.ok(acme, 'GET', `/types/${name}`);
    return { edge, role, identifier, language };
  };
  const nothing = { edge: undefined, role: undefined, identifier: undefined, language: undefined };

  test('is said when it is registered or later, shown, replaced and taken back', async () => {
    const body = { name: 'Payment', properties, ...meaning };
    expect(await world.ok(acme, 'POST', '/types', body, 201)).toMatchObject(meaning);
    expect(await said('Payment')).toEqual(meaning);
    expect(await world.ok(acme, 'POST', '/types', body)).toMatchObject({ ...meaning, changed: false });
    expect(await world.refusal(acme, 'POST', '/types', { ...body, role: 'sighting' })).toEqual([409, 'REL_CONFLICT']);
    const change = async (given: object) => (await world.ok(acme, 'POST', '/types/Payment/schema', given))['changed'];
    expect(await change({ role: 'payment' })).toBe(false);
    expect(await change({ properties: { more: 'string' } })).toBe(true);
    expect(await said('Payment')).toEqual(meaning);
    expect(await change({ role: 'transfer', edge: null })).toBe(true);
    expect(await said('Payment')).toEqual({ ...meaning, role: 'transfer', edge: undefined });
    await put(acme, 'Payment', { id: 'p', payer: 'a', payee: 'b', reference: 1 });
    const steps = [
      { name: 'Payment', language: null, identifier: ['more'] },
      { name: 'Seen', open: true, properties: { where: 'string' }, edge: { from: 'who', to: 'where' }, role: 'sighting' },
    ];
    await world.ok(acme, 'POST', '/ontology/migrate', { types: steps });
    expect(await said('Payment')).toEqual({ ...nothing, role: 'transfer', identifier: ['more'] });
    // Who is written first gives an open type its columns; what was said stays.
    await put(acme, 'Seen', { id: 's', who: 'a', where: 'b' });
    expect(await said('Seen')).toEqual({ ...nothing, edge: { from: 'who', to: 'where' }, role: 'sighting' });
    expect(await world.ok(acme, 'GET', '/types')).toMatchObject({
      types: expect.arrayContaining([expect.objectContaining({ name: 'Seen', role: 'sighting' })]),
    });
  });

  test('a role may have its columns under other names, a property a kind of identifier', async () => {
    const columns = { id: 'string', phone: { type: 'string', identifier: 'phone' }, payer: 'string', payee: 'string' };
    const role = { name: 'transfer', columns: { from: 'payer', to: 'payee' } };
    const body = { name: 'Wire', properties: columns, role };
    expect(await world.ok(acme, 'POST', '/types', body, 201)).toMatchObject({
      role,
      properties: { phone: { identifier: 'phone' } },
    });
    expect(await world.ok(acme, 'POST', '/types', body)).toMatchObject({ changed: false });
    const more = { properties: { mail: { type: 'string', identifier: 'email' } } };
    expect(await world.ok(acme, 'POST', '/types/Wire/schema', more)).toMatchObject({
      changed: true,
      role,
      properties: { phone: { identifier: 'phone' }, mail: { identifier: 'email' } },
    });
    expect(await world.ok(acme, 'POST', '/types/Wire/schema', { role: 'transfer' })).toMatchObject({
      changed: true,
      role: 'transfer',
    });
    const refused: readonly (readonly [object, string])[] = [
      [{ role: { name: 'transfer', columns: { from: 'paier' } } }, 'REL_UNKNOWN_COLUMN'],
      [{ properties: { fax: { type: 'string', identifier: 'telegraph' } } }, 'REL_INVALID'],
      [{ properties: { at: { type: 'timestamp', identifier: 'phone' } } }, 'REL_INVALID'],
    ];
    for (const [given, code] of refused)
      expect(await world.refusal(acme, 'POST', '/types/Wire/schema', given)).toEqual([400, code]);
  });

  test.each<[string, object, number, string]>([
    ['an end that is no property', { edge: { from: 'payer', to: 'paye' } }, 400, 'REL_UNKNOWN_COLUMN'],
    ['one end', { edge: { from: 'payer', to: 'payer' } }, 400, 'REL_INVALID'],
    ['half an edge', { edge: { from: 'payer' } }, 400, 'REL_INVALID'],
    ['an end of numbers in a row', { edge: { from: 'payer', to: 'emb' } }, 400, 'REL_INVALID'],
    ['no role', { role: '' }, 400, 'REL_INVALID'],
    ['an identifier of nothing', { identifier: [] }, 400, 'REL_INVALID'],
    ['an identifier that says a property twice', { identifier: ['bank', 'bank'] }, 400, 'REL_INVALID'],
    ['an identifier that is no property', { identifier: ['bnak'] }, 400, 'REL_UNKNOWN_COLUMN'],
    ['an identifier that is a vector', { identifier: ['emb'] }, 400, 'REL_INVALID'],
    ['a language that is none', { language: 'the one of the house' }, 400, 'REL_INVALID'],
  ])('is refused: %s', async (_, given, status, code) => {
    expect(await world.refusal(acme, 'POST', '/types', { name: 'Refused', properties, ...given })).toEqual([status, code]);
    await world.call(acme, 'POST', '/types', { name: 'Sound', properties });
    expect(await world.refusal(acme, 'POST', '/types/Sound/schema', given)).toEqual([status, code]);
    expect(await said('Sound')).toEqual(nothing);
  });
});

describe('a view', () => {
  const make = (who: Headers, name: string) =>
    query(who, `CREATE MATERIALIZED VIEW ${name} AS SELECT id FROM Ship REFRESH INCREMENTAL EVERY 60`);

  test('and a type of one tenant never share a name', async () => {
    await make(acme, 'v');
    for (const [path, body] of [
      ['/types', { name: 'v', properties: { id: 'string' } }],
      ['/ingest/auto?object_type=v', [{ id: 'x' }]],
      ['/ontology/migrate', { types: [{ name: 'v', properties: { id: 'string' } }] }],
    ] as const) {
      expect([path, await world.refusal(acme, 'POST', path, body)]).toEqual([path, [409, 'REL_CONFLICT']]);
    }
    const text = 'CREATE MATERIALIZED VIEW Dossier AS SELECT id FROM Ship REFRESH INCREMENTAL EVERY 60';
    expect(await world.refusal(acme, 'POST', '/query', { sql: text })).toEqual([409, 'REL_CONFLICT']);
  });

  test('of one tenant stays what it is, whatever others register by its name', async () => {
    const before = await rows(acme, 'SELECT * FROM v');
    await world.ok(globex, 'POST', '/ingest/auto?object_type=v', [{ id: 'x', odd: 1 }]);
    await world.ok(world.platform, 'POST', '/types', { name: 'v', properties: { id: 'string', more: 'string' } }, 201);
    expect(before).toEqual([{ id: 's' }]);
    expect(await rows(acme, 'SELECT * FROM v')).toEqual(before);
    expect(await rows(globex, 'SELECT odd FROM v')).toEqual([{ odd: 1 }]);
  });
});

describe('rows that an agreement shares', () => {
  let id: string;
  beforeAll(async () => {
    for (const who of [acme, globex]) {
      const weight = who === acme ? 'number' : 'string';
      const properties = { id: 'string', n: 'integer', weight, pin: 'string' };
      await world.ok(who, 'POST', '/types', { name: 'Load', properties, primary_key: 'id' }, 201);
    }
    await put(acme, 'Load', { id: 'a1', n: 1, weight: 1.5, pin: '1111' });
    await put(globex, 'Load', { id: 'g1', n: 2, weight: 'heavy', pin: '2222' });
    await put(acme, 'Load', { id: 'a2', n: 3, weight: 2.5, pin: '3333' });
    id = await share('Load', { target: { types: ['Load'], columns: ['id', 'n', 'weight'] } });
  });

  test('are read with one’s own, in one order, by one’s own definition', async () => {
    const reply = await query(globex, 'SELECT id, n, weight, pin FROM Load');
    expect(reply['rows']).toEqual([
      { id: 'a1', n: 1, weight: null, pin: null },
      { id: 'g1', n: 2, weight: 'heavy', pin: '2222' },
      { id: 'a2', n: 3, weight: null, pin: null },
    ]);
    expect(reply['notices']).toEqual([
      'rows of "Load" that acme shares have NULL in pin: not shared',
      'rows of "Load" that acme shares have NULL in weight: no such column there, or of another type',
    ]);
    expect(await query(globex, 'SELECT id, n FROM Load')).not.toHaveProperty('notices');
    expect(await rows(globex, 'SELECT COUNT(*) AS c, SUM(n) AS s FROM Load')).toEqual([{ c: 3, s: 6 }]);
    expect(await rows(globex, "SELECT n FROM Load WHERE _pk = 'a2'")).toEqual([{ n: 3 }]);
    expect(await rows(globex, 'SELECT id FROM Load ORDER BY n DESC LIMIT 2')).toEqual([{ id: 'a2' }, { id: 'g1' }]);
    const page = await query(globex, 'SELECT id FROM Load LIMIT 2');
    expect(page['rows']).toEqual([{ id: 'a1' }, { id: 'g1' }]);
    expect(await rows(globex, `SELECT id FROM Load LIMIT 2 AFTER '${String(page['cursor'])}'`)).toEqual([{ id: 'a2' }]);
    expect(await rows(acme, 'SELECT id FROM Load')).toEqual([{ id: 'a1' }, { id: 'a2' }]);
  });

  test('are named by their assigner, with the columns that they have there', async () => {
    expect(await rows(globex, 'SELECT id, weight FROM "acme"."Load" ORDER BY weight')).toEqual([
      { id: 'a1', weight: 1.5 },
      { id: 'a2', weight: 2.5 },
    ]);
    expect(await rows(globex, 'SELECT id FROM "globex"."Load"')).toEqual([{ id: 'g1' }]);
    expect(await rows(globex, 'SELECT a.id, Load.id AS own FROM "acme"."Load" AS a JOIN Load ON a.n = Load.n - 1')).toEqual([
      { id: 'a1', own: 'g1' },
    ]);
    const { plan } = await query(globex, 'EXPLAIN SELECT id FROM "acme"."Load"');
    expect(String(plan)).toContain('"acme"."Load"');
  });

  test('are followed as they come, by whichever name', async () => {
    for (const [name, id] of [
      ['Load', 'w1'],
      ['"acme"."Load"', 'w2'],
    ] as const) {
      const asked = new URLSearchParams({ sql: `SELECT id FROM ${name} WHERE n > 99`, purpose: 'test' }).toString();
      const stream = await new EventStream(world.store.door.port, `/watch/stream?${asked}`, globex).opened();
      await put(acme, 'Load', { id, n: 100 });
      await stream.until((events) => events.some(({ data }) => data.includes(`"${id}"`)));
      await stream.close();
      await world.ok(acme, 'DELETE', `/types/Load/${id}?hard=true`);
    }
  });

  test('come by the assigner’s definition where there is none of one’s own', async () => {
    await world.ok(acme, 'POST', '/types', { name: 'Dock', properties: { id: 'string', depth: 'number' } }, 201);
    await put(acme, 'Dock', { id: 'd', depth: 4.5 });
    const shared = await share('Dock');
    expect(await rows(globex, 'SELECT id, depth FROM Dock')).toEqual([{ id: 'd', depth: 4.5 }]);
    // A definition of one's own comes first from the next question on.
    await world.ok(globex, 'POST', '/types', { name: 'Dock', properties: { id: 'string', depth: 'string' } }, 201);
    expect(await rows(globex, 'SELECT id, depth FROM Dock')).toEqual([{ id: 'd', depth: null }]);
    await world.ok(world.acme, 'DELETE', `/tenants/acme/sharing/${shared}`);
    expect(await rows(globex, 'SELECT id FROM Dock')).toEqual([]);
  });

  test('do not stand in the way of one’s own when they are guarded', async () => {
    await world.ok(acme, 'POST', '/types/Load/schema', { properties: {}, protected: true });
    const reply = await query(globex, 'SELECT id FROM Load');
    expect(reply['rows']).toEqual([{ id: 'g1' }]);
    expect(reply['notices']).toEqual(['rows of "Load" that acme shares are left out: they are guarded']);
    expect(await world.refusal(globex, 'POST', '/query', { sql: 'SELECT id FROM "acme"."Load"' })).toEqual([403, 'REL_HUMINT']);
    await world.ok(world.acme, 'POST', '/types/Load/schema', { properties: {}, protected: false });
    expect(await rows(globex, 'SELECT id FROM Load')).toHaveLength(3);
  });

  test('end with the agreement', async () => {
    await world.ok(world.acme, 'DELETE', `/tenants/acme/sharing/${id}`);
    expect(await rows(globex, 'SELECT id FROM Load')).toEqual([{ id: 'g1' }]);
    expect(await world.refusal(globex, 'POST', '/query', { sql: 'SELECT id FROM "acme"."Load"' })).toEqual([
      404,
      'REL_UNKNOWN_TYPE',
    ]);
  });
});
