/** ERASE SUBJECT over HTTP, and what other routes say of the erased afterwards. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { analyst } from '../../harness.ts';
import type { Reply } from './door-world.ts';
import { EventStream } from './event-stream.ts';
import { StoreWorld } from './store-world.ts';

let world: StoreWorld;
beforeEach(async () => {
  world = await StoreWorld.open();
  const text = { type: 'string' };
  const properties = { id: text, who: { ...text, subject: true }, name: text };
  expect((await world.call('POST', '/types', { name: 'Person', properties, primary_key: 'id' })).status).toBe(201);
});
afterEach(() => world.close());

const rows = [
  { id: 'p1', who: 'alice', name: 'Alice Canary' },
  { id: 'p2', who: 'bob', name: 'Bob' },
];
const ingest = (headers = {}): Promise<Reply> => world.call('POST', '/ingest?object_type=Person', rows, headers);
const query = (sql: string): Promise<Reply> => world.call('POST', '/query', { sql });
const erase = (subject = 'alice'): Promise<Reply> => query(`ERASE SUBJECT '${subject}' REASON 'asked' CERTIFY`);

test('one row with the receipt as JSON; the record of it names neither subject nor reason', async () => {
  await ingest();
  const { status, json } = await erase();
  expect(status).toBe(200);
  const [row] = json['rows'] as Record<string, unknown>[];
  expect(row).toMatchObject({ versions: 1, certified: true });
  expect(row!['receipt']).toMatchObject({ payloadType: 'application/vnd.annals.erasure-receipt+json' });
  const { text } = await world.admin('GET', '/admin/audit/entries?limit=1000');
  expect(text).toContain('ERASE SUBJECT ?s REASON ?s CERTIFY');
  expect(text).not.toMatch(/alice|asked/);
});

test('a request under an idempotency key gets the same reply again, and none of the erased keys', async () => {
  const once = { 'idempotency-key': 'once' };
  const first = await ingest(once);
  expect(first.json['ids']).toEqual(['p1', 'p2']);
  expect((await ingest(once)).json).toEqual(first.json);
  await erase();
  expect((await ingest(once)).json).toEqual({ ...first.json, ids: ['p2'] });
  expect((await query('SELECT id FROM Person')).json['rows']).toEqual([{ id: 'p2' }]);
});

test('an exhibit’s link that named the subject is a recipe no more; one that read its rows misses them', async () => {
  await ingest();
  const exhibit = String((await world.call('POST', '/exhibits', { title: 'a case' })).json['exhibit_id']);
  const link = (sql: string): Promise<Reply> =>
    world.call('POST', `/exhibits/${exhibit}/links`, { act: 'query', sql, purpose: 'test' });
  expect((await link("SELECT name FROM Person WHERE who = 'alice'")).status).toBe(201);
  expect((await link('SELECT name FROM Person')).status).toBe(201);
  expect((await link("SELECT name FROM Person WHERE who = 'bob'")).status).toBe(201);
  await erase();
  const replayed = async (seq: number): Promise<unknown> => {
    const { json } = await query(`EXPLAIN_REPLAY('${exhibit}', SEQ => ${seq})`);
    const [row] = json['rows'] as Record<string, unknown>[];
    return [row!['match'], row!['reason']];
  };
  expect(await replayed(1)).toEqual([false, 'erased_recipe']);
  expect(await replayed(2)).toEqual([false, 'erased_rows']);
  expect(await replayed(3)).toEqual([true, null]);
  const { json } = await world.call('GET', `/exhibits/${exhibit}`);
  expect((json['links'] as { statement: unknown }[]).map(({ statement }) => statement)).toEqual([
    null,
    'SELECT name FROM Person',
    "SELECT name FROM Person WHERE who = 'bob'",
  ]);
});

test('a task that wrote rows tells no more which they were', async () => {
  const accepted = await world.call('POST', '/ingest?object_type=Person&async=true', rows);
  const url = String(accepted.json['status_url']);
  const settled = async (): Promise<Reply> => {
    for (;;) {
      const reply = await world.call('GET', url);
      if (!['queued', 'running'].includes(String(reply.json['state']))) return reply;
    }
  };
  expect((await settled()).text).toContain('p1');
  await erase();
  expect((await world.call('GET', url)).text).not.toContain('p1');
});

test('whoever follows the type is told that something went, and no cell of it', async () => {
  await ingest();
  const sql = encodeURIComponent('SELECT name FROM Person');
  const headers = { authorization: `Bearer ${world.token}` };
  const stream = await new EventStream(world.door.port, `/watch/stream?purpose=test&sql=${sql}`, headers).opened();
  await stream.until((events) => events.filter(({ event }) => event === 'insert').length === 2);
  await erase();
  const events = await stream.until((seen) => seen.some(({ event }) => event === 'delete'));
  const told = events.find(({ event }) => event === 'delete')!;
  expect(JSON.parse(told.data)).toMatchObject({ row: null, removed: true, unnamed: true });
  expect(told.data).not.toMatch(/p1|alice|Alice/);
});

test('a row under legal hold: 409 with the hold, and the rows stay', async () => {
  await ingest();
  const held = { kind: 'hold-row', id: 'hold-1', type: 'Person', key: 'p1' } as const;
  const request = { action: 'remove', purpose: null, correlationId: 'c' } as const;
  await world.service.gate.invoke(analyst, request, (invocation) => invocation.submit(held));
  const refused = await erase();
  expect([refused.status, refused.json['detail']]).toEqual([409, expect.stringContaining('hold-1')]);
  expect((await query('SELECT id FROM Person')).json['rows']).toHaveLength(2);
});
