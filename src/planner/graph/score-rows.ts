/** Rows that functions over the graph have in common. */
import type { GraphCall, GraphRows } from './graph-algorithm.ts';
import { tooMany } from './graph-limits.ts';

type Columns = Readonly<Record<string, Int32Array | Float64Array>>;

function rowsOf(count: number, columns: Columns): GraphRows {
  return { count, columns: new Map(Object.entries(columns)) };
}

/** Rows with one per node. */
export function everyNode(score: Float64Array, more: Columns = {}): GraphRows {
  const nodes = new Int32Array(score.length);
  for (let node = 0; node < nodes.length; node++) nodes[node] = node;
  return rowsOf(nodes.length, { nodeId: nodes, score, ...more });
}

/** One row for each node: the community that it is of, by the least of its nodes, and how many that has. */
export function communities(label: Int32Array): GraphRows {
  const nodes = label.length;
  const least = new Int32Array(nodes).fill(-1);
  const size = new Int32Array(nodes);
  for (let node = 0; node < nodes; node++) {
    const of = label[node]!;
    if (least[of]! < 0) least[of] = node;
    size[of]!++;
  }
  const score = new Float64Array(nodes);
  const community = new Int32Array(nodes);
  for (let node = 0; node < nodes; node++) {
    score[node] = size[label[node]!]!;
    community[node] = least[label[node]!]!;
  }
  return { ...everyNode(score, { community }), state: community };
}

/** Pairs of nodes with a score, as they are found. */
export class Pairs {
  readonly #call: GraphCall;
  readonly #from: number[] = [];
  readonly #to: number[] = [];
  readonly #score: number[] = [];

  constructor(call: GraphCall) {
    this.#call = call;
  }

  get length(): number {
    return this.#from.length;
  }

  add(from: number, to: number, score: number): void {
    if (this.#from.length >= this.#call.rowsMax) throw tooMany(this.#call.rowsMax);
    if (this.#from.length % 1_024 === 0) this.#call.hold(24 * 1_024);
    this.#from.push(from);
    this.#to.push(to);
    this.#score.push(score);
  }

  rows(): GraphRows {
    const to = Int32Array.from(this.#to);
    return rowsOf(to.length, {
      nodeId: to,
      score: Float64Array.from(this.#score),
      from_id: Int32Array.from(this.#from),
      to_id: to,
    });
  }
}

export const pairColumns = [
  { name: 'from_id', holds: 'node' },
  { name: 'to_id', holds: 'node' },
] as const;
