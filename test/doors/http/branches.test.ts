/** Specification, "Branching, namespaces, schema": the routes, the BRANCH statement, and every data route on a branch. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StoreWorld } from './store-world.ts';

let world: StoreWorld;
beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_PINNED_NAMESPACES: 'keep,main' });
  await put('main', 'Ship', [{ id: 'a', n: 1 }]);
});
afterAll(() => world.close());

const on = (branch: string): Record<string, string> => ({ 'x-service-branch': branch });
const put = async (branch: string, type: string, rows: object[], headers = {}): Promise<void> => {
  const reply = await world.call('POST', `/ingest/auto?object_type=${type}`, rows, { ...on(branch), ...headers });
  if (reply.status !== 200) throw new Error(reply.text);
};
const names = async (branch: string, sql = 'SELECT _pk, n FROM Ship AS OF CURRENT', headers = {}): Promise<string[]> =>
  (await world.rows(sql, { ...on(branch), ...headers })).map((row) => `${String(row['_pk'])}${String(row['n'])}`);
const fork = (name: string, source = 'main', headers = {}) =>
  world.call('POST', `/v1/namespaces/${encodeURIComponent(name)}/branch`, { branch_from: source }, headers);
const code = (reply: { status: number; json: Record<string, unknown> }): unknown[] => [
  reply.status,
  String(reply.json['type']).split('/').at(-1),
];

describe('POST /v1/namespaces/:name/branch', () => {
  test('forks, and says so', async () => {
    const reply = await fork('first');
    expect([reply.status, reply.json]).toEqual([201, { created: true, branch: 'first', source: 'main' }]);
    expect(await names('first')).toEqual(['a1']);
  });

  test('a taken name is 409, a missing source 404, a name of no or too many characters 400', async () => {
    expect(code(await fork('main'))).toEqual([409, 'REL_CONFLICT']);
    await fork('taken');
    expect(code(await fork('taken'))).toEqual([409, 'REL_CONFLICT']);
    expect(code(await fork('orphan', 'nowhere'))).toEqual([404, 'REL_NOT_FOUND']);
    expect(code(await fork('x'.repeat(129)))).toEqual([400, 'REL_INVALID']);
    expect(code(await fork('a\u0000b'))).toEqual([400, 'REL_INVALID']);
    expect((await fork('x'.repeat(128))).status).toBe(201);
    expect(code(await world.call('POST', '/v1/namespaces/unsaid/branch', {}))).toEqual([400, 'REL_INVALID']);
    expect(code(await world.call('POST', '/v1/namespaces//branch', { branch_from: 'main' }))).toEqual([400, 'REL_INVALID']);
  });
});

describe('BRANCH', () => {
  test('answers the row that the route would, under the right to fork, and needs no purpose', async () => {
    const reply = await world.query("BRANCH 'by statement' FROM main");
    expect(reply.json).toMatchObject({ rows: [{ created: true, branch: 'by statement', source: 'main' }], row_count: 1 });
    expect(await names('by statement')).toEqual(['a1']);
    expect(code(await world.query("BRANCH 'by statement' FROM main"))).toEqual([409, 'REL_CONFLICT']);
    expect(code(await world.query('BRANCH other FROM nowhere'))).toEqual([404, 'REL_NOT_FOUND']);
    const { json } = await world.call('GET', '/audit/entries?limit=100&action=fork');
    expect((json['entries'] as { decision: string }[]).map((entry) => entry.decision)).toContain('allow');
  });
});

describe('GET /schema/branches', () => {
  test('lists main and every branch, with where it came from and when, and which are pinned', async () => {
    const { json: before } = await world.query('SELECT _pk FROM Ship');
    await fork('keep');
    await fork('of keep', 'keep');
    await world.call('POST', '/schema/branches/types', { from: 'main' });
    const { json, text } = await world.call('GET', '/schema/branches');
    const listed = new Map((json['branches'] as { name: string }[]).map((branch) => [branch.name, branch]));
    expect(listed.get('main')).toEqual({
      name: 'main',
      tenant: null,
      source: null,
      forked_at: null,
      shares: 'everything',
      pinned: true,
    });
    expect(listed.get('keep')).toMatchObject({ tenant: null, source: 'main', shares: 'everything', pinned: true });
    // Exact names: a branch of a pinned one starts unpinned.
    expect(listed.get('of keep')).toMatchObject({ source: 'keep', pinned: false });
    expect(listed.get('types')).toMatchObject({ source: 'main', shares: 'ontology', pinned: false });
    const instants = [...text.matchAll(/"forked_at":(\d+)/g)].map(([, digits]) => BigInt(digits!));
    expect(instants.some((instant) => instant > BigInt(before['as_of_system'] as number) - 1_000n)).toBe(true);
    expect(text).not.toContain('owner');
  });
});

describe('POST /schema/branches/:name', () => {
  test('forks types and no row', async () => {
    const reply = await world.call('POST', '/schema/branches/shape', { from: 'main' });
    expect([reply.status, reply.json]).toEqual([201, { created: true, branch: 'shape', source: 'main' }]);
    expect((await world.call('GET', '/types/Ship', undefined, on('shape'))).status).toBe(200);
    expect(await names('shape')).toEqual([]);
    await put('shape', 'Ship', [{ id: 'z', n: 9 }]);
    expect([await names('shape'), await names('main')]).toEqual([['z9'], ['a1']]);
  });
});

describe('DELETE /schema/branches/:name', () => {
  const drop = (name: string, headers = {}) =>
    world.call('DELETE', `/schema/branches/${encodeURIComponent(name)}`, undefined, headers);

  test('ends a branch; main and what there is not are refused', async () => {
    await fork('gone');
    expect((await drop('gone')).json).toEqual({ deleted: true, branch: 'gone' });
    expect(code(await world.query('SELECT _pk FROM Ship', on('gone')))).toEqual([404, 'REL_NOT_FOUND']);
    expect(code(await drop('gone'))).toEqual([404, 'REL_NOT_FOUND']);
    expect(code(await drop('main'))).toEqual([400, 'REL_INVALID']);
  });

  test('is for its maker’s organisation and those above it', async () => {
    const as = (path: string): Record<string, string> => ({ 'x-organization-id': path });
    await fork('of acme', 'main', as('acme/eu'));
    await fork('of nobody');
    for (const path of ['acme/eu/berlin', 'acme/us']) expect(code(await drop('of acme', as(path)))).toEqual([403, 'REL_ACL']);
    for (const headers of [as('acme-evil'), as('globex'), {}])
      expect(code(await drop('of acme', headers))).toEqual([404, 'REL_NOT_FOUND']);
    expect(code(await drop('of nobody', as('acme')))).toEqual([403, 'REL_ACL']);
    expect((await drop('of acme', as('acme'))).status).toBe(200);
    expect((await drop('of nobody')).status).toBe(200);
  });

  test('a name that is forked again is another branch, cached plans included', async () => {
    await fork('again');
    await world.call('POST', '/types/Ship/schema', { properties: { extra: 'string' } }, on('again'));
    await put('again', 'Ship', [{ id: 'b', n: 2, extra: 'x' }]);
    const asked = 'SELECT _pk, n, extra FROM Ship';
    expect(await world.rows(asked, on('again'))).toHaveLength(2);
    await drop('again');
    await fork('again');
    await world.call('POST', '/types/Ship/schema', { properties: { extra: 'integer' } }, on('again'));
    await put('again', 'Ship', [{ id: 'c', n: 3, extra: 7 }]);
    expect((await world.rows(asked, on('again'))).map((row) => row['extra'])).toEqual([null, 7]);
  });
});

describe('a branch', () => {
  test('and its source don’t see what the other writes, and neither does a sibling', async () => {
    await put('main', 'Apart', [{ id: 'a', n: 1 }]);
    await fork('left');
    await fork('right');
    await put('left', 'Apart', [
      { id: 'a', n: 2 },
      { id: 'b', n: 3 },
    ]);
    await put('main', 'Apart', [
      { id: 'a', n: 4 },
      { id: 'c', n: 5 },
    ]);
    const sql = 'SELECT _pk, n FROM Apart AS OF CURRENT';
    expect(await names('left', sql)).toEqual(['a2', 'b3']);
    expect(await names('right', sql)).toEqual(['a1']);
    expect(await names('main', sql)).toEqual(['a4', 'c5']);
    // Every version: the inherited one is closed on the left only by what the left wrote.
    expect(await names('left', 'SELECT _pk, n FROM Apart')).toEqual(['a1', 'a2', 'b3']);
    const [closed] = await world.rows('SELECT system_to FROM Apart WHERE n = 1', on('right'));
    expect(closed!['system_to']).toBe(Number(9_223_372_036_854_775_807n));
  });

  test('as of before its fork is its source then', async () => {
    await put('main', 'Past', [{ id: 'a', n: 1 }]);
    const before = (await world.query('SELECT _pk FROM Ship')).text.match(/"as_of_system":(\d+)/)![1]!;
    await put('main', 'Past', [{ id: 'a', n: 2 }]);
    await fork('present');
    await put('present', 'Past', [{ id: 'a', n: 3 }]);
    const stamp =
      new Date(Number(BigInt(before) / 1_000_000n)).toISOString().replace('Z', '') +
      `${BigInt(before) % 1_000_000n}`.padStart(6, '0');
    expect(await names('present', `SELECT _pk, n FROM Past AS OF SYSTEM TIME '${stamp}Z'`)).toEqual(['a1']);
    expect(await names('present', 'SELECT _pk, n FROM Past AS OF CURRENT')).toEqual(['a3']);
  });

  test('takes updates with bounds, soft and hard deletes of inherited rows', async () => {
    await put('main', 'Edit', [
      { id: 'a', n: 1, valid_from: '2020-01-01', valid_to: '2024-01-01' },
      { id: 'b', n: 2 },
      { id: 'c', n: 3 },
    ]);
    await fork('edit');
    await put('edit', 'Edit', [{ id: 'a', n: 9, valid_from: '2021-01-01', valid_to: '2022-01-01' }]);
    expect((await world.call('DELETE', '/types/Edit/b', undefined, on('edit'))).status).toBe(200);
    expect((await world.call('DELETE', '/types/Edit/c?hard=true', undefined, on('edit'))).status).toBe(200);
    const at = (year: number) => `SELECT _pk, n FROM Edit AS OF '${year}-06-01'`;
    const live = ' WHERE system_to = 9223372036854775807';
    expect(await names('edit', at(2020) + live)).toEqual(['a1']);
    expect(await names('edit', at(2021) + live)).toEqual(['a9']);
    expect(await names('edit', at(2022) + live)).toEqual(['a1']);
    expect(await names('edit', 'SELECT _pk, n FROM Edit AS OF CURRENT')).toEqual([]);
    expect(await names('edit', "SELECT _pk, n FROM Edit WHERE _pk = 'c'")).toEqual([]);
    expect(await names('main', 'SELECT _pk, n FROM Edit AS OF CURRENT')).toEqual(['b2', 'c3']);
    const { json } = await world.query('SELECT _pk FROM Edit WHERE n = 9 WITH PROVENANCE', on('edit'));
    const [first] = await world.rows('SELECT system_from FROM Edit WHERE n = 1', on('main'));
    const hex = (json['provenance'] as { derived_from: string }[])[0]!.derived_from;
    expect(Number(BigInt(`0x${hex}`))).toBe(first!['system_from']);
  });

  test('pages over its layers on one snapshot', async () => {
    await put('main', 'Paged', [
      { id: 'a', n: 1 },
      { id: 'b', n: 2 },
    ]);
    await fork('paged');
    await put('paged', 'Paged', [{ id: 'c', n: 3 }]);
    const first = await world.query('SELECT _pk, n FROM Paged LIMIT 2', on('paged'));
    await put('paged', 'Paged', [{ id: 'a', n: 4 }]);
    const next = `SELECT _pk, n, system_to FROM Paged LIMIT 5 AFTER '${first.json['next_cursor'] as string}'`;
    expect(await names('paged', next)).toEqual(['c3']);
    const again = await world.query('SELECT _pk, n FROM Paged LIMIT 1', on('paged'));
    await put('paged', 'Paged', [{ id: 'b', n: 5 }]);
    const rest = await world.rows(
      `SELECT _pk, n, system_to FROM Paged LIMIT 1 AFTER '${again.json['next_cursor'] as string}'`,
      on('paged'),
    );
    // Closed on the branch after the cursor was given: open still, as of the page before.
    expect(rest[0]).toMatchObject({ _pk: 'b', system_to: Number(9_223_372_036_854_775_807n) });
  });

  test('has types of its own', async () => {
    await fork('typed');
    expect((await world.call('POST', '/types', { name: 'OnlyHere', properties: { x: 'string' } }, on('typed'))).status).toBe(201);
    const listed = async (branch: string): Promise<unknown> =>
      ((await world.call('GET', '/types', undefined, on(branch))).json['types'] as { name: string }[]).some(
        ({ name }) => name === 'OnlyHere',
      );
    expect([await listed('typed'), await listed('main')]).toEqual([true, false]);
    expect(code(await world.call('GET', '/types/OnlyHere'))).toEqual([404, 'REL_UNKNOWN_TYPE']);
    expect((await world.call('GET', '/types/OnlyHere?branch=typed')).status).toBe(200);
    expect(code(await world.query('SELECT * FROM OnlyHere'))).toEqual([404, 'REL_UNKNOWN_TYPE']);
    const reply = await world.call('POST', '/ingest?object_type=OnlyHere', [{ x: 'y' }]);
    expect(code(reply)).toEqual([404, 'REL_UNKNOWN_TYPE']);
  });

  test('keeps no revoked token alive', async () => {
    const headers = await world.tokenFor({ principal: 'short-lived' });
    await fork('tokens');
    const { json } = await world.admin('GET', '/admin/tokens');
    const { id } = (json['tokens'] as { id: string; principal: string }[]).find(({ principal }) => principal === 'short-lived')!;
    expect((await world.query('SELECT _pk FROM Ship', { ...on('tokens'), ...headers })).status).toBe(200);
    expect((await world.admin('DELETE', `/admin/tokens/${id}`)).status).toBe(200);
    expect((await world.query('SELECT _pk FROM Ship', { ...on('tokens'), ...headers })).status).toBe(401);
  });

  test('keeps organisations apart as main does', async () => {
    const as = (path: string): Record<string, string> => ({ 'x-organization-id': path });
    await world.call('POST', '/types', { name: 'Scoped', properties: { id: 'string', n: 'integer' }, primary_key: 'id' });
    await put('main', 'Scoped', [{ id: 'a', n: 1 }], as('acme'));
    await fork('scoped');
    await put('scoped', 'Scoped', [{ id: 'b', n: 2 }], as('acme/eu'));
    const sql = 'SELECT _pk, n FROM Scoped';
    expect(await names('scoped', sql, as('acme'))).toEqual(['a1', 'b2']);
    expect(await names('scoped', sql, as('acme/eu'))).toEqual(['b2']);
    for (const path of ['globex', 'acme-evil', 'acme/us']) expect(await names('scoped', sql, as(path))).toEqual([]);
    expect(await names('main', sql, as('acme'))).toEqual(['a1']);
  });
});
