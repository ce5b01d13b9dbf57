/**
 * Bodies of /search and /multi-search: any bytes that are JSON are refused by their schema or with REL_INVALID, or they are a
 * search whose statement has a template, values for its slots, and no slot beyond them; a rank expression that parses has its own.
 */
import { assert, ServiceError } from '../../../src/errors.ts';
import { searchBodyOf, searchOf, severalBody, severalOf } from '../../../src/doors/http/search-body.ts';
import { parseRankExpression } from '../../../src/planner/languages/sql-parser.ts';
import { searchStatement } from '../../../src/planner/languages/search-json.ts';
import type { SearchRequest } from '../../../src/planner/languages/search-request.ts';
import { FakeStore } from '../../planner/fake-snapshot.ts';

export const name = 'search-body';

const store = new FakeStore([
  { name: 'Doc', properties: { id: 'string', title: 'string', n: 'integer', emb: 'vector' }, rows: [] },
]);

const bodies: readonly object[] = [
  { query: 'a b', type: 'Doc', matchingStrategy: 'all', typo_tolerance: { enabled: false, minWordSize: 3 }, limit: 2 },
  { query: 'a', type: 'Doc', fieldWeights: { title: 2 }, facets: ['n'], compute_attributes: { x: 'SUM(n, 2) * BM25()' } },
  { from: 'Doc', rank_by: ['bm25', 'title', 'x'], filters: [{ field: 'n', op: 'between', value: [1, 2] }], as_of: '2024-01-01' },
  { type: 'Doc', rankBy: ['field_weight', { title: 2 }, 'x'], filters: { or: [{ field: 'title', op: 'ilike', value: 'a%' }] } },
  { from: 'Doc', rank_by: ['vector', 'ann', [1, 2]], include_attributes: ['id'] },
  {
    queries: [{ from: 'Doc' }, { from: 'Doc', rank_by: ['boolean', 'title', 'a AND b'] }],
    rerank_by: ['RRF', { rankConstant: 3 }],
  },
  { queries: [{ query: 'a', type: 'Doc' }] },
];

export function seeds(): Uint8Array[] {
  const encoder = new TextEncoder();
  return [...bodies.map((body) => JSON.stringify(body)), 'SUM(DECAY(n, 2), SATURATE(BM25(), 3))', 'HIGHLIGHT(title)'].map(
    (text) => encoder.encode(text),
  );
}

export function run(bytes: Uint8Array): void {
  const text = new TextDecoder().decode(bytes);
  unlessRefused(() => {
    const { template, parameters, expression } = parseRankExpression(text.slice(0, 400));
    assert(
      template !== '' && slotsOf(expression).every((slot) => slot < parameters.length),
      'an expression numbers its own values',
    );
  });
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return;
  }
  const one = searchBodyOf(body).safeParse(body);
  if (one.success) unlessRefused(() => made(searchOf(one.data as Parameters<typeof searchOf>[0])));
  const several = severalBody.safeParse(body);
  if (several.success) unlessRefused(() => made(severalOf(several.data)));
}

function made({ queries, fuse }: SearchRequest): void {
  for (const query of queries) {
    const { question } = searchStatement(query, store.snapshot(), { offset: 0, withVersion: fuse !== null });
    const { template, parameters, statement } = question;
    assert(template.startsWith('SELECT '), 'a statement has a template');
    assert(
      slotsOf(statement).every((slot) => slot < parameters.length),
      'slots number values',
    );
  }
}

function slotsOf(tree: unknown): readonly number[] {
  const found: number[] = [];
  const open = [tree];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (typeof node !== 'object' || node === null) continue;
    if ('slot' in node && typeof node.slot === 'number') found.push(node.slot);
    open.push(...Object.values(node).filter((each) => each !== undefined));
  }
  return found;
}

function unlessRefused(attempt: () => void): void {
  try {
    attempt();
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code === 'REL_INTERNAL') throw error;
  }
}
