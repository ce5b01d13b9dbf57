import { expect, test } from 'vitest';
import { tell } from '../runner/tell.ts';
import { recallReplay } from './replay.ts';

const recalls = 60;

test('recalls that were recorded give the same list and scores from the log alone, and say where rows were erased', async () => {
  const { identical, differing, erased } = await recallReplay(recalls, 7, () => undefined);
  expect(differing).toEqual([]);
  expect(identical).toBe(recalls);
  expect(erased.asked).toBeGreaterThan(0);
  expect(erased.told).toBe(erased.asked);
  tell(`${recalls} recalls replayed (npm run recall-replay)`);
});
