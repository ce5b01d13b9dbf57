/** The parts of a plan that kernels run: `by kernel` in EXPLAIN, and the operators that the executor builds. */
import type { ColumnType } from '../../log/values/value.ts';
import { type Bound, childrenOf, isLong } from '../expressions/bound-expression.ts';
import type { AggregateNode, FilterNode, PlanNode } from '../logical-plan.ts';
import { splitPredicate } from './column-tests.ts';

/** Parts of a condition beyond which it is taken up in pieces. */
const partsMax = 32;

/** A condition on rows as they are scanned, of which kernels can judge at least a part. */
export function filtersByKernel({ input, predicate }: FilterNode): boolean {
  if (input.kind !== 'scan' || input.keys !== null) return false;
  if ((predicate.kind === 'and' && predicate.operands.length > partsMax) || isLong(predicate)) return false;
  return splitPredicate(predicate).tests.length > 0;
}

/**
 * Whether an aggregate takes whole segments from its scan: the nodes between them work on numbers and codes alone, so that a
 * segment fits one turn.
 */
export function aggregatesByKernel(node: AggregateNode): boolean {
  if (node.groups > 2) return false;
  const types = node.input.columns.map(({ type }) => type);
  if (types.slice(0, node.groups).some((type) => type !== 'string' && type !== 'integer')) return false;
  const taken = node.calls.every(({ function: name, column, distinct }) => {
    if (column === null || name === 'count') return !distinct;
    return byKernel.has(name) && !distinct && !apart.has(types[column]!);
  });
  return taken && segmentsThrough(node.input);
}

/** Types of which cells are gone over one by one. */
const apart: ReadonlySet<ColumnType> = new Set(['string', 'json', 'vector']);
const byKernel: ReadonlySet<string> = new Set(['sum', 'avg', 'min', 'max']);

function segmentsThrough(node: PlanNode): boolean {
  switch (node.kind) {
    case 'scan':
      return node.keys === null && node.columns.length > 0;
    case 'filter':
      return filtersByKernel(node);
    case 'project':
      return node.expressions.every(isCheap) && segmentsThrough(node.input);
    default:
      return false;
  }
}

/** A column as it is, or arithmetic. */
function isCheap(bound: Bound): boolean {
  if (bound.kind === 'column' || bound.kind === 'parameter') return true;
  return (bound.kind === 'arithmetic' || bound.kind === 'negate') && childrenOf(bound).every(isCheap);
}
