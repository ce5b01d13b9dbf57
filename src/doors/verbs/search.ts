/** search_entities and search_knowledge: the search of `/search`, in process, over several types. Source: specification, "Tool protocol (MCP)". */
import { holdsTexts } from '../../log/values/value.ts';
import { z } from 'zod';
import type { SearchCondition, SearchQuery } from '../../planner/languages/search-request.ts';
import { search } from '../../planner/search/search.ts';
import { longWord, type TypoTolerance } from '../../governance/text-search/text-query.ts';
import { hiddenItems, hiddenKey } from './quarantined-items.ts';
import { knownType, shownRows } from './query.ts';
import type { VerbCall } from './verb-call.ts';
import { verb } from './verb.ts';

/** Types that one call searches. */
const searchedTypesMax = 32;

/** Types that hold knowledge in words, searched by default. */
const knowledgeTypes: readonly string[] = ['DecisionRecord', 'DocumentChunk', 'DocumentSource', 'KnowledgeTriple', 'MemoryItem'];
/** Columns that say where a row is from. */
const sourceColumns: readonly string[] = ['source_id', 'source', 'uri', 'session_id'];

const fuzzyField = z
  .union([z.boolean(), z.strictObject({ edit_distance: z.union([z.literal(1), z.literal(2)]) })])
  .default(false)
  .describe('words may differ by a letter or two');

const searchHitsOutput = z.object({
  hits: z.array(z.object({ type: z.string(), score: z.number(), row: z.record(z.string(), z.unknown()) })),
  total: z.int(),
});

const searchVerb = { output: searchHitsOutput, action: 'search', units: 1, purpose: 'required', bucket: 'read' } as const;

export const searchEntities = verb({
  ...searchVerb,
  name: 'search_entities',
  description: 'Find rows by words, in one type or in all that have texts, best first.',
  input: z.object({
    query: z.string().min(1).max(10_000),
    entity_type: z.string().min(1).optional().describe('this type alone'),
    limit: z.int().min(1).max(200).default(20),
    fuzzy: fuzzyField,
  }),
  tool: { title: 'Search entities', readOnly: true },
  example: { query: 'tea' },
  run: (verbCall, { query: searchText, entity_type: searchedType, limit: hitLimit, fuzzy: fuzziness }) => {
    const searchedTypes = searchedType === undefined ? searchableTypes(verbCall) : [knownType(verbCall, searchedType).name];
    return findSearchRows(verbCall, searchedTypes, { query: searchText, limit: hitLimit, near: fuzziness, where: () => null });
  },
});

export const searchKnowledge = verb({
  ...searchVerb,
  name: 'search_knowledge',
  description: 'Find what is known in words: memories, decisions, documents and triples, best first.',
  input: z.object({
    query: z.string().min(1).max(10_000),
    type_filter: z
      .union([z.string().min(1), z.array(z.string().min(1)).min(1).max(searchedTypesMax)])
      .optional()
      .describe('these types alone'),
    source_filter: z.string().min(1).optional().describe('rows of this source alone: source_id, source, uri or session_id'),
    limit: z.int().min(1).max(200).default(20),
    min_confidence: z.number().min(0).max(1).default(0).describe('leave out what is less sure'),
    fuzzy: fuzzyField,
  }),
  tool: { title: 'Search knowledge', readOnly: true },
  example: { query: 'tea' },
  run: (
    verbCall,
    {
      query: searchText,
      type_filter: typeFilter,
      source_filter: sourceFilter,
      limit: hitLimit,
      min_confidence: confidenceFloor,
      fuzzy: fuzziness,
    },
  ) => {
    const askedTypes =
      typeFilter === undefined ? knowledgeTypes : [typeFilter].flat().map((typeName) => knownType(verbCall, typeName).name);
    const searchedTypes = askedTypes.filter((typeName) => typeHasTexts(verbCall, typeName));
    const typeCondition = (typeName: string): SearchCondition | null | 'none' => {
      const { properties: typeProperties } = verbCall.type(typeName);
      const searchConditions: SearchCondition[] = [];
      if (confidenceFloor > 0 && typeProperties['confidence'] !== undefined)
        searchConditions.push({ field: 'confidence', op: 'gte', value: confidenceFloor });
      const presentSources = sourceColumns.filter((sourceColumn) => typeProperties[sourceColumn]?.type === 'string');
      if (sourceFilter !== undefined && presentSources.length === 0) return 'none';
      if (sourceFilter !== undefined)
        searchConditions.push({
          any: presentSources.map((sourceField) => ({ field: sourceField, op: 'eq', value: sourceFilter })),
        });
      return searchConditions.length === 0 ? null : { all: searchConditions };
    };
    return findSearchRows(verbCall, searchedTypes, { query: searchText, limit: hitLimit, near: fuzziness, where: typeCondition });
  },
});

function typeHasTexts(verbCall: VerbCall, typeName: string): boolean {
  const typeDefinition = verbCall.snapshot.catalog.type(typeName);
  return Object.values(typeDefinition?.properties ?? {}).some(({ type: columnType }) => holdsTexts(columnType));
}

/** Records of calls are no entities. */
const callRecordTypes: ReadonlySet<string> = new Set(['ToolCall', 'AgentSession', 'Quarantine']);

function searchableTypes(verbCall: VerbCall): readonly string[] {
  const typeNames = verbCall.snapshot.catalog.types().map(({ name: typeName }) => typeName);
  return typeNames
    .filter((typeName) => !callRecordTypes.has(typeName) && typeHasTexts(verbCall, typeName))
    .slice(0, searchedTypesMax);
}

interface SoughtRows {
  readonly query: string;
  readonly limit: number;
  readonly near: boolean | { readonly edit_distance: 1 | 2 };
  /** 'none': no row of the type can be one. */
  readonly where: (type: string) => SearchCondition | null | 'none';
}

/** Scores of several types share one scale: BM25 of the same words. Quarantined rows are left out. */
async function findSearchRows(
  verbCall: VerbCall,
  searchedTypes: readonly string[],
  { query: searchText, limit: hitLimit, near: fuzziness, where: conditionOfType }: SoughtRows,
) {
  const hiddenRows = await hiddenItems(verbCall);
  const rowLimit = Math.min(searchRowsMax, hitLimit + hiddenRows.size);
  const typeQueries = searchedTypes.flatMap((searchedType): SearchQuery[] => {
    const typeCondition = conditionOfType(searchedType);
    if (typeCondition === 'none') return [];
    const wordRanking = { by: 'words', text: searchText, mode: 'ANY', columns: null, weights: {}, boosts: {} } as const;
    return [
      {
        type: searchedType,
        ranking: wordRanking,
        where: typeCondition,
        attributes: null,
        compute: [],
        facets: [],
        limit: rowLimit,
        typo: fuzzyTypoTolerance(fuzziness),
        cursor: null,
      },
    ];
  });
  if (typeQueries.length === 0) return { hits: [], total: 0 };
  const multiSearch = { name: 'multi-search', queries: typeQueries, fuse: null, asOf: null, asOfSystem: null } as const;
  const { answers: searchAnswers } = await search(verbCall.parts.planner, verbCall.reader(), multiSearch, verbCall.signal);
  const allHits = searchAnswers.flatMap((searchAnswer, i) =>
    shownRows(searchAnswer).flatMap((hitRow) =>
      hiddenRows.has(hiddenKey(typeQueries[i]!.type, hitRow))
        ? []
        : {
            type: typeQueries[i]!.type,
            score: typeof hitRow['_score'] === 'number' ? hitRow['_score'] : 0,
            row: hitRow,
          },
    ),
  );
  allHits.sort((hitA, hitB) => hitB.score - hitA.score || (hitA.type < hitB.type ? -1 : hitA.type > hitB.type ? 1 : 0));
  verbCall.note({ result: { row_count: Math.min(allHits.length, hitLimit) } });
  return { hits: allHits.slice(0, hitLimit), total: Math.min(allHits.length, hitLimit) };
}

/** Rows that are asked for at most, those in quarantine included. */
const searchRowsMax = 1_000;

/** By default one letter in short words and two in long ones; else as many as were asked for, wherever a word has letters to spare. */
function fuzzyTypoTolerance(fuzziness: SoughtRows['near']): TypoTolerance {
  const { minWordSize, longWordSize } =
    typeof fuzziness === 'boolean' ? { minWordSize: 4, longWordSize: longWord } : typoWordSizes[fuzziness.edit_distance];
  return { enabled: fuzziness !== false, minWordSize, longWordSize, disableOnWords: [], disableOnAttributes: [] };
}

const typoWordSizes = { 1: { minWordSize: 3, longWordSize: 1_000 }, 2: { minWordSize: 3, longWordSize: 5 } } as const;
