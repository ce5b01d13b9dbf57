/** Transactions over HTTP: who may use one, what its requests see, and what its end leaves. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { StoreWorld } from './store-world.ts';

type Reply = Awaited<ReturnType<StoreWorld['call']>>;

let world: StoreWorld;
let headers: Record<string, string>;
const state = { id: '' };

beforeAll(async () => {
  world = await StoreWorld.open();
  headers = await world.tokenFor({ principal: 'ann', tenant_id: 'acme' });
  await call('POST', '/types', {
    name: 'Account',
    properties: { id: 'string', balance: 'integer', note: 'string' },
    primary_key: 'id',
  });
});
afterAll(() => world.close());
beforeEach(async () => {
  await call('DELETE', '/types/Account/c');
  await call('POST', '/ingest?object_type=Account', [
    { id: 'a', balance: 10 },
    { id: 'b', balance: 0 },
  ]);
});

const call = (method: string, path: string, body?: unknown, more: Record<string, string> = {}): Promise<Reply> =>
  world.call(method, path, body, { ...headers, ...more });

async function begun(more: Record<string, string> = {}): Promise<Record<string, string>> {
  const { status, json } = await call('POST', '/tx', undefined, more);
  expect(status).toBe(201);
  state.id = json['id'] as string;
  return { 'x-service-transaction': state.id, ...more };
}

const put = (rows: unknown, within: Record<string, string> = {}): Promise<Reply> =>
  call('POST', '/ingest?object_type=Account', rows, within);

async function balances(within: Record<string, string> = {}): Promise<string> {
  const sql = 'SELECT id, balance FROM Account AS OF CURRENT ORDER BY id';
  const { json } = await call('POST', '/query', { sql }, within);
  return (json['rows'] as { id: string; balance: number }[]).map(({ id, balance }) => `${id}${balance}`).join(' ');
}

test('what it writes it reads by every route that takes part, nobody else before the commit', async () => {
  const within = await begun();
  expect((await put({ id: 'a', balance: 6 }, within)).json).toMatchObject({ accepted: 1 });
  expect((await call('PATCH', '/types/Account/b', { balance: 4 }, within)).status).toBe(200);
  expect((await call('DELETE', '/types/Account/a', undefined, within)).status).toBe(200);
  await put({ id: 'c', balance: 5, note: 'penguins' }, within);
  expect([await balances(within), await balances()]).toEqual(['b4 c5', 'a10 b0']);
  const graphql = await call('POST', '/graphql', { query: '{ Account(where: {balance: 5}) { id } }' }, within);
  expect(graphql.json['data']).toEqual([{ id: 'c' }]);
  const found = await call('POST', '/search', { type: 'Account', query: 'penguins' }, within);
  expect(found.text).toContain('"c"');
  const { status, json } = await call('POST', `/tx/${state.id}/commit`, undefined, { 'x-service-durability': 'sync' });
  expect([status, json]).toEqual([200, expect.objectContaining({ id: state.id, rows: 4, durability: 'synced' })]);
  expect(await balances()).toBe('b4 c5');
});

test('a commit that meets what another has written is refused whole, and so is one of what was rolled back', async () => {
  const within = await begun();
  await put({ id: 'a', balance: 1 }, within);
  await put({ id: 'd', balance: 1 }, within);
  await put({ id: 'a', balance: 2 });
  const { status, json } = await call('POST', `/tx/${state.id}/commit`);
  expect([status, json['type']]).toEqual([409, expect.stringContaining('REL_CONFLICT')]);
  expect(await balances()).toBe('a2 b0');
  expect((await call('POST', `/tx/${state.id}/commit`)).status).toBe(404);
  const dropped = await begun();
  await put({ id: 'a', balance: 3 }, dropped);
  expect((await call('POST', `/tx/${state.id}/rollback`)).json).toEqual({ id: state.id });
  expect((await put({ id: 'a', balance: 3 }, dropped)).status).toBe(404);
  expect(await balances()).toBe('a2 b0');
});

test('a request that is refused leaves it as it was; one of nothing is committed as nothing', async () => {
  const within = await begun();
  await put({ id: 'a', balance: 7 }, within);
  expect((await put({ id: 'b', balance: 'seven' }, within)).json).toMatchObject({ accepted: 0, rejected: 1 });
  expect((await call('POST', '/query', { sql: 'SELECT nope FROM Account' }, within)).status).toBe(400);
  // Many batches of it are taken before its end is missed.
  const many = Array.from({ length: 20_000 }, (_, i) => JSON.stringify({ id: `m${i}`, balance: i })).join();
  expect((await put(`[${many},`, within)).status).toBe(400);
  expect(await balances(within)).toBe('a7 b0');
  expect((await call('PATCH', '/types/Account/none', { balance: 1 }, within)).status).toBe(404);
  expect((await call('POST', `/tx/${state.id}/commit`)).json).toMatchObject({ rows: 1 });
  expect(await balances()).toBe('a7 b0');
  await begun();
  expect((await call('POST', `/tx/${state.id}/commit`)).json).toEqual({
    id: state.id,
    system_from: null,
    system_from_last: null,
    rows: 0,
    durability: null,
  });
});

test('it is of its beginner and of its branch, and of routes that take part', async () => {
  await call('POST', '/v1/namespaces/side/branch', { branch_from: 'main' });
  const within = await begun({ 'x-service-branch': 'side' });
  const id = within['x-service-transaction']!;
  // The branch need not be named again.
  await put({ id: 'a', balance: 8 }, { 'x-service-transaction': id });
  expect([await balances(within), await balances()]).toEqual(['a8 b0', 'a10 b0']);
  expect((await put({ id: 'a', balance: 1 }, { ...within, 'x-service-branch': 'main' })).status).toBe(404);
  for (const fields of [
    { principal: 'bob', tenant_id: 'acme' },
    { principal: 'ann', tenant_id: 'rival' },
    { principal: 'boss', tenant_id: 'acme', roles: ['tenant-admin'] },
  ]) {
    const theirs = await world.tokenFor(fields);
    const sent = { ...theirs, 'x-service-transaction': id };
    const replies = [
      await world.call('POST', '/query', { sql: 'SELECT 1 AS n' }, sent),
      await world.call('POST', `/tx/${id}/commit`, undefined, theirs),
      await world.call('POST', `/tx/${id}/rollback`, undefined, theirs),
    ];
    expect(replies.map(({ status }) => status)).toEqual([404, 404, 404]);
  }
  for (const [method, path, body] of [
    ['GET', '/types', undefined],
    ['POST', '/types', { name: 'Never', properties: { id: 'string' }, primary_key: 'id' }],
    ['POST', '/memory/recall', { query: 'x', purpose: 'test' }],
    ['POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list' }],
    ['POST', '/ingest?object_type=Account&async=true', { id: 'a' }],
  ] as const)
    expect([path, (await call(method, path, body, within)).status]).toEqual([path, 400]);
  const hard = await call('DELETE', '/types/Account/a?hard=true', undefined, within);
  expect([hard.status, hard.json['detail']]).toEqual([501, expect.stringContaining('not part of a transaction')]);
  expect((await put({ id: 'a' }, { ...within, 'idempotency-key': 'k' })).status).toBe(400);
  expect((await call('POST', `/tx/${id}/commit`, undefined, { 'x-service-branch': 'side' })).status).toBe(200);
  expect((await call('POST', '/tx', undefined, { 'x-service-branch': 'nowhere' })).status).toBe(404);
});

test('its requests come one after the other', async () => {
  const within = await begun();
  const replies = await Promise.all(Array.from({ length: 8 }, (_, i) => put({ id: 'a', balance: i }, within)));
  const codes = new Set(replies.map(({ status }) => status));
  expect([...codes].every((status) => status === 200 || status === 409)).toBe(true);
  expect(codes.has(200)).toBe(true);
  await call('POST', `/tx/${state.id}/rollback`);
});

test('who names its transaction that met a conflict waits for another such client, and writes on what that wrote', async () => {
  const clients = [await begun(), await begun()];
  for (const within of clients) await put({ id: 'a', balance: 11 }, within);
  await put({ id: 'a', balance: 12 });
  const ids = clients.map((within) => within['x-service-transaction']!);
  for (const id of ids) expect((await call('POST', `/tx/${id}/commit`)).status).toBe(409);
  const again = async (id: string) => (await call('POST', `/tx?after=${id}`)).json['id'] as string;
  const first = await again(ids[0]!);
  const waiting = again(ids[1]!);
  await put({ id: 'a', balance: 13 }, { 'x-service-transaction': first });
  expect((await call('POST', `/tx/${first}/commit`)).status).toBe(200);
  const second = await waiting;
  expect(await balances({ 'x-service-transaction': second })).toBe('a13 b0');
  await put({ id: 'a', balance: 14 }, { 'x-service-transaction': second });
  expect((await call('POST', `/tx/${second}/commit`)).status).toBe(200);
  // An id of nobody's, or long forgotten, gives no turn.
  expect((await call('POST', '/tx?after=nothing')).status).toBe(201);
});
