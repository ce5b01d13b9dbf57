/** GET /watch/stream without parameters: every subscription of the caller on one stream. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EventStream, type StreamedEvent } from './event-stream.ts';
import { StoreWorld } from './store-world.ts';

let world: StoreWorld;
beforeAll(async () => {
  world = await StoreWorld.open();
  for (const name of ['Ship', 'Port']) {
    await world.call('POST', '/types', { name, properties: { key: 'string', tons: 'integer' }, primary_key: 'key' });
  }
});
afterAll(() => world.close());

type Headers = Readonly<Record<string, string>>;

const all = (headers: Headers): EventStream => new EventStream(world.door.port, '/watch/stream', headers);

async function watch(sql: string, headers: Headers): Promise<string> {
  const { json, text } = await world.query(`WATCH PURPOSE 'test' ${sql}`, headers);
  expect(json['rows'], text).toHaveLength(1);
  return (json['rows'] as { subscription: string }[])[0]!.subscription;
}

async function put(type: string, key: string, tons: number, headers: Headers): Promise<void> {
  const reply = await world.call('POST', `/ingest?object_type=${type}`, { key, tons }, headers);
  expect(reply.json['accepted'], reply.text).toBe(1);
}

/** Which subscription was told what of which key. */
const told = (events: readonly StreamedEvent[]): string[] =>
  events
    .filter(({ event }) => event !== 'heartbeat')
    .map(({ event, data }) => {
      const { subscription, row } = JSON.parse(data) as { subscription: string; row: { key: string; tons: number } };
      return `${subscription} ${event} ${row.key} ${row.tons}`;
    });
const heartbeats = (count: number) => (events: readonly StreamedEvent[]) =>
  events.filter(({ event }) => event === 'heartbeat').length >= count;

let tenants = 0;
async function caller(): Promise<{ authorization: string; 'x-organization-id': string }> {
  const tenant = `fleet${tenants++}`;
  return { ...(await world.tokenFor({ tenant_id: tenant, principal: 'watcher' })), 'x-organization-id': tenant };
}

test('tells the rows and the events of all of them, each under its own id, and takes in those that come later', async () => {
  const own = await caller();
  await put('Ship', 'a', 1, own);
  await put('Port', 'p', 9, own);
  const ships = await watch('SELECT key, tons FROM Ship', own);
  const ports = await watch('SELECT key, tons FROM Port WHERE tons > 5', own);
  // Another's is not theirs, nor is what somebody follows already.
  const other = await caller();
  await watch('SELECT key, tons FROM Ship', other);
  const apart = await watch('SELECT key FROM Ship', own);
  const followed = await new EventStream(world.door.port, `/watch/stream?subscription=${apart}`, own).opened();

  const open = all(own);
  await open.until(heartbeats(2));
  expect(told(open.events).sort()).toEqual([`${ships} insert a 1`, `${ports} insert p 9`].sort());
  await put('Port', 'q', 1, own);
  await put('Port', 'q', 7, own);
  await put('Ship', 'b', 2, own);
  const heavy = await watch('SELECT key, tons FROM Ship WHERE tons > 1', own);
  await open.until(heartbeats(3));
  await put('Ship', 'c', 3, own);
  await open.until((events) => told(events).length >= 7);
  expect(told(open.events).slice(2).sort()).toEqual(
    [`${ports} insert q 7`, `${ships} insert b 2`, `${heavy} insert b 2`, `${ships} insert c 3`, `${heavy} insert c 3`].sort(),
  );
  await open.close();
  await followed.close();
});

test('resumes each where it was told, wherever the connection ended', async () => {
  const own = await caller();
  const ids = [await watch('SELECT key, tons FROM Ship', own), await watch('SELECT key, tons FROM Port', own)];
  ids.push(await watch('SELECT key, tons FROM Ship WHERE tons > 3', own));
  let open = all(own);
  await open.until(heartbeats(3));
  const seen: string[] = [];
  const wanted: string[] = [];
  for (let round = 0; round < 6; round++) {
    for (let i = 0; i < 8; i++) {
      const [type, key] = [['Ship', 'Port'][i % 2]!, `r${round}-${i}`];
      await put(type, key, i, own);
      wanted.push(`${ids[i % 2]} insert ${key} ${i}`);
      if (type === 'Ship' && i > 3) wanted.push(`${ids[2]} insert ${key} ${i}`);
    }
    // Cut off in the middle: whatever came after the last event that was looked at is as if it had not come.
    const enough = 1 + round * 2;
    const events = await open.until((so) => told(so).length >= enough);
    const looked = events.findIndex((_, i) => told(events.slice(0, i + 1)).length === enough) + 1;
    seen.push(...told(events.slice(0, looked)));
    const lastId = events.slice(0, looked).findLast(({ id }) => id !== null)!.id!;
    await open.close();
    open = all({ ...own, 'last-event-id': lastId });
  }
  await open.until((events) => seen.length + told(events).length >= wanted.length);
  seen.push(...told(open.events));
  expect(seen.sort()).toEqual(wanted.sort());
  await open.close();
});

test('waits for the first where there is none, and ends with the credential', async () => {
  const { json } = await world.admin('POST', '/admin/tokens', { tenant_id: 'late', principal: 'l' });
  const own = { authorization: `Bearer ${json['token'] as string}` };
  const open = await all(own).opened();
  expect(open.status).toBe(200);
  const ships = await watch('SELECT key, tons FROM Ship', own);
  await open.until(heartbeats(1));
  await put('Ship', 'x', 1, own);
  await open.until((events) => told(events).length === 1);
  expect(told(open.events)).toEqual([`${ships} insert x 1`]);
  const second = await all(own).opened();
  await world.admin('DELETE', `/admin/tokens/${json['id'] as string}`);
  for (const stream of [open, second]) {
    await stream.untilEnded();
    expect(stream.events.at(-1)).toMatchObject({
      event: 'error',
      data: expect.stringContaining('REL_UNAUTHENTICATED') as string,
    });
  }
});

test.each(['17', 'x', 'fd343dbd7917-', '../..'])('takes no id that is not its own: %s', async (id) => {
  const { status, json } = await world.call('GET', '/watch/stream', undefined, { 'last-event-id': id });
  expect([status, json['detail']]).toEqual([400, expect.stringContaining('Last-Event-ID')]);
});
