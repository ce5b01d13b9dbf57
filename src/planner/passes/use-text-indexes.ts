/**
 * Restricts a search to rows that can match: rows that a condition requires are looked up in the index instead of reading all
 * rows; and where only the best of them are wanted, the others are not read either.
 */
import type { Bound } from '../expressions/bound-expression.ts';
import {
  type FilterNode,
  type LogicalPlan,
  mapInputs,
  mapRoots,
  type PlanNode,
  type SearchNode,
  type SortNode,
} from '../logical-plan.ts';
import { conjunctsOf } from './simplify-expressions.ts';

export function useTextIndexes(plan: LogicalPlan): LogicalPlan {
  return mapRoots(plan, useIndexes);
}

function useIndexes(node: PlanNode): PlanNode {
  if (node.kind === 'sort') {
    const best = bestOf(node);
    if (best) return best;
  }
  if (node.kind === 'filter' && node.input.kind === 'search') return { ...node, input: requiring(node.input, node) };
  return mapInputs(node, useIndexes);
}

function requiring(search: SearchNode, { predicate }: FilterNode): SearchNode {
  const required = conjunctsOf(predicate).flatMap((conjunct) => matchOf(conjunct, search) ?? []);
  return { ...search, required: [...new Set(required)].sort((a, b) => a - b) };
}

function matchOf(bound: Bound, { input, matches }: SearchNode): number | null {
  if (bound.kind !== 'column') return null;
  const number = bound.index - input.columns.length;
  return number >= 0 && number < matches.length ? number : null;
}

/** A sort by the score first, of which only the first rows are wanted, over rows that matches alone decide about. */
function bestOf(sort: SortNode): PlanNode | null {
  const [key] = sort.keys;
  const { limit, offset } = sort;
  if (limit === null || 'value' in limit || (offset && 'value' in offset) || !key?.descending) return null;
  const path: PlanNode[] = [];
  let { column } = key;
  let node = sort.input;
  for (; node.kind === 'project'; node = node.input) {
    const computed = node.expressions[column]!;
    if (computed.kind !== 'column') return null;
    ({ index: column } = computed);
    path.push(node);
  }
  if (node.kind !== 'filter' || node.input.kind !== 'search') return null;
  const search = requiring(node.input, node);
  if (!search.scored || column !== search.columns.length - 1) return null;
  if (conjunctsOf(node.predicate).some((conjunct) => matchOf(conjunct, search) === null)) return null;
  let below: PlanNode = { ...node, input: { ...search, best: { limit, offset } } };
  for (const each of path.reverse()) if (each.kind === 'project') below = { ...each, input: below };
  return { ...sort, input: below };
}
