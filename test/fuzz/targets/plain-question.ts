/**
 * Plain questions on any text. What must hold: a question is translated or refused, and what it becomes is one statement that
 * parses, with nothing of the question outside of a literal or the name of a type that there is.
 */
import { assert } from '../../../src/errors.ts';
import { lexStatement } from '../../../src/planner/languages/sql-lexer.ts';
import { translate } from '../../../src/planner/languages/natural-language.ts';
import { parseLexed } from '../../../src/planner/languages/sql-parser.ts';

export const name = 'plain-question';

const types = ['Parcel', 'MemoryItem', 'City', 'Bus', 'od"d', 'snake_case'];

export function seeds(): Uint8Array[] {
  return [
    'paths between Ada and Bob',
    'path from O\'Hara to "X"?',
    "who owns Acme'; DROP TABLE x --",
    'ownership chain of C',
    'beneficial owners of C Ltd.',
    'sanctions screen N',
    'is N sanctioned?',
    'show me all memory items',
    'CITIES and buses',
    'snake case rows',
    'how many cities are there in total?',
    "show me all paths between a and 'b, please', within three hops, as of 2024-01-01, thanks",
    'paths of at most 3 hops from a to b since 2020',
  ].map((question) => Buffer.from(question));
}

const templates: ReadonlySet<string> = new Set(
  ['paths between a and b', 'paths between a and b as of 2024-01-01', 'who owns a', 'is a sanctioned'].map(
    (question) => lexStatement(translate(question, types).sql).template,
  ),
);

export function run(bytes: Uint8Array): void {
  const { intent, sql } = translate(Buffer.from(bytes).toString(), types);
  const lexed = lexStatement(sql);
  parseLexed(lexed, 'spec');
  const ofType = (type: string): string => `FROM "${type.replaceAll('"', '""')}"`;
  if (intent === 'count') {
    assert(
      types.some((type) => sql.startsWith(`SELECT COUNT(*) AS count ${ofType(type)} AS OF `)),
      'only types that there are are counted',
    );
  } else if (intent !== 'browse') assert(templates.has(lexed.template), `a form has one template: ${lexed.template}`);
  else
    assert(
      types.some((type) => sql === `SELECT * ${ofType(type)} LIMIT 50`),
      'only types that there are',
    );
}
