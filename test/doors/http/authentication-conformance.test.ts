/** Specification, "Authentication", point by point against running servers; 8 to 11 are in `authorization-conformance.test.ts`. */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { doors } from '../../../src/doors/doors.ts';
import { mintToken } from '../../../src/cli/token.ts';
import { loadSettings } from '../../../src/config.ts';
import { nodeDisk } from '../../../src/log/disk/node-disk.ts';
import { checkBoot } from '../../../src/service.ts';
import { bearer, closeWorlds, codeOf, opened, question } from './conformance-world.ts';
import { type Reply, send } from './door-world.ts';
import { Directories, ServerProcess } from './server-process.ts';
import { adminSecret, type StoreWorld } from './store-world.ts';

const directories = new Directories();
const processes: ServerProcess[] = [];
afterEach(async () => {
  await closeWorlds();
  for (const process of processes.splice(0)) await process.signal('SIGKILL');
});
afterAll(() => directories.remove());

async function served(...args: Parameters<typeof ServerProcess.start>): Promise<ServerProcess> {
  const process = await ServerProcess.start(...args);
  processes.push(process);
  return process;
}

const sql = { sql: question };

/** What a start does first. */
function boot(env: Record<string, string>): void {
  checkBoot(loadSettings({ env, workingDirectory: '/nowhere', homeDirectory: '/nowhere' }));
}

const unauthenticated = [401, 'REL_UNAUTHENTICATED'];

const key = 'ab'.repeat(32);
/** What a server needs to start, beside its bind. */
const server = {
  SERVICE_PROFILE: 'server',
  SERVICE_BEARER_TOKEN: 'bootstrap-secret-for-tests',
  SERVICE_ERASURE_SIGNING_KEY: key,
  SERVICE_KEK: key,
  SERVICE_PURPOSES: 'analytics,test',
  SERVICE_HTTP_BIND: '127.0.0.1',
};
const profiles: [string, Record<string, string>][] = [
  ['free', { SERVICE_BEARER_TOKEN: server.SERVICE_BEARER_TOKEN }],
  ['server', server],
  ['cluster', { ...server, SERVICE_PROFILE: 'cluster' }],
];

/** Data routes as the server describes them, each with some request that its path fits. */
async function dataRoutes(world: StoreWorld): Promise<[string, string][]> {
  const { paths } = (await world.call('GET', '/openapi.json')).json as { paths: Record<string, object> };
  const open = /^\/(health|version)/;
  return Object.entries(paths)
    .filter(([path]) => !open.test(path))
    .flatMap(([path, methods]) =>
      Object.keys(methods).map((method): [string, string] => [method.toUpperCase(), path.replaceAll(/\{[^}]*\}/g, 'x')]),
    );
}

describe('1. the credential is Authorization: Bearer', () => {
  test('in any case of the scheme, as one word, and nowhere else', async () => {
    const world = await opened();
    const { token } = world;
    const ask = (headers: Record<string, string | string[]>, path = '/query') =>
      send(world.door.port, 'POST', path, sql, headers).then(codeOf);
    for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
      expect((await send(world.door.port, 'POST', '/query', sql, { authorization: `${scheme} ${token}` })).status).toBe(200);
    }
    for (const headers of [
      {},
      { authorization: token },
      { authorization: `Basic ${Buffer.from(`x:${token}`).toString('base64')}` },
      { authorization: `Bearer ${token} ${token}` },
      { 'x-api-key': token },
      { cookie: `token=${token}` },
      { 'proxy-authorization': `Bearer ${token}` },
    ]) {
      expect([headers, await ask(headers)]).toEqual([headers, unauthenticated]);
    }
    expect(await ask({}, `/query?token=${token}`)).toEqual(unauthenticated);
    expect(await ask({ authorization: [`Bearer ${token}`, 'Bearer other'] })).toEqual([400, 'REL_INVALID']);
  });

  test('a refusal says how to authenticate, and the same whatever was wrong', async () => {
    const world = await opened();
    const { token } = world;
    const minted = await world.admin('POST', '/admin/tokens', {});
    await world.admin('DELETE', `/admin/tokens/${minted.json['id'] as string}`);
    const refused = await Promise.all(
      ['', 'nonsense', `${token.slice(0, -1)}_`, minted.json['token'] as string].map((word) =>
        send(world.door.port, 'POST', '/query', sql, bearer(word)),
      ),
    );
    for (const reply of refused) {
      expect(reply.headers['www-authenticate']).toBe('Bearer realm="annals"');
      expect({ ...reply.json, correlation_id: '' }).toEqual({ ...refused[0]!.json, correlation_id: '' });
    }
  });
});

describe('2. data routes accept registry tokens only', () => {
  test.each(profiles)(
    'on %s: neither the bootstrap secret, nor the admin credential, nor nothing, on any route',
    async (_, env) => {
      const world = await opened({ ...env, SERVICE_OPEN_DEV_ALLOWED: 'true' });
      const routes = await dataRoutes(world);
      expect(routes.length).toBeGreaterThan(35);
      for (const [method, path] of routes) {
        for (const headers of [bearer(server.SERVICE_BEARER_TOKEN), bearer(adminSecret), {}]) {
          const reply = await send(world.door.port, method, path, method === 'GET' ? undefined : '{}', headers);
          expect([method, path, ...codeOf(reply)]).toEqual([method, path, ...unauthenticated]);
        }
      }
      expect((await world.query(question)).status).toBe(200);
    },
  );

  test('POST /admin/tokens makes the first token of a tenant, which acts for it alone', async () => {
    const world = await opened();
    const acme = await world.tokenFor({ tenant_id: 'acme' });
    await world.call('POST', '/types', { name: 'T', properties: { id: 'string' } }, acme);
    await world.call('POST', '/ingest?object_type=T', [{ id: 'a' }], acme);
    expect(await world.rows('SELECT id, tenant_id FROM T', acme)).toEqual([{ id: 'a', tenant_id: 'acme' }]);
    expect(codeOf(await world.query(question, { ...acme, 'x-organization-id': 'globex' }))).toEqual([403, 'REL_XORG']);
  });

  test('rotate: the new one stands, the old one has ended, and nothing else changed', async () => {
    const world = await opened();
    const fields = { tenant_id: 'acme', principal: 'ada', roles: ['analyst'], purposes: ['test'], expires_in_secs: 3600 };
    const before = (await world.admin('POST', '/admin/tokens', fields)).json;
    const after = (await world.call('POST', '/tokens/self/rotate', undefined, bearer(before['token'] as string))).json;
    expect({ ...after, id: '', token: '' }).toEqual({ ...before, id: '', token: '' });
    expect(codeOf(await world.call('GET', '/tokens/self', undefined, bearer(before['token'] as string)))).toEqual(
      unauthenticated,
    );
    expect((await world.call('GET', '/tokens/self', undefined, bearer(after['token'] as string))).status).toBe(200);
    const byAdmin = (await world.admin('POST', `/admin/tokens/${after['id'] as string}/rotate`)).json;
    expect(codeOf(await world.call('GET', '/tokens/self', undefined, bearer(after['token'] as string)))).toEqual(unauthenticated);
    expect((await world.call('GET', '/tokens/self', undefined, bearer(byAdmin['token'] as string))).status).toBe(200);
  });

  test('list and revoke: those of one’s own tenant, from the next request on', async () => {
    const world = await opened();
    const mint = async (fields: object) => (await world.admin('POST', '/admin/tokens', fields)).json;
    const mine = await mint({ tenant_id: 'acme', principal: 'ada' });
    const other = await mint({ tenant_id: 'acme', principal: 'bob' });
    const foreign = await mint({ tenant_id: 'globex' });
    const ada = bearer(mine['token'] as string);
    const listed = (await world.call('GET', '/tokens/self', undefined, ada)).json['tokens'] as { id: string }[];
    expect(new Set(listed.map(({ id }) => id))).toEqual(new Set([mine['id'], other['id']]));
    expect(JSON.stringify(listed)).not.toMatch(/token"|hash|secret/);
    expect((await world.call('DELETE', `/tokens/self/${foreign['id'] as string}`, undefined, ada)).status).toBe(404);
    expect((await world.call('DELETE', `/tokens/self/${other['id'] as string}`, undefined, ada)).status).toBe(200);
    expect(codeOf(await world.query(question, bearer(other['token'] as string)))).toEqual(unauthenticated);
    expect((await world.query(question, bearer(foreign['token'] as string))).status).toBe(200);
    expect((await world.call('DELETE', `/tokens/self/${mine['id'] as string}`, undefined, ada)).status).toBe(200);
    expect(codeOf(await world.query(question, ada))).toEqual(unauthenticated);
  });

  test('audit: a caller sees what its principal did, the platform what everybody did', async () => {
    const world = await opened();
    const ada = await world.tokenFor({ tenant_id: 'acme', principal: 'ada' });
    const bob = await world.tokenFor({ tenant_id: 'acme', principal: 'bob' });
    await world.query(question, ada);
    await world.query(question, bob);
    const principals = (reply: Reply) =>
      new Set((reply.json['entries'] as { principal: string }[]).map(({ principal }) => principal));
    expect(principals(await world.call('GET', '/tokens/self/audit', undefined, ada))).toEqual(new Set(['ada']));
    expect(principals(await world.admin('GET', '/admin/tokens/audit'))).toEqual(new Set(['analyst', 'admin', 'ada', 'bob']));
  });

  test.each(['GET /tokens/self', 'POST /tokens/self/rotate', 'GET /tokens/self/audit', 'DELETE /tokens/self/x'])(
    '%s does not take the admin credential',
    async (route) => {
      const world = await opened();
      const [method, path] = route.split(' ') as [string, string];
      expect(codeOf(await world.call(method, path, undefined, bearer(adminSecret)))).toEqual(unauthenticated);
    },
  );

  test('a minted secret is in one reply and in no byte on disk, in no spelling', async () => {
    const directory = directories.fresh();
    const world = await opened(
      { SERVICE_IN_MEMORY: '', SERVICE_DATA_DIR: directory, SERVICE_KEK: key, SERVICE_WAL_SYNC: 'always' },
      { disk: nodeDisk },
    );
    const minted = (await world.admin('POST', '/admin/tokens', { principal: 'principal-in-the-clear' })).json;
    const token = minted['token'] as string;
    const rotated = (await world.call('POST', '/tokens/self/rotate', undefined, bearer(token))).json['token'] as string;
    for (const text of [token, rotated]) await world.query(`SELECT id FROM Note WHERE id = '${text.slice(-43)}'`, bearer(text));
    await world.query(question, bearer(rotated));
    const listed = [await world.admin('GET', '/admin/tokens'), await world.admin('GET', '/admin/tokens/audit')];
    await closeWorlds();
    const bytes = Buffer.concat(filesUnder(directory).map((path) => readFileSync(path)));
    // The scanner sees what is there: who did something stands in the leaves.
    expect(bytes.includes('principal-in-the-clear')).toBe(true);
    for (const text of [token, rotated, adminSecret]) {
      const secret = text.slice(-43);
      const raw = Buffer.from(secret, 'base64url');
      const spellings = [
        Buffer.from(text),
        Buffer.from(secret),
        Buffer.from(secret, 'utf16le'),
        raw,
        Buffer.from(raw.toString('hex')),
        Buffer.from(createHash('sha256').update(text).digest('hex')),
        createHash('sha256').update(text).digest(),
      ];
      for (const spelling of spellings) expect(bytes.includes(spelling)).toBe(false);
      for (const reply of listed) expect(reply.text).not.toContain(secret);
    }
  });
});

describe('3. SERVICE_BEARER_TOKEN', () => {
  test.each(['server', 'cluster'])('is mandatory on %s', (profile) => {
    const { SERVICE_BEARER_TOKEN: _, ...rest } = server;
    expect(() => boot({ ...rest, SERVICE_PROFILE: profile })).toThrow('SERVICE_BEARER_TOKEN must be set');
  });

  test('is the credential of the doors that have no registry tokens', async () => {
    const { service } = await opened(server);
    const facts = { door: 'kv', clientIp: null, organization: 'acme' };
    const caller = service.authenticator.passwordCaller(server.SERVICE_BEARER_TOKEN, facts);
    expect(caller).toMatchObject({ credential: 'shared-secret', path: 'acme', door: 'kv', roles: [] });
    for (const word of ['', 'bootstrap-secret', adminSecret]) {
      expect(() => service.authenticator.passwordCaller(word, facts)).toThrow('missing or invalid credential');
    }
  });

  test('the first start on free prints a development token to stderr, which works; the next start prints none', async () => {
    const directory = directories.fresh();
    const first = await served(directory, {}, 'a token');
    const token = first.token!;
    const ask = (url: string) => fetch(`${url}/tokens/self`, { headers: bearer(token) });
    expect((await ask(first.url)).status).toBe(200);
    expect((await first.signal('SIGTERM')).code).toBe(0);
    const second = await served(directory);
    expect([second.token, second.said.includes('ann_')]).toEqual([undefined, false]);
    expect((await ask(second.url)).status).toBe(200);
  });

  test.each<[string, Record<string, string>]>([
    ['a server', server],
    ['free with an admin credential', { SERVICE_ADMIN_TOKEN: adminSecret }],
    ['free that asks for none', { SERVICE_OPEN_DEV_ALLOWED: 'true' }],
  ])('%s prints none', async (_, env) => {
    expect((await served(directories.fresh(), env)).said).not.toContain('ann_');
  });
});

const adminRoutes = [
  'POST /admin/tokens',
  'GET /admin/tokens',
  'DELETE /admin/tokens/x',
  'GET /admin/tokens/audit',
  'GET /admin/audit/count',
  'POST /admin/audit/export',
  'GET /admin/policies',
  'POST /admin/compact',
  'POST /admin/backup',
  'GET /admin/console',
  'GET /platform/tenants',
  'GET /platform/license',
] as const;

describe('4. the admin surface', () => {
  const ask = (world: StoreWorld, route: string, headers: Record<string, string>, port = world.door.adminPort) => {
    const [method, path] = route.split(' ') as [string, string];
    return send(port, method, path, method === 'GET' ? undefined : '{}', headers);
  };

  test('is on the second listener; on the data listener it is a plain 404, whatever is presented', async () => {
    const world = await opened();
    for (const route of adminRoutes) {
      for (const headers of [bearer(adminSecret), bearer(world.token), {}]) {
        const reply = await ask(world, route, headers, world.door.port);
        expect([route, ...codeOf(reply), reply.json['detail']]).toEqual([route, 404, 'REL_NOT_FOUND', 'no such route']);
      }
      expect([route, (await ask(world, route, bearer(adminSecret))).status]).not.toEqual([route, 401]);
    }
  });

  test('takes the admin credential, and no registry token whatever its roles', async () => {
    const world = await opened({ SERVICE_BEARER_TOKEN: 'bootstrap-secret-for-tests' });
    const strong = await world.tokenFor({ roles: ['admin', 'platform-admin', 'tenant-admin'] });
    for (const route of adminRoutes) {
      for (const headers of [strong, bearer('bootstrap-secret-for-tests'), {}]) {
        expect([route, ...codeOf(await ask(world, route, headers))]).toEqual([route, ...unauthenticated]);
      }
    }
  });

  test('without a credential set it is 401 on free and 503 on server and cluster, whatever is presented', async () => {
    const free = await opened({ SERVICE_ADMIN_TOKEN: '' });
    for (const route of adminRoutes) expect(codeOf(await ask(free, route, bearer('x')))).toEqual(unauthenticated);
    for (const [, env] of profiles.slice(1)) {
      const world = await opened({ ...env, SERVICE_ADMIN_TOKEN: '' });
      for (const headers of [{}, bearer(server.SERVICE_BEARER_TOKEN), { authorization: 'Basic eDp5' }]) {
        for (const route of adminRoutes) {
          expect([route, ...codeOf(await ask(world, route, headers))]).toEqual([route, 503, 'REL_UNAVAILABLE']);
        }
      }
    }
  });

  test('on free the bearer token stands in for one that is not set, and only then', async () => {
    const stands = await opened({ SERVICE_ADMIN_TOKEN: '', SERVICE_BEARER_TOKEN: 'bootstrap-secret-for-tests' });
    expect((await ask(stands, 'GET /admin/tokens', bearer('bootstrap-secret-for-tests'))).status).toBe(200);
    const set = await opened({ SERVICE_BEARER_TOKEN: 'bootstrap-secret-for-tests' });
    expect(codeOf(await ask(set, 'GET /admin/tokens', bearer('bootstrap-secret-for-tests')))).toEqual(unauthenticated);
  });

  test('the console may take it as ?token=, no other route may', async () => {
    const world = await opened();
    const console = (query: string) => send(world.door.adminPort, 'GET', `/admin/console${query}`);
    expect((await console(`?token=${adminSecret}`)).status).not.toBe(401);
    for (const query of ['', '?token=', '?token=wrong', `?token=${adminSecret}&token=${adminSecret}`]) {
      expect(codeOf(await console(query))).toEqual(unauthenticated);
    }
    const other = await send(world.door.adminPort, 'GET', `/admin/tokens?token=${adminSecret}`);
    expect(codeOf(other)).toEqual(unauthenticated);
    expect((await world.admin('GET', '/admin/audit/entries')).text).not.toContain(adminSecret);
  });

  test.each(['0.0.0.0:9091', '192.168.1.1:9091', '[::]:9091', 'example.com:9091'])('is not served at %s', (bind) => {
    expect(() => boot({ SERVICE_ADMIN_BIND: bind })).toThrow('must be a loopback address');
  });

  test('its credential comes from the environment only', () => {
    const directory = directories.fresh();
    const config = join(directory, 'service.toml');
    writeFileSync(config, 'admin_token = "from-a-file"\n');
    expect(() => boot({ SERVICE_CONFIG: config })).toThrow('SERVICE_ADMIN_TOKEN is read from the environment only');
  });
});

describe('5. open development, under exactly its five conditions', () => {
  const conditions = { SERVICE_OPEN_DEV_ALLOWED: 'true', SERVICE_ADMIN_TOKEN: '' };

  /** What answers a request without any credential, by surface. */
  async function surfaces(world: StoreWorld): Promise<Record<string, number>> {
    const status = async (port: number, method: string, path: string, body?: unknown) =>
      (await send(port, method, path, body)).status;
    return {
      data: await status(world.door.port, 'POST', '/query', sql),
      audit: await status(world.door.port, 'GET', '/audit/count'),
      diagnostics: await status(world.door.port, 'GET', '/metrics'),
      settings: await status(world.door.port, 'GET', '/config'),
      admin: await status(world.door.adminPort, 'GET', '/admin/tokens'),
    };
  }

  const closed = { data: 401, audit: 401, diagnostics: 401, settings: 401, admin: 401 };

  test('a page of another site that a browser shows here is refused, on both listeners', async () => {
    const world = await opened(conditions);
    const { port, adminPort } = world.door;
    const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const requests = [
      [port, '/query', sql],
      [port, '/ingest/auto?object_type=Own', [{ id: '1' }]],
      [port, '/mcp', { jsonrpc: '2.0', id: 1, method: 'ping' }],
      [port, '/mcp/tools/call', { name: 'server_health', arguments: { purpose: 'test' } }],
      [adminPort, '/admin/compact', {}],
    ] as const;
    const status = async (headers: Record<string, string>): Promise<readonly number[]> =>
      Promise.all(requests.map(async ([at, path, body]) => (await send(at, 'POST', path, body, { ...json, ...headers })).status));
    for (const headers of [
      { host: 'evil.example.com' },
      { host: `localhost.evil.example.com:${port}` },
      { origin: 'http://evil.example.com' },
      { origin: 'null' },
      { 'content-type': 'text/plain' },
      { 'content-type': 'Multipart/Form-Data; boundary=x' },
      { 'content-type': 'application/x-www-form-urlencoded' },
    ])
      expect([headers, await status(headers as Record<string, string>)]).toEqual([headers, [403, 403, 403, 403, 403]]);
    for (const headers of [{}, { host: `localhost:${port}` }, { host: '[::1]:1', origin: 'http://127.0.0.1:3000' }])
      expect([headers, await status(headers)]).toEqual([headers, [200, 200, 200, 200, 200]]);
  });

  test('while all hold, everything is open', async () => {
    expect(await surfaces(await opened(conditions))).toEqual({
      data: 200,
      audit: 200,
      diagnostics: 200,
      settings: 200,
      admin: 200,
    });
  });

  test.each<[string, Record<string, string>, number]>([
    ['it is not asked for', { SERVICE_OPEN_DEV_ALLOWED: '' }, 401],
    ['it is refused', { SERVICE_OPEN_DEV_ALLOWED: 'false' }, 401],
    ['a bearer token is set', { SERVICE_BEARER_TOKEN: 'bootstrap-secret-for-tests' }, 401],
    ['an admin token is set', { SERVICE_ADMIN_TOKEN: adminSecret }, 401],
    ['the profile authenticates', { ...server, SERVICE_BEARER_TOKEN: '' }, 503],
    ['others reach the listener', { SERVICE_HTTP_BIND: '0.0.0.0', SERVICE_PLAINTEXT_OK: 'true' }, 401],
  ])('closed when %s', async (_, broken, admin) => {
    expect(await surfaces(await opened({ ...conditions, ...broken }))).toEqual({ ...closed, admin });
  });

  test('closed from the first registered token on, and not opened again by its end', async () => {
    const world = await opened(conditions);
    const token = await mintToken(world.service, { principal: 'ada' });
    expect(await surfaces(world)).toEqual(closed);
    const id = /^ann_([0-9a-f-]{36})_/.exec(token)![1]!;
    expect((await world.call('DELETE', `/tokens/self/${id}`, undefined, bearer(token))).status).toBe(200);
    expect(await surfaces(world)).toEqual(closed);
  });

  test('a wrong credential is wrong in it too', async () => {
    const world = await opened(conditions);
    expect(codeOf(await send(world.door.port, 'POST', '/query', sql, bearer('nonsense')))).toEqual(unauthenticated);
    expect(codeOf(await send(world.door.adminPort, 'GET', '/admin/tokens', undefined, bearer('x')))).toEqual(unauthenticated);
  });
});

describe('6. credentials of other doors', () => {
  test('/status names every door of the specification, and none that is absent', async () => {
    const { json } = await (await opened()).call('GET', '/status');
    const states = (json['doors'] as { name: string; state: string }[]).map(({ name, state }) => [name, state]);
    expect(states.map(([name]) => name)).toEqual(doors.map(({ name }) => name));
    expect(states.filter(([, state]) => state === 'absent')).toEqual([]);
  });
});

describe('7. transport and security mode', () => {
  const tls = { SERVICE_TLS_CERT: '/cert.pem', SERVICE_TLS_KEY: '/key.pem' };

  test.each<[string, Record<string, string>, boolean]>([
    ['loopback in the clear', {}, true],
    ['127.0.0.1 in the clear', { SERVICE_HTTP_BIND: '127.0.0.1' }, true],
    ['[::1] in the clear', { SERVICE_HTTP_BIND: '[::1]' }, true],
    ['all addresses in the clear', { SERVICE_HTTP_BIND: '0.0.0.0' }, false],
    ['all addresses with TLS', { SERVICE_HTTP_BIND: '0.0.0.0', ...tls }, true],
    ['half of TLS', { SERVICE_HTTP_BIND: '0.0.0.0', SERVICE_TLS_CERT: '/cert.pem' }, false],
    ['all addresses, plaintext by order', { SERVICE_HTTP_BIND: '0.0.0.0', SERVICE_PLAINTEXT_OK: 'true' }, true],
    ['loopback, plaintext forbidden', { SERVICE_PLAINTEXT_OK: 'false' }, false],
  ])('%s', (_, env, starts) => {
    if (starts) boot(env);
    else expect(() => boot(env)).toThrow(/SERVICE_(TLS_CERT|PLAINTEXT_OK)/);
  });

  test('a start that is refused is a process that ends', async () => {
    const { code, said } = await ServerProcess.spawn(directories.fresh(), { SERVICE_HTTP_BIND: '0.0.0.0' }).ended();
    expect([code, said]).toEqual([2, expect.stringMatching(/^annals: [^\n]*SERVICE_TLS_CERT[^\n]*\n$/)]);
  });

  // Source: the table of SERVICE_SECURITY_MODE. plaintext gRPC is not fatal: under strict its door stays shut.
  const weak = ['SERVICE_KMS_LOCAL_DEV', 'SERVICE_UNSAFE_LOCAL_FENCING', 'SERVICE_GRPC_PLAINTEXT_OK'] as const;
  test.each(
    ['strict', 'open'].flatMap((mode) => weak.flatMap((name) => ['true', 'false'].map((value) => ({ mode, name, value })))),
  )('$mode with $name=$value', ({ mode, name, value }) => {
    const env = { SERVICE_SECURITY_MODE: mode, [name]: value };
    const fatal = mode === 'strict' && value === 'true' && name !== 'SERVICE_GRPC_PLAINTEXT_OK';
    if (fatal) expect(() => boot(env)).toThrow(`${name}=true needs SERVICE_SECURITY_MODE=open`);
    else boot(env);
  });

  test('strict is the default', () => {
    expect(() => boot({ SERVICE_KMS_LOCAL_DEV: 'true' })).toThrow('SERVICE_SECURITY_MODE=open');
  });
});

describe('12. SERVICE_TOKEN_REGISTRY_MAX', () => {
  test('minting past it is 409; rotating is not minting, and a token that ended makes room', async () => {
    // One of them is the world's own.
    const world = await opened({ SERVICE_TOKEN_REGISTRY_MAX: '3' });
    const mint = () => world.admin('POST', '/admin/tokens', { tenant_id: 'acme' });
    const first = (await mint()).json;
    expect((await mint()).status).toBe(201);
    expect(codeOf(await mint())).toEqual([409, 'REL_TOKEN_CAP']);
    expect((await world.admin('POST', `/admin/tokens/${first['id'] as string}/rotate`)).status).toBe(200);
    expect(codeOf(await mint())).toEqual([409, 'REL_TOKEN_CAP']);
    const { tokens } = (await world.admin('GET', '/admin/tokens')).json as { tokens: { id: string; tenant_id: string | null }[] };
    await world.admin('DELETE', `/admin/tokens/${tokens.find(({ tenant_id }) => tenant_id === 'acme')!.id}`);
    expect((await mint()).status).toBe(201);
  });

  test('is 1000 when it is not set, and when it is 0', () => {
    for (const env of [{}, { SERVICE_TOKEN_REGISTRY_MAX: '0' }]) {
      const settings = loadSettings({ env, workingDirectory: '/nowhere', homeDirectory: '/nowhere' });
      expect(settings.SERVICE_TOKEN_REGISTRY_MAX).toBe(1000);
    }
  });
});

function filesUnder(directory: string): string[] {
  mkdirSync(directory, { recursive: true });
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}
