import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import { type LexedStatement, lexStatement } from '../../../src/planner/languages/sql-lexer.ts';
import { KnownShapes } from '../../../src/planner/languages/sql-shapes.ts';

/** What is known once these were met. */
function shapesOf(...texts: string[]): KnownShapes {
  const shapes = new KnownShapes();
  for (const text of texts) shapes.learn(lexStatement(text));
  return shapes;
}

const told = ({ text, template, parameters, tokens }: LexedStatement): object => ({ text, template, parameters, tokens });

describe('a statement of a known shape', () => {
  it.each([
    ["SELECT * FROM T WHERE k = 'a'", "SELECT * FROM T WHERE k = 'bc'"],
    ["SELECT * FROM T WHERE k = 'a'", "SELECT * FROM T WHERE k = ''"],
    ["SELECT * FROM T WHERE k = 'a' LIMIT 5", "SELECT * FROM T WHERE k = 'a 5 -- b' LIMIT 123456789012345"],
    ['SELECT a -5, TRUE FROM T WHERE b IN (1, 2, NULL)', 'SELECT a -07, TRUE FROM T WHERE b IN (11, 0, NULL)'],
    ["SELECT /* it's */ a FROM T WHERE k >= 'x' AND k < 'y';", "SELECT /* it's */ a FROM T WHERE k >= 'ä' AND k < 'y\n';"],
    ["PURPOSE 'care' SELECT a FROM T LIMIT 1", "PURPOSE 'research' SELECT a FROM T LIMIT 20"],
  ])('%s: %s', (known, text) => {
    const found = shapesOf(known).recognise(text);
    expect(found).not.toBeNull();
    expect(told(found!)).toEqual(told(lexStatement(text)));
    expect(found!.locationOf(0)).toEqual(lexStatement(text).locationOf(0));
  });

  it('is none that the lexer might read differently', () => {
    const shapes = shapesOf("SELECT * FROM T WHERE k = 'a' AND n = 1 LIMIT 2");
    for (const text of [
      "SELECT * FROM T WHERE k = 'a''b' AND n = 1 LIMIT 2",
      "SELECT * FROM T WHERE k = 'a'' AND n = 1 LIMIT 2",
      "SELECT * FROM T WHERE k = 'a' AND n = -1 LIMIT 2",
      "SELECT * FROM T WHERE k = 'a' AND n = 1.0 LIMIT 2",
      "SELECT * FROM T WHERE k = 'a' AND n = 1e3 LIMIT 2",
      "SELECT * FROM T WHERE k = 'a' AND n = 1x LIMIT 2",
      "SELECT * FROM T WHERE k = 'a' AND n = 1234567890123456 LIMIT 2",
      "SELECT * FROM T WHERE k = 'a' AND n = 1 LIMIT 2 ",
      "SELECT * FROM T WHERE k = 'a' AND n = 1 LIMIT 2.",
      "SELECT * FROM T WHERE k = 'a' AND n = 1 LIMIT ",
      "SELECT * FROM T WHERE k = 'a' AND n = TRUE LIMIT 2",
      "SELECT * FROM T WHERE k = 'a' OR n = 1 LIMIT 2",
      "SELECT * FROM T WHERE k = '\ud83d' AND n = 1 LIMIT 2",
      "SELECT * FROM T WHERE k = 'a",
    ]) {
      expect(shapes.recognise(text), text).toBeNull();
    }
    // In a pattern a backslash is an escape.
    expect(shapesOf("MATCH (n {name: 'x'}) RETURN n").recognise("MATCH (n {name: 'a\\nb'}) RETURN n")).toBeNull();
  });

  it('is none where the known one has a literal in another form', () => {
    for (const text of [
      "SELECT 'a''b', 1 FROM T",
      'SELECT 1.5 FROM T WHERE a = 1',
      'SELECT -1 FROM T',
      'MATCH (n {name: "x"}) RETURN n',
      'SELECT a FROM T',
    ]) {
      expect(shapesOf(text).recognise(text), text).toBeNull();
    }
  });

  it('is what the lexer makes of it, whatever is written', () => {
    const literal = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 6 }).map((text) => `'${text}'`),
      fc.constantFrom("'a''b'", '-3', '1.5', '2.', '.5', '1e2', 'TRUE', 'NULL', '"x"', '12345678901234567', ''),
      fc.nat().map(String),
      fc.nat({ max: 9 }).map((n) => `'${n}'`),
    );
    const between = fc.constantFrom(' ', ', ', '(', ')', '-', '--\n', ' AND a = ', '..', '.', "/*'*/", ' x', ';', '=');
    const parts = fc.array(fc.tuple(between, literal, literal), { minLength: 1, maxLength: 4 });
    let recognisedSome = 0;
    fc.assert(
      fc.property(fc.constantFrom('SELECT ', 'SELECT a FROM T WHERE b = ', 'MATCH ('), parts, (start, made) => {
        const [known, text] = [1, 2].map((which) => start + made.map((part) => `${part[0]}${part[which]}`).join(''));
        const shapes = new KnownShapes();
        try {
          shapes.learn(lexStatement(known!));
        } catch (error) {
          if (error instanceof ServiceError) return;
          throw error;
        }
        const found = shapes.recognise(text!);
        if (found === null) return;
        recognisedSome++;
        expect(told(found)).toEqual(told(lexStatement(text!)));
      }),
      { numRuns: 20_000 },
    );
    expect(recognisedSome).toBeGreaterThan(100);
  });

  it('is known among many, and as often as it comes', () => {
    const shapes = shapesOf(...Array.from({ length: 40 }, (_, i) => `SELECT a${i} FROM T WHERE b = ${i}`));
    expect(shapes.recognise('SELECT a0 FROM T WHERE b = 3')?.parameters).toEqual([3n]);
    for (let i = 0; i < 40; i++) expect(shapes.recognise('SELECT a39 FROM T WHERE b = 7')?.parameters).toEqual([7n]);
    expect(shapes.recognise('SELECT a38 FROM T WHERE b = 7')).toBeNull();
  });
});
