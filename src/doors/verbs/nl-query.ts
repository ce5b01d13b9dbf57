/** nl_query: a plain question. Source: specification, "Search", natural language. */
import { z } from 'zod';
import { ServiceError } from '../../errors.ts';
import { checkText } from '../../log/values/value.ts';
import { type Translated, translate, untranslatable } from '../../planner/languages/natural-language.ts';
import { queryReply, answerMembers } from './query.ts';
import type { VerbCall } from './verb-call.ts';
import { verb } from './verb.ts';

/** Most types that the model's prompt names. */
const toldMax = 200;

export const nlQuery = verb({
  name: 'nl_query',
  description:
    'Ask in plain words: paths between two things, who owns a company, whether somebody is sanctioned, or rows of a type. The statement that ' +
    'was run stands in the answer.',
  input: z.object({ question: z.string().min(1).max(10_000).describe('one question') }),
  output: z.object({
    question: z.string(),
    intent: z.string(),
    sql: z.string(),
    ...answerMembers,
  }) as unknown as z.ZodType,
  action: 'query',
  units: 1,
  purpose: 'required',
  bucket: 'read',
  http: [{ method: 'POST', url: '/nl_query' }],
  plain: true,
  tool: { title: 'Ask in words', readOnly: true },
  example: { question: 'show me memory items' },
  run: async (verbCall, { question }) => {
    checkText(question, 'the question');
    const types = verbCall.snapshot.catalog.types();
    const { translator } = verbCall.parts;
    const { intent, sql }: Translated =
      translator === null
        ? translate(
            question,
            types.map(({ name }) => name),
          )
        : {
            intent: 'model',
            sql: await translator.translate(
              question,
              types.slice(0, toldMax).map(
                ({ name, properties }) =>
                  `${name}(${Object.entries(properties)
                    .map(([column, { type }]) => `${column} ${type}`)
                    .join(', ')})`,
              ),
              verbCall.signal,
            ),
          };
    verbCall.note({ result: { intent, sql } });
    return { question, intent, sql, ...(await run(verbCall, intent, sql)) };
  },
});

/** Runs the statement as if the caller had sent it, with the caller's own rights. */
async function run(verbCall: VerbCall, intent: Translated['intent'], sql: string) {
  try {
    checkText(sql, 'the statement');
    return queryReply(await verbCall.answer(sql, [], 'all'));
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    if (error.kind === 'unimplemented') throw new ServiceError(error.code, `${error.message}. The question means: ${sql}`);
    if (intent !== 'model' || error.kind !== 'invalid') throw error;
    throw untranslatable(`the model wrote a statement that can't be run (${error.message}): ${sql}`);
  }
}
