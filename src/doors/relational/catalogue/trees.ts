/** What a question of the catalogue is made of, as it was written. */
import { ServiceError } from '../../../errors.ts';

/** A name with what stands before it: `pg_catalog.pg_class`, `c.oid`. */
export type Path = readonly string[];

export interface TypeName {
  readonly path: Path;
  /** Its last part stands in quotes. */
  readonly isQuoted: boolean;
  readonly isArray: boolean;
}

/** One source has its place in the text: characters from 0. */
export type Tree =
  | { readonly kind: 'literal'; readonly value: string | number | boolean | null }
  | { readonly kind: 'parameter'; readonly number: number }
  | { readonly kind: 'column'; readonly path: Path; readonly at: number }
  | { readonly kind: 'star'; readonly of: string | null; readonly at: number }
  | { readonly kind: 'field'; readonly of: Tree; readonly name: string }
  | { readonly kind: 'subscript'; readonly of: Tree; readonly index: Tree }
  | Call
  | { readonly kind: 'cast'; readonly of: Tree; readonly type: TypeName; readonly at: number }
  | { readonly kind: 'not'; readonly of: Tree }
  | { readonly kind: 'negative'; readonly of: Tree }
  | { readonly kind: 'logic'; readonly and: boolean; readonly items: readonly Tree[] }
  | { readonly kind: 'operator'; readonly op: string; readonly left: Tree; readonly right: Tree; readonly at: number }
  | { readonly kind: 'is'; readonly of: Tree; readonly what: boolean | null; readonly negated: boolean }
  | { readonly kind: 'distinct'; readonly left: Tree; readonly right: Tree; readonly negated: boolean }
  | {
      readonly kind: 'between';
      readonly of: Tree;
      readonly low: Tree;
      readonly high: Tree;
      readonly negated: boolean;
      readonly at: number;
    }
  | {
      readonly kind: 'in';
      readonly of: Tree;
      readonly items: readonly Tree[] | Select;
      readonly negated: boolean;
      readonly at: number;
    }
  | {
      readonly kind: 'quantified';
      readonly op: string;
      readonly all: boolean;
      readonly left: Tree;
      readonly right: Tree | Select;
      readonly at: number;
    }
  | {
      readonly kind: 'case';
      readonly of: Tree | null;
      readonly whens: readonly (readonly [when: Tree, then: Tree])[];
      readonly otherwise: Tree | null;
    }
  | { readonly kind: 'array'; readonly items: readonly Tree[] }
  | { readonly kind: 'row'; readonly items: readonly Tree[] }
  | { readonly kind: 'array-of' | 'scalar' | 'exists'; readonly select: Select };

export interface Call {
  readonly kind: 'call';
  readonly path: Path;
  readonly arguments: readonly Tree[];
  /** `count(*)`. */
  readonly star: boolean;
  readonly distinct: boolean;
  readonly orderBy: readonly Order[];
  readonly filter: Tree | null;
  readonly over: { readonly partition: readonly Tree[]; readonly orderBy: readonly Order[] } | null;
  readonly at: number;
}

export interface Order {
  readonly by: Tree;
  readonly descending: boolean;
  readonly nullsFirst: boolean;
}

export interface Select {
  readonly kind: 'select';
  readonly with: readonly Named[];
  readonly body: Body;
  readonly orderBy: readonly Order[];
  readonly limit: Tree | null;
  readonly offset: Tree | null;
}

export interface Named {
  readonly name: string;
  readonly columns: readonly string[];
  /** Its second part may name it: the rows that the round before added. */
  readonly isRecursive: boolean;
  readonly select: Select;
}

export type Body =
  | Core
  | Select
  | {
      readonly kind: 'set';
      readonly op: 'union' | 'intersect' | 'except';
      readonly all: boolean;
      readonly left: Body;
      readonly right: Body;
    }
  | { readonly kind: 'values'; readonly rows: readonly (readonly Tree[])[] };

export interface Core {
  readonly kind: 'core';
  /** A list: DISTINCT ON. */
  readonly distinct: boolean | readonly Tree[];
  readonly items: readonly Item[];
  readonly from: readonly From[];
  readonly where: Tree | null;
  readonly groupBy: readonly Tree[];
  readonly having: Tree | null;
}

export interface Item {
  readonly of: Tree;
  readonly alias: string | null;
}

export interface Alias {
  readonly name: string | null;
  readonly columns: readonly string[];
}

export type From =
  | { readonly kind: 'relation'; readonly path: Path; readonly alias: Alias; readonly at: number }
  | { readonly kind: 'derived'; readonly select: Select; readonly alias: Alias }
  | { readonly kind: 'function'; readonly call: Call; readonly ordinality: boolean; readonly alias: Alias }
  | {
      readonly kind: 'join';
      readonly type: 'inner' | 'left';
      readonly left: From;
      readonly right: From;
      readonly on: Tree | null;
      readonly using: readonly string[];
      /** It was written as RIGHT JOIN: the right side came first. */
      readonly swapped: boolean;
    };

/** More levels than anybody writes: what follows walks a tree by calling itself. */
const levelsMax = 1_000;

/** All that a question is made of, each once. REL_TOO_LARGE where it is nested, or chained, too deeply. */
export function nodesOf(select: Select | Body): readonly (Tree | From | Named)[] {
  const found: object[] = [];
  const open: [node: object, level: number][] = [[select, 0]];
  for (let next = open.pop(); next; next = open.pop()) {
    const [node, level] = next;
    if (level > levelsMax)
      throw new ServiceError('REL_TOO_LARGE', 'the question is nested too deeply, or one of its chains is too long');
    if (!Array.isArray(node)) found.push(node);
    for (const child of Object.values(node) as unknown[])
      if (typeof child === 'object' && child !== null) open.push([child, level + 1]);
  }
  return found as (Tree | From | Named)[];
}
