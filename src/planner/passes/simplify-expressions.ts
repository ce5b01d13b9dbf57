/**
 * Every column-free subtree becomes a parameter of the plan, computed once per execution. Nested AND and OR become flat lists,
 * which the passes after this one take apart.
 */
import { type Bound, type BoundColumn, childrenOf, mapChildren, raises } from '../expressions/bound-expression.ts';
import { type LogicalPlan, mapExpressions, mapRoots } from '../logical-plan.ts';

export function simplifyExpressions(plan: LogicalPlan): LogicalPlan {
  const parameters: Bound[] = [...plan.parameters];
  const simplify = (bound: Bound): Bound => simplifyBound(bound, false);
  // Each node is looked at once, however deep it stands.
  const factsByBound = new Map<Bound, number>();
  const factsOf = (bound: Bound): number => {
    const isList = bound.kind === 'in';
    // A list may have a hundred thousand items, and a literal says nothing.
    const childBounds = isList ? bound.items : childrenOf(bound);
    if (childBounds.length === 0 && !isList) return boundOwnFacts(bound);
    let boundFacts = factsByBound.get(bound);
    if (boundFacts === undefined) {
      boundFacts = isList ? factsOf(bound.operand) : boundOwnFacts(bound);
      for (const child of childBounds) if (child.kind !== 'literal') boundFacts |= factsOf(child);
      factsByBound.set(bound, boundFacts);
    }
    return boundFacts;
  };
  // A branch of a CASE that no row takes must not fail: expressions that can fail are left to the rows that take it.
  const simplifyBound = (bound: Bound, inCase: boolean): Bound => {
    if (bound.kind === 'literal') return parameterOf(bound);
    if (bound.kind === 'literals') return bound;
    const boundFacts = factsOf(bound);
    if ((boundFacts & (variableFact | (inCase ? raisingFact : 0))) === 0) return parameterOf(bound);
    const simplifiedBound = mapChildren(bound, (child) =>
      simplifyBound(child, inCase || bound.kind === 'case' || bound.kind === 'coalesce'),
    );
    return simplifiedBound.kind === 'and' || simplifiedBound.kind === 'or' ? flattenJunction(simplifiedBound) : simplifiedBound;
  };
  // The same literal, met twice, is one parameter; looked up by slot, for lists of many thousands.
  const parametersBySlot: Record<Extract<Bound, { kind: 'literal' }>['as'], (number | undefined)[]> = {
    value: [],
    instant: [],
    basis: [],
    interval: [],
  };
  const parameterOf = (bound: Bound): Bound => {
    if (bound.kind === 'parameter') return bound;
    if (bound.kind !== 'literal') return { kind: 'parameter', index: parameters.push(bound) - 1, type: bound.type };
    const index = (parametersBySlot[bound.as][bound.slot] ??= parameters.push(bound) - 1);
    return { kind: 'parameter', index, type: bound.type };
  };
  return { ...mapRoots(plan, (root) => mapExpressions(root, simplify)), parameters };
}

const variableFact = 1;
const raisingFact = 2;

/** The result of a subquery is as unknown before the statement runs as the cells of a row. */
function boundOwnFacts(bound: Bound): number {
  switch (bound.kind) {
    case 'column':
    case 'in-set':
      return variableFact;
    case 'call':
      return (bound.function.draws === true ? variableFact : 0) | (raises(bound) ? raisingFact : 0);
    default:
      return raises(bound) ? raisingFact : 0;
  }
}

function flattenJunction(bound: Extract<Bound, { kind: 'and' | 'or' }>): Bound {
  const operands = bound.operands.flatMap((operand) => (operand.kind === bound.kind ? operand.operands : [operand]));
  return bound.kind === 'or' ? withInLists(operands) : { ...bound, operands };
}

/** `a = 1 OR a = 2 OR …` is `a IN (1, 2, …)`: a list of many is one look into a set. */
function withInLists(operands: readonly Bound[]): Bound {
  const itemsByColumn = new Map<number, { readonly operand: Bound; readonly items: Bound[] }>();
  const otherOperands: Bound[] = [];
  for (const each of operands) {
    const listTest = listTestOf(each);
    const knownList = listTest && itemsByColumn.get(listTest.operand.index);
    if (!listTest) otherOperands.push(each);
    else if (knownList) knownList.items.push(...listTest.items);
    else itemsByColumn.set(listTest.operand.index, { operand: listTest.operand, items: [...listTest.items] });
  }
  const listTests = [...itemsByColumn.values()].map(({ operand, items }): Bound => {
    const [onlyItem, ...otherItems] = items;
    return otherItems.length === 0
      ? { kind: 'compare', op: '=', left: operand, right: onlyItem!, type: 'boolean' }
      : { kind: 'in', operand, items, type: 'boolean' };
  });
  const orOperands = [...listTests, ...otherOperands];
  return orOperands.length === 1 ? orOperands[0]! : { kind: 'or', operands: orOperands, type: 'boolean' };
}

/** A column that is tested for being one of some constants. */
function listTestOf(bound: Bound): { readonly operand: BoundColumn; readonly items: readonly Bound[] } | null {
  if (bound.kind === 'compare' && bound.op === '=') {
    const { left, right } = bound;
    if (left.kind === 'column' && right.kind === 'parameter') return { operand: left, items: [right] };
    return left.kind === 'parameter' && right.kind === 'column' ? { operand: right, items: [left] } : null;
  }
  const isList = bound.kind === 'in' && bound.operand.kind === 'column' && bound.items.every(({ kind }) => kind === 'parameter');
  return isList ? { operand: bound.operand, items: bound.items } : null;
}

/** Conjuncts of a condition: all must be true. */
export function conjunctsOf(predicate: Bound): readonly Bound[] {
  return predicate.kind === 'and' ? predicate.operands : [predicate];
}

export function conjunction(conjuncts: readonly Bound[]): Bound {
  return conjuncts.length === 1 ? conjuncts[0]! : { kind: 'and', operands: conjuncts, type: 'boolean' };
}
