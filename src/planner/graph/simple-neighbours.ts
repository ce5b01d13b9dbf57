/** Neighbours of each node in either direction: each neighbour once, however many edges lead to it, without loops. */
import type { Adjacency, Direction, Graph } from './graph.ts';
import { ways } from './graph.ts';
import { type Steps, stepsAtOnce } from './stepped-sort.ts';

export type Neighbours = Pick<Adjacency, 'offsets' | 'neighbours'>;

/** Neighbours ascend. */
export function* simpleNeighbours(graph: Graph, direction: Direction, hold: (bytes: number) => void): Steps<Neighbours> {
  const neighbourWays = ways(graph, direction);
  const neighbourRoom = graph.edges * neighbourWays.length;
  hold(4 * (neighbourRoom + graph.nodes));
  const offsets = new Uint32Array(graph.nodes + 1);
  const neighbours = new Int32Array(neighbourRoom);
  const [firstWay, secondWay] = neighbourWays;
  let neighbourCount = 0;
  let neighbourLooks = 0;
  for (let node = 0; node < graph.nodes; node++) {
    let firstSlot = firstWay!.offsets[node]!;
    const firstWayEnd = firstWay!.offsets[node + 1]!;
    let secondSlot = secondWay === undefined ? 0 : secondWay.offsets[node]!;
    const secondWayEnd = secondWay === undefined ? 0 : secondWay.offsets[node + 1]!;
    let lastNeighbour = node;
    while (firstSlot < firstWayEnd || secondSlot < secondWayEnd) {
      const takesFirstWay =
        secondSlot >= secondWayEnd ||
        (firstSlot < firstWayEnd && firstWay!.neighbours[firstSlot]! <= secondWay!.neighbours[secondSlot]!);
      const neighbour = takesFirstWay ? firstWay!.neighbours[firstSlot++]! : secondWay!.neighbours[secondSlot++]!;
      if (neighbour !== lastNeighbour && neighbour !== node) neighbours[neighbourCount++] = lastNeighbour = neighbour;
      if (++neighbourLooks % stepsAtOnce === 0) yield;
    }
    offsets[node + 1] = neighbourCount;
  }
  return { offsets, neighbours: neighbours.subarray(0, neighbourCount) };
}

/** Calls back with each node that both are joined to, ascending. */
export function common(
  { offsets, neighbours }: Neighbours,
  oneNode: number,
  otherNode: number,
  onCommonNeighbour: (node: number) => void,
): number {
  let oneSlot = offsets[oneNode]!;
  let otherSlot = offsets[otherNode]!;
  const [oneEnd, otherEnd] = [offsets[oneNode + 1]!, offsets[otherNode + 1]!];
  const slotsBegun = oneSlot + otherSlot;
  while (oneSlot < oneEnd && otherSlot < otherEnd) {
    const neighbourDifference = neighbours[oneSlot]! - neighbours[otherSlot]!;
    if (neighbourDifference === 0) onCommonNeighbour(neighbours[oneSlot]!);
    if (neighbourDifference <= 0) oneSlot++;
    if (neighbourDifference >= 0) otherSlot++;
  }
  return oneSlot + otherSlot - slotsBegun;
}

export function sizeOf({ offsets }: Neighbours, node: number): number {
  return offsets[node + 1]! - offsets[node]!;
}
