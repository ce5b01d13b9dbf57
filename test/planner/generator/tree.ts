/**
 * Statements as the generator makes them: typed trees that two engines can be asked. Every node has a `kind`; what the
 * planner parses has types of its own, so that a mistake there can't hide here.
 */
export type Type = 'integer' | 'number' | 'string' | 'boolean' | 'timestamp';

/**
 * What is known of all values that an expression can take. `size` bounds the magnitude of a number: arithmetic stays far
 * from the edges, where engines differ. `grain` is how many binary places its fraction has at most: sums of such numbers
 * are exact in any order. Both are Infinity where nothing is known.
 */
export interface Facts {
  readonly type: Type;
  readonly size: number;
  readonly grain: number;
}

export type CompareOp = '=' | '!=' | '<' | '<=' | '>' | '>=';
export type ArithmeticOp = '+' | '-' | '*' | '/' | '%';
export type AggregateName = 'count' | 'sum' | 'avg' | 'min' | 'max';

export interface ColumnNode extends Facts {
  readonly kind: 'column';
  /** Null where the name alone is enough. */
  readonly table: string | null;
  readonly name: string;
}

/** Timestamps are bigint nanoseconds. */
export interface LiteralNode extends Facts {
  readonly kind: 'literal';
  readonly value: bigint | number | string | boolean | null;
}

export type Expr =
  | ColumnNode
  | LiteralNode
  | ({ readonly kind: 'arithmetic'; readonly op: ArithmeticOp; readonly left: Expr; readonly right: Expr } & Facts)
  | ({ readonly kind: 'negate'; readonly operand: Expr } & Facts)
  /** A timestamp moved by days. */
  | ({ readonly kind: 'shift'; readonly operand: Expr; readonly days: number } & Facts)
  | ({ readonly kind: 'now' } & Facts)
  | ({ readonly kind: 'compare'; readonly op: CompareOp; readonly left: Expr; readonly right: Expr } & Facts)
  | ({ readonly kind: 'distinct-from'; readonly left: Expr; readonly right: Expr; readonly negated: boolean } & Facts)
  /** Rows of as many expressions, in pairs of one type. */
  | ({
      readonly kind: 'row-compare';
      readonly op: CompareOp;
      readonly left: readonly Expr[];
      readonly right: readonly Expr[];
    } & Facts)
  | ({
      readonly kind: 'row-in';
      readonly row: readonly Expr[];
      readonly among: readonly RowNode[];
      readonly negated: boolean;
    } & Facts)
  | ({ readonly kind: 'logic'; readonly op: 'and' | 'or'; readonly left: Expr; readonly right: Expr } & Facts)
  | ({ readonly kind: 'not'; readonly operand: Expr } & Facts)
  | ({ readonly kind: 'is-null'; readonly operand: Expr; readonly negated: boolean } & Facts)
  | ({ readonly kind: 'in-list'; readonly operand: Expr; readonly items: readonly Expr[]; readonly negated: boolean } & Facts)
  | ({ readonly kind: 'in-query'; readonly operand: Expr; readonly query: QueryNode; readonly negated: boolean } & Facts)
  | ({ readonly kind: 'exists'; readonly query: QueryNode; readonly negated: boolean } & Facts)
  /** The only cell of a query. */
  | ({ readonly kind: 'scalar-query'; readonly query: QueryNode } & Facts)
  | ({
      readonly kind: 'quantified';
      readonly op: CompareOp;
      readonly all: boolean;
      readonly operand: Expr;
      readonly query: QueryNode;
    } & Facts)
  /** Of `calls.ts`. */
  | ({ readonly kind: 'call'; readonly name: string; readonly operands: readonly Expr[] } & Facts)
  | ({
      readonly kind: 'window';
      readonly function: AggregateName | 'rank' | 'dense_rank';
      readonly operand: Expr | null;
      readonly partition: readonly Expr[];
      readonly order: readonly Expr[];
      readonly whole: boolean;
    } & Facts)
  | ({
      readonly kind: 'between';
      readonly operand: Expr;
      readonly low: Expr;
      readonly high: Expr;
      readonly negated: boolean;
    } & Facts)
  | ({ readonly kind: 'like'; readonly operand: Expr; readonly pattern: LiteralNode; readonly negated: boolean } & Facts)
  | ({
      readonly kind: 'case';
      readonly operand: Expr | null;
      readonly branches: readonly Branch[];
      readonly otherwise: Expr | null;
    } & Facts)
  | ({
      readonly kind: 'aggregate';
      readonly function: AggregateName;
      /** Null is COUNT(*). */
      readonly operand: Expr | null;
      readonly distinct: boolean;
      /** Rows that it takes; absent: all. */
      readonly filter?: Expr | null;
    } & Facts);

export interface RowNode {
  readonly kind: 'row';
  readonly cells: readonly Expr[];
}

export interface Branch {
  readonly kind: 'branch';
  readonly when: Expr;
  readonly result: Expr;
}

export interface Item {
  readonly kind: 'item';
  readonly expression: Expr;
  readonly alias: string;
}

export type SourceNode =
  | { readonly kind: 'table'; readonly name: string; readonly alias: string }
  | { readonly kind: 'subquery'; readonly query: QueryNode; readonly alias: string }
  | {
      readonly kind: 'join';
      readonly type: 'inner' | 'left' | 'right' | 'full';
      readonly left: SourceNode;
      readonly right: SourceNode;
      readonly on: Expr;
      /** Columns that both sides have, in the place of the condition; none: each row with each. */
      readonly using?: readonly string[];
    }
  | {
      readonly kind: 'values';
      readonly alias: string;
      readonly columns: readonly string[];
      readonly rows: readonly (readonly LiteralNode[])[];
    };

export interface SelectNode {
  readonly kind: 'select';
  readonly distinct: boolean;
  /** Empty is `*`. */
  readonly items: readonly Item[];
  readonly from: SourceNode;
  readonly where: Expr | null;
  readonly groupBy: readonly Expr[];
  readonly having: Expr | null;
  /** Keys that are items are written as their places. */
  readonly byPlace?: boolean;
}

export type BodyNode =
  | SelectNode
  | {
      readonly kind: 'set-operation';
      readonly op: 'union' | 'union all' | 'intersect' | 'except';
      readonly left: BodyNode;
      readonly right: BodyNode;
    };

export interface CommonNode {
  readonly kind: 'common';
  readonly name: string;
  readonly columns: readonly string[];
  readonly recursive: boolean;
  readonly query: QueryNode;
}

export interface OrderNode {
  readonly kind: 'order';
  /** Alias of an item. */
  readonly column: string;
  readonly descending: boolean;
  readonly nullsFirst?: boolean;
  /** Written as the place of the item. */
  readonly byPlace?: boolean;
}

/** One AS OF holds for a whole statement; on an inner query it is null. */
export type AsOfNode =
  | { readonly kind: 'as-of'; readonly axis: 'valid' | 'system'; readonly instant: bigint }
  | { readonly kind: 'as-of'; readonly axis: 'current' };

export interface QueryNode {
  readonly kind: 'query';
  readonly with: readonly CommonNode[];
  readonly body: BodyNode;
  readonly asOf: AsOfNode | null;
  readonly orderBy: readonly OrderNode[];
  readonly limit: number | null;
}

/** Any object of a tree. */
export interface TreeNode {
  readonly kind: string;
}

export const isNode = (value: unknown): value is TreeNode => typeof value === 'object' && value !== null && 'kind' in value;

/** Every node, parents before children. */
export function* nodesOf(root: TreeNode): Generator<TreeNode> {
  yield root;
  for (const value of Object.values(root) as unknown[]) {
    for (const each of Array.isArray(value) ? (value as unknown[]) : [value]) if (isNode(each)) yield* nodesOf(each);
  }
}

/** The items whose aliases and types are those of the answer. */
export function outputsOf(body: BodyNode): readonly Item[] {
  return body.kind === 'select' ? body.items : outputsOf(body.left);
}

/** What is known of the columns of an answer, whichever arm a row came from. */
export function outputFacts(body: BodyNode): Facts[] {
  if (body.kind === 'select') return body.items.map(({ expression: { type, size, grain } }) => ({ type, size, grain }));
  const right = outputFacts(body.right);
  return outputFacts(body.left).map(({ type, size, grain }, i) => ({
    type,
    size: Math.max(size, right[i]!.size),
    grain: Math.max(grain, right[i]!.grain),
  }));
}

/** Ordered by everything that is shown: rows that tie are equal, so the sequence is decided. */
export function totallyOrdered(query: QueryNode): boolean {
  const ordered = new Set(query.orderBy.map(({ column }) => column));
  const outputs = outputsOf(query.body);
  return outputs.length > 0 && outputs.every(({ alias }) => ordered.has(alias));
}
