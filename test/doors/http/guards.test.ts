/** Types declare what a reader must state: POST /types, POST /types/:name/schema and /ontology/migrate take it, GET shows it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { StoreWorld } from './store-world.ts';

let world: StoreWorld;
beforeAll(async () => {
  world = await StoreWorld.open();
});
afterAll(() => world.close());

const post = (path: string, body: unknown) => world.call('POST', path, body);
const shown = async (name: string): Promise<Record<string, unknown>> => (await world.call('GET', `/types/${name}`)).json;

test('a type is protected, needs a scope, and has columns that reference another', async () => {
  const properties = { name: 'string', of: { type: 'string', references: 'Plain' } };
  const reply = await post('/types', { name: 'Both', properties, protected: true, access_scope: true });
  expect(reply.status).toBe(201);
  expect(reply.json).toMatchObject({ protected: true, access_scope: true, properties: { of: { references: 'Plain' } } });
  const type = await shown('Both');
  expect(type).toMatchObject({ protected: true, access_scope: true });
  expect(type['properties']).toMatchObject({ name: expect.not.objectContaining({ references: expect.anything() }) });
});

test('a type that says nothing is neither, and what GET shows registers the same type again', async () => {
  await post('/types', { name: 'Plain', properties: { name: 'string' } });
  expect(await shown('Plain')).toMatchObject({ protected: false, access_scope: false });
  for (const name of ['Plain', 'Both']) {
    const again = await post('/types', await shown(name));
    expect([again.status, again.json['changed']]).toEqual([200, false]);
  }
});

test('a guard is raised later, alone or with columns, and never lowered', async () => {
  await post('/types', { name: 'Later', properties: { name: 'string' } });
  expect((await post('/types/Later/schema', { properties: {}, protected: true })).json).toMatchObject({
    changed: true,
    protected: true,
  });
  expect((await post('/types/Later/schema', { properties: { more: 'integer' } })).json).toMatchObject({
    protected: true,
    access_scope: false,
  });
  const lowered = await post('/types/Later/schema', { properties: {}, protected: false });
  expect([lowered.status, lowered.json['type']]).toEqual([409, 'urn:annals:errors/REL_CONFLICT']);
});

test('a migration registers and raises guards', async () => {
  const types = [
    { name: 'Migrated', properties: { a: 'string' }, access_scope: true },
    { name: 'Plain', access_scope: true },
  ];
  const reply = await post('/ontology/migrate', { types });
  expect(reply.json).toMatchObject({
    types: [
      { name: 'Migrated', access_scope: true, protected: false, changed: true },
      { name: 'Plain', access_scope: true, protected: false, changed: true },
    ],
  });
  expect(await shown('Plain')).toMatchObject({ access_scope: true });
});

test('a guard that is no yes or no, and a reference that is no text, are refused', async () => {
  for (const more of [{ protected: 'yes' }, { access_scope: 1 }, { properties: { a: { type: 'string', references: 5 } } }]) {
    expect((await post('/types', { name: 'Wrong', ...more })).status).toBe(400);
  }
});

test('what a guard closes stays shut, whoever asks', async () => {
  await post('/types', { name: 'Source', properties: { name: 'string' }, protected: true });
  await post('/types', { name: 'Scoped', properties: { name: 'string' }, access_scope: true });
  await post('/types', { name: 'Report', properties: { text: 'string', origin: { type: 'string', references: 'Source' } } });
  await post('/ingest?object_type=Source', { id: 's', name: 'canary' });
  await post('/ingest?object_type=Scoped', { id: 's', name: 'canary' });
  await post('/ingest?object_type=Report', { id: 'r', text: 'seen', origin: 's' });
  const refusals = {
    'SELECT * FROM Source': 'REL_HUMINT',
    'SELECT COUNT(*) FROM Source': 'REL_HUMINT',
    'EXPLAIN SELECT * FROM Source': 'REL_HUMINT',
    'SELECT name FROM Scoped': 'REL_ACCESS_SCOPE',
    'SELECT r.text FROM Report r JOIN Source s ON r.text = s.name': 'REL_HUMINT',
    'SELECT origin FROM Report': 'REL_PROTECTED_COLUMN',
    "SELECT text FROM Report WHERE origin = 's'": 'REL_PROTECTED_COLUMN',
  };
  for (const [sql, code] of Object.entries(refusals)) {
    const { status, json } = await world.query(sql);
    expect([sql, status, json['type']]).toEqual([sql, 403, `urn:annals:errors/${code}`]);
  }
  expect((await world.query('SELECT text FROM Report')).json['rows']).toEqual([{ text: 'seen' }]);

  // Raised on main after a fork, it guards what the branch reads as well.
  await post('/types', { name: 'Late', properties: { name: 'string' } });
  await post('/ingest?object_type=Late', { id: 'l', name: 'canary' });
  await post('/v1/namespaces/aside/branch', { branch_from: 'main' });
  const aside = () => post('/query', { sql: 'SELECT name FROM Late', branch: 'aside' });
  expect((await aside()).status).toBe(200);
  await post('/types/Late/schema', { properties: {}, protected: true });
  expect((await aside()).json['type']).toBe('urn:annals:errors/REL_HUMINT');
});
