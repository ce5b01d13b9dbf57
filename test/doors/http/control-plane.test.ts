/** Specification, "States and transitions", the rows about tenants, and the control plane that most of them go through. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { tenantlessCaller } from '../../../src/governance/caller.ts';
import { send } from './door-world.ts';
import { TenantWorld } from './tenant-world.ts';

let world: TenantWorld;
beforeEach(async () => {
  world = await TenantWorld.open();
});
afterEach(() => world.close());

const routes: readonly (readonly [string, string, object?])[] = [
  ['POST', '/api/v1/tenants', { id: 'acme' }],
  ['GET', '/api/v1/tenants'],
  ['GET', '/api/v1/tenants/acme'],
  ['POST', '/api/v1/tenants/acme/suspend'],
  ['POST', '/api/v1/tenants/acme/resume'],
  ['GET', '/api/v1/tenants/acme/usage'],
  ['GET', '/api/v1/tenants/usage/summary'],
  ['DELETE', '/api/v1/tenants/acme'],
];

test('every route of the control plane is for who runs the store, and leaves one record whoever asks', async () => {
  for (const [method, path, body] of routes) {
    expect((await send(world.store.door.port, method, path, body)).status).toBe(401);
    const before = await world.records();
    expect(await world.refusal(world.clerk, method, path, body), path).toEqual([403, 'REL_ACL']);
    expect(await world.refusal(world.acme, method, path, body), path).toEqual([403, 'REL_ACL']);
    expect(await world.refusal(world.globex, method, path, body), path).toEqual([403, 'REL_ACL']);
    const reply = await world.call(world.platform, method, path, body);
    expect([path, reply.status], reply.text).toEqual([path, 200]);
    expect((await world.records()) - before).toBe(4);
    if (path.endsWith('/suspend')) await world.ok(world.platform, 'POST', '/api/v1/tenants/acme/resume');
  }
});

const put = async (): Promise<void> => {
  await world.put(world.acme, 'Row', [{ id: 'a' }, { id: 'b' }]);
  await world.put(world.acme, 'Row', [{ id: 'c' }], { 'x-organization-id': 'acme/eu' });
  await world.put(world.globex, 'Row', [{ id: 'a' }]);
};

describe('Tenant', () => {
  test.each([
    ['/tenants/acme/suspend', '/tenants/acme/reactivate'],
    ['/api/v1/tenants/acme/suspend', '/api/v1/tenants/acme/resume'],
  ])('active, suspend: suspended, and queries return 402; suspended, reactivate: active (%s)', async (suspend, resume) => {
    await put();
    expect(await world.ok(world.platform, 'POST', suspend)).toMatchObject({ id: 'acme', state: 'suspended' });
    expect(await world.ok(world.platform, 'POST', suspend)).toMatchObject({ state: 'suspended' });
    for (const [method, path, body] of [
      ['POST', '/query', { sql: 'SELECT id FROM Row' }],
      ['POST', '/ingest?object_type=Row', '{"id":"d"}'],
      ['GET', '/audit/count', undefined],
      ['PATCH', '/tenants/acme', { name: 'x' }],
    ] as const) {
      expect(await world.refusal(world.acme, method, path, body), path).toEqual([402, 'REL_TENANT_SUSPENDED']);
    }
    expect(await world.ok(world.acme, 'GET', '/tenants/me')).toMatchObject({ state: 'suspended' });
    await world.ok(world.acme, 'GET', '/tenants/acme/usage');
    expect(await world.keys(world.globex, 'Row')).toEqual(['a']);
    expect(await world.ok(world.platform, 'POST', resume)).toMatchObject({ state: 'active' });
    expect(await world.ok(world.platform, 'POST', resume)).toMatchObject({ state: 'active' });
    expect(await world.keys(world.acme, 'Row')).toEqual(['a', 'b', 'c']);
  });

  test.each(['active', 'suspended'])('%s, delete by tenant administration: soft, the record and the rows stay', async (state) => {
    await put();
    if (state === 'suspended') await world.ok(world.platform, 'POST', '/tenants/acme/suspend');
    expect(await world.ok(world.platform, 'DELETE', '/tenants/acme')).toEqual({ id: 'acme', deleted: 'soft' });
    expect(await world.refusal(world.acme, 'GET', '/tenants/me')).toEqual([401, 'REL_UNAUTHENTICATED']);
    expect(await world.refusal(world.platform, 'GET', '/tenants/acme')).toEqual([404, 'REL_NOT_FOUND']);
    expect(await world.refusal(world.platform, 'DELETE', '/tenants/acme')).toEqual([404, 'REL_NOT_FOUND']);
    expect(await world.refusal(world.platform, 'POST', '/tenants', { id: 'acme' })).toEqual([409, 'REL_CONFLICT']);
    expect(await world.admin('GET', '/platform/tenants/acme')).toMatchObject({
      state: 'deleted',
      deleted: 'soft',
      purged: false,
    });
    expect(world.store.service.store.projections.rows.table('acme', 'Row')!.counts.size).toBe(2);
  });

  test.each(['active', 'suspended'])('%s, delete by the control plane: purged, the rows are removed', async (state) => {
    await put();
    await world.store.call('POST', '/v1/namespaces/twig/branch', { branch_from: 'main' }, world.globex);
    if (state === 'suspended') await world.ok(world.platform, 'POST', '/tenants/acme/suspend');
    const gone = await world.ok(world.platform, 'DELETE', '/api/v1/tenants/acme');
    expect(gone).toEqual({ id: 'acme', deleted: 'purge', keys_removed: 3 });
    expect(await world.admin('GET', '/platform/tenants/acme')).toMatchObject({
      state: 'deleted',
      deleted: 'purge',
      purged: true,
    });
    expect(world.store.service.store.projections.rows.table('acme', 'Row')).toBe(undefined);
    expect(await world.keys(world.globex, 'Row')).toEqual(['a']);
    expect(await world.refusal(world.acme, 'POST', '/query', { sql: 'SELECT id FROM Row' })).toEqual([
      401,
      'REL_UNAUTHENTICATED',
    ]);
    // Nothing of it is left, so the id may be somebody else's.
    await world.ok(world.platform, 'POST', '/api/v1/tenants', { id: 'acme' }, 201);
    const heir = await world.store.tokenFor({ tenant_id: 'acme', roles: ['tenant-admin'] });
    // Neither rows nor names are left of the tenant before.
    expect(await world.refusal(heir, 'POST', '/query', { sql: 'SELECT id FROM Row' })).toEqual([404, 'REL_UNKNOWN_TYPE']);
    expect(await world.ok(heir, 'GET', '/tenants/acme/usage?since=2020-01-01')).toMatchObject({
      rows_stored: 0,
      rows_written: 0,
    });
  });

  test('a tenant of an id that was another’s does not get its replies, whatever idempotency key it states', async () => {
    const once = { 'idempotency-key': 'monday' };
    expect((await world.put(world.acme, 'Row', [{ id: 'a' }], once)).status).toBe(200);
    expect((await world.put(world.acme, 'Row', [{ id: 'other' }], once)).status).toBe(422);
    await world.ok(world.platform, 'DELETE', '/api/v1/tenants/acme');
    await world.ok(world.platform, 'POST', '/api/v1/tenants', { id: 'acme' }, 201);
    const heir = await world.store.tokenFor({ principal: 'ann', tenant_id: 'acme', roles: ['tenant-admin'] });
    const first = await world.put(heir, 'Row', [{ id: 'other' }], once);
    expect([first.status, first.json['accepted']]).toEqual([200, 1]);
    expect(await world.keys(heir, 'Row')).toEqual(['other']);
    // Its own replies it does get.
    const again = await world.put(heir, 'Row', [{ id: 'other' }], once);
    expect([again.status, again.json['system_from']]).toEqual([200, first.json['system_from']]);
    expect((await world.put(heir, 'Row', [{ id: 'a' }], once)).status).toBe(422);
  });

  test.each(['active', 'suspended'])('%s, delete by the platform: a tombstone is left', async (state) => {
    await put();
    await world.ok(world.platform, 'PATCH', '/tenants/acme', { name: 'Acme' });
    if (state === 'suspended') await world.admin('POST', '/platform/tenants/acme/suspend');
    const tombstone = await world.admin('DELETE', '/platform/tenants/acme');
    expect(tombstone).toMatchObject({ id: 'acme', name: '', state: 'deleted', deleted: 'tombstone', members: 0 });
    expect(await world.admin('GET', '/platform/tenants/acme')).toEqual(tombstone);
    expect((await world.store.admin('DELETE', '/platform/tenants/acme')).status).toBe(404);
    expect(await world.refusal(world.platform, 'POST', '/tenants', { id: 'acme' })).toEqual([409, 'REL_CONFLICT']);
    expect(await world.refusal(world.acme, 'GET', '/tenants/me')).toEqual([401, 'REL_UNAUTHENTICATED']);
  });

  test('deleted softly may still be purged, and a purge that was cut off goes on', async () => {
    await put();
    await world.ok(world.platform, 'DELETE', '/tenants/acme');
    const { gate, ids } = world.store.service;
    await gate.invoke(
      tenantlessCaller('admin', 'admin', 'test'),
      { action: 'administer', purpose: null, correlationId: ids.next() },
      async (invocation) => {
        await invocation.submit({ kind: 'delete-tenant', id: 'acme', manner: 'purge' });
        await invocation.submit({ kind: 'purge-tenant', id: 'acme', cursor: null, keysMax: 1 });
      },
    );
    expect(await world.ok(world.platform, 'DELETE', '/api/v1/tenants/acme')).toMatchObject({ keys_removed: 2 });
    expect(await world.refusal(world.platform, 'DELETE', '/api/v1/tenants/acme')).toEqual([404, 'REL_NOT_FOUND']);
  });

  test('absent, create at the tenant cap: an id that exists succeeds as a no-op, a new one is rejected', async () => {
    const capped = await TenantWorld.open({ SERVICE_MAX_TENANTS: '2' });
    const before = await capped.ok(capped.platform, 'GET', '/tenants/acme');
    for (const path of ['/tenants', '/api/v1/tenants']) {
      expect(await capped.ok(capped.platform, 'POST', path, { id: 'acme', name: 'New' })).toEqual(before);
      expect(await capped.refusal(capped.platform, 'POST', path, { id: 'initech' })).toEqual([409, 'REL_TENANT_CAP']);
    }
    await capped.ok(capped.platform, 'DELETE', '/tenants/globex');
    await capped.ok(capped.platform, 'POST', '/tenants', { id: 'initech' }, 201);
    await capped.close();
  });

  test.each(['free', 'server'])('the cap is one tenant on %s', async (profile) => {
    const one = await TenantWorld.open({ SERVICE_PROFILE: profile });
    expect((await one.ok(one.platform, 'GET', '/tenants'))['tenants']).toHaveLength(1);
    expect(await one.refusal(one.platform, 'POST', '/tenants', { id: 'globex' })).toEqual([409, 'REL_TENANT_CAP']);
    await one.close();
  });

  test('nobody’s, suspend or delete: there is no such tenant', async () => {
    for (const [method, path] of [
      ['POST', '/tenants/nobody/suspend'],
      ['POST', '/tenants/nobody/reactivate'],
      ['DELETE', '/tenants/nobody'],
      ['POST', '/api/v1/tenants/nobody/suspend'],
      ['POST', '/api/v1/tenants/nobody/resume'],
      ['DELETE', '/api/v1/tenants/nobody'],
      ['GET', '/api/v1/tenants/nobody/usage'],
    ] as const) {
      expect(await world.refusal(world.platform, method, path), path).toEqual([404, 'REL_NOT_FOUND']);
    }
  });
});

test('deleting a tenant ends its agreements, for the other side too', async () => {
  await put();
  const offer = { assignee: 'globex', target: { types: ['Row'] } };
  const { id } = await world.ok(world.acme, 'POST', '/tenants/acme/sharing', offer, 201);
  await world.ok(world.platform, 'DELETE', '/tenants/acme');
  const seen = await world.ok(world.globex, 'GET', `/tenants/globex/sharing/${id as string}`);
  expect(seen).toMatchObject({ state: 'revoked', events: [{ change: 'proposed' }, { change: 'revoked', principal: 'pat' }] });
});

test('the summary of usage has every tenant that stands, and their sums', async () => {
  await put();
  await world.store.rows('SELECT id FROM Row', world.globex);
  const summary = await world.ok(world.platform, 'GET', '/api/v1/tenants/usage/summary');
  const tenants = summary['tenants'] as Record<string, number>[];
  expect(
    tenants.map(({ tenant_id, rows_written, rows_stored, queries }) => [tenant_id, rows_written, rows_stored, queries]),
  ).toEqual([
    ['acme', 3, 3, 0],
    ['globex', 1, 1, 1],
  ]);
  const total = summary['total'] as Record<string, number>;
  for (const [name, sum] of Object.entries(total)) {
    expect([name, sum]).toEqual([name, tenants.reduce((all, tenant) => all + tenant[name]!, 0)]);
  }
  expect(await world.ok(world.platform, 'GET', '/api/v1/tenants/globex/usage')).toMatchObject({ rows_stored: 1, queries: 1 });
});

test('the audit trail says which command it was, and of whom only to those who know', async () => {
  await world.ok(world.platform, 'POST', '/tenants/acme/suspend');
  const { entries } = await world.ok(world.platform, 'GET', '/audit/entries?action=administer&limit=1000');
  const last = (entries as Record<string, unknown>[]).at(-1);
  expect(last).toMatchObject({
    principal: 'pat',
    template: 'suspend-tenant ?',
    query_digest: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  expect(JSON.stringify(entries)).not.toContain('acme');
});
