/**
 * What stands behind FROM, and how its rows come together. A condition goes to where all that it names is there; where it says that a
 * column equals what is known by then, rows are looked up by it, so that no product of a large schema is made.
 */
import { ServiceError } from '../../../errors.ts';
import { Expressions } from './expressions.ts';
import { functionOf } from './functions.ts';
import type { Row } from '../../../planner/virtual/maker.ts';
import { type Relation, relations } from '../../../planner/virtual/relations.ts';
import {
  type Environment,
  type Expression,
  type Frame,
  indexed,
  type NamedPlan,
  type Pausing,
  type Plan,
  type PlanColumn,
  refusal,
  type Scope,
  type Source,
} from './scope.ts';
import type { From, Path, Tree } from './trees.ts';
import { commonOf, type Value } from '../../../planner/virtual/types.ts';

/** Sources of a FROM as they are joined, and the order in which `*` has them. */
export type Node = Leaf | JoinNode;

interface JoinNode {
  readonly kind: 'join';
  readonly type: 'inner' | 'left';
  readonly left: Node;
  readonly right: Node;
  readonly slots: number;
  /** Told of what the join has yielded. */
  readonly after: Expression[];
}

interface Leaf {
  readonly kind: 'leaf';
  readonly source: Source;
  readonly slots: number;
  readonly from: LeafSource;
  readonly filters: Expression[];
  /** A column that equals something that is known before a row of it is read. */
  lookup: { readonly column: number; readonly key: Expression } | null;
}

type LeafSource =
  | { readonly kind: 'relation'; readonly relation: Relation }
  | { readonly kind: 'named'; readonly plan: NamedPlan }
  | { readonly kind: 'plan'; readonly plan: Plan; kept: Kept | null }
  | { readonly kind: 'set'; readonly rows: (frame: Frame) => readonly Row[] };

interface Kept {
  readonly rows: readonly Row[];
  readonly indexes: Map<number, ReadonlyMap<Value, readonly Row[]>>;
}

export function sourceNodes(env: Environment, scope: Scope, froms: readonly From[]): Node[] {
  return froms.map((from) => nodeOf(env, scope, from));
}

/**
 * All of them joined, as far as may be so that each has a column that equals what is known by then: `FROM a, b, c` says nothing of
 * an order. null: there are none.
 */
export function joinedNodes(nodes: readonly Node[], conditions: readonly Condition[]): Node | null {
  const left = [...nodes];
  const isFree = nodes.every(isPlain);
  let all: Node | null = null;
  while (left.length > 0) {
    const known: number = all?.slots ?? 0;
    const found = isFree ? left.findIndex((node) => conditions.some((each) => leadsTo(each, node, known))) : 0;
    const [node] = left.splice(Math.max(0, found), 1);
    all = all === null ? node! : join('inner', all, node!);
  }
  for (const each of all ? conditions : []) attach(all!, 0, each);
  return all;
}

const leadsTo = ({ equals }: Condition, node: Node, known: number): boolean =>
  equals.some(({ of, touches }) => ((1 << of.column!.slot) & node.slots) !== 0 && (touches & ~known) === 0);

/** It reads no row of a source that stands before it. */
function isPlain(node: Node): boolean {
  if (node.kind === 'join') return isPlain(node.left) && isPlain(node.right);
  return node.from.kind === 'relation' || node.from.kind === 'named';
}

const join = (type: 'inner' | 'left', left: Node, right: Node): JoinNode => ({
  kind: 'join',
  type,
  left,
  right,
  slots: left.slots | right.slots,
  after: [],
});

function nodeOf(env: Environment, scope: Scope, from: From): Node {
  switch (from.kind) {
    case 'relation': {
      const named = from.path.length === 1 ? scope.named.get(from.path[0]!) : undefined;
      const alias = from.alias.name ?? from.path.at(-1)!;
      const within = named?.changesWithin();
      if (within !== undefined && within !== false) scope.changesWithin(within);
      if (named) return leaf(scope, alias, renamed(named.columns, from.alias.columns), { kind: 'named', plan: named });
      const relation = relationNamed(from.path);
      if (!relation)
        throw refusal(
          'REL_NOT_IMPLEMENTED',
          `the relation ${from.path.join('.')} is not there: the catalogue has some of Postgres'`,
          from.at,
          env.text,
        );
      return leaf(scope, alias, renamed(relation.columns, from.alias.columns), { kind: 'relation', relation });
    }
    case 'derived': {
      const plan = env.select(from.select, scope, scope.named);
      return leaf(scope, from.alias.name ?? '', renamed(plan.columns, from.alias.columns), { kind: 'plan', plan, kept: null });
    }
    case 'function':
      return called(env, scope, from);
    case 'join':
      return joined(env, scope, from);
  }
}

function joined(env: Environment, scope: Scope, from: Extract<From, { kind: 'join' }>): Node {
  const first = scope.sources.length;
  // As they were written: `*` has their columns in that order.
  const one = nodeOf(env, scope, from.swapped ? from.right : from.left);
  const middle = scope.sources.length;
  const other = nodeOf(env, scope, from.swapped ? from.left : from.right);
  const node = from.swapped ? join(from.type, other, one) : join(from.type, one, other);
  const [before, behind] = [scope.sources.slice(first, middle), scope.sources.slice(middle)];
  const merged = from.using.map((name) => using(before, behind, name));
  const conditions = [...(from.on === null ? [] : conjunctsOf(from.on).map((tree) => condition(env, scope, tree))), ...merged];
  // ON says which rows of the right side belong to one of the left.
  for (const each of conditions) attach(node.right, node.left.slots, each);
  return node;
}

/** Both sides have the column; `*` and its bare name mean that of the left one. */
function using(before: readonly Source[], behind: readonly Source[], name: string): Condition {
  const [left, right] = [before, behind].map((sources) => {
    const found = sources.find(({ columns, merged }) => !merged.has(name) && columns.some((column) => column.name === name));
    if (!found) throw new ServiceError('REL_UNKNOWN_COLUMN', `USING: ${JSON.stringify(name)} is no column of both sides`);
    const index = found.columns.findIndex((column) => column.name === name);
    const of = ({ rows }: Frame): Value => rows[found.slot]?.[index] ?? null;
    return { source: found, expression: { type: found.columns[index]!.type, of, column: { slot: found.slot, index } } };
  }) as [{ source: Source; expression: Expression }, { source: Source; expression: Expression }];
  right.source.merged.add(name);
  const compared = equal(left.expression, right.expression);
  return {
    expression: compared,
    touches: (1 << left.source.slot) | (1 << right.source.slot),
    equals: [{ of: right.expression, with: left.expression, touches: 1 << left.source.slot }],
  };
}

function equal(left: Expression, right: Expression): Expression {
  if (commonOf(left.type, right.type) === null)
    throw new ServiceError('REL_NOT_IMPLEMENTED', `USING of ${left.type} and ${right.type} is not implemented`);
  return {
    type: 'bool',
    of: (frame) => {
      const [a, b] = [left.of(frame), right.of(frame)];
      return a === null || b === null ? null : a === b;
    },
  };
}

function called(env: Environment, scope: Scope, { call, ordinality, alias }: Extract<From, { kind: 'function' }>): Leaf {
  const name = call.path.at(-1)!;
  const found = functionOf(name, call.arguments.length);
  if (found === null || call.star || call.distinct || call.over || call.filter)
    throw refusal(
      'REL_NOT_IMPLEMENTED',
      `the function ${name}() of ${call.arguments.length} arguments is not implemented`,
      call.at,
      env.text,
    );
  const expressions = new Expressions(env, scope, null);
  const values = expressions.called(
    found,
    call.arguments.map((each) => expressions.compile(each)),
    call.at,
  );
  const own: PlanColumn[] = values.type === 'record' ? [...found.fields] : [{ name: alias.name ?? name, type: values.type }];
  const columns = ordinality ? [...own, { name: 'ordinality', type: 'int8' }] : own;
  const rows = (frame: Frame): Row[] => {
    const result = values.of(frame);
    const list = !found.isSet ? [result] : ((result as Value[] | null) ?? []);
    return list.map((value, i) => {
      const cells =
        value !== null && typeof value === 'object' && 'fields' in value
          ? own.map((field) => value.fields[field.name]!)
          : [value];
      return ordinality ? [...cells, i + 1] : cells;
    });
  };
  return leaf(scope, alias.name ?? name, renamed(columns, alias.columns), { kind: 'set', rows });
}

function leaf(scope: Scope, alias: string, columns: readonly PlanColumn[], from: LeafSource): Leaf {
  const source = scope.add(alias, columns, from.kind === 'relation' ? from.relation.oid : null);
  return { kind: 'leaf', source, slots: 1 << source.slot, from, filters: [], lookup: null };
}

function renamed(columns: readonly PlanColumn[], names: readonly string[]): readonly PlanColumn[] {
  if (names.length > columns.length)
    throw new ServiceError('REL_PARSE', `a source of ${columns.length} columns is given ${names.length} names`);
  return columns.map(({ name, type }, i) => ({ name: names[i] ?? name, type }));
}

/** With or without the schema; null: there is none of that name. */
export function relationNamed(path: Path): Relation | null {
  if (path.length === 1) return relations.get(`pg_catalog.${path[0]!}`) ?? null;
  return path.length === 2 ? (relations.get(path.join('.')) ?? null) : null;
}

export function conjunctsOf(tree: Tree): Tree[] {
  return tree.kind === 'logic' && tree.and ? tree.items.flatMap(conjunctsOf) : [tree];
}

/** Something that has to be true of a frame, and the slots that it reads. */
export interface Condition {
  readonly expression: Expression;
  readonly touches: number;
  /** Columns that equal something, where it says nothing else. */
  readonly equals: readonly { readonly of: Expression; readonly with: Expression; readonly touches: number }[];
}

export function condition(env: Environment, scope: Scope, tree: Tree): Condition {
  const expressions = new Expressions(env, scope, null);
  const touching = <T>(run: () => T): readonly [T, number] => {
    const before = scope.touched;
    scope.touched = 0;
    const value = run();
    const { touched } = scope;
    scope.touched = before | touched;
    return [value, touched];
  };
  const [expression, touches] = touching(() => expressions.coerce(expressions.compile(tree), 'bool'));
  if (tree.kind !== 'operator' || tree.op !== '=' || tree.left.kind === 'row') return { expression, touches, equals: [] };
  const [left, ofLeft] = touching(() => expressions.compile(tree.left));
  const [right, ofRight] = touching(() => expressions.compile(tree.right));
  const common = commonOf(left.type, right.type)!;
  const brought = (of: Expression): Expression => expressions.coerce(of, common === 'unknown' ? 'text' : common);
  const equals = [
    { of: left, with: brought(right), touches: ofRight },
    { of: right, with: brought(left), touches: ofLeft },
  ];
  return { expression, touches, equals: equals.filter(({ of }) => of.column !== undefined) };
}

/** Puts a condition where all that it names is there: `known` are slots that stand to the left of the node. */
function attach(node: Node, known: number, each: Condition): void {
  const { touches } = each;
  if (node.kind === 'leaf') {
    const found = each.equals.find(
      ({ of, touches: needs }) => of.column!.slot === node.source.slot && (needs & node.slots) === 0 && (needs & ~known) === 0,
    );
    if (found && node.lookup === null && node.from.kind !== 'set')
      node.lookup = { column: found.of.column!.index, key: found.with };
    node.filters.push(each.expression);
    return;
  }
  if ((touches & ~(known | node.left.slots)) === 0 && (touches & node.left.slots) !== 0) return attach(node.left, known, each);
  if (node.type === 'inner') return attach(node.right, known | node.left.slots, each);
  node.after.push(each.expression);
}

const passes = (filters: readonly Expression[], frame: Frame): boolean => filters.every((filter) => filter.of(frame) === true);

/** Frames of which all this is true. */
export function* passing({ work }: Environment, filters: readonly Expression[], frames: readonly Frame[]): Pausing<Frame[]> {
  const found: Frame[] = [];
  for (const frame of frames) {
    work.step();
    if (work.endsTurn()) yield;
    if (yield* work.evaluated(() => passes(filters, frame))) found.push(frame);
  }
  return found;
}

/** Frames with the rows of a node beside those that they have. */
export function* expanded(env: Environment, node: Node, frames: readonly Frame[]): Pausing<Frame[]> {
  if (node.kind === 'leaf') return yield* leafFrames(env, node, frames);
  const lefts = yield* expanded(env, node.left, frames);
  let found: Frame[];
  if (node.type === 'inner') found = yield* expanded(env, node.right, lefts);
  else {
    found = [];
    for (const left of lefts) {
      const matches = yield* expanded(env, node.right, [left]);
      if (matches.length > 0) for (const match of matches) found.push(match);
      else found.push(left);
      env.work.step();
      if (env.work.endsTurn()) yield;
    }
  }
  return node.after.length === 0 ? found : yield* passing(env, node.after, found);
}

function* leafFrames(env: Environment, node: Leaf, frames: readonly Frame[]): Pausing<Frame[]> {
  const { work } = env;
  const { slot } = node.source;
  const found: Frame[] = [];
  for (const frame of frames) {
    for (const row of yield* rowsOf(env, node, frame)) {
      work.step();
      if (work.endsTurn()) yield;
      const rows = frame.rows.slice();
      rows[slot] = row;
      const joined = { rows, extras: frame.extras, outer: frame.outer };
      if (!(yield* work.evaluated(() => passes(node.filters, joined)))) continue;
      found.push(joined);
      work.checkRows(found.length);
    }
  }
  return found;
}

function* rowsOf(env: Environment, { from, lookup }: Leaf, frame: Frame): Pausing<Iterable<Row>> {
  const { work } = env;
  switch (from.kind) {
    case 'relation':
      return lookup ? yield* work.lookUp(from.relation, lookup.column, lookup.key.of(frame)) : yield* work.scan(from.relation);
    case 'set':
      return from.rows(frame);
    case 'named':
      return yield* from.plan.rows();
    case 'plan': {
      if (from.plan.isCorrelated()) return yield* from.plan.rows(frame);
      const { rows, indexes } = yield* keptOf(env, from, frame);
      if (!lookup) return rows;
      let index = indexes.get(lookup.column);
      if (!index) indexes.set(lookup.column, (index = indexed(rows, lookup.column)));
      return index.get(lookup.key.of(frame)) ?? [];
    }
  }
}

function* keptOf(env: Environment, from: Extract<Leaf['from'], { kind: 'plan' }>, frame: Frame): Pausing<Kept> {
  if (from.kept === null) env.work.needs(() => keptOf(env, from, frame));
  return (from.kept ??= { rows: yield* from.plan.rows(frame), indexes: new Map() });
}
