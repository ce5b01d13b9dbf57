/**
 * A graph after a few of its edges came and went: what lies between two changes is copied as it lies. The same arrays as if all edges
 * had been read anew, in the order that `graph.ts` promises; nodes stay.
 */
import type { Adjacency, Graph } from './graph.ts';
import { Graph as MadeGraph } from './graph.ts';
import { type Steps, stepsAtOnce } from './steps.ts';

export interface EdgeChange {
  /** Numbers of nodes. */
  readonly source: number;
  readonly target: number;
  /** A number of the graph's links. */
  readonly link: number;
  readonly systemFrom: bigint;
  readonly weight: number;
}

/** Null where an edge that is to go is not there: then the graph is not what it was taken for. */
export function* changedGraph(graph: Graph, added: readonly EdgeChange[], removed: readonly EdgeChange[]): Steps<Graph | null> {
  const gone = removed.map((edge) => placeOf(graph, edge, true));
  if (gone.includes(-1)) return null;
  const going = Int32Array.from(gone).sort();
  const coming = added
    .map((edge) => ({ edge, place: placeOf(graph, edge, false) }))
    .sort((a, b) => a.place - b.place || compareEdges(a.edge, b.edge));
  const cuts = cutsOf(coming, going, graph.edges);
  const count = graph.edges + coming.length - going.length;
  const { linkOf, weights } = graph;
  const made = {
    neighbours: merged(graph.out.neighbours, new Int32Array(count), cuts, ({ target }) => target),
    systemFrom: merged(graph.systemFrom, new BigInt64Array(count), cuts, ({ systemFrom }) => systemFrom),
    weights: weights && merged(weights, new Float64Array(count), cuts, ({ weight }) => weight),
    linkOf: linkOf && merged(linkOf, new Uint16Array(count), cuts, ({ link }) => link),
  };
  yield;
  const offsets = moved(graph.out.offsets, [
    ...coming.map(({ edge }) => [edge.source, 1] as const),
    ...removed.map(({ source }) => [source, -1] as const),
  ]);
  const into = yield* turned(offsets, made.neighbours, graph.nodes);
  const { texts, links } = graph;
  return new MadeGraph({ texts, links, ...made, out: { offsets, neighbours: made.neighbours, edges: null }, in: into });
}

interface Coming {
  readonly edge: EdgeChange;
  /** In front of which edge of the graph. */
  readonly place: number;
}

/** A stretch of the graph's edges, and what comes behind it. */
interface Cut {
  readonly first: number;
  readonly end: number;
  readonly coming: readonly EdgeChange[];
}

function cutsOf(coming: readonly Coming[], going: Int32Array, edges: number): readonly Cut[] {
  const cuts: Cut[] = [];
  let first = 0;
  let [c, g] = [0, 0];
  while (c < coming.length || g < going.length) {
    const end = Math.min(coming[c]?.place ?? edges, going[g] ?? edges);
    const here: EdgeChange[] = [];
    while (c < coming.length && coming[c]!.place === end) here.push(coming[c++]!.edge);
    cuts.push({ first, end, coming: here });
    first = end;
    if (g < going.length && going[g] === end) {
      first++;
      g++;
    }
  }
  cuts.push({ first, end: edges, coming: [] });
  return cuts;
}

function merged<A extends Int32Array | BigInt64Array | Float64Array | Uint16Array>(
  before: A,
  after: A,
  cuts: readonly Cut[],
  cell: (edge: EdgeChange) => A[number],
): A {
  let place = 0;
  for (const { first, end, coming } of cuts) {
    after.set(before.subarray(first, end) as never, place);
    place += end - first;
    for (const edge of coming) after[place++] = cell(edge);
  }
  return after;
}

/** Offsets once so many more, or fewer, places belong to some nodes. */
function moved(offsets: Uint32Array, changes: readonly (readonly [node: number, by: number])[]): Uint32Array {
  const after = offsets.slice();
  const sorted = changes.toSorted((a, b) => a[0] - b[0]);
  let by = 0;
  let at = 0;
  for (let node = sorted[0]?.[0] ?? offsets.length; node < offsets.length; node++) {
    after[node]! += by;
    while (at < sorted.length && sorted[at]![0] === node) by += sorted[at++]![1];
  }
  return after;
}

/** Edges by target: within one by source, then by edge, as they lie. */
export function* turned(outOffsets: Uint32Array, targets: Int32Array, nodes: number): Steps<Adjacency> {
  const offsets = new Uint32Array(nodes + 1);
  for (let first = 0; first < targets.length; first += stepsAtOnce) {
    countTargets(targets, offsets, first, Math.min(targets.length, first + stepsAtOnce));
    yield;
  }
  for (let node = 0; node < nodes; node++) offsets[node + 1]! += offsets[node]!;
  const places = offsets.slice();
  const edges = new Int32Array(targets.length);
  const neighbours = new Int32Array(targets.length);
  for (let first = 0; first < nodes; ) {
    let end = first + 1;
    while (end < nodes && outOffsets[end]! - outOffsets[first]! < 2 * stepsAtOnce) end++;
    turn(outOffsets, targets, places, { edges, neighbours }, first, end);
    first = end;
    yield;
  }
  return { offsets, neighbours, edges };
}

// Functions of their own: in a loop that can be left in the middle they would be compiled worse.

function countTargets(targets: Int32Array, offsets: Uint32Array, first: number, end: number): void {
  for (let edge = first; edge < end; edge++) offsets[targets[edge]! + 1]!++;
}

function turn(
  outOffsets: Uint32Array,
  targets: Int32Array,
  places: Uint32Array,
  { edges, neighbours }: { readonly edges: Int32Array; readonly neighbours: Int32Array },
  first: number,
  last: number,
): void {
  for (let source = first; source < last; source++) {
    const end = outOffsets[source + 1]!;
    for (let edge = outOffsets[source]!; edge < end; edge++) {
      const place = places[targets[edge]!]!++;
      edges[place] = edge;
      neighbours[place] = source;
    }
  }
}

/** Where an edge is, -1 where it is not; or in front of which it is to come. */
function placeOf({ out, systemFrom, linkOf }: Graph, edge: EdgeChange, isThere: boolean): number {
  let low = out.offsets[edge.source]!;
  let high = out.offsets[edge.source + 1]!;
  const end = high;
  const before = (place: number): boolean =>
    (out.neighbours[place]! - edge.target || (linkOf?.[place] ?? 0) - edge.link || Number(systemFrom[place]! - edge.systemFrom)) <
    0;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (before(middle)) low = middle + 1;
    else high = middle;
  }
  if (!isThere) return low;
  const isSame =
    low < end && out.neighbours[low] === edge.target && (linkOf?.[low] ?? 0) === edge.link && systemFrom[low] === edge.systemFrom;
  return isSame ? low : -1;
}

function compareEdges(a: EdgeChange, b: EdgeChange): number {
  return a.source - b.source || a.target - b.target || a.link - b.link || Number(a.systemFrom - b.systemFrom);
}
