import { expect, test } from 'vitest';
import { recallMeasured } from '../quality/memory.ts';
import { tell } from '../runner/tell.ts';

/** Points of recall@5; a run over a few seeds shows between 3 and 8. */
const above = 0.03;

test('recall answers more questions about conversations than plain BM25 over the same rows does', async () => {
  const { questions, recall, bm25 } = await recallMeasured(2, 1);
  expect(questions).toBeGreaterThan(200);
  expect(recall - bm25).toBeGreaterThanOrEqual(above);
  tell(`recall@5 ${recall.toFixed(3)}, plain BM25 ${bm25.toFixed(3)}, 1 of 1 seeds (npm run quality -- memory)`);
});
