import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LikePattern, likeMatches } from '../../../src/planner/expressions/like.ts';

/** The definition, by recursion over code points. */
function byDefinition(pattern: readonly string[], text: readonly string[]): boolean {
  const [first, ...rest] = pattern;
  if (first === undefined) return text.length === 0;
  if (first === '%') return byDefinition(rest, text) || (text.length > 0 && byDefinition(pattern, text.slice(1)));
  return text.length > 0 && (first === '_' || first === text[0]) && byDefinition(rest, text.slice(1));
}

describe('LIKE', () => {
  test.each([
    ['abc', 'abc', true],
    ['abc', 'ABC', false],
    ['a%', 'abc', true],
    ['%c', 'abc', true],
    ['%b%', 'abc', true],
    ['a_c', 'abc', true],
    ['a_c', 'ac', false],
    ['', '', true],
    ['', 'a', false],
    ['%', '', true],
    ['_', '', false],
    ['_', '\u{1F600}', true],
    ['__', '\u{1F600}', false],
    ['%_', 'ü', true],
    ['a%a', 'a', false],
    ['%ab%ab%', 'ab', false],
    ['%aab', 'aaab', true],
    ['%aab%', 'aaab', true],
    ['%abab%c', 'xababc', true],
    ['a\\%', 'a\\b', true],
    ['%_b_', 'xxbb', true],
    // Longer than a search shifts by.
    [`%${'abc'.repeat(100)}x%`, `${'abc'.repeat(150)}x${'c'.repeat(300)}`, true],
    [`%x${'abc'.repeat(100)}%`, `${'abc'.repeat(300)}x${'abc'.repeat(99)}`, false],
    // So much is compared in vain that the search goes on byte by byte, and an occurrence begins within a failed one.
    ['%abaabaaa%', `${'a'.repeat(200)}abaabaabaaa`, true],
    ['%abaabaaa%', `${'a'.repeat(200)}abaabaabaab`, false],
  ])('%j on %j', (pattern, text, expected) => expect(likeMatches(pattern, text)).toBe(expected));

  test('agrees with its definition', () => {
    const character = fc.constantFrom('a', 'a', 'b', 'ü', '\u{1F600}');
    const text = fc.array(character, { maxLength: 8 });
    const pattern = fc.array(fc.oneof(character, fc.constantFrom('%', '_')), { maxLength: 6 });
    fc.assert(
      fc.property(pattern, text, (p, t) => {
        expect(likeMatches(p.join(''), t.join(''))).toBe(byDefinition(p, t));
      }),
      { numRuns: 5000 },
    );
  });

  test('finds a segment with _ of any length up to its limit', () => {
    const character = fc.constantFrom('a', 'b', 'ü', '€', '\u{1F600}');
    const segment = fc.array(fc.oneof(character, fc.constant('_')), { minLength: 1, maxLength: 16 });
    fc.assert(
      fc.property(
        segment,
        fc.array(character, { maxLength: 4 }),
        fc.infiniteStream(character),
        fc.boolean(),
        (p, before, filler, spoilt) => {
          const long = ['_', ...p, ...p.filter((each) => each.length === 1 && each < '\u0080')].slice(0, 16);
          const inside = long.map((each) => (each === '_' ? filler.next().value : each));
          if (spoilt) inside[inside.length - 1] = 'z';
          const text = [...before, ...inside, 'end'].join('');
          const pattern = ['%', ...long, '%', 'end'].join('');
          expect(likeMatches(pattern, text)).toBe(byDefinition(Array.from(pattern), Array.from(text)));
        },
      ),
      { numRuns: 2000 },
    );
    for (const length of [31, 32, 33, 63, 64]) {
      const pattern = `%_${'a'.repeat(length - 2)}b%`;
      expect(likeMatches(pattern, `xx${'a'.repeat(length)}b!`)).toBe(true);
      expect(likeMatches(pattern, `${'a'.repeat(length - 2)}b!`)).toBe(false);
      expect(likeMatches(pattern, `ü${'a'.repeat(length - 2)}b`)).toBe(true);
      expect(likeMatches(pattern, `x${'a'.repeat(length - 3)}bb`)).toBe(length < 4);
    }
  });

  test('reads only its part of the heap', () => {
    const heap = new TextEncoder().encode('xxabcxx');
    expect(new LikePattern('abc').matches(heap, 2, 5)).toBe(true);
    expect(new LikePattern('%cx').matches(heap, 2, 5)).toBe(false);
  });

  test('a long text and fifty wildcards are matched in linear time: quadratic work would not end', () => {
    const text = 'a'.repeat(2_000_000);
    for (const pattern of ['%a'.repeat(50) + 'b', `%${'a'.repeat(1_000_000)}b%`, `%${'_a'.repeat(31)}b%`, '%_'.repeat(50) + 'b'])
      expect(likeMatches(pattern, text)).toBe(false);
  });

  test('a segment with _ is limited in length where it has to be searched for', () => {
    expect(() => new LikePattern(`%_${'a'.repeat(64)}%`)).toThrow(/at most 64 bytes/);
    expect(likeMatches(`_${'a'.repeat(1000)}%`, 'a'.repeat(1001))).toBe(true);
    expect(likeMatches(`%_${'a'.repeat(1000)}`, 'a'.repeat(1001))).toBe(true);
  });
});
