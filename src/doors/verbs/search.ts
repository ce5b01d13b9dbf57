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
const typesMax = 32;

/** Types that hold knowledge in words, searched by default. */
const knowledge: readonly string[] = ['DecisionRecord', 'DocumentChunk', 'DocumentSource', 'KnowledgeTriple', 'MemoryItem'];
/** Columns that say where a row is from. */
const sources: readonly string[] = ['source_id', 'source', 'uri', 'session_id'];

const fuzzy = z
  .union([z.boolean(), z.strictObject({ edit_distance: z.union([z.literal(1), z.literal(2)]) })])
  .default(false)
  .describe('words may differ by a letter or two');

const hits = z.object({
  hits: z.array(z.object({ type: z.string(), score: z.number(), row: z.record(z.string(), z.unknown()) })),
  total: z.int(),
});

const common = { output: hits, action: 'search', units: 1, purpose: 'required', bucket: 'read' } as const;

export const searchEntities = verb({
  ...common,
  name: 'search_entities',
  description: 'Find rows by words, in one type or in all that have texts, best first.',
  input: z.object({
    query: z.string().min(1).max(10_000),
    entity_type: z.string().min(1).optional().describe('this type alone'),
    limit: z.int().min(1).max(200).default(20),
    fuzzy,
  }),
  tool: { title: 'Search entities', readOnly: true },
  example: { query: 'tea' },
  run: (verbCall, { query, entity_type: type, limit, fuzzy: near }) => {
    const types = type === undefined ? textTypes(verbCall) : [knownType(verbCall, type).name];
    return findRows(verbCall, types, { query, limit, near, where: () => null });
  },
});

export const searchKnowledge = verb({
  ...common,
  name: 'search_knowledge',
  description: 'Find what is known in words: memories, decisions, documents and triples, best first.',
  input: z.object({
    query: z.string().min(1).max(10_000),
    type_filter: z
      .union([z.string().min(1), z.array(z.string().min(1)).min(1).max(typesMax)])
      .optional()
      .describe('these types alone'),
    source_filter: z.string().min(1).optional().describe('rows of this source alone: source_id, source, uri or session_id'),
    limit: z.int().min(1).max(200).default(20),
    min_confidence: z.number().min(0).max(1).default(0).describe('leave out what is less sure'),
    fuzzy,
  }),
  tool: { title: 'Search knowledge', readOnly: true },
  example: { query: 'tea' },
  run: (verbCall, { query, type_filter: only, source_filter: source, limit, min_confidence: floor, fuzzy: near }) => {
    const asked = only === undefined ? knowledge : [only].flat().map((name) => knownType(verbCall, name).name);
    const types = asked.filter((name) => hasTexts(verbCall, name));
    const where = (name: string): SearchCondition | null | 'none' => {
      const { properties } = verbCall.type(name);
      const conditions: SearchCondition[] = [];
      if (floor > 0 && properties['confidence'] !== undefined) conditions.push({ field: 'confidence', op: 'gte', value: floor });
      const named = sources.filter((column) => properties[column]?.type === 'string');
      if (source !== undefined && named.length === 0) return 'none';
      if (source !== undefined) conditions.push({ any: named.map((field) => ({ field, op: 'eq', value: source })) });
      return conditions.length === 0 ? null : { all: conditions };
    };
    return findRows(verbCall, types, { query, limit, near, where });
  },
});

function hasTexts(verbCall: VerbCall, name: string): boolean {
  const definition = verbCall.snapshot.catalog.type(name);
  return Object.values(definition?.properties ?? {}).some(({ type }) => holdsTexts(type));
}

/** Records of calls are no entities. */
const ofCalls: ReadonlySet<string> = new Set(['ToolCall', 'AgentSession', 'Quarantine']);

function textTypes(verbCall: VerbCall): readonly string[] {
  const names = verbCall.snapshot.catalog.types().map(({ name }) => name);
  return names.filter((name) => !ofCalls.has(name) && hasTexts(verbCall, name)).slice(0, typesMax);
}

interface Sought {
  readonly query: string;
  readonly limit: number;
  readonly near: boolean | { readonly edit_distance: 1 | 2 };
  /** 'none': no row of the type can be one. */
  readonly where: (type: string) => SearchCondition | null | 'none';
}

/** Scores of several types share one scale: BM25 of the same words. Quarantined rows are left out. */
async function findRows(verbCall: VerbCall, types: readonly string[], { query, limit, near, where }: Sought) {
  const hidden = await hiddenItems(verbCall);
  const most = Math.min(rowsMax, limit + hidden.size);
  const queries = types.flatMap((type): SearchQuery[] => {
    const condition = where(type);
    if (condition === 'none') return [];
    const ranking = { by: 'words', text: query, mode: 'ANY', columns: null, weights: {}, boosts: {} } as const;
    return [
      {
        type,
        ranking,
        where: condition,
        attributes: null,
        compute: [],
        facets: [],
        limit: most,
        typo: typoOf(near),
        cursor: null,
      },
    ];
  });
  if (queries.length === 0) return { hits: [], total: 0 };
  const request = { name: 'multi-search', queries, fuse: null, asOf: null, asOfSystem: null } as const;
  const { answers } = await search(verbCall.parts.planner, verbCall.reader(), request, verbCall.signal);
  const all = answers.flatMap((answer, i) =>
    shownRows(answer).flatMap((row) =>
      hidden.has(hiddenKey(queries[i]!.type, row))
        ? []
        : {
            type: queries[i]!.type,
            score: typeof row['_score'] === 'number' ? row['_score'] : 0,
            row,
          },
    ),
  );
  all.sort((a, b) => b.score - a.score || (a.type < b.type ? -1 : a.type > b.type ? 1 : 0));
  verbCall.note({ result: { row_count: Math.min(all.length, limit) } });
  return { hits: all.slice(0, limit), total: Math.min(all.length, limit) };
}

/** Rows that are asked for at most, those in quarantine included. */
const rowsMax = 1_000;

/** By default one letter in short words and two in long ones; else as many as were asked for, wherever a word has letters to spare. */
function typoOf(near: Sought['near']): TypoTolerance {
  const { minWordSize, longWordSize } =
    typeof near === 'boolean' ? { minWordSize: 4, longWordSize: longWord } : distances[near.edit_distance];
  return { enabled: near !== false, minWordSize, longWordSize, disableOnWords: [], disableOnAttributes: [] };
}

const distances = { 1: { minWordSize: 3, longWordSize: 1_000 }, 2: { minWordSize: 3, longWordSize: 5 } } as const;
