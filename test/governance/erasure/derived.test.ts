/** Rows that were made from a subject's, of whom no cell says whose they are: none of their versions is readable after the erasure, in no copy of the log. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Caller } from '../../../src/governance/caller.ts';
import { splitParts } from '../../../src/log/entries/entry.ts';
import { openText } from '../../../src/log/keys/sealed-text.ts';
import { batchOf } from '../../projections/store.ts';
import { acme, ErasureWorld } from './erasure-world.ts';

let world: ErasureWorld;
beforeEach(async () => {
  world = await (await new ErasureWorld().open()).fill();
  await world.store.register('Note', { id: 'string', text: 'string', derived_from: 'json' }, 'id');
});
afterEach(() => world.store.close());

const columns = { id: 'string', text: 'string', derived_from: 'json' } as const;
const note = (id: string, sources: readonly string[], subject?: string): Promise<unknown> =>
  world.store.invoke(acme, 'ingest', (invocation) =>
    invocation.submit({
      kind: 'put-rows',
      type: 'Note',
      rows: batchOf(columns, [{ id, text: `of ${id}`, derived_from: JSON.stringify(sources) }]),
      atomic: true,
      createType: false,
      provenance: { source: 's', method: 'm', confidence: 1, derivedFrom: null },
      ...(subject !== undefined && { subject }),
    }),
  );
const run = (sql: string, caller: Caller = acme): Promise<unknown> => world.store.execute(sql, [], caller);

async function transact(statements: readonly string[]): Promise<void> {
  const { gate, planner } = world.store.service;
  const transaction = gate.begin(acme);
  const within = { action: 'query', purpose: 'test', correlationId: 'c', transaction } as const;
  for (const sql of statements) await gate.invoke(acme, within, (invocation) => planner.execute(invocation, { sql }));
  await gate.invoke(acme, within, (invocation) => invocation.commit({}));
}

/** Of each stored version of notes the id of the key that its row lies under in the log; null: of nobody. */
async function keysOfNotes(): Promise<(string | null)[]> {
  const keys: (string | null)[] = [];
  for await (const entry of world.store.service.store.log.read(0)) {
    for (const { body, leaf, position } of splitParts(entry)) {
      if (body.kind !== 'rows' || body.type !== 'Note') continue;
      const rowKeys = (await world.store.service.store.log.proofs.entry({ leaf }))!.rowKeys();
      for (let row = 0; row < body.ops.length; row++) keys.push(rowKeys?.keyIdOf(position - entry.position + row) ?? null);
    }
  }
  return keys;
}

async function ended(before: readonly (string | null)[]): Promise<void> {
  expect(before).not.toContain(null);
  expect((await world.erase()).certified).toBe(true);
  const { subjects } = world.store.service.store.keyring;
  expect(before.map((id) => subjects.opening(id!))).toEqual(before.map(() => null));
  expect(await world.store.rows('SELECT * FROM Note', acme)).toEqual([]);
  await world.restart();
  expect(await world.store.rows('SELECT * FROM Note', acme)).toEqual([]);
}

test('one that only its command says whose it is is found by what it was made from', async () => {
  await note('n1', ['p1'], 'alice');
  await ended(await keysOfNotes());
});

test('so is what changed and ended it, by any statement, and in a transaction', async () => {
  await note('n1', ['p1'], 'alice');
  await note('n2', ['n1']);
  await run("UPDATE Note SET text = 'other' WHERE id = 'n1'");
  await run("UPDATE Note SET derived_from = NULL WHERE id = 'n2'");
  await transact([
    "UPDATE Note SET text = 'again' WHERE id = 'n2'",
    `INSERT INTO Note (id, text, derived_from) VALUES ('n3', 'x', '["n1"]')`,
    "UPDATE Note SET text = 'y' WHERE id = 'n3'",
  ]);
  await run('DELETE FROM Note');
  const keys = await keysOfNotes();
  expect(keys.length).toBeGreaterThan(8);
  await ended(keys);
});

const removal = (type: string, key: string): Promise<unknown> =>
  world.store.invoke(acme, 'remove', (invocation) => invocation.submit({ kind: 'remove-rows', type, keys: [key] }));

test('what it was made from was removed for good before the erasure, step by step, and the store was started anew', async () => {
  await note('n1', ['p1']);
  await note('n2', ['n1']);
  await note('n3', ['n2'], 'alice');
  await note('of-bob', ['p2']);
  await note('of-nobody', ['p3']);
  await removal('Person', 'p1');
  await removal('Note', 'n1');
  await world.restart();
  await removal('Note', 'n2');
  await removal('Person', 'p2');
  await world.restart();
  const [, , last] = await keysOfNotes();
  expect((await world.erase()).certified).toBe(true);
  expect(world.store.service.store.keyring.subjects.opening(last!)).toBeNull();
  expect(await world.store.column('SELECT id FROM Note', acme)).toEqual(['of-bob', 'of-nobody']);
  // What the removals of others tell is there, and leads on after another start.
  await world.restart();
  expect((await world.erase('bob')).certified).toBe(true);
  expect(await world.store.column('SELECT id FROM Note', acme)).toEqual(['of-nobody']);
});

test('a row that came under the key of one that was removed for good is another one', async () => {
  await note('of-alice', ['p1']);
  await removal('Person', 'p1');
  await world.store.put('Person', [{ id: 'p1', who: 'bob', name: 'Bob again', age: 1 }], acme);
  await note('of-bob', ['p1']);
  expect((await world.erase()).certified).toBe(true);
  expect(await world.store.column('SELECT id FROM Note', acme)).toEqual(['of-bob']);
  expect((await world.erase('bob')).certified).toBe(true);
  expect(await world.store.column('SELECT id FROM Note', acme)).toEqual([]);
});

test('neither the subject nor the key of a removed row lies open in the log or a checkpoint, and nothing of them after the erasure', async () => {
  await note('of-alice', ['p1']);
  await removal('Person', 'p1');
  const texts = async (): Promise<readonly string[]> => {
    const all: string[] = [];
    for await (const { body } of world.store.service.store.log.read(0))
      if (body.kind === 'removal') all.push(...(body.sources ?? []));
    return all;
  };
  const [text] = await texts();
  expect(text).not.toMatch(/alice|p1/);
  const keys = world.store.service.store.keyring.subjects;
  expect(openText(text!, keys)).toBe(JSON.stringify({ key: 'p1', subject: 'alice', names: [] }));
  await world.erase();
  expect(openText(text!, keys)).toBeNull();
  expect([...world.store.service.store.projections.removedKeys.sources('acme')]).toEqual([]);
});

const made = (id: string, source: string): string =>
  `INSERT INTO Note (id, text, derived_from) VALUES ('${id}', 'x', '["${source}"]')`;

test.each([
  ['what it was made from is named no more', [made('n1', 'p1'), "UPDATE Note SET derived_from = NULL WHERE id = 'n1'"]],
  [
    'in steps',
    [
      made('n1', 'p1'),
      `UPDATE Note SET derived_from = '["p2"]' WHERE id = 'n1'`,
      "UPDATE Note SET derived_from = NULL, text = 'y' WHERE id = 'n1'",
    ],
  ],
  [
    'what it was made from is gone',
    ["INSERT INTO Person (id, who, name) VALUES ('p9', 'alice', 'x')", made('n1', 'p9'), "DELETE FROM Person WHERE id = 'p9'"],
  ],
  [
    'it was made from what was made, and that is gone',
    [
      made('n0', 'p1'),
      made('n1', 'n0'),
      "DELETE FROM Note WHERE id = 'n0'",
      "UPDATE Note SET derived_from = NULL WHERE id = 'n1'",
    ],
  ],
  [
    'another stands that was made from nothing',
    ["INSERT INTO Note (id, text) VALUES ('n1', 'x')", made('n2', 'p1'), made('n3', 'n2'), "DELETE FROM Note WHERE id = 'n2'"],
    ['n1'],
  ],
] as const)(
  'a row that one transaction made from a subject’s is found where at its end %s',
  async (_, statements: readonly string[], left: readonly string[] = []) => {
    await transact(statements);
    await transact(["UPDATE Note SET text = 'later' WHERE id = 'n1'"]);
    const before = await world.store.rows('SELECT id, text, derived_from, system_from, valid_from FROM Note', acme);
    await world.restart();
    expect(await world.store.rows('SELECT id, text, derived_from, system_from, valid_from FROM Note', acme)).toEqual(before);
    expect((await world.erase()).certified).toBe(true);
    expect(await world.store.column('SELECT DISTINCT id FROM Note', acme)).toEqual(left);
  },
);

test('made from rows of several, it ends with any one of them, and others stay', async () => {
  await note('both', ['p1', 'p2']);
  const [key] = await keysOfNotes();
  await note('of-bob', ['p2']);
  await note('of-nobody', ['p3']);
  expect((await world.erase()).certified).toBe(true);
  expect(world.store.service.store.keyring.subjects.opening(key!)).toBe(null);
  expect(await world.store.column('SELECT id FROM Note ORDER BY id', acme)).toEqual(['of-bob', 'of-nobody']);
});

test('a short key in a loose column names its row, but where a row of another type has that key, too', async () => {
  for (const column of ['source_id', 'supersedes']) {
    const type = `By${column}`;
    await world.store.register(type, { id: 'string', text: 'string', [column]: 'string' }, 'id');
    await world.store.put(type, [{ id: `${column}-1`, text: 'of her', [column]: 'p1' }], acme);
    await world.store.put(type, [{ id: `${column}-2`, text: 'of him', [column]: 'p2' }], acme);
  }
  await world.erase();
  for (const type of ['Bysource_id', 'Bysupersedes'])
    expect(await world.store.rows(`SELECT text FROM ${type}`, acme)).toEqual([{ text: 'of him' }]);
  // A page of the same number as a person is a page.
  await world.store.register('Page', { id: 'string', text: 'string' }, 'id');
  await world.store.put('Page', [{ id: 'p2', text: 'a page' }], acme);
  await world.erase('bob');
  expect(await world.store.rows('SELECT text FROM Bysource_id', acme)).toEqual([{ text: 'of him' }]);
});

test.each([
  ['by a cell of its own', "'alice', NULL"],
  ['since its row was made from rows that are somebody’s', `NULL, '["p1"]'`],
])('an edge that went for good with its row leads to what was made of it: it is somebody’s %s', async (_, whose) => {
  const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0, type: 'string' } as const;
  await world.store.invoke(acme, 'schema', (invocation) =>
    invocation.submit({
      kind: 'register-type',
      name: 'Visit',
      properties: { id: plain, who: { ...plain, subject: true }, place: plain, derived_from: { ...plain, type: 'json' } },
      primaryKey: 'id',
      graphTriggers: [{ linkType: 'Seen', sourceField: 'id', targetField: 'place' }],
    }),
  );
  const inserted = `('v1', 'here', ${whose}), ('v2', 'here', NULL, NULL)`;
  await run(`INSERT INTO Visit (id, place, who, derived_from) VALUES ${inserted}`);
  const [ofHers, ofNobody] = await world.store.column('SELECT _pk FROM Seen ORDER BY from_id', acme);
  await note('n1', [String(ofHers)]);
  await note('of-nobody', [String(ofNobody)]);
  await removal('Visit', 'v1');
  await removal('Visit', 'v2');
  expect(await world.store.rows('SELECT * FROM Seen', acme)).toEqual([]);
  expect((await world.erase()).certified).toBe(true);
  expect(await world.store.column('SELECT id FROM Note', acme)).toEqual(['of-nobody']);
});
