/**
 * Graphs of vectors (HNSW), each of one path's rows of one segment, in a thread of their own: they live in native memory, which threads
 * don't share. A graph follows from its vectors and the order in which they come, since seed, effort and width are fixed.
 *
 * The library writes a graph to a path, and reads it from one. Both go by a file in memory that has no name
 * (`log/disk/memory-file.ts`): only bytes that the other side has sealed reach a disk.
 */
import { createRequire } from 'node:module';
import type Hnsw from 'hnswlib-node';
import { assert } from '../../../../errors.ts';
import { openMemoryFile } from '../../../../log/disk/memory-file.ts';
import type { Job } from '../../../../log/threads/workers.ts';

/** Rises with the library, with what is fixed below, and with the order in which vectors come. */
export const GRAPH_FORMAT = 1;

/** Neighbours of a vector, and how many are looked at for them. */
const WIDTH = 16;
const BUILD_EFFORT = 100;
const SEED = 100;
/** Vectors that a search looks at, at most. */
export const EFFORT_MOST = 4_096;

/** Room in memory for the bytes of a graph, beside those that it takes itself. */
const BYTES_BESIDE = 1 << 20;

export interface GraphsOptions {
  /** Where files in memory lie. */
  readonly memory: string;
}

/** A search in one graph. */
export interface NearPart {
  readonly graph: number;
  readonly count: number;
  /** How many vectors are looked at to begin with. */
  readonly effort: number;
  /** A bit a row of those that count; null: all. */
  readonly visible: Int32Array | null;
}

export type GraphRequest =
  | { readonly ask: 'begin'; readonly graph: number; readonly dims: number; readonly rows: number }
  | { readonly ask: 'add'; readonly graph: number; readonly rows: Int32Array; readonly values: Float32Array }
  | { readonly ask: 'near'; readonly vector: Float32Array; readonly parts: readonly NearPart[] }
  | { readonly ask: 'save'; readonly graph: number }
  | { readonly ask: 'open'; readonly graph: number; readonly dims: number; readonly bytes: Uint8Array }
  | { readonly ask: 'drop'; readonly graph: number };

export interface GraphReply {
  /** Rows near the vector, nearest first, for each part that was asked. */
  readonly near?: readonly Int32Array[];
  /** The saved form of a graph, in memory that threads share; absent where there is no memory for a file. */
  readonly bytes?: Uint8Array;
}

interface Graph {
  readonly dims: number;
  readonly index: Hnsw.HierarchicalNSW;
}

const nothing: GraphReply = {};

export const neighbourGraphJob: Job<GraphsOptions, GraphRequest, GraphReply> = {
  module: import.meta.url,
  name: 'neighbourGraphJob',
  begin: ({ memory }) => {
    const graphs = new Map<number, Graph>();
    const requireGraph = (number: number): Graph => {
      const graph = graphs.get(number);
      assert(graph, 'a graph that is asked was begun');
      return graph;
    };
    return async (asked) => {
      switch (asked.ask) {
        case 'begin': {
          const index = newGraph(asked.dims);
          index.initIndex(asked.rows, WIDTH, BUILD_EFFORT, SEED);
          graphs.set(asked.graph, { dims: asked.dims, index });
          return nothing;
        }
        case 'add': {
          const { dims, index } = requireGraph(asked.graph);
          for (const [i, row] of asked.rows.entries()) index.addPoint(numbers(asked.values, i, dims), row);
          return nothing;
        }
        case 'near': {
          const vector = numbers(asked.vector, 0, asked.vector.length);
          return { near: asked.parts.map((part) => nearOf(requireGraph(part.graph), vector, part)) };
        }
        case 'save':
          return await saveGraph(requireGraph(asked.graph), memory);
        case 'open':
          graphs.set(asked.graph, await openGraph(asked.dims, asked.bytes, memory));
          return nothing;
        case 'drop':
          graphs.delete(asked.graph);
          return nothing;
      }
    };
  },
};

function nearOf({ index }: Graph, vector: number[], { count, effort, visible }: NearPart): Int32Array {
  const isVisible = visible === null ? undefined : (row: number) => ((visible[row >>> 5]! >>> (row & 31)) & 1) === 1;
  const find = (looked: number): Int32Array => {
    index.setEf(looked);
    return Int32Array.from(index.searchKnn(vector, count, isVisible).neighbors).sort();
  };
  // Rows that all lie about as far are found by chance: where twice as many looks find others, still more are taken.
  let nearest = find(effort);
  for (let looked = effort * 2; looked <= EFFORT_MOST; looked *= 2) {
    const more = find(looked);
    if (more.length === nearest.length && more.every((row, i) => row === nearest[i])) break;
    nearest = more;
  }
  return nearest;
}

async function saveGraph({ dims, index }: Graph, memory: string): Promise<GraphReply> {
  const file = await openMemoryFile(memory, graphBytes(index.getCurrentCount(), dims) + BYTES_BESIDE);
  if (!file) return nothing;
  try {
    await index.writeIndex(file.path);
    return { bytes: await file.read() };
  } finally {
    await file.close();
  }
}

/** The library refuses bytes that end early. */
async function openGraph(dims: number, bytes: Uint8Array, memory: string): Promise<Graph> {
  const file = await openMemoryFile(memory, bytes.length + BYTES_BESIDE);
  assert(file, 'there is memory for a graph that was saved');
  try {
    await file.write(bytes);
    const index = newGraph(dims);
    await index.readIndex(file.path);
    return { dims, index };
  } finally {
    await file.close();
  }
}

const require = createRequire(import.meta.url);

/** The library is loaded with the first graph: most stores have none. */
function newGraph(dims: number): Hnsw.HierarchicalNSW {
  const { HierarchicalNSW } = require('hnswlib-node') as typeof Hnsw;
  return new HierarchicalNSW('cosine', dims);
}

/** The library takes nothing else. */
function numbers(values: Float32Array, at: number, dims: number): number[] {
  return Array.from(values.subarray(at * dims, (at + 1) * dims));
}

/** Bytes of a graph of so many vectors, about. */
export function graphBytes(rows: number, dims: number): number {
  return rows * (dims * 4 + WIDTH * 2 * 4 + 64);
}
