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
  return mapRoots(plan, useTextIndexesIn);
}

function useTextIndexesIn(node: PlanNode): PlanNode {
  if (node.kind === 'sort') {
    const bestSearch = bestFirstSort(node);
    if (bestSearch) return bestSearch;
  }
  if (node.kind === 'filter' && node.input.kind === 'search') return { ...node, input: requireMatches(node.input, node) };
  return mapInputs(node, useTextIndexesIn);
}

function requireMatches(search: SearchNode, { predicate }: FilterNode): SearchNode {
  const requiredMatches = conjunctsOf(predicate).flatMap((conjunct) => matchOrdinalOf(conjunct, search) ?? []);
  return { ...search, required: [...new Set(requiredMatches)].sort((a, b) => a - b) };
}

function matchOrdinalOf(bound: Bound, { input, matches }: SearchNode): number | null {
  if (bound.kind !== 'column') return null;
  const matchOrdinal = bound.index - input.columns.length;
  return matchOrdinal >= 0 && matchOrdinal < matches.length ? matchOrdinal : null;
}

/** A sort by the score first, of which only the first rows are wanted, over rows that matches alone decide about. */
function bestFirstSort(sort: SortNode): PlanNode | null {
  const [scoreKey] = sort.keys;
  const { limit, offset } = sort;
  if (limit === null || 'value' in limit || (offset && 'value' in offset) || !scoreKey?.descending) return null;
  const projectPath: PlanNode[] = [];
  let { column } = scoreKey;
  let node = sort.input;
  for (; node.kind === 'project'; node = node.input) {
    const computed = node.expressions[column]!;
    if (computed.kind !== 'column') return null;
    ({ index: column } = computed);
    projectPath.push(node);
  }
  if (node.kind !== 'filter' || node.input.kind !== 'search') return null;
  const requiredSearch = requireMatches(node.input, node);
  if (!requiredSearch.scored || column !== requiredSearch.columns.length - 1) return null;
  if (conjunctsOf(node.predicate).some((conjunct) => matchOrdinalOf(conjunct, requiredSearch) === null)) return null;
  let searchBelow: PlanNode = { ...node, input: { ...requiredSearch, best: { limit, offset } } };
  for (const each of projectPath.reverse()) if (each.kind === 'project') searchBelow = { ...each, input: searchBelow };
  return { ...sort, input: searchBelow };
}
