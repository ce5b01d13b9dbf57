/** A good request for every route of the running server, and a store in which each of them is answered. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get, request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lookupFiles } from '../../../src/cli/lookup-files.ts';
import type { Clock } from '../../../src/clock.ts';
import { untenanted } from '../../../src/governance/caller.ts';
import type { JobWork } from '../../../src/governance/jobs/job-runner.ts';
import { verbs } from '../../../src/doors/verbs/all.ts';
import type { Verb, VerbRoute } from '../../../src/doors/verbs/verb.ts';
import { filled, requestOf } from '../verbs/examples.ts';
import { FaultyDisk } from '../../simulation/faulty-disk.ts';
import { adminSecret, StoreWorld } from './store-world.ts';

export const canary = 'CANARY-4711';
const select = `SELECT id, secret FROM Vault`;
const asked = encodeURIComponent(select);
const triples = 'SELECT ?s ?o { ?s <says> ?o }';

/** What a world holds that requests can name. */
export interface Prepared {
  readonly world: StoreWorld;
  readonly disk: { failing: boolean };
  readonly exhibit: string;
  readonly task: string;
  /** Under way until it is cancelled. */
  readonly job: string;
  /** That is on record. */
  readonly recall: string;
  readonly position: string;
  /** Tokens to end, for those who list, rotate and revoke. */
  readonly spares: readonly string[];
  /** Of no tenant, with the role platform-admin; of the tenant acme, with the role tenant-admin. */
  readonly platform: string;
  readonly acme: string;
  readonly agreement: string;
  /** Of the store as it was before all that is asked. */
  readonly backup: string;
}

export interface Asked {
  readonly path?: (prepared: Prepared) => string;
  readonly body?: unknown;
  /** In place of the other. */
  readonly bodyOf?: (prepared: Prepared) => unknown;
  readonly headers?: Record<string, string>;
  /** Who asks; a token of no tenant and role where it is not said. */
  readonly as?: 'platform' | 'acme';
  /** What others ask for is not there any more once it was answered. */
  readonly ends?: boolean;
  /** The healthy answer holds the canary: without that, its absence would tell nothing. */
  readonly shows?: boolean;
  /** It has no end, and each delivery on it is an invocation of its own. */
  readonly endless?: boolean;
  /** What it asks for is done after the answer, in an invocation of its own. */
  readonly goesOn?: boolean;
}

/** Of no effect on what the requests here do. */
const policy = `permit(principal, action, resource); // ${canary}`;
const terms = { assignee: 'globex', target: { types: ['Vault'] } };

/** A good request for each route of a verb, about a memory of its own. */
function ofVerb(verb: Verb, { method, url }: VerbRoute): readonly [string, Asked] {
  const route = `${method} ${url.replaceAll(/:(\w+)/g, '{$1}')}`;
  const given = ({ recall }: Prepared): Record<string, unknown> =>
    filled(
      { ...verb.example, purpose: 'test' },
      { 'a memory': verb.name, 'another memory': 'm1', 'a recall': recall, 'a job': 'none' },
    );
  const sent = (one: Prepared) => requestOf({ method, url }, given(one));
  const ends = verb.name === 'consolidate' || verb.name === 'lift_quarantine';
  return [
    route,
    {
      path: (one) => sent(one).path,
      ...(method === 'POST' && { bodyOf: (one: Prepared) => sent(one).body }),
      ...(ends && { ends }),
    },
  ];
}

const messages = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };

/** A good request for each route. */
export const requests: Readonly<Record<string, Asked>> = {
  ...Object.fromEntries(verbs.flatMap((verb) => (verb.http ?? []).map((route) => ofVerb(verb, route)))),
  'POST /mcp': { body: { jsonrpc: '2.0', id: 1, method: 'tools/list' }, headers: messages },
  'POST /mcp/initialize': { body: {} },
  'GET /mcp/tools': {},
  'POST /mcp/tools/call': { body: { name: 'query', arguments: { sql: select, purpose: 'test' } }, shows: true },
  'GET /mcp/sessions': {},
  'POST /query': { body: { sql: select }, shows: true },
  'POST /query/stream': { body: { sql: select }, shows: true },
  'POST /query/arrow': { body: { sql: select }, shows: true },
  'GET /sparql': { path: () => `/sparql?query=${encodeURIComponent(triples)}`, shows: true },
  'POST /sparql': { body: triples, headers: { 'content-type': 'application/sparql-query' }, shows: true },
  'POST /graphql': { body: { query: '{ Vault { id secret } }' }, shows: true },
  'GET /export': { path: () => `/export?sql=${asked}&format=csv`, shows: true },
  'GET /watch/stream': { path: () => `/watch/stream?purpose=test&sql=${asked}`, shows: true, endless: true },
  'POST /lookup/register': {
    body: { name: 'other', path: 'codes.csv', key: 'code', fields: ['country'] },
  },
  'GET /lookup': {},
  'POST /ingest': { path: () => '/ingest?object_type=Vault', body: [{ id: 'n1', secret: canary }] },
  'POST /ingest/auto': { path: () => '/ingest/auto?object_type=Vault', body: [{ id: 'n2', secret: canary }] },
  'POST /ingest/bulk': { path: () => '/ingest/bulk?object_type=Vault', body: `{"id":"n3","secret":"${canary}"}\n` },
  'POST /rag/ingest': {
    body: { chunks: [{ content: canary }], purpose: 'test' },
    headers: { 'content-type': 'application/json' },
    goesOn: true,
  },
  'GET /rag/ingest/{task_id}': { path: ({ task }) => `/rag/ingest/${task}` },
  'GET /ingest/tasks/{id}': { path: ({ task }) => `/ingest/tasks/${task}` },
  'POST /exhibits': { body: { title: canary } },
  'POST /exhibits/{id}/links': { path: ({ exhibit }) => `/exhibits/${exhibit}/links`, body: { act: 'note', text: canary } },
  'GET /jobs': {},
  'GET /jobs/{id}': { path: ({ task }) => `/jobs/${task}` },
  'DELETE /jobs/{id}': { path: ({ job }) => `/jobs/${job}`, ends: true },
  'GET /exhibits/{id}': { path: ({ exhibit }) => `/exhibits/${exhibit}`, shows: true },
  'GET /types': { shows: true },
  'POST /types': { body: { name: 'Fresh', properties: { a: 'string' } } },
  'GET /types/{name}': { path: () => '/types/Vault', shows: true },
  'POST /types/{name}/schema': { path: () => '/types/Vault/schema', body: { properties: { more: 'string' } } },
  'POST /ontology/migrate': { body: { types: [{ name: 'Fresh2', properties: { a: { type: 'string' } } }] } },
  'PATCH /types/{name}/{id}': { path: () => '/types/Vault/v1', body: { secret: canary } },
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
  'GET /tenants': { as: 'platform', shows: true },
  'POST /tenants': { as: 'platform', body: { id: 'initech', name: canary } },
  'GET /tenants/me': { as: 'acme', shows: true },
  'GET /tenants/{id}': { path: () => '/tenants/acme', as: 'acme', shows: true },
  'PATCH /tenants/{id}': { path: () => '/tenants/acme', as: 'acme', body: { name: canary } },
  'DELETE /tenants/{id}': { path: () => '/tenants/acme', as: 'platform', ends: true },
  'POST /tenants/{id}/suspend': { path: () => '/tenants/globex/suspend', as: 'platform', body: {} },
  'POST /tenants/{id}/reactivate': { path: () => '/tenants/globex/reactivate', as: 'platform', body: {} },
  'GET /tenants/{id}/quota': { path: () => '/tenants/acme/quota', as: 'acme' },
  'PUT /tenants/{id}/quota': { path: () => '/tenants/acme/quota', as: 'platform', body: { in_flight: 50 } },
  'GET /tenants/{id}/usage': { path: () => '/tenants/acme/usage', as: 'acme' },
  'GET /tenants/{id}/members': { path: () => '/tenants/acme/members', as: 'acme', shows: true },
  'POST /tenants/{id}/members': { path: () => '/tenants/acme/members', as: 'acme', body: { principal: 'mo', role: canary } },
  'GET /tenants/{id}/members/{pid}': { path: () => '/tenants/acme/members/mia', as: 'acme', shows: true },
  'PATCH /tenants/{id}/members/{pid}': { path: () => '/tenants/acme/members/mia', as: 'acme', body: { role: canary } },
  'DELETE /tenants/{id}/members/{pid}': { path: () => '/tenants/acme/members/mia', as: 'acme', ends: true },
  'GET /tenants/{id}/sharing': { path: () => '/tenants/acme/sharing', as: 'acme' },
  'POST /tenants/{id}/sharing': { path: () => '/tenants/acme/sharing', as: 'acme', body: terms },
  'GET /tenants/{id}/sharing/{aid}': { path: ({ agreement }) => `/tenants/acme/sharing/${agreement}`, as: 'acme' },
  'PATCH /tenants/{id}/sharing/{aid}': {
    path: ({ agreement }) => `/tenants/acme/sharing/${agreement}`,
    as: 'acme',
    body: { state: 'revoked' },
    ends: true,
  },
  'DELETE /tenants/{id}/sharing/{aid}': { path: ({ agreement }) => `/tenants/acme/sharing/${agreement}`, as: 'acme', ends: true },
  'GET /tenants/{id}/config/search': { path: () => '/tenants/acme/config/search', as: 'acme' },
  'PUT /tenants/{id}/config/search': {
    path: () => '/tenants/acme/config/search',
    as: 'acme',
    body: { config: { stop_words: [canary] } },
  },
  'GET /api/v1/tenants': { as: 'platform', shows: true },
  'POST /api/v1/tenants': { as: 'platform', body: { id: 'hooli', name: canary } },
  'GET /api/v1/tenants/{id}': { path: () => '/api/v1/tenants/acme', as: 'platform', shows: true },
  'DELETE /api/v1/tenants/{id}': { path: () => '/api/v1/tenants/globex', as: 'platform', ends: true },
  'POST /api/v1/tenants/{id}/suspend': { path: () => '/api/v1/tenants/globex/suspend', as: 'platform', body: {} },
  'POST /api/v1/tenants/{id}/resume': { path: () => '/api/v1/tenants/globex/resume', as: 'platform', body: {} },
  'GET /api/v1/tenants/{id}/usage': { path: () => '/api/v1/tenants/acme/usage', as: 'platform' },
  'GET /api/v1/tenants/usage/summary': { as: 'platform' },
  'POST /search': { body: { query: canary, type: 'Vault' }, shows: true },
  'POST /multi-search': { body: { queries: [{ query: canary, type: 'Vault' }] }, shows: true },
  'GET /status': {},
  'GET /metrics': {},
  'GET /metrics.json': {},
  'GET /config': {},
  'GET /specs': {},
  'GET /openapi.json': {},
};

export const adminRequests: Readonly<Record<string, Asked>> = {
  'POST /admin/tokens': { body: { principal: canary } },
  'GET /admin/tokens': {},
  'GET /admin/tokens/audit': {},
  'GET /admin/audit/count': {},
  'GET /admin/audit/entries': {},
  'POST /admin/audit/export': { body: { format: 'csv' } },
  'POST /admin/tokens/{id}/rotate': { path: ({ spares }) => `/admin/tokens/${spares[1]}/rotate`, body: {} },
  'DELETE /admin/tokens/{id}': { path: ({ spares }) => `/admin/tokens/${spares[2]}` },
  'GET /admin/policies': {},
  'PUT /admin/policies/{id}': { path: () => '/admin/policies/p1', body: { policy }, ends: true },
  'GET /admin/policies/{id}': { path: () => '/admin/policies/p0', shows: true },
  'DELETE /admin/policies/{id}': { path: () => '/admin/policies/p0', ends: true },
  'GET /admin/jobs': {},
  'GET /admin/jobs/{id}': { path: ({ task }) => `/admin/jobs/${task}` },
  'DELETE /admin/jobs/{id}': { path: ({ job }) => `/admin/jobs/${job}`, ends: true },
  'POST /admin/compact': { body: {} },
  'POST /admin/reindex': { body: {} },
  'POST /admin/rotate-dek': { body: {} },
  'POST /admin/backup': { body: {} },
  'GET /admin/backups': {},
  'POST /admin/restore': { bodyOf: ({ backup }) => ({ backup, target_dir: '/restored' }) },
  'GET /platform/tenants': { shows: true },
  'GET /platform/tenants/{id}': { path: () => '/platform/tenants/acme', shows: true },
  'PATCH /platform/tenants/{id}/tier': { path: () => '/platform/tenants/acme/tier', body: { tier: 'gold' } },
  'POST /platform/tenants/{id}/suspend': { path: () => '/platform/tenants/globex/suspend', body: {} },
  'POST /platform/tenants/{id}/reactivate': { path: () => '/platform/tenants/globex/reactivate', body: {} },
  'DELETE /platform/tenants/{id}': { path: () => '/platform/tenants/globex', ends: true },
  'GET /platform/license': {},
  'GET /platform/usage': {},
};

/** They tell nothing of anybody's data, and answer without a token and without a record. */
export const open = new Set(['GET /health', 'GET /health/live', 'GET /health/ready', 'GET /version']);

const directory = mkdtempSync(join(tmpdir(), 'annals-shared-'));
mkdirSync(join(directory, 'lookups'));
writeFileSync(join(directory, 'lookups', 'codes.csv'), 'code,country\n49,DE\n');
// Files of one process share this module: the directory lasts as long as the process.
process.once('exit', () => rmSync(directory, { recursive: true, force: true }));

/** A store of the cluster profile, with two tenants and something of each kind that a request can name. */
export async function prepared(settings: Record<string, string> = {}, clock?: Clock): Promise<Prepared> {
  const disk = { failing: false };
  const faulty = new FaultyDisk({
    beforeStep: () => (disk.failing ? { kind: 'error', code: 'ENOSPC', bytes: 0 } : undefined),
  });
  const world = await StoreWorld.open(
    {
      SERVICE_PROFILE: 'cluster',
      SERVICE_PURPOSES: 'analytics,test',
      SERVICE_IN_MEMORY: '',
      SERVICE_DATA_DIR: '/data',
      SERVICE_KEK: 'ab'.repeat(32),
      ...settings,
    },
    { disk: faulty, lookupFiles: lookupFiles(join(directory, 'lookups')), ...(clock && { clock }) },
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
  await must('POST', '/ingest?object_type=KnowledgeTriple', [{ id: 't1', subject: 'v1', predicate: 'says', object: canary }]);
  await must('POST', '/ingest?object_type=MemoryItem&purpose=test', [{ id: 'm1', content: canary }]);
  await must(
    'POST',
    '/ingest?object_type=MemoryItem&purpose=test',
    verbs.map(({ name }) => ({ id: name, content: canary })),
  );
  const recalled = await must('POST', '/memory/recall', { query: canary, purpose: 'test' });
  await must('POST', '/memory/quarantine/lift_quarantine', { purpose: 'test' });
  await must('POST', '/v1/namespaces/side/branch', { branch_from: 'main' });
  await must('POST', '/lookup/register', requests['POST /lookup/register']!.body);
  const exhibit = await must('POST', '/exhibits', { title: canary });
  const task = await world.call('POST', '/ingest?object_type=Vault&async=true', [{ id: 'v3', secret: canary }]);
  const spares: string[] = [];
  for (let n = 0; n < 3; n++) {
    spares.push((await world.admin('POST', '/admin/tokens', { principal: 'tester' })).json['id'] as string);
  }
  const tokenOf = async (fields: object) => (await world.admin('POST', '/admin/tokens', fields)).json['token'] as string;
  const platform = await tokenOf({ principal: 'pat', roles: ['platform-admin'] });
  const acme = await tokenOf({ principal: 'ann', tenant_id: 'acme', roles: ['tenant-admin'] });
  const as = (token: string) => ({ authorization: `Bearer ${token}` });
  for (const id of ['acme', 'globex']) await must('POST', '/tenants', { id, name: canary }, as(platform));
  await must('POST', '/tenants/acme/members', { principal: 'mia', role: canary }, as(acme));
  const agreement = await must('POST', '/tenants/acme/sharing', terms, as(acme));
  const installed = await world.admin('PUT', '/admin/policies/p0', { policy });
  if (installed.status >= 300) throw new Error(installed.text);
  const backup = await world.admin('POST', '/admin/backup', {});
  if (backup.status >= 300) throw new Error(backup.text);
  const entries = await must('GET', '/audit/entries');
  const [entry] = (entries.json['entries'] as Record<string, unknown>[]).filter((each) => each['position'] !== null);
  return {
    world,
    disk,
    exhibit: exhibit.json['exhibit_id'] as string,
    task: String(task.json['task_id']),
    job: endless(world),
    recall: (JSON.parse((recalled.json['content'] as { text: string }[])[0]!.text) as { call_id: string }).call_id,
    position: Number(entry?.['position'] ?? 0).toString(),
    spares,
    platform,
    acme,
    agreement: agreement.json['id'] as string,
    backup: backup.json['backup'] as string,
  };
}

export interface Heard {
  readonly status: number;
  readonly text: string;
}

/** One request. A stream without an end is left once nothing more came for a while. */
export function hear(one: Prepared, route: string, request: Asked, admin: boolean): Promise<Heard> {
  const [method, template] = route.split(' ') as [string, string];
  const path = request.path?.(one) ?? template;
  const { door } = one.world;
  const token = tokenOf(one, request);
  const given = request.bodyOf ? request.bodyOf(one) : request.body;
  const body = given === undefined ? undefined : typeof given === 'string' ? given : JSON.stringify(given);
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

/** Of whoever makes a request. */
export const tokenOf = (one: Prepared, { as }: Asked): string => (as === undefined ? one.world.token : one[as]);

/** Codes of all access records, null for what was allowed, by correlation id. */
export async function recordsOf(world: StoreWorld): Promise<Map<string, (string | null)[]>> {
  const found = new Map<string, (string | null)[]>();
  for await (const { body } of world.service.log.read(0)) {
    if (body.kind !== 'access') continue;
    for (const { correlationId, code, action, objectType } of body.records) {
      // A call of a tool is told beside what it did.
      if (action === 'ingest' && objectType === 'ToolCall') continue;
      found.set(correlationId, [...(found.get(correlationId) ?? []), code]);
    }
  }
  return found;
}

/** Routes of the data listener, as it describes them itself. */
export function described(world: StoreWorld): Promise<string[]> {
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

export interface Every {
  readonly route: string;
  readonly request: Asked;
  readonly admin: boolean;
}

export const every: readonly Every[] = [
  ...Object.entries(requests).map(([route, request]) => ({ route, request, admin: false })),
  ...Object.entries(adminRequests).map(([route, request]) => ({ route, request, admin: true })),
];

/** Work of the world's own token that lasts until it is cancelled. */
function endless({ service }: StoreWorld): string {
  const run = ({ signal }: JobWork): Promise<never> =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
  const owner = { ...untenanted('tester', 'operator', 'test'), credential: 'token' } as const;
  const { view, ended } = service.jobs.start({ kind: 'compaction', unit: 'segments', onDrain: 'cancel', run }, owner);
  ended.catch(() => undefined);
  return view.id;
}
