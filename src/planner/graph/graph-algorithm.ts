/** The interface of graph algorithms: one file each, pure, in steps. `algorithm-function.ts` makes a table function of each. */
import type { ArgumentSpec } from '../calls/argument-spec.ts';
import type { Direction, Graph } from './graph.ts';
import type { Steps } from './stepped-sort.ts';

/** A result column: a node by its number (-1: NULL), a number, a boolean, or a text of an edge. */
export interface GraphColumn {
  readonly name: string;
  readonly holds: 'node' | 'integer' | 'number' | 'boolean' | 'text';
}

/** By node: a score, or the least node of its community. */
export type State = Float64Array | Int32Array;

/** Rows of an answer, as columns. */
export interface GraphRows {
  readonly count: number;
  readonly columns: ReadonlyMap<string, Int32Array | Float64Array | readonly string[]>;
  /** The edge of each row, where the function reports edges. */
  readonly edges?: Int32Array;
  /** Rounds that it took to settle; one where this is absent. */
  readonly rounds?: number;
  /** State by node from which a later answer may start. */
  readonly state?: State;
  /** The rows are in their final order; else they are sorted by score, descending, then by the nodes in their columns. */
  readonly ordered?: true;
}

/** One call: its arguments and limits. */
export interface GraphCall {
  readonly direction: Direction;
  /** The word of an argument, or the first of its choices. */
  choice(name: string): string;
  text(name: string): string | undefined;
  /** Throws REL_INVALID outside of the range. */
  integer(name: string, otherwise: number, least: number, most: number): number;
  number(name: string, otherwise: number, least: number, most: number): number;
  /** Things that LIMIT asks for: rows, or whole paths. */
  readonly limit: number;
  /** Rows that an answer may have. */
  readonly rowsMax: number;
  /** Counts the edges read. Throws REL_SCAN_CAP beyond the limit of a query. */
  spend(edges: number): void;
  /** Bytes that are held from now on. Throws REL_MEMORY_CAP. */
  hold(bytes: number): void;
  /** The state of an earlier answer from which this one may start. */
  readonly start: State | null;
  /** A refusal that points at an argument. */
  invalid(name: string, text: string): Error;
}

export interface GraphAlgorithm {
  readonly name: string;
  readonly summary: string;
  /** `typed`: of the rows of a type and the edges between them; `open`: of all that is visible. */
  readonly about: 'typed' | 'open';
  /** The function's own arguments, behind TYPE and LINK, or in front of LINK_TYPES. */
  readonly arguments: readonly ArgumentSpec[];
  /** Absent: it does not matter which way an edge leads. */
  readonly direction?: Direction;
  /** Takes WEIGHT. */
  readonly weighted?: true;
  readonly columns: readonly GraphColumn[];
  /** Edge columns follow the function's own: link_type and the four instants. */
  readonly tellsEdges?: true;
  /** LIMIT counts whole groups of rows. */
  readonly limitsGroups?: true;
  /** The least score comes first, and of alike ones the fewest hops. */
  readonly nearestFirst?: true;
  /** The state that a later answer may start from. For components the answer stays exact, for the others it is approximate. */
  readonly warm?: 'pagerank' | 'components' | 'labels';
  run(graph: Graph, call: GraphCall): Steps<GraphRows>;
}

const scoredColumns: readonly GraphColumn[] = [
  { name: 'nodeId', holds: 'node' },
  { name: 'score', holds: 'number' },
];

/** Columns of every answer, and the function's own. */
export function scoredWith(...ownGraphColumns: readonly GraphColumn[]): readonly GraphColumn[] {
  return [...scoredColumns, ...ownGraphColumns];
}
