/** How many rows a node promises: guesses that only have to rank the sides of a join. */
import type { PlanNode } from '../logical-plan.ts';
import type { PassContext } from './pass.ts';
import { conjunctsOf } from './simplify-expressions.ts';

export function rowsOf(node: PlanNode, estimate: PassContext['estimate']): number {
  switch (node.kind) {
    case 'scan':
      return estimate(node);
    case 'working':
      return 1_000;
    case 'filter':
      // A third of the rows for each condition, a guess that only has to be the same on both sides.
      return rowsOf(node.input, estimate) / 3 ** Math.min(4, conjunctsOf(node.predicate).length);
    case 'aggregate':
      return node.groups === 0 ? 1 : rowsOf(node.input, estimate) / 4;
    case 'distinct':
      return rowsOf(node.input, estimate) / 2;
    case 'join':
      return Math.max(rowsOf(node.left, estimate), rowsOf(node.right, estimate));
    case 'set-operation':
      return rowsOf(node.left, estimate) + (node.op === 'except' || node.op === 'intersect' ? 0 : rowsOf(node.right, estimate));
    case 'recursive':
      return 4 * rowsOf(node.base, estimate);
    case 'project':
    case 'sort':
    case 'limit':
    case 'window':
      return rowsOf(node.input, estimate);
  }
}
