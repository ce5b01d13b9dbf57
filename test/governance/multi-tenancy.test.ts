/** SERVICE_TENANCY_MODE=multi: rows are reached inside a registered tenant only, whoever asks. Specification, "Versioning" 5. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { untenanted } from '../../src/governance/caller.ts';
import { codeOf, TenantWorld } from '../doors/http/tenant-world.ts';

let world: TenantWorld;
beforeAll(async () => {
  world = await TenantWorld.open({ SERVICE_TENANCY_MODE: 'multi' });
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
    const stray = { ...untenanted('stray', 'none', 'http'), credential: 'token' as const, tenant: 'stray', path: 'stray' };
    const ask = gate.invoke(stray, { action: 'query', purpose: null, correlationId: ids.next() }, async (invocation) =>
      invocation.snapshot(),
    );
    await expect(ask).rejects.toMatchObject({ code: 'REL_ACL' });
  });
});

test('with one tenant, the default, tokens of none work as they did', async () => {
  const single = await TenantWorld.open();
  expect((await single.store.admin('POST', '/admin/tokens', { principal: 'x' })).status).toBe(201);
  await single.put({}, 'Row', [{ id: 'z' }]);
  expect(await single.keys({}, 'Row')).toEqual(['z']);
  await single.close();
});
