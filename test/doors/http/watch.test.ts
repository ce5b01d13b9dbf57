/** GET /watch/stream over the whole store. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { EventStream, type StreamedEvent } from './event-stream.ts';
import { StoreWorld } from './store-world.ts';

type Headers = Readonly<Record<string, string>>;

let world: StoreWorld;
beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_MAX_WATCH_SUBSCRIPTIONS: '12' });
  await world.call('POST', '/types', {
    name: 'Ship',
    properties: { key: 'string', port: 'string', tons: 'integer' },
    primary_key: 'key',
  });
});
afterAll(() => world.close());

function stream(parameters: Record<string, string>, headers: Headers = {}): EventStream {
  const query = new URLSearchParams(parameters).toString();
  return new EventStream(world.door.port, `/watch/stream?${query}`, { authorization: `Bearer ${world.token}`, ...headers });
}

const follow = (sql: string, headers: Headers = {}, more: Record<string, string> = {}): EventStream =>
  stream({ sql, purpose: 'test', ...more }, headers);

async function put(rows: readonly object[], headers: Headers = {}): Promise<bigint> {
  const { text } = await world.call(
    'POST',
    '/ingest?object_type=Ship',
    rows.map((row) => JSON.stringify(row)).join('\n'),
    headers,
  );
  return BigInt(/"system_from_last":(\d+)/.exec(text)![1]!);
}

const shown = ({ event, data }: StreamedEvent): unknown[] => {
  const { row, before } = JSON.parse(data) as { row: object | null; before?: object };
  return before === undefined ? [event, row] : [event, row, before];
};

const toldBy = (events: readonly StreamedEvent[]): unknown[] => events.filter(({ event }) => event !== 'heartbeat').map(shown);

const ready = (events: readonly StreamedEvent[]): boolean => events.some(({ event }) => event === 'heartbeat');
const after = (count: number) => (events: readonly StreamedEvent[]) => toldBy(events).length >= count;

describe('what is told', () => {
  test('rows as they were, then what comes, changes, stops matching and ends', async () => {
    await put([{ key: 'a1', port: 'Kiel', tons: 5 }]);
    await put([{ key: 'a2', port: 'Oslo', tons: 5 }]);
    const open = follow("SELECT key, tons FROM Ship WHERE port = 'Kiel' AND key LIKE 'a%'");
    await open.until(ready);
    expect(toldBy(open.events)).toEqual([['insert', { key: 'a1', tons: 5 }]]);
    const first = await put([{ key: 'a3', port: 'Kiel', tons: 7 }]);
    await put([{ key: 'a3', port: 'Kiel', tons: 8 }]);
    await put([{ key: 'a2', port: 'Kiel', tons: 5 }]);
    await put([{ key: 'a1', port: 'Rome', tons: 5 }]);
    await world.call('DELETE', '/types/Ship/a3');
    // What is removed for good before it was told is not told any more.
    await open.until(after(6));
    await world.call('DELETE', '/types/Ship/a2?hard=true');
    await open.until(after(7));
    await open.close();
    expect(toldBy(open.events)).toEqual([
      ['insert', { key: 'a1', tons: 5 }],
      ['insert', { key: 'a3', tons: 7 }],
      ['update', { key: 'a3', tons: 8 }, { key: 'a3', tons: 7 }],
      ['insert', { key: 'a2', tons: 5 }],
      ['leave', null, { key: 'a1', tons: 5 }],
      ['delete', null, { key: 'a3', tons: 8 }],
      ['delete', null, { _pk: 'a2', namespace_path: null }],
    ]);
    const told = open.events.filter(({ id, event }) => id !== null && event !== 'heartbeat');
    expect(told[0]!.id).toBe(first.toString());
    expect(told.every(({ id, data }) => data.includes(`"system_from":${id},`))).toBe(true);
  });
});

/** Rows by system_from, as somebody has them who applies what is told. Texts, so that no digit is lost. */
class Follower {
  readonly rows = new Map<string, string>();

  apply(events: readonly StreamedEvent[]): this {
    for (const { event, data } of events) {
      if (event === 'heartbeat') continue;
      const { row, before, removed } = partsOf(data);
      if (removed) {
        for (const [key, text] of this.rows) if (namesOf(text) === namesOf(before!)) this.rows.delete(key);
        continue;
      }
      if (before !== null) expect(this.rows.delete(identity(before))).toBe(true);
      if (row !== null) this.rows.set(identity(row), row);
    }
    return this;
  }

  get sorted(): string[] {
    return [...this.rows.values()].sort();
  }
}

/** Row and `before` as they are written: neither holds braces in these tests. */
function partsOf(data: string): { row: string | null; before: string | null; removed: boolean } {
  const row = /"row":(null|\{[^}]*\})/.exec(data)![1]!;
  const before = /"before":(\{[^}]*\})/.exec(data)?.[1] ?? null;
  return { row: row === 'null' ? null : row, before, removed: data.endsWith('"removed":true}') };
}

const identity = (row: string): string => /"system_from":(\d+)/.exec(row)![1]!;
const namesOf = (row: string): string => `${/"_pk":"[^"]*"/.exec(row)![0]}${/"namespace_path":[^,}]*/.exec(row)![0]}`;

class Scribe {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  below(limit: number): number {
    return (this.#state = (this.#state * 48_271) % 2_147_483_647) % limit;
  }

  /** One random write, in one of the paths; returns its last instant, 0 where it wrote nothing. */
  async write(removals: boolean): Promise<void> {
    const scope = { 'x-organization-id': ['fleet', 'fleet/north', 'rival'][this.below(3)]! };
    const key = `m${this.below(6)}`;
    const row = { key, port: ['Kiel', 'Oslo'][this.below(2)], tons: this.below(50) };
    const from = Date.UTC(2020, this.below(12)) * 1e6;
    switch (this.below(removals ? 8 : 6)) {
      case 0:
        await world.call('DELETE', `/types/Ship/${key}`, undefined, scope);
        return;
      case 1:
        await put([{ ...row, valid_from: from, valid_to: from + 86_400e9 * (1 + this.below(200)) }], scope);
        return;
      case 2:
        // Several versions of one key in one entry.
        await put(
          [row, { ...row, tons: this.below(50) }, { ...row, valid_from: from }, { ...row, key: `m${this.below(6)}` }],
          scope,
        );
        return;
      case 7:
        await world.call('DELETE', `/types/Ship/${key}?hard=true`, undefined, scope);
        return;
      default:
        await put([row], scope);
    }
  }
}

const watched = "SELECT * FROM Ship WHERE port = 'Kiel' AND tons < 40";
const fleet = { 'x-organization-id': 'fleet' };

/** What a subscription of now begins with. */
async function begun(sql: string, headers: Headers): Promise<string[]> {
  const open = follow(sql, headers);
  await open.until(ready);
  await open.close();
  return new Follower().apply(open.events).sorted;
}

describe('nothing missing, nothing twice', () => {
  test.each([11, 12, 13])('rows at the beginning and what is told since are the rows at the end, seed %i', async (seed) => {
    const scribe = new Scribe(seed);
    for (let i = 0; i < 10; i++) await scribe.write(true);
    const open = follow(watched, fleet);
    for (let i = 0; i < 40; i++) await scribe.write(true);
    await open.until(ready);
    for (let i = 0; i < 40; i++) await scribe.write(true);
    const last = await put([{ key: 'last', port: 'Kiel', tons: 1 }], fleet);
    await open.until((events) => events.some(({ id }) => id === last.toString()));
    await open.close();
    const told = open.events.filter(({ event }) => event !== 'heartbeat');
    expect(new Follower().apply(told).sorted).toEqual(await begun(watched, fleet));
    const ids = told
      .map(({ id }) => id)
      .filter((id) => id !== null)
      .map(BigInt);
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => (a < b ? -1 : 1)));
    expect(told.some(({ data }) => data.includes('rival'))).toBe(false);
  });

  test('the rows are those of AS OF SYSTEM TIME, without what a DELETE left', async () => {
    const own = { 'x-organization-id': 'harbour' };
    for (let i = 0; i < 6; i++) await put([{ key: `h${i % 4}`, port: 'Kiel', tons: i }], own);
    await put([{ key: 'h1', port: 'Kiel', tons: 3, valid_from: 1, valid_to: 5 }], own);
    const { json } = await world.query("SELECT key, tons FROM Ship AS OF SYSTEM TIME '2100-01-01' WHERE port = 'Kiel'", own);
    const initial = follow("SELECT key, tons FROM Ship WHERE port = 'Kiel'", own);
    await initial.until(ready);
    expect(toldBy(initial.events)).toEqual((json['rows'] as object[]).map((row) => ['insert', row]));
    await world.call('DELETE', '/types/Ship/h0', undefined, own);
    await initial.until(after((json['row_count'] as number) + 1));
    await initial.close();
    expect(await begun("SELECT key, tons, system_from FROM Ship WHERE key = 'h0'", own)).toEqual([]);
  });

  test('a stream resumed after any of its events goes on as it did', async () => {
    const scribe = new Scribe(99);
    const open = follow(watched, fleet);
    await open.until(ready);
    for (let i = 0; i < 40; i++) await scribe.write(false);
    const last = await put([{ key: 'last', port: 'Kiel', tons: 2 }], fleet);
    const isLast = (events: readonly StreamedEvent[]): boolean => events.some(({ id }) => id === last.toString());
    await open.until(isLast);
    await open.close();
    const plain = ({ id, event, data }: StreamedEvent): unknown => [id, event, data.replace(/"subscription":"[^"]*"/, '')];
    const beats = open.events.findIndex(({ event }) => event === 'heartbeat');
    const told = open.events.slice(beats + 1);
    expect(told.length).toBeGreaterThan(10);
    for (let i = 0; i < told.length - 1; i++) {
      const { id } = told[i]!;
      if (id === null) continue;
      const again = follow(watched, { ...fleet, 'last-event-id': id });
      await again.until(isLast);
      await again.close();
      expect(again.events.filter(({ event }) => event !== 'heartbeat').map(plain)).toEqual(told.slice(i + 1).map(plain));
    }
  });

  test('not even across a restart', async () => {
    const disk = new MemoryDisk();
    const first = await StoreWorld.open({}, { disk });
    const streamOf = (of: StoreWorld, token: string, more: Headers = {}): EventStream =>
      new EventStream(of.door.port, `/watch/stream?purpose=test&sql=${encodeURIComponent('SELECT id, n FROM Note')}`, {
        authorization: `Bearer ${token}`,
        ...more,
      });
    await first.call('POST', '/ingest/auto?object_type=Note', [{ id: 'a', n: 1 }]);
    const open = streamOf(first, first.token);
    await open.until(ready);
    const { lastId } = open;
    await first.call('POST', '/ingest/auto?object_type=Note', [{ id: 'a', n: 2 }]);
    await first.call('DELETE', '/types/Note/a?hard=true');
    await first.call('POST', '/ingest/auto?object_type=Note', [{ id: 'b', n: 3 }]);
    await first.close();
    await open.untilEnded();
    expect(open.events.at(-1)).toMatchObject({ event: 'error', data: expect.stringContaining('REL_UNAVAILABLE') });
    const second = await StoreWorld.open({}, { disk });
    const again = streamOf(second, first.token, { 'last-event-id': lastId! });
    await again.until(after(2));
    await again.close();
    // The version in between went with the key that was removed for good.
    expect(toldBy(again.events)).toEqual([
      ['delete', null, { _pk: 'a', namespace_path: null }],
      ['insert', { id: 'b', n: 3 }],
    ]);
    await second.close();
  });

  test('a registration fixes its instant: what came before somebody followed it is told', async () => {
    const own = { 'x-organization-id': 'dock' };
    await put([{ key: 'd1', port: 'Kiel', tons: 1 }], own);
    const registered = await world.query("WATCH PURPOSE 'test' SELECT key, tons FROM Ship", own);
    const [answer] = registered.json['rows'] as { subscription: string; stream: string; type: string }[];
    expect([registered.status, answer!.type]).toEqual([200, 'Ship']);
    await put([{ key: 'd1', port: 'Kiel', tons: 2 }], own);
    const open = stream({ subscription: answer!.subscription }, own);
    await open.until(after(2));
    expect(toldBy(open.events)).toEqual([
      ['insert', { key: 'd1', tons: 1 }],
      ['update', { key: 'd1', tons: 2 }, { key: 'd1', tons: 1 }],
    ]);
    expect(BigInt(open.events[1]!.id!)).toBe(BigInt(/"as_of_system":(\d+)/.exec(registered.text)![1]!));
    const twice = await world.call('GET', `/watch/stream?subscription=${answer!.subscription}`, undefined, own);
    expect(twice.status).toBe(409);
    await open.close();
    const back = stream({ subscription: answer!.subscription, last_event_id: open.lastId! }, own);
    await put([{ key: 'd2', port: 'Kiel', tons: 3 }], own);
    await back.until(after(1));
    expect(toldBy(back.events)).toEqual([['insert', { key: 'd2', tons: 3 }]]);
    await back.close();
    const other = await world.call('GET', `/watch/stream?subscription=${answer!.subscription}`, undefined, {
      'x-organization-id': 'rival',
    });
    expect(other.status).toBe(404);
  });
});

describe('who is told', () => {
  test('what the path covers and nothing else; the writes of others leave no record either', async () => {
    const tenant = await world.tokenFor({ tenant_id: 'quiet', principal: 'watcher', purposes: ['test'] });
    const open = new EventStream(
      world.door.port,
      `/watch/stream?purpose=test&sql=${encodeURIComponent('SELECT key FROM Ship')}`,
      tenant,
    );
    await open.until(ready);
    const recorded = async (): Promise<number> =>
      (await world.call('GET', '/audit/count', undefined, tenant)).json['count'] as number;
    await put([{ key: 'mine', port: 'Kiel', tons: 1 }], { 'x-organization-id': 'quiet/berth' });
    await open.until(after(1));
    const before = await recorded();
    for (let i = 0; i < 20; i++)
      await put([{ key: `theirs${i}`, port: 'Kiel', tons: 1 }], { 'x-organization-id': ['loud', 'quiet-evil'][i % 2]! });
    await put([{ key: 'nobody', port: 'Kiel', tons: 1 }]);
    await world.call('DELETE', '/types/Ship/theirs1?hard=true', undefined, { 'x-organization-id': 'quiet-evil' });
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(await recorded()).toBe(before + 1);
    expect(toldBy(open.events)).toEqual([['insert', { key: 'mine' }]]);
    await open.close();
    const { json } = await world.call('GET', '/audit/entries?action=watch', undefined, tenant);
    const entries = json['entries'] as Record<string, unknown>[];
    expect(entries.map((entry) => [entry['purpose'], entry['principal'], entry['object_type']])).toEqual(
      entries.map(() => ['test', 'watcher', 'Ship']),
    );
    expect(entries.map((entry) => entry['row_count']).filter((count) => count === 1).length).toBe(1);
  });

  test('nobody whose token was revoked, and they learn of it', async () => {
    const minted = await world.admin('POST', '/admin/tokens', { principal: 'brief' });
    const open = new EventStream(
      world.door.port,
      `/watch/stream?purpose=test&sql=${encodeURIComponent('SELECT key FROM Ship')}`,
      {
        authorization: `Bearer ${minted.json['token'] as string}`,
      },
    );
    await open.until(ready);
    expect((await world.admin('DELETE', `/admin/tokens/${minted.json['id'] as string}`)).status).toBeLessThan(300);
    await open.untilEnded();
    expect(open.events.at(-1)).toMatchObject({ event: 'error', data: expect.stringContaining('REL_UNAUTHENTICATED') });
  });

  test('nobody without a purpose, or with one that is not registered', async () => {
    for (const [parameters, code] of [
      [{ sql: 'SELECT key FROM Ship' }, 'REL_PURPOSE'],
      [{ sql: 'SELECT key FROM Ship', purpose: 'nosiness' }, 'REL_PURPOSE_UNKNOWN'],
      [{ sql: "WATCH PURPOSE 'nosiness' SELECT key FROM Ship" }, 'REL_PURPOSE_UNKNOWN'],
      [{ sql: "WATCH PURPOSE 'test' SELECT key FROM Ship", purpose: 'analytics' }, 'REL_INVALID'],
    ] as const) {
      const refused = stream(parameters);
      await refused.untilEnded();
      expect([refused.status >= 400, refused.body]).toEqual([true, expect.stringContaining(`/${code}"`)]);
    }
  });

  test('so many of a tenant and no more, others not counted', async () => {
    const own = { 'x-organization-id': 'crowd' };
    const watch = (headers: Headers): Promise<{ status: number; json: Record<string, unknown> }> =>
      world.query("WATCH PURPOSE 'test' SELECT key FROM Ship", headers);
    for (let i = 0; i < 12; i++)
      expect((await watch({ 'x-organization-id': i % 2 === 0 ? 'crowd' : 'crowd/below' })).status).toBe(200);
    const refused = await watch(own);
    expect([refused.status, refused.json['type']]).toEqual([429, expect.stringContaining('REL_WATCH_LIMIT')]);
    const elsewhere = await watch({ 'x-organization-id': 'calm' });
    expect(elsewhere.status).toBe(200);
  });

  test('on their branch, and not what happens on another', async () => {
    await put([
      { key: 'br-old', port: 'Kiel', tons: 1 },
      { key: 'br-theirs', port: 'Kiel', tons: 1 },
    ]);
    await world.call('POST', '/v1/namespaces/what-if/branch', { branch_from: 'main' });
    const open = follow("SELECT key FROM Ship WHERE key LIKE 'br%'", {}, { branch: 'what-if' });
    await open.until(ready);
    await put([{ key: 'br-main', port: 'Kiel', tons: 1 }]);
    await put([{ key: 'br-theirs', port: 'Kiel', tons: 1 }], { 'x-service-branch': 'what-if' });
    // A hard delete reaches what was forked from its branch, save what that wrote itself.
    await world.call('DELETE', '/types/Ship/br-old?hard=true');
    await world.call('DELETE', '/types/Ship/br-theirs?hard=true');
    await put([{ key: 'br-there', port: 'Kiel', tons: 1 }], { 'x-service-branch': 'what-if' });
    await open.until(after(5));
    await open.close();
    expect(toldBy(open.events)).toEqual([
      ['insert', { key: 'br-old' }],
      ['insert', { key: 'br-theirs' }],
      ['update', { key: 'br-theirs' }, { key: 'br-theirs' }],
      ['delete', null, { _pk: 'br-old', namespace_path: null }],
      ['insert', { key: 'br-there' }],
    ]);
  });
});

describe('what can be watched', () => {
  test.each([
    ['SELECT COUNT(*) FROM Ship', 'aggregates'],
    ['SELECT port, COUNT(*) FROM Ship GROUP BY port', 'GROUP BY'],
    ['SELECT a.key FROM Ship a JOIN Ship b ON a.key = b.key', 'joins'],
    ['SELECT DISTINCT port FROM Ship', 'DISTINCT'],
    ['SELECT key FROM Ship ORDER BY key', 'ORDER BY'],
    ['SELECT key FROM Ship LIMIT 3', 'LIMIT'],
    ['SELECT key FROM Ship AS OF CURRENT', 'AS OF'],
    ["SELECT key FROM Ship AS OF SYSTEM TIME '2024-01-01'", 'AS OF'],
    ['SELECT key FROM Ship WHERE valid_from < now()', 'now()'],
    ['SELECT key FROM Ship WHERE key IN (SELECT key FROM Ship)', 'subqueries'],
    ['SELECT key FROM Ship UNION SELECT key FROM Ship', 'set operations'],
    ['WITH x AS (SELECT key FROM Ship) SELECT key FROM x', 'WITH'],
    ['SELECT key FROM (SELECT key FROM Ship) s', 'subqueries'],
    ['SELECT LOOKUP t(key) -> v AS v FROM Ship', 'lookup'],
    ['SELECT nothing FROM Ship', '1:29: type "Ship" has no column "nothing"'],
    ['SELECT key FROM Nothing', 'not registered'],
    ['SELECT * FROM SourceTrueIdentity', 'classified'],
  ])('not %s', async (sql, why) => {
    const reply = await world.query(`WATCH PURPOSE 'test' ${sql}`);
    expect([reply.status >= 400 && reply.status < 500, reply.json['detail']]).toEqual([true, expect.stringContaining(why)]);
  });

  test('what holds at an instant of the valid axis, and every integer to its last digit', async () => {
    const own = { 'x-organization-id': 'valid' };
    const open = follow("SELECT key, tons FROM Ship AS OF '2021-06-01' WHERE tons > 9007199254740992", own);
    await open.until(ready);
    const body = (from: string, tons: string): string =>
      `{"key":"v","port":"Kiel","tons":${tons},"valid_from":"${from}","valid_to":"2022-01-01"}`;
    await world.call('POST', '/ingest?object_type=Ship', body('2021-07-01', '9223372036854775807'), own);
    await world.call('POST', '/ingest?object_type=Ship', body('2021-01-01', '9007199254740993'), own);
    await open.until(after(1));
    await open.close();
    expect(open.events.filter(({ event }) => event === 'insert').map(({ data }) => /"row":(.*)\}$/.exec(data)![1])).toEqual([
      '{"key":"v","tons":9007199254740993}',
    ]);
  });
});
