/** Writes under installed policies: rows are judged one by one, as they would be stored and as they stand. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Caller } from '../../src/governance/caller.ts';
import type { Command, Outcome } from '../../src/projections/command.ts';
import { cellAt } from '../../src/log/values/vector-builder.ts';
import { readIngest } from '../../src/planner/formats/ingest-reader.ts';
import { analyst, TestStore, type InputRow } from '../harness.ts';

const admin: Caller = { ...analyst, principal: 'root', credential: 'admin' };
const ann: Caller = { ...analyst, principal: 'ann', tenant: 'acme', path: 'acme', roles: ['clerk'] };
const chief: Caller = { ...ann, principal: 'chief', roles: ['chief'] };

let store: TestStore;
beforeEach(async () => {
  store = await TestStore.open();
  await store.register('Person', { name: 'string', region: 'string', n: 'integer' });
});
afterEach(() => store.close());

const submit = (who: Caller, action: 'administer' | 'delete' | 'remove', command: Command): Promise<Outcome> =>
  store.service.gate.invoke(who, { action, purpose: 'test', correlationId: 'c' }, (invocation) => invocation.submit(command));

const install = (...texts: readonly string[]): Promise<unknown> =>
  Promise.all(texts.map((text, i) => submit(admin, 'administer', { kind: 'put-policy', id: `p${i}`, text })));

async function put(who: Caller, rows: readonly InputRow[], more: { atomic?: boolean; type?: string } = {}): Promise<Outcome> {
  const { atomic = false, type = 'Person' } = more;
  async function* body(): AsyncGenerator<Uint8Array> {
    yield Buffer.from(rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  }
  return store.invoke(who, 'ingest', async (invocation) => {
    const definition = invocation.snapshot().catalog.type(type) ?? null;
    let outcome: Outcome | undefined;
    for await (const batch of readIngest(body(), { definition, batchRows: 1e6, batchBytes: 1e9 })) {
      outcome = await invocation.submit({
        kind: 'put-rows',
        type,
        rows: batch.rows,
        atomic,
        createType: true,
        provenance: { source: 't', method: 't', confidence: 1, derivedFrom: null },
      });
    }
    return outcome!;
  });
}

const verdicts = ({ accepted, errors }: Outcome): unknown => [
  accepted,
  errors.map(({ index, code, detail }) => [index, code, detail]),
];

/** What acme's rows hold now, past the gate. */
function regions(): Readonly<Record<string, unknown>> {
  const { projections, log } = store.service.store;
  const basis = log.basis();
  const { rows } = projections.snapshot(basis, 'main', 'acme');
  const time = { system: basis.instant, valid: basis.instant };
  const scan = rows.scan({ type: 'Person', columns: ['_pk', 'region'], time, paths: [rows.pathCodes().codeOf('acme')] });
  const found: Record<string, unknown> = {};
  for (let step = scan.next(); step.done !== true; step = scan.next()) {
    const { columns, selection, first, count } = step.value;
    for (let k = 0; k < count; k++) {
      const row = selection === null ? first + k : selection[k]!;
      found[String(cellAt(columns[0]!, 'string', row))] = cellAt(columns[1]!, 'string', row);
    }
  }
  return found;
}

const words = 'no policy permits writing this row';
const european =
  'permit(principal in Role::"clerk", action in [Action::"write", Action::"delete", Action::"erase"], resource is Person) when { resource.region == "EU" };';
const everything = 'permit(principal in Role::"chief", action, resource);';

describe('rows that are put', () => {
  test('are rejected one by one, and the others are written', async () => {
    await install(european, everything);
    const outcome = await put(ann, [
      { _pk: 'a', region: 'EU' },
      { _pk: 'b', region: 'US' },
      { _pk: 'c' },
      { _pk: 'd', region: 'EU', n: 1 },
    ]);
    expect(verdicts(outcome)).toEqual([
      2,
      [
        [1, 'REL_ACL', words],
        [2, 'REL_ACL', words],
      ],
    ]);
    expect(regions()).toEqual({ a: 'EU', d: 'EU' });
  });

  test('of an atomic batch are written all or none', async () => {
    await install(european, everything);
    const rows = [
      { _pk: 'a', region: 'EU' },
      { _pk: 'b', region: 'US' },
    ];
    await expect(put(ann, rows, { atomic: true })).rejects.toMatchObject({ code: 'REL_ACL', message: `row 1: ${words}` });
    expect(regions()).toEqual({});
  });

  test('are judged by the version that they supersede too, in the same words', async () => {
    await put(chief, [
      { _pk: 'us', region: 'US' },
      { _pk: 'eu', region: 'EU' },
    ]);
    await install(european, everything);
    const outcome = await put(ann, [
      { _pk: 'us', region: 'EU' },
      { _pk: 'eu', region: 'US' },
      { _pk: 'eu', region: 'EU', n: 2 },
      { _pk: 'new', region: 'EU' },
    ]);
    expect(verdicts(outcome)).toEqual([
      2,
      [
        [0, 'REL_ACL', words],
        [1, 'REL_ACL', words],
      ],
    ]);
    expect(regions()).toEqual({ us: 'US', eu: 'EU', new: 'EU' });
    // Another organisation's row of the key is no business of this one.
    await put({ ...chief, tenant: null, path: 'globex' }, [{ _pk: 'x', region: 'US' }]);
    await put({ ...chief, path: 'acme/eu' }, [{ _pk: 'x', region: 'US' }]);
    expect((await put(ann, [{ _pk: 'x', region: 'EU' }])).accepted).toBe(1);
  });

  test('are judged by their key, owner and validity as they will be read', async () => {
    await install(
      'permit(principal, action == Action::"write", resource) when { resource._pk like "a*" && resource.id like "a*" && resource.tenant_id == "acme" && resource in Org::"acme" && resource.valid_from >= datetime("2020-01-01") };',
    );
    const outcome = await put(ann, [
      { _pk: 'a1' },
      { _pk: 'b1' },
      { _pk: 'a2', valid_from: '2019-01-01T00:00:00Z' },
      { _pk: 'a3', id: 'b3' },
      { _pk: 'a4', id: 'a4' },
    ]);
    expect(outcome.errors.map(({ index }) => index)).toEqual([1, 2, 3]);
    expect((await put({ ...ann, tenant: 'globex', path: 'globex' }, [{ _pk: 'a1' }])).accepted).toBe(0);
    expect((await put({ ...ann, path: 'acme/eu' }, [{ _pk: 'a9' }])).accepted).toBe(1);
  });

  test('of a type whose columns come with the batch are judged by these columns', async () => {
    await install('permit(principal, action == Action::"write", resource is Fresh) when { resource.region == "EU" };');
    const outcome = await put(
      ann,
      [
        { _pk: 'a', region: 'EU' },
        { _pk: 'b', region: 'US' },
      ],
      { type: 'Fresh' },
    );
    expect(verdicts(outcome)).toEqual([1, [[1, 'REL_ACL', words]]]);
    await install('permit(principal, action == Action::"write", resource) when { resource.late == 1 };');
    const type = store.service.store.projections.catalog.catalogOn(0, 'acme').type('Fresh')!;
    expect(type.properties['late']).toBeUndefined();
    // What stands has no such column, so nothing of it may be superseded; a new key may be written.
    const late = await put(
      ann,
      [
        { _pk: 'a', late: 1 },
        { _pk: 'z', late: 1 },
      ],
      { type: 'Fresh' },
    );
    expect(verdicts(late)).toEqual([1, [[0, 'REL_ACL', words]]]);
  });

  test('are refused as a whole where no row of the type may be written', async () => {
    await install('permit(principal, action == Action::"read", resource);');
    await expect(put(ann, [{ _pk: 'a' }])).rejects.toMatchObject({
      code: 'REL_ACL',
      message: 'ingest is denied: no policy permits it',
    });
    await install('permit(principal, action, resource);', 'forbid(principal, action == Action::"write", resource is Person);');
    await expect(put(ann, [{ _pk: 'a' }])).rejects.toMatchObject({ message: 'ingest is denied: the policy p1 forbids it' });
    await expect(put(ann, [{ _pk: 'a' }], { type: 'Other' })).resolves.toMatchObject({ accepted: 1 });
  });
});

describe.each([
  ['delete', 'delete-rows'],
  ['remove', 'remove-rows'],
] as const)('keys that are given to %s', (action, kind) => {
  const end = (keys: readonly string[], who = ann): Promise<Outcome> => submit(who, action, { kind, type: 'Person', keys });

  test('are refused alike where none stands and where one stands that may not go', async () => {
    await put(chief, [
      { _pk: 'us', region: 'US' },
      { _pk: 'eu', region: 'EU' },
    ]);
    expect((await end(['none'], chief)).errors).toMatchObject([{ code: 'REL_NOT_FOUND' }]);
    await install(european, everything);
    const refused = 'no such row, or none that a policy permits to end';
    expect(verdicts(await end(['us', 'eu', 'none']))).toEqual([
      1,
      [
        [0, 'REL_ACL', refused],
        [2, 'REL_ACL', refused],
      ],
    ]);
    expect(regions()).toEqual({ us: 'US' });
    expect(verdicts(await end(['us', 'none'], chief))).toMatchObject([1, [[1, 'REL_NOT_FOUND', 'no such row']]]);
  });

  test('are refused as a whole without a policy for it', async () => {
    await put(chief, [{ _pk: 'eu', region: 'EU' }]);
    await install('permit(principal, action == Action::"write", resource);');
    await expect(end(['eu'])).rejects.toMatchObject({ code: 'REL_ACL', message: `${action} is denied: no policy permits it` });
  });
});

test('an earlier version that may not be removed keeps its key; ending it looks at what stands', async () => {
  await put(chief, [{ _pk: 'k', region: 'US' }]);
  await put(chief, [{ _pk: 'k', region: 'EU' }]);
  await install(european, everything);
  expect((await submit(ann, 'remove', { kind: 'remove-rows', type: 'Person', keys: ['k'] })).accepted).toBe(0);
  expect((await submit(ann, 'delete', { kind: 'delete-rows', type: 'Person', keys: ['k'] })).accepted).toBe(1);
});

test('types are changed by whoever may administer them', async () => {
  await install('permit(principal in Role::"chief", action == Action::"administer", resource == Type::"Person");');
  const migrate = (name: string): Command => ({
    kind: 'migrate-types',
    steps: [{ kind: 'evolve-type', name, properties: {}, guard: { accessScope: true } }],
  });
  const run = (who: Caller, name: string): Promise<Outcome> =>
    store.invoke(who, 'schema', (invocation) => invocation.submit(migrate(name)));
  await expect(run(ann, 'Person')).rejects.toMatchObject({ code: 'REL_ACL', message: 'schema is denied: no policy permits it' });
  await expect(run(chief, 'Event')).rejects.toMatchObject({ code: 'REL_ACL' });
  expect(await run(chief, 'Person')).toMatchObject({ changed: true });
});

test('what is written carries the digest of the policies that let it', async () => {
  await put(chief, [{ _pk: 'before' }]);
  await install(everything);
  await put(chief, [{ _pk: 'after' }]);
  const digests: string[] = [];
  for await (const { body, context } of store.service.store.log.read(0))
    if (body.kind === 'rows') digests.push(context.policyDigest);
  expect(digests).toEqual(['', store.service.store.projections.policies.current.digest]);
  expect(digests[1]).toMatch(/^[0-9a-f]{64}$/);
});

test('policies neither lock the administrator out nor make one of everybody', async () => {
  await install('permit(principal, action, resource);');
  await expect(submit(ann, 'administer', { kind: 'delete-policy', id: 'p0' })).rejects.toMatchObject({ code: 'REL_ACL' });
  await install('forbid(principal, action, resource);');
  expect((await submit(admin, 'administer', { kind: 'delete-policy', id: 'p0' })).changed).toBe(true);
  expect((await put(ann, [{ _pk: 'a' }])).accepted).toBe(1);
});
