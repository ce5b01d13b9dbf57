/** SERVICE_TENANCY_MODE=multi: rows are reached inside a registered tenant only, whoever asks. Specification, "Versioning" 5. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tenantlessCaller } from '../../src/governance/caller.ts';
import { NativeClient, nativePort } from '../doors/columnar/native-client.ts';
import { documentsConnected } from '../doors/document/document-client.ts';
import { codeOf, TenantWorld } from '../doors/http/tenant-world.ts';
import { objectToken, origin } from '../doors/object/object-client.ts';
import { connected } from '../doors/relational/relational-client.ts';

let world: TenantWorld;
beforeAll(async () => {
  world = await TenantWorld.open({
    SERVICE_TENANCY_MODE: 'multi',
    SERVICE_BEARER_TOKEN: objectToken,
    SERVICE_OBJECT_ENABLE: 'true',
    SERVICE_KV_ENABLE: 'true',
    SERVICE_DOCUMENT_ENABLE: 'true',
  });
  await world.put(world.clerk, 'Row', [{ id: 'a' }]);
});
afterAll(() => world.close());

const minted = (body: object) => world.store.admin('POST', '/admin/tokens', body);

describe('a token', () => {
  test('is minted for a registered tenant, or to look after them', async () => {
    expect((await minted({ tenant_id: 'acme/eu' })).status).toBe(201);
    expect((await minted({ roles: ['platform-admin'] })).status).toBe(201);
    expect(codeOf(await minted({ principal: 'x' }))).toEqual([400, 'REL_INVALID']);
    expect(codeOf(await minted({ tenant_id: 'nobody' }))).toEqual([404, 'REL_NOT_FOUND']);
  });

  test('of a tenant needs no header', async () => {
    expect(await world.keys(world.clerk, 'Row')).toEqual(['a']);
    expect(await world.keys({ ...world.clerk, 'x-organization-id': 'acme/eu' }, 'Row')).toEqual([]);
    expect(
      await world.refusal({ ...world.clerk, 'x-organization-id': 'globex' }, 'POST', '/query', { sql: 'SELECT id FROM Row' }),
    ).toEqual([403, 'REL_XORG']);
  });

  test.each([{}, { 'x-organization-id': 'acme' }, { 'x-organization-id': 'nobody' }])(
    'of no tenant reaches no row and no record of one, with headers %j',
    async (headers) => {
      const who = { ...world.platform, ...headers };
      for (const [method, path, body] of [
        ['POST', '/query', { sql: 'SELECT id FROM Row' }],
        ['GET', '/export?format=csv&sql=SELECT+id+FROM+Row', undefined],
        ['POST', '/ingest?object_type=Row', '{"id":"b"}'],
        ['DELETE', '/types/Row/a', undefined],
        ['POST', '/types', { name: 'Mine', properties: {} }],
        ['POST', '/schema/branches/mine', { from: 'main' }],
        ['GET', '/audit/entries', undefined],
      ] as const) {
        expect(await world.refusal(who, method, path, body), path).toEqual([403, 'REL_ACL']);
      }
      await world.ok(who, 'GET', '/tenants');
      // Store-wide names, as long as no path is named whose own things would come with them.
      const named = 'x-organization-id' in headers;
      expect((await world.call(who, 'GET', '/types')).status).toBe(named ? 403 : 200);
      expect((await world.call(who, 'GET', '/exhibits/any')).status).toBe(named ? 403 : 404);
    },
  );

  test('of before, whose tenant was never registered or no longer stands, reaches nothing', async () => {
    // As a store held it before it served many.
    const { gate, ids } = world.store.service;
    const stray = { ...tenantlessCaller('stray', 'none', 'http'), credential: 'token' as const, tenant: 'stray', path: 'stray' };
    const ask = gate.invoke(stray, { action: 'query', purpose: null, correlationId: ids.next() }, async (invocation) =>
      invocation.snapshot(),
    );
    await expect(ask).rejects.toMatchObject({ code: 'REL_ACL' });
  });
});

/** What each door answers who presents this password for this path. */
async function answers(
  password: string,
  path: string,
): Promise<Record<'kv' | 'document' | 'object' | 'relational' | 'native', string>> {
  const [user, { store }] = [path === '' ? 'tester' : `tester@${path}`, world];
  const word = (asked: Promise<unknown>): Promise<string> =>
    asked.then(
      () => 'served',
      (error: Error) => error.message,
    );
  const socket = connect(store.others.find(({ name }) => name === 'kv')!.port, '127.0.0.1');
  let kv = '';
  for (const line of [`AUTH ${user} ${password}`, 'ANNALS.SET purpose test', 'GET k']) {
    socket.write(`${line}\r\n`);
    kv = String((await once(socket, 'data'))[0]);
    if (kv.startsWith('-')) break;
  }
  socket.destroy();
  const auth = { username: user, password };
  const asked = { comment: { annals: { purpose: 'test' } } } as object;
  const document = await word(
    documentsConnected(store, { auth, authMechanism: 'PLAIN', authSource: '$external' }).then(async (client) => {
      await client.db('shop').collection('things').findOne({}, asked);
      await client.close();
    }),
  );
  const headers = {
    authorization: `Bearer ${password}`,
    'x-service-purpose': 'test',
    ...(path !== '' && { 'x-organization-id': path }),
  };
  const listed = await fetch(`${origin(store)}/`, { headers });
  const object = listed.ok ? 'served' : /<Code>(.*)<\/Code>/.exec(await listed.text())![1]!;
  const relational = await word(connected(store, { user, password }).then((client) => client.end()));
  const native = await word(
    NativeClient.connect(nativePort(store), { user, password }).then(async (client) => {
      await client.query('SELECT 1 AS one', { settings: { annals_purpose: 'test' } });
      client.end();
    }),
  );
  return { kv: kv === '$-1\r\n' ? 'served' : kv, document, object, relational, native };
}

test('doors with a shared secret refuse it, whatever path it names, and serve the registry token of a tenant', async () => {
  const unproven = 'missing or invalid credential';
  const refused = {
    kv: expect.stringMatching(/^-WRONGPASS /),
    document: 'Authentication failed.',
    object: 'InvalidAccessKeyId',
    native: `DB::Exception: ${unproven}`,
  };
  expect(await answers(objectToken, 'acme')).toEqual({ ...refused, relational: 'served' });
  expect(await answers(objectToken, '')).toEqual({ ...refused, relational: expect.stringContaining('names no organisation') });
  const token = world.clerk['authorization']!.slice('Bearer '.length);
  const served = { kv: 'served', document: 'served', object: 'served', native: 'served' };
  expect(await answers(token, 'acme')).toEqual({ ...served, relational: unproven });
  expect(await answers(token, '')).toMatchObject(served);
  const platform = world.platform['authorization']!.slice('Bearer '.length);
  expect(await answers(platform, '')).toMatchObject({ kv: refused.kv, document: refused.document, object: 'AccessDenied' });
});

test('with one tenant, the default, tokens of none work as they did', async () => {
  const single = await TenantWorld.open();
  expect((await single.store.admin('POST', '/admin/tokens', { principal: 'x' })).status).toBe(201);
  await single.put({}, 'Row', [{ id: 'z' }]);
  expect(await single.keys({}, 'Row')).toEqual(['z']);
  await single.close();
});
