/** Literals of ClickHouse as the planner reads them: what a driver escapes is the value again, and ends nothing. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { statementOf } from '../../../src/doors/columnar/statement.ts';
import { lexStatement } from '../../../src/planner/languages/sql-lexer.ts';

const facts = { database: 'default', user: 'tester', parameters: new Map<string, string>() };

function read(sql: string): { readonly values: readonly unknown[]; readonly template: string } {
  const statement = statementOf(sql, facts);
  if (statement?.kind !== 'question') throw new Error('not a question');
  const { parameters, template } = lexStatement(statement.sql);
  return { values: parameters, template };
}

test.each([
  ["'a\\'b'", ["a'b"]],
  ["'it''s'", ["it's"]],
  ["'\\\\'", ['\\']],
  ["'\\\\\\'' = '\\''", ["\\'", "'"]],
  ["'\\n\\t\\x41\\xC3\\xA9'", ['\n\tAé']],
  ["'50\\%'", ['50\\%']],
  ["-- it's \\\n'a\\'b'", ["a'b"]],
  ["/* ' \\ */ 'a\\'b'", ["a'b"]],
  ["e 'a\\\\', 'b'", ['a\\', 'b']],
  ["e'a\\\\', 'b'", ['a\\', 'b']],
])('SELECT %s', (literal, values) => {
  expect(read(`SELECT ${literal}`).values).toEqual(values);
});

const escapes: Readonly<Record<string, string>> = { '\b': 'b', '\f': 'f', '\r': 'r', '\n': 'n', '\t': 't', '\0': '0', '\v': 'v' };

/** As Python's driver writes a value. */
const escaped = (value: string): string =>
  `'${value.replaceAll(/[^]/g, (one) => (escapes[one] !== undefined ? `\\${escapes[one]}` : /[\\']/.test(one) ? `\\${one}` : one))}'`;

const pieces = ["'", '\\', '"', '`', '-', '/', '*', '$', 'n', '%', 'é', '\n', '\0', ' ', '{', '}', 'FORMAT', ';'];

test('any value is itself, and the statement around it what it was', () => {
  const values = fc.array(fc.string({ unit: fc.constantFrom(...pieces) }), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(values, (given) => {
      const found = read(`SELECT ${given.map(escaped).join(', ')}, 7`);
      expect(found.values).toEqual([...given, 7n]);
      expect(found.template).toBe(`SELECT ${given.map(() => '?s').join(', ')}, ?i`);
    }),
  );
});
