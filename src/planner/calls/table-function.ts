/**
 * A table function stands alone behind FROM and yields rows. Each is one file here and one line in `all.ts`; the parser, binder,
 * executor, EXPLAIN, the access record, exhibits, the documentation and the leak matrix read that list, so a function that is in
 * it is known to all of them.
 *
 * A function reads rows through the governed snapshot alone: as its `input`, or by a `ScanOperator` of its own. It reads as of
 * the statement's instant: without AS OF, the rows that are current and valid now.
 */
import type { CatalogReader } from '../../projections/access-paths.ts';
import type { FunctionNode, GraphInput, PlanColumn } from '../logical-plan.ts';
import type { Narrowing } from '../operators/key-filter.ts';
import type { Execution, Operator } from '../operators/operator.ts';
import type { Expression, FunctionArgument, Location } from '../syntax/statement.ts';
import type { Signature, Words } from './argument-spec.ts';
import type { Values } from './arguments.ts';

/** A call as it was written, with the condition of the statement that it stands in. */
export interface Call {
  readonly arguments: readonly FunctionArgument[];
  readonly where: Expression | null;
  /** The condition on the edges of a graph, in the names of their columns. */
  readonly edges?: Expression | null;
  readonly location: Location;
}

export interface FunctionScope {
  readonly words: Words;
  /** Null where only the call itself is inspected. */
  readonly catalog: CatalogReader | null;
}

/** A scope with the catalog. */
export type BoundScope = FunctionScope & { readonly catalog: CatalogReader };

/** A function that ranks the rows of a type yields the columns of the type, and behind them its own. */
export interface RankedType {
  readonly type: string;
  /** Columns that it ranks by. */
  readonly reads: readonly string[];
  /** Columns that the caller named: a masked one is refused, where others are left out. */
  readonly named: readonly string[];
  /** Texts that are searched for what an argument says: the last column that it reads is then how well a row matches. */
  readonly matches?: { readonly columns: readonly string[]; readonly argument: string };
}

export interface Opening {
  readonly node: FunctionNode;
  readonly values: Values;
  /** Rows of the type that it ranks, with the columns of `node.reads`; null for a function that ranks none. */
  readonly input: Operator | null;
  /** Scans of the edges of a graph, each begun when it is called; of the rows that are asked for alone, where keys say which. */
  readonly edges: readonly ((narrowings?: readonly Narrowing[]) => Operator)[];
  readonly execution: Execution;
  /** The result of `prepare`. */
  readonly prepared: unknown;
}

export interface TableFunction extends Signature {
  /** A summary of one sentence. */
  readonly summary: string;
  /** The action that policies are asked for. */
  readonly action: 'query' | 'search';
  /** Quota units of a call. */
  readonly units: number;
  /** The log alone determines its rows: its answer can be put on an exhibit. */
  readonly deterministic: boolean;
  /** A table name for all that it yields without arguments: it stands in FROM like a type. */
  readonly table?: string;
  /** A text column, and the argument that fixes its value: a condition on the one becomes the other. */
  readonly seeks?: { readonly column: string; readonly argument: string };
  /** Brings the ways in which a call may be written into that of `arguments`. Pure: literals have no value yet. */
  readonly arrange?: (call: Call) => Call;
  /** Types whose rows it reads: for the access record, guards and erasures. */
  types(scope: FunctionScope): readonly string[];
  /** Its own columns. */
  columns(scope: BoundScope): readonly PlanColumn[];
  /** The type whose rows it ranks; absent where its rows are its own. */
  ranks?(scope: BoundScope): RankedType;
  /** Computes a value from its words and the catalogue, which `open` reads as `node.bound`. */
  bind?(scope: BoundScope): unknown;
  /** The types and columns of the graph that a graph function reads. */
  graph?(scope: BoundScope): Omit<GraphInput, 'edges' | 'location' | 'isWhole'>;
  /** Awaits whatever the function needs before rows are read. */
  prepare?(opening: Omit<Opening, 'input' | 'edges' | 'prepared'>, signal: AbortSignal | undefined): Promise<unknown>;
  /** The operator: each `next()` is a bounded piece of work. */
  open(opening: Opening): Operator;
}
