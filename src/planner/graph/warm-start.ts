/**
 * The state from which an eventual answer starts: that of an earlier answer under the same caller's scope, branch and arguments.
 * Strong answers begin anew, so that one basis has one answer. State by node name is carried over to a graph of other nodes.
 */
import type { Graph, NodeTexts } from './graph.ts';
import type { GraphAlgorithm, State } from './graph-algorithm.ts';
import type { Steps } from './stepped-sort.ts';

export interface Warm {
  readonly state: State;
  readonly texts: NodeTexts;
  readonly lineage: object;
  readonly edges: number;
  /** The instant of the snapshot that it was made through. */
  readonly instant: bigint;
  readonly isErased: () => boolean;
}

/** The state to start from; null where the earlier state does not apply to this graph. */
export function* startingState(algorithm: GraphAlgorithm, warm: Warm, graph: Graph): Steps<State | null> {
  const onlyGrew = warm.lineage === graph.lineage && warm.edges <= graph.edges;
  if (algorithm.warm === 'components') return onlyGrew ? warm.state : null;
  const before = warm.texts === graph.texts ? null : yield* numbersBefore(warm.texts, graph.texts);
  if (before === null) return warm.state;
  return warm.state instanceof Float64Array ? scores(warm.state, before) : labels(warm.state, before);
}

/** Scales the scores to add up to 1 again. */
function scores(state: Float64Array, before: Int32Array): Float64Array {
  const startScores = Float64Array.from(before, (node) => (node < 0 ? 1 / before.length : state[node]!));
  const sum = startScores.reduce((all, each) => all + each, 0);
  return startScores.map((each) => each / sum);
}

function labels(state: Int32Array, before: Int32Array): Int32Array {
  const now = new Int32Array(state.length).fill(-1);
  for (let node = 0; node < before.length; node++) if (before[node]! >= 0) now[before[node]!] = node;
  return before.map((each, node) => {
    const label = each < 0 ? -1 : now[state[each]!]!;
    return label < 0 ? node : label;
  });
}

/** By node: its former number, -1 for a new one. Both graphs are in byte order. */
function* numbersBefore(before: NodeTexts, after: NodeTexts): Steps<Int32Array> {
  const numbers = new Int32Array(after.size).fill(-1);
  let old = 0;
  for (let node = 0; node < after.size; node++) {
    const wanted = after.bytesOf(node);
    let order = -1;
    while (old < before.size && (order = Buffer.compare(before.bytesOf(old), wanted)) < 0) old++;
    if (old < before.size && order === 0) numbers[node] = old;
    if (node % 1_024 === 1_023) yield;
  }
  return numbers;
}
