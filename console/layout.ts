/** Places of a graph's nodes: springs along edges, and repulsion between all of them; the same for the same graph. */
import { forceLink, forceManyBody, forceSimulation, forceX, forceY } from 'd3-force';

export interface Placed {
  readonly id: string;
  x: number;
  y: number;
}

export interface Edge {
  readonly from: string;
  readonly to: string;
  readonly type: string;
  /** Against an earlier instant; absent: it was there then and is now. */
  readonly change?: 'new' | 'gone';
}

/**
 * Nodes that have a place keep it as their start; others begin beside the node that they hang on. Comes back after each round, so that
 * thousands of nodes hold up no frame.
 */
export function* settle(nodes: readonly Placed[], edges: readonly Edge[], rounds: number): Generator<void, void> {
  const known = new Set(nodes.map(({ id }) => id));
  const links = edges
    .filter(({ from, to }) => from !== to && known.has(from) && known.has(to))
    .map(({ from, to }) => ({ source: from, target: to }));
  const simulation = forceSimulation<Placed>([...nodes])
    .force(
      'link',
      forceLink<Placed, (typeof links)[number]>(links)
        .id(({ id }) => id)
        .distance(60),
    )
    .force('charge', forceManyBody().strength(-160).distanceMax(900))
    .force('x', forceX(0).strength(0.03))
    .force('y', forceY(0).strength(0.05))
    .alphaDecay(1 - 0.001 ** (1 / rounds))
    .stop();
  for (let round = 0; round < rounds; round++) {
    simulation.tick();
    yield;
  }
}
