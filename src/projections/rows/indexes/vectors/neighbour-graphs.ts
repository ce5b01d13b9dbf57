/**
 * Graphs of the vectors of full segments, one for each organisation path, so that none holds a row that its reader may not see. A
 * first search begins them; they are made a slice at a time beside the event loop, and forgotten as texts' indexes are. Those
 * that were not searched lately leave memory for others. A finished one rests on a file once its segment does, and is read from
 * there.
 */
import type { Vector } from '../../../../log/values/columns.ts';
import { MEMORY_DIRECTORY } from '../../../../log/disk/memory-file.ts';
import { inlineWorker, type StartWorker, type Worker } from '../../../../log/threads/workers.ts';
import type { ColumnSpace } from '../../cells/column-extents.ts';
import type { Segment } from '../../segments/segment.ts';
import type { IndexFiles, IndexKey } from '../../store/index-files.ts';
import {
  GRAPH_FORMAT,
  type GraphRequest,
  type GraphReply,
  graphBytes,
  neighbourGraphJob,
  type GraphsOptions,
  EFFORT_MOST,
  type NearPart,
} from './neighbour-graph-job.ts';

/** Vectors that are handed over at a time: some milliseconds of work. */
const ROWS_A_SLICE = 32;
/** Vectors that are looked at in a graph for each that is wanted, and at least, to begin with. */
const EFFORT = 2;
const EFFORT_LEAST = 40;
/** Questions after which a graph that none of them asked may leave memory: reading one back takes far longer than any of them. */
const QUESTIONS_IDLE = 16;

export interface NeighbourGraphsOptions extends Partial<GraphsOptions> {
  readonly startWorker: StartWorker;
  /** Before each slice, where slices are the event loop's own. */
  readonly yieldTurn: () => Promise<void>;
  /** One line for the operator. */
  readonly say: (line: string) => void;
}

/** Resources that graphs share with the other indexes of segments. */
interface Shared {
  readonly space: ColumnSpace;
  /** Whether so many bytes more have room. */
  readonly hasRoom: (bytes: number) => boolean;
  /** Null: nothing rests on files. */
  readonly files: IndexFiles | null;
}

interface Graph {
  readonly number: number;
  readonly segment: Segment;
  readonly column: string;
  readonly path: number;
  /** Rows of the path that have a vector. */
  readonly rows: Int32Array;
  readonly dims: number;
  readonly bytes: number;
  /** Removals from the segment by the time that it was begun. */
  readonly removals: number;
  /** The last question that it was asked. */
  question: number;
  isReady: boolean;
  isOver: boolean;
}

/** Rows of a path of a segment. */
export interface PathRows {
  readonly segment: Segment;
  readonly path: number;
  /** Rows that may be in the result, ascending; null: all of the segment. */
  readonly visible: Int32Array | null;
}

export interface NearRequest {
  readonly column: string;
  readonly vector: Float32Array;
  /** Wanted of each path of each segment. */
  readonly count: number;
}

/** By column and path. */
type Graphs = Map<string, Graph>;

const forgetters = new WeakMap<Segment, Set<(column: string | undefined) => void>>();

export function forgetGraphs(segment: Segment, column?: string): void {
  for (const forget of forgetters.get(segment) ?? []) forget(column);
}

export class NeighbourGraphs {
  readonly #options: NeighbourGraphsOptions;
  readonly #shared: Shared;
  readonly #known = new WeakMap<Segment, Graphs>();
  readonly #all = new Set<Graph>();
  #worker: Worker<GraphRequest, GraphReply> | null = null;
  #graphCount = 0;
  #bytes = 0;
  #questions = 0;
  #ended = false;
  /** The one that is being made; each waits for the one before. */
  #last: Promise<void> = Promise.resolve();
  readonly counts = { built: 0, read: 0 };

  constructor(options: NeighbourGraphsOptions, shared: Shared) {
    this.#options = options;
    this.#shared = shared;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** How many hold a row that has been removed since. */
  get stale(): number {
    return [...this.#all].filter(({ segment, removals }) => removals !== segment.removals).length;
  }

  /** Resolves once all that were begun are made and saved. */
  async whenIdle(): Promise<void> {
    for (let last: Promise<void> | null = null; last !== this.#last; ) await (last = this.#last);
  }

  /** Segments are gone, and their graphs go with them. */
  clear(): void {
    for (const graph of this.#all) this.#drop(graph);
  }

  async end(): Promise<void> {
    this.#ended = true;
    await this.#worker?.end();
  }

  /** Rows near a vector, in no order, of each of these; null where its graph is not there yet, which is begun then, or finds too few. */
  async near({ column, vector, count }: NearRequest, paths: readonly PathRows[]): Promise<readonly (Int32Array | null)[]> {
    this.#questions++;
    const nearestByPath: (Int32Array | null)[] = paths.map(() => null);
    const parts: NearPart[] = [];
    const pathIndexes: number[] = [];
    for (const [pathIndex, { segment, path, visible }] of paths.entries()) {
      const graph = this.#find(segment, column, path);
      if (!graph?.isReady) continue;
      const { length } = graph.rows;
      const wanted = Math.min(count, visible?.length ?? length, length);
      if (wanted === 0) {
        nearestByPath[pathIndex] = new Int32Array(0);
        continue;
      }
      const share = visible === null ? 1 : visible.length / length;
      const effort = Math.min(EFFORT_MOST, Math.ceil(Math.max(EFFORT_LEAST, wanted * EFFORT) / Math.max(share, 0.05)));
      parts.push({ graph: graph.number, count: wanted, effort, visible: visible && bitsOf(visible, segment.length) });
      pathIndexes.push(pathIndex);
    }
    if (parts.length === 0) return nearestByPath;
    const { near } = await this.#ask({ ask: 'near', vector, parts });
    for (const [i, { count: wanted }] of parts.entries()) {
      const rows = near?.[i];
      if (rows && rows.length >= wanted) nearestByPath[pathIndexes[i]!] = rows;
    }
    return nearestByPath;
  }

  /** A segment came to rest: saves the graphs made of it before. */
  onRest(segment: Segment): void {
    for (const graph of this.#known.get(segment)?.values() ?? []) {
      if (graph.isReady) this.#next(() => this.#save(graph));
    }
  }

  #ask(asked: GraphRequest): Promise<GraphReply> {
    const { startWorker, memory = MEMORY_DIRECTORY } = this.#options;
    this.#worker ??= startWorker(neighbourGraphJob, { memory });
    return this.#worker.ask(asked);
  }

  #say(line: string): void {
    if (!this.#ended) this.#options.say(line);
  }

  #next(work: () => Promise<void>): void {
    this.#last = this.#last.then(work);
  }

  #graphsOf(segment: Segment): Graphs {
    let graphs = this.#known.get(segment);
    if (graphs) return graphs;
    this.#known.set(segment, (graphs = new Map()));
    const own = graphs;
    const forget = (column: string | undefined): void => {
      for (const graph of own.values()) if (column === undefined || graph.column === column) this.#drop(graph);
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
    this.#graphsOf(graph.segment).delete(keyOf(graph));
    this.#all.delete(graph);
    this.#bytes -= graph.bytes;
    // The thread may have ended meanwhile: then there is nothing to let go of.
    void this.#ask({ ask: 'drop', graph: graph.number }).catch(() => undefined);
  }

  /** Returns the graph, or begins to build it. */
  #find(segment: Segment, column: string, path: number): Graph | undefined {
    const graphs = this.#graphsOf(segment);
    const key = keyOf({ column, path });
    const graph = graphs.get(key);
    if (graph) {
      // To the end of those that may leave memory.
      this.#all.delete(graph);
      this.#all.add(graph);
      graph.question = this.#questions;
      return graph;
    }
    const vector = segment.column(column)?.vector(segment.length);
    if (vector?.kind !== 'vec') return undefined;
    const rows = membersOf(segment, path, vector);
    const { dims } = vector;
    const bytes = graphBytes(rows.length, dims);
    if (!this.#makeRoom(bytes)) return undefined;
    const states = { question: this.#questions, isReady: false, isOver: false };
    const begun: Graph = {
      number: ++this.#graphCount,
      segment,
      column,
      path,
      rows,
      dims,
      bytes,
      removals: segment.removals,
      ...states,
    };
    graphs.set(key, begun);
    this.#all.add(begun);
    this.#bytes += bytes;
    this.#next(() => this.#make(begun));
    return undefined;
  }

  /** Drops the graphs that were searched longest ago, but none that was searched lately. */
  #makeRoom(bytes: number): boolean {
    const { hasRoom } = this.#shared;
    const idle = [...this.#all].filter(({ question, isReady }) => isReady && this.#questions - question > QUESTIONS_IDLE);
    if (!hasRoom(bytes - idle.reduce((sum, graph) => sum + graph.bytes, 0))) return false;
    for (const graph of idle) {
      if (hasRoom(bytes)) break;
      this.#drop(graph);
    }
    return true;
  }

  async #make(graph: Graph): Promise<void> {
    try {
      if (await this.#read(graph)) return;
      await this.#build(graph);
      await this.#save(graph);
    } catch (error) {
      if (!graph.isOver) this.#say(`a graph of vectors can't be made (${String(error)})`);
      this.#drop(graph);
    }
  }

  /** False where there is no file of it, or one of no use. */
  async #read(graph: Graph): Promise<boolean> {
    const { files } = this.#shared;
    if (graph.isOver) return true;
    const { segment, number, dims } = graph;
    const key = indexKeyOf(graph);
    const bytes = await files?.read(segment, key);
    if (!bytes) return false;
    if (graph.isOver) return true;
    try {
      await this.#ask({ ask: 'open', graph: number, dims, bytes });
    } catch (error) {
      this.#say(`a graph of vectors can't be read from its file (${String(error)}); it is made anew`);
      await files?.drop(segment, key);
      return false;
    }
    this.counts.read++;
    graph.isReady = !graph.isOver;
    return true;
  }

  async #build(graph: Graph): Promise<void> {
    // The column stays in place until all of it was handed over, even if it leaves memory meanwhile.
    const hold = this.#shared.space.read([null]);
    hold.next();
    try {
      const { segment, column, rows, dims } = graph;
      const vector = graph.isOver ? undefined : segment.column(column)?.vector(segment.length);
      if (vector?.kind !== 'vec') return;
      const { values } = vector;
      await this.#ask({ ask: 'begin', graph: graph.number, dims, rows: Math.max(1, rows.length) });
      for (let at = 0; at < rows.length && !graph.isOver; at += ROWS_A_SLICE) {
        if (this.#options.startWorker === inlineWorker) await this.#options.yieldTurn();
        const some = rows.slice(at, at + ROWS_A_SLICE);
        const slice = new Float32Array(some.length * dims);
        for (const [i, row] of some.entries()) slice.set(values.subarray(row * dims, (row + 1) * dims), i * dims);
        await this.#ask({ ask: 'add', graph: graph.number, rows: some, values: slice });
      }
      if (graph.isOver) return;
      this.counts.built++;
      graph.isReady = true;
    } finally {
      hold.return();
    }
  }

  /** Saves a graph. One that can't be saved still answers. One of rows that have been removed since is not written. */
  async #save(graph: Graph): Promise<void> {
    const { files } = this.#shared;
    const { segment, number, rows } = graph;
    const isCurrent = (): boolean => graph.isReady && graph.removals === segment.removals;
    if (!isCurrent() || rows.length === 0 || files?.rests(segment) !== true) return;
    try {
      const { bytes } = await this.#ask({ ask: 'save', graph: number });
      if (bytes) await files.write(segment, indexKeyOf(graph), bytes, isCurrent);
    } catch (error) {
      if (graph.isReady) this.#say(`a graph of vectors can't be saved (${String(error)}); it is made again when it is needed`);
    }
  }
}

function keyOf({ column, path }: Pick<Graph, 'column' | 'path'>): string {
  return `${path} ${column}`;
}

function indexKeyOf({ column, path, rows }: Graph): IndexKey {
  return { kind: 'graph', format: GRAPH_FORMAT, column, path, language: '', rows: rows.length };
}

/** Rows of a path that have a vector. */
function membersOf(segment: Segment, path: number, { nulls }: Extract<Vector, { readonly kind: 'vec' }>): Int32Array {
  const rows = new Int32Array(segment.length);
  let count = 0;
  for (let row = 0; row < segment.length; row++) {
    if (nulls?.[row] !== 1 && !segment.isRemoved(row) && segment.paths.codeAt(row) === path) rows[count++] = row;
  }
  return rows.slice(0, count);
}

function bitsOf(rows: Int32Array, length: number): Int32Array {
  const bits = new Int32Array((length + 31) >>> 5);
  for (const row of rows) bits[row >>> 5]! |= 1 << (row & 31);
  return bits;
}
