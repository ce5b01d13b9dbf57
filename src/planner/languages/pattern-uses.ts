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
  readonly #uses = new Map<string, Uses>();
  readonly #asRow: string | null;

  /** `asRow`: the name that RETURN shows as the columns of its row. */
  constructor(clauses: readonly Clause[], asRow: string | null) {
    this.#asRow = asRow;
    for (const clause of clauses) this.#readUses(clause, clauses);
    // Uses of a name that WITH gives are uses of the name that it passes on.
    for (const clause of clauses.toReversed()) {
      if (clause.kind !== 'with') continue;
      for (const { term, name } of clause.items) {
        if (term.kind !== 'variable' || term.name === name) continue;
        const [given, passed] = [this.usesOf(name), this.usesOf(term.name)];
        for (const property of given.properties) passed.properties.add(property);
        passed.hasLabel ||= given.hasLabel;
        passed.isWhole ||= given.isWhole;
      }
    }
  }

  #readUses(clause: Clause, clauses: readonly Clause[]): void {
    switch (clause.kind) {
      case 'match':
        for (const { nodes, edges } of clause.chains) {
          for (const { name, labels, properties } of nodes) {
            if (name !== null) {
              const uses = this.usesOf(name);
              uses.hasLabel ||= labels.length > 0;
              for (const property of properties) uses.properties.add(property.name);
            }
            for (const { value } of properties) this.#readTerm(value);
          }
          for (const { name, properties } of edges) {
            if (name !== null) for (const property of properties) this.usesOf(name).properties.add(property.name);
            for (const { value } of properties) this.#readTerm(value);
          }
        }
        if (clause.where !== null) this.#readTerm(clause.where);
        return;
      case 'unwind':
        return this.#readTerm(clause.list);
      default:
        if (clause.isAll && clause.kind === 'return')
          for (const name of namesBound(clauses)) this.usesOf(name).properties.add(rowColumns.entity);
        for (const { term } of clause.items) {
          if (term.kind !== 'variable') this.#readTerm(term);
          else if (clause.kind === 'return') {
            if (term.name === this.#asRow) this.usesOf(term.name).isWhole = true;
            else this.#readTerm(term);
          }
        }
        for (const { term } of clause.orderBy) this.#readCompared(itemNamed(term, clause.items)?.term ?? term);
        if (clause.where !== null) this.#readTerm(clause.where);
    }
  }

  /** A name by itself is compared by its key. */
  #readCompared(term: Term): void {
    if (term.kind === 'variable') this.usesOf(term.name).isWhole = true;
    else this.#readTerm(term);
  }

  #readTerm(term: Term): void {
    switch (term.kind) {
      case 'variable':
        this.usesOf(term.name).properties.add(rowColumns.entity);
        return;
      case 'property':
        if (term.of.kind === 'variable') this.usesOf(term.of.name).properties.add(term.name);
        else this.#readTerm(term.of);
        return;
      case 'labelled':
        this.usesOf(term.of).properties.add(rowColumns.entity);
        return;
      case 'compare':
        this.#readCompared(term.left);
        return this.#readCompared(term.right);
      case 'is-null':
        // A test for existence needs no value.
        if (term.left.kind !== 'variable') this.#readTerm(term.left);
        return;
      case 'aggregate':
        if (term.of?.kind === 'variable' && term.function === 'count') {
          if (term.distinct) this.usesOf(term.of.name).isWhole = true;
        } else if (term.of !== null) this.#readTerm(term.of);
        return;
      case 'function':
        if (term.name === nameFunction) return this.#readCompared(term.arguments[0]!);
        if (isTypeFunction(term.name) && term.arguments[0]!.kind === 'variable') {
          this.usesOf(term.arguments[0].name).properties.add(rowColumns.type);
          return;
        }
        return term.arguments.forEach((each) => this.#readTerm(each));
      default:
        return partsOf(term).forEach((each) => this.#readTerm(each));
    }
  }

  usesOf(name: string): Uses {
    let uses = this.#uses.get(name);
    if (uses === undefined) this.#uses.set(name, (uses = { properties: new Set(), isWhole: false, hasLabel: false }));
    return uses;
  }
}

/** Names that the clauses give to nodes, edges, paths and values. */
function namesBound(clauses: readonly Clause[]): readonly string[] {
  return clauses.flatMap((clause) => {
    if (clause.kind !== 'match') return [];
    const parts = clause.chains.flatMap((chain) => [chain, ...chain.nodes, ...chain.edges]);
    return parts.flatMap(({ name }) => name ?? []);
  });
}
