/** Specification, "Authentication", points 8 to 11, against running servers: what a known caller may do, why, and the record of it. */
import { afterEach, describe, expect, test } from 'vitest';
import { closeWorlds, codeOf, opened, question } from './conformance-world.ts';
import type { StoreWorld } from './store-world.ts';

afterEach(closeWorlds);

const sql = { sql: question };

describe('8. authorization at each request', () => {
  test('organisations are apart, by segment, whatever the header says', async () => {
    const world = await opened();
    await world.call('POST', '/types', { name: 'T', properties: { id: 'string' } });
    const acme = await world.tokenFor({ tenant_id: 'acme' });
    for (const organization of ['acme', 'acme/eu', 'acme/us']) {
      await world.call('POST', '/ingest?object_type=T', [{ id: organization }], { ...acme, 'x-organization-id': organization });
    }
    const seen = async (organization: string) =>
      (await world.rows('SELECT id FROM T', { ...acme, 'x-organization-id': organization })).map(({ id }) => id);
    expect(new Set(await seen('acme'))).toEqual(new Set(['acme', 'acme/eu', 'acme/us']));
    expect(await seen('acme/eu')).toEqual(['acme/eu']);
    for (const organization of ['acme-evil', 'acm', 'globex']) {
      const reply = await world.query('SELECT id FROM T', { ...acme, 'x-organization-id': organization });
      expect(codeOf(reply)).toEqual([403, 'REL_XORG']);
    }
    expect(await world.rows('SELECT id FROM T')).toEqual([]);
  });

  test('decided anew at each request, and deny wins over every permit', async () => {
    const world = await opened();
    await world.call('POST', '/ingest?object_type=Note', [{ id: 'a' }]);
    const install = (id: string, policy: string) => world.admin('PUT', `/admin/policies/${id}`, { policy });
    const seen = () => world.query(question).then(codeOf);
    expect(await seen()).toEqual([200, 'undefined']);
    await install('permits', 'permit(principal, action, resource);');
    expect(await seen()).toEqual([200, 'undefined']);
    await install('forbids', 'forbid(principal, action, resource is Note);');
    await install('permits-again', 'permit(principal, action, resource is Note);');
    expect(await seen()).toEqual([403, 'REL_ACL']);
    await world.admin('DELETE', '/admin/policies/forbids');
    expect(await seen()).toEqual([200, 'undefined']);
  });

  test('a masked cell is hidden from who may not see it, and shown to who may', async () => {
    const world = await opened();
    const properties = { name: 'string', ssn: { type: 'string', masked: true } };
    await world.call('POST', '/types', { name: 'Person', properties });
    await world.call('POST', '/ingest?object_type=Person', [{ id: 'a', name: 'Ada', ssn: '123-45' }]);
    const hidden = await world.query('SELECT name, ssn FROM Person');
    expect([hidden.status, hidden.text.includes('123-45')]).toEqual([200, false]);
    expect((await world.query("SELECT name FROM Person WHERE ssn = '123-45'")).json['rows']).toEqual([]);
    const strong = await world.tokenFor({ roles: ['unmask'] });
    expect((await world.query('SELECT name, ssn FROM Person', strong)).json['rows']).toEqual([{ name: 'Ada', ssn: '123-45' }]);
  });

  test('what an agreement shares is seen while it is in force, and nothing else of the other side', async () => {
    const world = await opened({ SERVICE_PROFILE: 'cluster', SERVICE_PURPOSES: 'test' });
    const platform = await world.tokenFor({ roles: ['platform-admin'] });
    for (const id of ['acme', 'globex']) await world.call('POST', '/tenants', { id }, platform);
    const acme = await world.tokenFor({ tenant_id: 'acme', roles: ['tenant-admin'] });
    const globex = await world.tokenFor({ tenant_id: 'globex', roles: ['tenant-admin'] });
    for (const type of ['Shared', 'Own']) {
      await world.call('POST', '/types', { name: type, properties: { id: 'string' } });
      await world.call('POST', `/ingest?object_type=${type}`, [{ id: `${type} of acme` }], acme);
    }
    const seen = async (type: string) => (await world.rows(`SELECT id FROM ${type}`, globex)).map(({ id }) => id);
    expect(await seen('Shared')).toEqual([]);
    const terms = { assignee: 'globex', target: { types: ['Shared'] } };
    const { id } = (await world.call('POST', '/tenants/acme/sharing', terms, acme)).json as { id: string };
    const move = (tenant: string, headers: Record<string, string>, state: string) =>
      world.call('PATCH', `/tenants/${tenant}/sharing/${id}`, { state }, headers);
    expect(await seen('Shared')).toEqual([]);
    expect((await move('globex', globex, 'accepted')).status).toBe(200);
    expect((await move('acme', acme, 'active')).status).toBe(200);
    expect([await seen('Shared'), await seen('Own')]).toEqual([['Shared of acme'], []]);
    expect((await move('acme', acme, 'revoked')).status).toBe(200);
    expect(await seen('Shared')).toEqual([]);
  });

  const classified = ['SourceTrueIdentity', 'SigintIntercept', 'AccessScopedIntercept', 'LawfulInterceptRecord'];

  test.each([...classified, 'sigintintercept'])('%s is refused on every route that names types, to everybody', async (type) => {
    const world = await opened();
    const strong = await world.tokenFor({ roles: ['break-glass', 'unmask', 'platform-admin'] });
    const sql = `SELECT * FROM ${type}`;
    const statement = { sql };
    const properties = { id: 'string' };
    for (const [method, path, body] of [
      ['POST', '/query', statement],
      ['POST', '/query', { sql: `SELECT COUNT(*) AS n FROM ${type}` }],
      ['POST', '/query', { sql: `EXPLAIN ${sql}` }],
      ['POST', '/query', { sql: `SELECT id FROM Note WHERE id IN (SELECT id FROM ${type})` }],
      ['POST', '/query', { sql: `WATCH PURPOSE 'test' ${sql}` }],
      ['POST', '/query/arrow', statement],
      ['POST', '/query/stream', statement],
      ['GET', `/export?sql=${encodeURIComponent(sql)}`, undefined],
      ['GET', `/watch/stream?purpose=test&sql=${encodeURIComponent(sql)}`, undefined],
      ['POST', `/ingest?object_type=${type}`, '{"id":"x"}'],
      ['POST', `/ingest/auto?object_type=${type}`, '{"id":"x"}'],
      ['POST', `/ingest/bulk?object_type=${type}`, '{"id":"x"}'],
      ['POST', '/types', { name: type, properties }],
      ['GET', `/types/${type}`, undefined],
      ['POST', `/types/${type}/schema`, { properties }],
      ['DELETE', `/types/${type}/x`, undefined],
      ['DELETE', `/types/${type}/x?hard=true`, undefined],
      ['POST', '/ontology/migrate', { types: [{ name: type, properties }] }],
    ] as const) {
      const reply = await world.call(method, path, body, { ...strong, 'x-service-break-glass': 'imminent threat' });
      expect([method, path, body, ...codeOf(reply)]).toEqual([method, path, body, 403, 'REL_HUMINT']);
    }
  });
});

describe('9. purpose', () => {
  const asked = (world: StoreWorld, purpose: string, headers: Record<string, string> = {}) =>
    world.query(question, { 'x-service-purpose': purpose, ...headers }).then(codeOf);
  const ok = [200, 'undefined'];

  test('strict: registered names and what lies below them by colon', async () => {
    const world = await opened({ SERVICE_PURPOSES: 'fraud,analytics:daily' });
    for (const purpose of ['fraud', 'fraud:cards', 'fraud:cards:eu', 'analytics:daily']) {
      expect([purpose, await asked(world, purpose)]).toEqual([purpose, ok]);
    }
    for (const purpose of ['fraudulent', 'analytics', 'fraud:', ':fraud', 'FRAUD']) {
      expect([purpose, await asked(world, purpose)]).toEqual([purpose, [403, 'REL_PURPOSE_UNKNOWN']]);
    }
  });

  test('open: any that is not empty', async () => {
    const world = await opened({ SERVICE_PURPOSE_MODE: 'open' });
    expect(await asked(world, 'whatever I like')).toEqual(ok);
  });

  test('optional on SQL, and demanded of a token that is limited to some', async () => {
    const world = await opened();
    expect((await world.query(question)).status).toBe(200);
    const limited = await world.tokenFor({ purposes: ['test'] });
    expect(codeOf(await world.query(question, limited))).toEqual([403, 'REL_PURPOSE']);
    expect(await asked(world, 'test', limited)).toEqual(ok);
    expect(await asked(world, 'analytics', limited)).toEqual([403, 'REL_ACL']);
  });

  test('demanded where a standing query is followed', async () => {
    const world = await opened();
    await world.call('POST', '/types', { name: 'T', properties: { id: 'string' } });
    const reply = await world.call('GET', `/watch/stream?sql=${encodeURIComponent('SELECT id FROM T')}`);
    expect(codeOf(reply)).toEqual([403, 'REL_PURPOSE']);
  });

  test('demanded of every memory verb', async () => {
    const world = await opened();
    await world.call('POST', '/ingest?object_type=MemoryItem', [{ id: 'm', content: 'tea' }]);
    const forget = (query: string) => world.call('DELETE', `/memory/forget/m?retain_days=7${query}`).then(codeOf);
    expect(await forget('')).toEqual([400, 'REL_INVALID']);
    expect(await forget('&purpose=')).toEqual([400, 'REL_INVALID']);
    expect(await forget('&purpose=unheard')).toEqual([403, 'REL_PURPOSE_UNKNOWN']);
    expect(await forget('&purpose=test')).toEqual(ok);
  });

  test('two that differ in one request are refused', async () => {
    const world = await opened();
    const reply = await world.call('POST', '/query', { ...sql, purpose: 'test' }, { 'x-service-purpose': 'analytics' });
    expect(codeOf(reply)).toEqual([400, 'REL_INVALID']);
  });
});

describe('10. agents are principals like others', () => {
  test('with attributes, roles and purposes of their own, in every record', async () => {
    const world = await opened();
    const agent = await world.tokenFor({
      principal: 'agent-7',
      tenant_id: 'acme',
      organization: 'acme/agents',
      roles: ['reader'],
      attributes: { agent: true, desk: 'fx', level: 3 },
      purposes: ['test'],
    });
    const caller = world.service.authenticator.dataCaller({ authorization: agent.authorization, door: 'http' });
    expect(caller).toMatchObject({
      principal: 'agent-7',
      credential: 'token',
      tenant: 'acme',
      path: 'acme/agents',
      roles: ['reader'],
      attributes: { agent: true, desk: 'fx', level: 3 },
      purposes: ['test'],
    });
    await world.query(question, { ...agent, 'x-service-purpose': 'test' });
    const { json } = await world.admin('GET', '/admin/audit/entries?principal=agent-7');
    expect(json['entries']).toEqual([
      expect.objectContaining({ principal: 'agent-7', organization: 'acme/agents', purpose: 'test' }),
    ]);
  });
});

describe('11. the audit log', () => {
  test('has every invocation with principal, time, purpose and cost, in a chain that links up', async () => {
    const world = await opened();
    const from = BigInt(Date.now()) * 1_000_000n;
    await world.query(question, { 'x-service-purpose': 'test' });
    await world.query('SELECT nonsense FROM');
    await world.call('GET', '/tokens/self');
    const { entries } = (await world.admin('GET', '/admin/audit/entries?limit=1000')).json as {
      entries: Record<string, string | number | null>[];
    };
    expect(entries.slice(-3)).toEqual([
      expect.objectContaining({ principal: 'tester', action: 'query', purpose: 'test', cost_units: 1, decision: 'allow' }),
      expect.objectContaining({ principal: 'tester', action: 'query', purpose: null, decision: 'error', code: 'REL_PARSE' }),
      expect.objectContaining({ principal: 'tester', action: 'inspect', purpose: null, decision: 'allow' }),
    ]);
    for (const entry of entries.slice(-3)) expect(BigInt(entry['time']!) + 1_000_000_000n).toBeGreaterThan(from);
    const hashes = new Map(entries.map((entry) => [entry['leaf_index'] as number, entry['entry_hash']]));
    let links = 0;
    for (const entry of entries) {
      const before = hashes.get((entry['leaf_index'] as number) - 1);
      if (before === undefined) continue;
      expect(entry['prev_hash']).toBe(before);
      links++;
    }
    expect(links).toBeGreaterThan(1);
  });
});
