/** One row about the answer of a function: what CALL … .stats yields. */
import type { GraphAlgorithm } from '../graph-algorithm.ts';

/** A name that no statement can write. */
export function statsName(name: string): string {
  return `#STATS ${name}`;
}

export function statsOf(measuredAlgorithm: GraphAlgorithm): GraphAlgorithm {
  const { tellsEdges: _, limitsGroups: __, ...otherFields } = measuredAlgorithm;
  return {
    ...otherFields,
    name: statsName(measuredAlgorithm.name),
    columns: [
      { name: 'nodes', holds: 'integer' },
      { name: 'edges', holds: 'integer' },
      { name: 'rounds', holds: 'integer' },
      { name: 'min', holds: 'number' },
      { name: 'max', holds: 'number' },
      { name: 'mean', holds: 'number' },
    ],
    *run(graph, call) {
      const measuredRows = yield* measuredAlgorithm.run(graph, { ...call, limit: Number.POSITIVE_INFINITY });
      const measuredScores = measuredRows.columns.get('score') as Float64Array | undefined;
      let [scoreMin, scoreMax, scoreSum] = [Number.NaN, Number.NaN, 0];
      for (const measuredScore of measuredScores ?? []) {
        if (!(measuredScore >= scoreMin)) scoreMin = measuredScore;
        if (!(measuredScore <= scoreMax)) scoreMax = measuredScore;
        scoreSum += measuredScore;
      }
      const scoreMean = scoreSum / (measuredScores?.length ?? 0);
      const statsCells = { nodes: graph.nodes, edges: graph.edges, rounds: measuredRows.rounds ?? 1 };
      const statsColumns = new Map<string, Int32Array | Float64Array>([
        ...Object.entries(statsCells).map(([name, value]): [string, Int32Array] => [name, Int32Array.of(value)]),
        ...Object.entries({ min: scoreMin, max: scoreMax, mean: scoreMean }).map(([name, value]): [string, Float64Array] => [
          name,
          Float64Array.of(value),
        ]),
      ]);
      return { count: 1, columns: statsColumns, ordered: true, ...(measuredRows.state && { state: measuredRows.state }) };
    },
  };
}
