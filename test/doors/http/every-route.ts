/** A good request for every route of the running server, and a store in which each of them is answered. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lookupFiles } from '../../../src/cli/lookup-files.ts';
import type { Clock } from '../../../src/clock.ts';
import type { Disk } from '../../../src/log/disk/disk.ts';
import { tenantlessCaller } from '../../../src/governance/caller.ts';
import type { JobWork } from '../../../src/governance/jobs/job-runner.ts';
import type { Route } from '../../../src/doors/http/route.ts';
import { adminRoutes, dataRoutes } from '../../../src/doors/http/routes/all.ts';
import { adminLaterRoutes, laterRoutes } from '../../../src/doors/http/routes/unbuilt-routes.ts';
import { FaultyDisk, type Image } from '../../simulation/faulty-disk.ts';
import { type ExampleRequest, exampleRequest } from './route-examples.ts';
import type { Reply } from './door-world.ts';
import { adminSecret, StoreWorld } from './store-world.ts';

export const canary = 'CANARY-4711';
const select = 'SELECT id, secret FROM Vault';
const lookup = { name: 'codes', path: 'codes.csv', key: 'code', fields: ['country'] };

/** A world in which each route is answered, and what requests can name in it. */
export interface Prepared extends Stands {
  readonly world: StoreWorld;
  readonly disk: { failing: boolean };
  readonly task: string;
  /** Under way until it is cancelled. */
  readonly job: string;
  /** One to commit, one to roll back. */
  readonly transactions: readonly [string, string];
}

/** What the disk of a world holds that requests can name. */
interface Stands {
  readonly exhibit: string;
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
  /** One to change, one to end. */
  readonly rules: readonly [string, string];
  readonly scheduled: string;
  readonly workflow: string;
  /** Runs that wait for the caller to approve them. */
  readonly runs: readonly string[];
}

/** What a route does beside answering. */
interface Facts {
  /** Who asks; a token of no tenant and role where it is not said. */
  readonly as?: 'platform' | 'acme';
  /** What others ask for is not there any more once it was answered. */
  readonly ends?: true;
  /** The healthy answer holds the canary: without that, its absence would tell nothing. */
  readonly shows?: true;
  /** It has no end, and each delivery on it is an invocation of its own. */
  readonly endless?: true;
  /** What it asks for is done beside it, in so many invocations. */
  readonly goesOn?: number;
}

export interface Asked extends Facts {
  readonly sent: (prepared: Prepared) => ExampleRequest;
}

const each = (facts: Facts, routes: string): readonly (readonly [string, Facts])[] =>
  routes
    .trim()
    .split(/[|\n]/)
    .map((route) => [route, facts]);

const facts: readonly (readonly [route: string, Facts])[] = [
  ...each(
    { shows: true },
    `
POST /mcp/tools/call|POST /query|POST /query/stream|POST /query/arrow|GET /sparql|POST /sparql|POST /graphql|GET /export
GET /rules|GET /rules/:id|GET /workflows|GET /jobs|GET /admin/jobs|GET /watch/stream|GET /exhibits/:id|GET /types|GET /types/:name|POST /search|POST /multi-search|GET /admin/policies/:id
GET /tenants|GET /tenants/me|GET /tenants/:id|GET /tenants/:id/members|GET /tenants/:id/members/:pid
GET /api/v1/tenants|GET /api/v1/tenants/:id|GET /platform/tenants|GET /platform/tenants/:id`,
  ),
  ...each(
    { ends: true },
    `
DELETE /jobs/:id|DELETE /rules/:id|DELETE /workflows/:id|DELETE /types/:name/retention|POST /workflows/runs/:id/cancel|POST /workflows/runs/:id/approve|PUT /rules/:id|DELETE /tenants/:id|DELETE /tenants/:id/members/:pid|PATCH /tenants/:id/sharing/:aid
DELETE /tenants/:id/sharing/:aid|DELETE /api/v1/tenants/:id|DELETE /platform/tenants/:id|DELETE /admin/jobs/:id
POST /tx/:id/commit|POST /tx/:id/rollback|PUT /admin/policies/:id|DELETE /admin/policies/:id|POST /memory/consolidate|DELETE /memory/quarantine/:id`,
  ),
  ...each(
    { as: 'platform' },
    `
GET /tenants|POST /tenants|DELETE /tenants/:id|POST /tenants/:id/suspend|POST /tenants/:id/reactivate|PUT /tenants/:id/quota`,
  ),
  ...each({ endless: true }, 'GET /watch/stream'),
  ...each({ goesOn: 1 }, 'POST /rag/ingest'),
  // Its run is begun, done and ended.
  ...each({ goesOn: 3 }, 'POST /jobs|POST /jobs/:id/run|PUT /types/:name/retention'),
  // Its run is begun, asks for listings of which there are none, and fails with its step.
  ...each({ goesOn: 4 }, 'POST /workflows/runs'),
  ...each({ goesOn: 1 }, 'POST /workflows/runs/:id/cancel'),
  // The step is done, the run begun again and done.
  ...each({ goesOn: 3 }, 'POST /workflows/runs/:id/approve'),
];

function askedBy({ path }: Route, name: string, sent: Asked['sent']): Asked {
  const asks = path.startsWith('/api/v1/tenants') ? 'platform' : path.startsWith('/tenants') ? 'acme' : undefined;
  const own = facts.filter(([route]) => route === name).map(([, fact]) => fact);
  return Object.assign({ sent }, asks && { as: asks }, ...own) as Asked;
}

const keptTypes = ['KnowledgeTriple', 'DocumentChunk'] as const;

const memoryOf = (route: string): string => route.replaceAll(/\W+/g, '-');

const nameOf = ({ method, path }: Route): string => `${method} ${path}`;

/** What names in examples stand for. Each route has a memory of its own: one may end what another is about. */
function idsIn(one: Prepared, route: string): Readonly<Record<string, string>> {
  const [mine, first, second] = one.spares as [string, string, string];
  return {
    'a statement': select,
    'a document': '{ Vault { id secret } }',
    'a purpose': 'test',
    'a text': canary,
    'a type': 'Vault',
    'a kept type': keptTypes[route.startsWith('DELETE') ? 1 : 0],
    'a row': 'v1',
    'another row': 'v2',
    'a new row': memoryOf(route),
    'a branch': 'side',
    'a memory': memoryOf(route),
    'another memory': 'm1',
    'a recall': one.recall,
    'a task': one.task,
    // A job that the example of a verb asks for, or one that ends with it.
    'a job': one.job,
    'an exhibit': one.exhibit,
    'a position': one.position,
    'a transaction': one.transactions[route.endsWith('commit') ? 0 : 1],
    'a token of mine': mine,
    'a token': first,
    'another token': second,
    'a tenant': 'acme',
    'another tenant': 'globex',
    'a member': 'mia',
    'an agreement': one.agreement,
    'a backup': one.backup,
    'a policy': 'p0',
    'a scheduled job': one.scheduled,
    'a workflow': one.workflow,
    'a run': one.runs[route.endsWith('approve') ? 0 : 1],
    'a rule': one.rules[route.startsWith('DELETE') ? 1 : 0],
  };
}

export interface Every {
  readonly route: string;
  readonly request: Asked;
  readonly admin: boolean;
}

/** All but probes, which answer without a token and without a record, and routes that are not built yet. */
const asked = (routes: readonly Route[], later: readonly Route[]): readonly Route[] =>
  routes.filter((route) => route.access !== 'probe' && !later.includes(route));

const everyOf = (route: Route): Every => {
  const name = nameOf(route);
  return {
    route: name,
    request: askedBy(route, name, (one) => exampleRequest(route, idsIn(one, name))),
    admin: route.access === 'admin',
  };
};

/** A good request for each route. */
export const every: readonly Every[] = [...asked(dataRoutes, laterRoutes), ...asked(adminRoutes, adminLaterRoutes)].map(everyOf);

export const requestTo = (route: string): Asked => every.find((one) => one.route === route)!.request;

const directory = mkdtempSync(join(tmpdir(), 'annals-shared-'));
mkdirSync(join(directory, 'lookups'));
writeFileSync(join(directory, 'lookups', 'codes.csv'), 'code,country\n49,DE\n');
// Files of one process share this module: the directory lasts as long as the process.
process.once('exit', () => rmSync(directory, { recursive: true, force: true }));

/** A store of the cluster profile, with two tenants and something of each kind that a request can name. */
export async function prepared(settings: Record<string, string> = {}, clock?: Clock): Promise<Prepared> {
  stored ??= store();
  const { image, stands } = await stored;
  const disk = { failing: false };
  const world = await worldOn(
    new FaultyDisk(
      // A disk that is full is waited for; after this fault a log stays shut.
      { beforeStep: () => (disk.failing ? { kind: 'error', code: 'EIO', bytes: 0 } : undefined) },
      image,
    ),
    settings,
    clock,
  );
  const task = await world.call('POST', '/ingest?object_type=Vault&async=true', [{ id: 'v3', secret: canary }]);
  const begin = async () => (await required(world, 'POST', '/tx')).json['id'] as string;
  return {
    world,
    disk,
    ...stands,
    task: String(task.json['task_id']),
    job: endless(world),
    transactions: [await begin(), await begin()],
  };
}

/** What stands on the disk of every prepared world, written once: starting a server on it costs a tenth of writing it. */
let stored: Promise<{ readonly image: Image; readonly stands: Stands }> | undefined;

function worldOn(disk: Disk, settings: Record<string, string>, clock?: Clock): Promise<StoreWorld> {
  return StoreWorld.open(
    {
      SERVICE_PROFILE: 'cluster',
      SERVICE_PURPOSES: 'analytics,test',
      SERVICE_IN_MEMORY: '',
      SERVICE_DATA_DIR: '/data',
      SERVICE_KEK: 'ab'.repeat(32),
      ...settings,
    },
    { disk, lookupFiles: lookupFiles(join(directory, 'lookups')), ...(clock && { clock }) },
  );
}

async function required(
  world: StoreWorld,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const reply = await world.call(method, path, body, headers);
  if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.text}`);
  return reply;
}

async function store(): Promise<{ image: Image; stands: Stands }> {
  const disk = new FaultyDisk();
  const world = await worldOn(disk, {});
  const must = (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
    required(world, method, path, body, headers);
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
    dataRoutes.map((route) => ({ id: memoryOf(nameOf(route)), content: canary })),
  );
  const recalled = await must('POST', '/memory/recall', { query: canary, purpose: 'test' });
  await must('POST', `/memory/quarantine/${memoryOf('DELETE /memory/quarantine/:id')}`, { purpose: 'test' });
  await must('POST', '/v1/namespaces/side/branch', { branch_from: 'main' });
  await must('POST', '/lookup/register', lookup);
  const exhibit = await must('POST', '/exhibits', { title: canary });
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
  const agreement = await must('POST', '/tenants/acme/sharing', { assignee: 'globex', target: { types: ['Vault'] } }, as(acme));
  const installed = await world.admin('PUT', '/admin/policies/p0', {
    policy: `permit(principal, action, resource); // ${canary}`,
  });
  if (installed.status >= 300) throw new Error(installed.text);
  const backup = await world.admin('POST', '/admin/backup', {});
  if (backup.status >= 300) throw new Error(backup.text);
  const rule = async (name: string) =>
    (await must('POST', '/rules', { name, condition_sql: `SELECT id FROM Vault WHERE secret = '${canary}-'`, enabled: false }))
      .json['id'] as string;
  const scheduled = await must('POST', '/jobs', { name: canary, run: { sql: select }, cron: '0 0 1 1 *', run_now: false });
  const steps = [{ approve: { principal: 'tester' } }];
  const workflow = await must('POST', '/workflows', { name: canary, steps });
  for (const type of keptTypes) await must('PUT', `/types/${type}/retention`, { days: 36_500, by: 'valid_to', action: 'purge' });
  const asked = async () => (await must('POST', '/workflows/runs', { name: canary })).json['run_id'] as string;
  const runs = [await asked(), await asked()];
  await world.service.automation.scheduler.settle();
  const rules = [await rule('one'), await rule('two')] as const;
  const entries = await must('GET', '/audit/entries');
  const [entry] = (entries.json['entries'] as Record<string, unknown>[]).filter((each) => each['position'] !== null);
  await world.close();
  const stands = {
    exhibit: exhibit.json['exhibit_id'] as string,
    recall: (JSON.parse((recalled.json['content'] as { text: string }[])[0]!.text) as { call_id: string }).call_id,
    position: Number(entry?.['position'] ?? 0).toString(),
    spares,
    platform,
    acme,
    agreement: agreement.json['id'] as string,
    backup: backup.json['backup'] as string,
    rules,
    scheduled: scheduled.json['job_id'] as string,
    workflow: workflow.json['id'] as string,
    runs,
  } as const;
  return { image: disk.visible(), stands };
}

export interface Heard {
  readonly status: number;
  readonly text: string;
}

/** One request. A stream without an end is left once nothing more came for a while. */
export function hear(one: Prepared, route: string, request: Asked, admin: boolean): Promise<Heard> {
  const [method] = route.split(' ');
  const { path, body, headers } = request.sent(one);
  const { door } = one.world;
  const token = tokenOf(one, request);
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
          ...headers,
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
export async function recordsOf(world: StoreWorld): Promise<ReadonlyMap<string, (string | null)[]>> {
  let known = recordsRead.get(world);
  if (known === undefined) recordsRead.set(world, (known = { nextLeaf: 0, found: new Map() }));
  const { found } = known;
  for await (const { body, leaf } of world.service.store.log.read(known.nextLeaf)) {
    // Another look may have passed this one meanwhile.
    if (leaf < known.nextLeaf) continue;
    known.nextLeaf = leaf + 1;
    if (body.kind !== 'access') continue;
    for (const { correlationId, code, action, objectType } of body.records) {
      // A call of a tool is told beside what it did.
      if (action === 'ingest' && objectType === 'ToolCall') continue;
      found.set(correlationId, [...(found.get(correlationId) ?? []), code]);
    }
  }
  return found;
}

/** What has been read of each log: looks go on from there. */
const recordsRead = new WeakMap<StoreWorld, { nextLeaf: number; readonly found: Map<string, (string | null)[]> }>();

/** Work of the world's own token that lasts until it is cancelled. */
function endless({ service }: StoreWorld): string {
  const run = ({ signal }: JobWork): Promise<never> =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
  const owner = { ...tenantlessCaller('tester', 'operator', 'test'), credential: 'token' } as const;
  const { view, ended } = service.automation.jobs.start({ kind: 'compaction', unit: 'segments', onDrain: 'cancel', run }, owner);
  ended.catch(() => undefined);
  return view.id;
}
