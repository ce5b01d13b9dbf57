/** Graphs of vectors: how many of the true nearest they find, where vectors lie in clusters and where they don't. */
import { expect, test } from 'vitest';
import { MEMORY_DIRECTORY } from '../../../src/log/disk/memory-file.ts';
import { inlineWorker } from '../../../src/log/threads/workers.ts';
import { neighbourGraphJob } from '../../../src/projections/rows/indexes/vectors/neighbour-graph-job.ts';

const [dims, rows, count] = [64, 800, 10];

test('what a graph finds of vectors that all lie about as far rises until looking at more finds nothing else', async () => {
  let state = 7;
  // A sum of twelve is as good as normal.
  const normal = (): number => {
    let sum = -6;
    for (let i = 0; i < 12; i++) sum += (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32;
    return sum;
  };
  const unit = (): Float32Array => {
    const values = Float32Array.from({ length: dims }, normal);
    const length = Math.hypot(...values);
    return values.map((value) => value / length);
  };
  const vectors = Array.from({ length: rows }, unit);
  const worker = inlineWorker(neighbourGraphJob, { memory: MEMORY_DIRECTORY });
  await worker.ask({ ask: 'begin', graph: 1, dims, rows });
  for (const [row, values] of vectors.entries()) await worker.ask({ ask: 'add', graph: 1, rows: Int32Array.of(row), values });
  let found = 0;
  for (let question = 0; question < 20; question++) {
    const vector = unit();
    const like = (row: number): number => vectors[row]!.reduce((sum, value, i) => sum + value * vector[i]!, 0);
    const nearest = [...vectors.keys()].toSorted((a, b) => like(b) - like(a)).slice(0, count);
    const { near } = await worker.ask({ ask: 'near', vector, parts: [{ graph: 1, count, effort: count, visible: null }] });
    found += nearest.filter((row) => near![0]!.includes(row)).length;
  }
  await worker.end();
  expect(found).toBeGreaterThanOrEqual(0.95 * 20 * count);
});
