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

const instants = ['valid_from', 'valid_to', 'system_from', 'system_to'] as const;
/** Edges that are fetched between two looks at the clock. */
const fetchedAtOnce = 8;
/** Rows that a scan goes over while one edge is looked up. */
const rowsOfLookup = 3_000;

export class EdgeInstants {
  readonly #graph: Graph;
  readonly #execution: Execution;
  readonly #links: Dictionary;
  /** Each once, ascending by link type, then by system_from. */
  readonly #edges: Int32Array;
  /** By edge: its index in `#edges`. An edge may be part of many paths. */
  readonly #edgeIndexes: ReadonlyMap<number, number>;
  /** By place: the halves of its instants, moved without an object for each; NULL for rows removed for good since. */
  readonly #halves: Int32Array;
  readonly #nulls: Uint8Array;
  readonly #known: Uint8Array;
  #isScanned = false;

  constructor(graph: Graph, execution: Execution, edges: Int32Array) {
    this.#graph = graph;
    this.#execution = execution;
    const { links, linkOf } = graph;
    this.#links = { size: links.length, text: (code) => links[code]!, codeOf: (text) => links.indexOf(text) };
    const times = floatsOf(graph.systemFrom);
    const link = (edge: number): number => (linkOf === null ? 0 : linkOf[edge]!);
    this.#edges = Int32Array.from(new Set(edges)).sort((a, b) => link(a) - link(b) || (times[a]! < times[b]! ? -1 : 1));
    const edgeIndexes = new Map<number, number>();
    for (let i = 0; i < this.#edges.length; i++) edgeIndexes.set(this.#edges[i]!, i);
    this.#edgeIndexes = edgeIndexes;
    this.#halves = new Int32Array(8 * this.#edges.length);
    this.#nulls = new Uint8Array(4 * this.#edges.length).fill(1);
    this.#known = new Uint8Array(this.#edges.length);
  }

  /** Columns of some edges, as `edgeColumns` lists them. */
  *columns(edges: Int32Array): Steps<Vector[]> {
    if (!this.#isScanned && edges.length > this.#graph.edges / rowsOfLookup + fetchedAtOnce) yield* this.#scan();
    const { linkOf } = this.#graph;
    const scanIndexes = edges.map((edge) => this.#edgeIndexes.get(edge)!);
    let fetched = 0;
    for (const i of this.#isScanned ? [] : scanIndexes) {
      if (this.#known[i] === 1) continue;
      this.#fetch(i);
      if (++fetched % fetchedAtOnce === 0) yield;
    }
    const values = linkOf === null ? new Int32Array(edges.length) : Int32Array.from(edges, (edge) => linkOf[edge]!);
    return [
      { kind: 'dict', values, dictionary: this.#links, nulls: null },
      ...instants.map((_, i) => this.#column(scanIndexes, i)),
    ];
  }

  #column(edgeIndexes: Int32Array, instant: number): Vector {
    const values = new BigInt64Array(edgeIndexes.length);
    const nulls = new Uint8Array(edgeIndexes.length);
    const halves = halvesOf(values);
    let hasNull = false;
    for (let i = 0; i < edgeIndexes.length; i++) {
      const cell = 4 * edgeIndexes[i]! + instant;
      halves[2 * i] = this.#halves[2 * cell]!;
      halves[2 * i + 1] = this.#halves[2 * cell + 1]!;
      nulls[i] = this.#nulls[cell]!;
      hasNull ||= nulls[i] === 1;
    }
    return { kind: 'i64', values, nulls: hasNull ? nulls : null };
  }

  *#scan(): Steps<void> {
    for (let first = 0; first < this.#edges.length; ) {
      const type = this.#graph.link(this.#edges[first]!);
      let end = first + 1;
      while (end < this.#edges.length && this.#graph.link(this.#edges[end]!) === type) end++;
      yield* this.#scanOf(type, first, end);
      first = end;
    }
    this.#isScanned = true;
  }

  /** Places ascend by system_from, as rows do that come out of a scan of one path. */
  *#scanOf(type: string, begin: number, end: number): Steps<void> {
    const { snapshot, time } = this.#execution;
    const wanted = BigInt64Array.from(this.#edges.subarray(begin, end), (edge) => this.#graph.systemFrom[edge]!);
    const zones = [{ column: 'system_from', op: '<=', value: wanted.at(-1)! }] as const;
    const blocks = snapshot.rows.scan({ type, columns: instants, time, after: wanted[0]! - 1n, zones });
    const sought = floatsOf(wanted);
    let at = 0;
    try {
      for (let step = blocks.next(); step.done !== true; step = blocks.next()) {
        const { columns, count } = step.value;
        if (count > 0) at = this.#meet(sought, at, begin, step.value, cellsOf(columns));
        yield;
      }
    } finally {
      blocks.return?.();
    }
  }

  /** Where the next one is sought. A function of its own: in a loop that can be left in the middle it would be compiled worse. */
  #meet(sought: Float64Array, from: number, begin: number, { selection, first, count }: Rows, cells: readonly Cells[]): number {
    const vector = cells[2]!.values;
    assert(vector, 'system times are i64');
    const times = floatsOf(vector);
    let at = from;
    for (let i = 0; i < count; i++) {
      const row = selection === null ? first + i : selection[i]!;
      const time = times[row]!;
      // Another path begins anew.
      if (at > 0 && time <= sought[at - 1]!) at = indexOfInstant(sought, time);
      while (at < sought.length && sought[at]! < time) at++;
      if (at < sought.length && sought[at] === time) this.#take(begin + at, cells, row);
    }
    return at;
  }

  #fetch(edgeIndex: number): void {
    const edge = this.#edges[edgeIndex]!;
    const version = fetchVersion(this.#execution, this.#graph.link(edge), instants, this.#graph.systemFrom[edge]!);
    if (version !== null) this.#take(edgeIndex, cellsOf(version.columns), version.row);
    this.#known[edgeIndex] = 1;
  }

  #take(edgeIndex: number, cells: readonly Cells[], row: number): void {
    for (let i = 0; i < cells.length; i++) {
      const { halves, nulls } = cells[i]!;
      if (halves === null || nulls?.[row] === 1) continue;
      const cell = 4 * edgeIndex + i;
      this.#nulls[cell] = 0;
      this.#halves[2 * cell] = halves[2 * row]!;
      this.#halves[2 * cell + 1] = halves[2 * row + 1]!;
    }
  }
}

interface Rows {
  readonly selection: Int32Array | null;
  readonly first: number;
  readonly count: number;
}

/** Instants of a block; null: all are NULL. */
interface Cells {
  readonly values: BigInt64Array | null;
  readonly halves: Int32Array | null;
  readonly nulls: Uint8Array | null;
}

function cellsOf(columns: readonly Vector[]): readonly Cells[] {
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
