/**
 * The algebra: one frozen node per operator. A node's `kind` is the name of its file in `operators/` and its line in
 * EXPLAIN. Expressions and column numbers of a node refer to the columns of its input.
 */
import type { MaskKind } from '../log/entries/entry.ts';
import type { Cell, ColumnType } from '../log/values/value.ts';
import type { Bound, Guard } from './expressions/bound-expression.ts';
import type { Caveat } from './expressions/comparison-notices.ts';
import type { ValueType } from './expressions/value-type.ts';
import type { AggregateName } from './aggregate-functions.ts';
import type { GraphTypes } from './graph/node-and-edge-types.ts';
import type { MatchMode } from '../governance/text-search/text-query.ts';
import type { Frame, Literal, OutputEntity, Location, SetOperation, Slot, WindowFunction } from './syntax/statement.ts';

export interface PlanColumn {
  readonly name: string;
  readonly type: ColumnType;
  /** The column's name for clients of Postgres, where it differs. */
  readonly label?: string;
}

export type PlanNode =
  | ScanNode
  | SearchNode
  | ValuesNode
  | VirtualNode
  | SpreadNode
  | WorkingNode
  | FilterNode
  | ProjectNode
  | AggregateNode
  | DistinctNode
  | SortNode
  | LimitNode
  | SkipNode
  | NumberNode
  | WindowNode
  | OverNode
  | JoinNode
  | ApplyNode
  | SetOperationNode
  | RecursiveNode
  | FunctionNode;

/** Nodes that read one other node. */
export type UnaryNode = Exclude<Extract<PlanNode, { readonly input: PlanNode | null }>, FunctionNode>;

/** Instants are column-free expressions, so that AS OF, `now()` and zones are resolved the same way. */
export type AxisBound = 'all' | 'now' | { readonly instant: Bound };

export interface ScanNode {
  readonly kind: 'scan';
  readonly type: string;
  /** Property that is the key of the type, when one is declared. */
  readonly primaryKey: string | null;
  /**
   * Columns of the type that are masked for the caller. They read as NULL, and say nothing of which rows are read; the
   * columns that show them (`shownColumn`) go as they are to where rows leave, and stand in no expression.
   */
  readonly masked: ReadonlyMap<string, MaskKind>;
  readonly columns: readonly PlanColumn[];
  /** Column-free values of the key column: the scan becomes a lookup. */
  readonly keys: readonly Bound[] | null;
  readonly zones: readonly Zone[];
  readonly after: Slot | null;
  /** The scan is read as a whole, wherever a page of the statement begins. */
  readonly whole?: true;
}

/** Rows of column-free values, written out in the statement. */
export interface ValuesNode {
  readonly kind: 'values';
  readonly rows: readonly (readonly Bound[])[];
  readonly columns: readonly PlanColumn[];
}

export interface VirtualRead {
  readonly relation: string;
  /** The wanted columns. */
  readonly columns: readonly VirtualColumn[];
  /** No row is wanted that has another value in a column than one of these. */
  readonly among: readonly { readonly column: string; readonly cells: readonly Cell[] }[];
}

/** Rows of a virtual relation, which are not stored: they are made of the caller's snapshot when they are read. */
export interface VirtualNode {
  readonly kind: 'virtual';
  readonly oid: number;
  /** `schema.name`. */
  readonly relation: string;
  readonly columns: readonly VirtualColumn[];
  /** How many rows it may have, as far as the relation tells, and how many of them with one value in a column that finds rows. */
  readonly expected: number;
  readonly lookUp: { readonly by: ReadonlySet<string>; readonly rows: number };
  /** Values that the filter above requires of columns. */
  readonly among?: readonly { readonly column: string; readonly values: readonly Bound[] }[];
}

/** Rows once for each element of arrays: its columns, then those of the elements. */
export interface SpreadNode {
  readonly kind: 'spread';
  /** Its own columns, then the arrays. */
  readonly input: PlanNode;
  /** How many columns of its own the input has. */
  readonly width: number;
  /** Types of Postgres that the elements have. */
  readonly wires: readonly string[];
  readonly columns: readonly PlanColumn[];
}

export interface VirtualColumn extends PlanColumn {
  /** Among all columns of the relation. */
  readonly relationColumn: number;
  /** The type that wire protocols tell of it. */
  readonly wire: string;
}

/** A necessary condition that lets storage skip blocks of rows; the filter above still decides. */
export interface Zone {
  readonly column: string;
  readonly type: ColumnType;
  readonly op: '=' | '<' | '<=' | '>' | '>=';
  readonly value: Bound;
}

/** A MATCH of the statement. */
export interface Match {
  /** Columns of the scan that are searched. */
  readonly columns: readonly number[];
  /** Literal that says what for. */
  readonly slot: number;
  readonly mode: MatchMode;
  /** By column, literals: the weight of its words relative to other columns', and the boost of rows that hold one. */
  readonly weights: readonly (number | null)[];
  readonly boosts: readonly (number | null)[];
}

/**
 * Rows of a type and what MATCH says of each: the columns of the scan, then a boolean for each match (NULL where no text is
 * shown), then, where rows are `scored`, how well they match, over all matches.
 */
export interface SearchNode {
  readonly kind: 'search';
  readonly input: ScanNode;
  readonly matches: readonly Match[];
  readonly scored: boolean;
  /** Rows that these matches don't hold of are not asked for by anybody above. Only with them indexes can do the looking up. */
  readonly required: readonly number[];
  /** For a function that ranks rows: where nothing was prepared but words, it asks for no row that has none of them. */
  readonly ranks?: true;
  /** The number of best rows wanted among those that match all of `required`: this limit, plus the offset. */
  readonly best: { readonly limit: Slot; readonly offset: Slot | undefined } | null;
  /** Columns of the scan, by number, that are searched but not read by any node above. */
  readonly unread: readonly number[];
  readonly columns: readonly PlanColumn[];
}

export interface FilterNode {
  readonly kind: 'filter';
  readonly input: PlanNode;
  readonly predicate: Bound;
  readonly columns: readonly PlanColumn[];
}

export interface ProjectNode {
  readonly kind: 'project';
  readonly input: PlanNode;
  readonly expressions: readonly Bound[];
  /** Rows that a sort above does not put first by a distance are not asked for. */
  readonly nearest?: Nearest;
  readonly columns: readonly PlanColumn[];
}

/** The first rows by the distance of a vector to one. */
export interface Nearest {
  /** Input column of vectors, and the vector to compare them with. */
  readonly column: number;
  readonly to: Bound;
  readonly distance: Extract<Bound, { readonly kind: 'call' }>;
  readonly limit: Slot;
  readonly offset?: Slot;
  /** Rows that are ruled out count as hits. */
  readonly counted: boolean;
}

export interface AggregateCall {
  readonly function: AggregateName;
  /** Input column; null is COUNT(*). */
  readonly column: number | null;
  /** Input column of a second argument. */
  readonly second?: number;
  /** Input column that says which rows a function takes to which NULL is a value. */
  readonly when?: number;
  /** The order of WITHIN GROUP. */
  readonly descending?: boolean;
  readonly distinct: boolean;
  /** The type of Postgres that it yields, where cells do not say it. */
  readonly wire?: string;
}

/** Input columns 0 .. groups-1 are the group keys; output is the keys, then one column per call. */
export interface AggregateNode {
  readonly kind: 'aggregate';
  readonly input: PlanNode;
  readonly groups: number;
  readonly calls: readonly AggregateCall[];
  readonly columns: readonly PlanColumn[];
}

export interface DistinctNode {
  readonly kind: 'distinct';
  readonly input: PlanNode;
  readonly columns: readonly PlanColumn[];
}

export interface SortKey {
  readonly column: number;
  readonly descending: boolean;
  readonly collate: 'codepoint' | 'unicode';
  /** NULLs come before all others; last where this is absent. */
  readonly nullsFirst?: boolean;
}

/** A number of rows: a literal, or what a column-free value says, which is no NULL. */
export type RowCount = Slot | { readonly value: Bound; readonly of: 'LIMIT' | 'OFFSET'; readonly location: Location };

/** Stable: rows that the keys don't tell apart stay in the order of the input. */
export interface SortNode {
  readonly kind: 'sort';
  readonly input: PlanNode;
  readonly keys: readonly SortKey[];
  /** The number of first rows wanted; null: all. */
  readonly limit: RowCount | null;
  /** Additional rows, for a skip above. */
  readonly offset?: RowCount;
  /** Its input is the matching set of the answer, for `estimatedTotalHits`. */
  readonly counted: boolean;
  readonly columns: readonly PlanColumn[];
}

export interface LimitNode {
  readonly kind: 'limit';
  readonly input: PlanNode;
  readonly limit: RowCount;
  /** Additional rows, for a skip above. */
  readonly offset?: RowCount;
  /** The input again, reading only what its condition reads: to go on counting once the rows are there. */
  readonly counting: PlanNode | null;
  /** The LIMIT of the statement itself: rows beyond it are counted for `estimatedTotalHits`. */
  readonly counted: boolean;
  readonly columns: readonly PlanColumn[];
}

/** Skips the first rows. */
export interface SkipNode {
  readonly kind: 'skip';
  readonly input: PlanNode;
  readonly offset: RowCount;
  readonly columns: readonly PlanColumn[];
}

/** Output is the input's columns, then the number of each row in their order, from 0: what another order is sorted back by. */
export interface NumberNode {
  readonly kind: 'number';
  readonly input: PlanNode;
  /** Another part of the plan numbers the same rows: none may be left out below. */
  readonly whole?: true;
  readonly columns: readonly PlanColumn[];
}

/**
 * A query for each row of `input`, whose columns it names by `outer` of this level. It is there between binding and
 * `decorrelate.ts`, which makes joins of it. `mark` adds a column that says whether a row of the query meets the condition
 * (over the columns of input, then those of query), `single` adds the query's first column, of its only row.
 */
export interface ApplyNode {
  readonly kind: 'apply';
  readonly type: 'mark' | 'single' | 'inner' | 'left';
  readonly input: PlanNode;
  readonly query: PlanNode;
  readonly level: number;
  readonly condition: Bound | null;
  readonly columns: readonly PlanColumn[];
}

/**
 * Output is the columns of left, then those of right, in the order of left rows, then of right rows; rows of right
 * without a partner (right, full) come last, in their order. `build` says which side is held in memory, and nothing else.
 *
 * `semi` yields the left rows that have a partner, `anti` those that have none, both without columns of right; `mark` yields
 * all of them with one more column, whether they have one. `single` is a left join that fails on a second partner.
 */
export interface JoinNode {
  readonly kind: 'join';
  readonly type: 'inner' | 'left' | 'right' | 'full' | 'semi' | 'anti' | 'mark' | 'single';
  readonly left: PlanNode;
  readonly right: PlanNode;
  /** Pairs that must be equal: column leftKeys[i] of left and rightKeys[i] of right, of one type. NULL equals nothing. */
  readonly leftKeys: readonly number[];
  readonly rightKeys: readonly number[];
  /**
   * The rest of the condition on a pair, over the output columns. Outer joins apply it before they decide that a row has no
   * partner.
   */
  readonly residual: Bound | null;
  readonly build: 'left' | 'right';
  /** The right side is held, but left rows are read before it, so that of the right side only rows of their keys have to be. */
  readonly leads?: boolean;
  /** Output columns that a node above reads; the others come out as NULL. Absent: all of them. */
  readonly read?: readonly number[];
  readonly columns: readonly PlanColumn[];
}

/** Both sides have the same number and types of columns. NULLs count as equal; `union all` keeps left before right. */
export interface SetOperationNode {
  readonly kind: 'set-operation';
  readonly op: SetOperation;
  readonly left: PlanNode;
  readonly right: PlanNode;
  readonly columns: readonly PlanColumn[];
}

/**
 * WITH RECURSIVE: the rows of `base`, then `step` over the rows that the round before added, until a round adds nothing. `union`
 * drops rows that were there before. Bounded by `recursionRoundsMax` and the row caps.
 */
export interface RecursiveNode {
  readonly kind: 'recursive';
  /** Shared with the `working` nodes inside `step`. */
  readonly table: string;
  readonly op: 'union' | 'union all';
  readonly base: PlanNode;
  readonly step: PlanNode;
  readonly columns: readonly PlanColumn[];
}

/** Output is the input's columns, then one for each call; rows stay in their order. */
export interface OverNode {
  readonly kind: 'over';
  readonly input: PlanNode;
  readonly partition: readonly number[];
  readonly keys: readonly SortKey[];
  readonly calls: readonly OverCall[];
  readonly columns: readonly PlanColumn[];
}

export interface OverCall {
  readonly function: WindowFunction;
  /** Input column; null of what takes none. */
  readonly column: number | null;
  /** Input column of the second argument of an aggregate, and of which value NTH_VALUE is. */
  readonly second?: number;
  /** Input column that says which rows an aggregate takes. */
  readonly when?: number;
  /** How many rows LAG and LEAD go; null: one. */
  readonly offset: Slot | null;
  /** Input column with their result beyond the partition; null: NULL. */
  readonly otherwise: number | null;
  readonly type: ColumnType;
  readonly frame: Omit<Frame, 'location'>;
}

/** The rows that the round before added to the recursive table of this name. */
export interface WorkingNode {
  readonly kind: 'working';
  readonly table: string;
  readonly columns: readonly PlanColumn[];
}

/**
 * Streaming windows over a timestamp or integer column of nanoseconds. Output is the input's columns, then window_start
 * and window_end (timestamp). `tumble` and `hop` give a row once for each window [start, end) that holds it, windows
 * aligned to the epoch; rows whose column is NULL are in none. `session` orders rows by partition and column: a gap of
 * at least `gap` begins the next one, and window_end is the last row plus the gap.
 */
export interface WindowNode {
  readonly kind: 'window';
  readonly input: PlanNode;
  readonly type: 'tumble' | 'hop' | 'session';
  readonly column: number;
  /** Interval slots: tumble [size], hop [slide, size], session [gap]. */
  readonly intervals: readonly Slot[];
  /** Columns that divide sessions: the other group keys. Empty for tumble and hop. */
  readonly partition: readonly number[];
  readonly columns: readonly PlanColumn[];
}

/** A table function. One that ranks the rows of a type takes them as its input, and yields the type's columns beside its own. */
export interface FunctionNode {
  readonly kind: 'function';
  /** Name in `table-functions/all.ts`. */
  readonly name: string;
  /** The arguments that the plan rests on, and those read by an execution, by name. */
  readonly words: readonly string[];
  readonly values: ReadonlyMap<string, FunctionValue>;
  /** The type that it ranks the rows of, and those rows; null where its rows are its own. */
  readonly type: string | null;
  readonly input: PlanNode | null;
  /** Columns of the input for the ranking: system_from, `_pk`, and those that the function chose. */
  readonly reads: readonly number[];
  /** LIMIT of the statement, where nothing stands between the two. */
  readonly limit: Slot | null;
  readonly columns: readonly PlanColumn[];
  /** For each column its number among the function's own; -1 for a column of the type. */
  readonly own: readonly number[];
  /** The graph that a graph function reads; absent for every other function. */
  readonly graph?: GraphInput;
  /** The result of the function's `bind`. */
  readonly bound?: unknown;
  /**
   * Its rows are those of its input, each as often as it likes, with more columns behind; or those of its edges, one after the other.
   * Which rows of these there are depends on no other row, so conditions on them may go below.
   */
  readonly carries?: 'input' | 'edges';
  /** A column, and the argument that fixes its value, where it is not given: a condition above may give it. */
  readonly seeks?: { readonly column: string; readonly argument: string };
}

export interface GraphInput {
  readonly types: GraphTypes;
  /** Rows of each type of edges: both ends, system_from and, where edges are weighed, the weight. */
  readonly edges: readonly PlanNode[];
  readonly weight: string | null;
  /** Words of the call, by the names of their arguments. */
  readonly choices: ReadonlyMap<string, string>;
  /** All edges of its types are in the graph, regardless of conditions on rows. */
  readonly isWhole: boolean;
  /** LIMIT counts groups of rows: no node above cuts them. */
  readonly limitsGroups: boolean;
  /** Location of the call. */
  readonly location: Location;
}

/** An expression without columns, or those of an ARRAY. */
export type FunctionValue = { readonly location: Location; readonly isVector: boolean } & (
  | { readonly bound: Bound }
  | { readonly items: readonly Bound[] }
);

/**
 * A query in an expression that names nothing outside of itself: run before the plan that asks for it, under the same
 * snapshot and caps. `set` is its one column, for IN; `scalar` the cell of its one row; `exists` whether it has a row.
 */
export interface Subquery {
  readonly root: PlanNode;
  readonly type: ValueType;
  readonly as: 'set' | 'scalar' | 'exists';
}

/** FACETS: the matching set once more, before grouping, order and LIMIT; its columns are the attributes to count. */
export interface FacetPlan {
  readonly root: PlanNode;
}

/** A plan of one template: literals are slots, so it serves every statement that differs in literals only. */
export interface LogicalPlan {
  readonly root: PlanNode;
  /** Subqueries by number; each may use those before it. */
  readonly subqueries: readonly Subquery[];
  readonly facets: FacetPlan | null;
  /** Column-free subtrees, computed once per execution. */
  readonly parameters: readonly Bound[];
  /** The one AS OF of the statement, as every scan has it. */
  readonly time: { readonly system: AxisBound; readonly valid: AxisBound };
  /** Leading columns of the root that the caller asked for; the rest is for cursor and provenance. */
  readonly visible: number;
  /** Root column with the version's system_from, where rows of a type come out one by one. */
  readonly systemFrom: number | null;
  /** The answer is in system_from order, so LIMIT may be continued by a cursor. */
  readonly paged: boolean;
  readonly withProvenance: boolean;
  /** Types read, in order of appearance. */
  readonly objectTypes: readonly string[];
  /** Literals of views that the statement names: their slots come after those of the statement. */
  readonly viewLiterals: readonly Literal[];
  readonly guards: readonly Guard[];
  /** Caveats that its comparisons may have to give. */
  readonly caveats: readonly Caveat[];
  /** By column: the entities in its values. */
  readonly entities?: readonly (OutputEntity | null)[];
}

/** The inputs of a node, in the order of its fields. */
export function inputsOf(node: PlanNode): readonly PlanNode[] {
  switch (node.kind) {
    case 'scan':
    case 'values':
    case 'virtual':
    case 'working':
      return [];
    case 'function':
      return [...(node.input ? [node.input] : []), ...(node.graph?.edges ?? [])];
    case 'apply':
      return [node.input, node.query];
    case 'join':
    case 'set-operation':
      return [node.left, node.right];
    case 'recursive':
      return [node.base, node.step];
    default:
      return [node.input];
  }
}

/** Every node of a plan, its subqueries and facets included; inputs first. */
export function nodesOf({ root, subqueries, facets }: LogicalPlan): readonly PlanNode[] {
  const planNodes: PlanNode[] = [];
  const addWithInputs = (node: PlanNode): void => {
    inputsOf(node).forEach(addWithInputs);
    planNodes.push(node);
  };
  [root, ...subqueries.map((subquery) => subquery.root), ...(facets ? [facets.root] : [])].forEach(addWithInputs);
  return planNodes;
}

/** Whether there are sides to choose anywhere in a plan. */
export function hasJoin(plan: LogicalPlan): boolean {
  return nodesOf(plan).some(({ kind }) => kind === 'join');
}

/** Copies a node with other inputs; returns the node itself when none of them changed. */
export function mapInputs(node: PlanNode, mapInput: (input: PlanNode) => PlanNode): PlanNode {
  switch (node.kind) {
    case 'scan':
    case 'values':
    case 'virtual':
    case 'working':
      return node;
    case 'apply':
      return { ...node, input: mapInput(node.input), query: mapInput(node.query) };
    case 'join':
    case 'set-operation': {
      const mappedLeft = mapInput(node.left);
      const mappedRight = mapInput(node.right);
      return mappedLeft === node.left && mappedRight === node.right ? node : { ...node, left: mappedLeft, right: mappedRight };
    }
    case 'recursive': {
      const mappedBase = mapInput(node.base);
      const mappedStep = mapInput(node.step);
      return mappedBase === node.base && mappedStep === node.step ? node : { ...node, base: mappedBase, step: mappedStep };
    }
    case 'function': {
      const input = node.input && mapInput(node.input);
      if (node.graph) return { ...node, input, graph: { ...node.graph, edges: node.graph.edges.map(mapInput) } };
      return input === node.input ? node : { ...node, input };
    }
    default:
      return withInput(node, mapInput(node.input));
  }
}

/** Whether the rows of a join carry the columns of its right side. */
export function yieldsRight(type: JoinNode['type']): boolean {
  return type !== 'semi' && type !== 'anti' && type !== 'mark';
}

/** The output columns of a join of this type. */
export function joinColumns(type: JoinNode['type'], left: PlanNode, right: PlanNode): readonly PlanColumn[] {
  if (type === 'mark') return [...left.columns, { name: '#mark', type: 'boolean' }];
  return yieldsRight(type) ? [...left.columns, ...right.columns] : left.columns;
}

/** Replaces the input of a node that has one. A search is over a scan and nothing else. */
export function withInput<N extends UnaryNode>(node: N, input: PlanNode): N {
  return input === node.input ? node : { ...node, input };
}

/** Every tree of a plan, each changed in the same way. */
export function mapRoots(plan: LogicalPlan, mapRoot: (root: PlanNode) => PlanNode): LogicalPlan {
  return {
    ...plan,
    root: mapRoot(plan.root),
    subqueries: plan.subqueries.map((subquery) => ({ ...subquery, root: mapRoot(subquery.root) })),
    facets: plan.facets && { root: mapRoot(plan.facets.root) },
  };
}

/** The expressions of a node itself. */
export function expressionsOf(node: PlanNode): readonly Bound[] {
  switch (node.kind) {
    case 'scan':
      return [...(node.keys ?? []), ...node.zones.map(({ value }) => value)];
    case 'values':
      return node.rows.flat();
    case 'filter':
      return [node.predicate];
    case 'project':
      return node.expressions;
    case 'join':
      return node.residual ? [node.residual] : [];
    case 'apply':
      return node.condition ? [node.condition] : [];
    default:
      return [];
  }
}

/** Changes the expressions of a node and of all below it. */
export function mapExpressions(node: PlanNode, mapBound: (bound: Bound) => Bound): PlanNode {
  const mappedNode = mapInputs(node, (input) => mapExpressions(input, mapBound));
  switch (mappedNode.kind) {
    case 'scan':
      return {
        ...mappedNode,
        keys: mappedNode.keys && mappedNode.keys.map(mapBound),
        zones: mappedNode.zones.map((zone) => ({ ...zone, value: mapBound(zone.value) })),
      };
    case 'values':
      return { ...mappedNode, rows: mappedNode.rows.map((row) => row.map(mapBound)) };
    case 'filter':
      return { ...mappedNode, predicate: mapBound(mappedNode.predicate) };
    case 'project':
      return { ...mappedNode, expressions: mappedNode.expressions.map(mapBound) };
    case 'apply':
      return { ...mappedNode, condition: mappedNode.condition && mapBound(mappedNode.condition) };
    case 'join':
      return { ...mappedNode, residual: mappedNode.residual && mapBound(mappedNode.residual) };
    default:
      return mappedNode;
  }
}
