/**
 * What does not depend on a row is computed once: every column-free subtree becomes a parameter of the plan. Nested AND
 * and OR become flat lists, which the passes after this one take apart.
 */
import { type Bound, childrenOf, mapChildren } from '../expressions/bound-expression.ts';
import { type LogicalPlan, mapExpressions, mapRoots } from '../logical-plan.ts';

export function simplifyExpressions(plan: LogicalPlan): LogicalPlan {
  const parameters: Bound[] = [...plan.parameters];
  const simplify = (bound: Bound): Bound => simplifyIn(bound, false);
  // Each node is looked at once, however deep it stands.
  const seen = new Map<Bound, number>();
  const factsOf = (bound: Bound): number => {
    let facts = seen.get(bound);
    if (facts === undefined) {
      facts = ownFacts(bound);
      for (const child of childrenOf(bound)) facts |= factsOf(child);
      seen.set(bound, facts);
    }
    return facts;
  };
  // A branch of a CASE that no row takes must not fail: what can, is left to the rows that take it.
  const simplifyIn = (bound: Bound, inCase: boolean): Bound => {
    const facts = factsOf(bound);
    if ((facts & (variable | (inCase ? raising : 0))) === 0) return parameter(bound);
    const simplified = mapChildren(bound, (child) => simplifyIn(child, inCase || bound.kind === 'case'));
    return simplified.kind === 'and' || simplified.kind === 'or' ? flattened(simplified) : simplified;
  };
  // The same literal, met twice, is one parameter; looked up by slot, for lists of many thousands.
  const known = new Map<string, number>();
  const parameter = (bound: Bound): Bound => {
    if (bound.kind === 'parameter') return bound;
    const key = bound.kind === 'literal' ? `${bound.as} ${bound.slot}` : null;
    const index = (key === null ? undefined : known.get(key)) ?? parameters.push(bound) - 1;
    if (key !== null) known.set(key, index);
    return { kind: 'parameter', index, type: bound.type };
  };
  return { ...mapRoots(plan, (root) => mapExpressions(root, simplify)), parameters };
}

const variable = 1;
const raising = 2;

/** What a subquery yields is not known before the statement runs, no more than what a row holds. */
function ownFacts(bound: Bound): number {
  switch (bound.kind) {
    case 'column':
    case 'in-set':
      return variable;
    case 'arithmetic':
    case 'negate':
    case 'to-number':
    case 'function':
      return raising;
    default:
      return 0;
  }
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
