/** Sharing agreements over the whole stack: proposed, consented to, moved and ended by whose word it is, and seen by both sides. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { TenantWorld } from './tenant-world.ts';

let world: TenantWorld;
beforeAll(async () => {
  world = await TenantWorld.open();
  await world.store.call('POST', '/types', {
    name: 'Parcel',
    properties: { id: 'string', weight: 'number', n: 'integer', pin: 'string' },
  });
});
afterAll(() => world.close());

const at = '/tenants/acme/sharing';
const other = '/tenants/globex/sharing';

async function propose(more: object = {}): Promise<string> {
  const body = { assignee: 'globex', target: { types: ['Parcel'] }, ...more };
  return (await world.ok(world.acme, 'POST', at, body, 201))['id'] as string;
}

const move = (who: 'acme' | 'globex', id: string, state: string): Promise<Record<string, unknown>> =>
  world.ok(world[who], 'PATCH', `/tenants/${who}/sharing/${id}`, { state });

test('what is proposed is shown to both sides as it was meant, and to nobody else', async () => {
  const made = await world.ok(
    world.acme,
    'POST',
    at,
    {
      assigner: 'acme/eu',
      assignee: 'globex/ops',
      target: { types: ['Parcel'], where: 'resource.n > 3', columns: ['id', 'n', 'pin'] },
      permission: ['read', 'export'],
      purposes: ['test'],
      valid_from: '2024-01-01',
      valid_to: '2100-01-01T00:00:00Z',
      history: 'full',
      masking: { pin: 'last4' },
      terms_digest: 'ab'.repeat(32),
    },
    201,
  );
  expect(made).toEqual({
    id: expect.stringMatching(/^agr_[0-9a-f-]{36}$/),
    state: 'proposed',
    sides: ['assigner'],
    assigner: 'acme/eu',
    assignee: 'globex/ops',
    target: { types: ['Parcel'], where: 'resource.n > 3', columns: ['id', 'n', 'pin'] },
    permission: ['read', 'export'],
    purposes: ['test'],
    valid_from: '2024-01-01T00:00:00Z',
    valid_to: '2100-01-01T00:00:00Z',
    history: 'full',
    masking: { pin: 'last4' },
    onward_sharing: false,
    aggregate_min_group: null,
    terms_digest: 'ab'.repeat(32),
    created_at: expect.any(String),
    activated_at: null,
    events: [{ change: 'proposed', principal: 'ann', time: made['created_at'] }],
  });
  const id = made['id'] as string;
  expect(await world.ok(world.acme, 'GET', `${at}/${id}`)).toEqual(made);
  expect(await world.ok(world.globex, 'GET', `${other}/${id}`)).toEqual({ ...made, sides: ['assignee'] });
  const { agreements } = await world.ok(world.globex, 'GET', other);
  expect(agreements).toContainEqual({ ...made, sides: ['assignee'] });
  const third = await world.store.tokenFor({ tenant_id: 'initech', roles: ['tenant-admin'] });
  expect(await world.ok(third, 'GET', '/tenants/initech/sharing')).toEqual({ agreements: [] });
  for (const path of [`/tenants/initech/sharing/${id}`, '/tenants/initech/sharing/agr_none']) {
    for (const [method, body] of [
      ['GET', undefined],
      ['PATCH', { state: 'revoked' }],
      ['DELETE', undefined],
    ] as const) {
      expect(await world.refusal(third, method, path, body)).toEqual([404, 'REL_NOT_FOUND']);
    }
  }
});

describe('a sharing agreement', () => {
  test('proposed, accepted, active, suspended, active, revoked: each move an event of both sides', async () => {
    const id = await propose();
    expect(await world.refusal(world.acme, 'PATCH', `${at}/${id}`, { state: 'accepted' })).toEqual([403, 'REL_ACL']);
    expect(await world.refusal(world.acme, 'PATCH', `${at}/${id}`, { state: 'active' })).toEqual([409, 'REL_CONFLICT']);
    expect(await move('globex', id, 'accepted')).toMatchObject({ state: 'accepted', activated_at: null });
    expect(await world.refusal(world.globex, 'PATCH', `${other}/${id}`, { state: 'active' })).toEqual([403, 'REL_ACL']);
    const active = await move('acme', id, 'active');
    expect(active).toMatchObject({ state: 'active', activated_at: expect.any(String) });
    expect(await world.refusal(world.globex, 'PATCH', `${other}/${id}`, { state: 'suspended' })).toEqual([403, 'REL_ACL']);
    expect(await move('acme', id, 'suspended')).toMatchObject({ state: 'suspended' });
    expect(await world.refusal(world.globex, 'PATCH', `${other}/${id}`, { state: 'active' })).toEqual([403, 'REL_ACL']);
    expect(await move('acme', id, 'active')).toMatchObject({ state: 'active', activated_at: active['activated_at'] });
    expect(await world.ok(world.globex, 'DELETE', `${other}/${id}`)).toMatchObject({ state: 'revoked' });
    const moves = [
      ['proposed', 'ann'],
      ['accepted', 'gus'],
      ['activated', 'ann'],
      ['suspended', 'ann'],
      ['resumed', 'ann'],
      ['revoked', 'gus'],
    ];
    for (const [who, path] of [
      [world.acme, at],
      [world.globex, other],
    ] as const) {
      const { events } = await world.ok(who, 'GET', `${path}/${id}`);
      expect((events as { change: string; principal: string }[]).map(({ change, principal }) => [change, principal])).toEqual(
        moves,
      );
    }
    for (const state of ['accepted', 'active', 'suspended']) {
      expect(await world.refusal(world.acme, 'PATCH', `${at}/${id}`, { state })).toEqual([409, 'REL_CONFLICT']);
    }
  });

  test('has every move in both sides’ audit views, in nobody else’s, and counts as no use', async () => {
    // Of the store's own clock: its digits below the millisecond are not the wall's.
    const since = systemClock.now();
    const id = await propose();
    await move('globex', id, 'accepted');
    await world.ok(world.platform, 'DELETE', `${at}/${id}`);
    const viewOf = async (who: Record<string, string>, query = ''): Promise<unknown[]> => {
      const { entries } = await world.ok(who, 'GET', `/audit/entries?limit=1000&since=${since}${query}`);
      const moves = (entries as Record<string, unknown>[]).filter(({ kind }) => kind === 'agreement');
      return moves.map(({ template, principal, tenant_id, object_type }) => [template, principal, tenant_id, object_type]);
    };
    const moves = [
      [`proposed ${id}`, 'ann', 'acme', 'Parcel'],
      [`accepted ${id}`, 'gus', 'globex', 'Parcel'],
      [`revoked ${id}`, 'pat', null, 'Parcel'],
    ];
    for (const who of [world.acme, world.globex]) {
      expect(await viewOf(who)).toEqual(moves);
      expect(await viewOf(who, '&kind=agreement&object_type=Parcel')).toEqual(moves);
      const { by_kind, count } = await world.ok(who, 'GET', `/audit/count?kind=agreement&since=${since}`);
      expect([by_kind, count]).toEqual([{ agreement: 3 }, 3]);
      const all = (await world.ok(who, 'GET', '/audit/count'))['by_kind'] as Record<string, number>;
      const read = (await world.ok(who, 'GET', '/audit/entries?kind=agreement&limit=1000'))['entries'] as unknown[];
      expect(all['agreement']).toBe(read.length);
    }
    expect(await viewOf({ ...world.acme, 'x-organization-id': 'acme/eu' })).toEqual([]);
    expect(await viewOf(await world.store.tokenFor({ tenant_id: 'initech' }))).toEqual([]);
    expect(await viewOf({})).toEqual([]);
    const proven = async (who: Record<string, string>): Promise<number[]> => {
      const { entries } = await world.ok(world.acme, 'GET', `/audit/entries?kind=agreement&since=${since}`);
      const leaves = (entries as { leaf_index: number }[]).map(({ leaf_index }) => leaf_index);
      return Promise.all(leaves.map(async (leaf) => (await world.call(who, 'GET', `/audit/proof?leaf=${leaf}`)).status));
    };
    for (const who of [world.acme, world.globex]) expect(await proven(who)).toEqual([200, 200, 200]);
    expect(await proven(await world.store.tokenFor({ tenant_id: 'initech' }))).toEqual([404, 404, 404]);
    const admin = await world.admin('GET', `/admin/audit/count?kind=agreement&since=${since}`);
    expect(admin['count']).toBe(3);
    // One invocation of acme's besides looking: the proposal.
    const { entries } = await world.ok(world.acme, 'GET', `/audit/entries?limit=1000&since=${since}&kind=administer`);
    expect(entries).toHaveLength(1);
    const { invocations } = await world.ok(world.acme, 'GET', `/tenants/acme/usage?since=${since}`);
    const own = (await world.ok(world.acme, 'GET', `/audit/entries?limit=1000&since=${since}`))['entries'] as { kind: string }[];
    expect(invocations).toBe(own.filter(({ kind }) => kind === 'access').length - 1);
  });

  test('that is moved where it is stays as it is', async () => {
    const id = await propose();
    await move('globex', id, 'accepted');
    const again = await move('globex', id, 'accepted');
    expect((again['events'] as unknown[]).length).toBe(2);
    await world.ok(world.acme, 'DELETE', `${at}/${id}`);
    const gone = await world.ok(world.acme, 'DELETE', `${at}/${id}`);
    expect([gone['state'], (gone['events'] as unknown[]).length]).toEqual(['revoked', 3]);
  });

  test('is cut back by who runs the store, never consented to', async () => {
    const id = await propose();
    expect(await world.refusal(world.platform, 'PATCH', `${other}/${id}`, { state: 'accepted' })).toEqual([403, 'REL_ACL']);
    await move('globex', id, 'accepted');
    expect(await world.refusal(world.platform, 'PATCH', `${at}/${id}`, { state: 'active' })).toEqual([403, 'REL_ACL']);
    await move('acme', id, 'active');
    expect(await world.ok(world.platform, 'PATCH', `${at}/${id}`, { state: 'suspended' })).toMatchObject({ state: 'suspended' });
    expect(await world.ok(world.platform, 'DELETE', `${other}/${id}`)).toMatchObject({ state: 'revoked' });
  });

  test('changes while nobody has consented, by the word of the assigner', async () => {
    const id = await propose({ masking: { pin: 'redact' } });
    const changed = await world.ok(world.acme, 'PATCH', `${at}/${id}`, {
      purposes: ['test'],
      target: { types: ['Parcel'], columns: ['id'] },
    });
    expect(changed).toMatchObject({
      purposes: ['test'],
      target: { types: ['Parcel'], where: null, columns: ['id'] },
      masking: { pin: 'redact' },
      state: 'proposed',
    });
    expect(await world.refusal(world.globex, 'PATCH', `${other}/${id}`, { purposes: [] })).toEqual([403, 'REL_ACL']);
    expect(await world.refusal(world.acme, 'PATCH', `${at}/${id}`, { assignee: 'initech' })).toEqual([409, 'REL_CONFLICT']);
    expect(await world.refusal(world.acme, 'PATCH', `${at}/${id}`, { purposes: [], state: 'revoked' })).toEqual([
      400,
      'REL_INVALID',
    ]);
    expect(await world.refusal(world.acme, 'PATCH', `${at}/${id}`, {})).toEqual([400, 'REL_INVALID']);
    await move('globex', id, 'accepted');
    expect(await world.refusal(world.acme, 'PATCH', `${at}/${id}`, { purposes: [] })).toEqual([409, 'REL_CONFLICT']);
  });

  test('within one tenant is moved by the tenant, each move by the side whose it is', async () => {
    const made = await world.ok(
      world.acme,
      'POST',
      at,
      { assigner: 'acme/eu', assignee: 'acme/us', target: { types: ['Parcel'] } },
      201,
    );
    const id = made['id'] as string;
    expect(made['sides']).toEqual(['assigner', 'assignee']);
    await move('acme', id, 'accepted');
    expect(await move('acme', id, 'active')).toMatchObject({ state: 'active' });
  });
});

describe('what is not proposed', () => {
  test.each<[object, number, string]>([
    [{ onward_sharing: true }, 501, 'REL_NOT_IMPLEMENTED'],
    [{ aggregate_min_group: 5 }, 501, 'REL_NOT_IMPLEMENTED'],
    [{ assigner: 'globex' }, 400, 'REL_INVALID'],
    [{ assigner: 'acme-evil' }, 400, 'REL_INVALID'],
    [{ assignee: 'acme' }, 400, 'REL_INVALID'],
    [{ assignee: 'a//b' }, 400, 'REL_INVALID'],
    [{ permission: ['write'] }, 400, 'REL_INVALID'],
    [{ permission: [] }, 400, 'REL_INVALID'],
    [{ masking: { pin: 'bucket' } }, 400, 'REL_INVALID'],
    [{ masking: { pni: 'redact' } }, 400, 'REL_UNKNOWN_COLUMN'],
    [{ target: { types: ['Parcel'], columns: ['id', 'wieght'] } }, 400, 'REL_UNKNOWN_COLUMN'],
    [{ target: { types: [] } }, 400, 'REL_INVALID'],
    [{ target: { types: ['Nowhere'] } }, 404, 'REL_UNKNOWN_TYPE'],
    [{ target: { types: ['SigintIntercept'] } }, 403, 'REL_HUMINT'],
    [{ target: { types: ['Parcel'], where: 'resource.n >' } }, 400, 'REL_INVALID'],
    [{ target: { types: ['Parcel'], where: 'true }; permit(principal, action, resource) when { true' } }, 400, 'REL_INVALID'],
    [{ target: { types: ['Parcel'], where: 'resource.weight > 3' } }, 400, 'REL_INVALID'],
    [{ valid_from: '2030-01-01', valid_to: '2029-01-01' }, 400, 'REL_INVALID'],
    [{ valid_to: '2020-01-01', valid_from: '2019-01-01' }, 400, 'REL_INVALID'],
    [{ history: 'some' }, 400, 'REL_INVALID'],
    [{ terms_digest: 'AB' }, 400, 'REL_INVALID'],
    [{ colour: 'red' }, 400, 'REL_INVALID'],
  ])('%j', async (more, status, code) => {
    const before = await world.ok(world.acme, 'GET', at);
    const body = { assignee: 'globex', target: { types: ['Parcel'] }, ...more };
    expect(await world.refusal(world.acme, 'POST', at, body)).toEqual([status, code]);
    expect(await world.ok(world.acme, 'GET', at)).toEqual(before);
  });

  test('a condition that can’t be read says where', async () => {
    const body = { assignee: 'globex', target: { types: ['Parcel'], where: 'resource.n >\n  && true' } };
    const { json } = await world.call(world.acme, 'POST', at, body);
    expect(json['detail']).toMatch(/\d+:\d+/);
  });
});
