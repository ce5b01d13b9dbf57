/** similar_multimodal: rows like a text, a vector or another row. Source: specification, "Tool protocol (MCP)". */
import { z } from 'zod';
import { ServiceError } from '../../errors.ts';
import type { Answer } from '../../planner/planner-contract.ts';
import { float } from '../shared/exact-numbers.ts';
import { hiddenItems, hiddenKey } from './quarantined-items.ts';
import { answerMembers, knownType, queryReply, shownRows } from './query.ts';
import { quote } from './verb-rows.ts';
import type { VerbCall } from './verb-call.ts';
import { verb } from './verb.ts';

const similarInput = z.object({
  entity_type: z.string().min(1).describe('the type whose rows are compared'),
  text: z.string().min(1).max(10_000).optional().describe('rows like this text, by words and by meaning'),
  vector: z.array(float(z.number())).min(1).max(4_096).optional().describe('rows like this vector'),
  entity_id: z.string().min(1).max(1_024).optional().describe('rows like this one, by its _pk'),
  column: z.string().min(1).optional().describe('the column of vectors that a vector is compared with'),
  modality: z.enum(['text', 'vector', 'image', 'audio', 'video']).optional(),
  limit: z.int().min(1).max(1_000).default(20),
});

export const similarMultimodal = verb({
  name: 'similar_multimodal',
  description: 'Rows of a type that are like a text, a vector or another row of it, most alike first. Give one of the three.',
  input: similarInput,
  output: z.object(answerMembers) as unknown as z.ZodType,
  action: 'search',
  units: 1,
  purpose: 'required',
  bucket: 'read',
  tool: { title: 'What is like it', readOnly: true },
  example: { entity_type: 'MemoryItem', text: 'tea' },
  run: async (verbCall, similarRequest) => {
    const { modality: similarModality, limit: similarLimit } = similarRequest;
    if (similarModality !== undefined && similarModality !== 'text' && similarModality !== 'vector')
      throw new ServiceError('REL_NOT_IMPLEMENTED', `modality: no model here reads ${similarModality}; give its vector`);
    const toolAnswer = await answerSimilar(verbCall, similarRequest);
    const hiddenRows = await hiddenItems(verbCall);
    const similarRows = [...shownRows(toolAnswer)]
      .filter((similarRow) => !hiddenRows.has(hiddenKey(similarRequest.entity_type, similarRow)))
      .slice(0, similarLimit);
    verbCall.note({ result: { row_count: similarRows.length } });
    return { ...queryReply(toolAnswer, 0), rows: similarRows, row_count: similarRows.length, truncated: false };
  },
});

function answerSimilar(
  verbCall: VerbCall,
  {
    entity_type: typeName,
    text: similarText,
    vector: similarVector,
    entity_id: similarRowId,
    column: vectorColumn,
    limit: similarLimit,
  }: z.output<typeof similarInput>,
) {
  const similarType = knownType(verbCall, typeName).name;
  const givenWays = [similarText, similarVector, similarRowId].filter((givenWay) => givenWay !== undefined);
  if (givenWays.length !== 1) throw new ServiceError('REL_INVALID', 'give one of text, vector and entity_id');
  const askSimilar = (similarCall: string, similarValues: readonly string[]): Promise<Answer> =>
    verbCall.answer(`SELECT * FROM ${similarCall} LIMIT ${similarLimit}`, similarValues);
  if (similarText !== undefined) return askSimilar('HYBRID_SEARCH($1, $2)', [similarType, similarText]);
  if (similarRowId !== undefined) return askSimilar(`SIMILAR(${quote(similarType)}, PK => $1)`, [similarRowId]);
  const comparedColumn = vectorColumn === undefined ? '' : `${quote(vectorColumn)}, `;
  return askSimilar(`SIMILAR(${quote(similarType)}, ${comparedColumn}VECTOR => ARRAY[${similarVector!.join(', ')}])`, []);
}
