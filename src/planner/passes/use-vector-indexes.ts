/**
 * The first rows by how far their vectors are from one: below the sort, rows that can't be among them are ruled out before their
 * distance is worked out.
 */
import { type Bound, columnsIn, mayRaise } from '../expressions/bound-expression.ts';
import { type LogicalPlan, mapInputs, mapRoots, type Nearest, type PlanNode, type SortNode } from '../logical-plan.ts';

export function useVectorIndexes(plan: LogicalPlan): LogicalPlan {
  return mapRoots(plan, useVectorIndexesIn);
}

function useVectorIndexesIn(node: PlanNode): PlanNode {
  const indexedBelow = mapInputs(node, useVectorIndexesIn);
  if (indexedBelow.kind !== 'sort' || indexedBelow.input.kind !== 'project') return indexedBelow;
  const nearestOrder = nearestOf(indexedBelow, indexedBelow.input.expressions);
  return nearestOrder === null ? indexedBelow : { ...indexedBelow, input: { ...indexedBelow.input, nearest: nearestOrder } };
}

function nearestOf({ keys: [distanceKey], limit, offset, counted }: SortNode, expressions: readonly Bound[]): Nearest | null {
  if (!distanceKey || distanceKey.descending || distanceKey.nullsFirst === true || limit === null) return null;
  if ('value' in limit || (offset && 'value' in offset)) return null;
  const distance = expressions[distanceKey.column]!;
  if (distance.kind !== 'call' || !distanceOperators.has(distance.name)) return null;
  // A row that is ruled out is not asked whether the rest of it can be worked out.
  if (expressions.some((each) => each !== distance && mayRaise(each))) return null;
  const [leftOperand, rightOperand] = distance.operands as [Bound, Bound];
  const [vectorColumn, soughtVector] = leftOperand.kind === 'column' ? [leftOperand, rightOperand] : [rightOperand, leftOperand];
  if (vectorColumn.kind !== 'column' || vectorColumn.type !== 'vector' || columnsIn(soughtVector).size > 0) return null;
  return { column: vectorColumn.index, to: soughtVector, distance, limit, ...(offset && { offset }), counted };
}

const distanceOperators: ReadonlySet<string> = new Set(['<=>', '<->', '<#>']);
