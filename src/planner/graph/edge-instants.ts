/** The link type and the four instants of edges, read once more through the gate by the system_from that the graph has of each. */
import { assert } from '../../errors.ts';
import type { Vector } from '../../log/columns.ts';
import { cellAt, VectorBuilder } from '../../log/vector-builder.ts';
import { fetchVersion } from '../operators/ranked-rows.ts';
import type { Execution } from '../operators/operator.ts';
import type { Graph } from './graph.ts';
import type { Steps } from './steps.ts';

const instants = ['valid_from', 'valid_to', 'system_from', 'system_to'] as const;
/** Edges that are fetched between two looks at the clock. */
const fetchedAtOnce = 8;

export class EdgeInstants {
  readonly #graph: Graph;
  readonly #execution: Execution;
  /** An edge may stand in many paths. */
  readonly #known = new Map<number, readonly (bigint | null)[]>();

  constructor(graph: Graph, execution: Execution) {
    this.#graph = graph;
    this.#execution = execution;
  }

  /** As `edgeColumns` has them. */
  *columns(edges: Int32Array): Steps<Vector[]> {
    const links = new VectorBuilder('string', edges.length);
    const builders = instants.map(() => new VectorBuilder('timestamp', edges.length));
    let fetched = 0;
    for (const edge of edges) {
      links.append(this.#graph.link(edge));
      let known = this.#known.get(edge);
      if (known === undefined) {
        this.#known.set(edge, (known = this.#fetch(edge)));
        if (++fetched % fetchedAtOnce === 0) yield;
      }
      builders.forEach((builder, i) => builder.append(known[i]!));
    }
    return [links.build(), ...builders.map((builder) => builder.build())];
  }

  /** NULLs for what was removed for good since. */
  #fetch(edge: number): readonly (bigint | null)[] {
    const found = fetchVersion(this.#execution, this.#graph.link(edge), instants, this.#graph.systemFrom[edge]!);
    if (found === null) return [null, null, null, null];
    return found.columns.map((vector) => {
      const cell = cellAt(vector, 'timestamp', found.row);
      assert(cell === null || typeof cell === 'bigint', 'instants are integers');
      return cell;
    });
  }
}
