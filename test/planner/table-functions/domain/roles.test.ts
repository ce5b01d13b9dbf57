/** The frame: which types play a role, what an answer has, and what is refused. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rowsOf, TestStore } from '../../../harness.ts';

let store: TestStore;

beforeAll(async () => {
  store = await TestStore.open('2024-01-01');
});
afterAll(() => store.close());

async function tiers(sql: string): Promise<string> {
  const rows = rowsOf(await store.answer(sql));
  return rows.map((row) => [row['type'], row['nodeId'], row['tier'], row['score']].join(' ')).join(', ');
}

test('a role that no type plays is named', async () => {
  expect(await store.refusal('INFLUENCE_TIER()')).toMatchObject({
    code: 'REL_UNKNOWN_TYPE',
    message: expect.stringContaining('account'),
  });
});

test("a default type's name is anybody's: it plays the role where its columns fit", async () => {
  await store.register('Account', { id: 'string', balance: 'integer' }, 'id');
  await store.put('Account', [{ id: 'b1', balance: 5 }]);
  expect((await store.refusal('INFLUENCE_TIER()')).code).toBe('REL_UNKNOWN_TYPE');
  expect((await store.refusal("INFLUENCE_TIER(SOURCE => 'Account')")).code).toBe('REL_INVALID');
});

test('rows of every type that declares the role, best first, then by id', async () => {
  for (const name of ['Profile', 'Channel']) {
    await store.register(name, { id: 'string', handle: 'string', followers: 'integer' }, 'id', { role: 'account' });
  }
  await store.put('Profile', [
    { id: 'b', handle: 'b', followers: 999 },
    { id: 'a', handle: 'a', followers: 1000 },
    { id: 'n', handle: 'n', followers: null },
  ]);
  store.clock.set('2024-02-01');
  await store.put('Channel', [{ id: 'a', handle: 'c', followers: 1_000_000 }]);
  await store.put('Profile', [{ id: 'b', handle: 'b', followers: 100_000 }]);
  expect(await tiers('SELECT * FROM INFLUENCE_TIER()')).toBe(
    'Channel a mega 1, Profile b macro 0.75, Profile a micro 0.25, Profile n  ',
  );
  expect(await tiers('INFLUENCE_TIER() LIMIT 1')).toBe('Channel a mega 1');
  expect(await tiers("SELECT * FROM INFLUENCE_TIER('a', SOURCE => 'Profile')")).toBe('Profile a micro 0.25');
  expect(await tiers("INFLUENCE_TIER() AS OF SYSTEM TIME '2024-01-15'")).toBe(
    'Profile a micro 0.25, Profile b nano 0, Profile n  ',
  );
  expect(await store.rows("INFLUENCE_TIER('b')")).toEqual([
    {
      nodeId: 'b',
      type: 'Profile',
      tier: 'macro',
      followers: 100_000n,
      score: 0.75,
      method: 'followers/1',
      evidence: '{"followers":100000}',
    },
  ]);
});

test.each([
  ["INFLUENCE_TIER(COLOUR => 'x')", 'REL_INVALID', 'COLOUR'],
  ['INFLUENCE_TIER(1.5)', 'REL_INVALID', 'ACCOUNT'],
  ["INFLUENCE_TIER(SOURCE => 'Nope')", 'REL_UNKNOWN_TYPE', 'Nope'],
])('%s', async (sql, code, named) => {
  expect(await store.refusal(sql)).toMatchObject({ code, message: expect.stringContaining(named) });
});
