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
import { record } from '../shared/schema-check.ts';
import { float, scalar } from '../shared/exact-numbers.ts';
import { type StatedInstants, toInstant } from '../shared/instants.ts';
import { eitherSpelling } from '../verbs/member-spelling.ts';
import { stated } from './request-terms.ts';

/** Source: specification, "Limits": batch subqueries, RRF constant. */
const batchSearchesMax = 16;
const fusionRankConstant = 60;
const searchLimitDefault = 20;
/** Each is a line of the access record. */
const multiSearchesMax = 64;
const searchVectorDimsMax = 4_096;
const searchConditionsMax = 8_192;
const filterScalarsMax = 16_384;

export const typoTolerance = eitherSpelling({
  enabled: z.boolean().optional().describe('true by default'),
  min_word_size: z.int().min(0).max(1_000).optional().describe('characters from which on a word may differ; any by default'),
  disable_on_words: z.array(z.string()).max(1_000).optional(),
  disable_on_attributes: z.array(z.string()).max(1_000).optional(),
}).transform(
  (typoFields): TypoTolerance => ({
    ...typoPresets.default,
    enabled: typoFields.enabled ?? true,
    minWordSize: typoFields.min_word_size ?? 0,
    disableOnWords: typoFields.disable_on_words ?? [],
    disableOnAttributes: typoFields.disable_on_attributes ?? [],
  }),
);

const searchFilter = z.strictObject({
  field: z.string(),
  op: z.enum(filterOps),
  value: z.union([scalar, z.array(scalar).max(filterScalarsMax)]).describe('a list with in, the two ends with between'),
});
type SearchFilter =
  | z.infer<typeof searchFilter>
  | { readonly and: readonly SearchFilter[] }
  | { readonly or: readonly SearchFilter[] };
const searchFilters = z.array(z.lazy((): z.ZodType<SearchFilter> => searchFilterTree)).max(searchConditionsMax);
const searchFilterTree: z.ZodType<SearchFilter> = z.lazy(() =>
  z.union([searchFilter, z.strictObject({ and: searchFilters }), z.strictObject({ or: searchFilters })]),
);

const fieldWeights = record(z.number().min(0).max(1e6));

/** Members that every shape may have, about its rows and its answer. */
const commonSearchFields = {
  filters: z
    .union([searchFilters, searchFilterTree])
    .optional()
    .describe('all of a list; {and: […]}, {or: […]} or one condition'),
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
  limit: z.int().min(0).optional().describe(`rows at most; ${searchLimitDefault} by default`),
  cursor: z.string().optional().describe('next_cursor of the answer before, of the same search'),
};

const wordSearchFields = {
  query: z.string().describe('what is searched for'),
  type: z.string().describe('the type that is searched'),
  matching_strategy: z
    .enum(['any', 'all', 'last', 'frequency', 'boolean'])
    .optional()
    .describe('which terms are required: none (any, the default), all, the last, the rarest; or by AND, OR and NOT'),
  field_weights: fieldWeights.optional().describe('by column: what a score is multiplied by where it holds a term'),
  ...commonSearchFields,
};

const writtenName = (requiredName: string, namedThing: string) =>
  z.string().refine((writtenText) => writtenText.toLowerCase() === requiredName, `${namedThing} is written "${requiredName}"`);

const rankByField = z.union([
  z.tuple([z.enum(['bm25', 'text', 'boolean']), z.string(), z.string()]),
  z.tuple([z.literal('field_weight'), fieldWeights, z.string()]),
  z.tuple([
    z.literal('vector'),
    z.literal('ann'),
    z.union([z.string(), z.array(float(z.number())).min(1).max(searchVectorDimsMax)]),
  ]),
]);

const typedSearchFields = {
  from: z.string().optional().describe('the type'),
  type: z.string().optional().describe('the same'),
  rank_by: rankByField
    .optional()
    .describe(
      '["bm25" or "text" or "boolean", column, query], ["field_weight", {column: weight}, query] or ["vector", "ann", query]',
    ),
  ...commonSearchFields,
};

const oneTypeCheck = [
  (typoFields: object) => 'from' in typoFields !== 'type' in typoFields,
  'from: the type is named once, as from or as type',
] as const;

export const wordsBody = eitherSpelling({ ...wordSearchFields, ...stated });
export const typedBody = eitherSpelling({ ...typedSearchFields, ...stated }).refine(...oneTypeCheck);
export const batchBody = eitherSpelling({
  queries: z
    .array(eitherSpelling(typedSearchFields).refine(...oneTypeCheck))
    .min(1)
    .max(batchSearchesMax),
  rerank_by: z
    .union([
      z.tuple([writtenName('rrf', 'the fusion')]),
      z.tuple([writtenName('rrf', 'the fusion'), eitherSpelling({ rank_constant: z.number().min(0).max(1e6).optional() })]),
    ])
    .optional()
    .describe('["RRF", {rank_constant: 60}]: fuses two answers or more'),
  limit: commonSearchFields.limit,
  ...stated,
});
export const severalBody = eitherSpelling({
  queries: z.array(eitherSpelling(wordSearchFields)).min(1).max(multiSearchesMax),
  ...stated,
});

/** The body as /openapi.json shows it; a request is checked against the one shape that its keys choose. */
export const searchBody = z.union([wordsBody, batchBody, typedBody]);

export function searchBodyOf(searchFields: unknown): z.ZodType {
  if (typeof searchFields !== 'object' || searchFields === null) return typedBody;
  return 'query' in searchFields ? wordsBody : 'queries' in searchFields ? batchBody : typedBody;
}

type WordSearch = z.output<typeof wordsBody>;
type TypedSearch = z.output<typeof typedBody>;
type BatchSearch = z.output<typeof batchBody>;
type MultiSearch = z.output<typeof severalBody>;

/** Throws REL_INVALID for what no one member says wrong. */
export function searchOf(searchFields: WordSearch | TypedSearch | BatchSearch): SearchRequest {
  const statedTimes = searchTimes(searchFields);
  if ('query' in searchFields) return { name: 'search', queries: [wordSearchQuery(searchFields)], fuse: null, ...statedTimes };
  if (!('queries' in searchFields))
    return { name: 'search', queries: [typedSearchQuery(searchFields)], fuse: null, ...statedTimes };
  const { queries: batchQueries, rerank_by: rankFusion, limit: fusedLimit = searchLimitDefault } = searchFields;
  if (rankFusion && batchQueries.length < 2) throw new ServiceError('REL_INVALID', 'queries: RRF fuses two searches or more');
  const typedQueries = batchQueries.map(typedSearchQuery);
  for (const [i, { ranking: queryRanking }] of typedQueries.entries()) {
    if (queryRanking && queryRanking.by !== 'words') {
      throw new ServiceError('REL_INVALID', `queries[${i}]: a batch takes no vector: ask it by itself`);
    }
  }
  const fusionOptions = rankFusion ? { constant: rankFusion[1]?.rank_constant ?? fusionRankConstant, limit: fusedLimit } : null;
  return { name: 'batch search', queries: typedQueries, fuse: fusionOptions, ...statedTimes };
}

export function severalOf(multiSearchFields: MultiSearch): SearchRequest {
  return {
    name: 'multi-search',
    queries: multiSearchFields.queries.map(wordSearchQuery),
    fuse: null,
    ...searchTimes(multiSearchFields),
  };
}

function searchTimes(searchFields: StatedInstants): Pick<SearchRequest, 'asOf' | 'asOfSystem'> {
  const { as_of: validTime, as_of_system: systemTime } = searchFields;
  return {
    asOf: validTime === undefined ? null : toInstant(validTime),
    asOfSystem: systemTime === undefined ? null : toInstant(systemTime),
  };
}

const matchModes = { any: 'ANY', all: 'ALL', last: 'LAST', frequency: 'FREQUENCY', boolean: 'BOOLEAN' } as const satisfies Record<
  string,
  MatchMode
>;

function wordSearchQuery(wordSearch: Omit<WordSearch, keyof typeof stated>): SearchQuery {
  const {
    query: searchText,
    type: searchedType,
    matching_strategy: matchingStrategy = 'any',
    field_weights: fieldBoosts = {},
  } = wordSearch;
  const includedAttributes = wordSearch.include_attributes;
  return {
    ...commonSearchQuery(wordSearch),
    type: searchedType,
    // Each hit says whose it is.
    attributes: includedAttributes ? [...new Set([...includedAttributes, 'tenant_id'])] : null,
    ranking: {
      by: 'words',
      text: searchText,
      mode: matchModes[matchingStrategy],
      columns: null,
      weights: {},
      boosts: fieldBoosts,
    },
  };
}

function typedSearchQuery(typedSearch: Omit<TypedSearch, keyof typeof stated>): SearchQuery {
  return {
    ...commonSearchQuery(typedSearch),
    type: (typedSearch.from ?? typedSearch.type)!,
    ranking: typedSearch.rank_by ? searchRanking(typedSearch.rank_by) : null,
  };
}

function searchRanking(rankByTuple: z.infer<typeof rankByField>): SearchRanking {
  const [rankMethod, rankTarget, rankQuery] = rankByTuple;
  if (rankMethod === 'vector')
    return typeof rankQuery === 'string' ? { by: 'meaning', text: rankQuery } : { by: 'vector', vector: rankQuery };
  const rankText = rankQuery as string;
  if (rankMethod === 'field_weight') {
    const weightedColumns = Object.keys(rankTarget);
    if (weightedColumns.length === 0) throw new ServiceError('REL_INVALID', 'rank_by: field_weight takes at least one column');
    return { by: 'words', text: rankText, mode: 'ANY', columns: weightedColumns, weights: rankTarget, boosts: {} };
  }
  return {
    by: 'words',
    text: rankText,
    mode: rankMethod === 'boolean' ? 'BOOLEAN' : 'ANY',
    columns: [rankTarget],
    weights: {},
    boosts: {},
  };
}

function commonSearchQuery(searchFields: Partial<Omit<WordSearch, 'query' | 'type'>>): Omit<SearchQuery, 'type' | 'ranking'> {
  const {
    consistency: searchConsistency = 'strong',
    filters: searchFiltersGiven,
    include_attributes,
    compute_attributes = {},
    facets: facetColumns = [],
    typo_tolerance,
    limit: searchLimit,
    cursor: searchCursor,
  } = searchFields;
  return {
    where: searchFiltersGiven === undefined ? null : searchConditionOf(searchFiltersGiven),
    attributes: include_attributes ?? null,
    compute: Object.entries(compute_attributes).map(([computedLabel, rankExpression]) => ({
      label: computedLabel,
      expression: rankExpression,
    })),
    facets: [...new Set(facetColumns)],
    typo: typo_tolerance ?? null,
    consistency: searchConsistency,
    limit: searchLimit ?? searchLimitDefault,
    cursor: searchCursor ?? null,
  };
}

function searchConditionOf(givenFilter: SearchFilter | readonly SearchFilter[]): SearchCondition | null {
  if (Array.isArray(givenFilter)) {
    const filterList = givenFilter as readonly SearchFilter[];
    return filterList.length === 0 ? null : { all: filterList.map(filterCondition) };
  }
  return filterCondition(givenFilter as SearchFilter);
}

function filterCondition(givenFilter: SearchFilter): SearchCondition {
  if ('and' in givenFilter) return { all: givenFilter.and.map(filterCondition) };
  if ('or' in givenFilter) return { any: givenFilter.or.map(filterCondition) };
  return givenFilter;
}
