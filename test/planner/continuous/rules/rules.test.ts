/** Rules: registered, changed, ended, and bound under the grant of whoever writes them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { enrichRules } from '../../../../src/governance/rules/visible-rules.ts';
import { tenantlessCaller } from '../../../../src/governance/caller.ts';
import { StoreWorld } from '../../../doors/http/store-world.ts';

let world: StoreWorld;

beforeAll(async () => {
  world = await StoreWorld.open();
  await world.call('POST', '/types', {
    name: 'Login',
    properties: { id: 'string', who: 'string', fails: 'integer' },
    primary_key: 'id',
  });
});

afterAll(() => world.close());

const many = { name: 'many fails', condition_sql: 'fails > 3', object_type: 'Login', severity: 'high' };

describe('a rule', () => {
  test('is registered once under its name; PUT makes a version, DELETE ends it', async () => {
    const made = await world.call('POST', '/rules', many);
    expect([made.status, made.json['version'], made.json['severity'], made.json['principal']]).toEqual([
      201,
      1,
      'high',
      'tester',
    ]);
    const again = await world.call('POST', '/rules', many);
    expect([again.status, again.json['id'], again.json['version']]).toEqual([200, made.json['id'], 1]);
    expect((await world.call('POST', '/rules', { ...many, severity: 'low' })).status).toBe(409);
    const path = `/rules/${made.json['id'] as string}`;
    expect((await world.call('PUT', path, { ...many, condition_sql: 'fails > 5' })).json['version']).toBe(2);
    expect((await world.call('GET', path)).json['condition_sql']).toBe('fails > 5');
    expect((await world.call('GET', '/rules')).json['total']).toBe(1);
    expect((await world.call('DELETE', path)).json).toEqual({ id: made.json['id'], ended: true });
    expect((await world.call('GET', '/rules')).json).toEqual({ rules: [], total: 0 });
    for (const method of ['GET', 'PUT', 'DELETE'])
      expect((await world.call(method, path, method === 'PUT' ? many : undefined)).status).toBe(404);
  });

  test.each([
    ['a bare condition, in its own text', { ...many, condition_sql: 'fails > 3 AND\n nothing = 1' }, 400, '2:2'],
    ['a SELECT', { name: 's', condition_sql: 'SELECT nothing FROM Login' }, 400, '1:8'],
    ['a bare condition without a type', { name: 's', condition_sql: 'fails > 3' }, 400, 'object_type'],
    ['a type that is not there', { name: 's', condition_sql: 'SELECT * FROM Nowhere' }, 404, 'Nowhere'],
    ['a statement that writes', { name: 's', condition_sql: 'DELETE FROM Login' }, 400, 'object_type'],
    ['a column to count by', { ...many, dedupe_by: ['nothing'] }, 400, 'dedupe_by: type'],
    ['alerts', { name: 's', condition_sql: 'SELECT * FROM Login WHERE id IN (SELECT matched_pk FROM Alert)' }, 400, 'own alerts'],
    ['enrich without a field', { name: 'e', kind: 'enrich', object_type: 'Login' }, 400, 'field'],
    [
      'enrich with another choice',
      { name: 'e', kind: 'enrich', object_type: 'Login', field: 'who', keep: 'best' },
      400,
      'newest',
    ],
  ])('is refused with the place: %s', async (_, rule, status, part) => {
    const refused = await world.call('POST', '/rules', rule);
    expect([refused.status, refused.json['detail']]).toEqual([status, expect.stringContaining(part)]);
  });

  test('of another path is as none; enrich rules of a path above apply', async () => {
    const as = async (organization: string, tenant: string) => ({
      ...(await world.tokenFor({ principal: organization, tenant_id: tenant })),
      'x-organization-id': organization,
    });
    const [above, below, other] = [await as('acme', 'acme'), await as('acme/eu', 'acme'), await as('globex', 'globex')];
    const enrich = { name: 'e', kind: 'enrich', object_type: 'Login', field: 'who', keep: 'source:crm' };
    const made = await world.call('POST', '/rules', enrich, above);
    const own = await world.call('POST', '/rules', many, below);
    const seen = async (headers: object) =>
      ((await world.call('GET', '/rules', undefined, headers as Record<string, string>)).json['rules'] as { id: string }[]).map(
        ({ id }) => id,
      );
    expect([await seen(above), await seen(below), await seen(other)]).toEqual([
      [made.json['id'], own.json['id']],
      [made.json['id'], own.json['id']],
      [],
    ]);
    expect((await world.call('DELETE', `/rules/${made.json['id'] as string}`, undefined, below)).status).toBe(404);
    const caller = { ...tenantlessCaller('x', 'operator', 'test'), path: 'acme/eu' };
    const request = { action: 'inspect', purpose: null, correlationId: 'x' } as const;
    const rules = await world.service.gate.invoke(caller, request, async (invocation) =>
      enrichRules(invocation.snapshot(), 'Login'),
    );
    expect(rules).toEqual([{ id: made.json['id'], name: 'e', field: 'who', keep: { source: 'crm' } }]);
  });
});

describe('Sigma rules', () => {
  const sigma = (title: string, id: string, detection: string): string =>
    `title: ${title}\nid: ${id}\nlogsource: {product: windows}\ndetection: ${detection}\nlevel: high\n`;
  const call = (body: unknown, type = 'application/json') =>
    world.call('POST', '/rules/sigma?object_type=Login', body, { 'content-type': type });
  const [first, second] = ['{s: {who|endswith: admin}, condition: s}', '{s: {fails|gte: 3}, condition: s}'];

  test('are imported one by one: good ones stay, the others say where and why', async () => {
    const bad = sigma('three', 'c3', "{s: {who|re: '(?=a)b'}, condition: s}");
    const text = ['# rules\n', sigma('one', 'a1', first), sigma('two', 'b2', second), bad].join('---\n');
    const made = await call(text, 'application/yaml');
    expect([made.status, made.json['imported'], made.json['rejected']]).toEqual([200, 2, 1]);
    expect(made.json['results']).toMatchObject([
      { id: 'a1', title: 'one', status: 'imported', rule_id: expect.stringMatching(/^sigma-/) },
      { id: 'b2', status: 'imported' },
      { id: 'c3', title: 'three', status: 'rejected', rule_id: null, error: { code: 'REL_INVALID', path: 'detection.s.who|re' } },
    ]);
    const changed = sigma('two', 'b2', first);
    const again = await call({ rules: [sigma('one', 'a1', first), changed, { title: 'two', logsource: {}, detection: 0 }] });
    const { imported, updated, unchanged, rejected } = again.json;
    expect([imported, updated, unchanged, rejected]).toEqual([0, 1, 1, 1]);
    const listed = (await world.call('GET', '/rules')).json['rules'] as Record<string, unknown>[];
    const shown = listed.filter(({ language }) => language === 'sigma');
    expect(shown.map(({ name, version, severity, object_type: type }) => [name, version, severity, type])).toEqual([
      ['one', 1, 'high', 'Login'],
      ['two', 2, 'high', 'Login'],
    ]);
    expect(shown[1]!['condition_sql']).toBe(changed);
  });

  test('of one title have names of their own; correlations refer to rules that stand', async () => {
    const correlation = (rule: string): string =>
      `title: many\ncorrelation: {type: event_count, rules: [${rule}], group-by: [who], timespan: 5m, condition: {gte: 3}}`;
    const made = await call({ rules: [sigma('one', 'd4', second), correlation('a1'), correlation('nobody')] });
    expect(made.json['results']).toMatchObject([
      { status: 'imported' },
      { status: 'imported' },
      { status: 'rejected', error: { path: 'correlation.rules', detail: 'there is no rule "nobody"' } },
    ]);
    const names = ((await world.call('GET', '/rules')).json['rules'] as { name: string }[]).map(({ name }) => name);
    expect(names.filter((name) => name.startsWith('one'))).toEqual(['one', expect.stringMatching(/^one \(sigma-/)]);
  });
});
