/** Exhibits over the whole stack: opened, linked and derived again by those who may, and by nobody else. */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { noSeal, sealOf } from '../../../src/projections/exhibits/link-seal.ts';
import type { Reply } from './door-world.ts';
import { StoreWorld } from './store-world.ts';

let world: StoreWorld;
const acme: Record<string, string> = { 'x-organization-id': 'acme' };
const berlin: Record<string, string> = { 'x-organization-id': 'acme/berlin' };
const globex: Record<string, string> = { 'x-organization-id': 'globex' };

beforeAll(async () => {
  world = await StoreWorld.open();
  await world.call('POST', '/types', { name: 'Ware', properties: { key: 'string', n: 'integer' }, primary_key: 'key' });
  for (const scope of [acme, berlin, globex]) {
    const rows = [1, 2, 3].map((n) => ({ key: `k${n}`, n })).map((row) => JSON.stringify(row));
    await world.call('POST', '/ingest?object_type=Ware', rows.join('\n'), scope);
  }
});

afterAll(() => world.close());

const open = async (scope = acme): Promise<string> => {
  const reply = await world.call('POST', '/exhibits', { title: 'case 7' }, scope);
  expect(reply.status, reply.text).toBe(201);
  return reply.json['exhibit_id'] as string;
};
const put = (id: string, body: object, scope = acme): Promise<Reply> => world.call('POST', `/exhibits/${id}/links`, body, scope);
const replay = async (id: string, seq?: number, scope = acme): Promise<Record<string, unknown>> => {
  const [row] = await world.rows(`EXPLAIN_REPLAY('${id}'${seq === undefined ? '' : `, SEQ => ${seq}`})`, scope);
  return row!;
};
const hex = (text: string): string => createHash('sha256').update(text).digest('hex');

test('links follow each other, each seal covers the one before, and every link is derived again', async () => {
  const opened = await world.call('POST', '/exhibits', { title: 'case 7' }, acme);
  const id = opened.json['exhibit_id'] as string;
  expect(opened.json).toMatchObject({ seq: 0, act: 'open', prev_seal: noSeal, row_count: null });

  const query = await put(id, { sql: 'SELECT key, n FROM Ware WHERE n > 1 ORDER BY key, namespace_path' });
  expect(query.status, query.text).toBe(201);
  expect(query.json).toMatchObject({ seq: 1, act: 'query', prev_seal: opened.json['seal'], row_count: 4 });
  // The result in its canonical form, spelled out.
  const cells = '["k2","2"],["k2","2"],["k3","3"],["k3","3"]';
  const result = `{"columns":[{"name":"key","type":"string"},{"name":"n","type":"integer"}],"rows":[${cells}]}`;
  expect(query.json['result_digest']).toBe(hex(result));

  const note = await put(id, { act: 'note', text: 'two of three — schön' });
  expect(note.json).toMatchObject({ seq: 2, act: 'note', prev_seal: query.json['seal'] });
  expect(note.json['result_digest']).toBe(hex('{"text":"two of three — schön"}'));
  expect((await put(id, { act: 'decision', text: 'close it' })).json).toMatchObject({ seq: 3, prev_seal: note.json['seal'] });

  for (const seq of [1, 2, 3]) expect(await replay(id, seq)).toMatchObject({ exhibit_id: id, seq, match: true, reason: null });
  const row = await replay(id, 1);
  expect(row).toMatchObject({
    stored_seal: query.json['seal'],
    derived_seal: query.json['seal'],
    prev_seal: opened.json['seal'],
  });
  expect(row['leaf_index']).toBe(query.json['leaf_index']);
  expect(Number(row['tree_size'])).toBeGreaterThan(Number(row['leaf_index']));
  expect(row['root_hash']).toMatch(/^[0-9a-f]{64}$/);
  // Without SEQ, the last.
  expect(await replay(id)).toMatchObject({ seq: 3 });
  // The other way of writing it.
  expect(await world.rows(`SELECT * FROM EXPLAIN_REPLAY('${id}', SEQ => 2)`, acme)).toMatchObject([{ seq: 2, match: true }]);

  const { json } = await world.call('GET', `/exhibits/${id}`, undefined, acme);
  expect(json).toMatchObject({ exhibit_id: id, organization: 'acme', title: 'case 7', link_count: 3, next: null });
  const links = json['links'] as Record<string, string | number>[];
  expect(links.map(({ seq, act, principal }) => [seq, act, principal])).toEqual([
    [1, 'query', 'tester'],
    [2, 'note', 'tester'],
    [3, 'decision', 'tester'],
  ]);
  expect(links[0]).toMatchObject({ statement: 'SELECT key, n FROM Ware WHERE n > 1 ORDER BY key, namespace_path', text: null });
  expect(links[1]).toMatchObject({ statement: null, text: 'two of three — schön' });
});

test('the recipe says what ran, for whom and as of when, and its hash is in the seal', async () => {
  const id = await open();
  const { text, json } = await put(id, { sql: 'SELECT n FROM Ware', purpose: 'analytics' });
  const exact = json as Record<string, string>;
  const [, basis] = /"basis":(\d+)/.exec(text)!;
  const recipe =
    `{"act":"query","basis":{"as_of_system":"${basis}"},"branch":"main","clock":"${basis}","dialect":"annals-sql/1",` +
    `"engine":"2.4.1","organisation":"acme","parameters":[],"policy_digest":"",` +
    `"principal":{"attributes":{},"id":"tester","roles":[]},"purpose":"analytics","statement":"SELECT n FROM Ware",` +
    `"tenant":"acme","text":null}`;
  const sealed = { exhibit: id, link: 1, previousSeal: exact['prev_seal']!, resultHash: exact['result_digest']! };
  expect(exact['seal']).toBe(sealOf({ ...sealed, recipeHash: hex(recipe) }));
});

describe('an exhibit is known to whoever’s path covers it', () => {
  test.each<[string, Record<string, string>, boolean]>([
    ['the parent', acme, true],
    ['the same path', berlin, true],
    ['a sibling', { 'x-organization-id': 'acme/rome' }, false],
    ['a path below', { 'x-organization-id': 'acme/berlin/mitte' }, false],
    ['another tenant', globex, false],
    ['nobody', {}, false],
  ])('%s', async (_, scope, knows) => {
    const id = await open(berlin);
    await put(id, { sql: 'SELECT * FROM Ware' }, berlin);
    const status = knows ? 200 : 404;
    expect((await world.call('GET', `/exhibits/${id}`, undefined, scope)).status).toBe(status);
    expect((await world.query(`EXPLAIN_REPLAY('${id}')`, scope)).status).toBe(status);
    expect((await put(id, { act: 'note', text: 'x' }, scope)).status).toBe(knows ? 201 : 404);
  });

  test('what a wider path put there is shown as a seal, and can not be derived from below', async () => {
    const id = await open(berlin);
    const linked = await put(id, { sql: 'SELECT COUNT(*) AS c FROM Ware' }, acme);
    expect(linked.json['result_digest']).toBe(hex('{"columns":[{"name":"c","type":"integer"}],"rows":[["6"]]}'));
    const { json } = await world.call('GET', `/exhibits/${id}`, undefined, berlin);
    expect((json['links'] as unknown[])[0]).toMatchObject({
      seq: 1,
      seal: linked.json['seal'],
      statement: null,
      result_digest: null,
      leaf_index: null,
      basis: null,
    });
    const refused = await world.query(`EXPLAIN_REPLAY('${id}', SEQ => 1)`, berlin);
    expect([refused.status, refused.json['code'] ?? refused.json['type']]).toEqual([403, expect.stringContaining('REL_ACL')]);
    // A scope below is derived under its own scope: three rows, not six.
    const own = await put(id, { sql: 'SELECT COUNT(*) AS c FROM Ware' }, berlin);
    expect(own.json['result_digest']).toBe(hex('{"columns":[{"name":"c","type":"integer"}],"rows":[["3"]]}'));
    expect(await replay(id, 2, acme)).toMatchObject({ match: true });
    expect(await replay(id, 2, berlin)).toMatchObject({ match: true });
  });
});

test('what can not be is refused by name, and leaves no link', async () => {
  const id = await open();
  const refusals: [object, number, string][] = [
    [{ sql: 'EXPLAIN SELECT * FROM Ware' }, 422, 'REL_UNPROCESSABLE'],
    [{ sql: `EXPLAIN_REPLAY('${id}')` }, 422, 'REL_UNPROCESSABLE'],
    [{ sql: 'BRANCH b FROM main' }, 422, 'REL_UNPROCESSABLE'],
    [{ sql: "WATCH PURPOSE 'test' SELECT * FROM Ware" }, 422, 'REL_UNPROCESSABLE'],
    [{ sql: 'SELECT LOOKUP names(key) -> name FROM Ware' }, 422, 'REL_UNPROCESSABLE'],
    [{ sql: 'DELETE FROM Ware' }, 400, 'REL_READ_ONLY'],
    [{ sql: 'SELECT' }, 400, 'REL_PARSE'],
    [{ sql: 'SELECT * FROM Nothing' }, 404, 'REL_UNKNOWN_TYPE'],
    [{ sql: 'SELECT * FROM Ware', act: 'prophecy' }, 400, 'REL_INVALID'],
    [{ sql: 'SELECT * FROM Ware', purpose: 'unheard-of' }, 403, 'REL_PURPOSE_UNKNOWN'],
    [{ act: 'note' }, 400, 'REL_INVALID'],
    [{ act: 'note', text: '' }, 400, 'REL_INVALID'],
    [{ act: 'note', text: 'a', sql: 'SELECT * FROM Ware' }, 400, 'REL_INVALID'],
    [{ act: 'note', text: '\ud800' }, 400, 'REL_INVALID'],
    [{}, 400, 'REL_INVALID'],
  ];
  for (const [body, status, code] of refusals) {
    const reply = await put(id, body);
    expect([JSON.stringify(body), reply.status, reply.json['type']]).toEqual([
      JSON.stringify(body),
      status,
      expect.stringContaining(code),
    ]);
  }
  expect((await world.call('GET', `/exhibits/${id}`, undefined, acme)).json).toMatchObject({ link_count: 0, links: [] });
  for (const statement of [`EXPLAIN_REPLAY('${id}')`, `EXPLAIN_REPLAY('${id}', SEQ => 0)`, "EXPLAIN_REPLAY('no-such')"]) {
    expect((await world.query(statement, acme)).status).toBe(404);
  }
  await put(id, { act: 'note', text: 'one' });
  expect((await world.query(`EXPLAIN_REPLAY('${id}', SEQ => 2)`, acme)).status).toBe(404);
  expect((await world.query(`EXPLAIN_REPLAY('${id}', SEQ => 'x')`, acme)).status).toBe(400);
  expect((await world.query(`EXPLAIN_REPLAY('${id}', NUMBER => 1)`, acme)).status).toBe(400);
});

test('links put at once all land, one after the other', async () => {
  const id = await open();
  const replies = await Promise.all(
    Array.from({ length: 12 }, (_, i) =>
      put(id, i % 2 === 0 ? { act: 'note', text: `n${i}` } : { sql: `SELECT * FROM Ware LIMIT ${i}` }),
    ),
  );
  expect(replies.map(({ json }) => Number(json['seq'])).sort((a, b) => a - b)).toEqual(
    Array.from({ length: 12 }, (_, i) => i + 1),
  );
  expect(new Set(replies.map(({ json }) => json['seal'])).size).toBe(12);
  for (let seq = 1; seq <= 12; seq++) expect(await replay(id, seq)).toMatchObject({ seq, match: true });
  const page = await world.call('GET', `/exhibits/${id}?limit=5&after=5`, undefined, acme);
  expect((page.json['links'] as { seq: number }[]).map(({ seq }) => seq)).toEqual([6, 7, 8, 9, 10]);
  expect(page.json['next']).toBe(10);
});

test('every request leaves one access record', async () => {
  const id = await open();
  const count = async (): Promise<number> => (await world.call('GET', '/audit/count', undefined, acme)).json['count'] as number;
  const before = await count();
  await put(id, { sql: 'SELECT * FROM Ware' });
  await put(id, { sql: 'SELECT' });
  await replay(id);
  await world.call('GET', `/exhibits/${id}`, undefined, acme);
  // The count itself is one too.
  expect((await count()) - before).toBe(5);
});
