/** What policies are compiled to decides as the engine does, for every construct that may be written. */
import { describe, expect, test } from 'vitest';
import { seedBase } from '../../runner/seed.ts';
import { tell } from '../../runner/tell.ts';
import { whole } from '../../runner/turn.ts';
import { differential } from './differential.ts';

describe('compiled policies', () => {
  const triples = whole ? 20_000 : 5_000;

  test(`decide ${triples} rows, and cells and things between them, as the engine does`, () => {
    const { differences, coverage, refused } = differential({ seed: seedBase + 1, triples });
    tell(`${triples} rows, seed ${seedBase + 1} (npm run policy-differential)`);
    expect(differences.slice(0, 3)).toEqual([]);
    expect([...coverage].filter(([, times]) => times === 0).map(([name]) => name)).toEqual([]);
    // Whatever the writer makes is to be compared, not turned away.
    expect(refused).toBe(0);
  });
});
