/**
 * The link type and the four instants of edges, read once more through the gate by the system_from that the graph has of each: a graph
 * that is kept does not know which of its edges were ended since. A few are looked up one by one; where there are many, one scan meets
 * all of them.
 */
import { assert } from '../../errors.ts';
import type { Dictionary, Vector } from '../../log/values/columns.ts';
import { fetchVersion } from '../operators/ranked-rows.ts';
import type { Execution } from '../operators/operator.ts';
import type { Graph } from './graph.ts';
import { floatsOf, halvesOf } from './instant-floats.ts';
import type { Steps } from './stepped-sort.ts';

const instantColumns = ['valid_from', 'valid_to', 'system_from', 'system_to'] as const;
/** Edges that are fetched between two looks at the clock. */
const edgesFetchedAtOnce = 8;
/** Rows that a scan goes over while one edge is looked up. */
const rowsPerEdgeLookup = 3_000;

export class EdgeInstants {
  readonly #instantGraph: Graph;
  readonly #instantExecution: Execution;
  readonly #linkDictionary: Dictionary;
  /** Each once, ascending by link type, then by system_from. */
  readonly #instantEdges: Int32Array;
  /** By edge: its index in `#instantEdges`. An edge may be part of many paths. */
  readonly #edgeIndexes: ReadonlyMap<number, number>;
  /** By place: the halves of its instants, moved without an object for each; NULL for rows removed for good since. */
  readonly #instantHalves: Int32Array;
  readonly #instantNulls: Uint8Array;
  readonly #knownEdges: Uint8Array;
  #areEdgesScanned = false;

  constructor(graph: Graph, execution: Execution, edges: Int32Array) {
    this.#instantGraph = graph;
    this.#instantExecution = execution;
    const { links, linkOf } = graph;
    this.#linkDictionary = { size: links.length, text: (code) => links[code]!, codeOf: (text) => links.indexOf(text) };
    const systemTimes = floatsOf(graph.systemFrom);
    const edgeLink = (edge: number): number => (linkOf === null ? 0 : linkOf[edge]!);
    this.#instantEdges = Int32Array.from(new Set(edges)).sort(
      (a, b) => edgeLink(a) - edgeLink(b) || (systemTimes[a]! < systemTimes[b]! ? -1 : 1),
    );
    const edgeIndexes = new Map<number, number>();
    for (let i = 0; i < this.#instantEdges.length; i++) edgeIndexes.set(this.#instantEdges[i]!, i);
    this.#edgeIndexes = edgeIndexes;
    this.#instantHalves = new Int32Array(8 * this.#instantEdges.length);
    this.#instantNulls = new Uint8Array(4 * this.#instantEdges.length).fill(1);
    this.#knownEdges = new Uint8Array(this.#instantEdges.length);
  }

  /** Columns of some edges, as `edgeColumns` lists them. */
  *columns(edges: Int32Array): Steps<Vector[]> {
    if (!this.#areEdgesScanned && edges.length > this.#instantGraph.edges / rowsPerEdgeLookup + edgesFetchedAtOnce)
      yield* this.#scanInstants();
    const { linkOf } = this.#instantGraph;
    const scanIndexes = edges.map((edge) => this.#edgeIndexes.get(edge)!);
    let fetchedCount = 0;
    for (const i of this.#areEdgesScanned ? [] : scanIndexes) {
      if (this.#knownEdges[i] === 1) continue;
      this.#fetchInstants(i);
      if (++fetchedCount % edgesFetchedAtOnce === 0) yield;
    }
    const linkCodes = linkOf === null ? new Int32Array(edges.length) : Int32Array.from(edges, (edge) => linkOf[edge]!);
    return [
      { kind: 'dict', values: linkCodes, dictionary: this.#linkDictionary, nulls: null },
      ...instantColumns.map((_, i) => this.#instantColumn(scanIndexes, i)),
    ];
  }

  #instantColumn(edgeIndexes: Int32Array, columnOrdinal: number): Vector {
    const instantValues = new BigInt64Array(edgeIndexes.length);
    const columnNulls = new Uint8Array(edgeIndexes.length);
    const columnHalves = halvesOf(instantValues);
    let hasNullInstant = false;
    for (let i = 0; i < edgeIndexes.length; i++) {
      const instantCell = 4 * edgeIndexes[i]! + columnOrdinal;
      columnHalves[2 * i] = this.#instantHalves[2 * instantCell]!;
      columnHalves[2 * i + 1] = this.#instantHalves[2 * instantCell + 1]!;
      columnNulls[i] = this.#instantNulls[instantCell]!;
      hasNullInstant ||= columnNulls[i] === 1;
    }
    return { kind: 'i64', values: instantValues, nulls: hasNullInstant ? columnNulls : null };
  }

  *#scanInstants(): Steps<void> {
    for (let linkFirst = 0; linkFirst < this.#instantEdges.length; ) {
      const linkType = this.#instantGraph.link(this.#instantEdges[linkFirst]!);
      let linkEnd = linkFirst + 1;
      while (linkEnd < this.#instantEdges.length && this.#instantGraph.link(this.#instantEdges[linkEnd]!) === linkType) linkEnd++;
      yield* this.#scanTypeInstants(linkType, linkFirst, linkEnd);
      linkFirst = linkEnd;
    }
    this.#areEdgesScanned = true;
  }

  /** Places ascend by system_from, as rows do that come out of a scan of one path. */
  *#scanTypeInstants(type: string, begin: number, end: number): Steps<void> {
    const { snapshot, time } = this.#instantExecution;
    const wantedSystemTimes = BigInt64Array.from(
      this.#instantEdges.subarray(begin, end),
      (edge) => this.#instantGraph.systemFrom[edge]!,
    );
    const systemZones = [{ column: 'system_from', op: '<=', value: wantedSystemTimes.at(-1)! }] as const;
    const instantBlocks = snapshot.rows.scan({
      type,
      columns: instantColumns,
      time,
      after: wantedSystemTimes[0]! - 1n,
      zones: systemZones,
    });
    const soughtTimes = floatsOf(wantedSystemTimes);
    let soughtOrdinal = 0;
    try {
      for (let blockStep = instantBlocks.next(); blockStep.done !== true; blockStep = instantBlocks.next()) {
        const { columns, count } = blockStep.value;
        if (count > 0)
          soughtOrdinal = this.#matchInstants(soughtTimes, soughtOrdinal, begin, blockStep.value, instantCellsOf(columns));
        yield;
      }
    } finally {
      instantBlocks.return?.();
    }
  }

  /** Where the next one is sought. A function of its own: in a loop that can be left in the middle it would be compiled worse. */
  #matchInstants(
    soughtTimes: Float64Array,
    from: number,
    firstEdge: number,
    { selection, first, count }: InstantRows,
    cells: readonly InstantCells[],
  ): number {
    const systemTimes = cells[2]!.values;
    assert(systemTimes, 'system times are i64');
    const systemFloats = floatsOf(systemTimes);
    let soughtOrdinal = from;
    for (let i = 0; i < count; i++) {
      const instantRow = selection === null ? first + i : selection[i]!;
      const rowTime = systemFloats[instantRow]!;
      // Another path begins anew.
      if (soughtOrdinal > 0 && rowTime <= soughtTimes[soughtOrdinal - 1]!) soughtOrdinal = indexOfInstant(soughtTimes, rowTime);
      while (soughtOrdinal < soughtTimes.length && soughtTimes[soughtOrdinal]! < rowTime) soughtOrdinal++;
      if (soughtOrdinal < soughtTimes.length && soughtTimes[soughtOrdinal] === rowTime)
        this.#takeInstants(firstEdge + soughtOrdinal, cells, instantRow);
    }
    return soughtOrdinal;
  }

  #fetchInstants(edgeIndex: number): void {
    const fetchedEdge = this.#instantEdges[edgeIndex]!;
    const version = fetchVersion(
      this.#instantExecution,
      this.#instantGraph.link(fetchedEdge),
      instantColumns,
      this.#instantGraph.systemFrom[fetchedEdge]!,
    );
    if (version !== null) this.#takeInstants(edgeIndex, instantCellsOf(version.columns), version.row);
    this.#knownEdges[edgeIndex] = 1;
  }

  #takeInstants(edgeIndex: number, instantCells: readonly InstantCells[], row: number): void {
    for (let i = 0; i < instantCells.length; i++) {
      const { halves, nulls } = instantCells[i]!;
      if (halves === null || nulls?.[row] === 1) continue;
      const instantCell = 4 * edgeIndex + i;
      this.#instantNulls[instantCell] = 0;
      this.#instantHalves[2 * instantCell] = halves[2 * row]!;
      this.#instantHalves[2 * instantCell + 1] = halves[2 * row + 1]!;
    }
  }
}

interface InstantRows {
  readonly selection: Int32Array | null;
  readonly first: number;
  readonly count: number;
}

/** Instants of a block; null: all are NULL. */
interface InstantCells {
  readonly values: BigInt64Array | null;
  readonly halves: Int32Array | null;
  readonly nulls: Uint8Array | null;
}

function instantCellsOf(columns: readonly Vector[]): readonly InstantCells[] {
  return columns.map((vector) => {
    if (vector.kind === 'null') return { values: null, halves: null, nulls: null };
    assert(vector.kind === 'i64', 'instants are integers');
    return { values: vector.values, halves: halvesOf(vector.values), nulls: vector.nulls };
  });
}

/** The index of the first value that is not less. */
function indexOfInstant(ascending: Float64Array, value: number): number {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ascending[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
