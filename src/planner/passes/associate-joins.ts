/**
 * (a join b) join c becomes a join (b join c) where c is small, filtered and bound to b: fewer rows of b then meet a. The
 * order of rows is the same, by a, then b, then c, and so are the columns; that is why this, and no other order of joins,
 * is tried.
 */
import { inputsOf, type JoinNode, type LogicalPlan, mapInputs, mapRoots, type PlanNode } from '../logical-plan.ts';
import { rowsOf } from './estimate-rows.ts';
import type { PassContext } from './pass.ts';

/** Every row of b is looked up in c: that must be cheap relative to the gain. */
const rotatedTimesSmaller = 8;

export function associateJoins(plan: LogicalPlan, context: PassContext): LogicalPlan {
  const associate = (node: PlanNode): PlanNode => rotateJoin(mapInputs(node, associate));
  const rotateJoin = (node: PlanNode): PlanNode => {
    if (node.kind !== 'join' || node.left.kind !== 'join' || !isPlainJoin(node) || !isPlainJoin(node.left)) return node;
    const [b, c] = [node.left.right, node.right];
    const width = node.left.left.columns.length;
    if (!node.leftKeys.some((key) => key >= width) || !hasFilter(c)) return node;
    if (rowsOf(c, context) * rotatedTimesSmaller > rowsOf(b, context)) return node;
    // The join below is one smaller now, and both of the new ones may turn again.
    return rotateJoin(rotateJoins(node, node.left, rotateJoin));
  };
  return mapRoots(plan, associate);
}

/** Turns two inner joins: keys about b go below, keys about a stay above. */
function rotateJoins(upperJoin: JoinNode, lowerJoin: JoinNode, turn: (node: PlanNode) => PlanNode): JoinNode {
  const { left: leftInput, right: middleInput } = lowerJoin;
  const leftWidth = leftInput.columns.length;
  const keyPairs = upperJoin.leftKeys.map((left, k) => ({ left, right: upperJoin.rightKeys[k]! }));
  const innerPairs = keyPairs.filter(({ left }) => left >= leftWidth);
  const outerPairs = keyPairs.filter(({ left }) => left < leftWidth);
  const rightJoin: JoinNode = {
    ...upperJoin,
    left: middleInput,
    leftKeys: innerPairs.map(({ left }) => left - leftWidth),
    rightKeys: innerPairs.map(({ right: key }) => key),
    columns: [...middleInput.columns, ...upperJoin.right.columns],
  };
  return {
    ...upperJoin,
    left: leftInput,
    right: turn(rightJoin),
    leftKeys: [...lowerJoin.leftKeys, ...outerPairs.map(({ left }) => left)],
    rightKeys: [...lowerJoin.rightKeys, ...outerPairs.map(({ right: key }) => middleInput.columns.length + key)],
  };
}

/** A residual may fail on rows that would then not be spared it. */
function isPlainJoin(join: JoinNode): boolean {
  return join.type === 'inner' && join.residual === null;
}

function hasFilter(node: PlanNode): boolean {
  return node.kind === 'filter' || (node.kind === 'scan' && node.keys !== null) || inputsOf(node).some(hasFilter);
}
