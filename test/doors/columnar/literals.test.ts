/** Literals of ClickHouse as the planner reads them: what a driver escapes is the value again, and ends nothing. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { withStandardLiterals } from '../../../src/doors/columnar/literals.ts';
import { lexStatement } from '../../../src/planner/languages/sql-lexer.ts';

const read = (sql: string): readonly unknown[] => lexStatement(withStandardLiterals(sql)).parameters;

test.each([
  ["'a\\'b'", ["a'b"]],
  ["'it''s'", ["it's"]],
  ["'\\\\'", ['\\']],
  ["'\\\\\\'' = '\\''", ["\\'", "'"]],
  ["'\\n\\t\\0\\x41\\xC3\\xA9\\q'", ['\n\t\0Aéq']],
  ["'50\\%'", ['50\\%']],
  ["-- it's \\\n'a\\'b'", ["a'b"]],
  ["/* ' \\ */ 'a\\'b'", ["a'b"]],
  ["$$it's \\$$, 'a\\'b'", ["it's \\", "a'b"]],
  ["E'a\\'b', 'a\\'b'", ["a'b", "a'b"]],
  ["name'a\\'b'", ["a'b"]],
])('%s', (literal, values) => {
  expect(read(literal)).toEqual(values);
});

test('a name holds what it was escaped to hold', () => {
  expect(withStandardLiterals('`a\\`b` "c\\"d" `e``f\\\\`')).toBe('`a``b` "c""d" `e``f\\`');
});

test('what is not closed, or is a pattern of a graph, stays as it is', () => {
  for (const text of ["SELECT 'a\\'", '/* \\', "MATCH (a {name: 'it\\'s'})-->(b) RETURN b.id"])
    expect(withStandardLiterals(text)).toBe(text);
});

const escapes: Readonly<Record<string, string>> = { '\b': 'b', '\f': 'f', '\r': 'r', '\n': 'n', '\t': 't', '\0': '0', '\v': 'v' };

/** As Python's driver writes a value. */
const escaped = (value: string): string =>
  `'${value.replaceAll(/[^]/g, (one) => (escapes[one] !== undefined ? `\\${escapes[one]}` : /[\\']/.test(one) ? `\\${one}` : one))}'`;

test('any value is itself, and the statement around it what it was', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: fc.constantFrom("'", '\\', '"', '`', '-', '/', '*', '$', 'n', '%', 'é', '\n', '\0', ' ') }), {
        minLength: 1,
        maxLength: 4,
      }),
      (values) => {
        const sql = `SELECT ${values.map(escaped).join(', ')}, 7`;
        const { parameters, template } = lexStatement(withStandardLiterals(sql));
        expect(parameters).toEqual([...values, 7n]);
        expect(template).toBe(`SELECT ${values.map(() => '?s').join(', ')}, ?i`);
      },
    ),
  );
});
