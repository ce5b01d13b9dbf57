/** What is installed decides every step through the gate: reads, exports, types, branches, the audit, and what explains it. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ServiceError } from '../../src/errors.ts';
import { type Caller, tenantlessCaller } from '../../src/governance/caller.ts';
import type { Action, Invocation, InvocationRequest } from '../../src/governance/gate-contract.ts';
import type { AccessRecord } from '../../src/log/entries/entry.ts';
import type { Command, Outcome } from '../../src/projections/command.ts';
import { termsOf } from '../projections/histories.ts';
import { analyst, TestStore } from '../harness.ts';

const admin: Caller = { ...analyst, principal: 'root', credential: 'admin' };
const ann: Caller = { ...analyst, principal: 'ann', tenant: 'acme', path: 'acme', roles: ['clerk'] };

let store: TestStore;
beforeEach(async () => {
  store = await TestStore.open();
  await store.register('Person', { name: 'string', region: 'string' });
  await store.put('Person', [{ id: 'a', name: 'Ada', region: 'EU' }], ann);
});
afterEach(() => store.close());

function invoke<T>(
  who: Caller,
  action: Action,
  run: (invocation: Invocation) => Promise<T>,
  more: Partial<InvocationRequest> = {},
): Promise<T> {
  return store.service.gate.invoke(who, { action, purpose: 'test', correlationId: 'c', ...more }, run);
}

const administer = (command: Command): Promise<Outcome> =>
  invoke(admin, 'administer', (invocation) => invocation.submit(command));
const install = (id: string, text: string): Promise<Outcome> => administer({ kind: 'put-policy', id, text });
const createTenant = (id: string): Promise<Outcome> =>
  administer({ kind: 'create-tenant', id, name: id, tier: 't', quota: {}, search: {}, members: [], tenantsMax: 0 });

/** What a refusal says; null where nothing was refused. */
async function refusalOf(work: Promise<unknown>): Promise<string | null> {
  try {
    await work;
    return null;
  } catch (error) {
    if (error instanceof ServiceError) return `${error.code}: ${error.message}`;
    throw error;
  }
}

const read = (who: Caller, action: Action = 'query'): Promise<unknown> =>
  invoke(who, action, (invocation) => store.service.planner.query(invocation, { sql: 'SELECT name FROM Person' }));

test('an error names what a misspelt name may have meant, of what the caller may read alone', async () => {
  await store.register('Payroll', { salary: 'integer' });
  await store.register('Vault', { combination: 'string' });
  await invoke(analyst, 'schema', (invocation) =>
    invocation.submit({ kind: 'evolve-type', name: 'Vault', properties: {}, guard: { protected: true } }),
  );
  await install('reads', 'permit(principal, action == Action::"read", resource) unless { resource is Payroll };');
  const refused = (sql: string, who = ann) =>
    refusalOf(invoke(who, 'query', (invocation) => store.service.planner.query(invocation, { sql })));
  expect(await refused('SELECT nmae FROM Person')).toBe(
    'REL_UNKNOWN_COLUMN: 1:8: type "Person" has no column "nmae" (did you mean name?); it has name, region',
  );
  expect(await refused('SELECT t.nmae FROM (SELECT * FROM Person) t')).toMatch(/did you mean name\?\); it has .*name, region$/);
  expect(await refused('SELECT peple.name FROM Person people')).toMatch(/no table "peple" in FROM \(did you mean people\?\)$/);
  expect(await refused('SELECT * FROM Persn')).toMatch(/"Persn" is not registered \(did you mean Person\?\)$/);
  for (const sql of [
    'SELECT salry FROM Payroll',
    'SELECT t.salry FROM (SELECT * FROM Payroll) t',
    'SELECT name, salry FROM Person, Payroll',
    'SELECT * FROM Payrol',
    'SELECT combinaton FROM Vault',
    'WITH v AS (SELECT * FROM Vault) SELECT combinaton FROM v',
    'SELECT * FROM Valt',
  ]) {
    expect(await refused(sql), sql).toMatch(/^REL_UNKNOWN_/);
    expect(await refused(sql), sql).not.toMatch(/salary|Payroll\?|combination|Vault\?/);
  }
});

describe('under a policy set', () => {
  const attempts: Readonly<Record<string, (who: Caller) => Promise<unknown>>> = {
    audit: (who) => invoke(who, 'audit', async (invocation) => invocation.audit().count({})),
    proofs: (who) => invoke(who, 'audit', async (invocation) => invocation.proofs().treeSize),
    inspect: (who) => invoke(who, 'inspect', async (invocation) => invocation.snapshot().catalog.types()),
    fork: (who) =>
      invoke(who, 'fork', (invocation) =>
        invocation.submit({ kind: 'fork-branch', name: 'dev', source: 'main', shares: 'everything' }),
      ),
    schema: (who) =>
      invoke(who, 'schema', (invocation) =>
        invocation.submit({ kind: 'evolve-type', name: 'Person', properties: {}, guard: { accessScope: true } }),
      ),
    delete: (who) =>
      invoke(who, 'delete', (invocation) => invocation.submit({ kind: 'delete-rows', type: 'Person', keys: ['a'] })),
    remove: (who) =>
      invoke(who, 'remove', (invocation) => invocation.submit({ kind: 'remove-rows', type: 'Person', keys: ['a'] })),
  };
  const permits: Readonly<Record<string, string>> = {
    audit: 'action == Action::"read", resource == Store::"audit"',
    proofs: 'action == Action::"read", resource == Store::"audit"',
    inspect: 'action == Action::"read", resource == Store::"state"',
    fork: 'action == Action::"fork", resource == Branch::"main"',
    schema: 'action == Action::"administer", resource == Type::"Person"',
    delete: 'action == Action::"delete", resource is Person',
    remove: 'action == Action::"erase", resource is Person',
  };

  test.each(Object.keys(attempts))(
    '%s is denied by default, permitted by its policy, and a forbid outweighs that',
    async (name) => {
      const attempt = attempts[name]!;
      await install('other', 'permit(principal, action == Action::"share", resource);');
      expect(await refusalOf(attempt(ann))).toMatch(/^REL_ACL: \w+ is denied: no policy permits it$/);
      await install('forbids', 'forbid(principal in Role::"banned", action, resource);');
      await install('its', `permit(principal in Role::"clerk", ${permits[name]!});`);
      expect(await refusalOf(attempt({ ...ann, roles: ['clerk', 'banned'] }))).toMatch(/denied: the policy forbids forbids it$/);
      expect(await refusalOf(attempt({ ...ann, roles: [] }))).toMatch(/no policy permits it$/);
      expect(await refusalOf(attempt(ann))).toBeNull();
    },
  );

  test('the administrator audits and inspects whatever is installed', async () => {
    await install('nothing', 'forbid(principal, action, resource);');
    expect(await refusalOf(attempts['audit']!(admin))).toBeNull();
    expect(await refusalOf(attempts['inspect']!(admin))).toBeNull();
    const operator = tenantlessCaller('operator', 'operator', 'cli');
    expect(await refusalOf(attempts['proofs']!(operator))).toBeNull();
    expect(await refusalOf(read(operator))).toMatch(/^REL_ACL/);
    expect(await refusalOf(attempts['inspect']!({ ...analyst, credential: 'none' }))).toMatch(/^REL_ACL/);
    expect(await refusalOf(attempts['audit']!(ann))).toMatch(/the policy nothing forbids it$/);
  });

  test('a set counts from the next decision on, and so does its end', async () => {
    expect(await refusalOf(read(ann))).toBeNull();
    await invoke(ann, 'inspect', async (invocation) => {
      invocation.snapshot();
      await install('nothing', 'forbid(principal, action, resource);');
      expect(() => invocation.snapshot()).toThrow('inspect is denied: the policy nothing forbids it');
    });
    await administer({ kind: 'delete-policy', id: 'nothing' });
    expect(await refusalOf(attempts['inspect']!(ann))).toBeNull();
  });

  test('what is known of the caller, the request and the clock is asked', async () => {
    await install(
      'office',
      'permit(principal, action == Action::"read", resource == Store::"state") when { context has client_ip && context.client_ip == "10.0.0.1" && context.purpose in Purpose::"test" && context.now < datetime("2024-01-02") && principal.desk == "fx" && context.org == Org::"acme" };',
    );
    const who = { ...ann, clientIp: '10.0.0.1', attributes: { desk: 'fx' } };
    const inspect = attempts['inspect']!;
    expect(await refusalOf(inspect(who))).toBeNull();
    expect(await refusalOf(inspect({ ...who, clientIp: '10.0.0.2' }))).not.toBeNull();
    expect(await refusalOf(inspect({ ...who, clientIp: null }))).not.toBeNull();
    expect(await refusalOf(inspect({ ...who, attributes: {} }))).not.toBeNull();
    expect(await refusalOf(inspect({ ...who, path: 'acme/eu' }))).not.toBeNull();
    const snapshot = async (invocation: Invocation): Promise<unknown> => invocation.snapshot();
    expect(await refusalOf(invoke(who, 'inspect', snapshot, { purpose: 'analytics' }))).not.toBeNull();
    store.clock.set('2024-01-02');
    expect(await refusalOf(inspect(who))).not.toBeNull();
  });
});

describe('explained', () => {
  const explain = (who: Caller, at?: number, more: Partial<InvocationRequest> = {}) =>
    invoke(who, 'query', async (invocation) => invocation.explainPolicy('Person', at), more);

  test('are rules while no policy is installed, and masks that the type declares', async () => {
    await store.register('Masked', {
      secret: { type: 'string', required: false, masked: true, indexed: false, subject: false, dims: 0 },
    });
    expect(await invoke(ann, 'query', async (invocation) => invocation.explainPolicy('Masked'))).toMatchObject({
      decision: 'allow',
      masks: [{ column: 'secret', kind: 'redact', when: null }],
      policyDigest: '',
      satisfiedPath: ['rule permit-own-tenant'],
    });
  });

  test('are policies, what is left of them, masks and the position, now and as of then', async () => {
    const before = store.service.store.log.basis().position;
    await install(
      'eu',
      'permit(principal in Role::"clerk", action == Action::"read", resource) when { resource.region == "EU" };',
    );
    await install('hide', '@mask("last4") forbid(principal, action == Action::"readCell", resource == Column::"Person.name");');
    const { position } = store.service.store.log.basis();
    const digest = store.service.store.projections.policies.current.digest;
    const byRow = {
      decision: 'by row',
      determining: [{ id: 'eu', effect: 'permit', left: 'resource.region == "EU"' }],
      residual: '(resource.region == "EU")',
      masks: [{ column: 'name', kind: 'last4', when: null, because: 'hide' }],
      policyDigest: digest,
      position,
      satisfiedPath: ['policy eu'],
    };
    expect(await explain(ann)).toMatchObject(byRow);
    expect(await explain({ ...ann, roles: [] })).toMatchObject({ decision: 'deny', determining: [], satisfiedPath: [] });
    await install('eu', 'permit(principal, action, resource);');
    expect(await explain(ann)).toMatchObject({ decision: 'allow', residual: null, satisfiedPath: ['policy eu'] });
    expect(await explain(ann, position)).toMatchObject(byRow);
    expect(await explain(ann, before)).toMatchObject({
      decision: 'allow',
      policyDigest: '',
      satisfiedPath: ['rule permit-own-tenant'],
    });
    const ahead = store.service.store.log.basis().position + 1;
    for (const at of [0, -1, ahead]) expect(await refusalOf(explain(ann, at))).toMatch(/^REL_INVALID/);
  });

  test('say what closes a type, and what opens it', async () => {
    await store.invoke(analyst, 'schema', (invocation) =>
      invocation.submit({ kind: 'evolve-type', name: 'Person', properties: {}, guard: { protected: true } }),
    );
    expect(await explain(ann)).toMatchObject({
      decision: 'deny',
      because: [expect.stringMatching(/^REL_HUMINT: /), expect.anything()],
      satisfiedPath: [],
    });
    expect(await explain({ ...ann, roles: ['break-glass'] }, undefined, { breakGlass: 'threat' })).toMatchObject({
      decision: 'allow',
    });
  });

  test('name the agreements that share rows', async () => {
    await createTenant('globex');
    const terms = termsOf('globex', 'acme', { permission: ['read'], validFrom: 0n, validTo: 2n ** 62n });
    await administer({ kind: 'propose-agreement', id: 'g', terms });
    await administer({ kind: 'move-agreement', id: 'g', to: 'accepted', side: 'assignee' });
    expect(await explain(ann)).toMatchObject({ satisfiedPath: ['rule permit-own-tenant'] });
    await administer({ kind: 'move-agreement', id: 'g', to: 'active', side: 'assigner' });
    expect(await explain(ann)).toMatchObject({ decision: 'allow', satisfiedPath: ['rule permit-own-tenant', 'agreement g'] });
    await install('none', 'permit(principal, action == Action::"share", resource);');
    expect(await explain(ann)).toMatchObject({ decision: 'by row', satisfiedPath: ['agreement g'] });
    expect(await explain({ ...ann, sharedFrom: 'globex' })).toMatchObject({
      scope: 'rows of globex and below, as they are shared',
      satisfiedPath: ['agreement g'],
    });
    expect(await explain({ ...ann, tenant: 'other', path: 'other' })).toMatchObject({ decision: 'deny', satisfiedPath: [] });
  });
});

describe('the tenant’s standing', () => {
  beforeEach(() => createTenant('acme'));

  const suspended = 'REL_TENANT_SUSPENDED: the tenant is suspended';
  const deleted = 'REL_ACL: the tenant is deleted';

  test('stops reading, writing and all else from the next step on, and comes back with reactivation', async () => {
    const unbound = { ...ann, tenant: null, path: 'acme/eu' };
    await invoke(ann, 'query', async (invocation) => {
      invocation.snapshot();
      await administer({ kind: 'suspend-tenant', id: 'acme' });
      expect(() => invocation.snapshot()).toThrow('the tenant is suspended');
    });
    for (const who of [ann, unbound]) {
      expect(await refusalOf(read(who))).toBe(suspended);
      expect(await refusalOf(store.put('Person', [{ id: 'b' }], who))).toBe(suspended);
      expect(await refusalOf(invoke(who, 'audit', async (invocation) => invocation.audit().count({})))).toBe(suspended);
      expect(await refusalOf(invoke(who, 'inspect', async (invocation) => invocation.tokens()))).toBe(suspended);
      expect(() => store.service.gate.checkStanding(who)).toThrow('the tenant is suspended');
    }
    const listed = invoke(ann, 'inspect', async (invocation) => invocation.tokens(), { whileSuspended: true });
    expect(await refusalOf(listed)).toBeNull();
    expect(await refusalOf(read({ ...ann, tenant: 'acme-2', path: 'acme-2' }))).toBeNull();
    expect(await refusalOf(invoke(admin, 'audit', async (invocation) => invocation.audit().count({})))).toBeNull();
    await administer({ kind: 'reactivate-tenant', id: 'acme' });
    expect(await refusalOf(read(ann))).toBeNull();
    expect(() => store.service.gate.checkStanding(ann)).not.toThrow();
  });

  test('is told before a purpose is asked for and a quota is charged', async () => {
    await administer({ kind: 'suspend-tenant', id: 'acme' });
    const snapshot = async (invocation: Invocation): Promise<unknown> => invocation.snapshot();
    expect(await refusalOf(invoke(ann, 'query', snapshot, { purpose: 'unheard-of' }))).toBe(suspended);
    // Nor does it take a place, or get an answer from what asks nothing more of the gate.
    expect(await refusalOf(invoke({ ...ann, branch: 'nowhere' }, 'query', async () => 'answered'))).toBe(suspended);
  });

  test('of a deleted one is the end', async () => {
    await administer({ kind: 'delete-tenant', id: 'acme', manner: 'soft' });
    expect(await refusalOf(read(ann))).toBe(deleted);
    expect(await refusalOf(store.put('Person', [{ id: 'b' }], { ...ann, path: 'acme/eu' }))).toBe(deleted);
  });
});

test('with what another organisation shares nothing but reading is done', async () => {
  await createTenant('globex');
  const terms = termsOf('globex', 'acme', { permission: ['read'], validFrom: 0n, validTo: 2n ** 62n });
  await administer({ kind: 'propose-agreement', id: 'g', terms });
  await administer({ kind: 'move-agreement', id: 'g', to: 'accepted', side: 'assignee' });
  await administer({ kind: 'move-agreement', id: 'g', to: 'active', side: 'assigner' });
  const visitor: Caller = { ...ann, sharedFrom: 'globex' };
  expect(await refusalOf(read(visitor))).toBeNull();
  for (const [action, run] of [
    ['ingest', (invocation: Invocation) => invocation.submit({ kind: 'delete-rows', type: 'Person', keys: ['a'] })],
    ['query', (invocation: Invocation) => invocation.submit({ kind: 'delete-rows', type: 'Person', keys: ['a'] })],
    ['audit', async (invocation: Invocation) => invocation.audit()],
    ['audit', async (invocation: Invocation) => invocation.proofs()],
    ['replay', async (invocation: Invocation) => invocation.exhibits()],
    ['fork', async (invocation: Invocation) => invocation.branches()],
    ['ingest', async (invocation: Invocation) => invocation.snapshot()],
  ] as const) {
    expect(await refusalOf(invoke(visitor, action, run as (invocation: Invocation) => Promise<unknown>))).toMatch(/^REL_XORG/);
  }
});

test('however an invocation ends, it is in the audit once, with what was stated', async () => {
  await createTenant('gone');
  await administer({ kind: 'delete-tenant', id: 'gone', manner: 'soft' });
  await createTenant('acme');
  await store.invoke(analyst, 'schema', (invocation) =>
    invocation.submit({ kind: 'evolve-type', name: 'Person', properties: {}, guard: { protected: true } }),
  );
  const officer = { ...ann, roles: ['break-glass'] };
  const ended: (() => Promise<unknown>)[] = [
    () => read(ann),
    () =>
      invoke(ann, 'query', (invocation) => store.service.planner.query(invocation, { sql: 'SELECT name FROM Person' }), {
        breakGlass: 'x',
      }),
    () =>
      invoke(officer, 'query', (invocation) => store.service.planner.query(invocation, { sql: 'SELECT name FROM Person' }), {
        breakGlass: 'threat',
        accessScopeRef: 's',
      }),
    () => read({ ...ann, tenant: 'gone', path: 'gone' }),
    () => administer({ kind: 'suspend-tenant', id: 'acme' }),
    () => read(ann),
    () => administer({ kind: 'reactivate-tenant', id: 'acme' }),
    () => install('none', 'forbid(principal, action, resource);'),
    () => invoke(ann, 'inspect', async (invocation) => invocation.snapshot()),
    () => store.put('Person', [{ id: 'b' }], officer),
    () => invoke(ann, 'query', () => Promise.reject(new ServiceError('REL_TIMEOUT', 'late'))),
    () => invoke(ann, 'query', () => Promise.reject(new ServiceError('REL_CANCELLED', 'gone'))),
    () => invoke({ ...ann, sharedFrom: 'other' }, 'fork', async (invocation) => invocation.branches()),
  ];
  const records = async (): Promise<AccessRecord[]> => {
    const found: AccessRecord[] = [];
    for await (const { body } of store.service.store.log.read(0)) if (body.kind === 'access') found.push(...body.records);
    return found;
  };
  const before = (await records()).length;
  for (const [i, run] of ended.entries()) {
    await refusalOf(run());
    expect((await records()).length - before).toBe(i + 1);
  }
  expect(
    (await records()).slice(before).map(({ decision, code, stated }) => [decision, code, stated?.breakGlass ?? null]),
  ).toEqual([
    ['deny', 'REL_HUMINT', null],
    ['deny', 'REL_ACL', 'x'],
    ['allow', null, 'threat'],
    ['deny', 'REL_ACL', null],
    ['allow', null, null],
    ['deny', 'REL_TENANT_SUSPENDED', null],
    ['allow', null, null],
    ['allow', null, null],
    ['deny', 'REL_ACL', null],
    ['deny', 'REL_HUMINT', null],
    ['error', 'REL_TIMEOUT', null],
    ['error', 'REL_CANCELLED', null],
    ['deny', 'REL_XORG', null],
  ]);
});

test('a row is proven to whom all of it is shown, and is not found by others', async () => {
  const written = await store.put('Person', [{ id: 'p', name: 'Pia', region: 'US' }], ann);
  await store.service.store.log.seal();
  const prove = (who: Caller, more: Partial<InvocationRequest> = {}): Promise<unknown> =>
    invoke(who, 'audit', (invocation) => invocation.proofs().entry({ systemFrom: written.systemFrom, row: 'p' }), more);
  expect(await refusalOf(prove(ann))).toBeNull();
  await install('audit', 'permit(principal, action == Action::"read", resource == Store::"audit");');
  expect(await refusalOf(prove(ann))).toMatch(/^REL_NOT_FOUND/);
  await install('eu', 'permit(principal, action == Action::"read", resource is Person) when { resource.region == "EU" };');
  expect(await refusalOf(prove(ann))).toMatch(/^REL_NOT_FOUND/);
  await install('eu', 'permit(principal, action == Action::"read", resource is Person) when { resource.region == "US" };');
  expect(await refusalOf(prove(ann))).toBeNull();
  await install(
    'hide',
    '@mask("year") forbid(principal, action == Action::"readCell", resource == Column::"Person.name") unless { principal in Role::"chief" };',
  );
  expect(await refusalOf(prove(ann))).toMatch(/^REL_NOT_FOUND/);
  const chief = { ...ann, roles: ['chief', 'break-glass'] };
  expect(await refusalOf(prove(chief))).toBeNull();
  await install('all', 'permit(principal, action, resource);');
  await store.invoke(analyst, 'schema', (invocation) =>
    invocation.submit({ kind: 'evolve-type', name: 'Person', properties: {}, guard: { protected: true } }),
  );
  expect(await refusalOf(prove(chief))).toMatch(/^REL_NOT_FOUND/);
  expect(await refusalOf(prove(chief, { breakGlass: 'threat' }))).toBeNull();
});

describe('a text that can not be decided by', () => {
  test('is not installed, whatever submits it', async () => {
    for (const text of ['nonsense', 'permit(principal, action, resource) when { resource.n > 9007199254740993 };']) {
      expect(await refusalOf(install('bad', text))).toMatch(/^REL_INVALID: policy bad, 1:/);
    }
    expect(await refusalOf(install('a/b', 'permit(principal, action, resource);'))).toMatch(/^REL_INVALID/);
    expect(store.service.store.projections.policies.current.policies).toEqual([]);
  });

  test('of another version lets nobody read or write, and the administrator delete it', async () => {
    const body = { kind: 'policy', change: 'installed', id: 'alien', text: 'permit(from, the, future);', digest: 'ab' } as const;
    const context = {
      branch: 'main',
      tenant: null,
      path: null,
      principal: '',
      door: '',
      purpose: null,
      correlationId: '',
      policyDigest: '',
    };
    const { log, projections } = store.service.store;
    const { position, time } = log.next();
    projections.policies.apply({ body, context, leaf: 0, position, positions: 1, time });
    expect(await refusalOf(read(ann))).toMatch(/^REL_UNAVAILABLE/);
    expect(await refusalOf(store.put('Person', [{ id: 'b' }], ann))).toMatch(/^REL_UNAVAILABLE/);
    expect(await refusalOf(invoke(ann, 'audit', async (invocation) => invocation.audit()))).toMatch(/^REL_UNAVAILABLE/);
    expect(await refusalOf(administer({ kind: 'delete-policy', id: 'alien' }))).toBeNull();
    expect(await refusalOf(read(ann))).toBeNull();
  });
});
