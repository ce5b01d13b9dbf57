import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import { lexStatement, statementCharactersMax } from '../../../src/planner/languages/sql-lexer.ts';

const template = (text: string) => lexStatement(text).template;
const parameters = (text: string) => lexStatement(text).parameters;

function refusal(text: string): string {
  try {
    lexStatement(text);
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'REL_PARSE') return error.message;
    throw error;
  }
  throw new Error('was not refused');
}

describe('the template', () => {
  test.each([
    ['select * from T where a = 5', 'SELECT * FROM T WHERE a = ?i'],
    ['SELECT  *\n FROM T -- all of it\n WHERE a=/* five */5 ;', 'SELECT * FROM T WHERE a = ?i'],
    ['SELECT * FROM T WHERE a = 7', 'SELECT * FROM T WHERE a = ?i'],
    ['SELECT * FROM T WHERE a = -7', 'SELECT * FROM T WHERE a = ?i'],
    [
      "SELECT COUNT(*), t.a FROM T t WHERE a IN ('x', 1.5, TRUE, null)",
      'SELECT COUNT(*), t.a FROM T t WHERE a IN (?s, ?n, ?b, NULL)',
    ],
    ['SELECT a-1 FROM T', 'SELECT a - ?i FROM T'],
    ['SELECT (a)-1 FROM T', 'SELECT (a) - ?i FROM T'],
    ['SELECT a <> b FROM T', 'SELECT a != b FROM T'],
    ['SELECT `a b`, "c""d" FROM T', 'SELECT "a b", "c""d" FROM T'],
    ['SELECT Name FROM T', 'SELECT Name FROM T'],
    ['SELECT t.order FROM T t', 'SELECT t.order FROM T t'],
  ])('%s', (text, expected) => expect(template(text)).toBe(expected));

  test('differs where the type of a literal differs, since the tree does', () => {
    const each = ['1', '1.0', "'1'", 'TRUE', 'NULL'].map((literal) => template(`SELECT * FROM T WHERE a = ${literal}`));
    expect(new Set(each).size).toBe(5);
  });

  test('tells a quoted name from a keyword and from a bare name', () => {
    const each = ['"select"', 'select', '"a"', 'a'].map(template);
    expect(new Set(each).size).toBe(4);
  });

  test('holds no text of a graph pattern, which writes strings in double quotes', () => {
    const lexed = lexStatement('MATCH (n:Person {name: "Ada Secret"})-->(m) RETURN n');
    expect(lexed.template).not.toContain('Secret');
    expect(lexed.parameters).toEqual(['Ada Secret']);
  });

  test('of a template without literals is the template', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('SELECT', 'a', '"b c"', '(', ')', ',', 't.c', '=', '<=', '->', '*', '-'), { maxLength: 20 }),
        (parts) => {
          const once = template(parts.join(' '));
          expect(template(once)).toBe(once);
        },
      ),
    );
  });
});

describe('literals', () => {
  test('integers are exact to the edges of 64 bits', () => {
    expect(parameters('9223372036854775807, -9223372036854775808, 0, -0, 007, 9007199254740993')).toEqual([
      9223372036854775807n,
      -9223372036854775808n,
      0n,
      0n,
      7n,
      9007199254740993n,
    ]);
  });

  test.each(['9223372036854775808', '-9223372036854775809', '1'.repeat(5000)])('%.25s does not fit', (text) =>
    expect(refusal(`a = ${text}`)).toBe('1:5: the integer does not fit 64 bits'),
  );

  test('a point or an exponent makes a number', () => {
    expect(parameters('1.5, .5, 2., 1e3, 1E-3, -2.5e+1, 1e308')).toEqual([1.5, 0.5, 2, 1000, 0.001, -25, 1e308]);
  });

  test('a number must be finite', () => expect(refusal('1e309')).toBe('1:1: the number is too large'));

  test('strings hold quotes, line breaks and characters beyond the BMP', () => {
    expect(parameters("'it''s' '' 'a\nb' '\u{1F600}' ''''")).toEqual(["it's", '', 'a\nb', '\u{1F600}', "'"]);
  });

  test('every i64 is read back', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (value) => {
        expect(parameters(`= ${value}`)).toEqual([value]);
      }),
    );
  });

  test('every well-formed string is read back', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (value) => {
        expect(parameters(`'${value.replaceAll("'", "''")}'`)).toEqual([value]);
      }),
    );
  });

  test('the NULL of IS NULL is no literal', () => {
    expect(parameters('a IS NULL AND b IS NOT NULL AND c = NULL AND NOT NULL')).toEqual([null, null]);
  });

  test('each knows its place in this text', () => {
    const lexed = lexStatement("SELECT 'a',\n  5 FROM T");
    expect([lexed.locationOf(0), lexed.locationOf(1)]).toEqual([
      { line: 1, column: 8 },
      { line: 2, column: 3 },
    ]);
  });
});

describe('refused with line and column', () => {
  test.each([
    ["SELECT 'abc", '1:8: unterminated string'],
    ['SELECT\n  "abc', '2:3: unterminated quoted name'],
    ['a\n\n /* b', '3:2: unterminated comment'],
    ['SELECT ""', '1:8: a quoted name is empty'],
    ['a = $1', '1:5: no value was given for a parameter'],
    ['a = §', "1:5: unexpected character '§' (U+00A7)"],
    ['a\u00a0b', "1:2: unexpected character '\u00a0' (U+00A0)"],
    ['a \0', '1:3: unexpected character U+0000'],
    ['12abc', '1:1: a number is followed by a letter'],
    ['"a\0b"', '1:1: a name holds no NUL character'],
    ["'\ud800'", '1:1: a string holds half of a surrogate pair'],
    ['"\udc00"', '1:1: a quoted name holds half of a surrogate pair'],
    ['a \ud800', '1:3: unexpected character U+D800'],
    [`SELECT ${'a'.repeat(129)}`, '1:8: a name is at most 128 characters'],
    [`SELECT "${'a'.repeat(129)}"`, '1:8: a name is at most 128 characters'],
  ])('%j', (text, message) => expect(refusal(text)).toBe(message));

  test('names of 128 characters are accepted', () => {
    const name = 'a'.repeat(128);
    expect(template(`${name} "${name}"`)).toBe(`${name} "${name}"`);
  });

  test('a statement of more than a mebibyte', () => {
    expect(refusal(' '.repeat(statementCharactersMax + 1))).toMatch(/^1:1: /);
    expect(template(' '.repeat(statementCharactersMax))).toBe('');
  });

  test('more values than a tree could hold, but for those of lists and rows', () => {
    const values = Array.from({ length: 20_000 }, (_, i) => String(i)).join(',');
    for (const list of [`CONCAT(${values})`, `ARRAY[${values}]`, `(1) GROUP BY ${values}`, `(VALUES (CONCAT(${values})))`])
      expect(refusal(`SELECT ${list}`)).toMatch(/^1:\d+: the statement has more than 16384 values outside of IN/);
    expect(refusal(`SELECT 1 FROM (VALUES (1), (2)) t(a) ORDER BY ${values}`)).toMatch(/16384 values/);
    for (const list of [
      `a IN (${values})`,
      `(VALUES (${values}))`,
      `(VALUES (${values.replaceAll(',', '), (')})) t(a) WHERE a = 1`,
    ])
      expect(lexStatement(`SELECT ${list}`).parameters.length).toBeGreaterThanOrEqual(20_000);
  });

  test('more tokens than a plan could use', () => expect(refusal('('.repeat(300_000))).toMatch(/^1:250001: .*tokens/));
});

test('letters that Unicode upper-cases to ASCII make no keyword', () => {
  expect(template('\u017felect')).toBe('\u017felect');
});

test('names may be written in any script', () =>
  expect(template('SELECT größe, 名前 FROM Ку́рс')).toBe('SELECT größe, 名前 FROM Ку́рс'));
