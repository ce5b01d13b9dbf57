/** nl_query: a plain question. Source: specification, "Search", natural language. */
import { z } from 'zod';
import { ServiceError } from '../../errors.ts';
import { checkText } from '../../log/values/value.ts';
import { type Translated, translate, untranslatable } from '../../planner/languages/natural-language.ts';
import { queryReply, answerMembers } from './query.ts';
import type { VerbCall } from './verb-call.ts';
import { verb } from './verb.ts';

/** Most types that the model's prompt names. */
const typesToldToModel = 200;

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
  run: async (verbCall, { question: plainQuestion }) => {
    checkText(plainQuestion, 'the question');
    const catalogTypes = verbCall.snapshot.catalog.types();
    const { translator: questionTranslator } = verbCall.parts;
    const { intent: questionIntent, sql: translatedSql }: Translated =
      questionTranslator === null
        ? translate(
            plainQuestion,
            catalogTypes.map(({ name: typeName }) => typeName),
          )
        : {
            intent: 'model',
            sql: await questionTranslator.translate(
              plainQuestion,
              catalogTypes.slice(0, typesToldToModel).map(
                ({ name: typeName, properties }) =>
                  `${typeName}(${Object.entries(properties)
                    .map(([typeColumn, { type }]) => `${typeColumn} ${type}`)
                    .join(', ')})`,
              ),
              verbCall.signal,
            ),
          };
    verbCall.note({ result: { intent: questionIntent, sql: translatedSql } });
    return {
      question: plainQuestion,
      intent: questionIntent,
      sql: translatedSql,
      ...(await runTranslated(verbCall, questionIntent, translatedSql)),
    };
  },
});

/** Runs the statement as if the caller had sent it, with the caller's own rights. */
async function runTranslated(verbCall: VerbCall, questionIntent: Translated['intent'], translatedSql: string) {
  try {
    checkText(translatedSql, 'the statement');
    return queryReply(await verbCall.answer(translatedSql, [], 'all'));
  } catch (translatedError) {
    if (!(translatedError instanceof ServiceError)) throw translatedError;
    if (translatedError.kind === 'unimplemented')
      throw new ServiceError(translatedError.code, `${translatedError.message}. The question means: ${translatedSql}`);
    if (questionIntent !== 'model' || translatedError.kind !== 'invalid') throw translatedError;
    throw untranslatable(`the model wrote a statement that can't be run (${translatedError.message}): ${translatedSql}`);
  }
}
