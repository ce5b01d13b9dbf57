/**
 * Conditions go to where rows are fewest: below projections, set operations and groups, and to the side of a join that they read.
 * A condition on both sides of an inner join becomes part of the join. Neighbouring filters become one, so that one kernel tests
 * all of it.
 *
 * A condition that can fail stays where it was written, so that it runs on no other rows.
 */
import { type Bound, childrenOf, columnsIn, mayRaise, replaceColumns } from '../expressions/bound-expression.ts';
import {
  type AggregateNode,
  type FunctionNode,
  type JoinNode,
  type LogicalPlan,
  mapInputs,
  mapRoots,
  type PlanNode,
  type ProjectNode,
  type SetOperationNode,
  withInput,
  yieldsRight,
} from '../logical-plan.ts';
import { conjunction, conjunctsOf } from './simplify-expressions.ts';

export function pushDownFilters(plan: LogicalPlan): LogicalPlan {
  return mapRoots(plan, (root) => pushFilters(root, []));
}

/** The node with these conditions on its rows, each as far down as it goes. */
function pushFilters(node: PlanNode, conditions: readonly Bound[]): PlanNode {
  switch (node.kind) {
    case 'filter': {
      // A condition that can fail runs only on the rows that this filter leaves.
      const [conditionsBelow, conditionsAbove] = partitionBounds(conditions, (each) => !mayRaise(each));
      return addFilter(pushFilters(node.input, [...conjunctsOf(node.predicate), ...conditionsBelow]), conditionsAbove);
    }
    case 'project':
      return pushThroughProject(node, conditions);
    case 'sort':
      // Rows that a limit cuts off are cut off before the condition is asked.
      return node.limit === null ? withInput(node, pushFilters(node.input, conditions)) : keepFilters(node, conditions);
    case 'distinct': {
      const [conditionsBelow, conditionsAbove] = partitionBounds(conditions, (each) => !mayRaise(each));
      const input = pushFilters(node.input, conditionsBelow);
      return addFilter({ ...node, input, columns: input.columns }, conditionsAbove);
    }
    case 'aggregate':
      return pushThroughAggregate(node, conditions);
    case 'join':
      return pushThroughJoin(node, conditions);
    case 'set-operation':
      return throughSetOperation(node, conditions);
    case 'function':
      return pushThroughFunction(node, conditions);
    case 'window':
    case 'spread': {
      const inputWidth = node.kind === 'spread' ? node.width : node.input.columns.length;
      const isSession = node.kind === 'window' && node.type === 'session';
      const isOfInputRows = (each: Bound): boolean => !isSession && !mayRaise(each) && readsOnly(each, 0, inputWidth);
      const [conditionsBelow, conditionsAbove] = partitionBounds(conditions, isOfInputRows);
      return addFilter(withInput(node, pushFilters(node.input, conditionsBelow)), conditionsAbove);
    }
    default:
      return keepFilters(node, conditions);
  }
}

function keepFilters(node: PlanNode, conditions: readonly Bound[]): PlanNode {
  return addFilter(
    mapInputs(node, (input) => pushFilters(input, [])),
    conditions,
  );
}

/** A condition that would grow beyond this by what its columns stand for is asked above. */
const replacedNodesMax = 64;

function pushThroughProject(node: ProjectNode, conditions: readonly Bound[]): PlanNode {
  const conditionsBelow: Bound[] = [];
  const conditionsAbove: Bound[] = [];
  for (const condition of conditions) {
    const replacedCondition =
      replacedSize(condition, node.expressions) <= replacedNodesMax ? conditionOnInput(condition, node) : null;
    if (replacedCondition) conditionsBelow.push(replacedCondition);
    else conditionsAbove.push(condition);
  }
  return addFilter(withInput(node, pushFilters(node.input, conditionsBelow)), conditionsAbove);
}

function conditionOnInput(condition: Bound, project: ProjectNode): Bound | null {
  const projectedParts = [...columnsIn(condition)].map((index) => project.expressions[index]!);
  const areColumns = projectedParts.every(({ kind }) => kind === 'column');
  // An expression may be computed a second time here, but not if it can fail on rows that another condition removes.
  if (!areColumns && (projectedParts.some(mayRaise) || projectedParts.some(({ type }) => type === 'null'))) return null;
  return replaceColumns(condition, (column) => project.expressions[column.index]!);
}

function replacedSize(bound: Bound, expressions: readonly Bound[] | null): number {
  if (bound.kind === 'column' && expressions) return replacedSize(expressions[bound.index]!, null);
  let boundSize = 1;
  if (bound.kind === 'in') return boundSize + replacedSize(bound.operand, expressions);
  for (const child of childrenOf(bound)) boundSize += replacedSize(child, expressions);
  return boundSize;
}

/** A condition on group keys is asked of rows, before they are grouped. */
function pushThroughAggregate(node: AggregateNode, conditions: readonly Bound[]): PlanNode {
  const isOfKeys = (each: Bound): boolean =>
    node.groups > 0 && columnsIn(each).size > 0 && !mayRaise(each) && readsOnly(each, 0, node.groups);
  const [conditionsBelow, conditionsAbove] = partitionBounds(conditions, isOfKeys);
  const input = pushFilters(node.input, conditionsBelow);
  return addFilter(withInput(node, input), conditionsAbove);
}

/**
 * A side whose unmatched rows come out keeps them: only conditions on that very side move into it, and ON's conditions on it stay
 * with the join.
 */
function pushThroughJoin(node: JoinNode, conditions: readonly Bound[]): PlanNode {
  const width = node.left.columns.length;
  // Conditions on whether a left row has a partner don't restrict the right rows.
  const keepsLeft = node.type !== 'inner' && node.type !== 'right' && node.type !== 'semi';
  const keepsRight = node.type === 'right' || node.type === 'full';
  const leftConditions: Bound[] = [];
  const rightConditions: Bound[] = [];
  const conditionsAbove: Bound[] = [];
  const joinResidual: Bound[] = [];
  for (const joinConjunct of conditions) {
    const conditionSide = mayRaise(joinConjunct) ? 'both' : conditionSideOf(joinConjunct, width);
    if (conditionSide === 'left' && !keepsRight) leftConditions.push(joinConjunct);
    else if (conditionSide === 'right' && !keepsLeft && yieldsRight(node.type))
      rightConditions.push(boundOnRight(joinConjunct, width));
    else if (node.type === 'inner' && !mayRaise(joinConjunct)) joinResidual.push(joinConjunct);
    else conditionsAbove.push(joinConjunct);
  }
  for (const each of node.residual ? conjunctsOf(node.residual) : []) {
    const conditionSide = mayRaise(each) ? 'both' : conditionSideOf(each, width);
    if (conditionSide === 'left' && !keepsLeft) leftConditions.push(each);
    else if (conditionSide === 'right' && !keepsRight) rightConditions.push(boundOnRight(each, width));
    else joinResidual.unshift(each);
  }
  const left = pushFilters(node.left, leftConditions);
  const right = pushFilters(node.right, rightConditions);
  return addFilter(
    { ...node, left, right, residual: joinResidual.length > 0 ? conjunction(joinResidual) : null },
    conditionsAbove,
  );
}

function conditionSideOf(bound: Bound, width: number): 'left' | 'right' | 'both' {
  const columns = [...columnsIn(bound)];
  if (columns.length === 0) return 'both';
  return columns.every((index) => index < width) ? 'left' : columns.every((index) => index >= width) ? 'right' : 'both';
}

function boundOnRight(bound: Bound, width: number): Bound {
  return replaceColumns(bound, (column) => ({ ...column, index: column.index - width }));
}

/** Both arms have the same columns at the same numbers. */
function throughSetOperation(node: SetOperationNode, conditions: readonly Bound[]): PlanNode {
  const [conditionsBelow, conditionsAbove] = partitionBounds(conditions, (each) => !mayRaise(each));
  return addFilter(
    { ...node, left: pushFilters(node.left, conditionsBelow), right: pushFilters(node.right, conditionsBelow) },
    conditionsAbove,
  );
}

/** Rows that no walk begins at and no union passes on are not asked for. */
function pushThroughFunction(node: FunctionNode, conditions: readonly Bound[]): PlanNode {
  const { carries, input, graph } = node;
  if (carries === undefined || !graph) return keepFilters(node, conditions);
  const inputWidth = input === null ? node.columns.length : input.columns.length;
  const [conditionsBelow, conditionsAbove] = partitionBounds(
    conditions,
    (each) => !mayRaise(each) && readsOnly(each, 0, inputWidth),
  );
  const edges = graph.edges.map((each) => pushFilters(each, carries === 'edges' ? conditionsBelow : []));
  const pushedFunction = { ...node, input: input && pushFilters(input, conditionsBelow), graph: { ...graph, edges } };
  return addFilter(pushedFunction, conditionsAbove);
}

function readsOnly(bound: Bound, from: number, to: number): boolean {
  return [...columnsIn(bound)].every((index) => index >= from && index < to);
}

function partitionBounds(conditions: readonly Bound[], passesTest: (bound: Bound) => boolean): [Bound[], Bound[]] {
  const passingBounds: Bound[] = [];
  const failingBounds: Bound[] = [];
  for (const each of conditions) (passesTest(each) ? passingBounds : failingBounds).push(each);
  return [passingBounds, failingBounds];
}

function addFilter(input: PlanNode, conjuncts: readonly Bound[]): PlanNode {
  if (conjuncts.length === 0) return input;
  return { kind: 'filter', input, predicate: conjunction(conjuncts), columns: input.columns };
}
