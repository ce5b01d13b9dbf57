/** Specification, "Limits" and "Rate-limit 429 headers", row by row over running servers, as far as admission decides them. */
import { connect } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { loadSettings } from '../../../src/config.ts';
import type { DiskFile } from '../../../src/log/disk/disk.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { analyst } from '../../harness.ts';
import { bearer, closeWorlds, codeOf, opened, question } from './conformance-world.ts';
import { type Reply, send } from './door-world.ts';
import type { StoreWorld } from './store-world.ts';

afterEach(closeWorlds);

const defaults = loadSettings({ env: {}, workingDirectory: '/nowhere', homeDirectory: '/nowhere' });

type Headers = Record<string, string>;

/** A query of these headers that has its snapshot, and keeps its place until it is let go. */
async function held(world: StoreWorld, headers: Headers): Promise<() => Promise<void>> {
  const caller = world.service.authenticator.dataCaller({ authorization: headers['authorization'], door: 'http' });
  let release!: () => void;
  const over = new Promise<void>((resolve) => (release = resolve));
  let has!: () => void;
  const placed = new Promise<void>((resolve) => (has = resolve));
  const request = { action: 'query', purpose: null, correlationId: world.service.ids.next() } as const;
  const ended = world.service.gate.invoke(caller, request, async (invocation) => {
    invocation.snapshot();
    has();
    await over;
  });
  await placed;
  return async () => {
    release();
    await ended;
  };
}

const seconds = (reply: Reply): number => {
  expect(reply.headers['retry-after']).toMatch(/^[1-9]\d*$/);
  return Number(reply.headers['retry-after']);
};

describe('Max in-flight queries per tenant: 10', () => {
  test('the eleventh is 429 with Retry-After, whoever asks for the tenant; others are not held up', async () => {
    expect(defaults.SERVICE_MAX_INFLIGHT_QUERIES).toBe(10);
    const world = await opened();
    const ada = await world.tokenFor({ tenant_id: 'acme', principal: 'ada' });
    const bob = await world.tokenFor({ tenant_id: 'acme', principal: 'bob' });
    const releases = [];
    for (let i = 0; i < 10; i++) releases.push(await held(world, i % 2 ? ada : bob));
    for (const headers of [ada, bob]) {
      const reply = await world.query(question, headers);
      expect(codeOf(reply)).toEqual([429, 'REL_QUOTA']);
      expect(seconds(reply)).toBe(1);
      expect(reply.json['retryable']).toBe(true);
    }
    expect((await world.query(question, await world.tokenFor({ tenant_id: 'globex' }))).status).toBe(200);
    expect((await world.query(question)).status).toBe(200);
    await releases.pop()!();
    expect((await world.query(question, ada)).status).toBe(200);
    for (const release of releases) await release();
  });
});

describe('Max query duration: 30 s', () => {
  test('longer ones end in REL_TIMEOUT', async () => {
    expect(defaults.SERVICE_QUERY_TIMEOUT_SECS).toBe(30);
    let skewMs = 0;
    const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + skewMs };
    const world = await opened({}, { clock });
    const rows = Array.from({ length: 3_000 }, (_, i) => ({ id: `n${i}` }));
    expect((await world.call('POST', '/ingest?object_type=Note', rows)).status).toBe(200);
    // A join of everything with everything is at it long enough for the clock to jump.
    const slow = world.query('SELECT COUNT(*) AS n FROM Note a JOIN Note b ON a.id <> b.id JOIN Note c ON b.id <> c.id');
    setTimeout(() => (skewMs = 31_000), 150);
    expect(codeOf(await slow)).toEqual([408, 'REL_TIMEOUT']);
  });
});

describe('Max scanned rows per query: 10,000,000', () => {
  test('more is REL_SCAN_CAP', async () => {
    expect(defaults.SERVICE_MAX_SCANNED_ROWS).toBe(10_000_000);
    const world = await opened({ SERVICE_MAX_SCANNED_ROWS: '3' });
    const put = (id: string) => world.call('POST', '/ingest?object_type=Note', [{ id }]);
    for (const id of ['a', 'b', 'c']) await put(id);
    expect((await world.query(question)).status).toBe(200);
    await put('d');
    expect(codeOf(await world.query(question))).toEqual([406, 'REL_SCAN_CAP']);
  });
});

describe('Result row cap: SERVICE_MAX_RESULT_ROWS, 1,000,000', () => {
  test('more is REL_RESULT_CAP, on every route that gives rows', async () => {
    expect(defaults.SERVICE_MAX_RESULT_ROWS).toBe(1_000_000);
    const world = await opened({ SERVICE_MAX_RESULT_ROWS: '2' });
    await world.call('POST', '/ingest?object_type=Note', [{ id: 'a' }, { id: 'b' }]);
    expect((await world.query(question)).status).toBe(200);
    await world.call('POST', '/ingest?object_type=Note', [{ id: 'c' }]);
    const asked = { sql: question };
    const replies = [
      await world.query(question),
      await world.call('POST', '/query/arrow', asked),
      await world.call('POST', '/query/stream', asked),
      await world.call('GET', `/export?format=csv&sql=${encodeURIComponent(question)}`),
    ];
    for (const reply of replies) expect(codeOf(reply)).toEqual([406, 'REL_RESULT_CAP']);
    expect((await world.query(`${question} LIMIT 2`)).status).toBe(200);
  });
});

describe('Quota units: SERVICE_QUERY_QUOTA, 10,000 per principal', () => {
  test('exhaustion is 429 with the seconds until the period ends; each query costs 1, upkeep and writing nothing', async () => {
    expect(defaults.SERVICE_QUERY_QUOTA).toBe(10_000);
    const world = await opened({ SERVICE_QUERY_QUOTA: '3', SERVICE_QUERY_QUOTA_PERIOD_SECS: '3600' });
    const ada = await world.tokenFor({ principal: 'ada' });
    for (let i = 0; i < 5; i++) {
      expect((await world.call('GET', '/tokens/self', undefined, ada)).status).toBe(200);
      expect((await world.call('POST', '/ingest?object_type=Note', [{ id: 'a' }], ada)).status).toBe(200);
    }
    const replies = [];
    for (let i = 0; i < 3; i++) replies.push(await world.query(question, ada));
    expect(replies.map(({ status, json }) => [status, json['cost_units']])).toEqual(Array(3).fill([200, 1]));
    const refused = await world.query(question, ada);
    expect(codeOf(refused)).toEqual([429, 'REL_QUOTA']);
    expect(seconds(refused)).toBeGreaterThan(3_500);
    expect(seconds(refused)).toBeLessThanOrEqual(3_600);
    // Another token of the same principal has the same quota, another principal its own.
    expect(codeOf(await world.query(question, await world.tokenFor({ principal: 'ada' })))).toEqual([429, 'REL_QUOTA']);
    expect((await world.query(question, await world.tokenFor({ principal: 'bob' }))).status).toBe(200);
    expect((await world.query(question, await world.tokenFor({ principal: 'ada', tenant_id: 'acme' }))).status).toBe(200);
    const costs = (await world.admin('GET', '/admin/audit/entries?principal=ada&limit=1000')).json['entries'] as {
      action: string;
      decision: string;
      cost_units: number;
    }[];
    expect(
      new Set(costs.filter(({ decision }) => decision === 'allow').map(({ action, cost_units: cost }) => `${action} ${cost}`)),
    ).toEqual(new Set(['inspect 0', 'ingest 0', 'query 1']));
  });
});

describe('quota of a tenant, instead of the settings', () => {
  async function withQuota(quota: object, settings: Record<string, string> = {}) {
    const world = await opened(settings);
    const platform = await world.tokenFor({ roles: ['platform-admin'] });
    const created = await world.call('POST', '/tenants', { id: 'acme', quota }, platform);
    expect(created.status, created.text).toBe(201);
    const set = (changed: object) => world.call('PUT', '/tenants/acme/quota', changed, platform);
    return { world, acme: await world.tokenFor({ tenant_id: 'acme' }), set };
  }

  test('query_units, and a change of them holds at once', async () => {
    const { world, acme, set } = await withQuota({ query_units: 2 });
    for (const status of [200, 200, 429]) expect((await world.query(question, acme)).status).toBe(status);
    expect((await set({ query_units: 3 })).status).toBe(200);
    for (const status of [200, 429]) expect((await world.query(question, acme)).status).toBe(status);
    expect((await set({})).status).toBe(200);
    expect((await world.query(question, acme)).status).toBe(200);
  });

  test('in_flight', async () => {
    const { world, acme } = await withQuota({ in_flight: 1 });
    const release = await held(world, acme);
    expect(codeOf(await world.query(question, acme))).toEqual([429, 'REL_QUOTA']);
    await release();
    expect((await world.query(question, acme)).status).toBe(200);
  });

  test('requests_per_second', async () => {
    const { world, acme } = await withQuota({ requests_per_second: 1 });
    expect((await world.query(question, acme)).status).toBe(200);
    const refused = await world.query(question, acme);
    expect(codeOf(refused)).toEqual([429, 'REL_QUOTA']);
    expect(seconds(refused)).toBe(1);
    expect((await world.query(question)).status).toBe(200);
  });

  test('storage_bytes: what is over it is 402 on every way in; reading and removing stay open', async () => {
    const { world, acme } = await withQuota({ storage_bytes: 5_000 });
    const put = (id: string, path = '/ingest?object_type=Note') =>
      world.call('POST', path, [{ id, text: 'x'.repeat(3_000) }], acme);
    expect((await put('a')).status).toBe(200);
    expect((await put('b')).status).toBe(200);
    for (const path of ['/ingest?object_type=Note', '/ingest/bulk?object_type=Note', '/ingest/auto?object_type=Other']) {
      expect([path, ...codeOf(await put('c', path))]).toEqual([path, 402, 'REL_STORAGE_CAP']);
    }
    expect((await world.query(question, acme)).json['row_count']).toBe(2);
    expect((await world.call('POST', '/ingest?object_type=Note', [{ id: 'n', text: 'x'.repeat(9_000) }])).status).toBe(200);
    for (const id of ['a', 'b']) {
      const key = (await world.rows(`SELECT _pk FROM Note WHERE id = '${id}'`, acme))[0]!['_pk'] as string;
      expect((await world.call('DELETE', `/types/Note/${encodeURIComponent(key)}?hard=true`, undefined, acme)).status).toBe(200);
    }
    await expect.poll(async () => (await put('c')).status, { timeout: 5_000 }).toBe(200);
  });

  test('subscriptions', async () => {
    const { world, acme } = await withQuota({ subscriptions: 1 });
    const watch = () => world.query(`WATCH PURPOSE 'test' ${question}`, acme);
    expect((await watch()).status).toBe(200);
    expect(codeOf(await watch())).toEqual([429, 'REL_WATCH_LIMIT']);
  });
});

describe('Branch name length: 1 to 128 characters', () => {
  test('others are 400, by every way to fork', async () => {
    const world = await opened();
    for (const [length, status] of [
      [1, 2],
      [128, 2],
      [129, 4],
    ] as const) {
      for (const [letter, fork] of [
        ['a', (name: string) => world.query(`BRANCH '${name}' FROM main`)],
        ['b', (name: string) => world.call('POST', `/v1/namespaces/${name}/branch`, { branch_from: 'main' })],
        ['c', (name: string) => world.call('POST', `/schema/branches/${name}`, { from: 'main' })],
      ] as const) {
        const reply = await fork(letter.repeat(length));
        expect([length, letter, Math.floor(reply.status / 100)]).toEqual([length, letter, status]);
      }
    }
    expect((await world.query("BRANCH '' FROM main")).status).toBe(400);
  });
});

describe('Token registry: SERVICE_TOKEN_REGISTRY_MAX, 1000', () => {
  test('minting past it is 409', async () => {
    expect(defaults.SERVICE_TOKEN_REGISTRY_MAX).toBe(1000);
    const world = await opened({ SERVICE_TOKEN_REGISTRY_MAX: '2' });
    expect((await world.admin('POST', '/admin/tokens', {})).status).toBe(201);
    expect(codeOf(await world.admin('POST', '/admin/tokens', {}))).toEqual([409, 'REL_TOKEN_CAP']);
  });
});

describe('Storage cap: 10 GB on free', () => {
  test('at 100% ingest is 402 on every way in; the soft warning is in states-conformance', async () => {
    const world = await opened();
    const { log } = world.service.store;
    const status = log.status.bind(log);
    const paths = ['/ingest?object_type=Note', '/ingest/bulk?object_type=Note', '/ingest/auto?object_type=Other'];
    for (const [bytes, expected] of [
      [10_000_000_000, 402],
      [9_999_999_999, 200],
    ] as const) {
      log.status = () => ({ ...status(), bytes });
      for (const path of paths) {
        expect([path, bytes, (await world.call('POST', path, [{ id: 'a' }])).status]).toEqual([path, bytes, expected]);
      }
    }
  });
});

describe('Tenants: 1 on free and server, licensed on cluster', () => {
  test.each(['free', 'server', 'cluster'])('%s; SERVICE_MAX_TENANTS can only lower the ceiling', async (profile) => {
    for (const max of ['', '1', '5']) {
      const world = await opened({
        SERVICE_PROFILE: profile,
        SERVICE_MAX_TENANTS: max,
        SERVICE_PURPOSES: 'test',
      });
      const platform = await world.tokenFor({ roles: ['platform-admin'] });
      const create = (id: string) => world.call('POST', '/tenants', { id }, platform).then(({ status }) => status);
      expect(await create('acme')).toBe(201);
      expect([max, await create('globex')]).toEqual([max, profile === 'cluster' && max !== '1' ? 201 : 409]);
      // One that is there is a no-op at the cap too.
      expect(await create('acme')).toBe(200);
    }
  });
});

describe('priority queues', () => {
  test('QueueFull: with all of them full a query is 429 REL_QUEUE_FULL, to be tried again', async () => {
    const world = await opened({ SERVICE_MAX_RUNNING_QUERIES: '1', SERVICE_QUERY_QUEUE_MAX: '0' });
    const release = await held(world, bearer(world.token));
    for (const reply of [
      await world.query(question),
      await world.call('POST', '/query/arrow', { sql: question }),
      await world.call('GET', '/audit/count'),
    ]) {
      expect(codeOf(reply)).toEqual([429, 'REL_QUEUE_FULL']);
      expect([seconds(reply), reply.json['retryable']]).toEqual([1, true]);
    }
    // What runs no query goes ahead: writing, one's own tokens, health, and the record of what is malformed.
    expect((await world.call('POST', '/ingest?object_type=Note', [{ id: 'a' }])).status).toBe(200);
    expect((await world.call('GET', '/tokens/self')).status).toBe(200);
    expect((await world.call('GET', '/health/ready')).status).toBe(200);
    expect((await world.call('POST', '/query', '{')).status).toBe(400);
    await release();
    expect((await world.query(question)).status).toBe(200);
  });

  test('who waits is answered once there is a place, exports after questions, low after both', async () => {
    const world = await opened({ SERVICE_MAX_RUNNING_QUERIES: '1' });
    const low = await world.tokenFor({ principal: 'low', attributes: { priority: 'low' } });
    const release = await held(world, bearer(world.token));
    const order: string[] = [];
    const note = (name: string) => (reply: Reply) => order.push(`${name} ${reply.status}`);
    const arrived = () => new Promise((resolve) => setTimeout(resolve, 100));
    const asked = [world.query(question, low).then(note('low'))];
    await arrived();
    asked.push(world.call('GET', `/export?sql=${encodeURIComponent(question)}`).then(note('export')));
    await arrived();
    for (let i = 0; i < 3; i++) asked.push(world.query(question).then(note('query')));
    await arrived();
    expect(order).toEqual([]);
    await release();
    await Promise.all(asked);
    // An export is sent in pieces: its last one may arrive behind the answer that had its turn after it.
    expect(order.slice(0, 3)).toEqual(['query 200', 'query 200', 'query 200']);
    expect(order.slice(3).sort()).toEqual(['export 200', 'low 200']);
  });

  test('who goes away leaves the line, and is on record as gone', async () => {
    const world = await opened({ SERVICE_MAX_RUNNING_QUERIES: '1', SERVICE_QUERY_QUEUE_MAX: '1' });
    const release = await held(world, bearer(world.token));
    const body = JSON.stringify({ sql: question });
    const leaving = connect(world.door.port, '127.0.0.1', () =>
      leaving.write(
        `POST /query HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${world.token}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      ),
    );
    leaving.on('error', () => undefined);
    await new Promise((resolve) => setTimeout(resolve, 100));
    leaving.destroy();
    const codes = async () => {
      const found: (string | null)[] = [];
      for await (const { body: entry } of world.service.store.log.read(0)) {
        if (entry.kind === 'access') found.push(...entry.records.map(({ code }) => code));
      }
      return found;
    };
    await expect.poll(codes).toContain('REL_CANCELLED');
    expect((await codes()).filter((code) => code === 'REL_CANCELLED').length).toBe(1);
    await release();
    expect((await world.query(question)).status).toBe(200);
  });

  test('a drain answers who waits with REL_UNAVAILABLE', async () => {
    const world = await opened({ SERVICE_MAX_RUNNING_QUERIES: '1' });
    const release = await held(world, bearer(world.token));
    const waits = world.query(question);
    await new Promise((resolve) => setTimeout(resolve, 100));
    const drained = world.service.gate.drain();
    expect(codeOf(await waits)).toEqual([503, 'REL_UNAVAILABLE']);
    await release();
    await drained;
  });
});

/** Nothing becomes durable while it is held. */
class HeldDisk extends MemoryDisk {
  hold: Promise<void> | null = null;

  override async open(path: string, mode: 'read' | 'write' | 'create'): Promise<DiskFile> {
    const file = await super.open(path, mode);
    const sync = file.sync.bind(file);
    return Object.assign(file, {
      sync: async (inTurn?: boolean): Promise<void> => {
        await this.hold;
        return sync(inTurn);
      },
    });
  }
}

describe('bounded ingest queue: SERVICE_INGEST_QUEUE_MB', () => {
  test('a small body beyond it is 429 REL_QUEUE_FULL, a stream is read no further until there is room', async () => {
    const disk = new HeldDisk();
    const world = await opened({ SERVICE_INGEST_QUEUE_MB: '1' }, { disk });
    let release!: () => void;
    disk.hold = new Promise((resolve) => (release = resolve));
    const text = 'x'.repeat(1_000);
    const lines = Array.from({ length: 4_000 }, (_, i) => `{"id":"n${i}","text":"${text}"}\n`).join('');
    const settled: string[] = [];
    const stream = world.call('POST', '/ingest?object_type=Note', lines);
    void stream.then(() => settled.push('stream'));
    await new Promise((resolve) => setTimeout(resolve, 500));
    // Refused when it comes; told once its record is written, which comes after the fsync that is under way.
    const refused = world.call('POST', '/ingest?object_type=Note', '{"id":"small"}');
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(settled).toEqual([]);
    disk.hold = null;
    release();
    const small = await refused;
    expect(codeOf(small)).toEqual([429, 'REL_QUEUE_FULL']);
    expect([seconds(small), small.json['retryable']]).toEqual([1, true]);
    expect((await stream).json['accepted']).toBe(4_000);
    expect((await world.call('POST', '/ingest?object_type=Note', '{"id":"small"}')).status).toBe(200);
    // In the order of the body, whatever waited.
    const ids = await world.rows("SELECT id FROM Note WHERE id <> 'small' LIMIT 5000");
    expect(ids.map(({ id }) => id)).toEqual(Array.from({ length: 4_000 }, (_, i) => `n${i}`));
  });
});

describe('Rate limits: SERVICE_RATE_LIMIT_RPS, SERVICE_READ_RATE_LIMIT_RPS, SERVICE_MEMORY_RATE_LIMIT_RPS', () => {
  /** Not described while they are not built. */
  const laterRoutes = ['POST /mcp/tools/call', 'GET /cluster/nodes', 'GET /rules'];

  test('every route has a bucket, and its 429 the four headers, whether or not the caller is known', async () => {
    // Its time stands still: a bucket that fills again meanwhile would let through a stream, which never ends.
    const began = systemClock.monotonicMs();
    const world = await opened(
      {
        SERVICE_READ_RATE_LIMIT_RPS: '2',
        SERVICE_RATE_LIMIT_RPS: '3',
        SERVICE_MEMORY_RATE_LIMIT_RPS: '4',
      },
      { clock: { ...systemClock, monotonicMs: () => began } },
    );
    const described = await untilAnswered(world);
    const limits = new Map<string, string>();
    for (const route of [...described, ...laterRoutes]) {
      const [method, path] = route.split(' ') as [string, string];
      let reply: Reply;
      let tries = 0;
      do {
        const body = method === 'GET' ? undefined : '{}';
        reply = await send(world.door.port, method, path, body, tries % 2 ? {} : bearer(world.token));
      } while (reply.status !== 429 && ++tries < 20);
      expect([route, ...codeOf(reply)]).toEqual([route, 429, 'REL_RATE_LIMITED']);
      expect(reply.headers).toMatchObject({ 'retry-after': '1', 'x-ratelimit-remaining': '0' });
      const now = Date.now() / 1000;
      const reset = Number(reply.headers['x-ratelimit-reset']);
      expect(Number.isInteger(reset) && reset >= Math.floor(now) && reset <= now + 2).toBe(true);
      expect(reply.json['retryable']).toBe(true);
      limits.set(route, reply.headers['x-ratelimit-limit'] as string);
    }
    const of = (limit: string) => [...limits].filter(([, each]) => each === limit).map(([route]) => route);
    expect(of('4')).toEqual(described.filter((route) => route.includes(' /memory/')));
    expect(of('4').length).toBeGreaterThan(10);
    expect(of('3')).toEqual(
      expect.arrayContaining(['POST /ingest', 'POST /types', 'POST /ingest/bulk', 'POST /tokens/self/rotate']),
    );
    expect(of('2')).toEqual(
      expect.arrayContaining(['POST /query', 'GET /audit/entries', 'GET /metrics', 'POST /api/v1/audit/export']),
    );
    expect(of('2').length + of('3').length + of('4').length).toBe(limits.size);
    // Probes have none.
    for (let i = 0; i < 10; i++) expect((await send(world.door.port, 'GET', '/health')).status).toBe(200);
  });

  async function untilAnswered(world: StoreWorld): Promise<string[]> {
    const reply = await world.call('GET', '/openapi.json');
    const { paths } = reply.json as { paths: Record<string, object> };
    return Object.entries(paths)
      .filter(([path]) => !/^\/(health|version)/.test(path))
      .flatMap(([path, methods]) =>
        Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{[^}]*\}/g, 'x')}`),
      );
  }

  test('an address has its own: the other’s is full', async () => {
    const world = await opened({ SERVICE_READ_RATE_LIMIT_RPS: '2' });
    const from = (localAddress: string) =>
      new Promise<string>((resolve, reject) => {
        const socket = connect({ port: world.door.port, host: '127.0.0.1', localAddress }, () =>
          socket.write(`GET /status HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-forwarded-for: 1.2.3.4\r\n\r\n`),
        );
        let text = '';
        socket.on('data', (chunk) => (text += chunk.toString('latin1')));
        socket.on('close', () => resolve(text.slice(9, 12)));
        socket.on('error', reject);
      });
    const first = await Promise.all(Array.from({ length: 4 }, () => from('127.0.0.1')));
    expect(first.toSorted((a, b) => a.localeCompare(b))).toEqual(['401', '401', '429', '429']);
    expect(await from('127.0.0.2')).toBe('401');
  });
});

describe('Graceful drain: SERVICE_DRAIN_TIMEOUT_SECS, 30', () => {
  test('running queries are waited for, no longer than that; what came after it is refused', async () => {
    expect(defaults.SERVICE_DRAIN_TIMEOUT_SECS).toBe(30);
    const world = await opened();
    const release = await held(world, bearer(world.token));
    const closing = world.service.close(5_000);
    const request = { action: 'query', purpose: null, correlationId: 'late' } as const;
    const late = world.service.gate.invoke(analyst, request, async (invocation) => invocation.snapshot());
    await expect(late).rejects.toMatchObject({ code: 'REL_UNAVAILABLE' });
    await release();
    expect(await closing).toBe(true);
  });

  test('a query that outlasts it is left behind, and that is said', async () => {
    const world = await opened();
    const release = await held(world, bearer(world.token));
    expect(await world.service.close(50)).toBe(false);
    await release().catch(() => undefined);
  });
});
