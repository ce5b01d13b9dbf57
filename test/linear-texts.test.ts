/** Texts of a megabyte that a regular expression might try in many ways are read once: with a second try at each character none of these ends. */
import { expect, test } from 'vitest';
import { parseExactJson } from '../src/doors/shared/read-exact-json.ts';
import { advisoryLockCallIn } from '../src/doors/relational/advisory-lock-call.ts';
import { formatOf } from '../src/doors/rich-text/blocks.ts';
import { evaluate } from '../src/planner/expressions/evaluate.ts';
import { lexStatement } from '../src/planner/languages/sql-lexer.ts';
import { elementsOf } from '../src/planner/system-catalogue/catalogue-types.ts';
import { canonicalIdentifier } from '../src/projections/entity-resolution/identifiers.ts';
import { withoutTrailing } from '../src/log/values/trim-end.ts';

const many = 300_000;
const blanks = ' '.repeat(many);

test('comments behind a text, where nothing goes on', () => {
  expect(lexStatement(`SELECT 'a'${'--\t\t'.repeat(many / 4)}\t`).parameters).toEqual(['a']);
  expect(lexStatement(`SELECT 'a'${'\n \t'.repeat(many / 4)} AS b`).parameters).toEqual(['a']);
  expect(lexStatement(`SELECT 'a' -- x 'y'\n\n  --\n 'b' 'c'`).parameters).toEqual(['ab', 'c']);
  expect(lexStatement(`SELECT 'a' 'b'`).parameters).toEqual(['a', 'b']);
});

test('blanks around the elements of a list', () => {
  expect(elementsOf(`{ a b ,${blanks}"c" , d\\ ,\\\\ ,NULL${blanks}}`, 'text')).toEqual(['a b', 'c', 'd ', '\\', null]);
  expect(() => elementsOf(`{${blanks}"}`, 'text')).toThrow();
  expect(() => elementsOf(`{a${blanks}{}`, 'text')).toThrow();
});

test('blanks behind the call of a lock', () => {
  expect(advisoryLockCallIn(`SELECT pg_advisory_lock(1)${blanks};${blanks}`)?.column).toBe('pg_advisory_lock');
  expect(advisoryLockCallIn(`SELECT pg_advisory_lock(1)${blanks}x${blanks}y`)).toBeNull();
});

test('digits, dots and signs', () => {
  expect(withoutTrailing(`${'0'.repeat(many)}1${'0'.repeat(many)}`, '0').length).toBe(many + 1);
  expect(() => parseExactJson(`[${`${'1'.repeat(308)},`.repeat(many / 300)}"]`)).toThrow(SyntaxError);
  expect(formatOf(new Uint8Array(), `${'.A#'.repeat(many)}\n.md`)).toBe('text');
  const at = { literals: [`T${'T+'.repeat(many)}`], locationOf: () => ({ line: 1, column: 1 }) } as unknown as Parameters<
    typeof evaluate
  >[1];
  const basis = { kind: 'literal', slot: 0, as: 'basis', type: 'timestamp', location: { line: 1, column: 1 } } as const;
  expect(() => evaluate(basis, at)).toThrow('1:1');
});

test('the unspecified address is an address, however it is written', () => {
  expect([canonicalIdentifier('ip', '0::'), canonicalIdentifier('ip', '::')]).toEqual(['::', '::']);
});
