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
  ].map((question) => Buffer.from(question));
}

const templates: ReadonlySet<string> = new Set(
  ['paths between a and b', 'who owns a', 'is a sanctioned'].map(
    (question) => lexStatement(translate(question, types).sql).template,
  ),
);

export function run(bytes: Uint8Array): void {
  const { intent, sql } = translate(Buffer.from(bytes).toString(), types);
  const lexed = lexStatement(sql);
  parseLexed(lexed, 'spec');
  if (intent !== 'browse') assert(templates.has(lexed.template), `a form has one template: ${lexed.template}`);
  else
    assert(
      types.some((type) => sql === `SELECT * FROM "${type.replaceAll('"', '""')}" LIMIT 50`),
      'only types that there are',
    );
}
