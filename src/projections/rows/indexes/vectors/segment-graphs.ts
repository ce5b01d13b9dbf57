/**
 * Graphs of the vectors of segments that take no more rows, one for each organisation path, so that none holds a row that its reader may
 * not see. They are begun once somebody asks, made a slice at a time beside the event loop, and forgotten as texts' indexes are.
 */
import type { Vector } from '../../../../log/columns.ts';
import { inlineWorker, type StartWorker, type Worker } from '../../../../log/workers.ts';
import type { ColumnSpace } from '../../extents.ts';
import type { Segment } from '../../segment.ts';
import { type GraphAsked, graphBytes, graphJob } from './graph-job.ts';

/** Vectors that are handed over at a time: some milliseconds of work. */
const ROWS_A_SLICE = 32;
/** Vectors that are looked at in a graph for each that is wanted, and at least, and at most. */
const EFFORT = 2;
const EFFORT_LEAST = 64;
const EFFORT_MOST = 4_096;

export interface SegmentGraphsOptions {
  readonly startWorker: StartWorker;
  /** Before each slice, where slices are the event loop's own. */
  readonly yieldTurn: () => Promise<void>;
  /** One line for the operator. */
  readonly say: (line: string) => void;
}

interface Graph {
  readonly number: number;
  readonly rows: number;
  readonly bytes: number;
  isReady: boolean;
  isOver: boolean;
}

export interface NearAsked {
  readonly vector: Float32Array;
  readonly count: number;
  /** Rows of the path that may be among them, ascending; null: all of the segment. */
  readonly visible: Int32Array | null;
}

/** By column and path. */
type Graphs = Map<string, Graph>;

const forgetters = new WeakMap<Segment, Set<(column: string | undefined) => void>>();

export function forgetGraphs(segment: Segment, column?: string): void {
  for (const forget of forgetters.get(segment) ?? []) forget(column);
}

export class SegmentGraphs {
  readonly #space: ColumnSpace;
  readonly #options: SegmentGraphsOptions;
  /** Whether so many bytes more have room. */
  readonly #hasRoom: (bytes: number) => boolean;
  readonly #known = new WeakMap<Segment, Graphs>();
  readonly #all = new Set<Graph>();
  #worker: Worker<GraphAsked, Int32Array | null> | null = null;
  #made = 0;
  #bytes = 0;
  /** The one that is being made; each waits for the one before. */
  #last: Promise<void> = Promise.resolve();

  constructor(space: ColumnSpace, options: SegmentGraphsOptions, hasRoom: (bytes: number) => boolean) {
    this.#space = space;
    this.#options = options;
    this.#hasRoom = hasRoom;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Resolves once all that were begun are made. */
  async settled(): Promise<void> {
    for (let last: Promise<void> | null = null; last !== this.#last; ) await (last = this.#last);
  }

  /** Segments are gone, and their graphs go with them. */
  clear(): void {
    for (const graph of this.#all) this.#drop(graph);
  }

  async end(): Promise<void> {
    await this.#worker?.end();
  }

  /** Rows of a path near a vector, in no order; null where its graph is not there yet, which is begun then, or finds too few. */
  async near(segment: Segment, column: string, path: number, asked: NearAsked): Promise<Int32Array | null> {
    const graphs = this.#graphsOf(segment);
    const key = `${path} ${column}`;
    const graph = graphs.get(key);
    if (graph === undefined) this.#begin(graphs, key, segment, column, path);
    if (!graph?.isReady) return null;
    const { vector, count, visible } = asked;
    const wanted = Math.min(count, visible?.length ?? graph.rows, graph.rows);
    if (wanted === 0) return new Int32Array(0);
    const share = visible === null ? 1 : visible.length / graph.rows;
    const effort = Math.min(EFFORT_MOST, Math.ceil(Math.max(EFFORT_LEAST, wanted * EFFORT) / Math.max(share, 0.05)));
    const bits = visible && bitsOf(visible, segment.length);
    const found = await this.#ask({ ask: 'near', graph: graph.number, vector, count: wanted, effort, visible: bits });
    return found !== null && found.length >= wanted ? found : null;
  }

  #ask(asked: GraphAsked): Promise<Int32Array | null> {
    this.#worker ??= this.#options.startWorker(graphJob, null);
    return this.#worker.ask(asked);
  }

  #graphsOf(segment: Segment): Graphs {
    let graphs = this.#known.get(segment);
    if (graphs) return graphs;
    this.#known.set(segment, (graphs = new Map()));
    const own = graphs;
    const forget = (column: string | undefined): void => {
      for (const [key, graph] of own) {
        if (column !== undefined && !key.endsWith(` ${column}`)) continue;
        own.delete(key);
        this.#drop(graph);
      }
    };
    const others = forgetters.get(segment);
    if (others) others.add(forget);
    else forgetters.set(segment, new Set([forget]));
    return graphs;
  }

  #drop(graph: Graph): void {
    if (graph.isOver) return;
    graph.isOver = true;
    graph.isReady = false;
    this.#all.delete(graph);
    this.#bytes -= graph.bytes;
    // The thread may have ended meanwhile: then there is nothing to let go of.
    void this.#ask({ ask: 'drop', graph: graph.number }).catch(() => undefined);
  }

  #begin(graphs: Graphs, key: string, segment: Segment, column: string, path: number): void {
    const vector = segment.column(column)?.vector(segment.length);
    if (vector?.kind !== 'vec') return;
    const rows = membersOf(segment, path, vector);
    const bytes = graphBytes(rows.length, vector.dims);
    if (!this.#hasRoom(bytes)) return;
    const graph: Graph = { number: ++this.#made, rows: rows.length, bytes, isReady: false, isOver: false };
    graphs.set(key, graph);
    this.#all.add(graph);
    this.#bytes += bytes;
    this.#last = this.#last
      .then(() => this.#build(graph, segment, column, rows))
      .catch((error: unknown) => {
        if (!graph.isOver) this.#options.say(`a graph of vectors can't be made (${String(error)})`);
        this.#drop(graph);
      });
  }

  async #build(graph: Graph, segment: Segment, column: string, rows: Int32Array): Promise<void> {
    // What is read of the column stays where it is until all of it was handed over, whatever leaves memory meanwhile.
    const hold = this.#space.read([null]);
    hold.next();
    try {
      const vector = segment.column(column)?.vector(segment.length);
      if (vector?.kind !== 'vec' || graph.isOver) return;
      const { dims, values } = vector;
      await this.#ask({ ask: 'begin', graph: graph.number, dims, rows: Math.max(1, rows.length) });
      for (let at = 0; at < rows.length && !graph.isOver; at += ROWS_A_SLICE) {
        if (this.#options.startWorker === inlineWorker) await this.#options.yieldTurn();
        const some = rows.slice(at, at + ROWS_A_SLICE);
        const slice = new Float32Array(some.length * dims);
        for (const [i, row] of some.entries()) slice.set(values.subarray(row * dims, (row + 1) * dims), i * dims);
        await this.#ask({ ask: 'add', graph: graph.number, rows: some, values: slice });
      }
      graph.isReady = !graph.isOver;
    } finally {
      hold.return();
    }
  }
}

/** Rows of a path that have a vector. */
function membersOf(segment: Segment, path: number, { nulls }: Extract<Vector, { readonly kind: 'vec' }>): Int32Array {
  const rows = new Int32Array(segment.length);
  let count = 0;
  for (let row = 0; row < segment.length; row++) {
    if (nulls?.[row] !== 1 && !segment.isRemoved(row) && segment.paths.at(row) === path) rows[count++] = row;
  }
  return rows.slice(0, count);
}

function bitsOf(rows: Int32Array, length: number): Int32Array {
  const bits = new Int32Array((length + 31) >>> 5);
  for (const row of rows) bits[row >>> 5]! |= 1 << (row & 31);
  return bits;
}
