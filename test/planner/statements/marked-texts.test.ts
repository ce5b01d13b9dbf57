/** A text that is asked again with other values reads as if it were met for the first time. */
import { expect, test } from 'vitest';
import { lexStatement } from '../../../src/planner/languages/sql-lexer.ts';
import { MarkedTexts, valuesOf } from '../../../src/planner/statements/parameters.ts';
import type { Literal } from '../../../src/planner/syntax/statement.ts';

const text = "SELECT a, 'b' FROM T WHERE a = $2 AND b = $1 AND c = $2 AND d = 7";

test('values of the same types, of others, and none', () => {
  const texts = new MarkedTexts();
  const asked: readonly (readonly Literal[])[] = [
    ['x', 1n],
    ['y', 2n],
    [1.5, true],
    [null, 'z'],
    [null, null],
    ['y', 2n],
  ];
  for (const values of asked) {
    const fresh = lexStatement(text, valuesOf(values));
    const found = texts.lex(text, values);
    for (const part of ['template', 'guardedTemplate', 'parameters', 'text', 'markers', 'tokens'] as const)
      expect(found[part]).toEqual(fresh[part]);
    expect(found.locationOf(3)).toEqual(fresh.locationOf(3));
  }
});

test.each<[readonly Literal[], string]>([
  [['x'], 'no value was given for $2'],
  [['x', 1n, 2n], '3 values were given, the statement takes 2'],
  [['\ud800', 1n], 'a string holds half of a surrogate pair'],
  [['x', 1n << 70n], '1:32: the integer does not fit 64 bits'],
])('%s is refused however often the text was met', (values, message) => {
  const texts = new MarkedTexts();
  texts.lex(text, ['x', 1n]);
  for (const _ of [1, 2]) expect(() => texts.lex(text, values)).toThrow(message);
});
