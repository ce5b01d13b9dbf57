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
    const type = words.word('TYPE')!;
    const definition = catalog.type(type);
    if (definition === undefined) return { type, reads: [], named: [] };
    const texts = searchedColumns(definition, words);
    const ranked = { type, reads: [...texts, ...vectorColumns(definition)], named: [] };
    return words.word('FUSION') === 'likeness' ? ranked : { ...ranked, matches: { columns: texts, argument: 'QUERY' } };
  },
  prepare: prepareHybrid,
  open: (opening) => new HybridOperator(opening),
};

function searchedColumns(definition: TypeDefinition, words: Words): readonly string[] {
  const column = words.word('COLUMN');
  if (column === undefined) return wordColumns(definition);
  const property = definition.properties[column];
  if (property && holdsTexts(property.type)) return [column];
  const text = `type ${JSON.stringify(definition.name)} has no text column ${JSON.stringify(column)}`;
  throw errorAt('REL_UNKNOWN_COLUMN', text, words.locationOf('COLUMN'));
}
