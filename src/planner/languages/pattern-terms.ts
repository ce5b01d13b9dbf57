/** Walks the terms of graph patterns. Pure. */
import type { Item, Term } from '../syntax/pattern-tree.ts';

/** A function that no text can call: the key of a node by which edges name it. */
export const nameFunction = '#name';

/** The function asks for the type of a relationship, which its edge alone may have. */
export const isTypeFunction = (name: string): boolean => name === 'type';

/** Whether the term is an aggregate, or contains one. */
export function isAggregate(patternTerm: Term): boolean {
  return patternTerm.kind === 'aggregate' || partsOf(patternTerm).some(isAggregate);
}

/** The operands of a term. */
export function partsOf(patternTerm: Term): readonly Term[] {
  switch (patternTerm.kind) {
    case 'variable':
    case 'literal':
    case 'labelled':
      return [];
    case 'property':
      return [patternTerm.of];
    case 'element':
      return [patternTerm.of, patternTerm.at];
    case 'list':
      return patternTerm.items;
    case 'map':
      return patternTerm.entries.map(({ value }) => value);
    case 'function':
      return patternTerm.arguments;
    case 'aggregate':
      return patternTerm.of === null ? [] : [patternTerm.of];
    case 'negate':
    case 'not':
      return [patternTerm.operand];
    case 'case':
      return [
        ...(patternTerm.operand ? [patternTerm.operand] : []),
        ...patternTerm.branches.flatMap(({ when, result }) => [when, result]),
        ...(patternTerm.otherwise ? [patternTerm.otherwise] : []),
      ];
    case 'in':
      return [patternTerm.left, patternTerm.list];
    case 'is-null':
      return [patternTerm.left];
    default:
      return [patternTerm.left, patternTerm.right];
  }
}

export function namesIn(patternTerm: Term): readonly string[] {
  if (patternTerm.kind === 'variable') return [patternTerm.name];
  if (patternTerm.kind === 'labelled') return [patternTerm.of];
  return partsOf(patternTerm).flatMap(namesIn);
}

/** The item that a name stands for. */
export function itemNamed(term: Term, projectedItems: readonly Item[]): Item | undefined {
  return term.kind === 'variable' ? projectedItems.find(({ name }) => name === term.name) : undefined;
}
