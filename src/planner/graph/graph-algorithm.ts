/** What a function over the graph is: one file each, pure, in steps. `graph-function.ts` makes a table function of it. */
import type { ArgumentSpec } from '../functions/argument-spec.ts';
import type { Direction, Graph } from './graph.ts';
import type { Steps } from './steps.ts';

/** What a column holds: a node by its number (-1: NULL), a whole number, or all that is told of an edge. */
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
  /** By row, where the function tells of edges. */
  readonly edges?: Int32Array;
  /** Rounds that it took to settle; one where this is absent. */
  readonly rounds?: number;
  /** What a later answer may go on from, by node. */
  readonly state?: State;
  /** They stand as they are to leave; else by score, descending, then by the nodes in their columns. */
  readonly ordered?: true;
}

/** One call: its arguments, and how much it may do. */
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
  /** Counts edges that are looked at. Throws REL_SCAN_CAP beyond what a query may scan. */
  spend(edges: number): void;
  /** Bytes that are held from now on. Throws REL_MEMORY_CAP. */
  hold(bytes: number): void;
  /** What an earlier answer came to, where this one may go on from it. */
  readonly start: State | null;
  /** A refusal that points at an argument. */
  invalid(name: string, text: string): Error;
}

export interface GraphAlgorithm {
  readonly name: string;
  readonly summary: string;
  /** `typed`: of the rows of a type and the edges between them; `open`: of all that is visible. */
  readonly about: 'typed' | 'open';
  /** Behind TYPE and LINK, or in front of LINK_TYPES. */
  readonly arguments: readonly ArgumentSpec[];
  /** Absent: it does not matter which way an edge leads. */
  readonly direction?: Direction;
  /** Takes WEIGHT. */
  readonly weighted?: true;
  readonly columns: readonly GraphColumn[];
  /** With link_type and the four instants of an edge behind its columns. */
  readonly tellsEdges?: true;
  /** LIMIT counts whole groups of rows. */
  readonly limitsGroups?: true;
  /** The least score comes first, and of alike ones the fewest hops. */
  readonly nearestFirst?: true;
  /** What it settles on, where it may go on from an earlier answer; of components the answer is the same, of all else nearly. */
  readonly warm?: 'pagerank' | 'components' | 'labels';
  run(graph: Graph, call: GraphCall): Steps<GraphRows>;
}

const scored: readonly GraphColumn[] = [
  { name: 'nodeId', holds: 'node' },
  { name: 'score', holds: 'number' },
];

/** Columns of every answer, and the function's own. */
export function scoredWith(...own: readonly GraphColumn[]): readonly GraphColumn[] {
  return [...scored, ...own];
}
