/** RESOLVE_IDENTITY: clusters, judgements and their undoing, rows that nobody sees, fusion by rules, trained weights. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Caller } from '../../../../src/governance/caller.ts';
import type { RuleDefinition } from '../../../../src/projections/rules/rule.ts';
import { analyst, TestStore } from '../../../harness.ts';
import { persons } from '../../../quality/identity-sets.ts';

const admin: Caller = { ...analyst, principal: 'root', credential: 'admin' };
const person = {
  id: 'string',
  first_name: 'string',
  last_name: 'string',
  dob: 'string',
  phone: 'string',
  city: 'string',
} as const;

async function membersOf(store: TestStore, value: string, more = ''): Promise<string[]> {
  return (await store.rows(`RESOLVE_IDENTITY('${value}')${more}`)).map(({ nodeId }) => String(nodeId)).sort();
}

describe('a family, a namesake and a person who is there twice', () => {
  let store: TestStore;
  beforeAll(async () => {
    store = await TestStore.open('2024-01-01');
    await store.register('Person', person, 'id');
    await store.register('Account', { id: 'string', handle: 'string', name: 'string', phone: 'string' }, 'id');
    const smith = { last_name: 'Smith', phone: '+44 20 7946 0018', city: 'London' };
    await store.put('Person', [
      { id: 'p1', first_name: 'Robert', dob: '1970-01-31', ...smith },
      { id: 'p2', first_name: 'Bob', dob: '1970-01-31', ...smith, phone: '+442079460018' },
      { id: 'wife', first_name: 'Anna', dob: '1992-07-03', ...smith },
      { id: 'other', first_name: 'Robert', last_name: 'Smith', dob: '1951-11-12', phone: null, city: 'Leeds' },
      { id: 'w', first_name: 'Wolfgang', last_name: 'Maier', dob: '1992-07-03', phone: null, city: 'Graz' },
    ]);
    await store.put('Account', [{ id: 'a1', handle: 'bobby', name: 'Bob Smith', phone: '0044 20 79460018' }]);
  });
  afterAll(() => store.close());

  test('by an id, an identifier and a name', async () => {
    for (const value of ['p1', 'p2', 'a1']) expect(await membersOf(store, value)).toEqual(['a1', 'p1', 'p2']);
    expect(await membersOf(store, '+442079460018')).toEqual(['a1', 'p1', 'p2', 'wife']);
    expect([await membersOf(store, 'wolfgang maier'), await membersOf(store, 'Maier, Wolfgang')]).toEqual([['w'], ['w']]);
    expect([await membersOf(store, 'other'), await membersOf(store, 'nobody at all')]).toEqual([['other'], []]);
  });

  test('one row stands for the cluster, by its smallest id', async () => {
    const [row, ...more] = await store.rows("RESOLVE_IDENTITY('p2', MODE => 'canonical')");
    expect(more).toEqual([]);
    expect([row!['nodeId'], row!['type'], JSON.parse(String(row!['members']))]).toEqual([
      'a1',
      'Account',
      ['a1', 'p1', 'p2'].map((id) => ({ id, type: id === 'a1' ? 'Account' : 'Person' })),
    ]);
    expect(await store.column("SELECT * FROM RESOLVE_IDENTITY('p2', MODE => 'canonical', SOURCE => 'Person')")).toEqual(['p1']);
  });

  test('a fusion joins what nothing else does, and a split undoes it to the byte', async () => {
    const before = await store.rows("RESOLVE_IDENTITY('w')");
    store.clock.set('2024-02-01');
    await store.rows("FUSE_IDENTITIES('w', 'p1', 'one passport')");
    store.clock.set('2024-03-01');
    for (const value of ['w', 'a1']) expect(await membersOf(store, value)).toEqual(['a1', 'p1', 'p2', 'w']);
    const fused = (await store.rows("RESOLVE_IDENTITY('w')")).find(({ nodeId }) => nodeId === 'w')!;
    expect(JSON.parse(String(fused['evidence']))).toMatchObject({ links: [{ to: 'p1', by: 'judgement', score: 1 }] });
    await store.rows("SPLIT_IDENTITIES('p1', 'w')");
    expect(await store.rows("RESOLVE_IDENTITY('w')")).toEqual(before);
    store.clock.set('2024-04-01');
    expect(await membersOf(store, 'w', " AS OF SYSTEM TIME '2024-01-15'")).toEqual(['w']);
    expect(await membersOf(store, 'w', " AS OF SYSTEM TIME '2024-02-15'")).toEqual(['a1', 'p1', 'p2', 'w']);
  });

  test('a split parts what is alike, and stands in the way of those between', async () => {
    await store.rows("SPLIT_IDENTITIES('p1', 'p2')");
    const [one, other] = [await membersOf(store, 'p1'), await membersOf(store, 'p2')];
    expect(one.includes('p2') || other.includes('p1')).toBe(false);
    expect([...one, ...other].sort()).toEqual(['a1', 'p1', 'p2']);
  });

  test('fusion takes each field by the first rule that finds one; without rules it is refused', async () => {
    const refused = await store.refusal("RESOLVE_IDENTITY('w', MODE => 'fuse')");
    expect([refused.code, refused.status]).toEqual(['REL_UNPROCESSABLE', 422]);
    await store.rows("FUSE_IDENTITIES('w', 'other')");
    const rule = (name: string, field: string, keep: string): RuleDefinition => ({
      kind: 'enrich',
      name,
      object_type: 'Person',
      field,
      keep,
    });
    for (const definition of [
      rule('r1', 'city', 'source:registry'),
      rule('r2', 'city', 'longest'),
      rule('r3', 'last_name', 'newest'),
      rule('r4', 'phone', 'most_frequent'),
    ]) {
      await store.invoke(analyst, 'schema', (invocation) =>
        invocation.submit({ kind: 'put-rule', id: definition.name, definition, author: { credential: 'token', token: null } }),
      );
    }
    const [row] = await store.rows("RESOLVE_IDENTITY('w', MODE => 'fuse')");
    const fields = JSON.parse(String(row!['fields'])) as Record<
      string,
      { value: unknown; source: { id: string }; rule: string | null }
    >;
    expect(Object.entries(fields).map(([name, { value, source, rule: by }]) => [name, value, source.id, by])).toEqual([
      ['city', 'Leeds', 'other', 'r2'],
      ['last_name', 'Maier', 'w', 'r3'],
    ]);
  });

  test('a hidden row joins nobody, and a masked cell says nothing', async () => {
    const policy = (id: string, text: string) =>
      store.service.gate.invoke(admin, { action: 'administer', purpose: null, correlationId: 'c' }, (invocation) =>
        invocation.submit({ kind: 'put-policy', id, text }),
      );
    await policy('all', 'permit(principal, action, resource);');
    await policy('unseen', 'forbid(principal, action == Action::"read", resource is Account);');
    expect([await membersOf(store, 'p1'), await membersOf(store, 'a1'), await membersOf(store, 'bobby')]).toEqual([
      ['p1'],
      [],
      [],
    ]);
    await policy('phones', '@mask("null") forbid(principal, action == Action::"readCell", resource == Column::"Person.phone");');
    expect(await membersOf(store, '+442079460018')).toEqual([]);
  });
});

test('a household is not one person: all parts of an address say together that rows share one, and no more', async () => {
  const store = await TestStore.open('2024-01-01');
  const texts = 'given_name surname street_number address_1 suburb postcode state date_of_birth soc_sec_id'.split(' ');
  await store.register('Person', Object.fromEntries(['id', ...texts].map((name) => [name, 'string'])), 'id');
  const home = { street_number: '142', address_1: 'waratah close', suburb: 'bendigo', postcode: '3357', state: 'wa' };
  await store.put('Person', [
    { id: 'a', ...home, given_name: 'daniel', surname: 'nakamura', date_of_birth: '20081008', soc_sec_id: '6048944' },
    { id: 'b', ...home, given_name: null, surname: 'nakamura', date_of_birth: null, soc_sec_id: '3920264' },
    { id: 'c', ...home, given_name: 'mia', surname: 'nakamura', date_of_birth: '19600512', soc_sec_id: '1359917' },
    { id: 'd', ...home, given_name: 'dan', surname: 'nakamura', date_of_birth: '20081008', soc_sec_id: '6048944', suburb: null },
  ]);
  const clusters = [];
  for (const id of ['a', 'b', 'c', 'd']) clusters.push(await membersOf(store, id));
  expect(clusters).toEqual([['a', 'd'], ['b'], ['c'], ['a', 'd']]);
  await store.close();
});

describe('trained weights', () => {
  let store: TestStore;
  const acme: Caller = { ...analyst, path: 'acme', tenant: 'acme' };
  const globex: Caller = { ...analyst, path: 'globex', tenant: 'globex' };
  const train = async (caller: Caller) =>
    (await store.rows("TRAIN_IDENTITIES('Person')", caller)).map(({ weights }) => String(weights));
  const modelFor = (weights: unknown) => [{ id: 'people', of_type: 'Person', weights: JSON.stringify(weights) }];

  beforeAll(async () => {
    store = await TestStore.open('2024-01-01');
    await store.register('IdentityModel', { id: 'string', of_type: 'string', weights: 'json' }, 'id');
    await store.register('Person', person, 'id');
    const { rows } = persons(1);
    const text = (cell: string | number | null | undefined): string | null =>
      cell === undefined || cell === null ? null : String(cell);
    await store.put(
      'Person',
      rows.slice(0, 240).map(({ row }, i) => ({
        id: `p${i}`,
        first_name: text(row['given_name']),
        last_name: text(row['surname']),
        dob: text(row['date_of_birth']),
        phone: null,
        city: text(row['suburb']),
      })),
      acme,
    );
  });
  afterAll(() => store.close());

  test('say how often columns agree, the same of the same rows, and hold no value', async () => {
    const [weights] = (await train(acme)) as [string];
    expect(await train(acme)).toEqual([weights]);
    const found = JSON.parse(weights) as Record<string, { m: number; u: number }>;
    expect(Object.keys(found)).toEqual(['name', 'birth', 'identifier phone', 'city']);
    for (const group of ['name', 'birth', 'city']) {
      expect(found[group]!.m).toBeGreaterThan(0.6);
      expect(found[group]!.u).toBeLessThan(0.1);
    }
    expect(await train(globex)).toEqual([]);
  });

  test('the newest model at the instant that is asked about weighs, and that of another tenant moves nobody', async () => {
    const ask = (caller: Caller, more = '') => store.rows(`RESOLVE_IDENTITY('p1')${more}`, caller);
    const before = await ask(acme);
    expect(before[0]!['method']).toBe('fellegi-sunter/4');
    // By these, people of two names are as likely one as not.
    const careless = { name: { m: 0.5, u: 0.499 }, birth: { m: 0.5, u: 0.499 }, city: { m: 0.5, u: 0.499 } };
    store.clock.set('2024-02-01');
    await store.put('IdentityModel', modelFor(careless), globex);
    expect(await ask(acme)).toEqual(before);
    await store.put('IdentityModel', modelFor(JSON.parse((await train(acme))[0]!)), acme);
    const trained = await ask(acme);
    expect(String(trained[0]!['method'])).toMatch(/^fellegi-sunter\/4 \(Person: people of 2024-02-01T00:00:00\.\d{9}Z\)$/);
    store.clock.set('2024-03-01');
    await store.put('IdentityModel', modelFor(careless), acme);
    expect(String((await ask(acme))[0]!['method'])).toContain('2024-03-01');
    expect(await ask(acme, " AS OF SYSTEM TIME '2024-02-15'")).toEqual(trained);
    expect(await ask(acme, " AS OF SYSTEM TIME '2024-01-15'")).toEqual(before);
    // A model that is none is no model.
    await store.put('IdentityModel', modelFor({ name: { m: 2, u: 0 } }), acme);
    expect((await ask(acme))[0]!['method']).toBe('fellegi-sunter/4');
  });
});
