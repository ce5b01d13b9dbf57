/** Two tenants with branches of one name: each has its own, and no reply tells either what the other has. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Reply } from './door-world.ts';
import { StoreWorld } from './store-world.ts';

type Headers = Record<string, string>;

let world: StoreWorld;
const acme: Headers = { 'x-organization-id': 'acme' };
const globex: Headers = { 'x-organization-id': 'globex/eu' };
const initech: Headers = { 'x-organization-id': 'initech' };
const on = (branch: string, of: Headers): Headers => ({ ...of, 'x-service-branch': branch });

const fork = (name: string, of: Headers, source = 'main'): Promise<Reply> =>
  world.call('POST', `/v1/namespaces/${name}/branch`, { branch_from: source }, of);
const put = (branch: string, of: Headers, ...keys: readonly string[]): Promise<Reply> =>
  world.call(
    'POST',
    '/ingest/auto?object_type=Ship',
    keys.map((id) => ({ id })),
    on(branch, of),
  );
const keys = async (branch: string, of: Headers): Promise<unknown[]> =>
  (await world.rows('SELECT _pk FROM Ship ORDER BY _pk', on(branch, of))).map((row) => row['_pk']);
const listed = async (of: Headers): Promise<unknown[]> => {
  const { json } = await world.call('GET', '/schema/branches', undefined, of);
  return (json['branches'] as { name: string; tenant: string | null }[]).map(({ name, tenant }) => [name, tenant]);
};

beforeAll(async () => {
  world = await StoreWorld.open();
  for (const of of [acme, globex, initech]) await put('main', of, 'shared');
  await fork('everybodys', {});
  for (const of of [acme, globex]) expect((await fork('dev', of)).status).toBe(201);
  await put('dev', acme, 'a1', 'a2');
  await put('dev', globex, 'g1');
  await world.call('POST', '/types', { name: 'OfAcme', properties: { x: 'string' } }, on('dev', acme));
});
afterAll(() => world.close());

describe('branches of one name', () => {
  test('are forked, written, read and listed by each tenant as its own', async () => {
    expect([await keys('dev', acme), await keys('dev', globex), await keys('main', acme)]).toEqual([
      ['a1', 'a2', 'shared'],
      ['g1', 'shared'],
      ['shared'],
    ]);
    const everybodys = ['everybodys', null];
    expect(await listed(acme)).toEqual([['main', null], ['dev', 'acme'], everybodys]);
    expect(await listed(globex)).toEqual([['main', null], ['dev', 'globex'], everybodys]);
    expect(await listed(initech)).toEqual([['main', null], everybodys]);
    expect(await listed({})).toEqual([['main', null], everybodys]);
    const types = async (of: Headers): Promise<string> => (await world.call('GET', '/types', undefined, on('dev', of))).text;
    expect([(await types(acme)).includes('OfAcme'), (await types(globex)).includes('OfAcme')]).toEqual([true, false]);
  });

  test('have plans and cached questions of their own', async () => {
    const asked = 'SELECT x FROM OfAcme';
    expect((await world.query(asked, on('dev', acme))).status).toBe(200);
    expect((await world.query(asked, on('dev', globex))).status).toBe(404);
  });

  test('are taken within the tenant, and for every tenant where they are the store’s', async () => {
    for (const [name, of] of [
      ['dev', { 'x-organization-id': 'acme/eu' }],
      ['everybodys', acme],
      ['everybodys', initech],
      ['main', acme],
    ] as const) {
      expect((await fork(name, of)).status).toBe(409);
    }
  });

  test('end one by one', async () => {
    for (const of of [acme, globex]) expect((await fork('ends', of)).status).toBe(201);
    await put('ends', globex, 'left');
    expect((await world.call('DELETE', '/schema/branches/ends', undefined, acme)).json).toEqual({
      deleted: true,
      branch: 'ends',
    });
    expect((await world.query('SELECT _pk FROM Ship', on('ends', acme))).status).toBe(404);
    expect(await keys('ends', globex)).toEqual(['left', 'shared']);
    expect((await fork('ends', acme)).status).toBe(201);
    expect(await keys('ends', acme)).toEqual(['shared']);
  });

  test('are proven each to its own tenant', async () => {
    const position = async (of: Headers): Promise<unknown> =>
      (await world.call('GET', '/audit/proof?branch=dev', undefined, of)).json['position'];
    const [first, second] = [await position(acme), await position({ 'x-organization-id': 'globex' })];
    expect([typeof first, typeof second, first === second]).toEqual(['number', 'number', false]);
  });
});

describe('whoever tries a name that only another tenant has', () => {
  const attempts: readonly (readonly [string, (name: string, of: Headers) => Promise<Reply>])[] = [
    ['a question', (name, of) => world.query('SELECT _pk FROM Ship', on(name, of))],
    ['a question by the body', (name, of) => world.call('POST', '/query', { sql: 'SELECT _pk FROM Ship', branch: name }, of)],
    ['EXPLAIN', (name, of) => world.query('EXPLAIN POLICY SELECT _pk FROM Ship', on(name, of))],
    ['a write', (name, of) => put(name, of, 'x')],
    ['a hard delete', (name, of) => world.call('DELETE', '/types/Ship/a1?hard=true', undefined, on(name, of))],
    ['a registration', (name, of) => world.call('POST', '/types', { name: 'T', properties: { x: 'string' } }, on(name, of))],
    ['types', (name, of) => world.call('GET', '/types', undefined, on(name, of))],
    ['an export', (name, of) => world.call('GET', '/export?sql=SELECT%20_pk%20FROM%20Ship&format=csv', undefined, on(name, of))],
    ['the audit', (name, of) => world.call('GET', '/audit/entries', undefined, on(name, of))],
    ['a proof', (name, of) => world.call('GET', `/audit/proof?branch=${name}`, undefined, of)],
    ['a fork of it', (name, of) => fork('child', of, name)],
    ['BRANCH', (name, of) => world.query(`BRANCH child FROM ${name}`, of)],
    ['a fork of its types', (name, of) => world.call('POST', '/schema/branches/child', { from: name }, of)],
    ['a view', (name, of) => world.query('CREATE MATERIALIZED VIEW w AS SELECT _pk FROM Ship', on(name, of))],
    ['a deletion', (name, of) => world.call('DELETE', `/schema/branches/${name}`, undefined, of)],
    ['WATCH', (name, of) => world.query("WATCH PURPOSE 'p' SELECT * FROM Ship", on(name, of))],
  ];
  const told = ({ status, text }: Reply, name: string): unknown => [
    status,
    text.replaceAll(name, '…').replace(/"(instance|correlation_id|request_id)":"[^"]*"/g, ''),
  ];

  test.each(attempts)('by %s is answered as for a name that nobody has', async (_, attempt) => {
    for (const of of [initech, {}]) {
      const reply = await attempt('dev', of);
      expect(reply.status).toBe(404);
      expect(told(reply, 'dev')).toEqual(told(await attempt('nobodys', of), 'nobodys'));
    }
  });

  test('may fork it as if nobody had it', async () => {
    const free = await fork('free', initech);
    await fork('secret', acme);
    const taken = await fork('secret', initech);
    expect([taken.status, taken.text.replace('secret', 'free')]).toEqual([free.status, free.text]);
    expect((await fork('secret', {})).status).toBe(201);
    await put('secret', acme, 'own');
    expect([await keys('secret', acme), await keys('secret', globex)]).toEqual([['own', 'shared'], ['shared']]);
  });
});
