/** Graph patterns as trees. Pure data. */
import type { Location, Slot, StatedType } from './statement.ts';

export type Term =
  | { readonly kind: 'variable'; readonly name: string; readonly location: Location }
  | { readonly kind: 'property'; readonly of: Term; readonly name: string; readonly location: Location }
  | { readonly kind: 'element'; readonly of: Term; readonly at: Term; readonly location: Location }
  | { readonly kind: 'literal'; readonly slot: number; readonly typed?: StatedType; readonly location: Location }
  | { readonly kind: 'list'; readonly items: readonly Term[]; readonly location: Location }
  | {
      readonly kind: 'map';
      readonly entries: readonly { readonly name: string; readonly value: Term }[];
      readonly location: Location;
    }
  /** A function by its name in lower case, as in `functions`. */
  | { readonly kind: 'function'; readonly name: string; readonly arguments: readonly Term[]; readonly location: Location }
  | {
      readonly kind: 'aggregate';
      readonly function: PatternAggregate;
      /** null: count(*). */
      readonly of: Term | null;
      readonly distinct: boolean;
      readonly location: Location;
    }
  | {
      readonly kind: 'arithmetic';
      readonly op: ArithmeticOp;
      readonly left: Term;
      readonly right: Term;
      readonly location: Location;
    }
  | { readonly kind: 'negate'; readonly operand: Term; readonly location: Location }
  | {
      readonly kind: 'case';
      readonly operand: Term | null;
      readonly branches: readonly { readonly when: Term; readonly result: Term }[];
      readonly otherwise: Term | null;
      readonly location: Location;
    }
  | Condition;

export const aggregates = ['count', 'collect', 'sum', 'avg', 'min', 'max'] as const;
export type PatternAggregate = (typeof aggregates)[number];

export type Condition =
  | { readonly kind: 'and' | 'or' | 'xor'; readonly left: Term; readonly right: Term; readonly location: Location }
  | { readonly kind: 'not'; readonly operand: Term; readonly location: Location }
  | { readonly kind: 'compare'; readonly op: CompareOp; readonly left: Term; readonly right: Term; readonly location: Location }
  | {
      readonly kind: 'text';
      readonly op: 'starts' | 'ends' | 'contains';
      readonly left: Term;
      readonly right: Term;
      readonly location: Location;
    }
  | { readonly kind: 'in'; readonly left: Term; readonly list: Term; readonly location: Location }
  | { readonly kind: 'is-null'; readonly left: Term; readonly negated: boolean; readonly location: Location }
  /** A node is of each of these types. */
  | { readonly kind: 'labelled'; readonly of: string; readonly types: readonly string[]; readonly location: Location };

export type CompareOp = '=' | '!=' | '<' | '<=' | '>' | '>=';
export type ArithmeticOp = '+' | '-' | '*' | '/' | '%';

export interface PatternNode {
  /** null: it has no name. */
  readonly name: string | null;
  /** The node has one type of each of these lists; none: any type. */
  readonly labels: readonly (readonly string[])[];
  readonly properties: readonly { readonly name: string; readonly value: Term }[];
  readonly location: Location;
}

export interface PatternEdge {
  readonly name: string | null;
  /** Empty: of any type. */
  readonly types: readonly string[];
  readonly direction: 'out' | 'in' | 'both';
  /** Null: a single edge. An omitted bound is 1. */
  readonly hops: { readonly least: Slot | null; readonly most: Slot } | null;
  readonly properties: readonly { readonly name: string; readonly value: Term }[];
  readonly location: Location;
}

/** Nodes with edges between them: one more of the former. */
export interface PatternChain {
  /** null: the path has no name. */
  readonly name: string | null;
  readonly nodes: readonly PatternNode[];
  readonly edges: readonly PatternEdge[];
}

export interface Item {
  readonly term: Term;
  readonly name: string;
}

export type Clause =
  | {
      readonly kind: 'match';
      readonly optional: boolean;
      readonly chains: readonly PatternChain[];
      readonly where: Term | null;
      readonly location: Location;
    }
  | { readonly kind: 'unwind'; readonly list: Term; readonly name: string; readonly location: Location }
  | Projection;

export type Projection = {
  readonly kind: 'with' | 'return';
  readonly distinct: boolean;
  /** The projection begins with `*`: all names, and then the items. */
  readonly isAll: boolean;
  readonly items: readonly Item[];
  readonly orderBy: readonly { readonly term: Term; readonly descending: boolean }[];
  readonly skip: Slot | null;
  readonly limit: Slot | null;
  readonly where: Term | null;
  readonly location: Location;
};

/** A CREATE or MERGE clause: nodes that are not bound yet have a label, edges one type and a direction. */
export interface CreateClause {
  readonly kind: 'create' | 'merge';
  readonly chains: readonly PatternChain[];
  readonly location: Location;
}

export interface PatternWrite {
  readonly matches: readonly Clause[];
  readonly created: readonly CreateClause[];
  /** Null without RETURN. */
  readonly returned: Projection | null;
  readonly location: Location;
}
