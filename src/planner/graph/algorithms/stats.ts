/** One row about the answer of a function: what CALL … .stats yields. */
import type { GraphAlgorithm } from '../graph-algorithm.ts';

/** A name that no statement can write. */
export function statsName(name: string): string {
  return `#STATS ${name}`;
}

export function statsOf(algorithm: GraphAlgorithm): GraphAlgorithm {
  const { tellsEdges: _, limitsGroups: __, ...others } = algorithm;
  return {
    ...others,
    name: statsName(algorithm.name),
    columns: [
      { name: 'nodes', holds: 'integer' },
      { name: 'edges', holds: 'integer' },
      { name: 'rounds', holds: 'integer' },
      { name: 'min', holds: 'number' },
      { name: 'max', holds: 'number' },
      { name: 'mean', holds: 'number' },
    ],
    *run(graph, call) {
      const rows = yield* algorithm.run(graph, { ...call, limit: Number.POSITIVE_INFINITY });
      const score = rows.columns.get('score') as Float64Array | undefined;
      let [min, max, sum] = [Number.NaN, Number.NaN, 0];
      for (const each of score ?? []) {
        if (!(each >= min)) min = each;
        if (!(each <= max)) max = each;
        sum += each;
      }
      const mean = sum / (score?.length ?? 0);
      const cells = { nodes: graph.nodes, edges: graph.edges, rounds: rows.rounds ?? 1 };
      const columns = new Map<string, Int32Array | Float64Array>([
        ...Object.entries(cells).map(([name, value]): [string, Int32Array] => [name, Int32Array.of(value)]),
        ...Object.entries({ min, max, mean }).map(([name, value]): [string, Float64Array] => [name, Float64Array.of(value)]),
      ]);
      return { count: 1, columns, ordered: true, ...(rows.state && { state: rows.state }) };
    },
  };
}
