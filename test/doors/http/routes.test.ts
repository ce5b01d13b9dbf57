/** Specification, "Endpoints": every route answers, on its own listener only, and leaves one access record. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Route } from '../../../src/doors/http/route.ts';
import { adminRoutes, dataRoutes } from '../../../src/doors/http/routes/all.ts';
import { DoorWorld, openType, send } from './door-world.ts';
import { StoreWorld } from './store-world.ts';

/** Without a subscription it has no end. */
const endless = '/watch/stream';

const asked = (routes: readonly Route[]): [method: string, path: string][] =>
  routes
    .filter(({ access }) => access !== 'probe')
    .map(({ method, path }) => [method, `${path.replaceAll(/:\w+|\*/g, 'x')}${path === endless ? '?subscription=none' : ''}`]);

/** Those that a body must fit before the gate is asked. */
const bodies: Readonly<Record<string, object>> = {
  '/admin/policies/x/rehearsal': { policy: 'permit(principal, action, resource);', reason: 'a test' },
  '/platform/tenants/x/tier': { tier: 'gold' },
  '/admin/restore': { backup: 'x', target_dir: '/x' },
  '/admin/policies/x': { policy: 'permit(principal, action, resource);' },
};

let world: DoorWorld;
beforeAll(async () => {
  world = await new DoorWorld().open();
  world.types.set('T', openType('T'));
});
afterAll(() => world.close());
beforeEach(() => {
  world.records.length = 0;
});

test('access, action and bucket of every route are as they were', async () => {
  const lines = Object.entries({ data: dataRoutes, admin: adminRoutes }).flatMap(([listener, routes]) =>
    routes.map(({ method, path, access, action, bucket }) =>
      [listener, method, path, access, action ?? '-', bucket ?? '-'].join(' '),
    ),
  );
  await expect(`${lines.sort().join('\n')}\n`).toMatchFileSnapshot('./routes.golden.txt');
});

describe('the data listener', () => {
  test.each(asked(dataRoutes))('%s %s is known, wants a token, and leaves one record', async (method, path) => {
    const body = method === 'GET' || method === 'DELETE' ? undefined : '{}';
    const without = await send(world.door.port, method, path, body);
    expect([without.status, without.json['type']]).toEqual([401, 'urn:test:errors/REL_UNAUTHENTICATED']);
    world.records.length = 0;

    const reply = await world.call(method, path, body);
    expect(reply.status).not.toBe(405);
    if (reply.status === 404) expect(reply.json['detail']).not.toBe('no such route');
    expect(reply.status === 501 || reply.status < 500).toBe(true);
    expect(world.records.length).toBe(1);
    // A message of JSON-RPC that is refused was answered.
    const refused = reply.status >= 400 && path !== '/mcp';
    expect(world.records[0]?.code ?? null).toBe(refused ? (reply.json['type'] as string).split('/')[1] : null);
  });

  test.each(asked(adminRoutes))('%s %s is a plain 404 there', async (method, path) => {
    const reply = await world.call(method, path, method === 'POST' ? '{}' : undefined, { authorization: 'Bearer admin-token' });
    expect([reply.status, reply.json['detail']]).toEqual([404, 'no such route']);
    expect(reply.headers['allow']).toBeUndefined();
    expect(world.records).toEqual([]);
  });

  test.each([
    ['/querry', 'no such route (did you mean /query?)'],
    ['/exhibits/x/linkz', 'no such route (did you mean /exhibits/x/links?)'],
    ['/nothing/like/it', 'no such route'],
  ])('%s is 404 and names the route that is one slip away', async (path, detail) => {
    expect((await world.call('POST', path, '{}')).json['detail']).toBe(detail);
  });

  test.each(['/health', '/health/live', '/health/ready', '/version'])(
    '%s answers without a token and without a record',
    async (path) => {
      const reply = await send(world.door.port, 'GET', path);
      expect([reply.status, world.records.length]).toEqual([200, 0]);
    },
  );

  test('readiness follows the store', async () => {
    for (const state of ['starting', 'draining', 'failed'] as const) {
      world.state = state;
      const reply = await send(world.door.port, 'GET', '/health/ready');
      expect([reply.status, reply.json['type'], reply.headers['retry-after']]).toEqual([
        503,
        'urn:test:errors/REL_UNAVAILABLE',
        '1',
      ]);
      expect((await send(world.door.port, 'GET', '/health/live')).status).toBe(200);
    }
    world.state = 'ready';
  });
});

describe('the admin listener', () => {
  test.each(asked(adminRoutes))('%s %s is known, wants the admin credential, and leaves one record', async (method, path) => {
    const body = method === 'GET' || method === 'DELETE' ? undefined : (bodies[path] ?? '{}');
    const without = await send(world.door.adminPort, method, path, body, { authorization: 'Bearer good-token' });
    expect(without.status).toBe(401);
    world.records.length = 0;
    const reply = await world.admin(method, path, body);
    expect([200, 201, 404, 501]).toContain(reply.status);
    if (reply.status === 404) expect(reply.json['detail']).toMatch(/^no such (token|tenant|policy|backup|job)$/);
    expect(world.records.length).toBe(1);
    expect(world.records[0]?.caller.credential).toBe('admin');
  });

  test('compacts on request, and says what that came to', async () => {
    expect((await world.admin('POST', '/admin/compact', '{}')).json).toEqual({ segments: 2, bytes_before: 70, bytes_after: 50 });
  });

  test('makes indexes of texts anew on request', async () => {
    expect((await world.admin('POST', '/admin/reindex')).json).toEqual({ indexes: 3, bytes: 9 });
    expect((await world.admin('POST', '/admin/reindex', '{"object_type":"Nothing"}')).status).toBe(404);
  });

  test('has no data routes', async () => {
    for (const [method, path] of asked(dataRoutes)) {
      const reply = await world.admin(method, path, method === 'POST' ? '{}' : undefined);
      expect([method, path, reply.status]).toEqual([method, path, 404]);
    }
  });

  test('is a port of its own', () => {
    expect(world.door.adminPort).not.toBe(world.door.port);
    expect([world.door.dataUrl, world.door.adminUrl]).toEqual([
      `http://127.0.0.1:${world.door.port}`,
      `http://127.0.0.1:${world.door.adminPort}`,
    ]);
  });
});

describe('system routes', () => {
  test('/version names the server and its version', async () => {
    expect((await send(world.door.port, 'GET', '/version')).json).toEqual({ name: 'annals', version: '1.2.3', profile: 'free' });
  });

  test('/status shows state and doors, and no log positions', async () => {
    const { json } = await world.call('GET', '/status');
    expect(json).toMatchObject({
      state: 'ready',
      wal_sync: 'interval',
      doors: [{ name: 'http', port: world.door.port, state: 'listening' }],
    });
    expect(JSON.stringify(json)).not.toMatch(/position|leaves|tree/);
  });

  test('/metrics has the specification’s gauges, as text and as JSON', async () => {
    const gauges = {
      service_store_total_stored_bytes: 11,
      service_store_disk_segment_bytes: 22,
      service_store_disk_segment_count: 3,
      service_store_row_memory_bytes: 44,
      service_store_column_memory_bytes: 33,
      service_store_columns_hydrated: 5,
      service_store_columns_evicted: 6,
      service_store_segments_pruned: 8,
      service_store_segments_pruned_by_bloom: 7,
      service_transactions_open: 0,
      service_transactions_rows: 0,
      service_transactions_pinned_bytes: 0,
    };
    const { text, headers } = await world.call('GET', '/metrics');
    expect(headers['content-type']).toMatch(/^text\/plain/);
    for (const [name, value] of Object.entries(gauges)) expect(text).toMatch(new RegExp(`^${name} ${value}$`, 'm'));
    expect(text).toMatch(/^service_http_requests_total\{route="\/version",method="GET",status="200"\} \d+$/m);
    const list = (await world.call('GET', '/metrics.json')).json as unknown as { name: string; values: { value: number }[] }[];
    for (const [name, value] of Object.entries(gauges))
      expect(list.find((metric) => metric.name === name)?.values[0]?.value).toBe(value);
  });

  test('a path that is not a route makes no metric of its own', async () => {
    await world.call('GET', '/made-up-path');
    expect((await world.call('GET', '/metrics')).text).not.toContain('made-up');
  });

  test('/config shows limits to everybody, and where the store lies to who looks after it', async () => {
    const store = await StoreWorld.open();
    const shown = async (token: object): Promise<Record<string, { value: unknown }>> => {
      const { json } = await store.call('GET', '/config', undefined, await store.tokenFor(token));
      return json['settings'] as Record<string, { value: unknown }>;
    };
    for (const token of [{ tenant_id: 'acme' }, { principal: 'plain' }, { tenant_id: 'acme', roles: ['platform-admin'] }]) {
      const settings = await shown(token);
      expect(settings['SERVICE_BODY_LIMIT_MB']).toEqual({ value: 1, source: 'environment' });
      expect(Object.keys(settings).filter((name) => /DIR|_FILE|BIND|PORT|TOKEN|KEY|CONFIG|ROOT|URL/.test(name))).toEqual([]);
    }
    const whole = await shown({ principal: 'operator', roles: ['platform-admin'] });
    expect(whole['SERVICE_DATA_DIR']).toBeDefined();
    expect(whole['SERVICE_ADMIN_TOKEN']).toEqual({ value: '<redacted>', source: 'environment' });
    await store.close();
  });

  test('/specs lists descriptions that are there', async () => {
    const { json } = await world.call('GET', '/specs');
    for (const spec of json['specs'] as { href: string }[]) expect((await world.call('GET', spec.href)).status).toBe(200);
  });

  test('/openapi.json describes every implemented data route from its schemas', async () => {
    const { json } = await world.call('GET', '/openapi.json');
    expect(json['openapi']).toBe('3.1.0');
    const paths = json['paths'] as Record<string, Record<string, { requestBody?: unknown; responses: Record<string, unknown> }>>;
    const described = Object.entries(paths).flatMap(([path, verbs]) =>
      Object.keys(verbs).map((verb) => `${verb.toUpperCase()} ${path}`),
    );
    for (const route of [
      'POST /query',
      'POST /ingest',
      'POST /types',
      'PATCH /types/{name}/{id}',
      'DELETE /types/{name}/{id}',
      'GET /audit/entries',
      'GET /health',
    ]) {
      expect(described).toContain(route);
    }
    const query = paths['/query']?.['post'];
    expect(JSON.stringify(query)).toContain('#/components/schemas/Query');
    expect(Object.keys(query?.responses ?? {})).toEqual(['200', '4XX', '5XX']);
    expect(JSON.stringify(json)).not.toContain('/admin/');
  });
});
