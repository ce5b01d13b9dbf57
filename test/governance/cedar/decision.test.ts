/** What one caller may do: things, rows and cells, kept from call to call, and why. */
import { describe, expect, test } from 'vitest';
import type { Asker } from '../../../src/governance/authorization/cedar/entities.ts';
import { decideInstalled, defaultRules, type PolicyRequest } from '../../../src/governance/authorization/access-rules.ts';
import { PolicySet } from '../../../src/governance/authorization/policy-set.ts';
import { caller } from '../world.ts';
import { typeOf } from './generator.ts';

const asker: Asker = {
  principal: 'ann',
  roles: ['analyst'],
  path: 'acme/eu',
  attributes: {},
  purpose: 'fraud:aml',
  door: 'http',
  branch: 'main',
  breakGlass: null,
  accessScopeRef: null,
  clientIp: null,
};
const setOf = (...texts: readonly string[]): PolicySet => new PolicySet(new Map(texts.map((text, i) => [`p${i}`, text])));
const person = typeOf('Person');

describe('a thing', () => {
  test('is allowed by a permit, denied by default, by any forbid, and by one that errs', () => {
    const decide = (...texts: readonly string[]): unknown =>
      setOf(...texts)
        .callerPolicies(asker)
        .decide('administer', { type: 'Type', id: 'T' }, 0n);
    const permit = 'permit(principal in Role::"analyst", action == Action::"administer", resource == Type::"T");';
    expect(decide()).toEqual({ allowed: false, because: [] });
    expect(decide(permit)).toEqual({ allowed: true, because: ['p0'] });
    expect(decide('permit(principal, action == Action::"read", resource);')).toEqual({ allowed: false, because: [] });
    expect(decide(permit, 'forbid(principal, action, resource) when { principal in Org::"acme" };')).toEqual({
      allowed: false,
      because: ['p1'],
    });
    expect(decide(permit, 'forbid(principal, action, resource) when { principal.nosuch };')).toEqual({
      allowed: false,
      because: ['p1'],
    });
    expect(decide(permit, 'forbid(principal, action, resource) when { resource.region == "EU" };')).toEqual({
      allowed: false,
      because: ['p1'],
    });
    expect(decide('permit(principal, action, resource) when { resource.region == "EU" };')).toEqual({
      allowed: false,
      because: [],
    });
  });

  test('belongs to whom it belongs', () => {
    const set = setOf('permit(principal, action == Action::"fork", resource in Org::"acme");');
    const allowed = (owner: string | null): boolean =>
      set.callerPolicies(asker).decide('fork', { type: 'Branch', id: 'b', owner }, 0n).allowed;
    expect([allowed('acme'), allowed('acme/eu'), allowed('acme-evil'), allowed(null)]).toEqual([true, true, false, false]);
  });

  test('is decided by the clock each time, where a policy asks for it', () => {
    const mine = setOf(
      'permit(principal, action, resource) when { context.now < datetime("1970-01-01T00:00:00.002Z") };',
    ).callerPolicies(asker);
    const at = (now: bigint): boolean => mine.decide('share', { type: 'Type', id: 'T' }, now).allowed;
    expect([at(0n), at(1_999_999n), at(2_000_000n), at(0n)]).toEqual([true, true, false, true]);
  });
});

describe('one caller', () => {
  test('is decided for as another is not', () => {
    const set = setOf('permit(principal == User::"ann", action, resource) when { context.purpose in Purpose::"fraud" };');
    const allowed = (change: Partial<Asker>): boolean =>
      set.callerPolicies({ ...asker, ...change }).rows('read', person, 0n).rows === null;
    expect(allowed({})).toBe(true);
    expect(allowed({ principal: 'bob' })).toBe(false);
    expect(allowed({ purpose: 'support' })).toBe(false);
    expect(allowed({ purpose: null })).toBe(false);
    expect(allowed({ attributes: { agent: true } })).toBe(false);
    expect(allowed({})).toBe(true);
  });

  test('keeps a condition while it is the same, and gets another when the clock changes it', () => {
    const set = setOf(
      'permit(principal, action, resource) when { context.now < datetime("1970-01-02") && resource.n > 1 || resource.n > 5 };',
    );
    const rows = (now: bigint): unknown => set.callerPolicies(asker).rows('read', person, now).rows;
    const early = rows(0n);
    expect(rows(5_000_000n)).toBe(early);
    const late = rows(86_400_000_000_000n);
    expect(late).not.toBe(early);
    expect(late).toMatchObject({ key: expect.stringContaining('resource.n > 5') });
  });
});

describe('masks', () => {
  const forbid = (mask: string, rest: string): string =>
    `@mask("${mask}") forbid(principal, action == Action::"readCell", resource ${rest};`;
  const masksOf = (...texts: readonly string[]): ReadonlyMap<string, unknown> =>
    setOf(...texts)
      .callerPolicies(asker)
      .masks(person, 0n).masks;

  test('are the strictest of those that may apply, in every row where one does', () => {
    const always = masksOf(forbid('last4', '== Column::"Person.note")'), forbid('hash', 'in Type::"Person")'));
    expect(always.get('note')).toEqual({ kind: 'hash', when: null, because: 'p1, p0' });
    const both = masksOf(
      forbid('year', '== Column::"Person.at")'),
      forbid('redact', 'in Column::"Person.at") when { resource.n > 1 }'),
    );
    expect(both.get('at')).toMatchObject({ kind: 'redact', when: null });
    const some = masksOf(forbid('bucket:10', '== Column::"Person.n") when { resource.region == "EU" }'));
    expect(some.get('n')).toMatchObject({ kind: 'bucket', size: 10, when: { columns: ['region'] } });
    expect([...some.keys()]).toEqual(['n']);
  });

  test('spare whom their condition spares', () => {
    expect(masksOf(forbid('null', 'in Type::"Person") unless { principal in Role::"analyst" }')).size).toBe(0);
    expect(masksOf(forbid('null', 'in Type::"Payment")')).size).toBe(0);
  });

  test('are declared by the type as well, installed policies or not', () => {
    const declared = { ...person, properties: { ...person.properties, note: { ...person.properties['note']!, masked: true } } };
    const masks = (set: PolicySet, roles: readonly string[]): readonly unknown[] => [
      ...set.callerPolicies({ ...asker, roles }).masks(declared, 0n).masks,
    ];
    const redacted = ['note', { kind: 'redact', when: null, because: 'masked Person.note' }];
    expect(masks(setOf(), [])).toEqual([redacted]);
    expect(masks(setOf('permit(principal, action, resource);'), ['pci'])).toEqual([redacted]);
    expect(masks(setOf(), ['unmask'])).toEqual([]);
  });

  test('of the key hide what repeats it', () => {
    const keyed = { ...person, primaryKey: 'note' };
    const set = setOf(forbid('null', '== Column::"Person.note")'));
    expect([...set.callerPolicies(asker).masks(keyed, 0n).masks.keys()].sort()).toEqual(['_pk', 'id', 'note']);
    expect([...set.callerPolicies(asker).masks(person, 0n).masks.keys()]).toEqual(['note']);
  });
});

test('an explanation is made of the decision itself', () => {
  const set = setOf(
    'permit(principal in Role::"analyst", action, resource is Row) when { resource.region == "EU" || principal in Role::"chief" };',
    'forbid(principal, action == Action::"read", resource) when { resource has n && resource.n > 100 };',
    '@mask("last4") forbid(principal, action == Action::"readCell", resource in Column::"Person.note") unless { resource.flag };',
    'permit(principal in Role::"pci", action, resource);',
  );
  expect(set.callerPolicies(asker).explain(person, 0n)).toEqual({
    decision: 'by row',
    determining: [
      { id: 'p0', effect: 'permit', left: 'resource.region == "EU"' },
      { id: 'p1', effect: 'forbid', left: '(resource has n) && (resource.n > 100)' },
    ],
    residual: '(resource.region == "EU") && !((resource has n) && (resource.n > 100))',
    masks: [{ column: 'note', kind: 'last4', when: '!resource.flag', because: 'p2' }],
  });
  expect(set.callerPolicies({ ...asker, roles: [] }).explain(person, 0n)).toMatchObject({
    decision: 'deny',
    determining: [],
    residual: null,
  });
});

describe('installed policies', () => {
  const request = (change: Partial<PolicyRequest>): PolicyRequest => ({
    caller: caller({ principal: 'ann', path: 'acme/eu' }),
    action: 'query',
    purpose: 'fraud:aml',
    objectType: 'Person',
    ...change,
  });
  const decide = (texts: readonly string[], change: Partial<PolicyRequest> = {}): unknown => {
    const set = setOf(...texts);
    const installed = { policies: () => (set.isEmpty ? null : set.callerPolicies(asker)), now: 0n, typeOf: () => person };
    const { allowed, because } = decideInstalled(defaultRules, request(change), installed);
    return [allowed, ...because.map(({ id }) => id)];
  };

  test('deny by default what the rules would permit, and leave everything alone while there are none', () => {
    expect(decide([])).toEqual([true, 'permit-own-tenant']);
    expect(decide(['permit(principal, action == Action::"write", resource);'])).toEqual([false]);
    expect(decide(['permit(principal, action == Action::"read", resource);'])).toEqual([true, 'p0']);
    expect(decide(['permit(principal, action, resource) when { resource.n > 1 };'])).toEqual([true]);
    expect(decide(['permit(principal, action, resource);'], { action: 'schema' })).toEqual([true, 'p0']);
    expect(
      decide(['permit(principal, action == Action::"fork", resource == Branch::"b");'], {
        action: 'fork',
        branch: { name: 'b', owner: 'acme/eu' },
      }),
    ).toEqual([true, 'p0']);
    expect(decide(['permit(principal, action == Action::"read", resource == Store::"audit");'], { action: 'audit' })).toEqual([
      true,
      'p0',
    ]);
  });

  test('never permit what the rules forbid, nor lock the administrator out', () => {
    const all = ['permit(principal, action, resource);'];
    const none = ['forbid(principal, action, resource);'];
    expect(decide(all, { objectType: 'SigintIntercept' })).toEqual([false, 'forbid-classified']);
    const administrator = caller({ credential: 'admin' });
    expect(decide(none, { caller: administrator, action: 'administer', objectType: null })).toEqual([
      true,
      'permit-administrator',
    ]);
    expect(decide(none)).toEqual([false, 'p0']);
  });
});
