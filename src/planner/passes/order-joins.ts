/**
 * Chooses the side of a join that is held in memory: the smaller one by estimate. The order of rows does not depend on it.
 * Figures are of what the caller may see.
 */
import { inputsOf, type JoinNode, type LogicalPlan, mapInputs, mapRoots, type PlanNode, yieldsRight } from '../logical-plan.ts';
import { rowsOf } from './estimate-rows.ts';
import { narrowedBelow, takesKeys } from './key-narrowing.ts';
import type { PassContext } from './pass.ts';

/** Read left rows first when they are fewer by this factor. */
const leadTimesSmaller = 2;

export function orderJoins(plan: LogicalPlan, context: PassContext): LogicalPlan {
  const orderNode = (node: PlanNode): PlanNode => {
    const own = mapInputs(node, orderNode);
    return own.kind === 'join' ? withBuildSide(own) : own;
  };
  const heldCellsOf = (node: PlanNode): number => rowsOf(node, context) * tableCountIn(node);
  // Holding the left side takes a second look at it, so the right one must be clearly larger.
  const withBuildSide = (node: JoinNode): JoinNode => {
    if (isOuterLeft(node)) return { ...node, build: 'right', leads: shouldLead(node) };
    return { ...node, build: heldCellsOf(node.left) * 2 >= heldCellsOf(node.right) ? 'right' : 'left' };
  };
  // Left rows are held then, beside those of the right side that they leave.
  const shouldLead = ({ left, right, rightKeys }: JoinNode): boolean =>
    heldCellsOf(left) * leadTimesSmaller <= Math.max(...rightKeys.map((key) => narrowedRows(right, key)));
  /** Rows of the largest scan to which the keys can be passed, after its own conditions. */
  const narrowedRows = (node: PlanNode, column: number): number => {
    if (!takesKeys(node, column)) return 0;
    const { kind } = node.kind === 'filter' ? node.input : node;
    if (kind === 'scan' || kind === 'virtual') return rowsOf(node, context);
    return Math.max(
      ...inputsOf(node).flatMap((input, i) => narrowedBelow(node, i, column).map((below) => narrowedRows(input, below))),
    );
  };
  return mapRoots(plan, orderNode);
}

/** Tables whose columns a row carries: as good a guess as any of how wide it is, before it is known which columns are used. */
function tableCountIn(node: PlanNode): number {
  if (node.kind === 'join') return tableCountIn(node.left) + (yieldsRight(node.type) ? tableCountIn(node.right) : 0);
  const [input, ...others] = inputsOf(node);
  return input && others.length === 0 && node.kind !== 'aggregate' ? tableCountIn(input) : 1;
}

/** Left rows stream by; only whether they have partners matters. */
function isOuterLeft({ type }: JoinNode): boolean {
  return type === 'semi' || type === 'anti' || type === 'mark' || type === 'single';
}
