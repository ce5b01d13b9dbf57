/** Specification, "Errors", row by row over running servers: the query error variants, what a status means, and the problem record. */
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { FaultyDisk, type Step } from '../../simulation/faulty-disk.ts';
import { bearer, closeWorlds, codeOf, opened, question } from './conformance-world.ts';
import { type Reply, send } from './door-world.ts';
import { adminSecret, type StoreWorld } from './store-world.ts';

afterEach(closeWorlds);

const onDisk = { SERVICE_IN_MEMORY: '', SERVICE_DATA_DIR: '/data' };

/** With types that their declarations close. */
async function guarded(settings: Record<string, string> = {}): Promise<StoreWorld> {
  const world = await opened(settings);
  const text = { name: 'string' };
  const masked = { type: 'string', masked: true };
  for (const type of [
    { name: 'Source', properties: text, protected: true },
    { name: 'Scoped', properties: text, access_scope: true },
    { name: 'Report', properties: { ...text, origin: { type: 'string', references: 'Source' } } },
    { name: 'Masked', properties: { ...text, ssn: masked } },
  ]) {
    expect((await world.call('POST', '/types', type)).status).toBe(201);
  }
  return world;
}

const asked = async (sql: string, headers: Record<string, string> = {}): Promise<Reply> => (await guarded()).query(sql, headers);

/** A query of these headers that has its snapshot, and keeps it until the store is closed. */
async function held(world: StoreWorld): Promise<void> {
  const caller = world.service.authenticator.dataCaller({ authorization: `Bearer ${world.token}`, door: 'http' });
  const request = { action: 'query', purpose: null, correlationId: world.service.ids.next() } as const;
  await new Promise<void>((placed) => {
    const ended = world.service.gate.invoke(caller, request, async (invocation) => {
      invocation.snapshot();
      placed();
      await new Promise<void>((over) => (releases = [...releases, over]));
    });
    ended.catch(() => undefined);
  });
}
let releases: (() => void)[] = [];
afterEach(() => {
  for (const release of releases.splice(0)) release();
});

describe('Query error variants', () => {
  type Row = [variant: string, code: string, status: number, provoke: () => Promise<Reply>];
  const rows: Row[] = [
    [
      'MissingPurpose',
      'REL_PURPOSE',
      403,
      async () => {
        const world = await opened();
        return world.query(question, await world.tokenFor({ purposes: ['test'] }));
      },
    ],
    [
      'Timeout',
      'REL_TIMEOUT',
      408,
      async () => {
        let skewMs = 0;
        const world = await opened({}, { clock: { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + skewMs } });
        await world.call(
          'POST',
          '/ingest?object_type=Note',
          Array.from({ length: 3_000 }, (_, i) => ({ id: `n${i}` })),
        );
        // Whenever it begins, the clock jumps while it runs.
        const jumps = setInterval(() => (skewMs += 31_000), 150);
        const reply = await world.query(
          'SELECT COUNT(*) AS n FROM Note a JOIN Note b ON a.id <> b.id JOIN Note c ON b.id <> c.id',
        );
        clearInterval(jumps);
        return reply;
      },
    ],
    [
      'WatchLimit',
      'REL_WATCH_LIMIT',
      429,
      async () => {
        const world = await opened({ SERVICE_MAX_WATCH_SUBSCRIPTIONS: '1' });
        expect((await world.query(`WATCH PURPOSE 'test' ${question}`)).status).toBe(200);
        return world.query(`WATCH PURPOSE 'test' ${question}`);
      },
    ],
    ['UnknownPurpose', 'REL_PURPOSE_UNKNOWN', 403, () => asked(question, { 'x-service-purpose': 'unheard' })],
    ['ParseError', 'REL_PARSE', 400, () => asked('SELECT id\nFROM FROM Note')],
    ['UnknownType', 'REL_UNKNOWN_TYPE', 404, () => asked('SELECT id FROM Nothing')],
    ['UnknownColumn', 'REL_UNKNOWN_COLUMN', 400, () => asked('SELECT colour FROM Report')],
    [
      'AccessDenied',
      'REL_ACL',
      403,
      async () => {
        const world = await opened();
        const policy = { policy: 'forbid(principal, action, resource is Note);' };
        expect((await world.admin('PUT', '/admin/policies/no-notes', policy)).status).toBe(201);
        return world.query(question);
      },
    ],
    [
      'Storage',
      'REL_STORAGE',
      500,
      async () => {
        let fails: (step: Step) => boolean = () => false;
        const disk = new FaultyDisk({ beforeStep: (step) => (fails(step) ? { kind: 'error', code: 'EIO' } : undefined) });
        const world = await opened(onDisk, { disk });
        fails = ({ kind, path }) => kind === 'write' && path.startsWith('/data/keys');
        const reply = await world.admin('POST', '/admin/rotate-dek', {});
        fails = () => false;
        return reply;
      },
    ],
    ['HumintProtectedType', 'REL_HUMINT', 403, () => asked('SELECT name FROM Source')],
    ['MissingAccessScope', 'REL_ACCESS_SCOPE', 403, () => asked('SELECT name FROM Scoped')],
    [
      'CrossOrganizationAccessDenied',
      'REL_XORG',
      403,
      async () => {
        const world = await opened();
        const acme = await world.tokenFor({ tenant_id: 'acme' });
        return world.query(question, { ...acme, 'x-organization-id': 'globex' });
      },
    ],
    [
      'QuotaExceeded',
      'REL_QUOTA',
      429,
      async () => {
        const world = await opened({ SERVICE_QUERY_QUOTA: '1' });
        expect((await world.query(question)).status).toBe(200);
        return world.query(question);
      },
    ],
    [
      'ResultCapExceeded',
      'REL_RESULT_CAP',
      406,
      async () => {
        const world = await opened({ SERVICE_MAX_RESULT_ROWS: '1' });
        await world.call('POST', '/ingest?object_type=Note', [{ id: 'a' }, { id: 'b' }]);
        return world.query(question);
      },
    ],
    ['MaskedColumnInAggregate', 'REL_MASKED_COLUMN', 400, () => asked('SELECT MAX(ssn) AS m FROM Masked')],
    [
      'QueueFull',
      'REL_QUEUE_FULL',
      429,
      async () => {
        const world = await opened({ SERVICE_MAX_RUNNING_QUERIES: '1', SERVICE_QUERY_QUEUE_MAX: '0' });
        await held(world);
        return world.query(question);
      },
    ],
    ['ProtectedTypeColumn', 'REL_PROTECTED_COLUMN', 403, () => asked('SELECT origin FROM Report')],
    [
      'InternalError',
      'REL_INTERNAL',
      500,
      async () => {
        const world = await opened();
        const { planner } = world.service;
        planner.query = () => Promise.reject(new TypeError('a cell of somebody'));
        return world.query(question);
      },
    ],
    [
      '(rate limiter)',
      'REL_RATE_LIMITED',
      429,
      async () => {
        const world = await opened({ SERVICE_READ_RATE_LIMIT_RPS: '1' });
        const replies = [await world.query(question), await world.query(question), await world.query(question)];
        return replies.at(-1)!;
      },
    ],
  ];

  test.each(rows)('%s: %s, %i', async (_, code, status, provoke) => {
    const reply = await provoke();
    expect(codeOf(reply)).toEqual([status, code]);
    expect(reply.headers['content-type']).toBe('application/problem+json');
    expect(reply.json).toMatchObject({ status, title: expect.stringMatching(/^[A-Z]/) as string });
    expect(reply.json['instance']).toMatch(/^\//);
    expect(reply.json['correlation_id']).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect('retryable' in reply.json).toBe(status === 429);
  });

  test('ParseError includes line:column', async () => {
    const { json } = await asked('SELECT id\nFROM FROM Note');
    expect(json['detail']).toMatch(/\b2:6\b/);
  });

  test('HumintProtectedType: break-glass opens it', async () => {
    const world = await guarded();
    const officer = await world.tokenFor({ roles: ['break-glass'] });
    expect(
      (await world.query('SELECT name FROM Source', { ...officer, 'x-service-break-glass': 'imminent threat' })).status,
    ).toBe(200);
  });

  test('InternalError: the detail is masked', async () => {
    const world = await opened();
    world.service.planner.query = () => Promise.reject(new TypeError('a cell of somebody'));
    expect((await world.query(question)).text).not.toContain('somebody');
  });
});

describe('Status semantics', () => {
  test('401 missing or invalid bearer', async () => {
    const world = await opened();
    for (const headers of [{}, bearer('nonsense')]) {
      const reply = await send(world.door.port, 'POST', '/query', { sql: question }, headers);
      expect(codeOf(reply)).toEqual([401, 'REL_UNAUTHENTICATED']);
    }
  });

  test('402 storage cap reached on ingest, or query against a suspended tenant', async () => {
    const world = await opened();
    const { log } = world.service.store;
    const status = log.status.bind(log);
    log.status = () => ({ ...status(), bytes: 10_000_000_000 });
    expect(codeOf(await world.call('POST', '/ingest?object_type=Note', [{ id: 'a' }]))).toEqual([402, 'REL_STORAGE_CAP']);
    expect((await world.query(question)).status).toBe(200);
    log.status = status;
    const platform = await world.tokenFor({ roles: ['platform-admin'] });
    expect((await world.call('POST', '/api/v1/tenants', { id: 'acme' }, platform)).status).toBe(201);
    const acme = await world.tokenFor({ tenant_id: 'acme' });
    expect((await world.call('POST', '/api/v1/tenants/acme/suspend', undefined, platform)).status).toBe(200);
    expect(codeOf(await world.query(question, acme))).toEqual([402, 'REL_TENANT_SUSPENDED']);
  });

  test('403 ACL, purpose, egress, protected-type or cross-org denial', async () => {
    const world = await guarded();
    const acme = await world.tokenFor({ tenant_id: 'acme' });
    const replies = [
      await world.call('GET', '/tenants', undefined, acme),
      await world.query(question, { 'x-service-purpose': 'unheard' }),
      await world.query('SELECT * FROM SigintIntercept'),
      await world.query('SELECT name FROM Source'),
      await world.query(question, { ...acme, 'x-organization-id': 'globex' }),
    ];
    expect(replies.map(codeOf)).toEqual([
      [403, 'REL_ACL'],
      [403, 'REL_PURPOSE_UNKNOWN'],
      [403, 'REL_HUMINT'],
      [403, 'REL_HUMINT'],
      [403, 'REL_XORG'],
    ]);
  });

  test('404 unknown type, route or backup artefact', async () => {
    const world = await opened(onDisk);
    expect(codeOf(await world.call('GET', '/types/Nothing'))).toEqual([404, 'REL_UNKNOWN_TYPE']);
    expect(codeOf(await world.call('GET', '/nothing'))).toEqual([404, 'REL_NOT_FOUND']);
    const restore = { backup: '00000000-0', target_dir: '/elsewhere' };
    expect(codeOf(await world.admin('POST', '/admin/restore', restore))).toEqual([404, 'REL_NOT_FOUND']);
  });

  test('405 wrong verb', async () => {
    const reply = await (await opened()).call('DELETE', '/query');
    expect(codeOf(reply)).toEqual([405, 'REL_METHOD']);
    expect(reply.headers['allow']).toContain('POST');
  });

  test('409 what is there already: a branch, a type of other properties; token registry full', async () => {
    const world = await opened({ SERVICE_TOKEN_REGISTRY_MAX: '1' });
    for (const name of ['dev', 'main']) {
      const fork = () => world.call('POST', `/v1/namespaces/${name}/branch`, { branch_from: 'main' });
      if (name === 'dev') expect((await fork()).status).toBe(201);
      expect([name, ...codeOf(await fork())]).toEqual([name, 409, 'REL_CONFLICT']);
    }
    expect((await world.call('POST', '/types', { name: 'T', properties: { a: 'string' } })).status).toBe(201);
    const other = await world.call('POST', '/types', { name: 'T', properties: { a: 'integer' } });
    expect(codeOf(other)).toEqual([409, 'REL_CONFLICT']);
    expect(codeOf(await world.admin('POST', '/admin/tokens', {}))).toEqual([409, 'REL_TOKEN_CAP']);
  });

  test('413 body over the body limit', async () => {
    const world = await opened({ SERVICE_BODY_LIMIT_MB: '1' });
    const reply = await world.call('POST', '/query', { sql: `SELECT '${'x'.repeat(1_100_000)}' AS x FROM Note` });
    expect(codeOf(reply)).toEqual([413, 'REL_TOO_LARGE']);
  });

  test('422 semantically invalid: the checksum of a backup does not match', async () => {
    const disk = new FaultyDisk();
    const world = await opened(onDisk, { disk });
    const { backup } = (await world.admin('POST', '/admin/backup', {})).json;
    const file = await disk.open(`/data/backups/${String(backup)}/log/00000000.log`, 'write');
    await file.write(Buffer.of(0xff, 0xfe), 300);
    await file.close();
    const reply = await world.admin('POST', '/admin/restore', { backup, target_dir: '/elsewhere' });
    expect(codeOf(reply)).toEqual([422, 'REL_UNPROCESSABLE']);
  });

  test('429 retry after Retry-After', async () => {
    const world = await opened({ SERVICE_READ_RATE_LIMIT_RPS: '1' });
    let reply = await world.query(question);
    for (let i = 0; i < 5 && reply.status !== 429; i++) reply = await world.query(question);
    expect([reply.status, reply.headers['retry-after']]).toEqual([429, '1']);
  });

  test('501 recognised but unimplemented: ALTER TABLE, tenant-scoped restore', async () => {
    const world = await opened(onDisk);
    expect(codeOf(await world.query('ALTER TABLE Note ADD COLUMN x'))).toEqual([501, 'REL_NOT_IMPLEMENTED']);
    const restore = { backup: '00000000-0', target_dir: '/elsewhere', tenant: 'acme' };
    expect(codeOf(await world.admin('POST', '/admin/restore', restore))).toEqual([501, 'REL_NOT_IMPLEMENTED']);
  });

  test('503 draining, or backup capture failed', async () => {
    let isFull = false;
    const disk = new FaultyDisk({
      beforeStep: ({ kind, path }) =>
        isFull && kind === 'write' && path.startsWith('/data/backups') ? { kind: 'error', code: 'ENOSPC' } : undefined,
    });
    const world = await opened(onDisk, { disk });
    isFull = true;
    expect(codeOf(await world.admin('POST', '/admin/backup', {}))).toEqual([503, 'REL_UNAVAILABLE']);
    isFull = false;
    await world.service.gate.drain();
    expect(codeOf(await world.query(question))).toEqual([503, 'REL_UNAVAILABLE']);
    const ready = await send(world.door.port, 'GET', '/health/live');
    expect(ready.status).toBe(200);
  });
});

test('no refusal shows a credential', async () => {
  const world = await opened();
  const secret = world.token.slice(-43);
  const replies = [
    await world.query('SELECT nonsense FROM'),
    await world.call('GET', `/nothing?token=${world.token}`),
    await send(world.door.port, 'POST', '/query', { sql: question }, bearer(`${world.token}x`)),
    await send(world.door.adminPort, 'GET', '/admin/nothing', undefined, bearer(adminSecret)),
  ];
  for (const { text } of replies) for (const each of [secret, adminSecret]) expect(text).not.toContain(each);
});
