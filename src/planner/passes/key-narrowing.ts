/**
 * Decides where keys of one side of a join may narrow scans of the other, which then skip rows that would find no partner.
 * `operators/key-filter.ts` passes the keys; the decision follows from the plan alone, so passes and the executor agree.
 */
import { mayRaise } from '../expressions/bound-expression.ts';
import { inputsOf, type JoinNode, type PlanNode } from '../logical-plan.ts';

/** Whether left rows without a partner on the right may be left out, or right rows without one on the left. */
export function narrows({ type }: JoinNode, side: 'left' | 'right'): boolean {
  if (type === 'inner') return true;
  if (side === 'left') return type === 'semi' || type === 'right';
  return type !== 'right' && type !== 'full';
}

/** Whether a scan below a node can use keys of one of its columns. */
export function takesKeys(node: PlanNode, column: number): boolean {
  if (node.kind === 'scan') return node.keys === null;
  if (node.kind === 'virtual') return node.columns[column]!.type === 'integer' || node.columns[column]!.type === 'string';
  return inputsOf(node).some((input, i) => narrowedBelow(node, i, column).some((below) => takesKeys(input, below)));
}

/**
 * Columns of input number `i` that hold only keys if a column of the node does. None where leaving rows out could change the
 * result for the others, or hide an error of an expression.
 */
export function narrowedBelow(node: PlanNode, i: number, column: number): readonly number[] {
  switch (node.kind) {
    case 'filter':
      return mayRaise(node.predicate) && node.input.kind !== 'scan' ? [] : [column];
    case 'project': {
      const computed = node.expressions[column]!;
      return computed.kind === 'column' && !node.expressions.some(mayRaise) ? [computed.index] : [];
    }
    case 'aggregate':
      return column < node.groups ? [column] : [];
    case 'distinct':
      return [column];
    case 'spread':
      return column < node.width ? [column] : [];
    // Rows that are left out leave the order of the others as it is.
    case 'number':
      return node.whole !== true && column < node.input.columns.length ? [column] : [];
    case 'sort':
      return node.limit === null ? [column] : [];
    case 'function': {
      if (node.carries === 'edges') return [column];
      return node.carries === 'input' && i === 0 && column < node.input!.columns.length ? [column] : [];
    }
    case 'join':
      return narrowedBelowJoin(node, i, column);
    default:
      return [];
  }
}

function narrowedBelowJoin(node: JoinNode, i: number, column: number): readonly number[] {
  const { type, left, leftKeys, rightKeys, residual } = node;
  // A second partner is an error of `single`, for every row.
  if ((residual && mayRaise(residual)) || type === 'right' || type === 'full' || type === 'single') return [];
  const leftWidth = left.columns.length;
  const equalKeys = (fromKeys: readonly number[], toKeys: readonly number[], key: number): number[] =>
    fromKeys.flatMap((each, k) => (each === key ? [toKeys[k]!] : []));
  if (column < leftWidth) return i === 0 ? [column] : equalKeys(leftKeys, rightKeys, column);
  if (type !== 'inner') return [];
  return i === 1 ? [column - leftWidth] : equalKeys(rightKeys, leftKeys, column - leftWidth);
}
