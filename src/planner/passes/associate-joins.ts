/**
 * (a join b) join c becomes a join (b join c) where c is small, filtered and bound to b: fewer rows of b then meet a. The
 * order of rows is the same, by a, then b, then c, and so are the columns; that is why this, and no other order of joins,
 * is tried.
 */
import { inputsOf, type JoinNode, type LogicalPlan, mapInputs, mapRoots, type PlanNode } from '../logical-plan.ts';
import { rowsOf } from './estimate-rows.ts';
import type { PassContext } from './pass.ts';

/** Every row of b is looked up in c: that must be cheap relative to the gain. */
const timesSmaller = 8;

export function associateJoins(plan: LogicalPlan, context: PassContext): LogicalPlan {
  const associate = (node: PlanNode): PlanNode => turn(mapInputs(node, associate));
  const turn = (node: PlanNode): PlanNode => {
    if (node.kind !== 'join' || node.left.kind !== 'join' || !isPlain(node) || !isPlain(node.left)) return node;
    const [b, c] = [node.left.right, node.right];
    const width = node.left.left.columns.length;
    if (!node.leftKeys.some((key) => key >= width) || !isFiltered(c)) return node;
    if (rowsOf(c, context) * timesSmaller > rowsOf(b, context)) return node;
    // The join below is one smaller now, and both of the new ones may turn again.
    return turn(rotate(node, node.left, turn));
  };
  return mapRoots(plan, associate);
}

/** Turns two inner joins: keys about b go below, keys about a stay above. */
function rotate(above: JoinNode, below: JoinNode, turn: (node: PlanNode) => PlanNode): JoinNode {
  const { left: a, right: b } = below;
  const width = a.columns.length;
  const pairs = above.leftKeys.map((left, k) => ({ left, right: above.rightKeys[k]! }));
  const inner = pairs.filter(({ left }) => left >= width);
  const outer = pairs.filter(({ left }) => left < width);
  const right: JoinNode = {
    ...above,
    left: b,
    leftKeys: inner.map(({ left }) => left - width),
    rightKeys: inner.map(({ right: key }) => key),
    columns: [...b.columns, ...above.right.columns],
  };
  return {
    ...above,
    left: a,
    right: turn(right),
    leftKeys: [...below.leftKeys, ...outer.map(({ left }) => left)],
    rightKeys: [...below.rightKeys, ...outer.map(({ right: key }) => b.columns.length + key)],
  };
}

/** A residual may fail on rows that would then not be spared it. */
function isPlain(join: JoinNode): boolean {
  return join.type === 'inner' && join.residual === null;
}

function isFiltered(node: PlanNode): boolean {
  return node.kind === 'filter' || (node.kind === 'scan' && node.keys !== null) || inputsOf(node).some(isFiltered);
}
