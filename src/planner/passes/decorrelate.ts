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
  const sunkFilter =
    node.kind === 'filter' && isOverProduct(node.input) ? sinkConditions(conjunctsIn(node.predicate), node.input) : node;
  const joinedNode = mapInputs(sunkFilter, joinApplies);
  if (joinedNode.kind === 'apply') return joinOfApply(joinedNode);
  return joinedNode.kind === 'filter' ? withoutMarks(joinedNode) : joinedNode;
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
function sinkConditions(conditions: readonly Bound[], node: PlanNode): PlanNode {
  if (node.kind === 'filter') return sinkConditions([...conjunctsIn(node.predicate), ...conditions], node.input);
  if (node.kind === 'join' && node.type === 'inner' && node.leftKeys.length === 0) {
    const joinResidual = node.residual === null ? [] : conjunctsIn(node.residual);
    return { ...node, residual: conjunction([...joinResidual, ...conditions]) };
  }
  if (node.kind !== 'apply') return filterByAll(conditions, node);
  const inputWidth = node.input.columns.length;
  // One that names a query around it would make the rows below depend on that one's.
  const isBelow = (condition: Bound): boolean =>
    [...columnsIn(condition)].every((index) => index < inputWidth) && !some(condition, ({ kind }) => kind === 'outer');
  const conditionsBelow = conditions.filter(isBelow);
  const conditionsAbove = conditions.filter((each) => !isBelow(each));
  return filterByAll(
    conditionsAbove,
    conditionsBelow.length === 0 ? node : { ...node, input: sinkConditions(conditionsBelow, node.input) },
  );
}

function filterByAll(conditions: readonly Bound[], input: PlanNode): PlanNode {
  return conditions.length === 0 ? input : { kind: 'filter', input, predicate: conjunction(conditions), columns: input.columns };
}

/** A query without its references to the level, and those references. */
interface LiftedQuery {
  readonly node: PlanNode;
  /** Over the node's columns and those of the level. */
  readonly conditions: readonly Bound[];
  /** The query's own columns as expressions over the same input. */
  readonly outputs: readonly Bound[];
  /** The query yields one row even if the conditions leave none: an aggregate without keys. */
  readonly isBare: boolean;
}

function joinOfApply(apply: ApplyNode): PlanNode {
  const applyQuery = withWholeScans(apply.query);
  if (!names(applyQuery, apply.level)) {
    return assembleJoin(apply, { node: applyQuery, conditions: [], outputs: columnsOfNode(applyQuery), isBare: false });
  }
  const liftedQuery = liftQuery(applyQuery, apply.level, apply.type !== 'mark' && apply.condition ? 'on' : apply.type);
  if (liftedQuery) return assembleJoin(apply, liftedQuery);
  const { node, cells: dependentCells } = dependent(
    applyQuery,
    apply.level,
    apply.input,
    apply.type === 'inner' || apply.type === 'left',
  );
  // The cells that the query was asked for stand behind its own columns.
  const width = applyQuery.columns.length;
  const cellConditions = dependentCells.map((cell, i) => sameCells(cell, columnOfNode(node, width + i)));
  return assembleJoin(apply, { node, conditions: cellConditions, outputs: columnsOfNode(node).slice(0, width), isBare: false });
}

function assembleJoin(apply: ApplyNode, lifted: LiftedQuery): PlanNode {
  const { input, level } = apply;
  const { node, conditions, outputs } = apply.type === 'single' || apply.type === 'left' ? withoutRowNull(lifted) : lifted;
  const width = input.columns.length;
  /** Over both sides of the join. */
  const boundOnBoth = (bound: Bound): Bound => {
    if (bound.kind === 'outer' && bound.level === level) return { ...bound, kind: 'column' };
    if (bound.kind === 'column') return { ...bound, index: bound.index + width };
    return mapChildren(bound, boundOnBoth);
  };
  const wholeCondition = apply.condition
    ? [replaceColumns(apply.condition, (column) => (column.index < width ? column : outputPlaceholder(column, width)))]
    : [];
  const ownConjuncts = wholeCondition.flatMap((condition) => conjunctsIn(fillOutputs(condition, outputs.map(boundOnBoth))));
  const joinResidual = [...conditions.map(boundOnBoth), ...ownConjuncts];
  // Where there is a row whatever the conditions leave, it is the one that an outer join makes.
  const appliedJoinType = apply.type === 'inner' && lifted.isBare ? 'left' : apply.type;
  const appliedJoin: JoinNode = {
    kind: 'join',
    type: appliedJoinType,
    left: input,
    right: node,
    leftKeys: [],
    rightKeys: [],
    residual: joinResidual.length > 0 ? conjunction(joinResidual) : null,
    build: 'right',
    columns: joinColumns(appliedJoinType, input, node),
  };
  if (appliedJoinType === 'mark') return appliedJoin;
  return {
    kind: 'project',
    input: appliedJoin,
    expressions: [...columnsOfNode(input), ...outputs.map(boundOnBoth)],
    columns: apply.columns,
  };
}

/** A query without a row is NULL: an output that is not NULL for a row of NULLs checks whether there was a row. */
function withoutRowNull(lifted: LiftedQuery): LiftedQuery {
  const { node, outputs, isBare } = lifted;
  if (isBare || outputs.every(({ kind }) => kind === 'column')) return lifted;
  const rowMark: Bound = { kind: 'constant', cell: true, type: 'boolean' };
  const width = node.columns.length;
  const markedNode: ProjectNode = {
    kind: 'project',
    input: node,
    expressions: [...columnsOfNode(node), rowMark],
    columns: [...node.columns, { name: '#row', type: 'boolean' }],
  };
  const valueWhereRow = (result: Bound): Bound => {
    if (result.kind === 'column') return result;
    const branches = [{ when: columnOfNode(markedNode, width), result }];
    return { kind: 'case', operand: null, branches, otherwise: null, type: result.type };
  };
  return { ...lifted, node: markedNode, outputs: outputs.map(valueWhereRow) };
}

/** Marks a column of the query in a condition that is over the rows around it too. */
function outputPlaceholder(column: Extract<Bound, { kind: 'column' }>, width: number): Bound {
  return { kind: 'outer', level: -1, index: column.index - width, name: column.name, type: column.type };
}

function fillOutputs(bound: Bound, outputs: readonly Bound[]): Bound {
  if (bound.kind === 'outer' && bound.level === -1) return outputs[bound.index]!;
  return mapChildren(bound, (child) => fillOutputs(child, outputs));
}

function conjunctsIn(bound: Bound): readonly Bound[] {
  return bound.kind === 'and' ? bound.operands.flatMap(conjunctsIn) : [bound];
}

function columnOfNode(node: PlanNode, index: number): Bound {
  const { name, type } = node.columns[index]!;
  return { kind: 'column', index, name, type };
}

function columnsOfNode(node: PlanNode): Bound[] {
  return node.columns.map((_, index) => columnOfNode(node, index));
}

/** A cursor applies to the outermost statement; queries in expressions read all rows. */
function withWholeScans(node: PlanNode): PlanNode {
  const wholeNode = mapInputs(node, withWholeScans);
  return wholeNode.kind === 'scan' ? { ...wholeNode, whole: true } : wholeNode;
}

function namesLevelIn(bound: Bound, level: number): boolean {
  return some(bound, (each) => each.kind === 'outer' && each.level === level);
}

/** The join that the query is lifted for; `on` is an inner or left one with a condition of its own. */
type LiftFor = ApplyNode['type'] | 'on';

function liftQuery(node: PlanNode, level: number, type: LiftFor): LiftedQuery | null {
  if (!names(node, level)) return { node, conditions: [], outputs: columnsOfNode(node), isBare: false };
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
      return node.limit === null && (type === 'mark' || type === 'single') ? liftQuery(node.input, level, type) : null;
    case 'distinct':
      // A mark join ignores duplicates.
      return type === 'mark' ? liftQuery(node.input, level, type) : null;
    default:
      return null;
  }
}

function liftFilter(node: FilterNode, level: number, type: LiftFor): LiftedQuery | null {
  const liftedInput = liftQuery(node.input, level, type);
  // HAVING removes the row of an aggregate without keys only after the join has made it.
  if (!liftedInput || liftedInput.isBare) return null;
  const filterConjuncts = conjunctsIn(node.predicate).map((each) =>
    replaceColumns(each, (column) => liftedInput.outputs[column.index]!),
  );
  const innerConjuncts = filterConjuncts.filter((each) => !namesLevelIn(each, level));
  const outerConjuncts = filterConjuncts.filter((each) => namesLevelIn(each, level));
  const innerFilter: PlanNode =
    innerConjuncts.length === 0
      ? liftedInput.node
      : { kind: 'filter', input: liftedInput.node, predicate: conjunction(innerConjuncts), columns: liftedInput.node.columns };
  return { ...liftedInput, node: innerFilter, conditions: [...liftedInput.conditions, ...outerConjuncts] };
}

function liftProject(node: ProjectNode, level: number, type: LiftFor): LiftedQuery | null {
  const liftedInput = liftQuery(node.input, level, type);
  if (!liftedInput) return null;
  const outputs = node.expressions.map((each) => replaceColumns(each, (column) => liftedInput.outputs[column.index]!));
  return { ...liftedInput, outputs };
}

function liftJoin(node: JoinNode, level: number, type: LiftFor): LiftedQuery | null {
  if (node.leftKeys.length > 0) return null;
  const namesOnRight = names(node.right, level) || (node.residual !== null && namesLevelIn(node.residual, level));
  if (namesOnRight && node.type !== 'inner') return null;
  if (node.type === 'right' || node.type === 'full') return null;
  const liftedLeft = liftQuery(node.left, level, type);
  const liftedRight = liftQuery(node.right, level, type);
  if (!liftedLeft || !liftedRight || liftedLeft.isBare || liftedRight.isBare) return null;
  const width = liftedLeft.node.columns.length;
  const joinedColumns = joinColumns(node.type, liftedLeft.node, liftedRight.node);
  const moveRight = (bound: Bound): Bound => replaceColumns(bound, (column) => ({ ...column, index: column.index + width }));
  const rightOutputs = liftedRight.outputs.map(moveRight);
  const bothOutputs = [...liftedLeft.outputs, ...rightOutputs];
  const joinConjuncts = node.residual
    ? conjunctsIn(node.residual).map((each) => replaceColumns(each, (column) => bothOutputs[column.index]!))
    : [];
  // An outer join must yield columns for its right side, because they may be NULL.
  if (node.type !== 'inner' && liftedLeft.outputs.some((each) => namesLevelIn(each, level))) return null;
  if (joinConjuncts.some((each) => namesLevelIn(each, level)) && node.type !== 'inner') return null;
  const residual = joinConjuncts.filter((each) => !namesLevelIn(each, level));
  const outputs =
    joinedColumns.length === liftedLeft.node.columns.length + liftedRight.node.columns.length
      ? bothOutputs
      : [...liftedLeft.outputs, ...(node.type === 'mark' ? [columnOfNode({ ...node, columns: joinedColumns }, width)] : [])];
  return {
    node: {
      ...node,
      left: liftedLeft.node,
      right: liftedRight.node,
      residual: residual.length > 0 ? conjunction(residual) : null,
      columns: joinedColumns,
    },
    conditions: [
      ...liftedLeft.conditions,
      ...(node.type === 'inner' ? liftedRight.conditions.map(moveRight) : []),
      ...joinConjuncts.filter((each) => namesLevelIn(each, level)),
    ],
    outputs,
    isBare: false,
  };
}

/** Equalities between the query's rows and outer cells become group keys. */
function liftAggregate(node: AggregateNode, level: number, type: LiftFor): LiftedQuery | null {
  // A row that is there although there is nothing to add up: an outer join makes it, if nothing else makes one of its rows.
  if (node.groups === 0 && (type === 'mark' || type === 'on')) return null;
  const liftedInput = liftQuery(node.input, level, type);
  if (!liftedInput || liftedInput.isBare || liftedInput.outputs.some((each) => namesLevelIn(each, level))) return null;
  const liftedKeys: Bound[] = [];
  const outerKeys: Bound[] = [];
  for (const condition of liftedInput.conditions) {
    if (condition.kind !== 'compare' || condition.op !== '=') return null;
    const [innerKey, outerKey] = namesLevelIn(condition.left, level)
      ? [condition.right, condition.left]
      : [condition.left, condition.right];
    if (namesLevelIn(innerKey, level) || columnsIn(outerKey).size > 0) return null;
    liftedKeys.push(innerKey);
    outerKeys.push(outerKey);
  }
  const { groups } = node;
  const argumentCount = node.input.columns.length - groups;
  const aggregateInputs = [
    ...liftedInput.outputs.slice(0, groups).map((bound, i) => ({ bound, column: node.input.columns[i]! })),
    ...liftedKeys.map((bound) => ({ bound, column: { name: '#key', type: bound.type } as PlanColumn })),
    ...liftedInput.outputs.slice(groups).map((bound, i) => ({ bound, column: node.input.columns[groups + i]! })),
  ];
  const behindKeys = (column: number): number => (column < groups ? column : column + liftedKeys.length);
  const keyedAggregate: AggregateNode = {
    ...node,
    groups: groups + liftedKeys.length,
    calls: node.calls.map((call) => ({
      ...call,
      column: call.column === null ? null : behindKeys(call.column),
      ...(call.second === undefined ? {} : { second: behindKeys(call.second) }),
      ...(call.when === undefined ? {} : { when: behindKeys(call.when) }),
    })),
    input: {
      kind: 'project',
      input: liftedInput.node,
      expressions: aggregateInputs.map(({ bound }) => bound),
      columns: aggregateInputs.map(({ column }) => column),
    },
    columns: [
      ...node.columns.slice(0, groups),
      ...aggregateInputs.slice(groups, aggregateInputs.length - argumentCount).map(({ column }) => column),
      ...node.columns.slice(groups),
    ],
  };
  const aggregateOutputs = columnsOfNode(keyedAggregate);
  const outputs = [
    ...aggregateOutputs.slice(0, groups),
    ...aggregateOutputs.slice(groups + liftedKeys.length).map((bound, i) => (groups === 0 ? ofNothing(bound, node, i) : bound)),
  ];
  return {
    node: keyedAggregate,
    conditions: outerKeys.map(
      (bound, i): Bound => ({ kind: 'compare', op: '=', left: aggregateOutputs[groups + i]!, right: bound, type: 'boolean' }),
    ),
    outputs,
    isBare: groups === 0,
  };
}

/** A condition that is a mark, or denies one, keeps the rows with a partner, or those without: no mark has to be made. */
function withoutMarks(filter: FilterNode): PlanNode {
  const markJoins = new Map<number, JoinNode>();
  for (let node: PlanNode = filter.input; ; ) {
    if (node.kind === 'join' && node.type === 'mark') {
      markJoins.set(node.left.columns.length, node);
      node = node.left;
    } else if (node.kind === 'project' && node.input.kind === 'join' && node.input.type === 'single') node = node.input.left;
    else break;
  }
  if (markJoins.size === 0) return filter;
  const isMark = (bound: Bound): boolean => bound.kind === 'column' && markJoins.has(bound.index);
  const remaining: Bound[] = [];
  const joinsTaken = new Map<JoinNode, 'semi' | 'anti'>();
  for (const markConjunct of conjunctsIn(whenTrueOfMarks(filter.predicate, isMark)).flatMap(conjunctsIn)) {
    const isNegated = markConjunct.kind === 'not';
    const markBound = isNegated ? markConjunct.operand : markConjunct;
    const markJoin = markBound.kind === 'column' ? markJoins.get(markBound.index) : undefined;
    if (markJoin && !joinsTaken.has(markJoin)) joinsTaken.set(markJoin, isNegated ? 'anti' : 'semi');
    else remaining.push(markConjunct);
  }
  const replaceSingles = (node: PlanNode): PlanNode => {
    if (node.kind === 'project' && node.input.kind === 'join' && node.input.type === 'single') {
      const replacedLeft = replaceSingles(node.input.left);
      return replacedLeft === node.input.left ? node : { ...node, input: { ...node.input, left: replacedLeft } };
    }
    if (node.kind !== 'join' || node.type !== 'mark') return node;
    const left = replaceSingles(node.left);
    const type = joinsTaken.get(node);
    if (type === undefined) return { ...node, left };
    const semiJoin: JoinNode = { ...node, type, left, columns: left.columns };
    const markConstant: Bound = { kind: 'constant', cell: type === 'semi', type: 'boolean' };
    return { kind: 'project', input: semiJoin, expressions: [...columnsOfNode(left), markConstant], columns: node.columns };
  };
  const input = replaceSingles(filter.input);
  return remaining.length === 0 ? input : { ...filter, input, predicate: conjunction(remaining) };
}

/** An expression without NULL that is true exactly where the condition is; marks in it are never NULL. */
function whenTrueOfMarks(bound: Bound, isMark: (bound: Bound) => boolean): Bound {
  if (!some(bound, isMark)) return isNullConstant(bound) ? falseConstant : bound;
  if (bound.kind === 'and' || bound.kind === 'or')
    return simplifyJunction(
      bound.kind,
      bound.operands.map((each) => whenTrueOfMarks(each, isMark)),
    );
  return bound.kind === 'not' ? whenFalseOfMarks(bound.operand, isMark) : bound;
}

function whenFalseOfMarks(bound: Bound, isMark: (bound: Bound) => boolean): Bound {
  if (isNullConstant(bound)) return falseConstant;
  if (bound.kind === 'and' || bound.kind === 'or') {
    return simplifyJunction(
      bound.kind === 'and' ? 'or' : 'and',
      bound.operands.map((each) => whenFalseOfMarks(each, isMark)),
    );
  }
  if (bound.kind === 'not') return whenTrueOfMarks(bound.operand, isMark);
  return { kind: 'not', operand: bound, type: 'boolean' };
}

const falseConstant: Bound = { kind: 'constant', cell: false, type: 'boolean' };

function simplifyJunction(kind: 'and' | 'or', operands: readonly Bound[]): Bound {
  const isFalsehood = (bound: Bound): boolean => bound.kind === 'constant' && bound.cell === false;
  if (kind === 'and') return operands.some(isFalsehood) ? falseConstant : conjunction(operands.flatMap(conjunctsIn));
  const trueOperands = operands.filter((each) => !isFalsehood(each));
  return trueOperands.length === 0
    ? falseConstant
    : trueOperands.length === 1
      ? trueOperands[0]!
      : { kind, operands: trueOperands, type: 'boolean' };
}

function isNullConstant(bound: Bound): boolean {
  return bound.kind === 'constant' && bound.cell === null;
}

/** Refuses a complete plan that still reads an outer column. */
export function refuseOuter(plan: LogicalPlan): LogicalPlan {
  const checkOuter = (bound: Bound): Bound => {
    if (bound.kind === 'outer') {
      throw new ServiceError(
        'REL_NOT_IMPLEMENTED',
        'a subquery that names a column two queries further out is not implemented here',
      );
    }
    return mapChildren(bound, checkOuter);
  };
  return mapRoots(plan, (root) => mapExpressions(root, checkOuter));
}
