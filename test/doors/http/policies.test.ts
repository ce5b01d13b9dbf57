/** Ruling 38: policies are put, shown and deleted on the admin listener; a text that can't be decided is refused with its place. */
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { canonicalJson } from '../../../src/log/values/canonical-json.ts';
import { adminSecret } from './store-world.ts';
import { type Reply, send } from './door-world.ts';
import { codeOf, TenantWorld } from './tenant-world.ts';

let world: TenantWorld;
beforeEach(async () => {
  world = await TenantWorld.open();
  await world.store.call('POST', '/types', { name: 'Note', properties: { id: 'string', region: 'string', weight: 'number' } });
  await world.put(world.clerk, 'Note', [
    { id: 'a', region: 'EU' },
    { id: 'b', region: 'US' },
  ]);
});
afterEach(() => world.close());

const eu = 'permit(principal, action == Action::"read", resource is Note) when { resource.region == "EU" };';
const inspect = 'permit(principal, action == Action::"read", resource == Store::"state");';

const put = (id: string, policy: string, headers: Record<string, string> = {}): Promise<Reply> =>
  send(
    world.store.door.adminPort,
    'PUT',
    `/admin/policies/${id}`,
    { policy },
    { authorization: `Bearer ${adminSecret}`, ...headers },
  );

const digestOf = (texts: Record<string, string>): string => createHash('sha256').update(canonicalJson(texts)).digest('hex');

test('a policy is installed, shown, replaced and deleted, and counts from the next question on', async () => {
  expect(await world.admin('GET', '/admin/policies')).toEqual({ policies: [], digest: '', epoch: 0 });
  expect(await world.keys(world.clerk, 'Note')).toEqual(['a', 'b']);

  const made = await put('only-eu', eu);
  expect([made.status, made.json], made.text).toEqual([
    201,
    {
      id: 'only-eu',
      policy: eu,
      installed_at: expect.stringMatching(/Z$/),
      digest: digestOf({ 'only-eu': eu }),
      epoch: 1,
      warnings: [],
    },
  ]);
  expect(made.headers['etag']).toBe(`"${digestOf({ 'only-eu': eu })}"`);
  expect(await world.keys(world.clerk, 'Note')).toEqual(['a']);

  const again = await put('only-eu', eu);
  expect([again.status, again.json['epoch']]).toEqual([200, 1]);
  const us = eu.replace('EU', 'US');
  expect(await put('only-eu', us)).toMatchObject({ status: 200, json: { epoch: 2, policy: us } });
  expect(await world.keys(world.clerk, 'Note')).toEqual(['b']);
  expect(await put('state', inspect)).toMatchObject({ status: 201 });

  const shown = await world.admin('GET', '/admin/policies');
  expect(shown).toMatchObject({ digest: digestOf({ 'only-eu': us, state: inspect }), epoch: 3 });
  expect((shown['policies'] as { id: string; policy: string }[]).map(({ id, policy }) => [id, policy])).toEqual([
    ['only-eu', us],
    ['state', inspect],
  ]);
  expect(await world.admin('GET', '/admin/policies/only-eu')).toMatchObject({ id: 'only-eu', policy: us });

  const gone = await world.admin('DELETE', '/admin/policies/only-eu');
  expect(gone).toEqual({ id: 'only-eu', deleted: true, digest: digestOf({ state: inspect }), epoch: 4 });
  // What none permits is denied while there is one.
  expect(await world.refusal(world.clerk, 'POST', '/query', { sql: 'SELECT id FROM Note' })).toEqual([403, 'REL_ACL']);
  expect(await world.admin('DELETE', '/admin/policies/state')).toMatchObject({ digest: '', epoch: 5 });
  expect(await world.keys(world.clerk, 'Note')).toEqual(['a', 'b']);

  for (const method of ['GET', 'DELETE']) expect((await world.store.admin(method, '/admin/policies/state')).status).toBe(404);
});

test('no policy locks the administrator out', async () => {
  await put('nobody', 'forbid(principal, action, resource);');
  expect(await world.refusal(world.clerk, 'POST', '/query', { sql: 'SELECT id FROM Note' })).toEqual([403, 'REL_ACL']);
  await world.admin('GET', '/admin/policies');
  await world.admin('GET', '/platform/tenants');
  await world.ok(world.platform, 'POST', '/tenants', { id: 'initech' }, 201);
  await world.admin('DELETE', '/admin/policies/nobody');
  expect(await world.keys(world.clerk, 'Note')).toEqual(['a', 'b']);
});

describe('what is refused, and where it is wrong', () => {
  test.each([
    ['permit(principal, action, resource)\nwhen { resource.region = "EU" };', /^policy p, 2:\d+: /],
    ['permit(principal, action == Action::"fly", resource);', /^policy p, 1:\d+: .*fly/],
    ['permit(principal, action, resource is Note) when { resource.weight > 3 };', /^policy p, 1:\d+: .*weight/],
    ['permit(principal, action, resource) when { resource.n > 9007199254740993 };', /^policy p, 1:\d+: .*9007199254740993/],
    ['@mask("blur") forbid(principal, action == Action::"readCell", resource);', /^policy p, 1:\d+: .*blur/],
    ['   ', /holds no policy/],
    ['', /1 to 65536 characters|holds no policy/],
  ])('%s', async (text, detail) => {
    const reply = await put('p', text);
    expect(codeOf(reply)).toEqual([400, 'REL_INVALID']);
    expect(reply.json['detail']).toMatch(detail);
    expect(await world.admin('GET', '/admin/policies')).toMatchObject({ policies: [], epoch: 0 });
  });

  test('what is known of Cedar and not done yet says so', async () => {
    expect(codeOf(await put('p', '@budget("rows=1") permit(principal, action, resource);'))).toEqual([
      501,
      'REL_NOT_IMPLEMENTED',
    ]);
  });

  test('an id with a slash, which would name a policy within a text', async () => {
    expect(codeOf(await put('a%2Fb', eu))).toEqual([400, 'REL_INVALID']);
  });

  test.each([{}, { policy: 3 }, { policy: eu, more: 1 }])('a body of %j', async (body) => {
    expect(codeOf(await world.store.admin('PUT', '/admin/policies/p', body))).toEqual([400, 'REL_INVALID']);
  });
});

test('with If-Match a set is changed as it was read, or not at all', async () => {
  const first = await put('one', eu, { 'if-match': '"none"' });
  expect(first.status).toBe(201);
  expect(codeOf(await put('two', inspect, { 'if-match': '"none"' }))).toEqual([409, 'REL_CONFLICT']);
  const tag = first.headers['etag'] as string;
  expect((await put('two', inspect, { 'if-match': `"${'0'.repeat(64)}", ${tag}` })).status).toBe(201);
  expect(codeOf(await put('two', inspect, { 'if-match': 'W/"x"' }))).toEqual([400, 'REL_INVALID']);
  const stale = await send(world.store.door.adminPort, 'DELETE', '/admin/policies/one', undefined, {
    authorization: `Bearer ${adminSecret}`,
    'if-match': tag,
  });
  expect(codeOf(stale)).toEqual([409, 'REL_CONFLICT']);
  expect((await world.admin('GET', '/admin/policies'))['policies']).toHaveLength(2);
});

test('policies are on the admin listener only, for its credential only, and each look leaves a record', async () => {
  for (const [method, path, body] of [
    ['GET', '/admin/policies', undefined],
    ['PUT', '/admin/policies/p', { policy: inspect }],
    ['GET', '/admin/policies/p', undefined],
    ['DELETE', '/admin/policies/p', undefined],
  ] as const) {
    expect((await world.call(world.platform, method, path, body)).status).toBe(404);
    expect((await send(world.store.door.adminPort, method, path, body, world.platform)).status).toBe(401);
    const before = await world.records();
    expect((await world.store.admin(method, path, body)).status).toBeLessThan(300);
    expect((await world.records()) - before).toBe(1);
  }
});

test('GET /types shows what POST /types was told of protection and access scope', async () => {
  await world.store.call('POST', '/types', { name: 'Secret', properties: { id: 'string' }, protected: true, access_scope: true });
  const { json } = await world.store.call('GET', '/types');
  const types = json['types'] as Record<string, unknown>[];
  expect(types.find(({ name }) => name === 'Secret')).toMatchObject({ protected: true, access_scope: true });
  expect(types.find(({ name }) => name === 'Note')).toMatchObject({ protected: false, access_scope: false });
});

test.each([
  ['parentheses', (n: number) => `${'('.repeat(n)}true${')'.repeat(n)}`, 5_000],
  ['sets', (n: number) => `${'['.repeat(n)}1${']'.repeat(n)} == [1]`, 300],
  ['operators', (n: number) => Array(n).fill('context.door == "a"').join(' && '), 5_000],
  ['names behind has', (n: number) => `principal has ${Array(n).fill('a').join('.')}`, 5_000],
])('too many %s are refused, and the next policy is taken', async (_, condition, count) => {
  const refused = await put('deep', `${eu}\npermit(principal, action, resource) when { ${condition(count)} };`);
  expect(codeOf(refused)).toEqual([400, 'REL_INVALID']);
  expect(refused.json['detail']).toMatch(/^policy deep, 2:/);
  expect((await put('deep', `permit(principal, action, resource) when { ${condition(20)} };`)).status).toBe(201);
});

test.each([
  ['permit(principal, action, resource is Polll);', [/^policy p: no type Polll is registered/]],
  ['permit(principal, action, resource) when { resource in [Type::"Note", Column::"Polll.a"] };', [/no type Polll /]],
  ['permit(principal, action, resource) when { resource.n + 1 };', [/neither true nor false, so the policy permits nothing/]],
  ['forbid(principal, action, resource is Note) when { resource.region };', [/a forbid that fails denies/]],
  ['permit(principal, action, resource) when { principal.admin && resource == Store::"state" };', []],
  ['permit(principal, action, resource is Note) when { resource.other } unless { principal in Role::"x" };', []],
])('%s is taken, with its warnings', async (policy, warnings) => {
  const made = await put('p', policy);
  expect([made.status, made.json['warnings']]).toEqual([201, warnings.map((warning) => expect.stringMatching(warning))]);
});
