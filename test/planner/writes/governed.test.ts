/** Writes by SQL under policies, masks and paths: what is hidden is never changed, counted, returned or worked out from. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import type { Caller } from '../../../src/governance/caller.ts';
import type { Command } from '../../../src/projections/command.ts';
import { analyst, type Row, rowsOf, TestStore } from '../../harness.ts';

const admin: Caller = { ...analyst, principal: 'root', credential: 'admin' };
const ann: Caller = { ...analyst, principal: 'ann', tenant: 'acme', path: 'acme', roles: ['clerk'] };
const below: Caller = { ...ann, principal: 'bob', path: 'acme/eu' };
const chief: Caller = { ...ann, principal: 'chief', roles: ['unmask'] };

let store: TestStore;
beforeEach(async () => {
  store = await TestStore.open('2024-01-01');
  const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0 };
  await store.register('Person', { name: 'string', region: 'string', secret: { ...plain, type: 'string', masked: true } });
  await store.register('Copy', { text: 'string' });
  await store.execute(
    "INSERT INTO Person (id, name, region, secret) VALUES ('e', 'E', 'EU', 's-e'), ('u', 'U', 'US', 's-u')",
    [],
    chief,
  );
  store.clock.set('2024-01-02');
});
afterEach(() => store.close());

const submit = (command: Command): Promise<unknown> => store.invoke(admin, 'ingest', (invocation) => invocation.submit(command));
const install = (...texts: readonly string[]): Promise<unknown> =>
  Promise.all(texts.map((text, i) => submit({ kind: 'put-policy', id: `p${i}`, text })));
const european = [
  'permit(principal, action == Action::"write", resource);',
  'permit(principal, action == Action::"delete", resource);',
  'permit(principal, action == Action::"read", resource) when { resource has region && resource.region == "EU" };',
  'permit(principal in Role::"unmask", action, resource);',
];
const rows = (sql = 'SELECT id, name, region, secret FROM Person', who = chief): Promise<Row[]> =>
  store.rows(`${sql} AS OF CURRENT ORDER BY 1`, who);

async function tried(sql: string, who = ann): Promise<unknown> {
  try {
    const { answer, written } = await store.execute(sql, [], who);
    const { inserted, updated, deleted, kept } = written!;
    return { counts: [inserted, updated, deleted, kept], rows: rowsOf(answer) };
  } catch (error) {
    if (error instanceof ServiceError) return `${error.code} ${error.message}`;
    throw error;
  }
}
const none = { counts: [0, 0, 0, 0], rows: [] };

test('a masked column is written, and nothing is worked out from it', async () => {
  const refused = /^REL_MASKED_COLUMN column "secret" of "Person" is masked/;
  for (const sql of [
    'UPDATE Person SET name = secret',
    "UPDATE Person SET name = 'x' WHERE secret = 's-e'",
    "UPDATE Person SET name = 'x' WHERE secret IS NULL",
    "UPDATE Person SET name = 'x' RETURNING secret",
    'UPDATE Person SET name = name RETURNING *',
    'UPDATE Person p SET name = q.name FROM Person q WHERE q.secret = p.secret',
    "UPDATE Person p SET name = 'x' FROM (SELECT secret AS s FROM Person) q WHERE q.s = 's-e'",
    "DELETE FROM Person WHERE secret LIKE 's%'",
    'DELETE FROM Person RETURNING UPPER(secret)',
    'DELETE FROM Copy USING Person p WHERE p.secret = Copy.text',
    'INSERT INTO Copy (text) SELECT secret FROM Person',
    "INSERT INTO Copy (text) SELECT name FROM Person WHERE secret > 'a'",
    "INSERT INTO Copy (text) VALUES ((SELECT secret FROM Person WHERE id = 'e'))",
    "INSERT INTO Person (id, secret) VALUES ('n', 'mine') RETURNING secret",
    "INSERT INTO Person (id, name) VALUES ('e', 'x') ON CONFLICT (id) DO UPDATE SET name = Person.secret",
    "INSERT INTO Person (id, name) VALUES ('e', 'x') ON CONFLICT (id) DO UPDATE SET name = 'x' WHERE Person.secret = 's-e'",
  ]) {
    expect(await tried(sql), sql).toMatch(refused);
  }
  const before = await rows();
  expect(before.map(({ secret }) => secret)).toEqual(['s-e', 's-u']);
  expect(await tried("UPDATE Person SET name = 'N' WHERE id = 'e' RETURNING name")).toEqual({
    counts: [0, 1, 0, 0],
    rows: [{ name: 'N' }],
  });
  expect(
    await tried("INSERT INTO Person (id, name) VALUES ('u', 'V') ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name"),
  ).toMatchObject({ counts: [0, 1, 0, 0] });
  expect(await tried("UPDATE Person SET secret = 'new' WHERE id = 'u'")).toMatchObject({ counts: [0, 1, 0, 0] });
  expect(await rows()).toEqual([
    { id: 'e', name: 'N', region: 'EU', secret: 's-e' },
    { id: 'u', name: 'V', region: 'US', secret: 'new' },
  ]);
});

test('a row that policies hide is as good as not there', async () => {
  await install(...european);
  const before = await rows();
  for (const sql of [
    "UPDATE Person SET name = 'x' WHERE id = 'u' RETURNING name",
    "DELETE FROM Person WHERE id = 'u' RETURNING name",
    "DELETE FROM Person WHERE region = 'US'",
    "UPDATE Person p SET name = 'x' FROM Person q WHERE q.id = 'u' AND p.id = q.id",
    "INSERT INTO Copy (text) SELECT name FROM Person WHERE id = 'u'",
  ]) {
    expect(await tried(sql), sql).toEqual(none);
  }
  expect(await tried('UPDATE Person SET name = UPPER(name) RETURNING id')).toEqual({ counts: [0, 1, 0, 0], rows: [{ id: 'e' }] });
  // An expression that fails on what is hidden says nothing of it.
  expect(await tried("UPDATE Person SET name = CAST(CAST(region = 'EU' AS INTEGER) AS TEXT)")).toBeDefined();
  // That a key is taken shows to whoever may write there, as by ingest; what it holds stays, and is not told.
  const taken = /^REL_CONFLICT .*the row is there already/;
  expect(await tried("INSERT INTO Person (id, name) VALUES ('u', 'x')")).toMatch(taken);
  expect(
    await tried(
      "INSERT INTO Person (id, name) VALUES ('u', 'x') ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name RETURNING region",
    ),
  ).toMatch(taken);
  expect(await tried("INSERT INTO Person (id, name) VALUES ('u', 'x') ON CONFLICT DO NOTHING RETURNING region")).toEqual({
    counts: [0, 0, 0, 1],
    rows: [],
  });
  expect((await rows()).filter(({ id }) => id === 'u')).toEqual(before.filter(({ id }) => id === 'u'));
});

test('who may not write a row writes none of the statement', async () => {
  await install(
    'permit(principal, action == Action::"read", resource);',
    'permit(principal, action in [Action::"write", Action::"delete"], resource is Person) when { resource.region == "EU" };',
    'permit(principal in Role::"unmask", action, resource);',
  );
  const before = await rows();
  for (const sql of [
    "UPDATE Person SET name = 'x'",
    "UPDATE Person SET region = 'US' WHERE id = 'e'",
    'DELETE FROM Person',
    "INSERT INTO Person (id, region) VALUES ('n', 'EU'), ('m', 'US')",
    "INSERT INTO Person (id, region) VALUES ('u', 'EU') ON CONFLICT DO NOTHING",
    "INSERT INTO Copy (text) VALUES ('x')",
    "UPDATE Copy SET text = 'x' WHERE FALSE",
    'DELETE FROM Copy WHERE FALSE',
  ]) {
    expect(await tried(sql), sql).toMatch(/^REL_ACL/);
  }
  expect(await rows()).toEqual(before);
  expect(await tried("UPDATE Person SET name = 'x' WHERE region = 'EU'")).toMatchObject({ counts: [0, 1, 0, 0] });
});

test('who may write and not read inserts, and is shown nothing', async () => {
  await install(
    'permit(principal, action == Action::"write", resource);',
    'permit(principal in Role::"unmask", action, resource);',
  );
  expect(await tried("INSERT INTO Copy (id, text) VALUES ('a', 'x')")).toEqual({ counts: [1, 0, 0, 0], rows: [] });
  expect(await tried("INSERT INTO Copy (id, text) VALUES ('b', 'x') RETURNING id")).toMatch(/^REL_ACL/);
  expect(await tried("UPDATE Copy SET text = 'y'")).toMatch(/^REL_ACL|counts/);
  expect(await rows('SELECT id, text FROM Copy')).toEqual([{ id: 'a', text: 'x' }]);
});

test('rows of other paths are read and never written', async () => {
  await store.execute("INSERT INTO Copy (id, text) VALUES ('a', 'below')", [], below);
  await store.execute("INSERT INTO Copy (id, text) VALUES ('a', 'own'), ('b', 'own')", [], ann);
  expect(await rows('SELECT id, text FROM Copy', ann)).toHaveLength(3);
  expect(await tried("UPDATE Copy SET text = text || '!' RETURNING text")).toEqual({
    counts: [0, 2, 0, 0],
    rows: [{ text: 'own!' }, { text: 'own!' }],
  });
  expect(
    await tried("INSERT INTO Copy (id, text) VALUES ('a', 'x') ON CONFLICT (id) DO UPDATE SET text = Copy.text || EXCLUDED.text"),
  ).toMatchObject({ counts: [0, 1, 0, 0] });
  expect(await tried('DELETE FROM Copy')).toMatchObject({ counts: [0, 0, 2, 0] });
  expect(await rows('SELECT id, text FROM Copy', ann)).toEqual([{ id: 'a', text: 'below' }]);
});

test('branches keep what is written to them', async () => {
  await store.invoke(ann, 'schema', (invocation) =>
    invocation.submit({ kind: 'fork-branch', name: 'try', source: 'main', shares: 'everything' }),
  );
  const trying = { ...ann, branch: 'try' };
  expect(await tried("UPDATE Person SET name = 'T' WHERE id = 'e' RETURNING name", trying)).toMatchObject({
    rows: [{ name: 'T' }],
  });
  expect(await tried("DELETE FROM Person WHERE id = 'u'", trying)).toMatchObject({ counts: [0, 0, 1, 0] });
  expect(await rows('SELECT id, name FROM Person', trying)).toEqual([{ id: 'e', name: 'T' }]);
  expect((await rows()).map(({ name }) => name)).toEqual(['E', 'U']);
});

test('classified types are refused, views and unknown types too', async () => {
  expect(await tried("INSERT INTO LawfulInterceptRecord (id) VALUES ('x')")).toMatch(/^REL_HUMINT/);
  expect(await tried('DELETE FROM SourceTrueIdentity')).toMatch(/^REL_HUMINT/);
  expect(await tried('UPDATE Nobody SET a = 1')).toMatch(/^REL_UNKNOWN_TYPE/);
});

test('each leaves one record, of what it did and why', async () => {
  await store.execute("PURPOSE 'analytics' UPDATE Person SET name = c.text FROM Copy c WHERE c.id = Person.id", [], ann);
  await store.execute('DELETE FROM Person WHERE id = $1', ['u'], ann);
  await store.execute("INSERT INTO Copy (id, text) VALUES ('a', 'x'), ('b', 'y')", [], ann);
  await tried('UPDATE Person SET name = secret');
  await tried('UPDATE "Who is this" SET name = 1');
  const { entries } = await store.invoke(admin, 'audit', (invocation) => invocation.audit().entries({ limit: 100 }));
  const own = entries.filter(({ principal }) => principal === 'ann');
  expect(
    own.map(({ action, objectType, purpose, rowCount, code, template }) => [
      action,
      objectType,
      purpose,
      rowCount,
      code,
      template,
    ]),
  ).toEqual([
    [
      'ingest',
      'Person,Copy',
      'analytics',
      0,
      null,
      'PURPOSE ?s UPDATE Person SET name = c.text FROM Copy c WHERE c.id = Person.id',
    ],
    ['delete', 'Person', null, 1, null, 'DELETE FROM Person WHERE id = ?s'],
    ['ingest', 'Copy', null, 2, null, 'INSERT INTO Copy(id, text) VALUES(?s, ?s), (?s, ?s)'],
    ['ingest', 'Person', null, 0, 'REL_MASKED_COLUMN', 'UPDATE Person SET name = secret'],
    ['ingest', 'Who is this', null, 0, 'REL_UNKNOWN_TYPE', 'UPDATE "?" SET name = ?i'],
  ]);
});
