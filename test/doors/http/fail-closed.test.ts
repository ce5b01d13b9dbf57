/**
 * Every route of the running server, as its own description lists them: each request leaves exactly one access record, and
 * where the log can't take that record, no byte of data leaves. A route without a request here fails the first test.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get, request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { lookupFiles } from '../../../src/cli/lookup-files.ts';
import { FaultyDisk } from '../../simulation/faulty-disk.ts';
import { adminSecret, StoreWorld } from './store-world.ts';

const canary = 'CANARY-4711';
const select = `SELECT id, secret FROM Vault`;
const asked = encodeURIComponent(select);

/** What a world holds that requests can name. */
interface Prepared {
  readonly world: StoreWorld;
  readonly disk: { failing: boolean };
  readonly exhibit: string;
  readonly task: string;
  readonly position: string;
  /** Tokens to end, for those who list, rotate and revoke. */
  readonly spares: readonly string[];
}

interface Asked {
  readonly path?: (prepared: Prepared) => string;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  /** The healthy answer holds the canary: without that, its absence would tell nothing. */
  readonly shows?: boolean;
  /** It has no end, and each delivery on it is an invocation of its own. */
  readonly endless?: boolean;
}

/** A good request for each route. */
const requests: Readonly<Record<string, Asked>> = {
  'POST /query': { body: { sql: select }, shows: true },
  'POST /query/stream': { body: { sql: select }, shows: true },
  'POST /query/arrow': { body: { sql: select }, shows: true },
  'GET /export': { path: () => `/export?sql=${asked}&format=csv`, shows: true },
  'GET /watch/stream': { path: () => `/watch/stream?purpose=test&sql=${asked}`, shows: true, endless: true },
  'POST /lookup/register': {
    body: { name: 'other', path: 'codes.csv', key: 'code', fields: ['country'] },
  },
  'GET /lookup': {},
  'POST /ingest': { path: () => '/ingest?object_type=Vault', body: [{ id: 'n1', secret: canary }] },
  'POST /ingest/auto': { path: () => '/ingest/auto?object_type=Vault', body: [{ id: 'n2', secret: canary }] },
  'POST /ingest/bulk': { path: () => '/ingest/bulk?object_type=Vault', body: `{"id":"n3","secret":"${canary}"}\n` },
  'GET /ingest/tasks/{id}': { path: ({ task }) => `/ingest/tasks/${task}` },
  'POST /exhibits': { body: { title: canary } },
  'POST /exhibits/{id}/links': { path: ({ exhibit }) => `/exhibits/${exhibit}/links`, body: { act: 'note', text: canary } },
  'GET /exhibits/{id}': { path: ({ exhibit }) => `/exhibits/${exhibit}`, shows: true },
  'GET /types': { shows: true },
  'POST /types': { body: { name: 'Fresh', properties: { a: 'string' } } },
  'GET /types/{name}': { path: () => '/types/Vault', shows: true },
  'POST /types/{name}/schema': { path: () => '/types/Vault/schema', body: { properties: { more: 'string' } } },
  'POST /ontology/migrate': { body: { types: [{ name: 'Fresh2', properties: { a: { type: 'string' } } }] } },
  'DELETE /types/{name}/{id}': { path: () => '/types/Vault/v2' },
  'POST /v1/namespaces/{name}/branch': { path: () => '/v1/namespaces/b1/branch', body: { branch_from: 'main' } },
  'POST /schema/branches/{name}': { path: () => '/schema/branches/b2', body: { from: 'main' } },
  'DELETE /schema/branches/{name}': { path: () => '/schema/branches/side' },
  'GET /schema/branches': {},
  'GET /audit/count': {},
  'GET /audit/entries': {},
  'POST /api/v1/audit/export': { body: {} },
  'GET /audit/proof': { path: ({ position }) => `/audit/proof?position=${position}` },
  'GET /audit/log': {},
  'GET /audit/log/checkpoint': {},
  'GET /audit/log/tile/{*}': { path: () => '/audit/log/tile/0/000.p/1' },
  'GET /tokens/self': {},
  'POST /tokens/self/rotate': { body: {} },
  'GET /tokens/self/audit': {},
  'DELETE /tokens/self/{id}': { path: ({ spares }) => `/tokens/self/${spares[0]}` },
  'GET /status': {},
  'GET /metrics': {},
  'GET /metrics.json': {},
  'GET /config': {},
  'GET /specs': {},
  'GET /openapi.json': {},
};

const adminRequests: Readonly<Record<string, Asked>> = {
  'POST /admin/tokens': { body: { principal: canary } },
  'GET /admin/tokens': {},
  'GET /admin/tokens/audit': {},
  'GET /admin/audit/count': {},
  'GET /admin/audit/entries': {},
  'POST /admin/audit/export': { body: { format: 'csv' } },
  'POST /admin/tokens/{id}/rotate': { path: ({ spares }) => `/admin/tokens/${spares[1]}/rotate`, body: {} },
  'DELETE /admin/tokens/{id}': { path: ({ spares }) => `/admin/tokens/${spares[2]}` },
};

/** They tell nothing of anybody's data, and answer without a token and without a record. */
const open = new Set(['GET /health', 'GET /health/live', 'GET /health/ready', 'GET /version']);

const directory = mkdtempSync(join(tmpdir(), 'annals-closed-'));
mkdirSync(join(directory, 'lookups'));
writeFileSync(join(directory, 'lookups', 'codes.csv'), 'code,country\n49,DE\n');
afterAll(() => rmSync(directory, { recursive: true }));

async function prepared(): Promise<Prepared> {
  const disk = { failing: false };
  const faulty = new FaultyDisk({
    beforeStep: () => (disk.failing ? { kind: 'error', code: 'EIO', bytes: 0 } : undefined),
  });
  const world = await StoreWorld.open(
    { SERVICE_IN_MEMORY: '', SERVICE_DATA_DIR: '/data', SERVICE_KEK: 'ab'.repeat(32) },
    { disk: faulty, lookupFiles: lookupFiles(join(directory, 'lookups')) },
  );
  const must = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const reply = await world.call(method, path, body, headers);
    if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.text}`);
    return reply;
  };
  await must('POST', '/types', {
    name: 'Vault',
    properties: { id: 'string', secret: 'string', [canary.replace('-', '_')]: 'string' },
    primary_key: 'id',
  });
  await must('POST', '/ingest?object_type=Vault', [
    { id: 'v1', secret: canary },
    { id: 'v2', secret: canary },
  ]);
  await must('POST', '/v1/namespaces/side/branch', { branch_from: 'main' });
  await must('POST', '/lookup/register', requests['POST /lookup/register']!.body);
  const exhibit = await must('POST', '/exhibits', { title: canary });
  const task = await world.call('POST', '/ingest?object_type=Vault&async=true', [{ id: 'v3', secret: canary }]);
  const spares: string[] = [];
  for (let n = 0; n < 3; n++) {
    spares.push((await world.admin('POST', '/admin/tokens', { principal: 'tester' })).json['id'] as string);
  }
  const entries = await must('GET', '/audit/entries');
  const [entry] = (entries.json['entries'] as Record<string, unknown>[]).filter((each) => each['position'] !== null);
  return {
    world,
    disk,
    exhibit: exhibit.json['exhibit_id'] as string,
    task: String(task.json['task_id']),
    position: Number(entry?.['position'] ?? 0).toString(),
    spares,
  };
}

interface Heard {
  readonly status: number;
  readonly text: string;
}

/** One request. A stream without an end is left once nothing more came for a while. */
function hear(one: Prepared, route: string, request: Asked, admin: boolean): Promise<Heard> {
  const [method, template] = route.split(' ') as [string, string];
  const path = request.path?.(one) ?? template;
  const { door, token } = one.world;
  const body =
    request.body === undefined ? undefined : typeof request.body === 'string' ? request.body : JSON.stringify(request.body);
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      {
        port: admin ? door.adminPort : door.port,
        host: '127.0.0.1',
        method,
        path,
        headers: {
          authorization: `Bearer ${admin ? adminSecret : token}`,
          ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }),
          ...request.headers,
        },
      },
      (response) => {
        const chunks: Buffer[] = [];
        const done = (): void => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('latin1') });
        response.on('data', (chunk: Buffer) => {
          chunks.push(chunk);
          if (request.endless) setTimeout(() => (done(), sent.destroy()), 200);
        });
        response.on('end', done);
        response.on('error', () => undefined);
      },
    );
    sent.on('error', (error) => (sent.destroyed ? undefined : reject(error)));
    sent.end(body);
  });
}

async function records(world: StoreWorld): Promise<number> {
  let count = 0;
  for await (const { body } of world.service.log.read(0)) if (body.kind === 'access') count += body.records.length;
  return count;
}

function described(world: StoreWorld): Promise<string[]> {
  return new Promise((resolve, reject) => {
    get(
      { port: world.door.port, host: '127.0.0.1', path: '/openapi.json', headers: { authorization: `Bearer ${world.token}` } },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          const { paths } = JSON.parse(Buffer.concat(chunks).toString()) as { paths: Record<string, object> };
          resolve(
            Object.entries(paths).flatMap(([path, methods]) =>
              Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
            ),
          );
        });
      },
    ).on('error', reject);
  });
}

const every = [
  ...Object.entries(requests).map(([route, request]) => ({ route, request, admin: false })),
  ...Object.entries(adminRequests).map(([route, request]) => ({ route, request, admin: true })),
];

describe('a healthy log', () => {
  let one: Prepared;
  beforeAll(async () => {
    one = await prepared();
  });
  afterAll(() => one.world.close());

  test('every route that the server describes has a request here', async () => {
    const routes = await described(one.world);
    expect(routes.filter((route) => !open.has(route) && requests[route] === undefined)).toEqual([]);
    expect(Object.keys(requests).filter((route) => route !== 'GET /openapi.json' && !routes.includes(route))).toEqual([]);
  });

  // The rotation ends the token of the others: it comes last.
  const inOrder = every.toSorted((a, b) => Number(a.route.endsWith('rotate')) - Number(b.route.endsWith('rotate')));
  test.each(inOrder)('$route answers and leaves one access record', async ({ route, request, admin }) => {
    const before = await records(one.world);
    const heard = await hear(one, route, request, admin);
    expect(heard.status, heard.text).toBeLessThan(300);
    if (request.shows) expect(heard.text.replaceAll('_', '-')).toContain(canary);
    if (request.endless) expect(await records(one.world)).toBeGreaterThan(before);
    else await expect.poll(() => records(one.world)).toBe(before + 1);
  });
});

describe('a log that takes no record', () => {
  test.each(every)('$route shows nothing', async ({ route, request, admin }) => {
    const one = await prepared();
    try {
      one.disk.failing = true;
      const heard = await hear(one, route, request, admin);
      expect([heard.status, heard.text]).toEqual([503, expect.stringContaining('REL_UNAVAILABLE')]);
      expect(Object.keys(JSON.parse(heard.text) as object).toSorted()).toEqual(
        ['correlation_id', 'detail', 'instance', 'status', 'title', 'type'].toSorted(),
      );
      expect(heard.text).not.toContain('4711');
      // Nor does the next one, when the disk is well again: a log that failed stays shut.
      one.disk.failing = false;
      const again = await hear(one, 'POST /query', requests['POST /query']!, false);
      expect([again.status, again.text.includes(canary)]).toEqual([503, false]);
    } finally {
      one.disk.failing = false;
      await one.world.close().catch(() => undefined);
    }
  });
});
