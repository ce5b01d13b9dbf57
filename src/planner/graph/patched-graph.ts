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
export function* changedGraph(
  graph: Graph,
  addedEdges: readonly EdgeChange[],
  removedEdges: readonly EdgeChange[],
): Steps<Graph | null> {
  const removedSlots = removedEdges.map((edge) => edgeSlotOf(graph, edge, true));
  if (removedSlots.includes(-1)) return null;
  const goingEdges = Int32Array.from(removedSlots).sort();
  const comingEdges = addedEdges
    .map((edge) => ({ edge, edgeSlot: edgeSlotOf(graph, edge, false) }))
    .sort(
      (oneComing, otherComing) =>
        oneComing.edgeSlot - otherComing.edgeSlot || compareEdgeChanges(oneComing.edge, otherComing.edge),
    );
  const outCuts = edgeCutsOf(comingEdges, goingEdges, graph.edges);
  const changedEdgeCount = graph.edges + comingEdges.length - goingEdges.length;
  const { linkOf, weights, texts, links, out } = graph;
  const neighbours = yield* mergeComing(
    out.neighbours,
    sharedArray(Int32Array, changedEdgeCount),
    outCuts,
    ({ target }) => target,
  );
  const systemFrom = yield* mergeComing(
    graph.systemFrom,
    sharedArray(BigInt64Array, changedEdgeCount),
    outCuts,
    (edge) => edge.systemFrom,
  );
  const nextArrays = {
    systemFrom,
    weights:
      weights && (yield* mergeComing(weights, sharedArray(Float64Array, changedEdgeCount), outCuts, ({ weight }) => weight)),
    linkOf: linkOf && (yield* mergeComing(linkOf, sharedArray(Uint16Array, changedEdgeCount), outCuts, ({ link }) => link)),
  };
  const offsets = shiftEdgeOffsets(out.offsets, [
    ...comingEdges.map(({ edge }) => [edge.source, 1] as const),
    ...removedEdges.map(({ source }) => [source, -1] as const),
  ]);
  const changedInAdjacency = yield* patchedInto(
    graph,
    { coming: comingEdges, going: goingEdges, removed: removedEdges, removedSlots },
    changedEdgeCount,
  );
  const grownLineage = removedEdges.length === 0 && { lineage: graph.lineage };
  return new MadeGraph({
    texts,
    links,
    ...nextArrays,
    ...grownLineage,
    out: { offsets, neighbours, edges: null },
    in: changedInAdjacency,
  });
}

interface PatchChanges {
  readonly coming: readonly ComingEdge[];
  readonly going: Int32Array;
  readonly removed: readonly EdgeChange[];
  /** The number of each edge of `removed`. */
  readonly removedSlots: readonly number[];
}

/** Edges by target: the remaining ones are renumbered, in the same order. */
function* patchedInto(
  { in: inAdjacency, edges }: Graph,
  { coming, going, removed, removedSlots }: PatchChanges,
  changedEdgeCount: number,
): Steps<Adjacency> {
  const renumberedEdges = new RenumberedEdges(coming, going, edges);
  const slotAtTarget = (target: number, edge: number): number =>
    lowerBoundIn(inAdjacency.edges!, edge, inAdjacency.offsets[target]!, inAdjacency.offsets[target + 1]!);
  const arrivingEdges = coming
    .map(({ edge, edgeSlot }, i) => ({
      edge,
      edgeSlot: slotAtTarget(edge.target, edgeSlot),
      number: renumberedEdges.ofComing(edgeSlot, i),
    }))
    .sort((a, b) => a.edgeSlot - b.edgeSlot || a.edge.target - b.edge.target || a.number - b.number);
  const arrivingNumbers = new Map(arrivingEdges.map(({ edge, number }) => [edge, number]));
  const leavingPlaces = Int32Array.from(removed.map((edge, i) => slotAtTarget(edge.target, removedSlots[i]!))).sort();
  const inCuts = edgeCutsOf(arrivingEdges, leavingPlaces, edges);
  const neighbours = yield* mergeComing(
    inAdjacency.neighbours,
    sharedArray(Int32Array, changedEdgeCount),
    inCuts,
    ({ source }) => source,
  );
  const inEdgeNumbers = yield* mergeComing(
    inAdjacency.edges!,
    sharedArray(Int32Array, changedEdgeCount),
    inCuts,
    (edge) => ~arrivingNumbers.get(edge)!,
  );
  for (let firstCopied = 0; firstCopied < changedEdgeCount; firstCopied += edgesCopiedAtOnce) {
    renumberedEdges.renumber(inEdgeNumbers, firstCopied, Math.min(changedEdgeCount, firstCopied + edgesCopiedAtOnce));
    yield;
  }
  const offsets = shiftEdgeOffsets(inAdjacency.offsets, [
    ...coming.map(({ edge }) => [edge.target, 1] as const),
    ...removed.map(({ target }) => [target, -1] as const),
  ]);
  return { offsets, neighbours, edges: inEdgeNumbers };
}

/** Edges that have one number more or less for each that came or went in front of them. */
class RenumberedEdges {
  /** The edges in front of which changes lie, ascending. */
  readonly #insertSlots: Int32Array;
  readonly #goingEdges: Int32Array;
  /** By block of edges: the shift of their numbers; `mixedBlock` where it differs within the block. */
  readonly #addedPerBlock: Int32Array;

  constructor(comingEdges: readonly ComingEdge[], goingEdges: Int32Array, edges: number) {
    this.#insertSlots = Int32Array.from(comingEdges, ({ edgeSlot }) => edgeSlot);
    this.#goingEdges = goingEdges;
    this.#addedPerBlock = new Int32Array((edges >>> edgeBlockBits) + 1);
    let [cameCount, wentCount] = [0, 0];
    for (let edgeBlock = 0; edgeBlock < this.#addedPerBlock.length; edgeBlock++) {
      const firstOfBlock = edgeBlock << edgeBlockBits;
      const lastOfBlock = firstOfBlock + (1 << edgeBlockBits) - 1;
      while (cameCount < comingEdges.length && this.#insertSlots[cameCount]! <= firstOfBlock) cameCount++;
      while (wentCount < goingEdges.length && goingEdges[wentCount]! < firstOfBlock) wentCount++;
      const hasBlockChanges =
        (cameCount < comingEdges.length && this.#insertSlots[cameCount]! <= lastOfBlock) ||
        (wentCount < goingEdges.length && goingEdges[wentCount]! < lastOfBlock);
      this.#addedPerBlock[edgeBlock] = hasBlockChanges ? mixedBlock : cameCount - wentCount;
    }
  }

  ofComing(edgeSlot: number, i: number): number {
    return edgeSlot + i - lowerBoundIn(this.#goingEdges, edgeSlot, 0, this.#goingEdges.length);
  }

  /** The former numbers of edges; for new ones, the complement of their new number. */
  renumber(inEdgeNumbers: Int32Array, first: number, end: number): void {
    const addedPerBlock = this.#addedPerBlock;
    for (let i = first; i < end; i++) {
      const oldEdge = inEdgeNumbers[i]!;
      if (oldEdge < 0) {
        inEdgeNumbers[i] = ~oldEdge;
        continue;
      }
      const blockShift = addedPerBlock[oldEdge >>> edgeBlockBits]!;
      inEdgeNumbers[i] = oldEdge + (blockShift === mixedBlock ? this.#addedBefore(oldEdge) : blockShift);
    }
  }

  #addedBefore(edge: number): number {
    return (
      lowerBoundIn(this.#insertSlots, edge + 1, 0, this.#insertSlots.length) -
      lowerBoundIn(this.#goingEdges, edge, 0, this.#goingEdges.length)
    );
  }
}

const edgeBlockBits = 6;
const mixedBlock = 0x7fff_ffff;

/** Place of the first that is not less, in ascending numbers. */
function lowerBoundIn(edgeNumbers: Int32Array, wantedEdge: number, first: number, end: number): number {
  let [lowOrdinal, highOrdinal] = [first, end];
  while (lowOrdinal < highOrdinal) {
    const middleOrdinal = (lowOrdinal + highOrdinal) >>> 1;
    if (edgeNumbers[middleOrdinal]! < wantedEdge) lowOrdinal = middleOrdinal + 1;
    else highOrdinal = middleOrdinal;
  }
  return lowOrdinal;
}

interface ComingEdge {
  readonly edge: EdgeChange;
  /** The edge of the graph in front of which the change lies. */
  readonly edgeSlot: number;
}

/** A range of the graph's edges, and the changes behind it. */
interface EdgeCut {
  readonly first: number;
  readonly end: number;
  readonly coming: readonly EdgeChange[];
}

function edgeCutsOf(comingEdges: readonly ComingEdge[], goingEdges: Int32Array, edges: number): readonly EdgeCut[] {
  const edgeCuts: EdgeCut[] = [];
  let cutFirst = 0;
  let [comingOrdinal, goingOrdinal] = [0, 0];
  while (comingOrdinal < comingEdges.length || goingOrdinal < goingEdges.length) {
    const cutEnd = Math.min(comingEdges[comingOrdinal]?.edgeSlot ?? edges, goingEdges[goingOrdinal] ?? edges);
    const comingHere: EdgeChange[] = [];
    while (comingOrdinal < comingEdges.length && comingEdges[comingOrdinal]!.edgeSlot === cutEnd)
      comingHere.push(comingEdges[comingOrdinal++]!.edge);
    edgeCuts.push({ first: cutFirst, end: cutEnd, coming: comingHere });
    cutFirst = cutEnd;
    if (goingOrdinal < goingEdges.length && goingEdges[goingOrdinal] === cutEnd) {
      cutFirst++;
      goingOrdinal++;
    }
  }
  edgeCuts.push({ first: cutFirst, end: edges, coming: [] });
  return edgeCuts;
}

function* mergeComing<A extends Int32Array | BigInt64Array | Float64Array | Uint16Array>(
  isBefore: A,
  cellsAfter: A,
  edgeCuts: readonly EdgeCut[],
  cellOfEdge: (edge: EdgeChange) => A[number],
): Steps<A> {
  const [fromWords, toWords] = [arrayWordsOf(isBefore), arrayWordsOf(cellsAfter)];
  const wordsPerCell = isBefore.BYTES_PER_ELEMENT / 4;
  let edgeSlot = 0;
  let copiedCells = 0;
  for (const { first, end, coming } of edgeCuts) {
    for (let cutPlace = first; cutPlace < end; ) {
      const copiedEnd = Math.min(end, cutPlace + edgesCopiedAtOnce - copiedCells);
      if (fromWords === null || toWords === null) cellsAfter.set(isBefore.subarray(cutPlace, copiedEnd) as never, edgeSlot);
      else
        copyEdgeWords(fromWords, toWords, {
          first: wordsPerCell * cutPlace,
          end: wordsPerCell * copiedEnd,
          edgeSlot: wordsPerCell * edgeSlot,
        });
      edgeSlot += copiedEnd - cutPlace;
      copiedCells += copiedEnd - cutPlace;
      cutPlace = copiedEnd;
      if (copiedCells < edgesCopiedAtOnce) continue;
      copiedCells = 0;
      yield;
    }
    for (const edge of coming) cellsAfter[edgeSlot++] = cellOfEdge(edge);
  }
  return cellsAfter;
}

/** The array as words; null where its cells are shorter. */
function arrayWordsOf({
  buffer,
  byteOffset,
  byteLength,
  BYTES_PER_ELEMENT,
}: Int32Array | BigInt64Array | Float64Array | Uint16Array) {
  return BYTES_PER_ELEMENT < 4 ? null : new Int32Array(buffer, byteOffset, byteLength / 4);
}

/** Copies like `set`, which goes byte by byte where the memory is shared and the alignments differ. */
function copyEdgeWords(
  wordsBefore: Int32Array,
  wordsAfter: Int32Array,
  { first, end, edgeSlot }: { readonly first: number; readonly end: number; readonly edgeSlot: number },
): void {
  for (let copiedFrom = first, copiedTo = edgeSlot; copiedFrom < end; copiedFrom++, copiedTo++)
    wordsAfter[copiedTo] = wordsBefore[copiedFrom]!;
}

/** Cells between two looks at the clock. */
const edgesCopiedAtOnce = 1 << 17;

/** Adjusts the offsets for the edges that were added to, or removed from, some nodes. */
function shiftEdgeOffsets(offsets: Uint32Array, offsetChanges: readonly (readonly [node: number, by: number])[]): Uint32Array {
  const shiftedOffsets = sharedArray(Uint32Array, offsets.length);
  shiftedOffsets.set(offsets);
  const sortedChanges = offsetChanges.toSorted((a, b) => a[0] - b[0]);
  let shift = 0;
  let changeOrdinal = 0;
  for (let node = sortedChanges[0]?.[0] ?? offsets.length; node < offsets.length; node++) {
    shiftedOffsets[node]! += shift;
    while (changeOrdinal < sortedChanges.length && sortedChanges[changeOrdinal]![0] === node)
      shift += sortedChanges[changeOrdinal++]![1];
  }
  return shiftedOffsets;
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

function compareEdgeChanges(oneEdge: EdgeChange, otherEdge: EdgeChange): number {
  return (
    oneEdge.source - otherEdge.source ||
    oneEdge.target - otherEdge.target ||
    oneEdge.link - otherEdge.link ||
    Number(oneEdge.systemFrom - otherEdge.systemFrom)
  );
}
