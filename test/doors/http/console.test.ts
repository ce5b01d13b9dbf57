/** The pages' server half: who gets a session, what it may do, and what another page of the same machine may not. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Clock } from '../../../src/clock.ts';
import { systemClock, systemRandom } from '../../../src/clock.ts';
import { makePage } from '../../../src/doors/http/console/pages.ts';
import { BrowserSessions } from '../../../src/doors/http/console/browser-sessions.ts';
import { type Reply, send } from './door-world.ts';
import { adminSecret, StoreWorld } from './store-world.ts';

type Headers = Record<string, string>;

/** A page of ours as a browser would show itself to the server. */
class Page {
  cookie = '';
  secret = '';
  readonly #port: number;
  readonly #mount: string;

  constructor(port: number, mount = '/admin/console') {
    this.#port = port;
    this.#mount = mount;
  }

  get own(): Headers {
    const host = `127.0.0.1:${this.#port}`;
    return {
      host,
      origin: `http://${host}`,
      'sec-fetch-site': 'same-origin',
      ...(this.cookie && { cookie: this.cookie }),
      ...(this.secret && { 'x-annals-session': this.secret }),
    };
  }

  call(method: string, path: string, body?: unknown, headers: Headers = {}): Promise<Reply> {
    return send(this.#port, method, this.#mount + path, body, { ...this.own, ...headers });
  }

  async signIn(body: object): Promise<Reply> {
    const reply = await this.call('POST', '/session', body);
    this.cookie = String(reply.headers['set-cookie'] ?? '').split(';')[0]!;
    this.secret = reply.json['secret'] as string;
    return reply;
  }
}

let world: StoreWorld;
let clerk: string;
beforeAll(async () => {
  world = await StoreWorld.open();
  await world.call('POST', '/ingest/auto?object_type=Note', '{"id":"n1","text":"it rains"}');
  clerk = (await world.admin('POST', '/admin/tokens', { principal: 'clerk', roles: ['clerk'] })).json['id'] as string;
});
afterAll(() => world.close());

const note = { sql: 'SELECT text FROM Note AS OF CURRENT' };
const opened = async (body: object = { admin: adminSecret }): Promise<Page> => {
  const page = new Page(world.door.adminPort);
  expect((await page.signIn(body)).status).toBe(200);
  return page;
};

describe('a session', () => {
  test('begins with ?token=, which leaves the address, and its secret is given out once', async () => {
    const reply = await send(world.door.adminPort, 'GET', `/admin/console?token=${adminSecret}`);
    expect([reply.status, reply.headers['location']]).toEqual([303, '/admin/console']);
    expect(reply.headers['set-cookie']?.[0]).toMatch(
      /^annals-console-\d+=[\w-]{43}; Path=\/admin\/console; HttpOnly; SameSite=Strict$/,
    );
    const page = new Page(world.door.adminPort);
    page.cookie = reply.headers['set-cookie']![0]!.split(';')[0]!;
    const thief = new Page(world.door.adminPort);
    thief.cookie = page.cookie;
    expect((await page.signIn({})).json['administrator']).toBe(true);
    // The cookie alone is worth nothing, and who tries to claim with it ends the session.
    expect((await thief.call('GET', '/session')).status).toBe(401);
    expect((await thief.call('POST', '/session', {})).status).toBe(401);
    expect((await page.call('GET', '/session')).status).toBe(401);
  });

  test('reads nothing as the administrator, and asks by the token that it holds', async () => {
    const page = await opened();
    expect((await page.call('POST', '/api/query', note)).status).toBe(403);
    expect((await page.call('PUT', '/session/token', { token: 'ann_no' })).status).toBe(401);
    expect((await page.call('PUT', '/session/token', { token: world.token })).json['caller']).toMatchObject({
      principal: 'tester',
    });
    expect((await page.call('POST', '/api/query', note)).json['rows']).toEqual([{ text: 'it rains' }]);
    expect((await page.call('GET', '/administer/admin/tokens')).status).toBe(200);
    const asked = await page.call('GET', '/api/audit/entries?action=query');
    expect((asked.json['entries'] as object[]).at(-1)).toMatchObject({
      principal: 'tester',
      door: 'http',
      template: 'SELECT text FROM Note AS OF CURRENT',
    });
    // Neither listener has more than its own routes behind a session.
    expect((await page.call('GET', '/api/admin/tokens')).status).toBe(404);
    expect((await page.call('POST', '/administer/query', note)).status).toBe(404);
  });

  test('acts as a principal for a while, with the reason on record, and the token ends with it', async () => {
    const page = await opened();
    expect((await page.call('POST', '/session/acting', { token_id: clerk, reason: ' ' })).status).toBe(400);
    const acting = await page.call('POST', '/session/acting', { token_id: clerk, reason: 'ticket 71' });
    expect(acting.json).toMatchObject({ caller: { principal: 'clerk', roles: ['clerk'] }, acting: { reason: 'ticket 71' } });
    expect(acting.text).not.toContain('ann_');
    expect((await page.call('POST', '/session/acting', { token_id: clerk, reason: 'again' })).status).toBe(409);
    expect((await page.call('POST', '/api/query', note)).status).toBe(200);
    const before = (await world.admin('GET', '/admin/tokens')).json['tokens'] as object[];
    expect((await page.call('DELETE', '/session/acting')).json).toMatchObject({ caller: null, acting: null });
    expect(((await world.admin('GET', '/admin/tokens')).json['tokens'] as object[]).length).toBe(before.length - 1);
    const { entries } = (await world.admin('GET', '/admin/audit/entries?action=administer&limit=1000')).json as {
      entries: object[];
    };
    expect(entries).toContainEqual(
      expect.objectContaining({ principal: 'admin', template: 'act as clerk', break_glass: 'ticket 71' }),
    );
  });

  test('ends with its token', async () => {
    const minted = (await world.admin('POST', '/admin/tokens', { principal: 'short' })).json as { id: string; token: string };
    const page = await opened({ token: minted.token });
    expect((await page.call('POST', '/api/query', note)).status).toBe(200);
    await world.admin('DELETE', `/admin/tokens/${minted.id}`);
    expect((await page.call('POST', '/api/query', note)).status).toBe(401);
    expect((await page.call('GET', '/session')).status).toBe(401);
  });

  test('begins with a code that is good once', async () => {
    const { code } = (await world.admin('POST', '/admin/console/codes', {})).json as { code: string };
    await opened({ code });
    expect((await new Page(world.door.adminPort).signIn({ code })).status).toBe(401);
  });

  test.each<[string, Headers]>([
    ['another port', { origin: 'http://127.0.0.1:3000' }],
    ['another port, without an Origin', { 'sec-fetch-site': 'same-site' }],
    ['another name for this machine', { host: 'evil.example:9091', origin: 'http://evil.example:9091' }],
    ['a sandboxed frame', { origin: 'null' }],
  ])('answers no page of %s', async (_, headers) => {
    const page = await opened();
    const claim = { ...headers };
    for (const [method, path] of [
      ['GET', '/session'],
      ['GET', '/administer/admin/tokens'],
      ['DELETE', '/session'],
    ] as const)
      expect((await page.call(method, path, undefined, headers)).status).toBe(403);
    expect((await page.call('POST', '/session', { admin: adminSecret }, claim)).status).toBe(403);
    expect((await page.call('GET', '/session')).status).toBe(200);
  });

  test('is over after half an hour without a request, a code after a minute, an unclaimed one with it', () => {
    let ms = 0;
    const clock: Clock = { ...systemClock, monotonicMs: () => ms };
    const sessions = new BrowserSessions(clock, systemRandom);
    const { session, secret } = sessions.claim(sessions.begin({ token: 't' }).cookie);
    const unclaimed = sessions.begin({ token: 't' }).cookie;
    const code = sessions.mintCode({ token: 't' });
    ms += 29 * 60_000;
    expect(sessions.find(session.cookie, secret)).toBe(session);
    expect(() => sessions.claim(unclaimed)).toThrow('credential');
    expect(() => sessions.redeem(code)).toThrow('credential');
    ms += 30 * 60_000 + 1;
    expect(() => sessions.find(session.cookie, secret)).toThrow('credential');
  });
});

describe('the page', () => {
  test('runs its own scripts alone', () => {
    const files = new Map([['main-1.js', new TextEncoder().encode('1')]]);
    const { html, headers } = makePage({ entry: 'main-1.js', styles: 'a{}', files, aliases: { v: 'main-1.js' } }, '/workbench');
    const policy = headers['content-security-policy']!;
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("'sha256-a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s='");
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
    expect(policy).toMatch(/frame-ancestors 'none'.*require-trusted-types-for 'script'/);
    expect(html).toContain('src="/workbench/files/main-1.js" integrity="sha256-a4ayc');
  });

  test('is shown to a browser without a credential, and holds no data', async () => {
    const reply = await send(world.door.adminPort, 'GET', '/admin/console', undefined, { accept: 'text/html' });
    expect([200, 501]).toContain(reply.status);
    expect((await send(world.door.adminPort, 'GET', '/admin/console')).status).toBe(401);
  });
});

describe('the workbench', () => {
  test('takes registry tokens alone, on the data listener', async () => {
    const page = new Page(world.door.port, '/workbench');
    expect((await page.signIn({ admin: adminSecret })).status).toBe(401);
    expect((await page.signIn({ token: world.token })).json).toMatchObject({
      administrator: false,
      caller: { principal: 'tester' },
    });
    expect((await page.call('POST', '/api/query', note)).json['rows']).toEqual([{ text: 'it rains' }]);
    expect((await page.call('GET', '/administer/admin/tokens')).status).toBe(404);
    expect((await page.call('DELETE', '/session')).status).toBe(200);
    expect((await page.call('POST', '/api/query', note)).status).toBe(401);
  });

  test('is off where the settings say so', async () => {
    const other = await StoreWorld.open({ SERVICE_WORKBENCH_ENABLE: 'false' });
    for (const path of ['/workbench', '/workbench/session']) expect((await other.call('GET', path)).status).toBe(404);
    await other.close();
  });
});
