/** Specification, "Other HTTP routes": tenant administration over a whole store, by everybody who may and who may not. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { send } from './door-world.ts';
import { codeOf, TenantWorld } from './tenant-world.ts';

let world: TenantWorld;
beforeAll(async () => {
  world = await TenantWorld.open();
});
afterAll(() => world.close());

const terms = { assignee: 'globex', target: { types: ['Parcel'] } };

/** Every route, and who of platform, a tenant's own administrator and a member without a role may use it. */
const routes: readonly (readonly [method: string, path: string, body: object | undefined, own: boolean])[] = [
  ['GET', '/tenants', undefined, false],
  ['POST', '/tenants', { id: 'acme' }, false],
  ['GET', '/tenants/acme', undefined, true],
  ['PATCH', '/tenants/acme', { name: 'Acme' }, true],
  ['PATCH', '/tenants/acme', { tier: 'gold' }, false],
  ['GET', '/tenants/acme/quota', undefined, true],
  ['PUT', '/tenants/acme/quota', {}, false],
  ['GET', '/tenants/acme/usage', undefined, true],
  ['GET', '/tenants/acme/members', undefined, true],
  ['POST', '/tenants/acme/members', { principal: 'mo', role: 'r' }, true],
  ['GET', '/tenants/acme/members/mo', undefined, true],
  ['PATCH', '/tenants/acme/members/mo', { role: 's' }, true],
  ['DELETE', '/tenants/acme/members/mo', undefined, true],
  ['GET', '/tenants/acme/sharing', undefined, true],
  ['POST', '/tenants/acme/sharing', terms, true],
  ['GET', '/tenants/acme/config/search', undefined, true],
  ['PUT', '/tenants/acme/config/search', { config: {} }, true],
  ['POST', '/tenants/acme/suspend', undefined, false],
  ['POST', '/tenants/acme/reactivate', undefined, false],
];

describe('who may use', () => {
  beforeAll(async () => {
    await world.put(world.acme, 'Parcel', [{ id: 'p' }]);
  });

  afterEach(() => world.ok(world.platform, 'POST', '/tenants/acme/reactivate'));

  test.each(routes)('%s %s %j', async (method, path, body, own) => {
    // `acme` is spelled with every id in turn: one's own, another's, and nobody's.
    const of = (id: string): string => path.replace('acme', id);
    expect((await send(world.store.door.port, method, path, body)).status, 'nobody').toBe(401);
    const before = await world.records();
    expect(await world.refusal(world.clerk, method, path, body), 'without a role').toEqual([403, 'REL_ACL']);
    expect(await world.refusal({}, method, path, body), 'of no tenant').toEqual([403, 'REL_ACL']);
    const foreign = await world.call(world.globex, method, of('acme'), body);
    const unknown = await world.call(world.globex, method, of('nowhere'), body);
    expect(codeOf(foreign), 'of another tenant').toEqual(own ? [404, 'REL_NOT_FOUND'] : [403, 'REL_ACL']);
    const said = ({ status, json }: typeof foreign): unknown => [status, json['type'], json['detail']];
    expect(said(foreign), 'as of none at all').toEqual(said(unknown));
    const reply = await world.call(world.acme, method, path, body);
    if (own) expect(reply.status, reply.text).toBeLessThan(300);
    else expect(codeOf(reply), 'of the tenant itself').toEqual([403, 'REL_ACL']);
    // What the tenant's administrator has done can't always be done twice.
    if (!(own && /members|sharing/.test(path)))
      expect((await world.call(world.platform, method, path, body)).status).toBeLessThan(300);
    expect((await world.records()) - before, 'a record each').toBe(own && /members|sharing/.test(path) ? 5 : 6);
  });

  test('a token of a part of the tenant looks after nothing, whatever its roles', async () => {
    const part = await world.store.tokenFor({ tenant_id: 'acme/eu', roles: ['tenant-admin'] });
    for (const id of ['acme', 'acme%2Feu']) {
      expect(await world.refusal(part, 'GET', `/tenants/${id}`)).toEqual([403, 'REL_ACL']);
      expect(await world.refusal(part, 'GET', `/tenants/${id}/usage`)).toEqual([403, 'REL_ACL']);
      expect(await world.refusal(part, 'POST', `/tenants/${id}/members`, { principal: 'x', role: 'y' })).toEqual([
        403,
        'REL_ACL',
      ]);
    }
  });

  test('the role platform-admin of a tenant’s token runs nothing', async () => {
    const token = await world.store.tokenFor({ tenant_id: 'acme', roles: ['platform-admin'] });
    expect(await world.refusal(token, 'POST', '/tenants', { id: 'mine' })).toEqual([403, 'REL_ACL']);
    expect(await world.refusal(token, 'GET', '/tenants')).toEqual([403, 'REL_ACL']);
  });

  test('the admin credential is none of the data listener’s', async () => {
    const reply = await send(world.store.door.port, 'GET', '/tenants', undefined, {
      authorization: 'Bearer admin-secret-for-tests',
    });
    expect(reply.status).toBe(401);
  });
});

describe('a tenant', () => {
  test('is registered, shown, renamed and listed', async () => {
    const made = await world.ok(
      world.platform,
      'POST',
      '/tenants',
      {
        id: 'initech',
        name: 'Initech',
        tier: 'silver',
        quota: { query_units: 5, in_flight: null },
        search: { stop_words: ['the'] },
        members: [{ principal: 'bill', role: 'boss' }],
      },
      201,
    );
    const quota = { query_units: 5, in_flight: null, storage_bytes: null, subscriptions: null, requests_per_second: null };
    expect(made).toEqual({
      id: 'initech',
      name: 'Initech',
      tier: 'silver',
      state: 'active',
      quota,
      members: 1,
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      changed_at: made['created_at'],
    });
    expect(await world.ok(world.platform, 'GET', '/tenants/initech')).toEqual(made);
    const renamed = await world.ok(world.platform, 'PATCH', '/tenants/initech', { name: 'Initrode', tier: 'gold' });
    expect(renamed).toMatchObject({ name: 'Initrode', tier: 'gold', created_at: made['created_at'] });
    expect(renamed['changed_at']).not.toBe(made['changed_at']);
    const { tenants } = await world.ok(world.platform, 'GET', '/tenants');
    expect((tenants as { id: string }[]).map(({ id }) => id)).toEqual(['acme', 'globex', 'initech']);
    expect(await world.refusal(world.platform, 'PATCH', '/tenants/initech', {})).toEqual([400, 'REL_INVALID']);
  });

  test('that is registered again stays as it is, whatever is asked', async () => {
    const before = await world.ok(world.platform, 'GET', '/tenants/acme');
    const again = await world.ok(world.platform, 'POST', '/tenants', { id: 'acme', name: 'Other', tier: 'other' });
    expect(again).toEqual(before);
  });

  test.each([
    { id: 'a/b' },
    { id: '' },
    { id: ' a' },
    { id: 'a,b' },
    { id: 'x', colour: 1 },
    { id: 'x', quota: { pace: 1 } },
    {},
  ])('is not registered as %j', async (body) => {
    expect(await world.refusal(world.platform, 'POST', '/tenants', body)).toEqual([400, 'REL_INVALID']);
  });

  test('knows itself as me', async () => {
    expect(await world.ok(world.acme, 'GET', '/tenants/me')).toMatchObject({ id: 'acme' });
    // Whoever looks after nothing sees which tenant is theirs, and no figure of anybody else.
    const mine = await world.ok(world.clerk, 'GET', '/tenants/me');
    expect(mine).toMatchObject({ id: 'acme', state: 'active' });
    expect(mine).not.toHaveProperty('members');
    expect(await world.refusal(world.platform, 'GET', '/tenants/me')).toEqual([404, 'REL_NOT_FOUND']);
    expect(await world.refusal({}, 'GET', '/tenants/me')).toEqual([403, 'REL_ACL']);
    expect(await world.ok({ ...world.platform, 'x-organization-id': 'globex/eu' }, 'GET', '/tenants/me')).toMatchObject({
      id: 'globex',
    });
    const unregistered = await world.store.tokenFor({ tenant_id: 'umbrella', roles: ['tenant-admin'] });
    expect(await world.refusal(unregistered, 'GET', '/tenants/me')).toEqual([404, 'REL_NOT_FOUND']);
    expect(await world.ok(unregistered, 'GET', '/tenants/umbrella/usage')).toMatchObject({
      tenant_id: 'umbrella',
      rows_stored: 0,
    });
  });

  test('has a quota that is set as a whole', async () => {
    const put = await world.ok(world.platform, 'PUT', '/tenants/globex/quota', { query_units: 7, storage_bytes: 0 });
    const quota = { query_units: 7, in_flight: null, storage_bytes: 0, subscriptions: null, requests_per_second: null };
    expect(put).toEqual({ tenant_id: 'globex', quota });
    expect(await world.ok(world.globex, 'GET', '/tenants/globex/quota')).toEqual(put);
    const back = await world.ok(world.platform, 'PUT', '/tenants/globex/quota', { in_flight: 3 });
    expect(back).toEqual({ tenant_id: 'globex', quota: { ...quota, query_units: null, storage_bytes: null, in_flight: 3 } });
    await world.ok(world.platform, 'PUT', '/tenants/globex/quota', {});
    for (const body of [{ query_units: -1 }, { query_units: 1.5 }, { pace: 3 }]) {
      expect(await world.refusal(world.platform, 'PUT', '/tenants/globex/quota', body)).toEqual([400, 'REL_INVALID']);
    }
  });

  test('has members, each in one role', async () => {
    const at = '/tenants/globex/members';
    const zoe = { principal: 'zoë/1', role: 'analyst' };
    expect(await world.ok(world.globex, 'POST', at, zoe, 201)).toEqual(zoe);
    expect(await world.ok(world.globex, 'POST', at, zoe, 200)).toEqual(zoe);
    expect(await world.refusal(world.globex, 'POST', at, { ...zoe, role: 'boss' })).toEqual([409, 'REL_CONFLICT']);
    await world.ok(world.globex, 'POST', at, { principal: 'abe', role: 'boss' }, 201);
    const one = `${at}/${encodeURIComponent('zoë/1')}`;
    expect(await world.ok(world.globex, 'GET', one)).toEqual(zoe);
    expect(await world.ok(world.globex, 'PATCH', one, { role: 'boss' })).toEqual({ principal: 'zoë/1', role: 'boss' });
    expect(await world.ok(world.globex, 'GET', at)).toEqual({
      tenant_id: 'globex',
      members: [
        { principal: 'abe', role: 'boss' },
        { principal: 'zoë/1', role: 'boss' },
      ],
    });
    expect(await world.ok(world.globex, 'DELETE', one)).toEqual({ principal: 'zoë/1', removed: true });
    for (const [method, body] of [
      ['GET', undefined],
      ['PATCH', { role: 'x' }],
      ['DELETE', undefined],
    ] as const) {
      expect(await world.refusal(world.globex, method, one, body)).toEqual([404, 'REL_NOT_FOUND']);
    }
  });

  test('has a search configuration that is set as a whole', async () => {
    const config = { typo_tolerance: { enabled: true }, field_weights: { Note: { title: 2.5 } }, stop_words: ['the'] };
    const put = await world.ok(world.acme, 'PUT', '/tenants/acme/config/search', { config });
    expect(put).toEqual({ tenant_id: 'acme', config });
    expect(await world.ok(world.acme, 'GET', '/tenants/acme/config/search')).toEqual(put);
    expect(await world.ok(world.acme, 'PUT', '/tenants/acme/config/search', { config: {} })).toEqual({
      tenant_id: 'acme',
      config: {},
    });
    expect(await world.refusal(world.acme, 'PUT', '/tenants/acme/config/search', { config: { branch: 'x' } })).toEqual([
      422,
      'REL_UNPROCESSABLE',
    ]);
    expect(await world.refusal(world.acme, 'PUT', '/tenants/acme/config/search', [])).toEqual([400, 'REL_INVALID']);
    expect(await world.refusal(world.acme, 'PUT', '/tenants/acme/config/search', {})).toEqual([400, 'REL_INVALID']);
  });
});

describe('usage', () => {
  const own = { invocations: 0, queries: 0, cost_units: 0, rows_written: 0, rows_stored: 0, stored_bytes: 0 };

  test('counts questions, units, rows written and rows held, of the tenant alone', async () => {
    const umbrella = await world.store.tokenFor({ tenant_id: 'umbrella' });
    const admin = await world.store.tokenFor({ tenant_id: 'umbrella', roles: ['tenant-admin'] });
    const hive = await world.store.tokenFor({ tenant_id: 'hive' });
    const usage = (query = ''): Promise<Record<string, unknown>> => world.ok(admin, 'GET', `/tenants/umbrella/usage${query}`);
    // Of the store's own clock: its digits below the millisecond are not the wall's.
    const start = systemClock.now();
    const { since: _, until: __, ...before } = await usage(`?since=${start}`);
    expect(before).toEqual({ tenant_id: 'umbrella', ...own });
    await world.put(umbrella, 'Tyrant', [
      { id: 'a', n: 1 },
      { id: 'b', n: 2 },
    ]);
    await world.put(umbrella, 'Tyrant', [{ id: 'a', n: 3 }], { 'x-organization-id': 'umbrella/lab' });
    await world.put(hive, 'Tyrant', [
      { id: 'a', n: 1 },
      { id: 'c', n: 1 },
      { id: 'd', text: 'x'.repeat(1000) },
    ]);
    await world.store.rows('SELECT id FROM Tyrant', umbrella);
    await world.store.rows('SELECT id FROM Tyrant', hive);
    await world.store.query('SELECT nothing FROM Nowhere', umbrella);
    const after = await usage(`?since=${start}`);
    // Three versions: four bounds, a key of one letter, n; and one invocation was `usage` itself.
    expect(after).toMatchObject({ invocations: 5, queries: 1, rows_written: 3, rows_stored: 3, stored_bytes: 3 * (32 + 1 + 8) });
    expect(after['cost_units']).toBeGreaterThanOrEqual(2);
    // What others do leaves no trace in it.
    await world.put(hive, 'Tyrant', [{ id: 'e', text: 'y'.repeat(5000) }]);
    const { until, invocations, cost_units, ...same } = await usage(`?since=${start}`);
    expect([invocations, same]).toEqual([6, Object.fromEntries(Object.entries(after).filter(([name]) => name in same))]);
    expect(cost_units).toBeGreaterThanOrEqual(after['cost_units'] as number);
    expect(until).not.toBe(after['until']);
    const past = await usage('?since=2020-01-01&until=2020-02-01T00:00:00Z');
    expect(past).toMatchObject({ since: '2020-01-01T00:00:00Z', until: '2020-02-01T00:00:00Z', invocations: 0, rows_stored: 3 });
    const ahead = await usage('?since=2020-02-01&until=2020-01-01').catch(() => null);
    expect(ahead).toBeNull();
  });

  test('counts what was written on branches, once', async () => {
    const hive = await world.store.tokenFor({ tenant_id: 'branchy', roles: ['tenant-admin'] });
    await world.put(hive, 'Leaf', [{ id: 'a' }, { id: 'b' }]);
    await world.store.call('POST', '/v1/namespaces/twig/branch', { branch_from: 'main' }, hive);
    await world.put(hive, 'Leaf', [{ id: 'c' }], { 'x-service-branch': 'twig' });
    await world.put(hive, 'Leaf', [{ id: 'd' }]);
    expect(await world.ok(hive, 'GET', '/tenants/branchy/usage')).toMatchObject({ rows_written: 4, rows_stored: 4 });
  });

  test('is of one quota period unless it says otherwise', async () => {
    const { since, until } = await world.ok(world.acme, 'GET', '/tenants/acme/usage');
    expect(Date.parse(until as string) - Date.parse(since as string)).toBe(60_000);
    expect(await world.refusal(world.acme, 'GET', '/tenants/acme/usage?since=yesterday')).toEqual([400, 'REL_INVALID']);
  });
});
