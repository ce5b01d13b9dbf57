/** The parts of a plan that kernels run: `by kernel` in EXPLAIN, and the operators that the executor builds. */
import type { ColumnType } from '../../log/values/value.ts';
import { type Bound, childrenOf, isLong } from '../expressions/bound-expression.ts';
import type { AggregateNode, FilterNode, PlanNode } from '../logical-plan.ts';
import { splitPredicate } from './column-tests.ts';

/** Parts of a condition beyond which it is taken up in pieces. */
const kernelConjunctsMax = 32;

/** A condition on rows as they are scanned, of which kernels can judge at least a part. */
export function filtersByKernel({ input, predicate }: FilterNode): boolean {
  if (input.kind !== 'scan' || input.keys !== null) return false;
  if ((predicate.kind === 'and' && predicate.operands.length > kernelConjunctsMax) || isLong(predicate)) return false;
  return splitPredicate(predicate).tests.length > 0;
}

/**
 * Whether an aggregate takes whole segments from its scan: the nodes between them work on numbers and codes alone, so that a
 * segment fits one turn.
 */
export function aggregatesByKernel(aggregateNode: AggregateNode): boolean {
  if (aggregateNode.groups > 2) return false;
  const inputTypes = aggregateNode.input.columns.map(({ type }) => type);
  if (inputTypes.slice(0, aggregateNode.groups).some((type) => type !== 'string' && type !== 'integer')) return false;
  const isTakenByKernel = aggregateNode.calls.every(({ function: name, column, distinct }) => {
    if (column === null || name === 'count') return !distinct;
    return kernelAggregates.has(name) && !distinct && !nonKernelTypes.has(inputTypes[column]!);
  });
  return isTakenByKernel && hasSegmentInput(aggregateNode.input);
}

/** Types of which cells are gone over one by one. */
const nonKernelTypes: ReadonlySet<ColumnType> = new Set(['string', 'json', 'vector']);
const kernelAggregates: ReadonlySet<string> = new Set(['sum', 'avg', 'min', 'max']);

function hasSegmentInput(planNode: PlanNode): boolean {
  switch (planNode.kind) {
    case 'scan':
      return planNode.keys === null && planNode.columns.length > 0;
    case 'filter':
      return filtersByKernel(planNode);
    case 'project':
      return planNode.expressions.every(isCheapExpression) && hasSegmentInput(planNode.input);
    default:
      return false;
  }
}

/** A column as it is, or arithmetic. */
function isCheapExpression(bound: Bound): boolean {
  if (bound.kind === 'column' || bound.kind === 'parameter') return true;
  return (bound.kind === 'arithmetic' || bound.kind === 'negate') && childrenOf(bound).every(isCheapExpression);
}
