/** FUSE_IDENTITIES and SPLIT_IDENTITIES: who may judge what, and what a judgement that was made says to the next. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Caller } from '../../../../src/governance/caller.ts';
import { analyst, TestStore } from '../../../harness.ts';

const admin: Caller = { ...analyst, principal: 'root', credential: 'admin' };
const acme: Caller = { ...analyst, tenant: 'acme', path: 'acme' };

let store: TestStore;

beforeAll(async () => {
  store = await TestStore.open('2024-01-01');
  await store.register('Person', { id: 'string', name: 'string' }, 'id');
  await store.register('Account', { id: 'string', handle: 'string' }, 'id');
  await store.put(
    'Person',
    ['a', 'b', 'c', 'd', 'both'].map((id) => ({ id, name: id })),
  );
  await store.put('Account', [
    { id: 'x', handle: 'x' },
    { id: 'both', handle: 'both' },
  ]);
});
afterAll(() => store.close());

test('rows of any types are one thing, and the same again changes nothing', async () => {
  expect(await store.rows("FUSE_IDENTITIES('a', 'x', REASON => 'one passport')")).toEqual([
    { a: 'a', a_type: 'Person', b: 'x', b_type: 'Account', judgement: 'positive', changed: true },
  ]);
  expect((await store.rows("SELECT * FROM FUSE_IDENTITIES('x', 'a', 'again')"))[0]).toMatchObject({ changed: false });
});

test('a negative judgement on the path is the answer to a fusion', async () => {
  await store.rows("SPLIT_IDENTITIES('x', 'b', 'two birth dates')");
  for (const [a, b] of [
    ['x', 'b'],
    ['a', 'b'],
    ['b', 'a'],
  ]) {
    const { code, message, facts } = await store.refusal(`FUSE_IDENTITIES('${a}', '${b}')`);
    expect([code, message]).toEqual(['REL_CONFLICT', '"x" of Account and "b" of Person were judged to be two: two birth dates']);
    expect(facts.extras).toEqual({
      judgement: 'negative',
      a: { type: 'Account', key: 'x' },
      b: { type: 'Person', key: 'b' },
      reason: 'two birth dates',
    });
  }
  // Without the judgement between them, the path is open.
  await store.rows("SPLIT_IDENTITIES('a', 'x')");
  expect((await store.rows("FUSE_IDENTITIES('a', 'b')"))[0]).toMatchObject({ changed: true });
});

test.each([
  ["FUSE_IDENTITIES('a', 'nobody')", 'REL_NOT_FOUND', 'no row has the key "nobody"'],
  ["FUSE_IDENTITIES('c', 'both')", 'REL_INVALID', "'Account:both'"],
  ["FUSE_IDENTITIES('c', 'c')", 'REL_INVALID', 'one row'],
  ["FUSE_IDENTITIES('c', 7)", 'REL_INVALID', 'a text in quotes'],
  ["FUSE_IDENTITIES('c', 'd', WHY => 'x')", 'REL_INVALID', 'WHY'],
  ["SPLIT_IDENTITIES('c', 'd', 'x', REASON => 'y')", 'REL_INVALID', 'twice'],
])('%s', async (sql, code, detail) => {
  expect(await store.refusal(sql)).toMatchObject({ code, message: expect.stringContaining(detail) });
});

test('a key that rows of several types have is told with its type', async () => {
  expect(await store.rows("FUSE_IDENTITIES('Person:both', 'Account:both')")).toMatchObject([
    { a: 'both', b: 'both', changed: true },
  ]);
});

test('a row of another path is as none', async () => {
  expect((await store.refusal("FUSE_IDENTITIES('a', 'c')", acme)).code).toBe('REL_NOT_FOUND');
});

test('both rows have to be ones that the caller may write', async () => {
  const policy = (id: string, text: string) =>
    store.service.gate.invoke(admin, { action: 'administer', purpose: null, correlationId: 'c' }, (invocation) =>
      invocation.submit({ kind: 'put-policy', id, text }),
    );
  await policy('all', 'permit(principal, action, resource);');
  await policy('d', 'forbid(principal, action == Action::"write", resource is Person) when { resource.name == "d" };');
  for (const [a, b] of ['cd', 'dc']) expect((await store.refusal(`SPLIT_IDENTITIES('${a}', '${b}')`)).code).toBe('REL_ACL');
  await policy('accounts', 'forbid(principal, action == Action::"write", resource is Account);');
  expect((await store.refusal("SPLIT_IDENTITIES('c', 'x')")).code).toBe('REL_ACL');
  expect(await store.rows("SPLIT_IDENTITIES('c', 'a')")).toMatchObject([{ changed: true }]);
  await policy('unseen', 'forbid(principal, action == Action::"read", resource is Person) when { resource.name == "c" };');
  expect((await store.refusal("SPLIT_IDENTITIES('c', 'b')")).code).toBe('REL_NOT_FOUND');
});
