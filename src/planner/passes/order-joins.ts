/**
 * Which side of a join is held in memory: the one that promises fewer rows. The order of rows does not depend on it.
 * Figures are of what the caller may see.
 */
import { type JoinNode, type LogicalPlan, mapInputs, mapRoots, type PlanNode } from '../logical-plan.ts';
import type { PassContext } from './pass.ts';
import { conjunctsOf } from './simplify-expressions.ts';

export function orderJoins(plan: LogicalPlan, { estimate }: PassContext): LogicalPlan {
  const ordered = (node: PlanNode): PlanNode => {
    const own = mapInputs(node, ordered);
    return own.kind === 'join' ? withBuild(own) : own;
  };
  const rowsOf = (node: PlanNode): number => {
    switch (node.kind) {
      case 'scan':
        return estimate(node);
      case 'working':
        return 1_000;
      case 'filter':
        // A third of the rows for each condition, a guess that only has to be the same on both sides.
        return rowsOf(node.input) / 3 ** Math.min(4, conjunctsOf(node.predicate).length);
      case 'aggregate':
        return node.groups === 0 ? 1 : rowsOf(node.input) / 4;
      case 'distinct':
        return rowsOf(node.input) / 2;
      case 'join':
        return Math.max(rowsOf(node.left), rowsOf(node.right));
      case 'set-operation':
        return rowsOf(node.left) + (node.op === 'except' || node.op === 'intersect' ? 0 : rowsOf(node.right));
      case 'recursive':
        return 4 * rowsOf(node.base);
      case 'project':
      case 'sort':
      case 'limit':
      case 'window':
        return rowsOf(node.input);
    }
  };
  // Holding the left side takes a second look at it, so the right one must be clearly larger.
  const withBuild = (node: JoinNode): JoinNode => ({
    ...node,
    build: rowsOf(node.left) * 2 < rowsOf(node.right) ? 'left' : 'right',
  });
  return mapRoots(plan, ordered);
}
