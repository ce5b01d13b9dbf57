/** Specification, "Authentication" 4 and "License summary": /platform, on the admin listener and nowhere else. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { send } from './door-world.ts';
import { TenantWorld } from './tenant-world.ts';

let world: TenantWorld;
beforeAll(async () => {
  world = await TenantWorld.open();
});
afterAll(() => world.close());

const routes: [method: string, path: string, body: object | undefined][] = [
  ['GET', '/platform/tenants', undefined],
  ['GET', '/platform/tenants/acme', undefined],
  ['PATCH', '/platform/tenants/acme/tier', { tier: 'gold' }],
  ['POST', '/platform/tenants/acme/suspend', undefined],
  ['POST', '/platform/tenants/acme/reactivate', undefined],
  ['GET', '/platform/license', undefined],
  ['GET', '/platform/usage', undefined],
];

test.each(routes)('%s %s: 404 on the data listener, 401 without the admin credential, one record', async (method, path, body) => {
  const { port, adminPort } = world.store.door;
  const admin = { authorization: 'Bearer admin-secret-for-tests' };
  expect((await send(port, method, path, body, admin)).status).toBe(404);
  expect((await world.call(world.platform, method, path, body)).status).toBe(404);
  expect((await send(adminPort, method, path, body)).status).toBe(401);
  expect((await send(adminPort, method, path, body, world.platform)).status).toBe(401);
  const before = await world.records();
  await world.admin(method, path, body);
  expect((await world.records()) - before).toBe(1);
});

test('tiers change, and tenants that are gone are listed with the others', async () => {
  expect(await world.admin('PATCH', '/platform/tenants/acme/tier', { tier: 'platinum' })).toMatchObject({ tier: 'platinum' });
  expect(await world.ok(world.acme, 'GET', '/tenants/me')).toMatchObject({ tier: 'platinum' });
  await world.ok(world.platform, 'POST', '/tenants', { id: 'initech' }, 201);
  await world.admin('DELETE', '/platform/tenants/initech');
  const { tenants } = await world.admin('GET', '/platform/tenants');
  expect((tenants as Record<string, unknown>[]).map(({ id, state, deleted }) => [id, state, deleted])).toEqual([
    ['acme', 'active', null],
    ['globex', 'active', null],
    ['initech', 'deleted', 'tombstone'],
  ]);
  expect((await world.store.admin('PATCH', '/platform/tenants/initech/tier', { tier: 'x' })).status).toBe(404);
  expect((await world.store.admin('GET', '/platform/tenants/nobody')).status).toBe(404);
  expect((await world.store.admin('PATCH', '/platform/tenants/acme/tier', { tier: '' })).status).toBe(400);
});

describe('the license summary', () => {
  test('has exactly the fields of the specification', async () => {
    expect(await world.admin('GET', '/platform/license')).toEqual({
      tier: 'cluster',
      max_tenants: 0,
      storage_max_gb: 0,
      current_tenants: 2,
      remaining_tenants: -1,
      capabilities: [],
      expires_unix_secs: null,
      security_posture: { kms_dev_mode: false, cluster_fencing: true, grpc_tls: false, security_mode: 'strict' },
      cluster_license_consistency: { status: 'single_node', mismatched_peers: [] },
    });
  });

  test('says what free allows, and what is left of it', async () => {
    const settings = { SERVICE_PROFILE: 'free', SERVICE_SECURITY_MODE: 'open', SERVICE_KMS_LOCAL_DEV: 'true' };
    const free = await TenantWorld.open({ ...settings, SERVICE_UNSAFE_LOCAL_FENCING: 'true' });
    expect(await free.admin('GET', '/platform/license')).toMatchObject({
      tier: 'free',
      max_tenants: 1,
      storage_max_gb: 10,
      current_tenants: 1,
      remaining_tenants: 0,
      security_posture: { kms_dev_mode: true, cluster_fencing: false, security_mode: 'open' },
    });
    await free.close();
  });
});

test('usage of every tenant, and of the whole store beside it', async () => {
  await world.put(world.acme, 'Row', [{ id: 'a' }]);
  const usage = await world.admin('GET', '/platform/usage');
  expect(usage['total']).toMatchObject({ rows_stored: 1 });
  expect(usage['store_bytes']).toBeGreaterThan(1000);
});

test('the platform’s audit view has what everybody did, a tenant’s only its own', async () => {
  const admin = await world.admin('GET', '/admin/tokens/audit?limit=1000');
  const own = await world.ok(world.acme, 'GET', '/audit/entries?limit=1000');
  const tenantsIn = (page: Record<string, unknown>): Set<unknown> =>
    new Set((page['entries'] as Record<string, unknown>[]).map(({ tenant_id }) => tenant_id));
  expect(tenantsIn(own)).toEqual(new Set(['acme']));
  expect(tenantsIn(admin)).toEqual(new Set([null, 'acme']));
});
