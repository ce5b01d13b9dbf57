/**
 * Graphs of vectors (HNSW), each of one path's rows of one segment, in a thread of their own: they live in native memory, which threads
 * don't share. A graph follows from its vectors and the order in which they come, since seed, effort and width are fixed.
 */
import hnsw from 'hnswlib-node';
import { assert } from '../../../../errors.ts';
import type { Job } from '../../../../log/workers.ts';

/** Neighbours of a vector, and how many are looked at for them. */
const WIDTH = 16;
const BUILD_EFFORT = 100;
const SEED = 100;

export type GraphAsked =
  | { readonly ask: 'begin'; readonly graph: number; readonly dims: number; readonly rows: number }
  | { readonly ask: 'add'; readonly graph: number; readonly rows: Int32Array; readonly values: Float32Array }
  | {
      readonly ask: 'near';
      readonly graph: number;
      readonly vector: Float32Array;
      readonly count: number;
      readonly effort: number;
      /** A bit a row of those that count; null: all. */
      readonly visible: Int32Array | null;
    }
  | { readonly ask: 'drop'; readonly graph: number };

interface Graph {
  readonly dims: number;
  readonly index: hnsw.HierarchicalNSW;
}

/** Rows near a vector, nearest first; of everything else null. */
export const graphJob: Job<null, GraphAsked, Int32Array | null> = {
  module: import.meta.url,
  name: 'graphJob',
  begin: () => {
    const graphs = new Map<number, Graph>();
    return (asked) => {
      if (asked.ask === 'drop') {
        graphs.delete(asked.graph);
        return null;
      }
      if (asked.ask === 'begin') {
        const index = new hnsw.HierarchicalNSW('cosine', asked.dims);
        index.initIndex(asked.rows, WIDTH, BUILD_EFFORT, SEED);
        graphs.set(asked.graph, { dims: asked.dims, index });
        return null;
      }
      const graph = graphs.get(asked.graph);
      assert(graph, 'a graph that is asked was begun');
      if (asked.ask === 'add') {
        for (const [i, row] of asked.rows.entries()) graph.index.addPoint(numbers(asked.values, i, graph.dims), row);
        return null;
      }
      const { visible } = asked;
      graph.index.setEf(asked.effort);
      const isVisible = visible === null ? undefined : (row: number) => ((visible[row >>> 5]! >>> (row & 31)) & 1) === 1;
      return Int32Array.from(graph.index.searchKnn(numbers(asked.vector, 0, graph.dims), asked.count, isVisible).neighbors);
    };
  },
};

/** The library takes nothing else. */
function numbers(values: Float32Array, at: number, dims: number): number[] {
  return Array.from(values.subarray(at * dims, (at + 1) * dims));
}

/** Bytes of a graph of so many vectors, about. */
export function graphBytes(rows: number, dims: number): number {
  return rows * (dims * 4 + WIDTH * 2 * 4 + 64);
}
