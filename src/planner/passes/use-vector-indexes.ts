/**
 * The first rows by how far their vectors are from one: below the sort, rows that can't be among them are ruled out before their
 * distance is worked out.
 */
import { type Bound, columnsIn, mayRaise } from '../expressions/bound-expression.ts';
import { type LogicalPlan, mapInputs, mapRoots, type Nearest, type PlanNode, type SortNode } from '../logical-plan.ts';

export function useVectorIndexes(plan: LogicalPlan): LogicalPlan {
  return mapRoots(plan, useIndexes);
}

function useIndexes(node: PlanNode): PlanNode {
  const below = mapInputs(node, useIndexes);
  if (below.kind !== 'sort' || below.input.kind !== 'project') return below;
  const nearest = nearestOf(below, below.input.expressions);
  return nearest === null ? below : { ...below, input: { ...below.input, nearest } };
}

function nearestOf({ keys: [key], limit, offset, counted }: SortNode, expressions: readonly Bound[]): Nearest | null {
  if (!key || key.descending || key.nullsFirst === true || limit === null) return null;
  if ('value' in limit || (offset && 'value' in offset)) return null;
  const distance = expressions[key.column]!;
  if (distance.kind !== 'call' || !distances.has(distance.name)) return null;
  // A row that is ruled out is not asked whether the rest of it can be worked out.
  if (expressions.some((each) => each !== distance && mayRaise(each))) return null;
  const [a, b] = distance.operands as [Bound, Bound];
  const [of, to] = a.kind === 'column' ? [a, b] : [b, a];
  if (of.kind !== 'column' || of.type !== 'vector' || columnsIn(to).size > 0) return null;
  return { column: of.index, to, distance, limit, ...(offset && { offset }), counted };
}

const distances: ReadonlySet<string> = new Set(['<=>', '<->', '<#>']);
