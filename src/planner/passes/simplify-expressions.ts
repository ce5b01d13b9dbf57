/**
 * What does not depend on a row is computed once: every column-free subtree becomes a parameter of the plan. Nested AND
 * and OR become flat lists, which the passes after this one take apart.
 */
import { type Bound, columnsIn, type Guard, mapChildren, sameExpression } from '../expressions/bound-expression.ts';
import { type LogicalPlan, mapExpressions } from '../logical-plan.ts';
import type { Literal } from '../statement.ts';

export function simplifyExpressions(plan: LogicalPlan, literals: readonly Literal[]): LogicalPlan {
  const parameters: Bound[] = [...plan.parameters];
  const simplify = (bound: Bound): Bound => {
    if (columnsIn(bound).size === 0) return parameter(bound);
    const simplified = mapChildren(bound, simplify);
    return simplified.kind === 'and' || simplified.kind === 'or' ? flattened(simplified) : simplified;
  };
  const parameter = (bound: Bound): Bound => {
    if (bound.kind === 'parameter') return bound;
    // Only what reads the same slots is shared: equal values today may differ in the next statement of the template.
    let index = parameters.findIndex((each) => {
      const needed: Guard[] = [];
      return sameExpression(each, bound, literals, needed) && needed.length === 0;
    });
    if (index < 0) index = parameters.push(bound) - 1;
    return { kind: 'parameter', index, type: bound.type };
  };
  return { ...plan, root: mapExpressions(plan.root, simplify), parameters };
}

function flattened(bound: Extract<Bound, { kind: 'and' | 'or' }>): Bound {
  const operands = bound.operands.flatMap((operand) => (operand.kind === bound.kind ? operand.operands : [operand]));
  return { ...bound, operands };
}

/** Conjuncts of a condition: all must be true. */
export function conjunctsOf(predicate: Bound): readonly Bound[] {
  return predicate.kind === 'and' ? predicate.operands : [predicate];
}

export function conjunction(conjuncts: readonly Bound[]): Bound {
  return conjuncts.length === 1 ? conjuncts[0]! : { kind: 'and', operands: conjuncts, type: 'boolean' };
}
