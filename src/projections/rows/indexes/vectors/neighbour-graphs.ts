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
const GRAPH_SLICE_ROWS = 32;
/** Vectors that are looked at in a graph for each that is wanted, and at least, to begin with. */
const SEARCH_EFFORT = 2;
const SEARCH_EFFORT_LEAST = 40;
/** Questions after which a graph that none of them asked may leave memory: reading one back takes far longer than any of them. */
const GRAPH_QUESTIONS_IDLE = 16;

export interface NeighbourGraphsOptions extends Partial<GraphsOptions> {
  readonly startWorker: StartWorker;
  /** Before each slice, where slices are the event loop's own. */
  readonly yieldTurn: () => Promise<void>;
  /** One line for the operator. */
  readonly say: (line: string) => void;
}

/** Resources that graphs share with the other indexes of segments. */
interface SharedStorage {
  readonly space: ColumnSpace;
  /** Whether so many bytes more have room. */
  readonly hasRoom: (bytes: number) => boolean;
  /** Null: nothing rests on files. */
  readonly files: IndexFiles | null;
}

interface VectorGraph {
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
type SegmentGraphs = Map<string, VectorGraph>;

const graphForgetters = new WeakMap<Segment, Set<(column: string | undefined) => void>>();

export function forgetGraphs(segment: Segment, column?: string): void {
  for (const forgetColumn of graphForgetters.get(segment) ?? []) forgetColumn(column);
}

export class NeighbourGraphs {
  readonly #graphOptions: NeighbourGraphsOptions;
  readonly #sharedStorage: SharedStorage;
  readonly #graphsBySegment = new WeakMap<Segment, SegmentGraphs>();
  readonly #allGraphs = new Set<VectorGraph>();
  #graphWorker: Worker<GraphRequest, GraphReply> | null = null;
  #graphCount = 0;
  #graphBytes = 0;
  #nearQuestionCount = 0;
  #hasGraphsEnded = false;
  /** The one that is being made; each waits for the one before. */
  #lastGraphWork: Promise<void> = Promise.resolve();
  readonly counts = { built: 0, read: 0 };

  constructor(graphOptions: NeighbourGraphsOptions, sharedStorage: SharedStorage) {
    this.#graphOptions = graphOptions;
    this.#sharedStorage = sharedStorage;
  }

  get bytes(): number {
    return this.#graphBytes;
  }

  /** How many hold a row that has been removed since. */
  get stale(): number {
    return [...this.#allGraphs].filter(({ segment, removals }) => removals !== segment.removals).length;
  }

  /** Resolves once all that were begun are made and saved. */
  async whenIdle(): Promise<void> {
    for (let lastGraphWork: Promise<void> | null = null; lastGraphWork !== this.#lastGraphWork; )
      await (lastGraphWork = this.#lastGraphWork);
  }

  /** Segments are gone, and their graphs go with them. */
  clear(): void {
    for (const droppedGraph of this.#allGraphs) this.#dropGraph(droppedGraph);
  }

  async end(): Promise<void> {
    this.#hasGraphsEnded = true;
    await this.#graphWorker?.end();
  }

  /** Rows near a vector, in no order, of each of these; null where its graph is not there yet, which is begun then, or finds too few. */
  async near({ column, vector, count }: NearRequest, paths: readonly PathRows[]): Promise<readonly (Int32Array | null)[]> {
    this.#nearQuestionCount++;
    const nearestByPath: (Int32Array | null)[] = paths.map(() => null);
    const nearParts: NearPart[] = [];
    const pathIndexes: number[] = [];
    for (const [pathIndex, { segment, path, visible }] of paths.entries()) {
      const vectorGraph = this.#findOrBeginGraph(segment, column, path);
      if (!vectorGraph?.isReady) continue;
      const { length } = vectorGraph.rows;
      const wantedNeighbours = Math.min(count, visible?.length ?? length, length);
      if (wantedNeighbours === 0) {
        nearestByPath[pathIndex] = new Int32Array(0);
        continue;
      }
      const visibleShare = visible === null ? 1 : visible.length / length;
      const searchEffort = Math.min(
        EFFORT_MOST,
        Math.ceil(Math.max(SEARCH_EFFORT_LEAST, wantedNeighbours * SEARCH_EFFORT) / Math.max(visibleShare, 0.05)),
      );
      nearParts.push({
        graph: vectorGraph.number,
        count: wantedNeighbours,
        effort: searchEffort,
        visible: visible && visibleBitsOf(visible, segment.length),
      });
      pathIndexes.push(pathIndex);
    }
    if (nearParts.length === 0) return nearestByPath;
    const { near } = await this.#askGraphWorker({ ask: 'near', vector, parts: nearParts });
    for (const [i, { count: wanted }] of nearParts.entries()) {
      const neighbourRows = near?.[i];
      if (neighbourRows && neighbourRows.length >= wanted) nearestByPath[pathIndexes[i]!] = neighbourRows;
    }
    return nearestByPath;
  }

  /** A segment came to rest: saves the graphs made of it before. */
  onRest(segment: Segment): void {
    for (const restingGraph of this.#graphsBySegment.get(segment)?.values() ?? []) {
      if (restingGraph.isReady) this.#queueGraphWork(() => this.#saveGraph(restingGraph));
    }
  }

  #askGraphWorker(graphRequest: GraphRequest): Promise<GraphReply> {
    const { startWorker, memory = MEMORY_DIRECTORY } = this.#graphOptions;
    this.#graphWorker ??= startWorker(neighbourGraphJob, { memory });
    return this.#graphWorker.ask(graphRequest);
  }

  #sayOfGraphs(graphNotice: string): void {
    if (!this.#hasGraphsEnded) this.#graphOptions.say(graphNotice);
  }

  #queueGraphWork(graphWork: () => Promise<void>): void {
    this.#lastGraphWork = this.#lastGraphWork.then(graphWork);
  }

  #graphsOf(segment: Segment): SegmentGraphs {
    let segmentGraphs = this.#graphsBySegment.get(segment);
    if (segmentGraphs) return segmentGraphs;
    this.#graphsBySegment.set(segment, (segmentGraphs = new Map()));
    const forgottenGraphs = segmentGraphs;
    const forgetColumn = (column: string | undefined): void => {
      for (const graph of forgottenGraphs.values()) if (column === undefined || graph.column === column) this.#dropGraph(graph);
    };
    const otherForgetters = graphForgetters.get(segment);
    if (otherForgetters) otherForgetters.add(forgetColumn);
    else graphForgetters.set(segment, new Set([forgetColumn]));
    return segmentGraphs;
  }

  #dropGraph(droppedGraph: VectorGraph): void {
    if (droppedGraph.isOver) return;
    droppedGraph.isOver = true;
    droppedGraph.isReady = false;
    this.#graphsOf(droppedGraph.segment).delete(graphKeyOf(droppedGraph));
    this.#allGraphs.delete(droppedGraph);
    this.#graphBytes -= droppedGraph.bytes;
    // The thread may have ended meanwhile: then there is nothing to let go of.
    void this.#askGraphWorker({ ask: 'drop', graph: droppedGraph.number }).catch(() => undefined);
  }

  /** Returns the graph, or begins to build it. */
  #findOrBeginGraph(segment: Segment, column: string, path: number): VectorGraph | undefined {
    const segmentGraphs = this.#graphsOf(segment);
    const graphKey = graphKeyOf({ column, path });
    const knownGraph = segmentGraphs.get(graphKey);
    if (knownGraph) {
      // To the end of those that may leave memory.
      this.#allGraphs.delete(knownGraph);
      this.#allGraphs.add(knownGraph);
      knownGraph.question = this.#nearQuestionCount;
      return knownGraph;
    }
    const graphVector = segment.column(column)?.vector(segment.length);
    if (graphVector?.kind !== 'vec') return undefined;
    const memberRows = graphMembersOf(segment, path, graphVector);
    const { dims } = graphVector;
    const expectedGraphBytes = graphBytes(memberRows.length, dims);
    if (!this.#makeGraphRoom(expectedGraphBytes)) return undefined;
    const graphStates = { question: this.#nearQuestionCount, isReady: false, isOver: false };
    const begunGraph: VectorGraph = {
      number: ++this.#graphCount,
      segment,
      column,
      path,
      rows: memberRows,
      dims,
      bytes: expectedGraphBytes,
      removals: segment.removals,
      ...graphStates,
    };
    segmentGraphs.set(graphKey, begunGraph);
    this.#allGraphs.add(begunGraph);
    this.#graphBytes += expectedGraphBytes;
    this.#queueGraphWork(() => this.#makeGraph(begunGraph));
    return undefined;
  }

  /** Drops the graphs that were searched longest ago, but none that was searched lately. */
  #makeGraphRoom(neededGraphBytes: number): boolean {
    const { hasRoom } = this.#sharedStorage;
    const idleGraphs = [...this.#allGraphs].filter(
      ({ question, isReady }) => isReady && this.#nearQuestionCount - question > GRAPH_QUESTIONS_IDLE,
    );
    if (!hasRoom(neededGraphBytes - idleGraphs.reduce((sum, idleGraph) => sum + idleGraph.bytes, 0))) return false;
    for (const graph of idleGraphs) {
      if (hasRoom(neededGraphBytes)) break;
      this.#dropGraph(graph);
    }
    return true;
  }

  async #makeGraph(madeGraph: VectorGraph): Promise<void> {
    try {
      if (await this.#readGraph(madeGraph)) return;
      await this.#buildGraph(madeGraph);
      await this.#saveGraph(madeGraph);
    } catch (error) {
      if (!madeGraph.isOver) this.#sayOfGraphs(`a graph of vectors can't be made (${String(error)})`);
      this.#dropGraph(madeGraph);
    }
  }

  /** False where there is no file of it, or one of no use. */
  async #readGraph(readGraph: VectorGraph): Promise<boolean> {
    const { files } = this.#sharedStorage;
    if (readGraph.isOver) return true;
    const { segment, number, dims } = readGraph;
    const graphFileKey = indexKeyOf(readGraph);
    const graphFile = await files?.read(segment, graphFileKey);
    if (!graphFile) return false;
    if (readGraph.isOver) return true;
    try {
      await this.#askGraphWorker({ ask: 'open', graph: number, dims, bytes: graphFile });
    } catch (error) {
      this.#sayOfGraphs(`a graph of vectors can't be read from its file (${String(error)}); it is made anew`);
      await files?.drop(segment, graphFileKey);
      return false;
    }
    this.counts.read++;
    readGraph.isReady = !readGraph.isOver;
    return true;
  }

  async #buildGraph(builtGraph: VectorGraph): Promise<void> {
    // The column stays in place until all of it was handed over, even if it leaves memory meanwhile.
    const extentHold = this.#sharedStorage.space.read([null]);
    extentHold.next();
    try {
      const { segment, column, rows, dims } = builtGraph;
      const graphVector = builtGraph.isOver ? undefined : segment.column(column)?.vector(segment.length);
      if (graphVector?.kind !== 'vec') return;
      const { values } = graphVector;
      await this.#askGraphWorker({ ask: 'begin', graph: builtGraph.number, dims, rows: Math.max(1, rows.length) });
      for (let sliceStart = 0; sliceStart < rows.length && !builtGraph.isOver; sliceStart += GRAPH_SLICE_ROWS) {
        if (this.#graphOptions.startWorker === inlineWorker) await this.#graphOptions.yieldTurn();
        const sliceRows = rows.slice(sliceStart, sliceStart + GRAPH_SLICE_ROWS);
        const vectorSlice = new Float32Array(sliceRows.length * dims);
        for (const [i, row] of sliceRows.entries()) vectorSlice.set(values.subarray(row * dims, (row + 1) * dims), i * dims);
        await this.#askGraphWorker({ ask: 'add', graph: builtGraph.number, rows: sliceRows, values: vectorSlice });
      }
      if (builtGraph.isOver) return;
      this.counts.built++;
      builtGraph.isReady = true;
    } finally {
      extentHold.return();
    }
  }

  /** Saves a graph. One that can't be saved still answers. One of rows that have been removed since is not written. */
  async #saveGraph(savedGraph: VectorGraph): Promise<void> {
    const { files } = this.#sharedStorage;
    const { segment, number, rows } = savedGraph;
    const isGraphCurrent = (): boolean => savedGraph.isReady && savedGraph.removals === segment.removals;
    if (!isGraphCurrent() || rows.length === 0 || files?.rests(segment) !== true) return;
    try {
      const { bytes: graphFile } = await this.#askGraphWorker({ ask: 'save', graph: number });
      if (graphFile) await files.write(segment, indexKeyOf(savedGraph), graphFile, isGraphCurrent);
    } catch (error) {
      if (savedGraph.isReady)
        this.#sayOfGraphs(`a graph of vectors can't be saved (${String(error)}); it is made again when it is needed`);
    }
  }
}

function graphKeyOf({ column, path }: Pick<VectorGraph, 'column' | 'path'>): string {
  return `${path} ${column}`;
}

function indexKeyOf({ column, path, rows }: VectorGraph): IndexKey {
  return { kind: 'graph', format: GRAPH_FORMAT, column, path, language: '', rows: rows.length };
}

/** Rows of a path that have a vector. */
function graphMembersOf(segment: Segment, path: number, { nulls }: Extract<Vector, { readonly kind: 'vec' }>): Int32Array {
  const memberRows = new Int32Array(segment.length);
  let memberCount = 0;
  for (let row = 0; row < segment.length; row++) {
    if (nulls?.[row] !== 1 && !segment.isRemoved(row) && segment.paths.codeAt(row) === path) memberRows[memberCount++] = row;
  }
  return memberRows.slice(0, memberCount);
}

function visibleBitsOf(visibleRows: Int32Array, length: number): Int32Array {
  const visibleBits = new Int32Array((length + 31) >>> 5);
  for (const row of visibleRows) visibleBits[row >>> 5]! |= 1 << (row & 31);
  return visibleBits;
}
