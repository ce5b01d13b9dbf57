/** Functions that say who somebody is, after an erasure: the subject is in no cluster, model, list, narrative or evidence. */
import { expect, test } from 'vitest';
import { acme, ErasureWorld, person } from './erasure-world.ts';

const asked = [
  "RESOLVE_IDENTITY('p1')",
  "RESOLVE_IDENTITY('p4')",
  "RESOLVE_IDENTITY('Alice Canary')",
  "RESOLVE_IDENTITY('alice@example.org', MODE => 'canonical')",
  "LOOKUP_IDENTITY('alice@example.org')",
  "SANCTIONS_SCREEN('Alice Canary', THRESHOLD => 0.3)",
  "NARRATIVE_TRACE('alice canary sailed at dawn', SIMILARITY => 0.3)",
  "TRAIN_IDENTITIES('Person')",
] as const;

test('an erased subject is in no cluster, model or evidence, then and at every earlier instant, also after a restart', async () => {
  const world = await new ErasureWorld().open();
  const { store } = world;
  const whose = { ...person['who']! };
  const email = person['name']!;
  const type = (name: string, properties: Record<string, typeof whose>): Promise<unknown> =>
    store.invoke(acme, 'schema', (invocation) =>
      invocation.submit({ kind: 'register-type', name, properties, primaryKey: 'id', graphTriggers: [] }),
    );
  await type('Person', { ...person, email });
  await type('Listing', { ...person, list: email });
  await type('Post', { ...person, account: email, text: email });
  world.tick();
  const alice = { who: 'alice', name: 'Alice Canary' };
  const people = [
    { id: 'p1', ...alice, email: 'alice@example.org' },
    { id: 'p4', who: null, name: 'Canary, Alice', email: 'alice@example.org' },
    { id: 'p2', who: 'bob', name: 'Bob Stone', email: 'bob@example.org' },
    { id: 'p3', who: null, name: 'Robert Stone', email: 'bob@example.org' },
  ];
  await store.put('Person', people, acme);
  await store.put('Listing', [{ id: 'l1', ...alice, list: 'one' }], acme);
  await store.put('Post', [{ id: 't1', ...alice, account: 'c1', text: 'alice canary sailed at dawn' }], acme);
  world.tick();
  await store.rows("FUSE_IDENTITIES('p1', 'p2')", acme);
  await store.register('IdentityModel', { id: 'string', of_type: 'string', weights: 'json' }, 'id');
  const [trained] = await store.rows("TRAIN_IDENTITIES('Person')", acme);
  await store.put('IdentityModel', [{ id: 'm1', of_type: 'Person', weights: String(trained!['weights']) }], acme);
  world.tick();
  const answers = (more = '', within = world): Promise<readonly string[]> =>
    Promise.all(asked.map(async (call) => JSON.stringify(await within.store.rows(call + more, acme), plain)));
  const before = await answers();
  // The subject is there: else its absence shows nothing.
  for (const [i, text] of before.slice(0, -1).entries()) expect(text, asked[i]).toMatch(/"p1"|"l1"|"t1"/);
  const instant = new Date(Number(world.clock.wallNs / 1_000_000n)).toISOString();
  world.tick();
  expect((await world.erase()).certified).toBe(true);
  for (const more of ['', ` AS OF SYSTEM TIME '${instant}'`]) {
    const after = await answers(more);
    for (const [i, text] of after.entries()) expect(text, asked[i]! + more).not.toMatch(/"p1"|"l1"|"t1"|sailed/);
    expect(after[1]).toContain('"p4"');
    await world.restart();
    expect(await answers(more)).toEqual(after);
  }
  expect(world.store.service.store.projections.judgements.judgementsOn(0)).toEqual([]);
  await world.store.close();
});

function plain(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}
