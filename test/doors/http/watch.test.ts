/** GET /watch/stream over the whole store. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
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
      ['delete', null, { _pk: 'a2' }],
    ]);
    const told = open.events.filter(({ id, event }) => id !== null && event !== 'heartbeat');
    expect(told[0]!.id).toBe(first.toString());
    expect(told.every(({ id, data }) => data.includes(`"system_from":${id},`))).toBe(true);
  });
});
