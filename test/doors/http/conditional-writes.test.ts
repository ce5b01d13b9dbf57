/** Writes that keep what they do not send, that hold only where rows stand as their writer thinks, and that make edges. Over the whole stack. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Reply } from './door-world.ts';
import { StoreWorld } from './store-world.ts';

let world: StoreWorld;
let unmask: Record<string, string>;

beforeAll(async () => {
  world = await StoreWorld.open();
  unmask = await world.tokenFor({ principal: 'auditor', roles: ['unmask'] });
  const properties = {
    key: 'string',
    name: { type: 'string', required: true },
    secret: { type: 'string', masked: true },
    n: 'integer',
  };
  await world.call('POST', '/types', { name: 'Item', properties, primary_key: 'key' });
});

afterAll(() => world.close());

let made = 0;
const fresh = (): string => `i${made++}`;
const put = (body: unknown, query = '', headers: Record<string, string> = {}, type = 'Item'): Promise<Reply> =>
  world.call('POST', `/ingest?object_type=${type}${query}`, body, headers);
const patch = (key: string, body: unknown, headers: Record<string, string> = {}, query = '', type = 'Item'): Promise<Reply> =>
  world.call('PATCH', `/types/${type}/${key}${query}`, body, headers);
/** Exact. */
const systemFromOf = (reply: Reply): string => /"system_from":(\d+)/.exec(reply.text)![1]!;
const codeOf = (reply: Reply): [number, string] => [reply.status, String(reply.json['type']).split('/').at(-1)!];
const now = async (key: string, columns = 'name, n', headers = {}): Promise<unknown[]> =>
  world.rows(`SELECT ${columns} FROM Item AS OF CURRENT WHERE key = '${key}'`, headers);
const refusals = ({ json }: Reply): unknown[] =>
  (json['errors'] as { index: number; code: string }[]).map(({ index, code }) => [index, code]);

describe('a patch', () => {
  test('without bounds, and an UPDATE, cut what holds now at now: what was true before stays believed', async () => {
    const stretches = [
      ['2000-01-01', '2005-01-01'],
      ['2010-01-01', '2040-01-01'],
      ['2050-01-01', '2080-01-01'],
    ] as const;
    const changes: ((key: string) => Promise<Reply>)[] = [
      (key) => patch(key, { name: 'new' }),
      (key) => put(`{"key":"${key}","name":"new"}`, '&patch=true'),
    ];
    for (const change of changes) {
      const key = fresh();
      for (const [from, to] of stretches) await put(`{"key":"${key}","name":"old","valid_from":"${from}","valid_to":"${to}"}`);
      const changed = await change(key);
      expect([changed.status, changed.text]).toEqual([200, expect.any(String)]);
      const at = async (instant: string): Promise<unknown> =>
        (
          await world.rows(`SELECT name FROM Item AS OF '${instant}' WHERE key = '${key}' AND system_to = 9223372036854775807`)
        ).map(({ name }) => name);
      expect([await at('2002-01-01'), await at('2015-01-01'), await at('2039-01-01'), await at('2060-01-01')]).toEqual([
        ['old'],
        ['old'],
        ['new'],
        ['new'],
      ]);
      expect([await at('2007-01-01'), await at('2045-01-01')]).toEqual([[], []]);
    }
  });

  test('keeps what it does not send, what is masked from its writer too, and writes null where it is sent', async () => {
    const key = fresh();
    await put(`{"key":"${key}","name":"a","secret":"s","n":9007199254740993}`);
    const patched = await patch(key, { name: 'b' });
    expect(patched.status, patched.text).toBe(200);
    expect(await now(key, 'name, secret', unmask)).toEqual([{ name: 'b', secret: 's' }]);
    // One more than a double holds.
    expect(await world.rows(`SELECT name FROM Item WHERE key = '${key}' AND n = 9007199254740993`)).toHaveLength(3);
    await patch(key, { n: null });
    expect(await now(key, 'name, n, secret', unmask)).toEqual([{ name: 'b', n: null, secret: 's' }]);
    expect(await world.rows(`SELECT name FROM Item WHERE key = '${key}'`)).toHaveLength(5);
  });

  test('of many rows: each sends what it sends', async () => {
    const [a, b, c] = [fresh(), fresh(), fresh()];
    await put([
      { key: a, name: 'a', n: 1 },
      { key: b, name: 'b', n: 2 },
    ]);
    const reply = await put(
      [
        { key: a, n: null },
        { key: b, name: 'B' },
        { key: c, n: 3 },
        { key: c, name: 'C', n: 3 },
        { key: c, n: 4 },
      ],
      '&patch=true',
    );
    expect([reply.json['accepted'], refusals(reply)]).toEqual([4, [[2, 'REL_REQUIRED']]]);
    expect([await now(a), await now(b), await now(c)]).toEqual([
      [{ name: 'a', n: null }],
      [{ name: 'B', n: 2 }],
      [{ name: 'C', n: 4 }],
    ]);
  });

  test('of CSV: every column is sent', async () => {
    const key = fresh();
    await put([{ key, name: 'a', secret: 's', n: 1 }]);
    await put(`key,n\n${key},\n`, '&patch=true');
    expect(await now(key, 'name, n, secret', unmask)).toEqual([{ name: 'a', n: null, secret: 's' }]);
  });

  test('with bounds changes each stretch that it covers, and nothing else', async () => {
    const key = fresh();
    await put([
      { key, name: 'a', n: 1, valid_from: '2020-01-01', valid_to: '2022-01-01' },
      { key, name: 'b', n: 2, valid_from: '2022-01-01', valid_to: '2024-01-01' },
    ]);
    expect((await patch(key, { name: 'x', valid_from: '2021-01-01', valid_to: '2023-01-01' })).status).toBe(200);
    const at = async (day: string) =>
      world.rows(`SELECT name, n FROM Item AS OF '${day}' WHERE key = '${key}' AND system_to = 9223372036854775807`);
    expect([await at('2020-06-01'), await at('2021-06-01'), await at('2022-06-01'), await at('2023-06-01')]).toEqual([
      [{ name: 'a', n: 1 }],
      [{ name: 'x', n: 1 }],
      [{ name: 'x', n: 2 }],
      [{ name: 'b', n: 2 }],
    ]);
  });

  test('is refused as other writes are', async () => {
    const key = fresh();
    await put([{ key, name: 'a' }]);
    expect(codeOf(await patch(fresh(), { name: 'b' }))).toEqual([404, 'REL_NOT_FOUND']);
    expect(codeOf(await patch(key, { name: 'b' }, {}, '', 'Nothing'))).toEqual([404, 'REL_UNKNOWN_TYPE']);
    expect(codeOf(await patch(key, { key: 'other' }))).toEqual([400, 'REL_INVALID']);
    expect(codeOf(await patch(key, { _pk: 'other' }))).toEqual([400, 'REL_INVALID']);
    expect(codeOf(await patch(key, { name: null }))).toEqual([400, 'REL_REQUIRED']);
    expect(codeOf(await patch(key, { n: 'many' }))).toEqual([400, 'REL_TYPE_MISMATCH']);
    expect(codeOf(await patch(key, { wrong: 1 }))).toEqual([400, 'REL_UNKNOWN_COLUMN']);
    expect(codeOf(await patch(key, '[{"n":1}]'))).toEqual([400, 'REL_INVALID']);
    expect(codeOf(await patch(key, '{"n":1},{"n":2}'))).toEqual([400, 'REL_INVALID']);
    expect(codeOf(await patch(key, '{"n":'))).toEqual([400, 'REL_PARSE']);
    expect(codeOf(await patch(key, ''))).toEqual([400, 'REL_INVALID']);
    expect(codeOf(await patch(key, { n: 1 }, {}, '?when=absent'))).toEqual([400, 'REL_INVALID']);
    expect(codeOf(await put([{ key, n: 1 }], '&patch=true&replace=true'))).toEqual([400, 'REL_INVALID']);
    expect(await now(key)).toEqual([{ name: 'a', n: null }]);
  });
});

describe('a condition', () => {
  test('absent and present, by parameter and by header', async () => {
    const key = fresh();
    const absent = () => put([{ key, name: 'a' }], '&when=absent');
    expect((await put([{ key, name: 'a' }], '', { 'if-match': '*' })).json).toMatchObject({ accepted: 0, rejected: 1 });
    expect((await absent()).json).toMatchObject({ accepted: 1 });
    expect(refusals(await absent())).toEqual([[0, 'REL_CONFLICT']]);
    expect(refusals(await put([{ key, name: 'b' }], '', { 'if-none-match': '*' }))).toEqual([[0, 'REL_CONFLICT']]);
    expect((await put([{ key, name: 'b' }], '&when=present')).json).toMatchObject({ accepted: 1 });
    await world.call('DELETE', `/types/Item/${key}`);
    expect(refusals(await put([{ key, name: 'c' }], '&when=present'))).toEqual([[0, 'REL_CONFLICT']]);
    expect((await absent()).json).toMatchObject({ accepted: 1 });
    expect(codeOf(await put([{ key, name: 'c' }], '&when=absent&atomic=true'))).toEqual([409, 'REL_CONFLICT']);
  });

  test('unchanged since it was read: whoever comes second is told', async () => {
    const key = fresh();
    await put([{ key, name: 'a' }]);
    const first = await patch(key, { name: 'b' });
    const tag = first.headers['etag']!;
    expect(tag).toBe(`"${systemFromOf(first)}"`);
    expect((await patch(key, { n: 1 }, { 'if-match': tag })).status).toBe(200);
    expect(codeOf(await patch(key, { n: 2 }, { 'if-match': tag }))).toEqual([409, 'REL_CONFLICT']);
    expect(refusals(await put([{ key, name: 'c' }], `&when=${systemFromOf(first)}`))).toEqual([[0, 'REL_CONFLICT']]);
    expect((await put([{ key, name: 'c' }], '&when=2100-01-01')).json).toMatchObject({ accepted: 1 });
    expect(await now(key)).toEqual([{ name: 'c', n: null }]);
  });

  test('is stated in one way', async () => {
    const asked = (headers: Record<string, string>, query = '') => put([{ key: fresh(), name: 'a' }], query, headers);
    for (const headers of [
      { 'if-match': '"x"' },
      { 'if-match': 'W/"1"' },
      { 'if-match': '"1", "2"' },
      { 'if-none-match': '"1"' },
    ]) {
      expect(codeOf(await asked(headers)), JSON.stringify(headers)).toEqual([400, 'REL_INVALID']);
    }
    expect(codeOf(await asked({ 'if-match': '*', 'if-none-match': '*' }))).toEqual([400, 'REL_INVALID']);
    expect(codeOf(await asked({ 'if-match': '*' }, '&when=absent'))).toEqual([400, 'REL_INVALID']);
    expect(codeOf(await asked({}, '&when=sometimes'))).toEqual([400, 'REL_INVALID']);
    expect((await asked({ 'if-none-match': '*' }, '&when=absent')).json).toMatchObject({ accepted: 1 });
  });

  test('under an idempotency key it is part of the request', async () => {
    const key = fresh();
    const once = { 'idempotency-key': `once-${key}` };
    const first = await put([{ key, name: 'a' }], '&when=absent', once);
    expect((await put([{ key, name: 'a' }], '&when=absent', once)).text).toBe(first.text);
    expect(codeOf(await put([{ key, name: 'a' }], '', once))).toEqual([422, 'REL_UNPROCESSABLE']);
  });
});

test('a row that replaces what is to come leaves nothing after it', async () => {
  const key = fresh();
  await put([{ key, name: 'a' }]);
  expect((await put([{ key, name: 'b', valid_to: '2200-01-01' }], '&replace=true')).json).toMatchObject({ accepted: 1 });
  const open = () => world.rows(`SELECT name FROM Item WHERE key = '${key}' AND system_to = 9223372036854775807`);
  expect(await open()).toEqual([{ name: 'b' }]);
  await put([{ key, name: 'c', valid_to: '2100-01-01' }]);
  expect(await open()).toHaveLength(3);
});

describe('edges', () => {
  const edges = (columns = 'from_id, to_id', clause = 'AS OF CURRENT', link = 'Employs', headers = {}): Promise<unknown[]> =>
    world.rows(`SELECT ${columns} FROM ${link} ${clause}`, headers);

  test('come with rows, follow them and go with them', async () => {
    const triggers = [{ link_type: 'Employs', src_field: 'company', dst_field: 'person' }];
    const properties = { id: 'string', company: 'string', person: 'json', since: 'integer' };
    await world.call('POST', '/types', { name: 'Job', properties, graph_triggers: triggers });
    const job = (body: object) => put([body], '', {}, 'Job');
    const written = await job({ id: 'j1', company: 'acme', person: 'ann' });
    expect(written.json).toMatchObject({ accepted: 1, ids: ['j1'] });
    const [edge] = (await edges('*')) as Record<string, unknown>[];
    expect(edge).toMatchObject({ from_id: 'acme', to_id: 'ann', subject: null });
    expect(BigInt(`0x${edge!['derived_from'] as string}`)).toBe(BigInt(systemFromOf(written)));
    expect(edge!['valid_from']).toEqual(written.json['system_from']);

    await patch('j1', { since: 2020 }, {}, '', 'Job');
    expect(await edges()).toEqual([{ from_id: 'acme', to_id: 'ann' }]);
    await patch('j1', { person: ['bob', 'cy', null, ''] }, {}, '', 'Job');
    expect(await edges('from_id, to_id', 'AS OF CURRENT ORDER BY to_id')).toEqual([
      { from_id: 'acme', to_id: 'bob' },
      { from_id: 'acme', to_id: 'cy' },
    ]);
    await job({ id: 'j2', company: null, person: 'ann' });
    expect(await edges()).toHaveLength(2);
    await world.call('DELETE', '/types/Job/j1');
    expect(await edges()).toEqual([]);
    expect(
      await edges(
        'to_id',
        `AS OF SYSTEM TIME '${new Date(Number(BigInt(edge!['system_from'] as number) / 1_000_000n) + 1).toISOString()}'`,
      ),
    ).not.toEqual([]);
    await world.call('DELETE', '/types/Job/j1?hard=true');
    expect(await edges('from_id', '')).toEqual([]);
    expect(refusals(await job({ id: 'j3', company: 'acme', person: { name: 'ann' } }))).toEqual([[0, 'REL_TYPE_MISMATCH']]);
    expect(refusals(await job({ id: 'j3', company: 'acme', person: Array.from({ length: 1_001 }, (_, i) => `p${i}`) }))).toEqual([
      [0, 'REL_UNPROCESSABLE'],
    ]);
    expect(await edges('from_id', '')).toEqual([]);
  });

  test('are erased with whom their rows are of', async () => {
    const triggers = [{ link_type: 'Calls', src_field: 'caller', dst_field: 'callee' }];
    const properties = { id: 'string', caller: { type: 'string', subject: true }, callee: 'string' };
    await world.call('POST', '/types', { name: 'Call', properties, graph_triggers: triggers });
    await put(
      [
        { id: 'c1', caller: 'ann', callee: 'bob' },
        { id: 'c2', caller: 'cy', callee: 'bob' },
      ],
      '',
      {},
      'Call',
    );
    expect(await edges('from_id, subject', 'ORDER BY from_id', 'Calls')).toEqual([
      { from_id: 'ann', subject: 'ann' },
      { from_id: 'cy', subject: 'cy' },
    ]);
    const sql = `ERASE SUBJECT 'ann' REASON 'asked to'`;
    expect((await world.call('POST', '/query', { sql, purpose: 'test' })).status).toBe(200);
    expect(await edges('from_id', '', 'Calls')).toEqual([{ from_id: 'cy' }]);
  });

  test('show nothing that their rows mask, and are guarded as they are', async () => {
    const triggers = [{ link_type: 'Knows', src_field: 'a', dst_field: 'b' }];
    const masked = { id: 'string', a: { type: 'string', masked: true }, b: 'string' };
    const refused = await world.call('POST', '/types', { name: 'Hidden', properties: masked, graph_triggers: triggers });
    expect(codeOf(refused)).toEqual([400, 'REL_MASKED_COLUMN']);
    const plain = { id: 'string', a: 'string', b: 'string' };
    const guarded = { name: 'Guarded', properties: plain, graph_triggers: triggers, protected: true };
    expect((await world.call('POST', '/types', guarded)).status).toBe(201);
    const evolved = await world.call('POST', '/types/Guarded/schema', { properties: { a: { type: 'string', masked: true } } });
    expect(codeOf(evolved)).toEqual([400, 'REL_MASKED_COLUMN']);
    const glass = await world.tokenFor({ principal: 'ward', roles: ['break-glass'] });
    const opened = { ...glass, 'x-service-break-glass': 'case 1' };
    expect((await put([{ id: 'g', a: 'x', b: 'y' }], '', opened, 'Guarded')).json).toMatchObject({ accepted: 1 });
    expect((await world.call('GET', '/types/Knows')).json).toMatchObject({ open: true, protected: true });
    const read = { sql: 'SELECT from_id FROM Knows', purpose: 'test' };
    expect(codeOf(await world.call('POST', '/query', read))).toEqual([403, 'REL_HUMINT']);
    expect((await world.call('POST', '/query', read, opened)).json['rows']).toEqual([{ from_id: 'x' }]);
  });

  test('are of another type, with ends that it has', async () => {
    const typed = (name: string, link: string, properties: object) =>
      world.call('POST', '/types', { name, properties, graph_triggers: [{ link_type: link, src_field: 'a', dst_field: 'b' }] });
    expect(codeOf(await typed('Loop', 'Loop', { a: 'string', b: 'string' }))).toEqual([400, 'REL_INVALID']);
    expect(codeOf(await typed('Odd', 'L', { a: 'string', b: { type: 'vector', dims: 2 } }))).toEqual([400, 'REL_INVALID']);
    await world.call('POST', '/types', { name: 'Closed', properties: { from_id: 'string' } });
    expect((await typed('Uses', 'Closed', { a: 'string', b: 'string' })).status).toBe(201);
    expect(
      refusals(
        await put(
          [
            { _pk: 'u', a: 'x', b: 'y' },
            { _pk: 'v', a: 'x' },
          ],
          '',
          {},
          'Uses',
        ),
      ),
    ).toEqual([[0, 'REL_CONFLICT']]);
  });
});
