/**
 * Collects how the clauses of a graph pattern use each name: which of its columns have to be read, and whether as one value.
 * Pure.
 */
import { rowColumns } from '../graph/pattern-columns.ts';
import { isTypeFunction, itemNamed, nameFunction, partsOf } from './pattern-terms.ts';
import type { Clause, Term } from '../syntax/pattern-tree.ts';

/** The uses of a name in all clauses. */
export interface Uses {
  /** `rowColumns.entity` among them where it is a value as a whole. */
  readonly properties: Set<string>;
  /** The name is compared, ordered by, or returned alone: its key is needed. */
  isWhole: boolean;
  hasLabel: boolean;
}

export class PatternUses {
  readonly #usesByVariable = new Map<string, Uses>();
  readonly #wholeRowVariable: string | null;

  /** `asRow`: the name that RETURN shows as the columns of its row. */
  constructor(patternClauses: readonly Clause[], asRow: string | null) {
    this.#wholeRowVariable = asRow;
    for (const patternClause of patternClauses) this.#readClauseUses(patternClause, patternClauses);
    // Uses of a name that WITH gives are uses of the name that it passes on.
    for (const clause of patternClauses.toReversed()) {
      if (clause.kind !== 'with') continue;
      for (const { term, name } of clause.items) {
        if (term.kind !== 'variable' || term.name === name) continue;
        const [givenUses, passedUses] = [this.usesOf(name), this.usesOf(term.name)];
        for (const usedProperty of givenUses.properties) passedUses.properties.add(usedProperty);
        passedUses.hasLabel ||= givenUses.hasLabel;
        passedUses.isWhole ||= givenUses.isWhole;
      }
    }
  }

  #readClauseUses(patternClause: Clause, patternClauses: readonly Clause[]): void {
    switch (patternClause.kind) {
      case 'match':
        for (const { nodes, edges } of patternClause.chains) {
          for (const { name, labels, properties } of nodes) {
            if (name !== null) {
              const nodeUses = this.usesOf(name);
              nodeUses.hasLabel ||= labels.length > 0;
              for (const usedProperty of properties) nodeUses.properties.add(usedProperty.name);
            }
            for (const { value } of properties) this.#readTermUses(value);
          }
          for (const { name, properties } of edges) {
            if (name !== null) for (const usedProperty of properties) this.usesOf(name).properties.add(usedProperty.name);
            for (const { value } of properties) this.#readTermUses(value);
          }
        }
        if (patternClause.where !== null) this.#readTermUses(patternClause.where);
        return;
      case 'unwind':
        return this.#readTermUses(patternClause.list);
      default:
        if (patternClause.isAll && patternClause.kind === 'return')
          for (const name of boundNames(patternClauses)) this.usesOf(name).properties.add(rowColumns.entity);
        for (const { term } of patternClause.items) {
          if (term.kind !== 'variable') this.#readTermUses(term);
          else if (patternClause.kind === 'return') {
            if (term.name === this.#wholeRowVariable) this.usesOf(term.name).isWhole = true;
            else this.#readTermUses(term);
          }
        }
        for (const { term } of patternClause.orderBy) this.#readComparedUse(itemNamed(term, patternClause.items)?.term ?? term);
        if (patternClause.where !== null) this.#readTermUses(patternClause.where);
    }
  }

  /** A name by itself is compared by its key. */
  #readComparedUse(comparedTerm: Term): void {
    if (comparedTerm.kind === 'variable') this.usesOf(comparedTerm.name).isWhole = true;
    else this.#readTermUses(comparedTerm);
  }

  #readTermUses(usedTerm: Term): void {
    switch (usedTerm.kind) {
      case 'variable':
        this.usesOf(usedTerm.name).properties.add(rowColumns.entity);
        return;
      case 'property':
        if (usedTerm.of.kind === 'variable') this.usesOf(usedTerm.of.name).properties.add(usedTerm.name);
        else this.#readTermUses(usedTerm.of);
        return;
      case 'labelled':
        this.usesOf(usedTerm.of).properties.add(rowColumns.entity);
        return;
      case 'compare':
        this.#readComparedUse(usedTerm.left);
        return this.#readComparedUse(usedTerm.right);
      case 'is-null':
        // A test for existence needs no value.
        if (usedTerm.left.kind !== 'variable') this.#readTermUses(usedTerm.left);
        return;
      case 'aggregate':
        if (usedTerm.of?.kind === 'variable' && usedTerm.function === 'count') {
          if (usedTerm.distinct) this.usesOf(usedTerm.of.name).isWhole = true;
        } else if (usedTerm.of !== null) this.#readTermUses(usedTerm.of);
        return;
      case 'function':
        if (usedTerm.name === nameFunction) return this.#readComparedUse(usedTerm.arguments[0]!);
        if (isTypeFunction(usedTerm.name) && usedTerm.arguments[0]!.kind === 'variable') {
          this.usesOf(usedTerm.arguments[0].name).properties.add(rowColumns.type);
          return;
        }
        return usedTerm.arguments.forEach((argumentTerm) => this.#readTermUses(argumentTerm));
      default:
        return partsOf(usedTerm).forEach((argumentTerm) => this.#readTermUses(argumentTerm));
    }
  }

  usesOf(name: string): Uses {
    let variableUses = this.#usesByVariable.get(name);
    if (variableUses === undefined)
      this.#usesByVariable.set(name, (variableUses = { properties: new Set(), isWhole: false, hasLabel: false }));
    return variableUses;
  }
}

/** Names that the clauses give to nodes, edges, paths and values. */
function boundNames(patternClauses: readonly Clause[]): readonly string[] {
  return patternClauses.flatMap((clause) => {
    if (clause.kind !== 'match') return [];
    const patternParts = clause.chains.flatMap((chain) => [chain, ...chain.nodes, ...chain.edges]);
    return patternParts.flatMap(({ name }) => name ?? []);
  });
}
