/**
 * Moves conditions that every arm of an OR shares in front of it: (a AND b) OR (a AND c) is a AND (b OR c). An equality between
 * two tables then joins them by their keys. Where every arm has a condition on one table alone, these conditions together become
 * a condition on that table: (a = 1 AND x) OR (a = 2 AND y) leaves no row where a is neither 1 nor 2.
 */
import { type Bound, columnsIn, mayRaise, sameExpression } from '../expressions/bound-expression.ts';
import { type LogicalPlan, mapInputs, mapRoots, type PlanNode } from '../logical-plan.ts';
import { conjunction, conjunctsOf } from './simplify-expressions.ts';

const armsMax = 64;

export function commonConditions(plan: LogicalPlan): LogicalPlan {
  return mapRoots(plan, rewritten);
}

function rewritten(node: PlanNode): PlanNode {
  const own = mapInputs(node, rewritten);
  if (own.kind === 'filter') {
    const sharedConditions = conjunctsOf(own.predicate).flatMap((each) => factorOut(each, boundariesOf(own.input)));
    return { ...own, predicate: conjunction(sharedConditions) };
  }
  if (own.kind === 'join' && own.residual && own.type === 'inner') {
    const boundaries = [...boundariesOf(own.left), ...boundariesOf(own.right).map((end) => end + own.left.columns.length)];
    return { ...own, residual: conjunction(conjunctsOf(own.residual).flatMap((each) => factorOut(each, boundaries))) };
  }
  return own;
}

/** Ends of the tables side by side in a node: a column belongs to the first table whose end is above it. */
function boundariesOf(node: PlanNode): readonly number[] {
  if (node.kind === 'filter') return boundariesOf(node.input);
  if (node.kind !== 'join' || node.type !== 'inner') return [node.columns.length];
  return [...boundariesOf(node.left), ...boundariesOf(node.right).map((end) => end + node.left.columns.length)];
}

function factorOut(condition: Bound, boundaries: readonly number[]): readonly Bound[] {
  if (condition.kind !== 'or' || condition.operands.length > armsMax) return [condition];
  const arms = condition.operands.map(conjunctsOf);
  if (arms.some((arm) => arm.some(mayRaise))) return [condition];
  const [first, ...others] = arms;
  const isIn = (each: Bound, arm: readonly Bound[]): boolean => arm.some((other) => sameExpression(each, other, [], []));
  const common = first!.filter((each) => others.every((arm) => isIn(each, arm)));
  const rests = arms.map((arm) => arm.filter((each) => !isIn(each, common)));
  // An arm that says no more than the others have in common lets everything through.
  if (rests.some((rest) => rest.length === 0)) return common;
  const rest: Bound = { kind: 'or', operands: rests.map(conjunction), type: 'boolean' };
  return [...common, ...impliedBy(rests, boundaries), common.length === 0 ? condition : rest];
}

/** For each table, what must be true of its row for any arm to hold. */
function impliedBy(arms: readonly (readonly Bound[])[], boundaries: readonly number[]): readonly Bound[] {
  if (boundaries.length < 2) return [];
  const tableOf = (bound: Bound): number => {
    const tables = new Set([...columnsIn(bound)].map((index) => boundaries.findIndex((end) => index < end)));
    return tables.size === 1 ? [...tables][0]! : -1;
  };
  const implied: Bound[] = [];
  for (let table = 0; table < boundaries.length; table++) {
    const own = arms.map((arm) => arm.filter((each) => tableOf(each) === table));
    if (own.every((arm) => arm.length > 0)) implied.push({ kind: 'or', operands: own.map(conjunction), type: 'boolean' });
  }
  return implied;
}
