/** Rows on their way in under installed policies and guards, by every route that takes rows. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tenantlessCaller } from '../../../src/governance/caller.ts';
import type { Reply } from './door-world.ts';
import { StoreWorld } from './store-world.ts';

type Headers = Record<string, string>;

let world: StoreWorld;
let clerk: Headers;
let officer: Headers;
beforeAll(async () => {
  world = await StoreWorld.open();
  clerk = await world.tokenFor({ principal: 'clerk', roles: ['clerk'] });
  officer = await world.tokenFor({ principal: 'officer', roles: ['clerk', 'break-glass'] });
  await world.call('POST', '/types', { name: 'Person', properties: { region: 'string' } });
  await world.call('POST', '/types', { name: 'Source', properties: { region: 'string' }, protected: true });
  const admin = tenantlessCaller('root', 'admin', 'test');
  for (const [id, text] of [
    [
      'write',
      'permit(principal in Role::"clerk", action in [Action::"write", Action::"delete"], resource) when { resource.region == "EU" };',
    ],
    ['read', 'permit(principal, action == Action::"read", resource);'],
  ] as const) {
    await world.service.gate.invoke(admin, { action: 'administer', purpose: null, correlationId: 'c' }, (invocation) =>
      invocation.submit({ kind: 'put-policy', id, text }),
    );
  }
});
afterAll(() => world.close());

const rows = (prefix: string): string =>
  [
    { id: `${prefix}0`, region: 'EU' },
    { id: `${prefix}1`, region: 'US' },
    { id: `${prefix}2`, region: 'EU' },
    { id: `${prefix}3` },
  ]
    .map((row) => JSON.stringify(row))
    .join('\n');

const refused = (index: number): object => ({ index, code: 'REL_ACL', detail: 'no policy permits writing this row' });
const told = ({ status, json }: Reply): unknown => [status, json['accepted'], json['rejected'], json['errors']];
const written = async (prefix: string, type = 'Person'): Promise<unknown> =>
  (await world.rows(`SELECT id FROM ${type} WHERE id LIKE '${prefix}%' ORDER BY id`)).map(({ id }) => id);

describe.each([
  ['a', '/ingest?object_type=Person', {}],
  ['b', '/ingest/bulk?object_type=Person', {}],
  ['c', '/ingest/auto?object_type=Made', {}],
  ['d', '/ingest?object_type=Person', { 'idempotency-key': 'key-d' }],
  ['e', '/ingest?object_type=Person', { 'content-encoding': 'identity', 'content-type': 'application/x-ndjson' }],
])('rows %s by %s', (prefix, path, headers: Headers) => {
  test('are rejected one by one, and again alike', async () => {
    const type = path.split('=')[1]!;
    const put = (): Promise<Reply> => world.call('POST', path, rows(prefix), { ...clerk, ...headers });
    expect(told(await put())).toEqual([200, 2, 2, [refused(1), refused(3)]]);
    expect(await written(prefix, type)).toEqual([`${prefix}0`, `${prefix}2`]);
    expect(told(await put())).toEqual([200, 2, 2, [refused(1), refused(3)]]);
  });

  test('are refused as one where all or none are asked for, or nobody may write', async () => {
    const type = path.split('=')[1]!;
    const put = (more: string, who: Headers): Promise<Reply> =>
      world.call('POST', `${path}${more}`, rows(`${prefix}x`), { ...headers, ...who, 'idempotency-key': `${prefix}${more}` });
    const atomic = await put('&atomic=true', clerk);
    expect([atomic.status, atomic.json['detail']]).toEqual([403, 'row 1: no policy permits writing this row']);
    const denied = await put('', {});
    expect([denied.status, String(denied.json['type']).split('/').at(-1)]).toEqual([403, 'REL_ACL']);
    expect(await written(`${prefix}x`, type)).toEqual([]);
  });
});

test('a stream of many batches is judged to its end, by the place of each row in it', async () => {
  const count = 7_000;
  const body = Array.from({ length: count }, (_, i) =>
    JSON.stringify({ id: `s${i}`, region: i % 1_000 === 999 ? 'US' : 'EU' }),
  ).join('\n');
  const { json } = await world.call('POST', '/ingest?object_type=Person', body, clerk);
  expect([json['accepted'], json['rejected']]).toEqual([count - 7, 7]);
  expect((json['errors'] as { index: number }[]).map(({ index }) => index)).toEqual([999, 1999, 2999, 3999, 4999, 5999, 6999]);
});

test('a row that may not go is as one that is not there', async () => {
  await world.call('POST', '/ingest?object_type=Person', { id: 'eu', region: 'EU' }, clerk);
  const end = async (id: string): Promise<unknown> => {
    const { status, json } = await world.call('DELETE', `/types/Person/${id}`, undefined, clerk);
    return [status, json['detail'] ?? json['type']];
  };
  // Written by somebody else, as it were: the policy that let it in is gone.
  const admin = tenantlessCaller('root', 'admin', 'test');
  const policy = (id: string, text: string) =>
    world.service.gate.invoke(admin, { action: 'administer', purpose: null, correlationId: 'c' }, (invocation) =>
      invocation.submit({ kind: 'put-policy', id, text }),
    );
  await policy('more', 'permit(principal in Role::"clerk", action == Action::"write", resource);');
  await world.call('POST', '/ingest?object_type=Person', { id: 'us', region: 'US' }, clerk);
  expect(await end('us')).toEqual(await end('never'));
  expect(await written('us')).toEqual(['us']);
  expect((await end('eu')) as unknown[]).toContain(200);
});

test('a task that is answered later says then what it stated at first', async () => {
  const accepted = await world.call(
    'POST',
    '/ingest?object_type=Source&async=true',
    { id: 'later', region: 'EU' },
    {
      ...officer,
      'x-service-break-glass': 'threat',
    },
  );
  expect(accepted.status).toBe(202);
  const url = accepted.json['status_url'] as string;
  let state = 'queued';
  for (let i = 0; i < 200 && (state === 'queued' || state === 'running'); i++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    state = (await world.call('GET', url, undefined, officer)).json['status'] as string;
  }
  expect(await world.rows('SELECT id FROM Source', { ...officer, 'x-service-break-glass': 'look' })).toEqual([{ id: 'later' }]);
});
