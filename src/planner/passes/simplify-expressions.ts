/**
 * Every column-free subtree becomes a parameter of the plan, computed once per execution. Nested AND and OR become flat lists,
 * which the passes after this one take apart.
 */
import { type Bound, type BoundColumn, childrenOf, mapChildren, raises } from '../expressions/bound-expression.ts';
import { type LogicalPlan, mapExpressions, mapRoots } from '../logical-plan.ts';

export function simplifyExpressions(plan: LogicalPlan): LogicalPlan {
  const parameters: Bound[] = [...plan.parameters];
  const simplify = (bound: Bound): Bound => simplifyIn(bound, false);
  // Each node is looked at once, however deep it stands.
  const seen = new Map<Bound, number>();
  const factsOf = (bound: Bound): number => {
    const isList = bound.kind === 'in';
    // A list may have a hundred thousand items, and a literal says nothing.
    const children = isList ? bound.items : childrenOf(bound);
    if (children.length === 0 && !isList) return ownFacts(bound);
    let facts = seen.get(bound);
    if (facts === undefined) {
      facts = isList ? factsOf(bound.operand) : ownFacts(bound);
      for (const child of children) if (child.kind !== 'literal') facts |= factsOf(child);
      seen.set(bound, facts);
    }
    return facts;
  };
  // A branch of a CASE that no row takes must not fail: expressions that can fail are left to the rows that take it.
  const simplifyIn = (bound: Bound, inCase: boolean): Bound => {
    if (bound.kind === 'literal') return parameter(bound);
    if (bound.kind === 'literals') return bound;
    const facts = factsOf(bound);
    if ((facts & (variable | (inCase ? raising : 0))) === 0) return parameter(bound);
    const simplified = mapChildren(bound, (child) =>
      simplifyIn(child, inCase || bound.kind === 'case' || bound.kind === 'coalesce'),
    );
    return simplified.kind === 'and' || simplified.kind === 'or' ? flatten(simplified) : simplified;
  };
  // The same literal, met twice, is one parameter; looked up by slot, for lists of many thousands.
  const known: Record<Extract<Bound, { kind: 'literal' }>['as'], (number | undefined)[]> = {
    value: [],
    instant: [],
    basis: [],
    interval: [],
  };
  const parameter = (bound: Bound): Bound => {
    if (bound.kind === 'parameter') return bound;
    if (bound.kind !== 'literal') return { kind: 'parameter', index: parameters.push(bound) - 1, type: bound.type };
    const index = (known[bound.as][bound.slot] ??= parameters.push(bound) - 1);
    return { kind: 'parameter', index, type: bound.type };
  };
  return { ...mapRoots(plan, (root) => mapExpressions(root, simplify)), parameters };
}

const variable = 1;
const raising = 2;

/** The result of a subquery is as unknown before the statement runs as the cells of a row. */
function ownFacts(bound: Bound): number {
  switch (bound.kind) {
    case 'column':
    case 'in-set':
      return variable;
    case 'call':
      return (bound.function.draws === true ? variable : 0) | (raises(bound) ? raising : 0);
    default:
      return raises(bound) ? raising : 0;
  }
}

function flatten(bound: Extract<Bound, { kind: 'and' | 'or' }>): Bound {
  const operands = bound.operands.flatMap((operand) => (operand.kind === bound.kind ? operand.operands : [operand]));
  return bound.kind === 'or' ? withLists(operands) : { ...bound, operands };
}

/** `a = 1 OR a = 2 OR …` is `a IN (1, 2, …)`: a list of many is one look into a set. */
function withLists(operands: readonly Bound[]): Bound {
  const lists = new Map<number, { readonly operand: Bound; readonly items: Bound[] }>();
  const rest: Bound[] = [];
  for (const each of operands) {
    const test = listOf(each);
    const known = test && lists.get(test.operand.index);
    if (!test) rest.push(each);
    else if (known) known.items.push(...test.items);
    else lists.set(test.operand.index, { operand: test.operand, items: [...test.items] });
  }
  const tests = [...lists.values()].map(({ operand, items }): Bound => {
    const [only, ...others] = items;
    return others.length === 0
      ? { kind: 'compare', op: '=', left: operand, right: only!, type: 'boolean' }
      : { kind: 'in', operand, items, type: 'boolean' };
  });
  const all = [...tests, ...rest];
  return all.length === 1 ? all[0]! : { kind: 'or', operands: all, type: 'boolean' };
}

/** A column that is tested for being one of some constants. */
function listOf(bound: Bound): { readonly operand: BoundColumn; readonly items: readonly Bound[] } | null {
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
