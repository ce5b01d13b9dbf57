/**
 * Every invocation is in the audit exactly once, whatever way it ends: every route of the running server, answered, refused,
 * with a broken body, left by its client, and out of time. Records are counted by the correlation ids that replies show.
 */
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { type Every, every, hear, prepared, type Prepared, recordsOf, tokenOf } from '../doors/http/every-route.ts';
import { adminSecret } from '../doors/http/store-world.ts';
import { adminRoutes, dataRoutes } from '../../src/doors/http/routes/all.ts';

const takesBody = ({ route }: Every): boolean => /^(POST|PUT|PATCH) /.test(route);
const costly = new Set(['query', 'search', 'export', 'audit']);
/** Routes without a body that wait for a slot; the audit of tokens is read as what it is only once it has a caller. */
const waitsForTurn = new Set([
  ...[...dataRoutes, ...adminRoutes]
    .filter(({ method, action }) => method === 'GET' && action !== null && costly.has(action))
    .map(({ method, path }) => `${method} ${path}`),
  'GET /tokens/self/audit',
  'GET /admin/tokens/audit',
]);
const shared = every.filter(({ request }) => request.endless !== true && request.goesOn === undefined);

function headOf(one: Prepared, { route, request, admin }: Every, more: Record<string, string | number>): string {
  const [method] = route.split(' ');
  const authorization = `Bearer ${admin ? adminSecret : tokenOf(one, request)}`;
  const headers = Object.entries({ host: 'x', authorization, ...more }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${request.sent(one).path} HTTP/1.1\r\n${headers.join('')}\r\n`;
}

/** A request that goes on: half of its body, or all there is of it. */
function begunOf(one: Prepared, each: Every): string {
  return takesBody(each) ? `${headOf(one, each, { 'content-length': 1000 })}{"id":` : headOf(one, each, { connection: 'close' });
}

interface Talk {
  readonly socket: Socket;
  /** All that came back, once the connection is over. */
  readonly heard: Promise<string>;
}

function talk(one: Prepared, { admin }: Every, bytes: string): Talk {
  const { door } = one.world;
  const socket = connect(admin ? door.adminPort : door.port, '127.0.0.1', () => socket.write(bytes));
  let text = '';
  socket.on('data', (chunk) => (text += chunk.toString('latin1')));
  socket.on('error', () => undefined);
  return { socket, heard: new Promise((resolve) => socket.on('close', () => resolve(text))) };
}

/** In short waits: a process that got no time reads from its sockets between them, however late it is. */
async function rest(ms: number): Promise<void> {
  for (let waited = 0; waited < ms; waited += 25) await new Promise((resolve) => setTimeout(resolve, 25));
}

interface Problem {
  readonly status: number;
  readonly type: string;
  readonly correlation_id: string;
}

const problemIn = (heard: string): Problem => JSON.parse(heard.slice(heard.indexOf('\r\n\r\n') + 4)) as Problem;
const codeOf = ({ type }: Problem): string => type.split('/').at(-1)!;

/** Every id has one record. */
async function onceEach(one: Prepared): Promise<number> {
  const records = await recordsOf(one.world);
  expect([...records].filter(([, codes]) => codes.length !== 1)).toEqual([]);
  return records.size;
}

/** The record of a problem, and no other, says the same code. */
async function recorded(one: Prepared, problem: Problem): Promise<void> {
  expect((await recordsOf(one.world)).get(problem.correlation_id)).toEqual([codeOf(problem)]);
}

describe('once each', () => {
  let one: Prepared;
  const clock = { skewMs: 0 };
  const begin = (): Promise<Prepared> =>
    prepared(
      { SERVICE_MAX_RUNNING_QUERIES: '1', SERVICE_MAX_INFLIGHT_QUERIES: '1000', SERVICE_QUERY_TIMEOUT_SECS: '6' },
      { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + clock.skewMs },
    );
  beforeAll(async () => {
    one = await begin();
  });
  afterAll(() => one.world.close());

  const remaining = shared.filter(({ request, route }) => request.ends !== true && !route.endsWith('rotate'));
  test.each(remaining)('answered: $route', async ({ route, request, admin }) => {
    const before = await onceEach(one);
    const heard = await hear(one, route, request, admin);
    expect(heard.status, heard.text).toBeLessThan(300);
    await expect.poll(() => onceEach(one)).toBe(before + 1);
  });

  test.each(shared)('refused: $route', async (each) => {
    const before = await onceEach(one);
    const { admin, request } = each;
    // A known caller in an organisation that is none of its own; a stranger on the admin listener.
    const more = admin
      ? { authorization: 'Bearer nonsense' }
      : { authorization: `Bearer ${one.acme}`, 'x-organization-id': 'globex' };
    const { heard } = talk(one, { ...each, request }, headOf(one, each, { ...more, 'content-length': 0, connection: 'close' }));
    const problem = problemIn(await heard);
    expect([problem.status, codeOf(problem)]).toEqual(admin ? [401, 'REL_UNAUTHENTICATED'] : [403, 'REL_XORG']);
    await recorded(one, problem);
    expect(await onceEach(one)).toBe(before + 1);
  });

  test('a known caller that is refused is on record by its name', async () => {
    const { json } = await one.world.admin('GET', '/admin/audit/entries?principal=ann&limit=1000');
    const denied = (json['entries'] as Record<string, unknown>[]).filter(({ code }) => code === 'REL_XORG');
    expect(denied.length).toBeGreaterThan(50);
    for (const entry of denied) expect(entry).toMatchObject({ tenant_id: 'acme', organization: 'acme', decision: 'deny' });
  });

  test.each(shared)('broken: $route', async (each) => {
    const before = await onceEach(one);
    const { route, admin } = each;
    // Of texts of rules a broken one is refused by itself, and its request is not.
    const body = takesBody(each) && route !== 'POST /rules/sigma';
    // Without a body it is the branch that a request states in two ways; a line of rows may be broken and its request is not.
    const head = headOf(one, each, {
      'content-length': body ? 1 : 0,
      connection: 'close',
      ...(route.startsWith('POST /ingest') ? { 'x-service-durability': 'never' } : { 'x-service-branch': 'main' }),
    });
    const broken = body
      ? `${head}{`
      : head.replace(/ HTTP\/1\.1/, (end) => `${head.split(' ')[1]!.includes('?') ? '&' : '?'}branch=side${end}`);
    const problem = problemIn(await talk(one, each, broken).heard);
    // A broken message of MCP is answered as JSON-RPC says it.
    if (route === 'POST /mcp') expect(problem).toMatchObject({ error: { code: -32_700 } });
    else {
      expect([route, problem.status]).toEqual([route, admin && !body ? problem.status : 400]);
      await recorded(one, problem);
    }
    expect(await onceEach(one)).toBe(before + 1);
  });

  test('left by its client: every route', async () => {
    const before = await onceEach(one);
    // Nothing that takes a place runs meanwhile: it waits, and is left waiting.
    const release = await hold(one);
    // All but those that would be done before anybody leaves, and end what others ask for.
    const left = shared.filter((each) => takesBody(each) || each.request.ends !== true);
    const talks = left.map((each) => talk(one, each, begunOf(one, each)));
    // What does not arrive whole is looked at after a while, when it comes by the way of small requests.
    await rest(300);
    clock.skewMs += 3_000;
    await rest(1_300);
    for (const { socket } of talks) socket.destroy();
    const gone = async () => [...(await recordsOf(one.world)).values()].flat().filter((code) => code === 'REL_CANCELLED').length;
    const midway = left.filter((each) => takesBody(each) || waitsForTurn.has(each.route)).length;
    await expect.poll(gone, { timeout: 10_000 }).toBe(midway);
    await release();
    // And the one that was in their way.
    await expect.poll(() => onceEach(one), { timeout: 10_000 }).toBe(before + left.length + 1);
  });

  test('out of time: every route that takes a body or waits for its turn', async () => {
    const fresh = await begin();
    const before = await onceEach(fresh);
    const release = await hold(fresh);
    const late = shared.filter((each) => takesBody(each) || waitsForTurn.has(each.route));
    const talks = late.map((each) => talk(fresh, each, begunOf(fresh, each)));
    // No sender keeps a body waiting for so long; what it is cut off from is its connection.
    const ticking = setInterval(() => (clock.skewMs += 40_000), 500);
    const heard = await Promise.all(talks.map((each) => each.heard));
    clearInterval(ticking);
    await release();
    // And the one that was in their way.
    await expect.poll(() => onceEach(fresh), { timeout: 10_000 }).toBe(before + late.length + 1);
    const codes = [...(await recordsOf(fresh.world)).values()].flat();
    expect(codes.filter((code) => code === 'REL_TIMEOUT').length).toBe(late.length);
    for (const [at, each] of late.entries()) {
      if (takesBody(each)) continue;
      const problem = problemIn(heard[at]!);
      expect([each.route, problem.status, codeOf(problem)]).toEqual([each.route, 408, 'REL_TIMEOUT']);
      await recorded(fresh, problem);
    }
    clock.skewMs = 0;
    await fresh.world.close();
  });

  test('answered, where others ask in vain afterwards: the rest of the routes', async () => {
    const ending = shared.filter((each) => !remaining.includes(each));
    expect(remaining.length + ending.length).toBe(shared.length);
    for (const { route, request, admin } of ending) {
      const own = await prepared();
      const before = await onceEach(own);
      expect((await hear(own, route, request, admin)).status, route).toBeLessThan(300);
      await expect.poll(() => onceEach(own)).toBe(before + 1);
      await own.world.close();
    }
  });
});

/** Takes the only place until it is let go. */
async function hold(one: Prepared): Promise<() => Promise<void>> {
  const { service, token } = one.world;
  const caller = service.authenticator.dataCaller({ authorization: `Bearer ${token}`, door: 'http' });
  let release!: () => void;
  const over = new Promise<void>((resolve) => (release = resolve));
  const ended = service.gate.invoke(caller, { action: 'query', purpose: null, correlationId: service.ids.next() }, () => over);
  return async () => {
    release();
    await ended;
  };
}
