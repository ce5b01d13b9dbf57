/** ERASE SUBJECT over HTTP, and what other routes say of the erased afterwards. */
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { analyst } from '../../harness.ts';
import type { Reply } from './door-world.ts';
import { EventStream } from './event-stream.ts';
import { StoreWorld } from './store-world.ts';

let world: StoreWorld;
beforeEach(async () => {
  world = await StoreWorld.open({ SERVICE_MAX_INFLIGHT_QUERIES: '1000' });
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

/** Rows of 9,000 bytes, a hundred at a time: more than the sockets of a connection hold. */
const pages = 24;
const bytesOfAll = pages * 900_000;

/** A client that has asked, so many times at once, and takes nothing of the answers yet. */
async function asked(method: string, path: string, body = '', times = 1, header = ''): Promise<Socket> {
  const socket = connect(world.door.port, '127.0.0.1');
  const head = [
    `${method} ${path} HTTP/1.1`,
    'host: localhost',
    `authorization: Bearer ${world.token}`,
    'content-type: application/json',
    `content-length: ${body.length}`,
  ];
  socket.write(`${head.join('\r\n')}\r\n${header}\r\n${body}`.repeat(times));
  await new Promise((resolve) => socket.once('readable', resolve));
  return socket;
}

/** How many bytes come of an answer: until no more do, or the connection ends. */
async function taken(socket: Socket): Promise<number> {
  let bytes = 0;
  let last = 0;
  socket.on('data', (piece: Buffer) => {
    bytes += piece.length;
    last = performance.now();
  });
  socket.on('error', () => undefined);
  while (!socket.closed && (bytes < bytesOfAll || performance.now() - last < 100))
    await new Promise((resolve) => setTimeout(resolve, 10));
  socket.destroy();
  return bytes;
}

/** Whether a client gets all that it asked for of this type, on each way that answers leave by. */
function everyWay(type: string): Promise<Socket>[] {
  const sql = `SELECT id, name FROM ${type}`;
  const json = JSON.stringify({ sql });
  const page = JSON.stringify({ sql: `${sql} LIMIT 50` });
  return [
    asked('POST', '/query', json),
    asked('POST', '/query/stream', json),
    asked('POST', '/query/arrow', json),
    asked('GET', `/export?format=ndjson&sql=${encodeURIComponent(sql)}`),
    // Of one piece each.
    asked('POST', '/query', page, 2 * pages),
    asked('POST', '/query', page, 2 * pages, 'proxy-connection: keep-alive\r\n'),
  ];
}

test('an answer that its client takes slowly goes no further; one of another type does', async () => {
  const text = { type: 'string' };
  await world.call('POST', '/types', { name: 'Letter', properties: { id: text, name: text }, primary_key: 'id' });
  const name = 'x'.repeat(9_000);
  for (let page = 0; page < pages; page++) {
    const letters = Array.from({ length: 100 }, (_, i) => ({ id: `${page}-${i}`, name }));
    expect((await world.call('POST', '/ingest?object_type=Letter', letters)).status).toBe(200);
    const people = letters.map((row) => ({ ...row, who: 'bob' }));
    expect((await world.call('POST', '/ingest?object_type=Person', people)).status).toBe(200);
  }
  await ingest();
  const [people, others] = [await Promise.all(everyWay('Person')), await Promise.all(everyWay('Letter'))];
  // The sockets take more of a pending answer for a while: one that they took whole before the erasure is not cut off.
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect((await erase()).status).toBe(200);
  // Nobody who takes nothing is waited for.
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const got = async (sockets: readonly Socket[]): Promise<boolean[]> =>
    (await Promise.all(sockets.map(taken))).map((bytes) => bytes >= bytesOfAll);
  expect(await got(others)).toEqual(Array(6).fill(true));
  expect(await got(people)).toEqual(Array(6).fill(false));
}, 60_000);

describe('erased means erased, through everything made of it', () => {
  const words = 'alice keeps her savings in a blue tin under the stairs';
  const others = 'bob waters the orchids in the hall every second friday';
  const good = async (method: string, path: string, body: unknown): Promise<Record<string, unknown>> => {
    const { status, json, text } = await world.call(method, path, body, { 'x-service-purpose': 'test' });
    expect([path, status < 300 ? 'good' : text]).toEqual([path, 'good']);
    return json['data'] === undefined ? json : (json['data'] as Record<string, unknown>);
  };
  const tool = async (name: string, given: object): Promise<Record<string, unknown>> => {
    const { content } = await good('POST', '/mcp/tools/call', { name, arguments: given });
    return (content as { json: Record<string, unknown> }[])[1]!.json;
  };
  const sayWho = () => good('POST', '/types/MemoryItem/schema', { properties: { who: { type: 'string', subject: true } } });
  const remember = async (content: string, who: string | null, more: object = {}): Promise<string> =>
    String((await tool('remember', { content, ...(who !== null && { fields: { who } }), ...more }))['id']);
  const contents = async (): Promise<string> =>
    JSON.stringify((await query('SELECT content FROM MemoryItem')).json['rows']) +
    JSON.stringify(await tool('recall', { query: 'savings tin stairs orchids', top_k: 50 }));

  /** Every maker that there is, one made from the other. */
  async function chain(source: string, session: string): Promise<readonly string[]> {
    const summary = String((await tool('summarise', { session_id: session }))['id']);
    const answer = await tool('rag_store_answer', {
      question: 'where',
      answer: `Because ${words}.`,
      source_ids: [summary, source],
    });
    const better = await tool('consolidate', { id: answer['id'], content: `It is so: ${words}.` });
    const last = await remember(`So they say that ${words}.`, null, { derived_from: [better['new_id']] });
    return [summary, String(answer['id']), String(better['new_id']), last];
  }

  test('a summary, the answer from it, its better version and what follows from that carry the subject, and go with it', async () => {
    await sayWho();
    const source = await remember(`${words}.`, 'alice', { session_id: 's1' });
    await remember(`${others}.`, 'bob', { session_id: 's2' });
    const made = await chain(source, 's1');
    const marks = made.map((id) => `'${id}'`).join(', ');
    const whose = (await query(`SELECT DISTINCT who FROM MemoryItem WHERE _pk IN (${marks})`)).json['rows'];
    expect(whose).toEqual([{ who: 'alice' }]);
    const { json, text } = await erase();
    expect(json['rows'], text).toMatchObject([{ certified: true }]);
    expect(await contents()).not.toContain('savings');
    expect(await contents()).toContain('orchids');
  });

  test('whose subject is a number is carried like any other, and goes with it', async () => {
    await good('POST', '/types/MemoryItem/schema', { properties: { person: { type: 'integer', subject: true } } });
    const [one, two] = [
      await remember(`${words}.`, null, { fields: { person: 7 }, session_id: 's1' }),
      await remember(`${others}.`, null, { fields: { person: 8 } }),
    ];
    const made = await chain(one, 's1');
    const both = await remember(`Both: ${words}; ${others}.`, null, { derived_from: [one, two] });
    const peopleOf = async (ids: readonly string[]): Promise<unknown> =>
      (await query(`SELECT DISTINCT person FROM MemoryItem WHERE _pk IN (${ids.map((id) => `'${id}'`).join(', ')})`)).json[
        'rows'
      ];
    expect([await peopleOf(made), await peopleOf([both])]).toEqual([[{ person: 7 }], [{ person: null }]]);
    expect((await erase('7')).json['rows']).toMatchObject([{ certified: true }]);
    expect(await contents()).not.toContain('savings');
    expect(await peopleOf([two])).toEqual([{ person: 8 }]);
  });

  test('what was made from rows of several is of all of them together, and ends with any one', async () => {
    await sayWho();
    const [one, two] = [
      await remember(`${words}.`, 'alice', { session_id: 's' }),
      await remember(`${others}.`, 'bob', { session_id: 's' }),
    ];
    const { id } = await tool('summarise', { session_id: 's', max_sentences: 5 });
    const { id: answer } = await tool('rag_store_answer', {
      question: 'q',
      answer: `Both: ${words}; ${others}.`,
      source_ids: [id],
    });
    const rowsOf = async (name: unknown) =>
      (await query(`SELECT who FROM MemoryItem WHERE _pk = '${String(name)}'`)).json['rows'];
    expect([await rowsOf(id), await rowsOf(answer)]).toEqual(Array(2).fill([{ who: '["alice","bob"]' }]));
    // What is said to be another's could be erased with neither of the two.
    const refused = await world.call(
      'POST',
      '/memory/remember',
      { content: 'x', fields: { who: 'eve' }, derived_from: [one] },
      { 'x-service-purpose': 'test' },
    );
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('names another subject')]);
    expect((await erase('bob')).json['rows']).toMatchObject([{ certified: true }]);
    expect(await contents()).not.toContain('orchids');
    expect([await rowsOf(one), await rowsOf(two), await rowsOf(id), await rowsOf(answer)]).toEqual([
      [{ who: 'alice' }],
      [],
      [],
      [],
    ]);
  });

  test('memories that say of nobody whose they are go with the rows that they were made from', async () => {
    const text = { type: 'string' };
    const properties = { id: text, who: { ...text, subject: true }, content: text, tool_call_id: text };
    await good('POST', '/types', { name: 'Note', properties, primary_key: 'id' });
    await good('POST', '/ingest?object_type=Note', [{ id: 'note-1', who: 'alice', content: words }]);
    const answer = await tool('rag_store_answer', { question: 'q', answer: `They say that ${words}.`, source_ids: ['note-1'] });
    await remember(`Again: ${words}.`, null, { derived_from: [answer['id']] });
    await remember(`${others}.`, null);
    expect((await erase()).json['rows']).toMatchObject([{ certified: true }]);
    expect(await contents()).not.toContain('savings');
    expect(await contents()).toContain('orchids');
  });

  test('a copy that names no source is found by its words: no certificate until it is gone', async () => {
    await sayWho();
    await remember(`${words}.`, 'alice');
    const copy = await remember(`I have heard that ${words}.`, null);
    const first = await erase();
    expect([first.status, first.json['residuals']]).toEqual([422, [{ where: 'words', what: 'MemoryItem.content', count: 1 }]]);
    await good('DELETE', `/types/MemoryItem/${copy}?hard=true`, undefined);
    expect((await erase()).json['rows']).toMatchObject([{ certified: true }]);
    expect(await contents()).not.toContain('savings');
  });
});
