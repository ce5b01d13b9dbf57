/** Patches, conditions, batches and edges at the gate: each step and each edge is judged by itself, and nothing unseen is lost or told. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Caller } from '../../src/governance/caller.ts';
import type { Batch, Command, DeleteRows, Outcome, PutRows } from '../../src/projections/command.ts';
import { analyst, TestStore } from '../harness.ts';
import { batchOf, type Columns, type PlainRow } from '../projections/store.ts';

const admin: Caller = { ...analyst, principal: 'root', credential: 'admin' };
const ann: Caller = { ...analyst, principal: 'ann', tenant: 'acme', path: 'acme', roles: ['clerk'] };
const chief: Caller = { ...ann, principal: 'chief', roles: ['unmask'] };

let store: TestStore;
beforeEach(async () => {
  store = await TestStore.open();
  const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0 };
  await store.register('Person', { name: 'string', region: 'string', secret: { ...plain, type: 'string', masked: true } });
  await store.register('Note', { text: 'string' });
  await submit(ann, {
    kind: 'register-type',
    name: 'Job',
    properties: { who: { ...plain, type: 'string' }, where: { ...plain, type: 'string' } },
    primaryKey: null,
    graphTriggers: [{ linkType: 'Works', sourceField: 'who', targetField: 'where' }],
  });
});
afterEach(() => store.close());

const submit = (who: Caller, command: Command): Promise<Outcome> =>
  store.service.gate.invoke(who, { action: 'ingest', purpose: 'test', correlationId: 'c' }, (invocation) =>
    invocation.submit(command),
  );

const install = (...texts: readonly string[]): Promise<unknown> =>
  Promise.all(texts.map((text, i) => submit(admin, { kind: 'put-policy', id: `p${i}`, text })));

const strings = (rows: readonly PlainRow[]): Columns =>
  Object.fromEntries([...new Set(rows.flatMap(Object.keys))].map((name) => [name, 'string']));

function put(type: string, rows: readonly PlainRow[], how: Partial<PutRows> = {}): PutRows {
  const provenance = { source: 't', method: 't', confidence: 1, derivedFrom: null };
  return { kind: 'put-rows', type, rows: batchOf(strings(rows), rows), atomic: false, createType: false, provenance, ...how };
}
const end = (type: string, keys: readonly string[], how: Partial<DeleteRows> = {}): DeleteRows => ({
  kind: 'delete-rows',
  type,
  keys,
  ...how,
});
const batch = (...steps: Batch['steps']): Batch => ({ kind: 'batch', steps });
const patch = { patch: new Map() };
const current = (type: string, columns: string, who = chief): Promise<unknown[]> =>
  store.rows(`SELECT ${columns} FROM ${type} AS OF CURRENT ORDER BY ${columns.split(',')[0]}`, who);
const codes = ({ errors }: Outcome): unknown[] => errors.map(({ index, code }) => [index, code]);

test('a patch keeps masked cells, and is judged by the whole row that it makes', async () => {
  await submit(
    chief,
    put('Person', [
      { _pk: 'eu', region: 'EU', secret: 's' },
      { _pk: 'us', region: 'US' },
    ]),
  );
  await install(
    'permit(principal, action == Action::"write", resource is Person) when { resource.region == "EU" };',
    'permit(principal, action == Action::"read", resource);',
  );
  const outcome = await submit(
    ann,
    put(
      'Person',
      [
        { _pk: 'eu', name: 'a' },
        { _pk: 'us', name: 'b' },
        { _pk: 'new', name: 'c' },
      ],
      patch,
    ),
  );
  expect(codes(outcome)).toEqual([
    [1, 'REL_ACL'],
    [2, 'REL_ACL'],
  ]);
  expect(codes(await submit(ann, put('Person', [{ _pk: 'eu', region: 'US' }], patch)))).toEqual([[0, 'REL_ACL']]);
  // A key that may not be written is refused as such, whatever the condition would have said of it.
  for (const when of ['absent', 'present', { unchangedSince: 0n }] as const) {
    expect(codes(await submit(ann, put('Person', [{ _pk: 'us', region: 'EU' }], { when })))).toEqual([[0, 'REL_ACL']]);
  }
  expect(await current('Person', '_pk, name, region, secret')).toEqual([
    { _pk: 'eu', name: 'a', region: 'EU', secret: 's' },
    { _pk: 'us', name: null, region: 'US', secret: null },
  ]);
});

test('nothing is written from a column that its writer sees masked, nor by a condition on it', async () => {
  await submit(chief, put('Person', [{ _pk: 'a', name: 'n', secret: 's' }]));
  const copied = put('Person', [{ _pk: 'a', name: 's' }], { ...patch, computedFrom: ['name', 'secret'] });
  await expect(submit(ann, copied)).rejects.toMatchObject({ code: 'REL_MASKED_COLUMN' });
  await expect(submit(ann, end('Person', ['a'], { computedFrom: ['secret'] }))).rejects.toMatchObject({
    code: 'REL_MASKED_COLUMN',
  });
  await expect(submit(ann, batch(copied))).rejects.toMatchObject({ code: 'REL_MASKED_COLUMN' });
  expect((await submit(chief, copied)).accepted).toBe(1);
  expect((await submit(ann, end('Person', ['a'], { computedFrom: ['name'] }))).accepted).toBe(1);
});

describe('a batch', () => {
  test('writes rows of several types in one append, or none', async () => {
    await submit(ann, put('Note', [{ _pk: 'old', text: 'o' }]));
    const leaves = store.service.store.log.status().leaves;
    const outcome = await submit(
      ann,
      batch(
        put('Person', [{ _pk: 'a', name: 'A' }], { listsRows: true }),
        put('Job', [{ _pk: 'j', who: 'a', where: 'x' }], { when: 'absent', listsRows: true }),
        end('Note', ['old'], { listsRows: true }),
        put('Fresh', [{ _pk: 'f', v: '1' }], { createType: true }),
        put('Fresh', [{ _pk: 'g', w: '1' }], { createType: true }),
      ),
    );
    expect(outcome).toMatchObject({ kind: 'batch', accepted: 5, ids: ['a', 'j', 'old', 'f', 'g'] });
    expect(outcome.steps!.map(({ rows }) => rows?.map(({ key, became }) => [key, became]))).toEqual([
      [['a', 'created']],
      [['j', 'created']],
      [['old', 'deleted']],
      undefined,
      undefined,
    ]);
    expect(await current('Works', 'from_id, to_id')).toEqual([{ from_id: 'a', to_id: 'x' }]);
    expect(await current('Fresh', '_pk, v, w')).toEqual([
      { _pk: 'f', v: '1', w: null },
      { _pk: 'g', v: null, w: '1' },
    ]);
    expect(store.service.store.log.status().leaves).toBeGreaterThan(leaves);

    const refused = [
      [batch(put('Person', [{ _pk: 'b' }]), put('Note', [{ _pk: 'n' }], { when: 'present' })), 'REL_CONFLICT', /^step 1: row 0/],
      [batch(put('Person', [{ _pk: 'b' }]), end('Note', ['none'])), 'REL_NOT_FOUND', /^step 1: key 0/],
      [batch(put('Person', [{ _pk: 'b' }]), put('Nothing', [{ _pk: 'n' }])), 'REL_UNKNOWN_TYPE', /^step 1/],
      [batch(put('Person', [{ _pk: 'b' }]), put('Person', [{ _pk: 'c' }, { _pk: 'b' }])), 'REL_INVALID', /steps 0 and 1/],
      [
        batch(
          put(
            'Person',
            Array.from({ length: 4_097 }, (_, i) => ({ _pk: `${i}` })),
          ),
        ),
        'REL_INVALID',
        /at most 4096/,
      ],
    ] as const;
    for (const [command, code, message] of refused) {
      await expect(submit(ann, command)).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    }
    expect(await current('Person', '_pk')).toEqual([{ _pk: 'a' }]);
  });

  test('is judged step by step, each as what it does', async () => {
    await submit(ann, put('Note', [{ _pk: 'n', text: 'x' }]));
    await install(
      'permit(principal, action == Action::"write", resource);',
      'permit(principal, action == Action::"read", resource);',
    );
    await expect(submit(ann, batch(put('Person', [{ _pk: 'a' }]), end('Note', ['n'])))).rejects.toMatchObject({
      code: 'REL_ACL',
    });
    expect((await submit(ann, batch(put('Person', [{ _pk: 'a' }]), put('Note', [{ _pk: 'm' }])))).accepted).toBe(2);
    await install('permit(principal, action == Action::"write", resource is Person);');
    await expect(submit(ann, batch(put('Person', [{ _pk: 'b' }]), put('Note', [{ _pk: 'o' }])))).rejects.toMatchObject({
      code: 'REL_ACL',
    });
    const classified = batch(put('Person', [{ _pk: 'b' }]), put('LawfulInterceptRecord', [{ _pk: 'o' }]));
    await expect(submit(ann, classified)).rejects.toMatchObject({ code: 'REL_HUMINT' });
  });
});

describe('an edge', () => {
  test('is written under the right to its own type, or its row is not', async () => {
    await install(
      'permit(principal, action, resource);',
      'forbid(principal, action in [Action::"write", Action::"delete", Action::"erase"], resource is Works) when { resource.to_id == "secret" };',
    );
    const outcome = await submit(
      ann,
      put('Job', [
        { _pk: 'j', who: 'a', where: 'x' },
        { _pk: 'k', who: 'a', where: 'secret' },
        { _pk: 'l', who: 'a' },
      ]),
    );
    expect(codes(outcome)).toEqual([[1, 'REL_ACL']]);
    expect(await current('Job', '_pk')).toEqual([{ _pk: 'j' }, { _pk: 'l' }]);
    expect(await current('Works', 'to_id')).toEqual([{ to_id: 'x' }]);
    // What an edge says now may not be ended either where its type's policy says so.
    await install(
      'permit(principal, action, resource);',
      'forbid(principal, action in [Action::"write", Action::"delete", Action::"erase"], resource is Works);',
    );
    expect(codes(await submit(ann, put('Job', [{ _pk: 'j', who: 'b', where: 'x' }])))).toEqual([[0, 'REL_ACL']]);
    expect(codes(await submit(ann, end('Job', ['j', 'l'])))).toEqual([[0, 'REL_ACL']]);
    expect(codes(await submit(ann, { kind: 'remove-rows', type: 'Job', keys: ['j', 'l'] }))).toEqual([[0, 'REL_ACL']]);
    expect(await current('Works', 'to_id')).toEqual([{ to_id: 'x' }]);
  });

  test('of a row that is held goes with nobody', async () => {
    await submit(ann, put('Job', [{ _pk: 'j', who: 'a', where: 'x' }]));
    const [edge] = (await current('Works', '_pk')) as { _pk: string }[];
    await submit(ann, { kind: 'hold-row', id: 'h1', type: 'Works', key: edge!._pk });
    const remove = { kind: 'remove-rows', type: 'Job', keys: ['j'] } as const;
    expect(codes(await submit(ann, remove))).toEqual([[0, 'REL_CONFLICT']]);
    await submit(ann, { kind: 'release-retention', id: 'h1' });
    expect((await submit(ann, remove)).accepted).toBe(1);
    expect(await store.rows('SELECT _pk FROM Works', chief)).toEqual([]);
  });

  test('keeps what somebody else wrote to it while its row names the same ends', async () => {
    await submit(ann, put('Job', [{ _pk: 'j', who: 'a', where: 'x' }]));
    const [edge] = (await current('Works', '_pk')) as { _pk: string }[];
    await submit(ann, put('Works', [{ _pk: edge!._pk, weight: '7' }], patch));
    await submit(ann, put('Job', [{ _pk: 'j', who: 'a', where: 'x' }]));
    expect(await current('Works', 'from_id, weight')).toEqual([{ from_id: 'a', weight: '7' }]);
  });
});

test('rows are ended under a condition, and told of', async () => {
  const { systemFrom } = await submit(ann, put('Note', [{ _pk: 'a' }, { _pk: 'b' }]));
  await submit(ann, put('Note', [{ _pk: 'b', text: 'later' }]));
  const when = { unchangedSince: systemFrom + 1n };
  const outcome = await submit(ann, end('Note', ['a', 'b', 'none'], { when, listsRows: true }));
  expect(codes(outcome)).toEqual([
    [1, 'REL_CONFLICT'],
    [2, 'REL_CONFLICT'],
  ]);
  expect(outcome.rows!.map(({ key, became }) => [key, became])).toEqual([
    ['a', 'deleted'],
    ['b', 'refused'],
    ['none', 'refused'],
  ]);
  expect(codes(await submit(ann, end('Note', ['none'])))).toEqual([[0, 'REL_NOT_FOUND']]);
});
