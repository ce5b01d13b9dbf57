/** similar_multimodal: rows like a text, a vector or another row. Source: specification, "Tool protocol (MCP)". */
import { z } from 'zod';
import { ServiceError } from '../../errors.ts';
import type { Answer } from '../../planner/planner-contract.ts';
import { float } from '../schemas/exact-numbers.ts';
import { hiddenItems, hiddenKey } from './quarantined-items.ts';
import { answerMembers, knownType, queryReply, shownRows } from './query.ts';
import { quote } from './verb-rows.ts';
import type { VerbCall } from './verb-call.ts';
import { verb } from './verb.ts';

const input = z.object({
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
  input,
  output: z.object(answerMembers) as unknown as z.ZodType,
  action: 'search',
  units: 1,
  purpose: 'required',
  bucket: 'read',
  tool: { title: 'What is like it', readOnly: true },
  example: { entity_type: 'MemoryItem', text: 'tea' },
  run: async (verbCall, given) => {
    const { modality, limit } = given;
    if (modality !== undefined && modality !== 'text' && modality !== 'vector')
      throw new ServiceError('REL_NOT_IMPLEMENTED', `modality: no model here reads ${modality}; give its vector`);
    const toolAnswer = await answerTo(verbCall, given);
    const hidden = await hiddenItems(verbCall);
    const rows = [...shownRows(toolAnswer)].filter((row) => !hidden.has(hiddenKey(given.entity_type, row))).slice(0, limit);
    verbCall.note({ result: { row_count: rows.length } });
    return { ...queryReply(toolAnswer, 0), rows, row_count: rows.length, truncated: false };
  },
});

function answerTo(verbCall: VerbCall, { entity_type: name, text, vector, entity_id: id, column, limit }: z.output<typeof input>) {
  const type = knownType(verbCall, name).name;
  const ways = [text, vector, id].filter((each) => each !== undefined);
  if (ways.length !== 1) throw new ServiceError('REL_INVALID', 'give one of text, vector and entity_id');
  const ask = (call: string, values: readonly string[]): Promise<Answer> =>
    verbCall.answer(`SELECT * FROM ${call} LIMIT ${limit}`, values);
  if (text !== undefined) return ask('HYBRID_SEARCH($1, $2)', [type, text]);
  if (id !== undefined) return ask(`SIMILAR(${quote(type)}, PK => $1)`, [id]);
  const compared = column === undefined ? '' : `${quote(column)}, `;
  return ask(`SIMILAR(${quote(type)}, ${compared}VECTOR => ARRAY[${vector!.join(', ')}])`, []);
}
