/**
 * HYBRID_SEARCH: rows of a type by a text, ranked by its words (BM25) and by the likeness of meaning, both fused.
 *
 *   HYBRID_SEARCH FROM Doc QUERY 'solar panels' LIMIT 5
 *   SELECT * FROM HYBRID_SEARCH('Doc', 'solar panels', FUSION => 'linear') LIMIT 5
 */
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { holdsTexts } from '../../log/values/value.ts';
import { errorAt } from '../syntax/error-location.ts';
import { HybridOperator, prepareHybrid, rerankedColumn } from './hybrid-operator.ts';
import type { Words } from '../calls/argument-spec.ts';
import { vectorColumns, wordColumns } from '../../governance/embedding/embedded-columns.ts';
import type { TableFunction } from '../calls/table-function.ts';

export const hybridSearch: TableFunction = {
  name: 'HYBRID_SEARCH',
  summary: 'Rows of a type by the words of a text and by how alike they are to it, both rankings fused.',
  arguments: [
    { name: 'TYPE', kind: 'type', required: true, summary: 'the type' },
    { name: 'QUERY', kind: 'text', required: true, summary: 'the text that is searched for' },
    {
      name: 'FUSION',
      kind: 'word',
      choices: ['rrf', 'linear', 'likeness'],
      summary: "how rankings are fused: 'rrf' (by place, the default), 'linear' (by score), or 'likeness' alone",
    },
    { name: 'COLUMN', kind: 'column', summary: 'the one column that is searched; every column of texts or JSON by default' },
    {
      name: 'VECTOR',
      kind: 'vector',
      summary: 'the text as the model sees it, where that is known: the model is not asked then; zeros: words alone decide',
    },
    {
      name: 'RERANK',
      kind: 'word',
      choices: ['true', 'false'],
      summary: 'whether the reranker of SERVICE_RERANK_URL orders what was found',
    },
  ],
  action: 'search',
  units: 1,
  deterministic: true,
  types: ({ words }) => [words.word('TYPE')!],
  columns: ({ words }) => {
    if (words.word('RERANK') === 'true') return [{ name: rerankedColumn, type: 'number' }];
    return [{ name: (words.word('FUSION') ?? 'rrf') === 'rrf' ? '_rrf_score' : '_score', type: 'number' }];
  },
  ranks: ({ words, catalog }) => {
    const hybridType = words.word('TYPE')!;
    const hybridDefinition = catalog.type(hybridType);
    if (hybridDefinition === undefined) return { type: hybridType, reads: [], named: [] };
    const searchedTexts = hybridSearchedColumns(hybridDefinition, words);
    const rankedColumns = { type: hybridType, reads: [...searchedTexts, ...vectorColumns(hybridDefinition)], named: [] };
    return words.word('FUSION') === 'likeness'
      ? rankedColumns
      : { ...rankedColumns, matches: { columns: searchedTexts, argument: 'QUERY' } };
  },
  prepare: prepareHybrid,
  open: (opening) => new HybridOperator(opening),
};

function hybridSearchedColumns(definition: TypeDefinition, hybridWords: Words): readonly string[] {
  const searchedColumn = hybridWords.word('COLUMN');
  if (searchedColumn === undefined) return wordColumns(definition);
  const searchedProperty = definition.properties[searchedColumn];
  if (searchedProperty && holdsTexts(searchedProperty.type)) return [searchedColumn];
  const noTextColumn = `type ${JSON.stringify(definition.name)} has no text column ${JSON.stringify(searchedColumn)}`;
  throw errorAt('REL_UNKNOWN_COLUMN', noTextColumn, hybridWords.locationOf('COLUMN'));
}
