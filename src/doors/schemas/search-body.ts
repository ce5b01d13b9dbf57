/**
 * Bodies of searches on all doors: shape A has a `query`, shape C has `queries`, all others are shape B. Source: specification,
 * "Search". Members are in snake case or in camel case.
 */
import { z } from 'zod';
import { ServiceError } from '../../errors.ts';
import { type MatchMode, type TypoTolerance, typoPresets } from '../../governance/text-search/text-query.ts';
import {
  filterOps,
  type SearchCondition,
  type SearchQuery,
  type SearchRanking,
  type SearchRequest,
} from '../../planner/languages/search-request.ts';
import { record } from './schema-check.ts';
import { float, scalar } from './exact-numbers.ts';
import { type StatedInstants, toInstant } from './instants.ts';
import { eitherSpelling } from './member-spelling.ts';
import { stated } from './request-terms.ts';

/** Source: specification, "Limits": batch subqueries, RRF constant. */
const batchMost = 16;
const rankConstant = 60;
const limitByDefault = 20;
/** Each is a line of the access record. */
const severalMost = 64;
const vectorMost = 4_096;
const conditionsMost = 8_192;
const scalarsMost = 16_384;

export const typoTolerance = eitherSpelling({
  enabled: z.boolean().optional().describe('true by default'),
  min_word_size: z.int().min(0).max(1_000).optional().describe('characters from which on a word may differ; any by default'),
  disable_on_words: z.array(z.string()).max(1_000).optional(),
  disable_on_attributes: z.array(z.string()).max(1_000).optional(),
}).transform(
  (given): TypoTolerance => ({
    ...typoPresets.default,
    enabled: given.enabled ?? true,
    minWordSize: given.min_word_size ?? 0,
    disableOnWords: given.disable_on_words ?? [],
    disableOnAttributes: given.disable_on_attributes ?? [],
  }),
);

const filter = z.strictObject({
  field: z.string(),
  op: z.enum(filterOps),
  value: z.union([scalar, z.array(scalar).max(scalarsMost)]).describe('a list with in, the two ends with between'),
});
type Filter = z.infer<typeof filter> | { readonly and: readonly Filter[] } | { readonly or: readonly Filter[] };
const conditions = z.array(z.lazy((): z.ZodType<Filter> => condition)).max(conditionsMost);
const condition: z.ZodType<Filter> = z.lazy(() =>
  z.union([filter, z.strictObject({ and: conditions }), z.strictObject({ or: conditions })]),
);

const weights = record(z.number().min(0).max(1e6));

/** Members that every shape may have, about its rows and its answer. */
const common = {
  filters: z.union([conditions, condition]).optional().describe('all of a list; {and: […]}, {or: […]} or one condition'),
  include_attributes: z.array(z.string()).min(1).max(1_024).optional().describe('columns of the answer; all by default'),
  compute_attributes: record(z.string(), 256)
    .optional()
    .describe('by label: a rank expression, as behind COMPUTE; HIGHLIGHT(column) too'),
  facets: z.array(z.string()).max(64).optional().describe('columns whose values are counted over all that matches'),
  consistency: z
    .enum(['strong', 'eventual'])
    .optional()
    .describe('strong by default; eventual: nearest vectors may be approximate, and rows whose texts are being indexed left out'),
  typo_tolerance: typoTolerance.optional(),
  limit: z.int().min(0).optional().describe(`rows at most; ${limitByDefault} by default`),
  cursor: z.string().optional().describe('next_cursor of the answer before, of the same search'),
};

const words = {
  query: z.string().describe('what is searched for'),
  type: z.string().describe('the type that is searched'),
  matching_strategy: z
    .enum(['any', 'all', 'last', 'frequency', 'boolean'])
    .optional()
    .describe('which terms are required: none (any, the default), all, the last, the rarest; or by AND, OR and NOT'),
  field_weights: weights.optional().describe('by column: what a score is multiplied by where it holds a term'),
  ...common,
};

const name = (of: string, text: string) => z.string().refine((given) => given.toLowerCase() === of, `${text} is written "${of}"`);

const rankBy = z.union([
  z.tuple([z.enum(['bm25', 'text', 'boolean']), z.string(), z.string()]),
  z.tuple([z.literal('field_weight'), weights, z.string()]),
  z.tuple([z.literal('vector'), z.literal('ann'), z.union([z.string(), z.array(float(z.number())).min(1).max(vectorMost)])]),
]);

const typed = {
  from: z.string().optional().describe('the type'),
  type: z.string().optional().describe('the same'),
  rank_by: rankBy
    .optional()
    .describe(
      '["bm25" or "text" or "boolean", column, query], ["field_weight", {column: weight}, query] or ["vector", "ann", query]',
    ),
  ...common,
};

const oneType = [
  (given: object) => 'from' in given !== 'type' in given,
  'from: the type is named once, as from or as type',
] as const;

export const wordsBody = eitherSpelling({ ...words, ...stated });
export const typedBody = eitherSpelling({ ...typed, ...stated }).refine(...oneType);
export const batchBody = eitherSpelling({
  queries: z
    .array(eitherSpelling(typed).refine(...oneType))
    .min(1)
    .max(batchMost),
  rerank_by: z
    .union([
      z.tuple([name('rrf', 'the fusion')]),
      z.tuple([name('rrf', 'the fusion'), eitherSpelling({ rank_constant: z.number().min(0).max(1e6).optional() })]),
    ])
    .optional()
    .describe('["RRF", {rank_constant: 60}]: fuses two answers or more'),
  limit: common.limit,
  ...stated,
});
export const severalBody = eitherSpelling({ queries: z.array(eitherSpelling(words)).min(1).max(severalMost), ...stated });

/** The body as /openapi.json shows it; a request is checked against the one shape that its keys choose. */
export const searchBody = z.union([wordsBody, batchBody, typedBody]);

export function searchBodyOf(body: unknown): z.ZodType {
  if (typeof body !== 'object' || body === null) return typedBody;
  return 'query' in body ? wordsBody : 'queries' in body ? batchBody : typedBody;
}

type Words = z.output<typeof wordsBody>;
type Typed = z.output<typeof typedBody>;
type Batch = z.output<typeof batchBody>;
type Several = z.output<typeof severalBody>;

/** Throws REL_INVALID for what no one member says wrong. */
export function searchOf(body: Words | Typed | Batch): SearchRequest {
  const times = timesOf(body);
  if ('query' in body) return { name: 'search', queries: [byWords(body)], fuse: null, ...times };
  if (!('queries' in body)) return { name: 'search', queries: [byType(body)], fuse: null, ...times };
  const { queries, rerank_by: fusion, limit = limitByDefault } = body;
  if (fusion && queries.length < 2) throw new ServiceError('REL_INVALID', 'queries: RRF fuses two searches or more');
  const asked = queries.map(byType);
  for (const [i, { ranking }] of asked.entries()) {
    if (ranking && ranking.by !== 'words') {
      throw new ServiceError('REL_INVALID', `queries[${i}]: a batch takes no vector: ask it by itself`);
    }
  }
  const fuse = fusion ? { constant: fusion[1]?.rank_constant ?? rankConstant, limit } : null;
  return { name: 'batch search', queries: asked, fuse, ...times };
}

export function severalOf(body: Several): SearchRequest {
  return { name: 'multi-search', queries: body.queries.map(byWords), fuse: null, ...timesOf(body) };
}

function timesOf(body: StatedInstants): Pick<SearchRequest, 'asOf' | 'asOfSystem'> {
  const { as_of: valid, as_of_system: system } = body;
  return { asOf: valid === undefined ? null : toInstant(valid), asOfSystem: system === undefined ? null : toInstant(system) };
}

const modes = { any: 'ANY', all: 'ALL', last: 'LAST', frequency: 'FREQUENCY', boolean: 'BOOLEAN' } as const satisfies Record<
  string,
  MatchMode
>;

function byWords(given: Omit<Words, keyof typeof stated>): SearchQuery {
  const { query: text, type, matching_strategy: strategy = 'any', field_weights: boosts = {} } = given;
  const attributes = given.include_attributes;
  return {
    ...commonOf(given),
    type,
    // Each hit says whose it is.
    attributes: attributes ? [...new Set([...attributes, 'tenant_id'])] : null,
    ranking: { by: 'words', text, mode: modes[strategy], columns: null, weights: {}, boosts },
  };
}

function byType(given: Omit<Typed, keyof typeof stated>): SearchQuery {
  return { ...commonOf(given), type: (given.from ?? given.type)!, ranking: given.rank_by ? rankingOf(given.rank_by) : null };
}

function rankingOf(rank: z.infer<typeof rankBy>): SearchRanking {
  const [by, what, query] = rank;
  if (by === 'vector') return typeof query === 'string' ? { by: 'meaning', text: query } : { by: 'vector', vector: query };
  const text = query as string;
  if (by === 'field_weight') {
    const columns = Object.keys(what);
    if (columns.length === 0) throw new ServiceError('REL_INVALID', 'rank_by: field_weight takes at least one column');
    return { by: 'words', text, mode: 'ANY', columns, weights: what, boosts: {} };
  }
  return { by: 'words', text, mode: by === 'boolean' ? 'BOOLEAN' : 'ANY', columns: [what], weights: {}, boosts: {} };
}

function commonOf(given: Partial<Omit<Words, 'query' | 'type'>>): Omit<SearchQuery, 'type' | 'ranking'> {
  const {
    consistency = 'strong',
    filters,
    include_attributes,
    compute_attributes = {},
    facets = [],
    typo_tolerance,
    limit,
    cursor,
  } = given;
  return {
    where: filters === undefined ? null : conditionOf(filters),
    attributes: include_attributes ?? null,
    compute: Object.entries(compute_attributes).map(([label, expression]) => ({ label, expression })),
    facets: [...new Set(facets)],
    typo: typo_tolerance ?? null,
    consistency,
    limit: limit ?? limitByDefault,
    cursor: cursor ?? null,
  };
}

function conditionOf(given: Filter | readonly Filter[]): SearchCondition | null {
  if (Array.isArray(given)) {
    const list = given as readonly Filter[];
    return list.length === 0 ? null : { all: list.map(wholeCondition) };
  }
  return wholeCondition(given as Filter);
}

function wholeCondition(given: Filter): SearchCondition {
  if ('and' in given) return { all: given.and.map(wholeCondition) };
  if ('or' in given) return { any: given.or.map(wholeCondition) };
  return given;
}
