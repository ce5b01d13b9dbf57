/** Places of a graph's nodes: springs along edges, repulsion between neighbours in a grid, the same for the same graph. */

export interface Placed {
  readonly id: string;
  x: number;
  y: number;
}

export interface Edge {
  readonly from: string;
  readonly to: string;
  readonly type: string;
}

const spring = 74;

/** Nodes that have a place keep it as their start; others begin beside the node that they hang on. */
export function settle(nodes: readonly Placed[], edges: readonly Edge[], rounds: number): void {
  const at = new Map(nodes.map((node, i) => [node.id, i]));
  const pairs = edges.flatMap(({ from, to }) => {
    const [a, b] = [at.get(from), at.get(to)];
    return a === undefined || b === undefined || a === b ? [] : [[a, b] as const];
  });
  const dx = new Float64Array(nodes.length);
  const dy = new Float64Array(nodes.length);
  for (let round = 0; round < rounds; round++) {
    const heat = 12 * (1 - round / rounds) + 0.5;
    dx.fill(0);
    dy.fill(0);
    repel(nodes, dx, dy);
    for (const [a, b] of pairs) {
      const [x, y] = [nodes[b]!.x - nodes[a]!.x, nodes[b]!.y - nodes[a]!.y];
      const length = Math.hypot(x, y) || 1;
      const pull = ((length - spring) / length) * 0.08;
      dx[a]! += x * pull;
      dy[a]! += y * pull;
      dx[b]! -= x * pull;
      dy[b]! -= y * pull;
    }
    for (const [i, node] of nodes.entries()) {
      const length = Math.hypot(dx[i]!, dy[i]!) || 1;
      const step = Math.min(heat, length);
      node.x += (dx[i]! / length) * step - node.x * 0.004;
      node.y += (dy[i]! / length) * step - node.y * 0.004;
    }
  }
}

const cellSize = spring * 2;

function repel(nodes: readonly Placed[], dx: Float64Array, dy: Float64Array): void {
  const cells = new Map<string, number[]>();
  const cellOf = ({ x, y }: Placed, right = 0, down = 0): string =>
    `${Math.floor(x / cellSize) + right},${Math.floor(y / cellSize) + down}`;
  for (const [i, node] of nodes.entries()) {
    const name = cellOf(node);
    const cell = cells.get(name);
    if (cell) cell.push(i);
    else cells.set(name, [i]);
  }
  for (const [i, node] of nodes.entries()) {
    for (let right = -1; right <= 1; right++)
      for (let down = -1; down <= 1; down++)
        for (const j of cells.get(cellOf(node, right, down)) ?? []) {
          if (j === i) continue;
          const [x, y] = [node.x - nodes[j]!.x || (i - j) * 0.01, node.y - nodes[j]!.y || (j - i) * 0.01];
          const square = Math.max(25, x * x + y * y);
          dx[i]! += (x / square) * 220;
          dy[i]! += (y / square) * 220;
        }
  }
}
