/**
 * Moves conditions that every arm of an OR shares in front of it: (a AND b) OR (a AND c) is a AND (b OR c). An equality between
 * two tables then joins them by their keys. Where every arm has a condition on one table alone, these conditions together become
 * a condition on that table: (a = 1 AND x) OR (a = 2 AND y) leaves no row where a is neither 1 nor 2.
 */
import { type Bound, columnsIn, mayRaise, sameExpression } from '../expressions/bound-expression.ts';
import { type LogicalPlan, mapInputs, mapRoots, type PlanNode } from '../logical-plan.ts';
import { conjunction, conjunctsOf } from './simplify-expressions.ts';

const orArmsMax = 64;

export function commonConditions(plan: LogicalPlan): LogicalPlan {
  return mapRoots(plan, factorConditions);
}

function factorConditions(node: PlanNode): PlanNode {
  const rewrittenNode = mapInputs(node, factorConditions);
  if (rewrittenNode.kind === 'filter') {
    const sharedConditions = conjunctsOf(rewrittenNode.predicate).flatMap((each) =>
      factorOut(each, tableBoundariesOf(rewrittenNode.input)),
    );
    return { ...rewrittenNode, predicate: conjunction(sharedConditions) };
  }
  if (rewrittenNode.kind === 'join' && rewrittenNode.residual && rewrittenNode.type === 'inner') {
    const joinBoundaries = [
      ...tableBoundariesOf(rewrittenNode.left),
      ...tableBoundariesOf(rewrittenNode.right).map((end) => end + rewrittenNode.left.columns.length),
    ];
    return {
      ...rewrittenNode,
      residual: conjunction(conjunctsOf(rewrittenNode.residual).flatMap((each) => factorOut(each, joinBoundaries))),
    };
  }
  return rewrittenNode;
}

/** Ends of the tables side by side in a node: a column belongs to the first table whose end is above it. */
function tableBoundariesOf(node: PlanNode): readonly number[] {
  if (node.kind === 'filter') return tableBoundariesOf(node.input);
  if (node.kind !== 'join' || node.type !== 'inner') return [node.columns.length];
  return [...tableBoundariesOf(node.left), ...tableBoundariesOf(node.right).map((end) => end + node.left.columns.length)];
}

function factorOut(condition: Bound, boundaries: readonly number[]): readonly Bound[] {
  if (condition.kind !== 'or' || condition.operands.length > orArmsMax) return [condition];
  const orArms = condition.operands.map(conjunctsOf);
  if (orArms.some((arm) => arm.some(mayRaise))) return [condition];
  const [firstArm, ...otherArms] = orArms;
  const isInArm = (each: Bound, arm: readonly Bound[]): boolean => arm.some((other) => sameExpression(each, other, [], []));
  const commonConjuncts = firstArm!.filter((each) => otherArms.every((arm) => isInArm(each, arm)));
  const armRests = orArms.map((arm) => arm.filter((each) => !isInArm(each, commonConjuncts)));
  // An arm that says no more than the others have in common lets everything through.
  if (armRests.some((restCondition) => restCondition.length === 0)) return commonConjuncts;
  const rest: Bound = { kind: 'or', operands: armRests.map(conjunction), type: 'boolean' };
  return [...commonConjuncts, ...impliedByArms(armRests, boundaries), commonConjuncts.length === 0 ? condition : rest];
}

/** For each table, what must be true of its row for any arm to hold. */
function impliedByArms(orArms: readonly (readonly Bound[])[], boundaries: readonly number[]): readonly Bound[] {
  if (boundaries.length < 2) return [];
  const tableOfBound = (bound: Bound): number => {
    const tables = new Set([...columnsIn(bound)].map((index) => boundaries.findIndex((end) => index < end)));
    return tables.size === 1 ? [...tables][0]! : -1;
  };
  const impliedConditions: Bound[] = [];
  for (let table = 0; table < boundaries.length; table++) {
    const tableConjuncts = orArms.map((arm) => arm.filter((each) => tableOfBound(each) === table));
    if (tableConjuncts.every((arm) => arm.length > 0))
      impliedConditions.push({ kind: 'or', operands: tableConjuncts.map(conjunction), type: 'boolean' });
  }
  return impliedConditions;
}
