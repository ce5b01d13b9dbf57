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
  return mapRoots(plan, (root) => push(root, []));
}

/** The node with these conditions on its rows, each as far down as it goes. */
function push(node: PlanNode, conditions: readonly Bound[]): PlanNode {
  switch (node.kind) {
    case 'filter': {
      // A condition that can fail runs only on the rows that this filter leaves.
      const [below, above] = partition(conditions, (each) => !mayRaise(each));
      return addFilter(push(node.input, [...conjunctsOf(node.predicate), ...below]), above);
    }
    case 'project':
      return throughProject(node, conditions);
    case 'sort':
      // Rows that a limit cuts off are cut off before the condition is asked.
      return node.limit === null ? withInput(node, push(node.input, conditions)) : stay(node, conditions);
    case 'distinct': {
      const [below, above] = partition(conditions, (each) => !mayRaise(each));
      const input = push(node.input, below);
      return addFilter({ ...node, input, columns: input.columns }, above);
    }
    case 'aggregate':
      return throughAggregate(node, conditions);
    case 'join':
      return throughJoin(node, conditions);
    case 'set-operation':
      return throughSetOperation(node, conditions);
    case 'function':
      return throughFunction(node, conditions);
    case 'window':
    case 'spread': {
      const width = node.kind === 'spread' ? node.width : node.input.columns.length;
      const isSession = node.kind === 'window' && node.type === 'session';
      const ofRows = (each: Bound): boolean => !isSession && !mayRaise(each) && readsOnly(each, 0, width);
      const [below, above] = partition(conditions, ofRows);
      return addFilter(withInput(node, push(node.input, below)), above);
    }
    default:
      return stay(node, conditions);
  }
}

function stay(node: PlanNode, conditions: readonly Bound[]): PlanNode {
  return addFilter(
    mapInputs(node, (input) => push(input, [])),
    conditions,
  );
}

/** A condition that would grow beyond this by what its columns stand for is asked above. */
const nodesMax = 64;

function throughProject(node: ProjectNode, conditions: readonly Bound[]): PlanNode {
  const below: Bound[] = [];
  const above: Bound[] = [];
  for (const condition of conditions) {
    const replaced = sizeWith(condition, node.expressions) <= nodesMax ? onInput(condition, node) : null;
    if (replaced) below.push(replaced);
    else above.push(condition);
  }
  return addFilter(withInput(node, push(node.input, below)), above);
}

function onInput(condition: Bound, project: ProjectNode): Bound | null {
  const parts = [...columnsIn(condition)].map((index) => project.expressions[index]!);
  const plain = parts.every(({ kind }) => kind === 'column');
  // An expression may be computed a second time here, but not if it can fail on rows that another condition removes.
  if (!plain && (parts.some(mayRaise) || parts.some(({ type }) => type === 'null'))) return null;
  return replaceColumns(condition, (column) => project.expressions[column.index]!);
}

function sizeWith(bound: Bound, expressions: readonly Bound[] | null): number {
  if (bound.kind === 'column' && expressions) return sizeWith(expressions[bound.index]!, null);
  let size = 1;
  if (bound.kind === 'in') return size + sizeWith(bound.operand, expressions);
  for (const child of childrenOf(bound)) size += sizeWith(child, expressions);
  return size;
}

/** A condition on group keys is asked of rows, before they are grouped. */
function throughAggregate(node: AggregateNode, conditions: readonly Bound[]): PlanNode {
  const keysOnly = (each: Bound): boolean =>
    node.groups > 0 && columnsIn(each).size > 0 && !mayRaise(each) && readsOnly(each, 0, node.groups);
  const [below, above] = partition(conditions, keysOnly);
  const input = push(node.input, below);
  return addFilter(withInput(node, input), above);
}

/**
 * A side whose unmatched rows come out keeps them: only conditions on that very side move into it, and ON's conditions on it stay
 * with the join.
 */
function throughJoin(node: JoinNode, conditions: readonly Bound[]): PlanNode {
  const width = node.left.columns.length;
  // Conditions on whether a left row has a partner don't restrict the right rows.
  const keepsLeft = node.type !== 'inner' && node.type !== 'right' && node.type !== 'semi';
  const keepsRight = node.type === 'right' || node.type === 'full';
  const toLeft: Bound[] = [];
  const toRight: Bound[] = [];
  const above: Bound[] = [];
  const residual: Bound[] = [];
  for (const each of conditions) {
    const side = mayRaise(each) ? 'both' : sideOf(each, width);
    if (side === 'left' && !keepsRight) toLeft.push(each);
    else if (side === 'right' && !keepsLeft && yieldsRight(node.type)) toRight.push(onRight(each, width));
    else if (node.type === 'inner' && !mayRaise(each)) residual.push(each);
    else above.push(each);
  }
  for (const each of node.residual ? conjunctsOf(node.residual) : []) {
    const side = mayRaise(each) ? 'both' : sideOf(each, width);
    if (side === 'left' && !keepsLeft) toLeft.push(each);
    else if (side === 'right' && !keepsRight) toRight.push(onRight(each, width));
    else residual.unshift(each);
  }
  const left = push(node.left, toLeft);
  const right = push(node.right, toRight);
  return addFilter({ ...node, left, right, residual: residual.length > 0 ? conjunction(residual) : null }, above);
}

function sideOf(bound: Bound, width: number): 'left' | 'right' | 'both' {
  const columns = [...columnsIn(bound)];
  if (columns.length === 0) return 'both';
  return columns.every((index) => index < width) ? 'left' : columns.every((index) => index >= width) ? 'right' : 'both';
}

function onRight(bound: Bound, width: number): Bound {
  return replaceColumns(bound, (column) => ({ ...column, index: column.index - width }));
}

/** Both arms have the same columns at the same numbers. */
function throughSetOperation(node: SetOperationNode, conditions: readonly Bound[]): PlanNode {
  const [below, above] = partition(conditions, (each) => !mayRaise(each));
  return addFilter({ ...node, left: push(node.left, below), right: push(node.right, below) }, above);
}

/** Rows that no walk begins at and no union passes on are not asked for. */
function throughFunction(node: FunctionNode, conditions: readonly Bound[]): PlanNode {
  const { carries, input, graph } = node;
  if (carries === undefined || !graph) return stay(node, conditions);
  const width = input === null ? node.columns.length : input.columns.length;
  const [below, above] = partition(conditions, (each) => !mayRaise(each) && readsOnly(each, 0, width));
  const edges = graph.edges.map((each) => push(each, carries === 'edges' ? below : []));
  const own = { ...node, input: input && push(input, below), graph: { ...graph, edges } };
  return addFilter(own, above);
}

function readsOnly(bound: Bound, from: number, to: number): boolean {
  return [...columnsIn(bound)].every((index) => index >= from && index < to);
}

function partition(conditions: readonly Bound[], test: (bound: Bound) => boolean): [Bound[], Bound[]] {
  const yes: Bound[] = [];
  const no: Bound[] = [];
  for (const each of conditions) (test(each) ? yes : no).push(each);
  return [yes, no];
}

function addFilter(input: PlanNode, conjuncts: readonly Bound[]): PlanNode {
  if (conjuncts.length === 0) return input;
  return { kind: 'filter', input, predicate: conjunction(conjuncts), columns: input.columns };
}
