/** Edges as R-MAT draws them (0.57, 0.19, 0.19, 0.05): few nodes have most of them, as among people and pages. Pure. */
import { scramble } from './workload.ts';

export interface Drawn {
  /** Nodes are numbers below it. */
  readonly nodes: number;
  readonly from: Int32Array;
  readonly to: Int32Array;
}

export function drawn(scale: number, edges: number, seed: number): Drawn {
  const from = new Int32Array(edges);
  const to = new Int32Array(edges);
  let state = scramble(seed) | 1;
  const next = (): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
  for (let edge = 0; edge < edges; edge++) {
    let source = 0;
    let target = 0;
    for (let bit = 0; bit < scale; bit++) {
      const place = next();
      source = 2 * source + (place >= 0.76 ? 1 : 0);
      target = 2 * target + ((place >= 0.57 && place < 0.76) || place >= 0.95 ? 1 : 0);
    }
    // Numbers that stand beside each other are no neighbours.
    from[edge] = mixed(source, scale);
    to[edge] = mixed(target, scale);
  }
  return { nodes: 2 ** scale, from, to };
}

function mixed(node: number, scale: number): number {
  return Math.imul(node, 0x9e37_79b1) >>> (32 - scale);
}

export const nodeKey = (node: number): string => `n${node}`;

/** NDJSON in pieces. */
export function* nodeLines({ nodes }: Drawn): Generator<Buffer> {
  for (let first = 0; first < nodes; first += 10_000) {
    let text = '';
    for (let node = first; node < Math.min(nodes, first + 10_000); node++) text += `{"id":"${nodeKey(node)}"}\n`;
    yield Buffer.from(text);
  }
}

/** A tenth of a percent of the edges of a load is hidden from who asks; none of those that come later. */
export function* edgeLines({ from, to }: Drawn, first = 0): Generator<Buffer> {
  for (let begin = 0; begin < from.length; begin += 10_000) {
    let text = '';
    for (let edge = begin; edge < Math.min(from.length, begin + 10_000); edge++) {
      const hidden = first === 0 && edge % 1_000 === 999;
      text += `{"id":"e${first + edge}","from_id":"${nodeKey(from[edge]!)}","to_id":"${nodeKey(to[edge]!)}","hidden":${hidden}}\n`;
    }
    yield Buffer.from(text);
  }
}
