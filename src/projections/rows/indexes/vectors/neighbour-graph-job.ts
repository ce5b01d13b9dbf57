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
const GRAPH_WIDTH = 16;
const GRAPH_BUILD_EFFORT = 100;
const GRAPH_SEED = 100;
/** Vectors that a search looks at, at most. */
export const EFFORT_MOST = 4_096;

/** Room in memory for the bytes of a graph, beside those that it takes itself. */
const GRAPH_FILE_BYTES = 1 << 20;

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

interface HnswGraph {
  readonly dims: number;
  readonly index: Hnsw.HierarchicalNSW;
}

const emptyGraphReply: GraphReply = {};

export const neighbourGraphJob: Job<GraphsOptions, GraphRequest, GraphReply> = {
  module: import.meta.url,
  name: 'neighbourGraphJob',
  begin: ({ memory }) => {
    const graphs = new Map<number, HnswGraph>();
    const requireGraph = (number: number): HnswGraph => {
      const graph = graphs.get(number);
      assert(graph, 'a graph that is asked was begun');
      return graph;
    };
    return async (graphRequest) => {
      switch (graphRequest.ask) {
        case 'begin': {
          const index = newHnswIndex(graphRequest.dims);
          index.initIndex(graphRequest.rows, GRAPH_WIDTH, GRAPH_BUILD_EFFORT, GRAPH_SEED);
          graphs.set(graphRequest.graph, { dims: graphRequest.dims, index });
          return emptyGraphReply;
        }
        case 'add': {
          const { dims, index } = requireGraph(graphRequest.graph);
          for (const [i, row] of graphRequest.rows.entries()) index.addPoint(vectorNumbers(graphRequest.values, i, dims), row);
          return emptyGraphReply;
        }
        case 'near': {
          const vector = vectorNumbers(graphRequest.vector, 0, graphRequest.vector.length);
          return { near: graphRequest.parts.map((part) => nearestOf(requireGraph(part.graph), vector, part)) };
        }
        case 'save':
          return await saveGraph(requireGraph(graphRequest.graph), memory);
        case 'open':
          graphs.set(graphRequest.graph, await openGraph(graphRequest.dims, graphRequest.bytes, memory));
          return emptyGraphReply;
        case 'drop':
          graphs.delete(graphRequest.graph);
          return emptyGraphReply;
      }
    };
  },
};

function nearestOf({ index: hnswIndex }: HnswGraph, vector: number[], { count, effort, visible }: NearPart): Int32Array {
  const isRowVisible = visible === null ? undefined : (row: number) => ((visible[row >>> 5]! >>> (row & 31)) & 1) === 1;
  const findNeighbours = (searchEffort: number): Int32Array => {
    hnswIndex.setEf(searchEffort);
    return Int32Array.from(hnswIndex.searchKnn(vector, count, isRowVisible).neighbors).sort();
  };
  // Rows that all lie about as far are found by chance: where twice as many looks find others, still more are taken.
  let nearest = findNeighbours(effort);
  for (let looked = effort * 2; looked <= EFFORT_MOST; looked *= 2) {
    const moreNeighbours = findNeighbours(looked);
    if (moreNeighbours.length === nearest.length && moreNeighbours.every((row, i) => row === nearest[i])) break;
    nearest = moreNeighbours;
  }
  return nearest;
}

async function saveGraph({ dims, index: hnswIndex }: HnswGraph, memory: string): Promise<GraphReply> {
  const graphFile = await openMemoryFile(memory, graphBytes(hnswIndex.getCurrentCount(), dims) + GRAPH_FILE_BYTES);
  if (!graphFile) return emptyGraphReply;
  try {
    await hnswIndex.writeIndex(graphFile.path);
    return { bytes: await graphFile.read() };
  } finally {
    await graphFile.close();
  }
}

/** The library refuses bytes that end early. */
async function openGraph(dims: number, savedGraph: Uint8Array, memory: string): Promise<HnswGraph> {
  const graphFile = await openMemoryFile(memory, savedGraph.length + GRAPH_FILE_BYTES);
  assert(graphFile, 'there is memory for a graph that was saved');
  try {
    await graphFile.write(savedGraph);
    const hnswIndex = newHnswIndex(dims);
    await hnswIndex.readIndex(graphFile.path);
    return { dims, index: hnswIndex };
  } finally {
    await graphFile.close();
  }
}

const require = createRequire(import.meta.url);

/** The library is loaded with the first graph: most stores have none. */
function newHnswIndex(dims: number): Hnsw.HierarchicalNSW {
  const { HierarchicalNSW } = require('hnswlib-node') as typeof Hnsw;
  return new HierarchicalNSW('cosine', dims);
}

/** The library takes nothing else. */
function vectorNumbers(vectorValues: Float32Array, vectorIndex: number, dims: number): number[] {
  return Array.from(vectorValues.subarray(vectorIndex * dims, (vectorIndex + 1) * dims));
}

/** Bytes of a graph of so many vectors, about. */
export function graphBytes(rows: number, dims: number): number {
  return rows * (dims * 4 + GRAPH_WIDTH * 2 * 4 + 64);
}
