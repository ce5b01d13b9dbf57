/** The search API over the whole stack: its shapes, member by member, and what they refuse. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Reply } from './door-world.ts';
import { StoreWorld } from './store-world.ts';

let world: StoreWorld;

const films = [
  { id: 'f1', title: 'The Land Girls', plot: 'three girls work the land', year: 1998, genre: 'drama', rating: 6.5 },
  { id: 'f2', title: 'Land of the Dead', plot: 'the dead walk', year: 2005, genre: 'horror', rating: 6.2 },
  { id: 'f3', title: 'Wonderland', plot: 'girls and boys of London', year: 1999, genre: 'drama', rating: 7.1 },
  { id: 'f4', title: 'Girlhood', plot: 'a land far away', year: 2014, genre: 'drama', rating: null },
  { id: 'f5', title: 'SpaceStation76', plot: 'far from any land', year: 2014, genre: 'comedy', rating: 4.9 },
];

beforeAll(async () => {
  world = await StoreWorld.open();
  const properties = { id: 'string', title: 'string', plot: 'string', year: 'integer', genre: 'string', rating: 'number' };
  const made = await world.call('POST', '/types', {
    name: 'Film',
    properties: { ...properties, emb: { type: 'vector', dims: 2 } },
    primary_key: 'id',
  });
  expect(made.status, made.text).toBeLessThan(300);
  const rows = films.map((film, i) => ({ ...film, emb: [Math.cos(i), Math.sin(i)] }));
  expect((await world.call('POST', '/ingest?object_type=Film', rows)).status).toBe(200);
});
afterAll(() => world.close());

const ask = (body: object): Promise<Reply> => world.call('POST', '/search', body);

async function found(body: object): Promise<{ ids: string; json: Record<string, unknown>; rows: Record<string, unknown>[] }> {
  const { status, json, text } = await ask(body);
  expect(status, text).toBe(200);
  const rows = json['rows'] as Record<string, unknown>[];
  return { ids: rows.map(({ id }) => String(id)).join(' '), json, rows };
}

async function refused(body: object, route = '/search'): Promise<string> {
  const { json, status } = await world.call('POST', route, body);
  return `${status} ${String(json['type']).split('/').at(-1)} ${String(json['detail'])}`;
}

describe('shape A', () => {
  test('rows, figures and whose each is', async () => {
    const { ids, json, rows } = await found({ query: 'land girls', type: 'Film', typo_tolerance: { enabled: false } });
    expect(ids.split(' ')[0]).toBe('f1');
    expect(new Set(ids.split(' '))).toEqual(new Set(['f1', 'f2', 'f3', 'f4', 'f5']));
    expect(json).toMatchObject({ count: 5, row_count: 5, estimatedTotalHits: 5, facets: {}, facetStats: {} });
    expect(rows[0]).toMatchObject({ id: 'f1', title: 'The Land Girls', tenant_id: null });
    const scores = rows.map(({ _score }) => Number(_score));
    expect(scores).toEqual([...scores].sort((a, b) => b - a));
  });

  test.each([
    ['any', 'land girls', 'f1 f2 f3 f4 f5'],
    ['all', 'land girls', 'f1'],
    ['last', 'land girls', 'f1 f3'],
    ['frequency', 'land girls', 'f1 f3'],
    ['boolean', 'land AND NOT girls', 'f2 f4 f5'],
    ['boolean', 'station OR wonderland', 'f3 f5'],
  ])('matching strategy %s of %s', async (strategy, query, ids) => {
    const exact = { enabled: false };
    const snake = await found({ query, type: 'Film', matching_strategy: strategy, typo_tolerance: exact });
    expect(snake.ids.split(' ').sort().join(' ')).toBe(ids);
    const camel = await found({ query, type: 'Film', matchingStrategy: strategy, typoTolerance: exact });
    expect(camel.ids).toBe(snake.ids);
  });

  test('facets and figures of all that matches', async () => {
    const { json } = await found({ query: 'land', type: 'Film', limit: 1, facets: ['genre', 'year'] });
    expect(json).toMatchObject({
      count: 1,
      estimatedTotalHits: 5,
      facets: { genre: { drama: 3, comedy: 1, horror: 1 } },
      facetStats: { year: { min: 1998, max: 2014, count: 5 } },
    });
  });

  test('the strings of documents, and none of a document that is masked', async () => {
    const doc = { title: 'the heron', pages: [{ text: 'of the grey harbour' }] };
    for (const [type, masked] of [
      ['Sheet', false],
      ['Hidden', true],
    ] as const) {
      const properties = { id: 'string', kind: 'string', doc: { type: 'json', masked } };
      expect((await world.call('POST', '/types', { name: type, properties, primary_key: 'id' })).status).toBeLessThan(300);
      expect((await world.call('POST', `/ingest?object_type=${type}`, [{ id: 'd', kind: 'bird', doc }])).status).toBe(200);
    }
    const words = { type: 'Sheet', typo_tolerance: { enabled: false }, compute_attributes: { shown: 'HIGHLIGHT(doc)' } };
    const { rows } = await found({ ...words, query: 'harbour' });
    expect(rows).toMatchObject([{ id: 'd', doc, shown: 'of the grey <em>harbour</em>' }]);
    expect((await found({ ...words, query: 'pages' })).ids).toBe('');
    expect((await found({ query: 'bird', type: 'Hidden' })).ids).toBe('d');
    expect((await found({ query: 'harbour', type: 'Hidden' })).ids).toBe('');
    expect(await refused({ from: 'Hidden', rank_by: ['bm25', 'doc', 'harbour'] })).toContain('MASKED');
    expect(await refused({ query: 'bird', type: 'Hidden', compute_attributes: { shown: 'HIGHLIGHT(doc)' } })).toContain('MASKED');
    const hybrid = (type: string): Promise<Reply> =>
      world.call('POST', '/query', { sql: `HYBRID_SEARCH FROM ${type} QUERY 'harbour' LIMIT 3` });
    expect((await hybrid('Sheet')).json).toMatchObject({ row_count: 1 });
    expect((await hybrid('Hidden')).json).toMatchObject({ row_count: 0 });
  });

  test('pages that stay where they were', async () => {
    const all = (await found({ query: 'land', type: 'Film' })).ids;
    const first = await found({ query: 'land', type: 'Film', limit: 3 });
    await world.call('POST', '/ingest?object_type=Film', [{ id: 'f9', title: 'land land land', year: 1 }]);
    const second = await found({ query: 'land', type: 'Film', limit: 3, cursor: first.json['next_cursor'] });
    expect(`${first.ids} ${second.ids}`).toBe(all);
    expect(second.json['next_cursor']).toBeUndefined();
    expect((await found({ query: 'land', type: 'Film', limit: 1 })).ids).toBe('f9');
    await world.call('DELETE', '/types/Film/f9?hard=true');
  });
});

describe('shape B', () => {
  test.each([
    [{ from: 'Film', rank_by: ['bm25', 'title', 'land'], typo_tolerance: { enabled: false } }, 'f1 f2'],
    [{ type: 'Film', rankBy: ['text', 'plot', 'land'], limit: 1, typoTolerance: { enabled: false } }, 'f4'],
    [{ from: 'Film', rank_by: ['boolean', 'plot', 'land AND girls'] }, 'f1'],
    [{ from: 'Film', rank_by: ['field_weight', { title: 9, plot: 1 }, 'wonderland'] }, 'f3'],
    [{ from: 'Film', filters: [{ field: 'year', op: 'gte', value: 2005 }] }, 'f2 f4 f5'],
    [{ from: 'Film', filters: { field: 'genre', op: 'ne', value: 'drama' } }, 'f2 f5'],
    [
      {
        from: 'Film',
        filters: {
          or: [
            { field: 'id', op: 'in', value: ['f1', 'f3'] },
            { field: 'year', op: 'lt', value: 1999 },
          ],
        },
      },
      'f1 f3',
    ],
    [
      {
        from: 'Film',
        filters: {
          and: [
            { field: 'year', op: 'between', value: [1999, 2005] },
            { field: 'title', op: 'like', value: 'W%' },
          ],
        },
      },
      'f3',
    ],
    [
      {
        from: 'Film',
        filters: [
          { field: 'title', op: 'ilike', value: 'GIRL%' },
          { field: 'rating', op: 'eq', value: null },
        ],
      },
      'f4',
    ],
    [
      {
        from: 'Film',
        filters: [
          { field: 'rating', op: 'gt', value: 6.5 },
          { field: 'year', op: 'lte', value: 1999 },
        ],
      },
      'f3',
    ],
    [{ from: 'Film', rank_by: ['vector', 'ann', [1, 0]], limit: 2 }, 'f1 f2'],
    [{ from: 'Film', rank_by: ['vector', 'ann', 'the land girls'], limit: 1 }, 'f1'],
  ])('%j', async (body, ids) => {
    expect((await found(body)).ids).toBe(ids);
  });

  test('columns, labels and consistency', async () => {
    const { json, rows } = await found({
      from: 'Film',
      rank_by: ['bm25', 'title', 'wonderland'],
      include_attributes: ['id', 'year'],
      compute_attributes: { age: 'DIST(year, 2000)' },
      consistency: 'eventual',
    });
    expect(json['columns']).toEqual(['id', 'year', '_score', 'age']);
    expect(rows).toEqual([{ id: 'f3', year: 1999, _score: expect.any(Number), age: 1 }]);
  });
});

describe('shape C', () => {
  const queries = [
    { from: 'Film', rank_by: ['bm25', 'title', 'land'], include_attributes: ['id'], typo_tolerance: { enabled: false } },
    { from: 'Film', rank_by: ['bm25', 'plot', 'girls'], include_attributes: ['id', 'year'], typo_tolerance: { enabled: false } },
  ];

  test('one snapshot, each ranking and both fused', async () => {
    const { json, text } = await ask({ queries, rerank_by: ['RRF', { rank_constant: 10 }], limit: 2 });
    const { results, fused } = json as { results: { rows: { id: string }[] }[]; fused: Record<string, unknown> };
    expect(
      results.map(({ rows }) => rows.map(({ id }) => id).join(' ')),
      text,
    ).toEqual(['f1 f2', 'f1 f3']);
    expect(fused['rank_constant']).toBe(10);
    expect(fused['rows']).toEqual([
      { id: 'f1', _rrf_score: 1 / 11 + 1 / 11 },
      { id: 'f2', _rrf_score: 1 / 12 },
    ]);
    expect(fused['data']).toEqual(fused['rows']);
    expect(text).toMatch(/"as_of_system":\d{19},"processing_time_ms"/);
    const other = await ask({ queries, rerankBy: ['rrf'] });
    expect((other.json['fused'] as { rank_constant: number }).rank_constant).toBe(60);
  });

  test('several searches by words, each by its own rules', async () => {
    const { json, text } = await world.call('POST', '/multi-search', {
      queries: [
        { query: 'lond', type: 'Film', limit: 1, typo_tolerance: { enabled: false } },
        { query: 'land girls', type: 'Film', matchingStrategy: 'all', typoTolerance: { enabled: false } },
      ],
    });
    const counts = (json['results'] as { count: number }[]).map(({ count }) => count);
    expect(counts, text).toEqual([0, 1]);
  });

  test('one access record that lists its questions', async () => {
    await ask({ queries, rerank_by: ['RRF'] });
    const { json } = await world.admin('GET', '/admin/audit/entries?limit=1000&action=search');
    const entry = (json['entries'] as Record<string, unknown>[]).at(-1);
    expect(entry).toMatchObject({ action: 'search', object_type: 'Film', template: 'batch search' });
    expect(entry!['statements']).toHaveLength(2);
  });
});

describe('refusals', () => {
  test.each([
    [{ query: 'x' }, '400 REL_INVALID type'],
    [{ query: 'x', type: 'Nope' }, '404 REL_UNKNOWN_TYPE'],
    [{ query: 'x', type: 'Film', limit: -1 }, '400 REL_INVALID limit'],
    [{ query: 'x', type: 'Film', colour: 1 }, '400 REL_INVALID'],
    [{ query: 'x', type: 'Film', matching_strategy: 'most' }, '400 REL_INVALID matching_strategy'],
    [{ query: 'x', type: 'Film', matching_strategy: 'any', matchingStrategy: 'any' }, '400 REL_INVALID'],
    [{ query: 'x', type: 'Film', field_weights: { nope: 2 } }, '400 REL_UNKNOWN_COLUMN'],
    [{ query: 'x', type: 'Film', facets: ['nope'] }, '400 REL_UNKNOWN_COLUMN'],
    [{ query: 'x', type: 'Film', cursor: 'abc' }, '400 REL_INVALID the cursor'],
    [{ query: 'x'.repeat(20_000), type: 'Film' }, '400 REL_INVALID'],
    [{ query: Array.from({ length: 50 }, () => '*x*').join(' '), type: 'Film' }, '400 REL_INVALID'],
    [{ from: 'Film', rank_by: ['bm25', 'nope', 'x'] }, '400 REL_UNKNOWN_COLUMN'],
    [{ from: 'Film', rank_by: ['bm25', 'year', 'x'] }, '400 REL_TYPE_MISMATCH'],
    [{ from: 'Film', rank_by: ['best', 'title', 'x'] }, '400 REL_INVALID rank_by'],
    [{ from: 'Film', type: 'Film' }, '400 REL_INVALID'],
    [{ rank_by: ['bm25', 'title', 'x'] }, '400 REL_INVALID'],
    [{ from: 'Film', filters: [{ field: 'year', op: 'in', value: 1 }] }, '400 REL_INVALID'],
    [{ from: 'Film', filters: [{ field: 'year', op: 'gt', value: null }] }, '400 REL_INVALID'],
    [{ from: 'Film', filters: [{ field: 'tenant_id', op: 'eq', value: 'acme' }] }, '403 REL_TENANT_MISMATCH'],
    [{ from: 'Film', compute_attributes: { x: 'SELECT 1' } }, '400 REL_PARSE'],
    [{ from: 'Film', compute_attributes: { id: '1' } }, '400 REL_INVALID'],
    [{ queries: [{ from: 'Film' }], rerank_by: ['RRF'] }, '400 REL_INVALID queries'],
    [{ queries: [] }, '400 REL_INVALID queries'],
    [
      {
        queries: [
          { from: 'Film', limit: 99_999 },
          { from: 'Film', limit: 2 },
        ],
      },
      '406 REL_RESULT_CAP',
    ],
    [{ queries: Array.from({ length: 17 }, () => ({ from: 'Film' })) }, '400 REL_INVALID queries'],
    [
      { queries: [{ from: 'Film' }, { from: 'Film', rank_by: ['vector', 'ann', 'x'] }], rerank_by: ['RRF'] },
      '400 REL_INVALID queries[1]',
    ],
    [{ queries: [{ from: 'Film' }, { from: 'Nope' }] }, '404 REL_UNKNOWN_TYPE queries[1]'],
  ])('%j', async (body, start) => {
    expect((await refused(body)).slice(0, start.length)).toBe(start);
  });
});
