/** Purposes, policy and egress: what is asked for, and what each refuses. */
import { describe, expect, test } from 'vitest';
import { classifiedTypes } from '../../src/projections/catalog/builtin-types.ts';
import { isClassified } from '../../src/governance/authorization/egress.ts';
import { decide, defaultRules, type PolicyRequest, type Rule } from '../../src/governance/authorization/access-rules.ts';
import { checkPurpose, purposeCovers, type PurposeRules } from '../../src/governance/authorization/purpose.ts';
import type { Invocation } from '../../src/governance/gate-contract.ts';
import { caller, putRows, refusalOf, World } from './world.ts';

describe('purposes', () => {
  const strict: PurposeRules = { mode: 'strict', registered: ['analytics', 'fraud:aml'] };
  const open: PurposeRules = { mode: 'open', registered: [] };
  const outcome = async (
    rules: PurposeRules,
    purpose: string | null,
    restricted: string[] = [],
    required = false,
  ): Promise<string> => {
    try {
      checkPurpose(rules, purpose, restricted, required);
      return 'ok';
    } catch (error) {
      return (await refusalOf(Promise.reject(error))).code;
    }
  };

  test.each<[string | null, string]>([
    [null, 'ok'],
    ['', 'ok'],
    ['analytics', 'ok'],
    ['analytics:daily', 'ok'],
    ['analytics:daily:eu', 'ok'],
    ['fraud:aml', 'ok'],
    ['fraud:aml:x', 'ok'],
    ['fraud', 'REL_PURPOSE_UNKNOWN'],
    ['fraud:amlx', 'REL_PURPOSE_UNKNOWN'],
    ['analyticsx', 'REL_PURPOSE_UNKNOWN'],
    ['Analytics', 'REL_PURPOSE_UNKNOWN'],
    ['analytics:', 'REL_PURPOSE_UNKNOWN'],
    ['analytics::x', 'REL_PURPOSE_UNKNOWN'],
    [':', 'REL_PURPOSE_UNKNOWN'],
    ['marketing', 'REL_PURPOSE_UNKNOWN'],
    ['analytics:\u0000', 'REL_INVALID'],
    ['analytics:'.padEnd(200, 'x'), 'REL_INVALID'],
  ])('strict mode judges %j as %s', async (purpose, expected) => {
    expect(await outcome(strict, purpose)).toBe(expected);
  });

  test('open mode admits any well-formed purpose', async () => {
    expect(await outcome(open, 'whatever')).toBe('ok');
    expect(await outcome(open, 'a:')).toBe('REL_PURPOSE_UNKNOWN');
  });

  test('where one is required, none is refused, in either mode', async () => {
    for (const rules of [strict, open]) {
      for (const purpose of [null, '']) expect(await outcome(rules, purpose, [], true)).toBe('REL_PURPOSE');
    }
  });

  test('a restricted credential acts for a purpose that it was granted', async () => {
    expect(await outcome(strict, null, ['analytics'], true)).toBe('REL_PURPOSE');
    expect(await outcome(strict, null, ['analytics'])).toBe('ok');
    expect(await outcome(strict, 'analytics:daily', ['analytics'])).toBe('ok');
    expect(await outcome(strict, 'analytics', ['analytics:daily'])).toBe('REL_ACL');
    expect(await outcome(strict, 'fraud:aml', ['analytics'])).toBe('REL_ACL');
    expect(await outcome(strict, 'granted', ['granted'])).toBe('REL_PURPOSE_UNKNOWN');
  });

  test('the hierarchy goes by whole segments', () => {
    expect(purposeCovers('fraud', 'fraud:aml')).toBe(true);
    expect(purposeCovers('fraud', 'fraudulent')).toBe(false);
    expect(purposeCovers('fraud:aml', 'fraud')).toBe(false);
  });
});

describe('policy', () => {
  const request: PolicyRequest = { caller: caller(), action: 'query', purpose: null, objectType: 'T' };
  const rule = (id: string, effect: Rule['effect'], matches: () => boolean): Rule => ({ id, effect, says: id, matches });
  const permit = rule('permit', 'permit', () => true);
  const forbid = rule('forbid', 'forbid', () => true);
  const erring = (effect: Rule['effect']): Rule =>
    rule(`erring-${effect}`, effect, () => {
      throw new TypeError('bad rule');
    });
  const unmatched = rule('other', 'forbid', () => false);

  test.each<[string, readonly Rule[], boolean, readonly string[]]>([
    ['nothing matches', [unmatched], false, []],
    ['no rules at all', [], false, []],
    ['a permit matches', [permit, unmatched], true, ['permit']],
    ['a forbid matches', [forbid], false, ['forbid']],
    ['both match, permit first', [permit, forbid], false, ['forbid']],
    ['both match, forbid first', [forbid, permit], false, ['forbid']],
    ['a forbid errs', [permit, erring('forbid')], false, ['erring-forbid']],
    ['a permit errs', [erring('permit')], false, []],
    ['a permit errs beside another', [erring('permit'), permit], true, ['permit']],
  ])('%s', (_, rules, allowed, because) => {
    const decision = decide(rules, request);
    expect([decision.allowed, decision.because.map(({ id }) => id)]).toEqual([allowed, because]);
  });

  test('adding a forbid never allows more', () => {
    for (const rules of [[permit], [forbid], [], [erring('permit')]]) {
      if (!decide(rules, request).allowed) expect(decide([...rules, forbid], request).allowed).toBe(false);
      expect(decide([...rules, forbid], request).allowed).toBe(false);
    }
  });

  test('by default everybody known works in their own tenant, the administrator administers, nobody else does', () => {
    const actions = ['query', 'ingest', 'delete', 'remove', 'schema', 'administer', 'audit', 'inspect'] as const;
    const allowedTo = (who: PolicyRequest['caller']): string[] =>
      actions.filter((action) => decide(defaultRules, { ...request, caller: who, action }).allowed);
    const data = ['query', 'ingest', 'delete', 'remove', 'schema', 'audit', 'inspect'];
    expect(allowedTo(caller())).toEqual(data);
    expect(allowedTo(caller({ tenant: 'acme', path: 'acme/eu' }))).toEqual(data);
    expect(allowedTo(caller({ credential: 'shared-secret', tokenId: null }))).toEqual(data);
    expect(allowedTo(caller({ credential: 'none', tokenId: null })).sort()).toEqual([...data, 'administer'].sort());
    expect(allowedTo(caller({ credential: 'admin', tokenId: null }))).toEqual(['administer', 'audit', 'inspect']);
    expect(allowedTo(caller({ tenant: 'acme', path: 'acme-evil' }))).toEqual([]);
    expect(allowedTo(caller({ tenant: 'acme', path: null }))).toEqual([]);
    expect(allowedTo(caller({ roles: ['admin'], attributes: { admin: true } }))).toEqual(data);
  });

  test('explaining asks the same rules', async () => {
    const world = new World();
    const explain = (over: Parameters<typeof caller>[0], type: string | null) =>
      world.invoke(caller(over), 'query', async (invocation) => invocation.explainPolicy(type));
    expect(await explain({ path: 'acme' }, 'T')).toMatchObject({
      decision: 'allow',
      because: ['permit-own-tenant: whoever is known may work inside their own tenant'],
      scope: 'rows of acme and below',
      determining: [{ id: 'permit-own-tenant', effect: 'permit' }],
      residual: null,
      masks: [],
      policyDigest: '',
      satisfiedPath: ['rule permit-own-tenant'],
    });
    expect(await explain({}, 'SigintIntercept')).toMatchObject({
      decision: 'deny',
      because: ['forbid-classified: classified types never pass a door'],
      scope: 'rows without a tenant',
      satisfiedPath: [],
    });
  });
});

describe.each([...classifiedTypes, 'sigintintercept', 'SOURCETRUEIDENTITY'])('the classified type %s', (type) => {
  const refused: readonly [string, (invocation: Invocation) => unknown][] = [
    ['put', (i) => i.submit(putRows(type))],
    ['deleted from', (i) => i.submit({ kind: 'delete-rows', type, keys: ['1'] })],
    ['removed from', (i) => i.submit({ kind: 'remove-rows', type, keys: ['1'] })],
    ['registered', (i) => i.submit({ kind: 'register-type', name: type, properties: null, primaryKey: null, graphTriggers: [] })],
    ['evolved', (i) => i.submit({ kind: 'evolve-type', name: type, properties: {} })],
    ['looked up', (i) => i.snapshot().catalog.type(type)],
    ['scanned', (i) => i.snapshot().rows.scan({ type, columns: [], time: { system: 'all', valid: 'all' } })],
    ['estimated', (i) => i.snapshot().rows.estimate({ type, columns: [], time: { system: 'all', valid: 'all' } })],
    ['asked for its provenance', (i) => i.snapshot().rows.provenanceOf(type, 0n)],
  ];
  test.each(refused)('is not %s', async (_, act) => {
    const world = new World();
    const refusal = await refusalOf(world.invoke(caller(), 'query', async (invocation) => act(invocation)));
    expect([refusal.code, refusal.status]).toEqual(['REL_HUMINT', 403]);
    expect(world.steps.filter((step) => step.startsWith('decide'))).toEqual([]);
  });

  test('is not listed', async () => {
    const world = new World();
    const definition = { name: type, properties: {}, open: true, primaryKey: null, graphTriggers: [], ontologyVersion: 1 };
    world.state.types.push(definition, { ...definition, name: 'Person' });
    const names = await world.invoke(caller(), 'inspect', async (i) =>
      i
        .snapshot()
        .catalog.types()
        .map(({ name }) => name),
    );
    expect(names).toEqual(['Person']);
    expect(await world.invoke(caller(), 'inspect', async (i) => i.snapshot().catalog.ontologyVersion)).toBe(1);
    expect(isClassified(type)).toBe(true);
  });
});
