/** Neighbours of each node in either direction: each neighbour once, however many edges lead to it, without loops. */
import type { Adjacency, Direction, Graph } from './graph.ts';
import { ways } from './graph.ts';
import { type Steps, stepsAtOnce } from './stepped-sort.ts';

export type Neighbours = Pick<Adjacency, 'offsets' | 'neighbours'>;

/** Neighbours ascend. */
export function* simpleNeighbours(graph: Graph, direction: Direction, hold: (bytes: number) => void): Steps<Neighbours> {
  const along = ways(graph, direction);
  const room = graph.edges * along.length;
  hold(4 * (room + graph.nodes));
  const offsets = new Uint32Array(graph.nodes + 1);
  const neighbours = new Int32Array(room);
  const [first, second] = along;
  let count = 0;
  let looks = 0;
  for (let node = 0; node < graph.nodes; node++) {
    let left = first!.offsets[node]!;
    const leftEnd = first!.offsets[node + 1]!;
    let right = second === undefined ? 0 : second.offsets[node]!;
    const rightEnd = second === undefined ? 0 : second.offsets[node + 1]!;
    let last = node;
    while (left < leftEnd || right < rightEnd) {
      const takesLeft = right >= rightEnd || (left < leftEnd && first!.neighbours[left]! <= second!.neighbours[right]!);
      const neighbour = takesLeft ? first!.neighbours[left++]! : second!.neighbours[right++]!;
      if (neighbour !== last && neighbour !== node) neighbours[count++] = last = neighbour;
      if (++looks % stepsAtOnce === 0) yield;
    }
    offsets[node + 1] = count;
  }
  return { offsets, neighbours: neighbours.subarray(0, count) };
}

/** Calls back with each node that both are joined to, ascending. */
export function common({ offsets, neighbours }: Neighbours, a: number, b: number, met: (node: number) => void): number {
  let left = offsets[a]!;
  let right = offsets[b]!;
  const [leftEnd, rightEnd] = [offsets[a + 1]!, offsets[b + 1]!];
  const begun = left + right;
  while (left < leftEnd && right < rightEnd) {
    const difference = neighbours[left]! - neighbours[right]!;
    if (difference === 0) met(neighbours[left]!);
    if (difference <= 0) left++;
    if (difference >= 0) right++;
  }
  return left + right - begun;
}

export function sizeOf({ offsets }: Neighbours, node: number): number {
  return offsets[node + 1]! - offsets[node]!;
}
