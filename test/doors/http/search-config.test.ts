/** What a tenant's searches start from, as of any basis; the presets, and rankings that the settings name. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TenantWorld } from './tenant-world.ts';

let world: TenantWorld;
let before = '';
let beforeSynonyms = '';

const talks = [
  { id: 't1', title: 'Running cars', body: 'the cars of the future', stars: 1, at: '2024-01-01T00:00:00.000Z' },
  { id: 't2', title: 'An automobile', body: 'runs the city', stars: 9, at: '2020-01-01T00:00:00.000Z' },
  { id: 't3', title: 'The future', body: 'flowers and trees', stars: 5, at: '2010-01-01T00:00:00.000Z' },
];

beforeAll(async () => {
  world = await TenantWorld.open({
    SERVICE_SEARCH_PRESET: 'exact',
    SERVICE_RANKING_Talk: 'custom:stars:0.5,recency:at:315360000,exact:title:100',
  });
  const properties = { id: 'string', title: 'string', body: 'string', stars: 'integer', at: 'timestamp' };
  for (const name of ['Note', 'Talk']) {
    await world.ok(world.acme, 'POST', '/types', { name, properties, primary_key: 'id' }, 201);
    const put = await world.store.call('POST', `/ingest?object_type=${name}`, talks, world.acme);
    expect(put.status, put.text).toBe(200);
  }
});
afterAll(() => world.close());

async function ids(body: object, who = world.acme): Promise<string> {
  const { rows } = await world.ok(who, 'POST', '/search', body);
  return (rows as { id: string }[]).map(({ id }) => id).join(' ');
}

const set = (config: object, who = world.acme) => world.call(who, 'PUT', '/tenants/acme/config/search', { config });
const sql = async (text: string): Promise<string> =>
  (await world.store.rows(text, world.acme)).map((row) => String(row['id'])).join(' ');
const now = async (): Promise<string> => {
  const { text } = await world.store.call('POST', '/query', { sql: 'SELECT id FROM Note LIMIT 1' }, world.acme);
  return /"as_of_system":(\d+)/.exec(text)![1]!;
};

describe('config/search', () => {
  test('stop words, synonyms, language and typos, in searches and in MATCH', async () => {
    expect(await ids({ query: 'the car', type: 'Note' })).toBe('t1 t2 t3');
    before = await now();
    expect((await set({ stop_words: ['the'], synonyms: [['car', 'automobile', 'cars']] })).status).toBe(200);
    beforeSynonyms = await now();
    expect((await ids({ query: 'the car', type: 'Note' })).split(' ').sort().join(' ')).toBe('t1 t2');
    expect(await sql("SELECT id FROM Note AS OF CURRENT WHERE MATCH(title, 'the car')")).toBe('t1 t2');
    expect(await sql("SELECT t.id FROM (SELECT id, title FROM Note) t AS OF CURRENT WHERE MATCH(t.title, 'the car')")).toBe(
      't1 t2',
    );
    // A search of nothing but stop words is one of them.
    expect(await ids({ query: 'the', type: 'Note', limit: 1 })).toBe('t1');

    const typos = { typo_tolerance: { enabled: true, min_word_size: 4, disable_on_attributes: ['body'] } };
    expect((await set(typos)).status).toBe(200);
    expect(await ids({ query: 'futurs', type: 'Note' })).toBe('t3');
    expect(await ids({ query: 'futurs', type: 'Note', typo_tolerance: { enabled: false } })).toBe('');
    expect(await sql("SELECT id FROM Note AS OF CURRENT WHERE MATCH(title, 'futurs')")).toBe('');

    expect((await set({ language: 'german' })).status).toBe(200);
    expect(await sql("SELECT id FROM Note AS OF CURRENT WHERE MATCH(body, 'flowers', STEMMED)")).toBe('t3');
    expect(await sql("SELECT id FROM Note AS OF CURRENT WHERE MATCH(body, 'running', STEMMED)")).toBe('');
    expect(await sql("SELECT id FROM Note AS OF CURRENT WHERE MATCH(body, 'cities', STEMMED)")).toBe('');
    expect((await set({})).status).toBe(200);
    expect(await sql("SELECT id FROM Note AS OF CURRENT WHERE MATCH(body, 'running', STEMMED)")).toBe('t2');
  });

  test('an earlier basis goes by its own', async () => {
    expect(await ids({ query: 'the car', type: 'Note', as_of_system: before })).toBe('t1 t2 t3');
    const then = await ids({ query: 'the car', type: 'Note', as_of_system: beforeSynonyms });
    expect(then.split(' ').sort().join(' ')).toBe('t1 t2');
  });

  test('weights of columns', async () => {
    const query = { query: 'future', type: 'Note', limit: 1 };
    expect((await set({ field_weights: { Note: { title: 0.01, body: 5 } } })).status).toBe(200);
    expect(await ids(query)).toBe('t1');
    expect((await set({ field_weights: { Note: { title: 5, body: 0.01 } } })).status).toBe(200);
    expect(await ids(query)).toBe('t3');
    expect((await set({})).status).toBe(200);
    expect(await ids({ ...query, field_weights: { body: 9 } })).toBe('t1');
    expect(await ids({ ...query, fieldWeights: { title: 9 } })).toBe('t3');
  });

  test.each([
    [{ colour: 1 }, 422],
    [{ language: 'klingon' }, 422],
    [{ stop_words: 'the' }, 422],
    [{ synonyms: [['one']] }, 422],
    [{ synonyms: [['new york', 'nyc']] }, 422],
    [{ field_weights: { Note: { title: -1 } } }, 422],
    [{ field_weights: { Note: 2 } }, 422],
    [{ typo_tolerance: { size: 1 } }, 422],
    [{ typo_tolerance: { min_word_size: 1.5 } }, 422],
  ])('%j is refused', async (config, status) => {
    const reply = await set(config);
    expect([reply.status, String(reply.json['type']).split('/').at(-1)], reply.text).toEqual([status, 'REL_UNPROCESSABLE']);
  });

  test('is the business of its tenant', async () => {
    expect((await set({}, world.globex)).status).toBe(404);
    expect((await set({}, world.clerk)).status).toBe(403);
    expect(await world.ok(world.acme, 'GET', '/tenants/acme/config/search')).toEqual({ tenant_id: 'acme', config: {} });
  });
});

describe('ranking', () => {
  test('rules of the settings rank what MATCH finds', async () => {
    // The title that is sought, word for word, then stars and age.
    expect(await ids({ query: 'the future', type: 'Talk' })).toBe('t3 t2 t1');
    expect(await sql("SELECT id, _score FROM Talk AS OF CURRENT WHERE MATCH(body, 'the')")).toBe('t2 t1');
    expect(await sql("SELECT id FROM Talk AS OF CURRENT WHERE MATCH(body, 'the') ORDER BY id")).toBe('t1 t2');
    expect(await sql("SELECT id FROM Talk AS OF CURRENT WHERE MATCH(body, 'the') RANK BY BM25()")).toBe('t1 t2');
  });

  test('BM25, VECTOR and HIGHLIGHT', async () => {
    const rows = await world.store.rows(
      "SELECT id FROM Note AS OF CURRENT WHERE MATCH(title, body, 'future cars') RANK BY SUM(BM25(), SATURATE(stars, 3)) " +
        'COMPUTE words AS BM25(), shown AS HIGHLIGHT(title), more AS HIGHLIGHT(body)',
      world.acme,
    );
    expect(rows.map(({ id, shown, more }) => [id, shown, more])).toEqual([
      ['t1', 'Running <em>cars</em>', 'the <em>cars</em> of the <em>future</em>'],
      ['t3', 'The <em>future</em>', 'flowers and trees'],
    ]);
    for (const row of rows) expect(Number(row['_score'])).toBeGreaterThan(Number(row['words']));
    const hits = await world.ok(world.acme, 'POST', '/search', {
      query: 'futurs',
      type: 'Note',
      typo_tolerance: {},
      include_attributes: ['id'],
      compute_attributes: { title: 'HIGHLIGHT(title)' },
    });
    expect(hits['rows']).toContainEqual(expect.objectContaining({ id: 't3', title: 'The <em>future</em>' }));
  });

  test.each([
    ['SELECT id FROM Note RANK BY BM25()', 'REL_INVALID'],
    ['SELECT id FROM Note RANK BY VECTOR()', 'REL_INVALID'],
    ["SELECT id FROM Note WHERE MATCH(title, 'x') RANK BY HIGHLIGHT(title)", 'REL_INVALID'],
    ['SELECT id FROM Note COMPUTE h AS HIGHLIGHT(title)', 'REL_INVALID'],
    ["SELECT id FROM Note WHERE MATCH(title, 'x') COMPUTE h AS HIGHLIGHT(stars)", 'REL_TYPE_MISMATCH'],
    ["SELECT id FROM Note WHERE MATCH(title, 'x') RANK BY BM25(title)", 'REL_PARSE'],
  ])('%s', async (text, code) => {
    const reply = await world.store.call('POST', '/query', { sql: text }, world.acme);
    expect(String(reply.json['type']).split('/').at(-1), reply.text).toBe(code);
  });
});

describe('rows that others share', () => {
  test('are found by who names whose, and a filter on another tenant is refused', async () => {
    const at = '/tenants/acme/sharing';
    const terms = { assignee: 'globex', target: { types: ['Note'] }, permission: ['read', 'search'], history: 'full' };
    const { id } = await world.ok(world.acme, 'POST', at, terms, 201);
    await world.ok(world.globex, 'PATCH', `/tenants/globex/sharing/${String(id)}`, { state: 'accepted' });
    await world.ok(world.acme, 'PATCH', `${at}/${String(id)}`, { state: 'active' });
    const put = await world.put(world.globex, 'Note', [{ id: 'g1', title: 'A future of our own' }]);
    expect(put.status, put.text).toBe(200);
    const query = { query: 'future', type: 'Note' };
    expect(await ids(query, world.globex)).toBe('g1');
    expect(await ids({ ...query, filters: [{ field: 'tenant_id', op: 'eq', value: 'globex' }] }, world.globex)).toBe('g1');
    expect((await ids({ ...query, type: 'acme.Note' }, world.globex)).split(' ').sort().join(' ')).toBe('t1 t3');
    const other = { ...query, filters: { or: [{ field: 'tenant_id', op: 'in', value: ['globex', 'acme'] }] } };
    expect(await world.refusal(world.globex, 'POST', '/search', other)).toEqual([403, 'REL_TENANT_MISMATCH']);
    const several = { queries: [query, other] };
    expect(await world.refusal(world.globex, 'POST', '/multi-search', several)).toEqual([403, 'REL_TENANT_MISMATCH']);
  });
});
