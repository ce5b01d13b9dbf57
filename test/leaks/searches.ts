/** What is asked of the search API: every member of its shapes, over the types that the worlds hold. */

const deal = (more: object): object => ({ type: 'Deal', ...more });
const words = ['note', 'who'].flatMap((column) => ['bm25', 'text', 'boolean'].map((by) => [by, column, 'open NOT note p1']));

export const searches: readonly object[] = [
  deal({ query: 'open' }),
  deal({ query: 'opn nota secrt c4n4ry', limit: 3, facets: ['who', 'note', 'amount', 'tenant_id'] }),
  ...['any', 'all', 'last', 'frequency', 'boolean'].map((matching_strategy) =>
    deal({ query: 'open note p1', matching_strategy }),
  ),
  deal({ query: 'open done', typoTolerance: { enabled: true, minWordSize: 5, disableOnWords: ['open'] } }),
  deal({ query: 'open done', typo_tolerance: { disable_on_attributes: ['note'] } }),
  deal({ query: '*e* o* *n', fieldWeights: { note: 3, who: 0.5 }, limit: 2 }),
  deal({ query: 'secret', limit: 0, facets: ['note'] }),
  deal({ query: 'open', as_of: '2024-01-01T00:00:02.000Z' }),
  deal({ query: 'open', asOfSystem: '2024-01-01T00:00:02.500Z', facets: ['who'] }),
  deal({ query: 'open', branch: 'trial' }),
  deal({ query: 'open note p1', consistency: 'eventual', facets: ['who', 'note'] }),
  deal({ query: 'opn secrt c4n4ry', consistency: 'eventual', typo_tolerance: { enabled: true }, limit: 3 }),
  deal({ query: 'open', consistency: 'eventual', asOfSystem: '2024-01-01T00:00:02.500Z' }),
  deal({ query: 'open', limit: 1, cursor: Buffer.from('1704067202500000000.1704067202000000000.1').toString('base64url') }),
  deal({ query: 'open', include_attributes: ['id', 'amount'], filters: [{ field: 'amount', op: 'lt', value: 1_000_000 }] }),
  deal({ query: 'open', filters: [{ field: 'tenant_id', op: 'eq', value: 'acme' }] }),
  deal({ query: 'open', filters: [{ field: 'tenant_id', op: 'in', value: ['globex', 'acme'] }] }),
  deal({ query: 's-1 s-2 secret', facets: ['ok'] }),
  deal({ query: 'open', facets: ['secret'] }),
  deal({ query: 'open', field_weights: { secret: 9 } }),
  deal({ query: 'open', filters: [{ field: 'secret', op: 'eq', value: 's-1' }] }),
  deal({ query: 'open', include_attributes: ['id', 'secret'], compute_attributes: { far: 'DIST(shape, 1, 0.5)' } }),
  { from: 'Deal', rank_by: ['bm25', 'secret', 's-1'] },
  deal({ query: 'opn c4n4ry', compute_attributes: { shown: 'HIGHLIGHT(note)', words: 'BM25()' } }),
  deal({ query: 'open', compute_attributes: { shown: 'HIGHLIGHT(secret)' } }),
  { query: 'open', type: 'acme.Deal' },
  { query: 'x', type: 'Dossier' },
  { query: 'open note c4n4ry', type: 'DocumentEntry', facets: ['collection'] },
  { query: 'opn nota c4n4ry', type: 'Paper', facets: ['kind'], limit: 3 },
  { query: 's-1 done c4n4ry', type: 'Paper', compute_attributes: { shown: 'HIGHLIGHT(body)' } },
  { query: 'open', type: 'Paper', include_attributes: ['id', 'aside', 'hidden'], consistency: 'eventual' },
  ...['body', 'aside', 'hidden'].map((column) => ({ from: 'Paper', rank_by: ['bm25', column, 'open s done c4n4ry'], limit: 5 })),
  { from: 'Paper', filters: [{ field: 'hidden', op: 'like', value: '%s-1%' }] },
  { query: 'x', type: 'Vault' },
  ...['LetterLink', 'NoticeLink', 'TaleLink'].map((type) => ({ query: 'p1 c4n4ry', type })),
  { query: 'x', type: 'Hidden' },
  { query: 'p1 p2', type: 'Party', compute_attributes: { far: 'DIST(score, 3)' } },
  ...words.map((rank_by) => ({ from: 'Deal', rank_by, limit: 5 })),
  { from: 'Deal', rank_by: ['field_weight', { note: 2, who: 1 }, 'open p1'], facets: ['who'] },
  { from: 'Deal', rank_by: ['vector', 'ann', [1, 0.5]], limit: 3 },
  { from: 'Deal', rank_by: ['vector', 'ann', 'open c4n4ry'], limit: 3 },
  { from: 'Deal', rank_by: ['vector', 'ann', [1, 0.5]], consistency: 'eventual', limit: 3 },
  {
    from: 'Deal',
    rank_by: ['vector', 'ann', [1, 0.5]],
    consistency: 'eventual',
    filters: [{ field: 'amount', op: 'lt', value: 1_000_000 }],
  },
  { from: 'Deal', rank_by: ['vector', 'ann', 'open c4n4ry'], consistency: 'eventual', limit: 3 },
  { from: 'Deal', rank_by: ['bm25', 'note', 'open note'], consistency: 'eventual', facets: ['who'] },
  {
    from: 'Deal',
    filters: {
      or: [
        { field: 'note', op: 'ilike', value: 'C4N4RY%' },
        { field: 'amount', op: 'gte', value: 1 },
      ],
    },
  },
  {
    from: 'Deal',
    filters: [
      { field: 'note', op: 'eq', value: null },
      { field: 'who', op: 'ne', value: 'p1' },
    ],
    facets: ['rate'],
  },
  { from: 'Deal', filters: [{ field: '_pk', op: 'in', value: ['d1', 'x1', 'x2'] }], include_attributes: ['_pk', 'note'] },
  {
    queries: [
      { from: 'Deal', rank_by: ['bm25', 'note', 'open note'] },
      { from: 'Deal', rank_by: ['bm25', 'who', 'p1'] },
      { from: 'Party', filters: [{ field: 'score', op: 'gt', value: 0 }] },
    ],
    rerank_by: ['RRF', { rank_constant: 1 }],
    limit: 5,
  },
  { queries: [{ from: 'Deal', limit: 2 }, { from: 'Vault' }], rerank_by: ['RRF'] },
];

export const severalSearches: readonly object[] = [
  { queries: [deal({ query: 'open', limit: 2 }), { query: 'p1', type: 'Party' }, deal({ query: 'opn', facets: ['note'] })] },
  { queries: [deal({ query: 'open' }), { query: 'x', type: 'Hidden' }] },
];
