/**
 * The link type and the four instants of edges, read once more through the gate by the system_from that the graph has of each: a graph
 * that is kept does not know which of its edges were ended since. A few are looked up one by one; where there are many, one scan meets
 * all of them.
 */
import { assert } from '../../errors.ts';
import type { Vector } from '../../log/columns.ts';
import { cellAt, VectorBuilder } from '../../log/vector-builder.ts';
import { fetchVersion } from '../operators/ranked-rows.ts';
import type { Execution } from '../operators/operator.ts';
import type { Graph } from './graph.ts';
import { floatsOf } from './instant-floats.ts';
import type { Steps } from './steps.ts';

const instants = ['valid_from', 'valid_to', 'system_from', 'system_to'] as const;
type Instants = readonly (bigint | null)[];
/** Edges that are fetched between two looks at the clock. */
const fetchedAtOnce = 8;
/** Rows that a scan goes over while one edge is looked up. */
const rowsOfLookup = 3_000;

export class EdgeInstants {
  readonly #graph: Graph;
  readonly #execution: Execution;
  /** Those of all rows of the answer. */
  readonly #edges: Int32Array;
  /** An edge may stand in many paths. */
  readonly #known = new Map<number, Instants>();
  #isScanned = false;

  constructor(graph: Graph, execution: Execution, edges: Int32Array) {
    this.#graph = graph;
    this.#execution = execution;
    this.#edges = edges;
  }

  /** As `edgeColumns` has them, of some of the edges. */
  *columns(edges: Int32Array): Steps<Vector[]> {
    if (!this.#isScanned && edges.length > this.#graph.edges / rowsOfLookup + fetchedAtOnce) yield* this.#scan();
    const links = new VectorBuilder('string', edges.length);
    const builders = instants.map(() => new VectorBuilder('timestamp', edges.length));
    let fetched = 0;
    for (const edge of edges) {
      links.append(this.#graph.link(edge));
      let known = this.#known.get(edge);
      if (known === undefined) {
        this.#known.set(edge, (known = this.#isScanned ? removed : this.#fetch(edge)));
        if (++fetched % fetchedAtOnce === 0) yield;
      }
      builders.forEach((builder, i) => builder.append(known[i]!));
    }
    return [links.build(), ...builders.map((builder) => builder.build())];
  }

  *#scan(): Steps<void> {
    const times = floatsOf(this.#graph.systemFrom);
    const byLink = new Map<string, number[]>();
    for (const edge of new Set(this.#edges)) {
      const link = this.#graph.link(edge);
      const edges = byLink.get(link) ?? [];
      byLink.set(link, edges);
      edges.push(edge);
    }
    yield;
    for (const [type, edges] of byLink) {
      edges.sort((a, b) => (times[a]! < times[b]! ? -1 : 1));
      yield* this.#scanOf(type, edges);
    }
    this.#isScanned = true;
  }

  /** `edges` ascend by system_from, as rows do that come out of a scan of one path. */
  *#scanOf(type: string, edges: readonly number[]): Steps<void> {
    const { snapshot, time } = this.#execution;
    const wanted = edges.map((edge) => this.#graph.systemFrom[edge]!);
    const [first, last] = [wanted[0]!, wanted.at(-1)!];
    const zones = [{ column: 'system_from', op: '<=', value: last }] as const;
    const blocks = snapshot.rows.scan({ type, columns: instants, time, after: first - 1n, zones });
    const sought = floatsOf(BigInt64Array.from(wanted));
    let at = 0;
    try {
      for (let step = blocks.next(); step.done !== true; step = blocks.next()) {
        const { columns, selection, first: begin, count } = step.value;
        const vector = columns[2];
        if (count > 0) {
          assert(vector?.kind === 'i64', 'system times are i64');
          const times = floatsOf(vector.values);
          for (let place = 0; place < count; place++) {
            const row = selection === null ? begin + place : selection[place]!;
            const time = times[row]!;
            // Another path begins anew.
            if (at > 0 && time <= sought[at - 1]!) at = placeOf(sought, time);
            while (at < sought.length && sought[at]! < time) at++;
            if (at < sought.length && sought[at] === time) this.#known.set(edges[at]!, instantsAt(columns, row));
          }
        }
        yield;
      }
    } finally {
      blocks.return?.();
    }
  }

  /** NULLs for what was removed for good since. */
  #fetch(edge: number): Instants {
    const found = fetchVersion(this.#execution, this.#graph.link(edge), instants, this.#graph.systemFrom[edge]!);
    return found === null ? removed : instantsAt(found.columns, found.row);
  }
}

/** Where the first stands that is not less. */
function placeOf(ascending: Float64Array, value: number): number {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ascending[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

const removed: Instants = [null, null, null, null];

function instantsAt(columns: readonly Vector[], row: number): Instants {
  return columns.map((vector) => {
    const cell = cellAt(vector, 'timestamp', row);
    assert(cell === null || typeof cell === 'bigint', 'instants are integers');
    return cell;
  });
}
