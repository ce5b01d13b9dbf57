/** Walks the terms of graph patterns. Pure. */
import type { Item, Term } from '../syntax/pattern-tree.ts';

/** A function that no text can call: the key of a node by which edges name it. */
export const nameFunction = '#name';

/** The function asks for the type of a relationship, which its edge alone may have. */
export const isTypeFunction = (name: string): boolean => name === 'type';

/** Whether the term is an aggregate, or contains one. */
export function isAggregate(term: Term): boolean {
  return term.kind === 'aggregate' || partsOf(term).some(isAggregate);
}

/** The operands of a term. */
export function partsOf(term: Term): readonly Term[] {
  switch (term.kind) {
    case 'variable':
    case 'literal':
    case 'labelled':
      return [];
    case 'property':
      return [term.of];
    case 'element':
      return [term.of, term.at];
    case 'list':
      return term.items;
    case 'map':
      return term.entries.map(({ value }) => value);
    case 'function':
      return term.arguments;
    case 'aggregate':
      return term.of === null ? [] : [term.of];
    case 'negate':
    case 'not':
      return [term.operand];
    case 'case':
      return [
        ...(term.operand ? [term.operand] : []),
        ...term.branches.flatMap(({ when, result }) => [when, result]),
        ...(term.otherwise ? [term.otherwise] : []),
      ];
    case 'in':
      return [term.left, term.list];
    case 'is-null':
      return [term.left];
    default:
      return [term.left, term.right];
  }
}

export function namesIn(term: Term): readonly string[] {
  if (term.kind === 'variable') return [term.name];
  if (term.kind === 'labelled') return [term.of];
  return partsOf(term).flatMap(namesIn);
}

/** The item that a name stands for. */
export function itemNamed(term: Term, items: readonly Item[]): Item | undefined {
  return term.kind === 'variable' ? items.find(({ name }) => name === term.name) : undefined;
}
