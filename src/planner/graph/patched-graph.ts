/**
 * A graph after a few of its edges came and went: the data between two changes is copied unchanged. The same arrays as if all
 * edges had been read anew, in the order that `graph.ts` promises; nodes stay.
 */
import type { Adjacency, Graph } from './graph.ts';
import { Graph as MadeGraph } from './graph.ts';
import { sharedArray } from './shared-array.ts';
import type { Steps } from './stepped-sort.ts';

export interface EdgeChange {
  /** Numbers of nodes. */
  readonly source: number;
  readonly target: number;
  /** A number of the graph's links. */
  readonly link: number;
  readonly systemFrom: bigint;
  readonly weight: number;
}

/** Null where an edge to remove is missing: then the graph is not the expected one. */
export function* changedGraph(graph: Graph, added: readonly EdgeChange[], removed: readonly EdgeChange[]): Steps<Graph | null> {
  const removedSlots = removed.map((edge) => edgeSlotOf(graph, edge, true));
  if (removedSlots.includes(-1)) return null;
  const going = Int32Array.from(removedSlots).sort();
  const coming = added
    .map((edge) => ({ edge, edgeSlot: edgeSlotOf(graph, edge, false) }))
    .sort((a, b) => a.edgeSlot - b.edgeSlot || compareEdges(a.edge, b.edge));
  const cuts = cutsOf(coming, going, graph.edges);
  const count = graph.edges + coming.length - going.length;
  const { linkOf, weights, texts, links, out } = graph;
  const neighbours = yield* merge(out.neighbours, sharedArray(Int32Array, count), cuts, ({ target }) => target);
  const systemFrom = yield* merge(graph.systemFrom, sharedArray(BigInt64Array, count), cuts, (edge) => edge.systemFrom);
  const nextArrays = {
    systemFrom,
    weights: weights && (yield* merge(weights, sharedArray(Float64Array, count), cuts, ({ weight }) => weight)),
    linkOf: linkOf && (yield* merge(linkOf, sharedArray(Uint16Array, count), cuts, ({ link }) => link)),
  };
  const offsets = shiftOffsets(out.offsets, [
    ...coming.map(({ edge }) => [edge.source, 1] as const),
    ...removed.map(({ source }) => [source, -1] as const),
  ]);
  const into = yield* changedInto(graph, { coming, going, removed, removedSlots }, count);
  const grown = removed.length === 0 && { lineage: graph.lineage };
  return new MadeGraph({ texts, links, ...nextArrays, ...grown, out: { offsets, neighbours, edges: null }, in: into });
}

interface Changes {
  readonly coming: readonly Coming[];
  readonly going: Int32Array;
  readonly removed: readonly EdgeChange[];
  /** The number of each edge of `removed`. */
  readonly removedSlots: readonly number[];
}

/** Edges by target: the remaining ones are renumbered, in the same order. */
function* changedInto(
  { in: into, edges }: Graph,
  { coming, going, removed, removedSlots }: Changes,
  count: number,
): Steps<Adjacency> {
  const numbers = new Renumbered(coming, going, edges);
  const slotAtTarget = (target: number, edge: number): number =>
    lowerBound(into.edges!, edge, into.offsets[target]!, into.offsets[target + 1]!);
  const arriving = coming
    .map(({ edge, edgeSlot }, i) => ({
      edge,
      edgeSlot: slotAtTarget(edge.target, edgeSlot),
      number: numbers.ofComing(edgeSlot, i),
    }))
    .sort((a, b) => a.edgeSlot - b.edgeSlot || a.edge.target - b.edge.target || a.number - b.number);
  const numberOf = new Map(arriving.map(({ edge, number }) => [edge, number]));
  const leaving = Int32Array.from(removed.map((edge, i) => slotAtTarget(edge.target, removedSlots[i]!))).sort();
  const cuts = cutsOf(arriving, leaving, edges);
  const neighbours = yield* merge(into.neighbours, sharedArray(Int32Array, count), cuts, ({ source }) => source);
  const own = yield* merge(into.edges!, sharedArray(Int32Array, count), cuts, (edge) => ~numberOf.get(edge)!);
  for (let first = 0; first < count; first += copiedAtOnce) {
    numbers.renumber(own, first, Math.min(count, first + copiedAtOnce));
    yield;
  }
  const offsets = shiftOffsets(into.offsets, [
    ...coming.map(({ edge }) => [edge.target, 1] as const),
    ...removed.map(({ target }) => [target, -1] as const),
  ]);
  return { offsets, neighbours, edges: own };
}

/** Edges that have one number more or less for each that came or went in front of them. */
class Renumbered {
  /** The edges in front of which changes lie, ascending. */
  readonly #insertSlots: Int32Array;
  readonly #going: Int32Array;
  /** By block of edges: the shift of their numbers; `mixed` where it differs within the block. */
  readonly #added: Int32Array;

  constructor(coming: readonly Coming[], going: Int32Array, edges: number) {
    this.#insertSlots = Int32Array.from(coming, ({ edgeSlot }) => edgeSlot);
    this.#going = going;
    this.#added = new Int32Array((edges >>> blockBits) + 1);
    let [came, went] = [0, 0];
    for (let block = 0; block < this.#added.length; block++) {
      const first = block << blockBits;
      const last = first + (1 << blockBits) - 1;
      while (came < coming.length && this.#insertSlots[came]! <= first) came++;
      while (went < going.length && going[went]! < first) went++;
      const changes = (came < coming.length && this.#insertSlots[came]! <= last) || (went < going.length && going[went]! < last);
      this.#added[block] = changes ? mixed : came - went;
    }
  }

  ofComing(edgeSlot: number, i: number): number {
    return edgeSlot + i - lowerBound(this.#going, edgeSlot, 0, this.#going.length);
  }

  /** The former numbers of edges; for new ones, the complement of their new number. */
  renumber(edges: Int32Array, first: number, end: number): void {
    const added = this.#added;
    for (let i = first; i < end; i++) {
      const edge = edges[i]!;
      if (edge < 0) {
        edges[i] = ~edge;
        continue;
      }
      const blockShift = added[edge >>> blockBits]!;
      edges[i] = edge + (blockShift === mixed ? this.#addedTo(edge) : blockShift);
    }
  }

  #addedTo(edge: number): number {
    return (
      lowerBound(this.#insertSlots, edge + 1, 0, this.#insertSlots.length) - lowerBound(this.#going, edge, 0, this.#going.length)
    );
  }
}

const blockBits = 6;
const mixed = 0x7fff_ffff;

/** Place of the first that is not less, in ascending numbers. */
function lowerBound(numbers: Int32Array, wanted: number, first: number, end: number): number {
  let [low, high] = [first, end];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (numbers[middle]! < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

interface Coming {
  readonly edge: EdgeChange;
  /** The edge of the graph in front of which the change lies. */
  readonly edgeSlot: number;
}

/** A range of the graph's edges, and the changes behind it. */
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
    const end = Math.min(coming[c]?.edgeSlot ?? edges, going[g] ?? edges);
    const here: EdgeChange[] = [];
    while (c < coming.length && coming[c]!.edgeSlot === end) here.push(coming[c++]!.edge);
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

function* merge<A extends Int32Array | BigInt64Array | Float64Array | Uint16Array>(
  isBefore: A,
  after: A,
  cuts: readonly Cut[],
  cell: (edge: EdgeChange) => A[number],
): Steps<A> {
  const [from, to] = [wordsOf(isBefore), wordsOf(after)];
  const words = isBefore.BYTES_PER_ELEMENT / 4;
  let edgeSlot = 0;
  let copied = 0;
  for (const { first, end, coming } of cuts) {
    for (let at = first; at < end; ) {
      const last = Math.min(end, at + copiedAtOnce - copied);
      if (from === null || to === null) after.set(isBefore.subarray(at, last) as never, edgeSlot);
      else copy(from, to, { first: words * at, end: words * last, edgeSlot: words * edgeSlot });
      edgeSlot += last - at;
      copied += last - at;
      at = last;
      if (copied < copiedAtOnce) continue;
      copied = 0;
      yield;
    }
    for (const edge of coming) after[edgeSlot++] = cell(edge);
  }
  return after;
}

/** The array as words; null where its cells are shorter. */
function wordsOf({ buffer, byteOffset, byteLength, BYTES_PER_ELEMENT }: Int32Array | BigInt64Array | Float64Array | Uint16Array) {
  return BYTES_PER_ELEMENT < 4 ? null : new Int32Array(buffer, byteOffset, byteLength / 4);
}

/** Copies like `set`, which goes byte by byte where the memory is shared and the alignments differ. */
function copy(
  from: Int32Array,
  to: Int32Array,
  { first, end, edgeSlot }: { readonly first: number; readonly end: number; readonly edgeSlot: number },
): void {
  for (let at = first, next = edgeSlot; at < end; at++, next++) to[next] = from[at]!;
}

/** Cells between two looks at the clock. */
const copiedAtOnce = 1 << 17;

/** Adjusts the offsets for the edges that were added to, or removed from, some nodes. */
function shiftOffsets(offsets: Uint32Array, changes: readonly (readonly [node: number, by: number])[]): Uint32Array {
  const after = sharedArray(Uint32Array, offsets.length);
  after.set(offsets);
  const sorted = changes.toSorted((a, b) => a[0] - b[0]);
  let shift = 0;
  let at = 0;
  for (let node = sorted[0]?.[0] ?? offsets.length; node < offsets.length; node++) {
    after[node]! += shift;
    while (at < sorted.length && sorted[at]![0] === node) shift += sorted[at++]![1];
  }
  return after;
}

/** The number of an edge, -1 where it is missing; or the number that it will get. */
function edgeSlotOf({ out, systemFrom, linkOf }: Graph, edge: EdgeChange, isThere: boolean): number {
  let low = out.offsets[edge.source]!;
  let high = out.offsets[edge.source + 1]!;
  const end = high;
  const isBefore = (edgeSlot: number): boolean =>
    (out.neighbours[edgeSlot]! - edge.target ||
      (linkOf?.[edgeSlot] ?? 0) - edge.link ||
      Number(systemFrom[edgeSlot]! - edge.systemFrom)) < 0;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(middle)) low = middle + 1;
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
