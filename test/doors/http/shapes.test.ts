/** What /openapi.json promises of replies is what they are: no field missing, none that it does not name. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Reply } from './door-world.ts';
import { verbs } from '../../../src/doors/verbs/all.ts';
import { filled, known, requestOf } from '../verbs/examples.ts';
import { every, hear, prepared } from './every-route.ts';
import { StoreWorld } from './store-world.ts';

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
}

interface Operation {
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, { readonly schema: Schema }>> }>>;
}

let world: StoreWorld;
let components: Readonly<Record<string, Schema>>;
let paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
beforeAll(async () => {
  world = await StoreWorld.open({}, { lookupFiles: { read: async () => Buffer.from('k,v\n1,a\n') } });
  const { json } = await world.call('GET', '/openapi.json');
  components = (json['components'] as { schemas: Record<string, Schema> }).schemas;
  paths = json['paths'] as typeof paths;
});
afterAll(() => world.close());

/** Where a value is not what a schema says; empty when it is. */
function differences(value: unknown, schema: Schema, at: string): string[] {
  if (schema.$ref !== undefined) return differences(value, components[schema.$ref.split('/').at(-1)!]!, at);
  if (schema.anyOf) {
    const tries = schema.anyOf.map((option) => differences(value, option, at));
    return tries.some((found) => found.length === 0) ? [] : tries[0]!;
  }
  if (schema.const !== undefined) return value === schema.const ? [] : [`${at}: not ${JSON.stringify(schema.const)}`];
  if (schema.enum) return schema.enum.includes(value) ? [] : [`${at}: not one of ${schema.enum.join()}`];
  switch (schema.type) {
    case 'object': {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${at}: no object`];
      const missing = (schema.required ?? []).filter((name) => !(name in value)).map((name) => `${at}.${name}: missing`);
      const inner = Object.entries(value).flatMap(([name, item]) => {
        const known = schema.properties?.[name];
        if (known) return differences(item, known, `${at}.${name}`);
        if (typeof schema.additionalProperties === 'object')
          return differences(item, schema.additionalProperties, `${at}.${name}`);
        return schema.additionalProperties === false || schema.properties ? [`${at}.${name}: not described`] : [];
      });
      return [...missing, ...inner];
    }
    case 'array':
      return Array.isArray(value)
        ? value.flatMap((item, i) => differences(item, schema.items ?? {}, `${at}[${i}]`))
        : [`${at}: no array`];
    case 'null':
      return value === null ? [] : [`${at}: not null`];
    case 'integer':
      return typeof value === 'number' && (Number.isInteger(value) || Math.abs(value) > 2 ** 53) ? [] : [`${at}: no integer`];
    case 'string':
    case 'number':
    case 'boolean':
      return typeof value === schema.type ? [] : [`${at}: no ${schema.type}`];
    default:
      return [];
  }
}

const asked = new Set<string>();

function check(verb: string, path: string, reply: Reply): void {
  asked.add(`${verb} ${path}`);
  const { responses } = paths[path]![verb]!;
  const content = (responses[String(reply.status)] ?? responses[`${String(reply.status)[0]}XX`])?.content;
  const schema = Object.values(content ?? {})[0]?.schema;
  expect(schema, `${verb} ${path} ${reply.status} is described`).toBeDefined();
  expect(differences(reply.json, schema!, `${verb} ${path} ${reply.status}`)).toEqual([]);
}

describe('replies', () => {
  test('of every implemented route are as they are described', async () => {
    const type = {
      name: 'T',
      properties: { a: 'integer', v: { type: 'vector', dims: 2 } },
      primary_key: 'a',
      graph_triggers: [],
    };
    check('post', '/types', await world.call('POST', '/types', type));
    check('post', '/types', await world.call('POST', '/types', type));
    check('post', '/types', await world.call('POST', '/types', { ...type, primary_key: null }));
    check('get', '/types', await world.call('GET', '/types'));
    check('get', '/types/{name}', await world.call('GET', '/types/T'));
    check('get', '/types/{name}', await world.call('GET', '/types/U'));
    check('post', '/types/{name}/schema', await world.call('POST', '/types/T/schema', { properties: { b: 'string' } }));
    check('post', '/ontology/migrate', await world.call('POST', '/ontology/migrate', { types: [type] }));
    check('post', '/ingest', await world.call('POST', '/ingest?object_type=T', '{"a":1}\n{"a":"x"}\n{"a":2}'));
    check('post', '/ingest', await world.call('POST', '/ingest?object_type=T', ''));
    check('post', '/ingest/auto', await world.call('POST', '/ingest/auto?object_type=Auto', '{"a":1}'));
    check('post', '/ingest/bulk', await world.call('POST', '/ingest/bulk?object_type=T', '{"a":3}'));
    check('get', '/ingest/tasks/{id}', await world.call('GET', '/ingest/tasks/x'));
    const stored = await world.call('POST', '/rag/ingest', { chunks: [{ content: 'Ada' }], purpose: 'test' });
    check('post', '/rag/ingest', stored);
    check('post', '/rag/ingest', await world.call('POST', '/rag/ingest', { chunks: [] }));
    check('get', '/rag/ingest/{task_id}', await world.call('GET', stored.json['status_url'] as string));
    check('get', '/jobs', await world.call('GET', '/jobs'));
    check('delete', '/jobs/{id}', await world.call('DELETE', '/jobs/x'));
    for (const body of ['{"a":4}', '[{"a":5},']) {
      const task = await world.call('POST', '/ingest?object_type=T&async=true', body);
      check('post', '/ingest', task);
      for (let state = ''; state !== 'done' && state !== 'failed'; ) {
        const status = await world.call('GET', task.json['status_url'] as string);
        check('get', '/ingest/tasks/{id}', status);
        state = status.json['state'] as string;
      }
      const path = `/jobs/${task.json['task_id'] as string}`;
      check('get', '/jobs/{id}', await world.call('GET', path));
      check('delete', '/jobs/{id}', await world.call('DELETE', path));
    }
    const opened = await world.call('POST', '/exhibits', { title: 'case' });
    check('post', '/exhibits', opened);
    const exhibit = `/exhibits/${opened.json['exhibit_id'] as string}`;
    for (const body of [{ sql: 'SELECT a FROM T' }, { act: 'note', text: 'n' }, { sql: 'x' }]) {
      check('post', '/exhibits/{id}/links', await world.call('POST', `${exhibit}/links`, body));
    }
    check('get', '/exhibits/{id}', await world.call('GET', exhibit));
    check('get', '/exhibits/{id}', await world.call('GET', `${exhibit}?limit=1`));
    check('get', '/exhibits/{id}', await world.call('GET', '/exhibits/none'));
    for (const sql of [
      'SELECT * FROM T',
      'SELECT a FROM T LIMIT 1',
      'EXPLAIN SELECT a FROM T',
      'EXPLAIN ANALYZE SELECT a FROM T',
      'x',
    ]) {
      check('post', '/query', await world.query(sql));
    }
    check('post', '/search', await world.call('POST', '/search', { type: 'None', query: 'x' }));
    check('post', '/multi-search', await world.call('POST', '/multi-search', { queries: [{ type: 'None', query: 'x' }] }));
    check('post', '/query', await world.query('SELECT a FROM T WITH PROVENANCE'));
    check('patch', '/types/{name}/{id}', await world.call('PATCH', '/types/T/1', { a: 'patched' }));
    check('patch', '/types/{name}/{id}', await world.call('PATCH', '/types/T/1', { a: 'late' }, { 'if-match': '"1"' }));
    check('delete', '/types/{name}/{id}', await world.call('DELETE', '/types/T/1'));
    check('delete', '/types/{name}/{id}', await world.call('DELETE', '/types/T/1?hard=true'));
    for (const key of ['k', 'none']) {
      const body = { name: 'codes', path: 'codes.csv', key, fields: ['v'], refresh_minutes: 5 };
      check('post', '/lookup/register', await world.call('POST', '/lookup/register', body));
    }
    check('get', '/lookup', await world.call('GET', '/lookup'));
    // A stream and a file have no shape; their refusals have.
    check('get', '/export', await world.call('GET', '/export?sql=x'));
    check('post', '/query/arrow', await world.call('POST', '/query/arrow', { sql: 'x' }));
    check('post', '/query/stream', await world.call('POST', '/query/stream', { sql: 'x' }));
    check('get', '/watch/stream', await world.call('GET', '/watch/stream?subscription=none'));
    check('post', '/api/v1/audit/export', await world.call('POST', '/api/v1/audit/export', { since: 'x' }));
    const namespace = '/v1/namespaces/{name}/branch';
    check('post', namespace, await world.call('POST', '/v1/namespaces/dev/branch', { branch_from: 'main' }));
    check('post', namespace, await world.call('POST', '/v1/namespaces/dev/branch', { branch_from: 'main' }));
    check('post', '/schema/branches/{name}', await world.call('POST', '/schema/branches/types', { from: 'dev' }));
    check('get', '/schema/branches', await world.call('GET', '/schema/branches'));
    check('delete', '/schema/branches/{name}', await world.call('DELETE', '/schema/branches/dev'));
    check('delete', '/schema/branches/{name}', await world.call('DELETE', '/schema/branches/dev'));
    check('get', '/audit/count', await world.call('GET', '/audit/count'));
    check('get', '/audit/entries', await world.call('GET', '/audit/entries?limit=1000'));
    for (const asking of ['?position=0', '?leaf=0&from=1', '?position=0&row=x', '?branch=types', '']) {
      check('get', '/audit/proof', await world.call('GET', `/audit/proof${asking}`));
    }
    check('get', '/audit/log', await world.call('GET', '/audit/log'));
    for (const path of [
      '/health',
      '/health/live',
      '/health/ready',
      '/version',
      '/status',
      '/config',
      '/specs',
      '/metrics.json',
    ]) {
      check('get', path, await world.call('GET', path));
    }
    check('get', '/tokens/self', await world.call('GET', '/tokens/self'));
    check('get', '/tokens/self/audit', await world.call('GET', '/tokens/self/audit'));
    const spare = await world.tokenFor({ principal: 'spare' });
    const rotated = await world.call('POST', '/tokens/self/rotate', undefined, spare);
    check('post', '/tokens/self/rotate', rotated);
    const fresh = { authorization: `Bearer ${rotated.json['token'] as string}` };
    check(
      'delete',
      '/tokens/self/{id}',
      await world.call('DELETE', `/tokens/self/${rotated.json['id'] as string}`, undefined, fresh),
    );
  });

  test('about tenants and agreements are so too', async () => {
    const platform = await world.tokenFor({ roles: ['platform-admin'] });
    const acme = await world.tokenFor({ tenant_id: 'acme', roles: ['tenant-admin'] });
    const globex = await world.tokenFor({ tenant_id: 'globex', roles: ['tenant-admin'] });
    const ask = async (
      who: object,
      verb: string,
      route: string,
      body?: object,
      ids: Record<string, string> = {},
    ): Promise<Reply> => {
      const path = route.replace(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? { id: 'acme', pid: 'ada' }[name]!);
      const reply = await world.call(verb.toUpperCase(), path, body, who as Record<string, string>);
      check(verb, route, reply);
      return reply;
    };
    const tenant = { id: 'acme', quota: { in_flight: 3 }, search: { a: [1] }, members: [{ principal: 'bo', role: 'r' }] };
    for (const family of ['/tenants', '/api/v1/tenants']) {
      await ask(platform, 'post', family, tenant);
      await ask(platform, 'get', family);
      await ask(acme, 'get', family);
      await ask(platform, 'get', `${family}/{id}`);
      await ask(platform, 'get', `${family}/{id}/usage`);
      await ask(platform, 'post', `${family}/{id}/suspend`);
      await ask(platform, 'post', `${family}/{id}/${family === '/tenants' ? 'reactivate' : 'resume'}`);
    }
    await ask(platform, 'get', '/api/v1/tenants/usage/summary');
    await ask(acme, 'get', '/tenants/me');
    await ask(acme, 'patch', '/tenants/{id}', { name: 'Acme' });
    await ask(acme, 'patch', '/tenants/{id}', { name: 'Acme' }, { id: 'globex' });
    await ask(acme, 'get', '/tenants/{id}/quota');
    await ask(platform, 'put', '/tenants/{id}/quota', { query_units: 9 });
    await ask(acme, 'put', '/tenants/{id}/config/search', { config: { deep: { er: [null, true, 1.5, 'x'] } } });
    await ask(acme, 'get', '/tenants/{id}/config/search');
    for (const role of ['r', 'r', 's']) await ask(acme, 'post', '/tenants/{id}/members', { principal: 'ada', role });
    await ask(acme, 'get', '/tenants/{id}/members');
    await ask(acme, 'get', '/tenants/{id}/members/{pid}');
    await ask(acme, 'patch', '/tenants/{id}/members/{pid}', { role: 's' });
    await ask(acme, 'delete', '/tenants/{id}/members/{pid}');
    const terms = {
      assignee: 'globex',
      target: { types: ['T'], columns: ['a'] },
      masking: { a: 'redact' },
      valid_to: '2100-01-01',
    };
    const { json } = await ask(acme, 'post', '/tenants/{id}/sharing', terms);
    const aid = json['id'] as string;
    await ask(acme, 'get', '/tenants/{id}/sharing');
    await ask(globex, 'get', '/tenants/{id}/sharing/{aid}', undefined, { id: 'globex', aid });
    await ask(globex, 'patch', '/tenants/{id}/sharing/{aid}', { state: 'accepted' }, { id: 'globex', aid });
    await ask(acme, 'patch', '/tenants/{id}/sharing/{aid}', { state: 'active' }, { aid });
    await ask(acme, 'delete', '/tenants/{id}/sharing/{aid}', undefined, { aid });
    await ask(acme, 'delete', '/tenants/{id}/sharing/{aid}', undefined, { aid: 'none' });
    check('get', '/audit/entries', await world.call('GET', '/audit/entries?kind=agreement', undefined, acme));
    await ask(platform, 'delete', '/tenants/{id}');
    await ask(platform, 'delete', '/api/v1/tenants/{id}');
  });

  test('of the verbs, and of the tool protocol', async () => {
    const ids = await known(world);
    for (const verb of verbs) {
      for (const { method, url } of verb.http ?? []) {
        const path = url.replaceAll(/:(\w+)/g, '{$1}');
        const given = filled<Record<string, unknown>>({ ...verb.example, purpose: 'test' }, ids);
        for (const input of [given, { ...given, purpose: 'gossip' }]) {
          const sent = requestOf({ method, url }, input);
          check(method.toLowerCase(), path, await world.call(method, sent.path, sent.body));
        }
      }
    }
    check('post', '/mcp/initialize', await world.call('POST', '/mcp/initialize', {}));
    check('get', '/mcp/tools', await world.call('GET', '/mcp/tools'));
    for (const name of ['server_health', 'none']) {
      check('post', '/mcp/tools/call', await world.call('POST', '/mcp/tools/call', { name, arguments: { purpose: 'test' } }));
    }
    check('get', '/mcp/sessions', await world.call('GET', '/mcp/sessions'));
    check('get', '/mcp/sessions', await world.call('GET', '/mcp/sessions?purpose=gossip'));
    const headers = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
    check('post', '/mcp', await world.call('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list' }, headers));
    check('post', '/mcp', await world.call('POST', '/mcp', 'nonsense'));
  });

  test('of other languages', async () => {
    for (const query of ['{ T { a } }', '{ T { nowhere } }', '{']) {
      check('post', '/graphql', await world.call('POST', '/graphql', { query }));
    }
    for (const query of ['SELECT ?s WHERE { ?s ?p ?o } LIMIT 1', 'SELECT']) {
      check('get', '/sparql', await world.call('GET', `/sparql?query=${encodeURIComponent(query)}`));
      check('post', '/sparql', await world.call('POST', '/sparql', query, { 'content-type': 'application/sparql-query' }));
    }
  });

  test('of all routes that are not asked above are so by their examples', async () => {
    const one = await prepared();
    const { json } = await one.world.call('GET', '/openapi.json');
    const described = Object.entries(json['paths'] as typeof paths).flatMap(([path, operations]) =>
      Object.keys(operations)
        .filter((verb) => verb !== 'head')
        .map((verb) => `${verb} ${path}`),
    );
    for (const { route, request, admin } of every) {
      const [method, url] = route.split(' ') as [string, string];
      const [verb, path] = [method.toLowerCase(), url.replaceAll(/:(\w+)/g, '{$1}')];
      if (admin || asked.has(`${verb} ${path}`) || !described.includes(`${verb} ${path}`)) continue;
      const { status, text } = await hear(one, route, request, false);
      if (status >= 300 || !text.startsWith('{')) continue;
      check(verb, path, { status, text, headers: {}, json: JSON.parse(text) as Reply['json'] });
    }
    await one.world.close();
    // These are no JSON: their refusals are asked where their bodies are read.
    const others = ['get /metrics', 'get /audit/log/checkpoint', 'get /audit/log/tile/{*}'];
    expect(described.filter((route) => !asked.has(route) && !others.includes(route))).toEqual([]);
  });
});
