/** What a question of the catalogue is made of, as it was written. */

/** A name with what stands before it: `pg_catalog.pg_class`, `c.oid`. */
export type Path = readonly string[];

export interface TypeName {
  readonly path: Path;
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
  | { readonly kind: 'logic'; readonly and: boolean; readonly left: Tree; readonly right: Tree }
  | { readonly kind: 'operator'; readonly op: string; readonly left: Tree; readonly right: Tree; readonly at: number }
  | { readonly kind: 'is'; readonly of: Tree; readonly what: boolean | null; readonly negated: boolean }
  | { readonly kind: 'distinct'; readonly left: Tree; readonly right: Tree; readonly negated: boolean }
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

/** Each tree once, and those of the questions within it. */
export function* treesOf(select: Select): Generator<Tree | From | Named> {
  for (const named of select.with) {
    yield named;
    yield* treesOf(named.select);
  }
  yield* ofBody(select.body);
  for (const { by } of select.orderBy) yield* ofTree(by);
  if (select.limit) yield* ofTree(select.limit);
  if (select.offset) yield* ofTree(select.offset);
}

function* ofBody(body: Body): Generator<Tree | From | Named> {
  switch (body.kind) {
    case 'select':
      return yield* treesOf(body);
    case 'set':
      yield* ofBody(body.left);
      return yield* ofBody(body.right);
    case 'values':
      for (const row of body.rows) for (const tree of row) yield* ofTree(tree);
      return;
    case 'core':
      for (const { of } of body.items) yield* ofTree(of);
      for (const from of body.from) yield* ofFrom(from);
      for (const tree of body.groupBy) yield* ofTree(tree);
      if (body.distinct instanceof Array) for (const tree of body.distinct) yield* ofTree(tree);
      if (body.where) yield* ofTree(body.where);
      if (body.having) yield* ofTree(body.having);
  }
}

function* ofFrom(from: From): Generator<Tree | From | Named> {
  yield from;
  if (from.kind === 'derived') yield* treesOf(from.select);
  else if (from.kind === 'function') yield* ofTree(from.call);
  else if (from.kind === 'join') {
    yield* ofFrom(from.left);
    yield* ofFrom(from.right);
    if (from.on) yield* ofTree(from.on);
  }
}

function* ofTree(tree: Tree): Generator<Tree | From | Named> {
  yield tree;
  for (const child of childrenOf(tree)) yield* child.kind === 'select' ? treesOf(child) : ofTree(child);
}

/** What stands directly within one. */
export function childrenOf(tree: Tree): readonly (Tree | Select)[] {
  switch (tree.kind) {
    case 'literal':
    case 'parameter':
    case 'column':
    case 'star':
      return [];
    case 'field':
    case 'cast':
    case 'not':
    case 'negative':
    case 'is':
      return [tree.of];
    case 'subscript':
      return [tree.of, tree.index];
    case 'call': {
      const sorts = [...tree.orderBy, ...(tree.over?.orderBy ?? [])].map(({ by }) => by);
      return [...tree.arguments, ...sorts, ...(tree.over?.partition ?? []), ...(tree.filter ? [tree.filter] : [])];
    }
    case 'logic':
    case 'operator':
    case 'distinct':
    case 'quantified':
      return [tree.left, tree.right];
    case 'in':
      return [tree.of, ...('kind' in tree.items ? [tree.items] : tree.items)];
    case 'case':
      return [...(tree.of ? [tree.of] : []), ...tree.whens.flat(), ...(tree.otherwise ? [tree.otherwise] : [])];
    case 'array':
    case 'row':
      return tree.items;
    case 'array-of':
    case 'scalar':
    case 'exists':
      return [tree.select];
  }
}
