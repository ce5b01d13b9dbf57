import { describe, expect, test } from 'vitest';
import type { ErrorCode } from '../../../src/errors.ts';
import type { DeletionManner } from '../../../src/log/entries/entry.ts';
import type { Command, CreateTenant, Outcome } from '../../../src/projections/command.ts';
import { covers } from '../../../src/projections/tenants/tenant-drafts.ts';
import { termsOf, tokenOf } from '../histories.ts';
import { START, Store } from '../store.ts';

type Done = Omit<Outcome, 'durability' | 'replayed'>;

function refused(code: ErrorCode): unknown {
  return expect.objectContaining({ code });
}

const noQuota = { queryUnits: null, inFlight: null, storageBytes: null, subscriptions: null, requestsPerSecond: null };

function create(store: Store, id: string, more: Partial<CreateTenant> = {}): Done {
  return store.run({
    kind: 'create-tenant',
    id,
    name: `The ${id}`,
    tier: 'standard',
    quota: {},
    search: {},
    members: [],
    tenantsMax: 0,
    ...more,
  });
}

const change = (store: Store, id: string, more: object): Done => store.run({ kind: 'change-tenant', id, ...more } as Command);
const end = (store: Store, id: string, manner: DeletionManner): Done => store.run({ kind: 'delete-tenant', id, manner });
const purgeStep = (store: Store, id: string): Done => store.run({ kind: 'purge-tenant', id, cursor: null, keysMax: 10 });

test('a path covers itself and what lies below it, and nothing that begins alike', () => {
  for (const path of ['acme', 'acme/eu', 'acme/eu/berlin']) expect(covers('acme', path)).toBe(true);
  for (const path of ['acme-evil', 'acmeeu', 'acm', 'globex/acme']) expect(covers('acme', path)).toBe(false);
  expect([covers('acme/eu', 'acme/eu-west'), covers('acme/eu', 'acme')]).toEqual([false, false]);
});

describe('a tenant', () => {
  test('is active once it was created, and has what it was given', () => {
    const store = new Store();
    const outcome = create(store, 'acme', {
      quota: { inFlight: 3 },
      search: { b: 1, a: [null] },
      members: [
        { principal: 'zed', role: 'reader' },
        { principal: 'ada', role: 'owner' },
      ],
    });
    expect(outcome).toMatchObject({ kind: 'create-tenant', changed: true, ids: ['acme'], systemFrom: START });
    const { tenants } = store.projections;
    expect(tenants.tenant('acme')).toEqual({
      record: {
        id: 'acme',
        name: 'The acme',
        tier: 'standard',
        state: 'active',
        quota: { ...noQuota, inFlight: 3 },
        search: { a: [null], b: 1 },
        members: [
          { principal: 'ada', role: 'owner' },
          { principal: 'zed', role: 'reader' },
        ],
        createdAt: START,
        changedAt: START,
      },
      manner: null,
      purged: false,
      since: null,
    });
    expect([tenants.liveCount, tenants.epoch]).toEqual([1, 1]);
  });

  test('that stands is left as it is when it is created again, below the cap and at it', () => {
    const store = new Store();
    create(store, 'acme', { tenantsMax: 1 });
    for (const tenantsMax of [0, 1, 2])
      expect(create(store, 'acme', { name: 'other', tenantsMax })).toMatchObject({ changed: false });
    store.run({ kind: 'suspend-tenant', id: 'acme' });
    expect(create(store, 'acme', { tenantsMax: 1 })).toMatchObject({ changed: false });
    expect(store.projections.tenants.tenant('acme')!.record).toMatchObject({ name: 'The acme', state: 'suspended' });
  });

  test('over the cap is refused; suspended ones count, deleted ones do not', () => {
    const store = new Store();
    create(store, 'a', { tenantsMax: 2 });
    create(store, 'b', { tenantsMax: 2 });
    store.run({ kind: 'suspend-tenant', id: 'b' });
    expect(() => create(store, 'c', { tenantsMax: 2 })).toThrow(refused('REL_TENANT_CAP'));
    end(store, 'a', 'soft');
    expect(create(store, 'c', { tenantsMax: 2 })).toMatchObject({ changed: true });
    expect(() => create(store, 'd', { tenantsMax: 2 })).toThrow(refused('REL_TENANT_CAP'));
    expect(create(store, 'd', { tenantsMax: 0 })).toMatchObject({ changed: true });
  });

  test.each([
    ['with a slash in its id', { id: 'acme/eu' }],
    ['with a comma in its id', { id: 'a,b' }],
    ['with a padded id', { id: ' acme' }],
    ['without an id', { id: '' }],
    ['without a tier', { tier: '' }],
    ['with a name that is too long', { name: 'x'.repeat(1025) }],
    ['with a lone surrogate in its name', { name: '\ud800' }],
    ['with an unknown quota', { quota: { bytes: 3 } as object }],
    ['with a quota below zero', { quota: { inFlight: -1 } }],
    ['with half a quota', { quota: { inFlight: 0.5 } }],
    ['with a lone surrogate in its search', { search: { a: '\udc00' } }],
    ['with a number that JSON has not in its search', { search: { a: Infinity } }],
    ['with a search that is too long', { search: { a: 'x'.repeat(65_536) } }],
    ['with a search that is too deep', { search: JSON.parse(`{"a":${'['.repeat(64)}${']'.repeat(64)}}`) as object }],
    ['with a member without a role', { members: [{ principal: 'ada', role: '' }] }],
    ['with a member without a name', { members: [{ principal: '', role: 'owner' }] }],
  ])('%s is refused', (_, more) => {
    const store = new Store();
    expect(() => create(store, 'acme', more as Partial<CreateTenant>)).toThrow(refused('REL_INVALID'));
    expect(store.entries).toEqual([]);
  });

  test('changes in what is named, and only in that', () => {
    const store = new Store();
    create(store, 'acme', { quota: { inFlight: 3, queryUnits: 9 }, search: { a: 1 } });
    const at = store.time;
    expect(change(store, 'acme', { tier: 'gold', quota: { inFlight: null } })).toMatchObject({ changed: true });
    expect(store.projections.tenants.tenant('acme')!.record).toMatchObject({
      name: 'The acme',
      tier: 'gold',
      quota: { ...noQuota, queryUnits: 9 },
      search: { a: 1 },
      createdAt: START,
      changedAt: at,
    });
    change(store, 'acme', { name: '', search: {} });
    expect(store.projections.tenants.tenant('acme')!.record).toMatchObject({ name: '', tier: 'gold', search: {} });
  });

  test('that is changed to what it is already takes no entry', () => {
    const store = new Store();
    create(store, 'acme', { search: { b: 1, a: 2 }, members: [{ principal: 'ada', role: 'owner' }] });
    const same = [
      {},
      { name: 'The acme' },
      { search: { a: 2, b: 1 } },
      { members: [{ change: 'add', principal: 'ada', role: 'owner' }] },
    ];
    for (const more of same) expect(change(store, 'acme', more)).toMatchObject({ changed: false });
    expect(store.entries).toHaveLength(1);
  });

  test('has members, who come, change roles and go', () => {
    const store = new Store();
    create(store, 'acme');
    const members = (...changes: readonly (readonly [string, string, string])[]): unknown => {
      change(store, 'acme', { members: changes.map(([how, principal, role]) => ({ change: how, principal, role })) });
      return store.projections.tenants.tenant('acme')!.record.members.map(({ principal, role }) => `${principal} ${role}`);
    };
    expect(members(['add', 'bob', 'reader'], ['add', 'ada', 'owner'])).toEqual(['ada owner', 'bob reader']);
    expect(members(['change', 'bob', 'owner'], ['remove', 'ada', ''])).toEqual(['bob owner']);
    expect(() => members(['add', 'bob', 'reader'])).toThrow(refused('REL_CONFLICT'));
    expect(() => members(['change', 'ada', 'reader'])).toThrow(refused('REL_NOT_FOUND'));
    expect(() => members(['remove', 'ada', ''])).toThrow(refused('REL_NOT_FOUND'));
    expect(() => members(['change', 'bob', ''])).toThrow(refused('REL_INVALID'));
    expect(() => members(...Array.from({ length: 1000 }, (_, i) => ['add', `m${i}`, 'reader'] as const))).toThrow(
      refused('REL_CONFLICT'),
    );
  });

  test('is suspended and reactivated; to be what it is already changes nothing', () => {
    const store = new Store();
    create(store, 'acme');
    const state = (): unknown => store.projections.tenants.tenant('acme')!.record.state;
    expect(store.run({ kind: 'reactivate-tenant', id: 'acme' })).toMatchObject({ changed: false });
    expect(store.run({ kind: 'suspend-tenant', id: 'acme' })).toMatchObject({ changed: true });
    expect(state()).toBe('suspended');
    expect(store.run({ kind: 'suspend-tenant', id: 'acme' })).toMatchObject({ changed: false });
    expect(store.run({ kind: 'reactivate-tenant', id: 'acme' })).toMatchObject({ changed: true });
    expect(state()).toBe('active');
    expect(store.entries.map(({ body }) => body.kind === 'tenant' && body.change)).toEqual([
      'created',
      'suspended',
      'reactivated',
    ]);
  });

  test('that is unknown or deleted is not found', () => {
    const store = new Store();
    create(store, 'gone');
    end(store, 'gone', 'soft');
    for (const id of ['gone', 'nobody']) {
      expect(() => change(store, id, {})).toThrow(refused('REL_NOT_FOUND'));
      expect(() => store.run({ kind: 'suspend-tenant', id })).toThrow(refused('REL_NOT_FOUND'));
      expect(() => store.run({ kind: 'reactivate-tenant', id })).toThrow(refused('REL_NOT_FOUND'));
      expect(() => end(store, id, 'soft')).toThrow(refused('REL_NOT_FOUND'));
    }
    expect(() => end(store, 'nobody', 'purge')).toThrow(refused('REL_NOT_FOUND'));
    expect(() => purgeStep(store, 'nobody')).toThrow(refused('REL_NOT_FOUND'));
  });

  test('is kept as it was by a soft deletion, and struck by the others', () => {
    const store = new Store();
    const given = { search: { a: 1 }, members: [{ principal: 'ada', role: 'owner' }] };
    for (const manner of ['soft', 'tombstone', 'purge'] as const) {
      create(store, manner, given);
      const at = store.time;
      end(store, manner, manner);
      expect(store.entries.at(-1)!.body).toMatchObject({ change: 'deleted', manner });
      const { record } = store.projections.tenants.tenant(manner)!;
      expect(record).toMatchObject({ state: 'deleted', changedAt: at });
      expect([record.name, record.tier, record.members.length]).toEqual(
        manner === 'soft' ? ['The soft', 'standard', 1] : ['', '', 0],
      );
    }
    expect(store.projections.tenants.liveCount).toBe(0);
    expect(store.projections.tenants.purging()).toEqual(['purge']);
  });

  test('may be deleted further, and never less', () => {
    const manners = ['soft', 'tombstone', 'purge'] as const;
    for (const [i, first] of manners.entries()) {
      for (const [k, second] of manners.entries()) {
        const store = new Store();
        create(store, 'acme');
        end(store, 'acme', first);
        if (k > i) expect(end(store, 'acme', second)).toMatchObject({ changed: true });
        else if (second === 'purge') expect(end(store, 'acme', second)).toMatchObject({ changed: false });
        else expect(() => end(store, 'acme', second)).toThrow(refused('REL_NOT_FOUND'));
        expect(store.projections.tenants.tenant('acme')!.manner).toBe(manners[Math.max(i, k)]);
      }
    }
  });

  test('takes its tokens and its agreements with it, and nobody else’s', () => {
    const store = new Store();
    for (const id of ['acme', 'globex']) create(store, id);
    const tokens = { t1: 'acme', t2: 'acme/eu', t3: 'acme-evil', t4: null };
    for (const [id, tenant] of Object.entries(tokens)) store.run({ kind: 'mint-token', token: tokenOf(id, { tenant }) });
    const propose = (id: string, assigner: string, assignee: string, validTo = START * 2n): unknown =>
      store.run({ kind: 'propose-agreement', id, terms: termsOf(assigner, assignee, { validTo }) });
    propose('as assigner', 'acme/eu', 'globex');
    propose('as assignee', 'globex', 'acme');
    propose('over', 'globex', 'acme', store.time + 1_000n);
    propose('theirs', 'globex', 'acme-evil');
    store.run({ kind: 'move-agreement', id: 'as assignee', to: 'revoked', side: 'assignee' });
    const before = store.entries.length;
    end(store, 'acme', 'soft');
    const { directory, tenants } = store.projections;
    expect(directory.tokens().map(({ record, endedAt }) => [record.id, endedAt !== null])).toEqual([
      ['t1', true],
      ['t2', true],
      ['t3', false],
      ['t4', false],
    ]);
    expect(tenants.agreements().map(({ id, state }) => [id, state])).toEqual([
      ['as assignee', 'revoked'],
      ['as assigner', 'revoked'],
      ['over', 'expired'],
      ['theirs', 'proposed'],
    ]);
    expect(store.entries.slice(before).map(({ body }) => body.kind)).toEqual([
      'tenant',
      'agreement',
      'agreement',
      'token',
      'token',
    ]);
  });

  test('id is free again once it was purged, and the new one begins with nothing', () => {
    const store = new Store();
    create(store, 'acme', { members: [{ principal: 'ada', role: 'owner' }] });
    store.run({ kind: 'propose-agreement', id: 'g', terms: termsOf('acme', 'globex') });
    for (const manner of ['soft', 'tombstone', 'purge'] as const) {
      end(store, 'acme', manner);
      expect(() => create(store, 'acme')).toThrow(refused('REL_CONFLICT'));
    }
    expect(purgeStep(store, 'acme')).toMatchObject({ changed: true });
    expect(store.projections.tenants.purging()).toEqual([]);
    expect(() => end(store, 'acme', 'purge')).toThrow(refused('REL_NOT_FOUND'));
    expect(purgeStep(store, 'acme')).toMatchObject({ changed: false });
    const place = { position: store.position, time: store.time };
    create(store, 'acme', { name: 'new' });
    const { tenants } = store.projections;
    expect(tenants.tenant('acme')).toMatchObject({
      record: { name: 'new', state: 'active', members: [], createdAt: place.time },
      manner: null,
      purged: false,
      since: place,
    });
    expect(tenants.agreementsOf('acme')).toEqual([]);
    expect(tenants.agreementsOf('globex').map(({ id }) => id)).toEqual(['g']);
    store.run({ kind: 'propose-agreement', id: 'h', terms: termsOf('acme', 'globex') });
    expect(tenants.agreementsOf('acme').map(({ id }) => id)).toEqual(['h']);
  });

  test('is of main, whatever branch it was changed from', () => {
    const store = new Store();
    store.append({ kind: 'genesis', logId: 'l', origin: 'o', engineVersion: 'e' });
    store.run({ kind: 'fork-branch', name: 'dev', source: 'main', shares: 'everything' });
    store.run(
      { kind: 'create-tenant', id: 'a', name: '', tier: 't', quota: {}, search: {}, members: [], tenantsMax: 0 },
      null,
      'dev',
    );
    store.run({ kind: 'propose-agreement', id: 'g', terms: termsOf('a', 'b') }, null, 'dev');
    expect(store.entries.slice(2).map(({ context }) => context.branch)).toEqual(['main', 'main']);
  });
});
