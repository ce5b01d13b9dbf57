/**
 * Which side of a join is held in memory: the one that promises fewer rows. The order of rows does not depend on it.
 * Figures are of what the caller may see.
 */
import { type JoinNode, type LogicalPlan, mapInputs, mapRoots, type PlanNode } from '../logical-plan.ts';
import { rowsOf } from './estimate-rows.ts';
import type { PassContext } from './pass.ts';

export function orderJoins(plan: LogicalPlan, context: PassContext): LogicalPlan {
  const ordered = (node: PlanNode): PlanNode => {
    const own = mapInputs(node, ordered);
    return own.kind === 'join' ? withBuild(own) : own;
  };
  // Holding the left side takes a second look at it, so the right one must be clearly larger.
  const withBuild = (node: JoinNode): JoinNode => ({
    ...node,
    build: isOuterLeft(node) ? 'right' : rowsOf(node.left, context) * 2 < rowsOf(node.right, context) ? 'left' : 'right',
  });
  return mapRoots(plan, ordered);
}

/** Left rows go by and are told apart by their partners. */
function isOuterLeft({ type }: JoinNode): boolean {
  return type === 'semi' || type === 'anti' || type === 'mark' || type === 'single';
}
