/** What policies are compiled to decides as the engine does, for every construct that may be written. */
import { describe, expect, test } from 'vitest';
import { differential } from './differential.ts';

describe('compiled policies', () => {
  test('decide 20,000 rows, and cells and things between them, as the engine does', () => {
    const { differences, coverage, refused } = differential({ seed: 1, triples: 20_000 });
    expect(differences.slice(0, 3)).toEqual([]);
    expect([...coverage].filter(([, times]) => times === 0).map(([name]) => name)).toEqual([]);
    // Whatever the writer makes is to be compared, not turned away.
    expect(refused).toBe(0);
  });
});
