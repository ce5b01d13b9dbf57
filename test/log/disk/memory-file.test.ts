/** Files in memory that have no name: what a path to one gives, where there is none, and that none is left. */
import fs from 'node:fs/promises';
import { expect, test } from 'vitest';
import { MEMORY_DIRECTORY, openMemoryFile } from '../../../src/log/disk/memory-file.ts';
import { inlineWorker } from '../../../src/log/threads/workers.ts';
import {
  type GraphRequest,
  neighbourGraphJob,
  type GraphReply,
} from '../../../src/projections/rows/indexes/vectors/neighbour-graph-job.ts';

const own = async (): Promise<readonly string[]> => {
  const names = (await fs.readdir(MEMORY_DIRECTORY)).filter((name) => name.startsWith('annals-'));
  // Files of other processes may have a name for a moment.
  return (await Promise.all(names.map((name) => fs.readdir(`${MEMORY_DIRECTORY}/${name}`).catch(() => [])))).flat();
};

test('what is written is read by the path, and there is nothing but the path', async () => {
  const file = (await openMemoryFile(MEMORY_DIRECTORY, 100))!;
  const bytes = Uint8Array.from({ length: 70_000 }, (_, i) => i * 7);
  await file.write(bytes);
  expect(Uint8Array.from(await fs.readFile(file.path))).toEqual(bytes);
  expect(Uint8Array.from(await file.read())).toEqual(bytes);
  await expect.poll(own).toEqual([]);
  await file.close();
  await expect(fs.readFile(file.path)).rejects.toThrow();
});

test('there is none on a disk, nor where there is no room', async () => {
  expect(await openMemoryFile('/nowhere', 1)).toBe(null);
  expect(await openMemoryFile('/proc', 1)).toBe(null);
  expect(await openMemoryFile(MEMORY_DIRECTORY, Number.MAX_SAFE_INTEGER)).toBe(null);
});

const vectors = Array.from({ length: 50 }, (_, row) => Float32Array.of(row + 1, 50 - row, (row * 7) % 13));

test('a graph is the same after a way over a file; bytes that end early are refused, and without memory there are none', async () => {
  const ask = (memory: string): ((asked: GraphRequest) => Promise<GraphReply>) => {
    const worker = inlineWorker(neighbourGraphJob, { memory });
    return (asked) => worker.ask(asked);
  };
  const first = ask(MEMORY_DIRECTORY);
  const elsewhere = ask('/nowhere');
  for (const each of [first, elsewhere]) {
    await each({ ask: 'begin', graph: 1, dims: 3, rows: vectors.length });
    for (const [row, values] of vectors.entries()) await each({ ask: 'add', graph: 1, rows: Int32Array.of(row), values });
  }
  expect(await elsewhere({ ask: 'save', graph: 1 })).toEqual({});
  const { bytes } = await first({ ask: 'save', graph: 1 });
  const second = ask(MEMORY_DIRECTORY);
  await second({ ask: 'open', graph: 7, dims: 3, bytes: bytes! });
  const near = (graph: number): GraphRequest => ({
    ask: 'near',
    vector: vectors[9]!,
    parts: [{ graph, count: 5, effort: 64, visible: null }],
  });
  expect((await second(near(7))).near).toEqual((await first(near(1))).near);
  expect(Uint8Array.from((await second({ ask: 'save', graph: 7 })).bytes!)).toEqual(Uint8Array.from(bytes!));
  await expect(second({ ask: 'open', graph: 8, dims: 3, bytes: bytes!.subarray(0, bytes!.length - 9) })).rejects.toThrow();
  await expect(second(near(8))).rejects.toThrow('a graph that is asked was begun');
  await expect.poll(own).toEqual([]);
});
