/**
 * Queries that stand in expressions become joins: no plan runs a query once for each row around it. Correctness depends on it,
 * not only speed, so it is no optional pass: the binder calls it.
 *
 *   EXISTS, IN, ANY as a condition of WHERE     semi join; under NOT an anti join
 *   the same anywhere else                      mark join: one more column
 *   a query that stands for a value             single join
 *   a query of FROM that is LATERAL             inner or left join
 *
 * Conditions on the outer rows move up into the join's condition. Under an aggregate it must be equalities, which become group
 * keys. Where it can't move (under LIMIT, set operations, outer joins, or an aggregate with other conditions), the query runs
 * once over all distinct sets of the outer cells that it reads, and is joined by these.
 */
import { ServiceError } from '../../errors.ts';
import { type Bound, columnsIn, mapChildren, replaceColumns, some } from '../expressions/bound-expression.ts';
import {
  type AggregateNode,
  type ApplyNode,
  type FilterNode,
  joinColumns,
  type JoinNode,
  type LogicalPlan,
  mapExpressions,
  mapInputs,
  mapRoots,
  type PlanColumn,
  type PlanNode,
  type ProjectNode,
} from '../logical-plan.ts';
import { conjunction } from './simplify-expressions.ts';
import { dependent, names, ofNothing, sameCells } from './dependent-join.ts';

export function decorrelate(plan: LogicalPlan): LogicalPlan {
  return mapRoots(plan, joinApplies);
}

function joinApplies(node: PlanNode): PlanNode {
  const sunk = node.kind === 'filter' && isOverProduct(node.input) ? sink(conjuncts(node.predicate), node.input) : node;
  const own = mapInputs(sunk, joinApplies);
  if (own.kind === 'apply') return joinOf(own);
  return own.kind === 'filter' ? withoutMarks(own) : own;
}

/** Elsewhere conditions stay where they are. */
function isOverProduct(node: PlanNode): boolean {
  if (node.kind === 'apply' || node.kind === 'filter') return isOverProduct(node.input);
  return node.kind === 'join' && node.type === 'inner' && node.leftKeys.length === 0;
}

/**
 * Conditions over the rows that an apply node adds a column to go below it: a query that runs over the cells of these rows would read
 * rows by the product of all tables otherwise, where the conditions join them.
 */
function sink(conditions: readonly Bound[], node: PlanNode): PlanNode {
  if (node.kind === 'filter') return sink([...conjuncts(node.predicate), ...conditions], node.input);
  if (node.kind === 'join' && node.type === 'inner' && node.leftKeys.length === 0) {
    const residual = node.residual === null ? [] : conjuncts(node.residual);
    return { ...node, residual: conjunction([...residual, ...conditions]) };
  }
  if (node.kind !== 'apply') return filterBy(conditions, node);
  const width = node.input.columns.length;
  // One that names a query around it would make the rows below depend on that one's.
  const isBelow = (condition: Bound): boolean =>
    [...columnsIn(condition)].every((index) => index < width) && !some(condition, ({ kind }) => kind === 'outer');
  const below = conditions.filter(isBelow);
  const above = conditions.filter((each) => !isBelow(each));
  return filterBy(above, below.length === 0 ? node : { ...node, input: sink(below, node.input) });
}

function filterBy(conditions: readonly Bound[], input: PlanNode): PlanNode {
  return conditions.length === 0 ? input : { kind: 'filter', input, predicate: conjunction(conditions), columns: input.columns };
}

/** A query without its references to the level, and those references. */
interface Lifted {
  readonly node: PlanNode;
  /** Over the node's columns and those of the level. */
  readonly conditions: readonly Bound[];
  /** The query's own columns as expressions over the same input. */
  readonly outputs: readonly Bound[];
  /** The query yields one row even if the conditions leave none: an aggregate without keys. */
  readonly isBare: boolean;
}

function joinOf(apply: ApplyNode): PlanNode {
  const query = withinQuery(apply.query);
  if (!names(query, apply.level)) {
    return assembleJoin(apply, { node: query, conditions: [], outputs: columnsOf(query), isBare: false });
  }
  const lifted = lift(query, apply.level, apply.type !== 'mark' && apply.condition ? 'on' : apply.type);
  if (lifted) return assembleJoin(apply, lifted);
  const { node, cells } = dependent(query, apply.level, apply.input, apply.type === 'inner' || apply.type === 'left');
  // The cells that the query was asked for stand behind its own columns.
  const width = query.columns.length;
  const conditions = cells.map((cell, i) => sameCells(cell, columnAt(node, width + i)));
  return assembleJoin(apply, { node, conditions, outputs: columnsOf(node).slice(0, width), isBare: false });
}

function assembleJoin(apply: ApplyNode, lifted: Lifted): PlanNode {
  const { input, level } = apply;
  const { node, conditions, outputs } = apply.type === 'single' || apply.type === 'left' ? withoutRowNull(lifted) : lifted;
  const width = input.columns.length;
  /** Over both sides of the join. */
  const onBoth = (bound: Bound): Bound => {
    if (bound.kind === 'outer' && bound.level === level) return { ...bound, kind: 'column' };
    if (bound.kind === 'column') return { ...bound, index: bound.index + width };
    return mapChildren(bound, onBoth);
  };
  const whole = apply.condition
    ? [replaceColumns(apply.condition, (column) => (column.index < width ? column : placeholder(column, width)))]
    : [];
  const own = whole.flatMap((condition) => conjuncts(fillOutputs(condition, outputs.map(onBoth))));
  const residual = [...conditions.map(onBoth), ...own];
  // Where there is a row whatever the conditions leave, it is the one that an outer join makes.
  const type = apply.type === 'inner' && lifted.isBare ? 'left' : apply.type;
  const join: JoinNode = {
    kind: 'join',
    type,
    left: input,
    right: node,
    leftKeys: [],
    rightKeys: [],
    residual: residual.length > 0 ? conjunction(residual) : null,
    build: 'right',
    columns: joinColumns(type, input, node),
  };
  if (type === 'mark') return join;
  return {
    kind: 'project',
    input: join,
    expressions: [...columnsOf(input), ...outputs.map(onBoth)],
    columns: apply.columns,
  };
}

/** A query without a row is NULL: an output that is not NULL for a row of NULLs checks whether there was a row. */
function withoutRowNull(lifted: Lifted): Lifted {
  const { node, outputs, isBare } = lifted;
  if (isBare || outputs.every(({ kind }) => kind === 'column')) return lifted;
  const isThere: Bound = { kind: 'constant', cell: true, type: 'boolean' };
  const width = node.columns.length;
  const marked: ProjectNode = {
    kind: 'project',
    input: node,
    expressions: [...columnsOf(node), isThere],
    columns: [...node.columns, { name: '#row', type: 'boolean' }],
  };
  const whereThere = (result: Bound): Bound => {
    if (result.kind === 'column') return result;
    const branches = [{ when: columnAt(marked, width), result }];
    return { kind: 'case', operand: null, branches, otherwise: null, type: result.type };
  };
  return { ...lifted, node: marked, outputs: outputs.map(whereThere) };
}

/** Marks a column of the query in a condition that is over the rows around it too. */
function placeholder(column: Extract<Bound, { kind: 'column' }>, width: number): Bound {
  return { kind: 'outer', level: -1, index: column.index - width, name: column.name, type: column.type };
}

function fillOutputs(bound: Bound, outputs: readonly Bound[]): Bound {
  if (bound.kind === 'outer' && bound.level === -1) return outputs[bound.index]!;
  return mapChildren(bound, (child) => fillOutputs(child, outputs));
}

function conjuncts(bound: Bound): readonly Bound[] {
  return bound.kind === 'and' ? bound.operands.flatMap(conjuncts) : [bound];
}

function columnAt(node: PlanNode, index: number): Bound {
  const { name, type } = node.columns[index]!;
  return { kind: 'column', index, name, type };
}

function columnsOf(node: PlanNode): Bound[] {
  return node.columns.map((_, index) => columnAt(node, index));
}

/** A cursor applies to the outermost statement; queries in expressions read all rows. */
function withinQuery(node: PlanNode): PlanNode {
  const own = mapInputs(node, withinQuery);
  return own.kind === 'scan' ? { ...own, whole: true } : own;
}

function namesIn(bound: Bound, level: number): boolean {
  return some(bound, (each) => each.kind === 'outer' && each.level === level);
}

/** The join that the query is lifted for; `on` is an inner or left one with a condition of its own. */
type LiftFor = ApplyNode['type'] | 'on';

function lift(node: PlanNode, level: number, type: LiftFor): Lifted | null {
  if (!names(node, level)) return { node, conditions: [], outputs: columnsOf(node), isBare: false };
  switch (node.kind) {
    case 'filter':
      return liftFilter(node, level, type);
    case 'project':
      return liftProject(node, level, type);
    case 'join':
      return liftJoin(node, level, type);
    case 'aggregate':
      return liftAggregate(node, level, type);
    case 'sort':
      // A semi join ignores the order, and a single one has one row.
      return node.limit === null && (type === 'mark' || type === 'single') ? lift(node.input, level, type) : null;
    case 'distinct':
      // A mark join ignores duplicates.
      return type === 'mark' ? lift(node.input, level, type) : null;
    default:
      return null;
  }
}

function liftFilter(node: FilterNode, level: number, type: LiftFor): Lifted | null {
  const input = lift(node.input, level, type);
  // HAVING removes the row of an aggregate without keys only after the join has made it.
  if (!input || input.isBare) return null;
  const all = conjuncts(node.predicate).map((each) => replaceColumns(each, (column) => input.outputs[column.index]!));
  const inside = all.filter((each) => !namesIn(each, level));
  const outside = all.filter((each) => namesIn(each, level));
  const below: PlanNode =
    inside.length === 0
      ? input.node
      : { kind: 'filter', input: input.node, predicate: conjunction(inside), columns: input.node.columns };
  return { ...input, node: below, conditions: [...input.conditions, ...outside] };
}

function liftProject(node: ProjectNode, level: number, type: LiftFor): Lifted | null {
  const input = lift(node.input, level, type);
  if (!input) return null;
  const outputs = node.expressions.map((each) => replaceColumns(each, (column) => input.outputs[column.index]!));
  return { ...input, outputs };
}

function liftJoin(node: JoinNode, level: number, type: LiftFor): Lifted | null {
  if (node.leftKeys.length > 0) return null;
  const onRight = names(node.right, level) || (node.residual !== null && namesIn(node.residual, level));
  if (onRight && node.type !== 'inner') return null;
  if (node.type === 'right' || node.type === 'full') return null;
  const left = lift(node.left, level, type);
  const right = lift(node.right, level, type);
  if (!left || !right || left.isBare || right.isBare) return null;
  const width = left.node.columns.length;
  const yields = joinColumns(node.type, left.node, right.node);
  const moveRight = (bound: Bound): Bound => replaceColumns(bound, (column) => ({ ...column, index: column.index + width }));
  const rights = right.outputs.map(moveRight);
  const both = [...left.outputs, ...rights];
  const all = node.residual ? conjuncts(node.residual).map((each) => replaceColumns(each, (column) => both[column.index]!)) : [];
  // An outer join must yield columns for its right side, because they may be NULL.
  if (node.type !== 'inner' && left.outputs.some((each) => namesIn(each, level))) return null;
  if (all.some((each) => namesIn(each, level)) && node.type !== 'inner') return null;
  const residual = all.filter((each) => !namesIn(each, level));
  const outputs =
    yields.length === left.node.columns.length + right.node.columns.length
      ? both
      : [...left.outputs, ...(node.type === 'mark' ? [columnAt({ ...node, columns: yields }, width)] : [])];
  return {
    node: {
      ...node,
      left: left.node,
      right: right.node,
      residual: residual.length > 0 ? conjunction(residual) : null,
      columns: yields,
    },
    conditions: [
      ...left.conditions,
      ...(node.type === 'inner' ? right.conditions.map(moveRight) : []),
      ...all.filter((each) => namesIn(each, level)),
    ],
    outputs,
    isBare: false,
  };
}

/** Equalities between the query's rows and outer cells become group keys. */
function liftAggregate(node: AggregateNode, level: number, type: LiftFor): Lifted | null {
  // A row that is there although there is nothing to add up: an outer join makes it, if nothing else makes one of its rows.
  if (node.groups === 0 && (type === 'mark' || type === 'on')) return null;
  const input = lift(node.input, level, type);
  if (!input || input.isBare || input.outputs.some((each) => namesIn(each, level))) return null;
  const keys: Bound[] = [];
  const around: Bound[] = [];
  for (const condition of input.conditions) {
    if (condition.kind !== 'compare' || condition.op !== '=') return null;
    const [inner, outer] = namesIn(condition.left, level) ? [condition.right, condition.left] : [condition.left, condition.right];
    if (namesIn(inner, level) || columnsIn(outer).size > 0) return null;
    keys.push(inner);
    around.push(outer);
  }
  const { groups } = node;
  const arguments_ = node.input.columns.length - groups;
  const columns = [
    ...input.outputs.slice(0, groups).map((bound, i) => ({ bound, column: node.input.columns[i]! })),
    ...keys.map((bound) => ({ bound, column: { name: '#key', type: bound.type } as PlanColumn })),
    ...input.outputs.slice(groups).map((bound, i) => ({ bound, column: node.input.columns[groups + i]! })),
  ];
  const behindKeys = (column: number): number => (column < groups ? column : column + keys.length);
  const aggregate: AggregateNode = {
    ...node,
    groups: groups + keys.length,
    calls: node.calls.map((call) => ({
      ...call,
      column: call.column === null ? null : behindKeys(call.column),
      ...(call.second === undefined ? {} : { second: behindKeys(call.second) }),
      ...(call.when === undefined ? {} : { when: behindKeys(call.when) }),
    })),
    input: {
      kind: 'project',
      input: input.node,
      expressions: columns.map(({ bound }) => bound),
      columns: columns.map(({ column }) => column),
    },
    columns: [
      ...node.columns.slice(0, groups),
      ...columns.slice(groups, columns.length - arguments_).map(({ column }) => column),
      ...node.columns.slice(groups),
    ],
  };
  const own = columnsOf(aggregate);
  const outputs = [
    ...own.slice(0, groups),
    ...own.slice(groups + keys.length).map((bound, i) => (groups === 0 ? ofNothing(bound, node, i) : bound)),
  ];
  return {
    node: aggregate,
    conditions: around.map(
      (bound, i): Bound => ({ kind: 'compare', op: '=', left: own[groups + i]!, right: bound, type: 'boolean' }),
    ),
    outputs,
    isBare: groups === 0,
  };
}

/** A condition that is a mark, or denies one, keeps the rows with a partner, or those without: no mark has to be made. */
function withoutMarks(filter: FilterNode): PlanNode {
  const marks = new Map<number, JoinNode>();
  for (let node: PlanNode = filter.input; ; ) {
    if (node.kind === 'join' && node.type === 'mark') {
      marks.set(node.left.columns.length, node);
      node = node.left;
    } else if (node.kind === 'project' && node.input.kind === 'join' && node.input.type === 'single') node = node.input.left;
    else break;
  }
  if (marks.size === 0) return filter;
  const isMark = (bound: Bound): boolean => bound.kind === 'column' && marks.has(bound.index);
  const remaining: Bound[] = [];
  const taken = new Map<JoinNode, 'semi' | 'anti'>();
  for (const each of conjuncts(whenTrue(filter.predicate, isMark)).flatMap(conjuncts)) {
    const negated = each.kind === 'not';
    const mark = negated ? each.operand : each;
    const join = mark.kind === 'column' ? marks.get(mark.index) : undefined;
    if (join && !taken.has(join)) taken.set(join, negated ? 'anti' : 'semi');
    else remaining.push(each);
  }
  const replaceSingles = (node: PlanNode): PlanNode => {
    if (node.kind === 'project' && node.input.kind === 'join' && node.input.type === 'single') {
      const left = replaceSingles(node.input.left);
      return left === node.input.left ? node : { ...node, input: { ...node.input, left } };
    }
    if (node.kind !== 'join' || node.type !== 'mark') return node;
    const left = replaceSingles(node.left);
    const type = taken.get(node);
    if (type === undefined) return { ...node, left };
    const join: JoinNode = { ...node, type, left, columns: left.columns };
    const isThere: Bound = { kind: 'constant', cell: type === 'semi', type: 'boolean' };
    return { kind: 'project', input: join, expressions: [...columnsOf(left), isThere], columns: node.columns };
  };
  const input = replaceSingles(filter.input);
  return remaining.length === 0 ? input : { ...filter, input, predicate: conjunction(remaining) };
}

/** An expression without NULL that is true exactly where the condition is; marks in it are never NULL. */
function whenTrue(bound: Bound, isMark: (bound: Bound) => boolean): Bound {
  if (!some(bound, isMark)) return isNull(bound) ? falsehood : bound;
  if (bound.kind === 'and' || bound.kind === 'or')
    return simplify(
      bound.kind,
      bound.operands.map((each) => whenTrue(each, isMark)),
    );
  return bound.kind === 'not' ? whenFalse(bound.operand, isMark) : bound;
}

function whenFalse(bound: Bound, isMark: (bound: Bound) => boolean): Bound {
  if (isNull(bound)) return falsehood;
  if (bound.kind === 'and' || bound.kind === 'or') {
    return simplify(
      bound.kind === 'and' ? 'or' : 'and',
      bound.operands.map((each) => whenFalse(each, isMark)),
    );
  }
  if (bound.kind === 'not') return whenTrue(bound.operand, isMark);
  return { kind: 'not', operand: bound, type: 'boolean' };
}

const falsehood: Bound = { kind: 'constant', cell: false, type: 'boolean' };

function simplify(kind: 'and' | 'or', operands: readonly Bound[]): Bound {
  const isFalse = (bound: Bound): boolean => bound.kind === 'constant' && bound.cell === false;
  if (kind === 'and') return operands.some(isFalse) ? falsehood : conjunction(operands.flatMap(conjuncts));
  const left = operands.filter((each) => !isFalse(each));
  return left.length === 0 ? falsehood : left.length === 1 ? left[0]! : { kind, operands: left, type: 'boolean' };
}

function isNull(bound: Bound): boolean {
  return bound.kind === 'constant' && bound.cell === null;
}

/** Refuses a complete plan that still reads an outer column. */
export function refuseOuter(plan: LogicalPlan): LogicalPlan {
  const check = (bound: Bound): Bound => {
    if (bound.kind === 'outer') {
      throw new ServiceError(
        'REL_NOT_IMPLEMENTED',
        'a subquery that names a column two queries further out is not implemented here',
      );
    }
    return mapChildren(bound, check);
  };
  return mapRoots(plan, (root) => mapExpressions(root, check));
}
