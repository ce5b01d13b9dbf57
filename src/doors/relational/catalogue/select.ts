/** Plans of questions of the catalogue: from the trees of a SELECT to its rows. */
import { ServiceError } from '../../../errors.ts';
import { computed } from './aggregates.ts';
import { type Extras, Expressions } from './expressions.ts';
import type { Facts } from '../../../planner/virtual/facts.ts';
import type { Row } from '../../../planner/virtual/maker.ts';
import { CatalogueNames } from '../../../planner/virtual/names.ts';
import {
  type Environment,
  type Expression,
  type Frame,
  type NamedPlan,
  type Pausing,
  type Plan,
  type PlanColumn,
  type Parameters,
  Scope,
  Work,
} from './scope.ts';
import { compareKeys, compareValues, type SortKey } from './sorting.ts';
import { condition, conjunctsOf, expanded, joinedNodes, passing, sourceNodes } from './sources.ts';
import { type Body, type Core, type Item, type Named, nodesOf, type Order, type Select, type Tree } from './trees.ts';
import { castOf, commonOf, typeNamed, type Value } from '../../../planner/virtual/types.ts';

type NamedPlans = ReadonlyMap<string, NamedPlan>;

/** A question over what there is: its plan, and what its parts share. */
export function planQuestion(facts: Facts, asked: { readonly text: string; readonly select: Select }, parameters: Parameters) {
  const context = { facts, names: new CatalogueNames(facts) };
  const env: Environment = {
    ...context,
    text: asked.text,
    work: new Work(context),
    parameters,
    select: (inner, outer, named) => planSelect(env, inner, outer, named),
  };
  return { plan: planSelect(env, asked.select, null, new Map()), env };
}

function planSelect(env: Environment, select: Select, outer: Scope | null, named: NamedPlans): Plan {
  const known = new Map(named);
  let around: Frame | null = null;
  for (const each of select.with) {
    const plan = (each.isRecursive ? planRecursive(env, each, outer, known) : null) ?? env.select(each.select, outer, known);
    known.set(
      each.name,
      namedPlan(env.work, plan, each.columns, outer, () => around),
    );
  }
  const { body } = select;
  const own =
    body.kind === 'core'
      ? planCore(env, body, select.orderBy, outer, known)
      : sortedBody(env, body, select.orderBy, outer, known);
  const plan: Plan = {
    ...own,
    rows(frame) {
      around = frame;
      return own.rows(frame);
    },
  };
  if (select.limit === null && select.offset === null) return plan;
  const expressions = new Expressions(env, new Scope(outer, known), null);
  const [limit, offset] = [select.limit, select.offset].map(
    (tree) => tree && expressions.coerce(expressions.compile(tree), 'int8'),
  );
  return {
    ...plan,
    *rows(frame) {
      const rows = yield* plan.rows(frame);
      const at = { rows: [], extras: [], outer: frame };
      const [first, most] = [(offset?.of(at) ?? 0) as number, (limit?.of(at) ?? null) as number | null];
      return rows.slice(Math.max(0, first), most === null ? undefined : Math.max(0, first) + Math.max(0, most));
    },
  };
}

/** The rows of the first part, then those of the second over what the round before added, until a round adds nothing. */
function planRecursive(env: Environment, { name, columns, select }: Named, outer: Scope | null, known: NamedPlans): Plan | null {
  const { body } = select;
  if (body.kind !== 'set' || body.op !== 'union' || !readsNamed(body.right, name)) return null;
  const base = planBody(env, body.left, outer, known);
  const shape = base.columns.map((column, i) => ({
    name: columns[i] ?? column.name,
    type: column.type === 'unknown' ? 'text' : column.type,
  }));
  let added: readonly Row[] = [];
  const working: NamedPlan = {
    columns: shape,
    changesWithin: () => outer,
    *rows() {
      yield;
      return added;
    },
  };
  const step = planBody(env, body.right, outer, new Map([...known, [name, working]]));
  if (step.columns.length !== shape.length) throw new ServiceError('REL_PARSE', 'both sides of UNION have as many columns');
  const shaped = (plan: Plan): ((row: Row) => Row) => {
    const casts = plan.columns.map(({ type }, i) => {
      const cast = commonOf(type, shape[i]!.type) === null ? null : castOf(type, shape[i]!.type, env.names);
      if (cast === null)
        throw new ServiceError('REL_TYPE_MISMATCH', `column ${i + 1} of the recursion is ${shape[i]!.type}, then ${type}`);
      return cast;
    });
    return (row) => row.map((value, i) => casts[i]!(value));
  };
  const [ofBase, ofStep] = [shaped(base), shaped(step)];
  return {
    columns: shape,
    isCorrelated: () => base.isCorrelated() || step.isCorrelated(),
    *rows(frame) {
      const seen = new Set<string>();
      const fresh = (rows: readonly Row[]): readonly Row[] =>
        body.all ? rows : distinct([...rows]).filter((row) => seen.size < seen.add(keyOf(row)).size);
      const all: Row[] = [];
      added = fresh((yield* base.rows(frame)).map(ofBase));
      while (added.length > 0) {
        for (const row of added) all.push(row);
        env.work.checkRows(all.length);
        yield;
        added = fresh((yield* step.rows(frame)).map(ofStep));
      }
      return all;
    },
  };
}

const readsNamed = (body: Body, name: string): boolean =>
  nodesOf(body).some((each) => 'kind' in each && each.kind === 'relation' && each.path.length === 1 && each.path[0] === name);

function namedPlan(work: Work, plan: Plan, names: readonly string[], outer: Scope | null, around: () => Frame | null): NamedPlan {
  let kept: readonly Row[] | null = null;
  const rows = function* (): Pausing<readonly Row[]> {
    if (plan.isCorrelated()) return yield* plan.rows(around());
    if (kept === null) work.needs(rows);
    return (kept ??= yield* plan.rows(null));
  };
  return {
    columns: plan.columns.map(({ name, type }, i) => ({ name: names[i] ?? name, type })),
    changesWithin: () => plan.isCorrelated() && outer,
    rows,
  };
}

/** UNION and its like, VALUES, or a SELECT in parentheses: sorted by what comes out of them. */
function sortedBody(
  env: Environment,
  body: Exclude<Body, Core>,
  orders: readonly Order[],
  outer: Scope | null,
  named: NamedPlans,
): Plan {
  const plan = planBody(env, body, outer, named);
  if (orders.length === 0) return plan;
  const keys = orders.map(({ by, descending, nullsFirst }) => {
    const place = placeIn(plan.columns, by);
    if (place === null)
      throw new ServiceError('REL_NOT_IMPLEMENTED', 'what UNION yields is sorted by its columns, not by expressions');
    return { place, descending, nullsFirst };
  });
  return {
    ...plan,
    *rows(frame) {
      const rows = yield* plan.rows(frame);
      return rows.sort((a, b) => {
        for (const key of keys) {
          const order = compareValues(key, a[key.place]!, b[key.place]!);
          if (order !== 0) return order;
        }
        return 0;
      });
    },
  };
}

/** The column that ORDER BY names by its number or its name; null: neither. */
function placeIn(columns: readonly PlanColumn[], by: Tree): number | null {
  if (by.kind === 'literal' && typeof by.value === 'number') {
    if (!Number.isInteger(by.value) || by.value < 1 || by.value > columns.length)
      throw new ServiceError('REL_PARSE', `ORDER BY ${by.value}: there are ${columns.length} columns`);
    return by.value - 1;
  }
  if (by.kind !== 'column' || by.path.length > 1) return null;
  const found = columns.findIndex(({ name }) => name === by.path[0]);
  return found < 0 ? null : found;
}

function planBody(env: Environment, body: Body, outer: Scope | null, named: NamedPlans): Plan {
  switch (body.kind) {
    case 'core':
      return planCore(env, body, [], outer, named);
    case 'select':
      return planSelect(env, body, outer, named);
    case 'values':
      return planValues(env, body.rows, outer, named);
    case 'set':
      return planSet(env, body, outer, named);
  }
}

function planValues(env: Environment, trees: readonly (readonly Tree[])[], outer: Scope | null, named: NamedPlans): Plan {
  const scope = new Scope(outer, named);
  const expressions = new Expressions(env, scope, null);
  const width = trees[0]!.length;
  if (trees.some(({ length }) => length !== width))
    throw new ServiceError('REL_PARSE', 'rows of VALUES have the same number of columns');
  const rows = trees.map((row) => row.map((tree) => expressions.compile(tree)));
  const types = trees[0]!.map((_, i) => rows.reduce((type, row) => typeTogether(type, row[i]!.type), 'unknown'));
  const cells = rows.map((row) => row.map((each, i) => expressions.coerce(each, types[i] === 'unknown' ? 'text' : types[i]!)));
  return {
    columns: types.map((type, i) => ({ name: `column${i + 1}`, type: type === 'unknown' ? 'text' : type })),
    isCorrelated: () => scope.isCorrelated,
    *rows(frame) {
      const at = { rows: [], extras: [], outer: frame };
      const rows: Row[] = [];
      for (const row of cells) {
        rows.push(yield* env.work.evaluated(() => row.map((each) => each.of(at))));
        env.work.step();
        if (env.work.endsTurn()) yield;
      }
      return rows;
    },
  };
}

function typeTogether(a: string, b: string): string {
  const common = commonOf(a, b);
  if (common === null) throw new ServiceError('REL_NOT_IMPLEMENTED', `${a} and ${b} in one column are not implemented`);
  return common;
}

function planSet(
  env: Environment,
  { op, all, left, right }: Extract<Body, { kind: 'set' }>,
  outer: Scope | null,
  named: NamedPlans,
): Plan {
  const [a, b] = [planBody(env, left, outer, named), planBody(env, right, outer, named)];
  if (a.columns.length !== b.columns.length)
    throw new ServiceError('REL_PARSE', `both sides of ${op.toUpperCase()} have as many columns`);
  const columns = a.columns.map(({ name, type }, i) => {
    const common = typeTogether(type, b.columns[i]!.type);
    return { name, type: common === 'unknown' ? 'text' : common };
  });
  const brought = (plan: Plan): ((row: Row) => Row) => {
    const casts = plan.columns.map(({ type }, i) => castOf(type, columns[i]!.type, env.names)!);
    return (row) => row.map((value, i) => casts[i]!(value));
  };
  const [ofLeft, ofRight] = [brought(a), brought(b)];
  return {
    columns,
    isCorrelated: () => a.isCorrelated() || b.isCorrelated(),
    *rows(frame) {
      const lefts = (yield* a.rows(frame)).map(ofLeft);
      const rights = (yield* b.rows(frame)).map(ofRight);
      if (op === 'union') return all ? [...lefts, ...rights] : distinct([...lefts, ...rights]);
      if (all) throw new ServiceError('REL_NOT_IMPLEMENTED', `${op.toUpperCase()} ALL is not implemented`);
      const keys = new Set(rights.map(keyOf));
      return distinct(lefts).filter((row) => keys.has(keyOf(row)) === (op === 'intersect'));
    },
  };
}

const keyOf = (values: readonly Value[]): string => JSON.stringify(values);
const distinct = (rows: readonly Row[]): Row[] => [...new Map(rows.map((row) => [keyOf(row), row])).values()];

interface Output {
  readonly row: Row;
  readonly keys: readonly Value[];
}

function planCore(env: Environment, core: Core, orders: readonly Order[], outer: Scope | null, named: NamedPlans): Plan {
  const scope = new Scope(outer, named);
  const nodes = sourceNodes(env, scope, core.from);
  const conditions = (core.where ? conjunctsOf(core.where) : []).map((tree) => condition(env, scope, tree));
  const node = joinedNodes(nodes, conditions);
  const constant = node ? [] : conditions.map(({ expression }) => expression);
  const extras: Extras = { aggregates: [], windows: [], sets: [] };
  const expressions = new Expressions(env, scope, extras);
  const items = core.items.flatMap((item) => itemsOf(scope, item));
  // What no type is told of is text.
  const cells = items
    .map(({ of }) => expressions.compile(of))
    .map((each) => (each.type === 'unknown' ? expressions.coerce(each, 'text') : each));
  const columns = items.map(({ of, alias }, i) => ({ name: alias ?? nameOf(of), type: cells[i]!.type }));
  const inner = new Expressions(env, scope, null);
  const groups = core.groupBy.map((tree) => {
    const place =
      tree.kind === 'column' && tree.path.length === 1 && hasColumn(scope, tree.path[0]!) ? null : placeIn(columns, tree);
    return place === null ? inner.compile(tree) : inner.compile(items[place]!.of);
  });
  const having = core.having && expressions.coerce(expressions.compile(core.having), 'bool');
  const sorts = orders.map(({ by, descending, nullsFirst }) => {
    const place = placeIn(columns, by);
    return { of: place === null ? expressions.compile(by) : cells[place]!, descending, nullsFirst };
  });
  const once = core.distinct instanceof Array ? core.distinct.map((tree) => expressions.compile(tree)) : null;
  const isGrouped = groups.length > 0 || extras.aggregates.length > 0 || having !== null;
  const width = scope.sources.length;
  return {
    columns,
    isCorrelated: () => scope.isCorrelated,
    *rows(outerFrame) {
      const start: Frame = { rows: Array.from({ length: width }, () => null), extras: [], outer: outerFrame };
      let frames = constant.every((each) => each.of(start) === true) ? [start] : [];
      if (node) frames = yield* expanded(env, node, frames);
      if (isGrouped) frames = grouped(extras, groups, frames, start);
      if (having) frames = yield* passing(env, [having], frames);
      for (const window of extras.windows) number(window, frames);
      if (extras.sets.length > 0) frames = frames.flatMap((frame) => unfolded(extras, frame));
      const outputs: Output[] = [];
      for (const frame of frames) {
        env.work.step();
        if (env.work.endsTurn()) yield;
        const output = (): Output => ({
          row: cells.map((each) => each.of(frame)),
          keys: [...sorts.map(({ of }) => of.of(frame)), ...(once ?? []).map((each) => each.of(frame))],
        });
        outputs.push(yield* env.work.evaluated(output));
      }
      if (sorts.length > 0) outputs.sort((a, b) => compareOutputs(sorts, a, b));
      if (once) return [...firstOnly(outputs, sorts.length)];
      const rows = outputs.map(({ row }) => row);
      return core.distinct === true ? distinct(rows) : rows;
    },
  };
}

/** DISTINCT ON: the first row of each, in the order of rows. */
function* firstOnly(outputs: readonly Output[], from: number): Generator<Row> {
  const seen = new Set<string>();
  for (const { row, keys } of outputs) {
    const key = keyOf(keys.slice(from));
    if (seen.has(key)) continue;
    seen.add(key);
    yield row;
  }
}

function compareOutputs(sorts: readonly SortKey[], a: Output, b: Output): number {
  for (const [i, sort] of sorts.entries()) {
    const order = compareValues(sort, a.keys[i]!, b.keys[i]!);
    if (order !== 0) return order;
  }
  return 0;
}

const hasColumn = (scope: Scope, name: string): boolean =>
  scope.sources.some(({ columns }) => columns.some((column) => column.name === name));

/** `*` as the columns that it stands for. */
function itemsOf(scope: Scope, item: Item): Item[] {
  const { of } = item;
  if (of.kind !== 'star') return [item];
  const sources = of.of === null ? scope.sources : scope.sources.filter(({ alias }) => alias === of.of);
  if (sources.length === 0)
    throw new ServiceError('REL_PARSE', of.of === null ? '* needs a FROM' : `there is no source ${JSON.stringify(of.of)}`);
  return sources.flatMap(({ alias, columns, merged }) =>
    columns
      .filter(({ name }) => of.of !== null || !merged.has(name))
      .map(({ name }) => ({
        of: { kind: 'column', path: alias === '' ? [name] : [alias, name], at: of.at } as const,
        alias: name,
      })),
  );
}

/** What a column is called that nobody named. A type, or CASE, gives way to a name within it. */
function nameOf(tree: Tree): string {
  return nameWithin(tree) ?? weakName(tree) ?? unnamed;
}

function nameWithin(tree: Tree): string | null {
  switch (tree.kind) {
    case 'column':
    case 'call':
      return tree.path.at(-1)!;
    case 'field':
      return tree.name;
    case 'subscript':
    case 'cast':
      return nameWithin(tree.of);
    case 'case':
      return tree.otherwise && nameWithin(tree.otherwise);
    case 'array':
    case 'array-of':
      return 'array';
    case 'row':
      return 'row';
    case 'exists':
      return 'exists';
    case 'scalar': {
      const { body } = tree.select;
      const [item] = body.kind === 'core' ? body.items : [];
      return item ? (item.alias ?? nameWithin(item.of)) : null;
    }
  }
  return null;
}

function weakName(tree: Tree): string | null {
  if (tree.kind === 'case') return 'case';
  return tree.kind === 'cast' ? typeNamed(tree.type.path.at(-1)!, tree.type.isQuoted) : null;
}

const unnamed = '?column?';

/** One frame a group: the first of its rows, with what was computed over all of them. */
function grouped(extras: Extras, groups: readonly Expression[], frames: readonly Frame[], empty: Frame): Frame[] {
  const members = new Map<string, Frame[]>();
  for (const frame of frames) {
    const key = keyOf(groups.map((each) => each.of(frame)));
    const known = members.get(key);
    if (known) known.push(frame);
    else members.set(key, [frame]);
  }
  if (members.size === 0 && groups.length === 0) members.set('', []);
  return [...members.values()].map((all) => {
    const frame: Frame = { ...(all[0] ?? empty), extras: [] };
    for (const { slot, call } of extras.aggregates) frame.extras[slot] = computed(call, all);
    return frame;
  });
}

function number({ slot, partition, keys }: Extras['windows'][number], frames: Frame[]): void {
  const parts = new Map<string, { frame: Frame; place: number }[]>();
  for (const [place, frame] of frames.entries()) {
    const key = keyOf(partition.map((each) => each.of(frame)));
    const part = parts.get(key) ?? [];
    part.push({ frame, place });
    parts.set(key, part);
  }
  for (const part of parts.values()) {
    part.sort((a, b) => compareKeys(keys, a.frame, b.frame));
    for (const [i, { frame, place }] of part.entries()) {
      const extras = frame.extras.slice();
      extras[slot] = i + 1;
      frames[place] = { ...frame, extras };
    }
  }
}

/** A row for each value of the sets among the columns: as many as the longest has. */
function unfolded({ sets }: Extras, frame: Frame): Frame[] {
  const lists = sets.map(({ values }) => (values.of(frame) as Value[] | null) ?? []);
  const most = Math.max(...lists.map(({ length }) => length));
  return Array.from({ length: most }, (_, i) => {
    const extras = frame.extras.slice();
    for (const [k, { slot }] of sets.entries()) extras[slot] = lists[k]![i] ?? null;
    return { ...frame, extras };
  });
}
