import { describe, expect, test } from 'vitest';
import type { ErrorCode } from '../../../src/errors.ts';
import { type AgreementState, agreementStates, type AgreementTerms } from '../../../src/log/entries/entry.ts';
import type { AgreementSide } from '../../../src/projections/command.ts';
import { isInForce, mayMove, stateAt } from '../../../src/projections/tenants/agreements.ts';
import { termsOf } from '../histories.ts';
import { START, Store } from '../store.ts';

function refused(code: ErrorCode): unknown {
  return expect.objectContaining({ code });
}

const sides: readonly AgreementSide[] = ['assigner', 'assignee', 'administrator', 'clock'];

const propose = (store: Store, more: Partial<AgreementTerms> = {}, id = 'g'): unknown =>
  store.run({ kind: 'propose-agreement', id, terms: termsOf('acme', 'globex', more) });
const move = (store: Store, to: AgreementState, side: AgreementSide, id = 'g'): unknown =>
  store.run({ kind: 'move-agreement', id, to, side });
const stateOf = (store: Store, id = 'g'): unknown => store.projections.tenants.agreement(id)!.record.state;

/** How to come to each state, by the side whose move it is. */
const ways: Readonly<Record<AgreementState, readonly (readonly [AgreementState, AgreementSide])[]>> = {
  proposed: [],
  accepted: [['accepted', 'assignee']],
  active: [
    ['accepted', 'assignee'],
    ['active', 'assigner'],
  ],
  suspended: [
    ['accepted', 'assignee'],
    ['active', 'assigner'],
    ['suspended', 'assigner'],
  ],
  revoked: [['revoked', 'assigner']],
  expired: [['expired', 'clock']],
};

function storeIn(state: AgreementState): Store {
  const store = new Store();
  propose(store, { validTo: START + 50_000n });
  for (const [to, side] of ways[state]) {
    if (to === 'expired') store.time = START + 50_000n;
    move(store, to, side);
  }
  return store;
}

/** What an agreement may become, and who may say so. */
const allowed = [
  'proposed > accepted: assignee',
  'proposed > revoked: assigner assignee administrator',
  'proposed > expired: clock',
  'accepted > active: assigner',
  'accepted > revoked: assigner assignee administrator',
  'accepted > expired: clock',
  'active > suspended: assigner administrator',
  'active > revoked: assigner assignee administrator',
  'active > expired: clock',
  'suspended > active: assigner',
  'suspended > revoked: assigner assignee administrator',
  'suspended > expired: clock',
];

describe('moves of an agreement', () => {
  test('are these, by these sides, and no others', () => {
    const found: string[] = [];
    for (const state of agreementStates) {
      for (const to of agreementStates) {
        const by = sides.filter((side) => mayMove({ state }, to, side));
        if (by.length > 0) found.push(`${state} > ${to}: ${by.join(' ')}`);
      }
    }
    expect(found).toEqual(allowed);
  });

  test.each(agreementStates)('from %s are made or refused as the table says', (state) => {
    for (const to of agreementStates) {
      for (const side of sides) {
        const store = storeIn(state);
        // The clock notices when it is time.
        if (to === 'expired') store.time = START + 50_000n;
        const before = store.entries.length;
        if (mayMove({ state }, to, side)) {
          expect(move(store, to, side)).toMatchObject({ changed: true, ids: ['g'] });
          expect(stateOf(store)).toBe(to);
          continue;
        }
        const exists = sides.some((other) => mayMove({ state }, to, other));
        expect(() => move(store, to, side), `${state} > ${to} by ${side}`).toThrow(refused(exists ? 'REL_ACL' : 'REL_CONFLICT'));
        expect([stateOf(store), store.entries.length]).toEqual([state, before]);
      }
    }
  });

  test('of an unknown agreement are not found', () => {
    expect(() => move(new Store(), 'accepted', 'assignee')).toThrow(refused('REL_NOT_FOUND'));
  });

  test('each leave an entry that says what happened, and an event for the audit', () => {
    const store = storeIn('suspended');
    const resumedAt = store.time;
    move(store, 'active', 'assigner');
    move(store, 'revoked', 'assignee');
    const changes = ['proposed', 'accepted', 'activated', 'suspended', 'resumed', 'revoked'];
    expect(store.entries.map(({ body }) => body.kind === 'agreement' && body.change)).toEqual(changes);
    const { events } = store.projections.tenants.agreement('g')!;
    expect(events.map(({ change }) => change)).toEqual(changes);
    expect(events[4]).toEqual({ change: 'resumed', principal: 'tester', position: 4, time: resumedAt });
  });

  test('keep the first activation', () => {
    const store = storeIn('accepted');
    const at = store.time;
    expect(store.projections.tenants.agreement('g')!.record.activatedAt).toBeNull();
    for (const [to, side] of [
      ['active', 'assigner'],
      ['suspended', 'administrator'],
      ['active', 'assigner'],
    ] as const)
      move(store, to, side);
    expect(store.projections.tenants.agreement('g')!.record).toMatchObject({ activatedAt: at, createdAt: START });
  });
});

describe('the end of an agreement', () => {
  test('is there from validTo on, noticed or not', () => {
    const agreement = { state: 'active', validFrom: 10n, validTo: 20n } as const;
    expect([9n, 10n, 19n, 20n, 21n].map((instant) => isInForce(agreement, instant))).toEqual([false, true, true, false, false]);
    expect([19n, 20n].map((instant) => stateAt(agreement, instant))).toEqual(['active', 'expired']);
    expect(stateAt({ ...agreement, state: 'revoked' }, 30n)).toBe('revoked');
    for (const state of agreementStates) expect(isInForce({ ...agreement, state }, 15n)).toBe(state === 'active');
  });

  test('can’t be noticed before it comes', () => {
    const store = storeIn('active');
    store.time = START + 49_999n;
    expect(() => move(store, 'expired', 'clock')).toThrow(refused('REL_CONFLICT'));
    store.time = START + 50_000n;
    expect(move(store, 'expired', 'clock')).toMatchObject({ changed: true });
  });

  test('can’t be moved away from, even before it is noticed', () => {
    for (const [state, to, side] of [
      ['proposed', 'accepted', 'assignee'],
      ['active', 'suspended', 'assigner'],
      ['active', 'revoked', 'assigner'],
    ] as const) {
      const store = storeIn(state);
      store.time = START + 50_000n;
      expect(() => move(store, to, side)).toThrow(refused('REL_CONFLICT'));
    }
  });
});

describe('the terms of an agreement', () => {
  test('are kept as they were proposed', () => {
    const store = new Store();
    const terms = termsOf('acme/eu', 'globex', {
      where: 'resource.age > 3',
      columns: ['name'],
      purposes: ['research'],
      masking: { name: 'last4', age: 'bucket' },
      history: 'from_start',
      onwardSharing: true,
      aggregateMinGroup: 5,
      termsDigest: 'ab'.repeat(32),
    });
    store.run({ kind: 'propose-agreement', id: 'g', terms });
    expect(store.projections.tenants.agreement('g')!.record).toEqual({
      ...terms,
      id: 'g',
      state: 'proposed',
      createdAt: START,
      activatedAt: null,
    });
  });

  const invalid: readonly (readonly [string, Partial<AgreementTerms>])[] = [
    ['no types', { types: [] }],
    ['a type twice', { types: ['T', 'T'] }],
    ['a type without a name', { types: [''] }],
    ['a list of no columns', { columns: [] }],
    ['no permission', { permission: [] }],
    ['an unknown mask', { masking: { a: 'blur' as 'redact' } }],
    ['an unknown history', { history: 'some' as 'full' }],
    ['an end before its beginning', { validFrom: START + 10n, validTo: START + 10n }],
    ['an end that is over', { validFrom: 1n, validTo: START }],
    ['groups of none', { aggregateMinGroup: 0 }],
    ['groups of a half', { aggregateMinGroup: 1.5 }],
    ['a digest that is none', { termsDigest: 'AB' }],
    ['a lone surrogate in its condition', { where: '\ud800' }],
    ['a condition that is too long', { where: 'x'.repeat(65_537) }],
    ['one and the same side', { assignee: 'acme' }],
    ['an assignee above the assigner', { assigner: 'globex/eu' }],
    ['a side that is no path', { assignee: 'a//b' }],
    ['too many types', { types: Array.from({ length: 1001 }, (_, i) => `T${i}`) }],
  ];
  test.each(invalid)('with %s are refused, proposed or changed', (_, more) => {
    expect(() => propose(new Store(), more)).toThrow(refused('REL_INVALID'));
    const store = storeIn('proposed');
    expect(() => store.run({ kind: 'change-agreement', id: 'g', terms: termsOf('acme', 'globex', more) })).toThrow(
      refused('REL_INVALID'),
    );
  });

  test('may share what lies above with one below, and between siblings', () => {
    const store = new Store();
    propose(store, { assignee: 'acme/eu' }, 'down');
    propose(store, { assigner: 'acme/eu', assignee: 'acme/us' }, 'across');
    propose(store, { assigner: 'acme-evil', assignee: 'acme' }, 'no relation');
    expect(store.projections.tenants.agreementsOf('acme').map(({ id }) => id)).toEqual(['across', 'down', 'no relation']);
  });

  test('change while nobody has consented, and not what sides there are', () => {
    const store = storeIn('proposed');
    const put = (more: Partial<AgreementTerms>): unknown =>
      store.run({ kind: 'change-agreement', id: 'g', terms: termsOf('acme', 'globex', { validTo: START + 50_000n, ...more }) });
    expect(put({})).toMatchObject({ changed: false });
    expect(put({ types: ['Event'] })).toMatchObject({ changed: true });
    expect(store.projections.tenants.agreement('g')!.record).toMatchObject({
      types: ['Event'],
      state: 'proposed',
      createdAt: START,
    });
    expect(() => put({ assignee: 'initech' })).toThrow(refused('REL_CONFLICT'));
    move(store, 'accepted', 'assignee');
    expect(() => put({})).toThrow(refused('REL_CONFLICT'));
    expect(() => store.run({ kind: 'change-agreement', id: 'h', terms: termsOf('acme', 'globex') })).toThrow(
      refused('REL_NOT_FOUND'),
    );
  });

  test('need an assigner that stands, where it is registered; how the assignee stands is nobody else’s to learn', () => {
    const store = new Store();
    for (const id of ['acme', 'globex']) {
      store.run({ kind: 'create-tenant', id, name: '', tier: 't', quota: {}, search: {}, members: [], tenantsMax: 0 });
    }
    const proposed: unknown[] = [];
    for (const [i, kind] of (['suspend-tenant', 'reactivate-tenant', 'delete-tenant'] as const).entries()) {
      store.run(kind === 'delete-tenant' ? { kind, id: 'globex', manner: 'soft' } : { kind, id: 'globex' });
      proposed.push((propose(store, {}, `to${i}`) as { readonly changed: boolean }).changed);
    }
    expect(proposed).toEqual([true, true, true]);
    store.run({ kind: 'suspend-tenant', id: 'acme' });
    expect(() => propose(store, {}, 'one')).toThrow(refused('REL_CONFLICT'));
    store.run({ kind: 'delete-tenant', id: 'acme', manner: 'soft' });
    expect(() => propose(store, {}, 'one')).toThrow(refused('REL_CONFLICT'));
    expect(propose(store, { assigner: 'initech' }, 'one')).toMatchObject({ changed: true });
  });

  test('go by an id of their own, and a tenant shares under so many at most', () => {
    const store = new Store();
    propose(store);
    expect(() => propose(store)).toThrow(refused('REL_CONFLICT'));
    expect(() => propose(store, {}, '')).toThrow(refused('REL_INVALID'));
    for (let i = 1; i < 1000; i++) propose(store, { assigner: 'acme/eu' }, `g${i}`);
    expect(() => propose(store, {}, 'more')).toThrow(refused('REL_CONFLICT'));
    expect(propose(store, { assigner: 'globex', assignee: 'acme' }, 'theirs')).toMatchObject({ changed: true });
    move(store, 'revoked', 'assigner', 'g7');
    expect(propose(store, {}, 'more')).toMatchObject({ changed: true });
  });
});

test('what is shared with a tenant is what it is the assignee of, and active', () => {
  const store = new Store();
  propose(store, { assignee: 'globex/eu' }, 'a');
  propose(store, { assigner: 'initech' }, 'b');
  propose(store, { assigner: 'initech' }, 'c');
  propose(store, { assigner: 'globex', assignee: 'acme' }, 'd');
  for (const id of ['a', 'b', 'd']) {
    move(store, 'accepted', 'assignee', id);
    move(store, 'active', 'assigner', id);
  }
  move(store, 'suspended', 'assigner', 'b');
  const { tenants } = store.projections;
  expect(tenants.sharedWith('globex').map(({ id }) => id)).toEqual(['a']);
  expect(tenants.sharedWith('acme').map(({ id }) => id)).toEqual(['d']);
  expect(tenants.sharedWith('initech')).toEqual([]);
});
