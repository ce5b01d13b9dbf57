/** What is left of 15 erased subjects among 30, in every byte and in twenty encodings: nothing. `npm run erasure:scan` takes more. */
import { expect, test } from 'vitest';
import { canary, plants } from './erased-store.ts';
import { encodings } from './encodings.ts';
import { Haystack } from './haystack.ts';
import { scan } from './rounds.ts';

test('no canary of an erased subject is found, and every one of the others', { timeout: 300_000 }, async () => {
  const { hits, inTheClear, unseen, inTexts, inVectors, inGraphs, damage, erased } = await scan(30);
  expect({ hits, inTheClear, unseen, damage, erased }).toEqual({ hits: [], inTheClear: [], unseen: [], damage: [], erased: 15 });
  // Files of all kinds are there to be searched, and a canary in one is seen.
  expect(Math.min(inTexts, inVectors, inGraphs)).toBeGreaterThanOrEqual(10);
});

test('a canary is found in each of the encodings, wherever it lies', () => {
  expect(Object.keys(encodings)).toHaveLength(20);
  const text = canary(7, 3, 'name');
  for (const [encoding, encode] of Object.entries(encodings)) {
    for (const bytes of encode(text)) {
      const hay = new Haystack(plants.map((plant) => ({ subject: 3, canary: canary(7, 3, plant) })));
      hay.search('here', Buffer.concat([Buffer.alloc(5, 1), bytes, Buffer.alloc(3, 2)]));
      expect(hay.found.map((found) => found.encoding)).toContain(encoding);
      expect(hay.found.every(({ canary: found }) => found === text)).toBe(true);
    }
  }
});
