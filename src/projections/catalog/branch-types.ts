/** Types of one branch. A fork shares the table of its source until either of the two changes a type. */
import { assert } from '../../errors.ts';
import type { TypeDefinition } from '../../log/entry.ts';
import { compareText } from '../../log/value.ts';
import type { CatalogReader } from '../access-paths.ts';
import { builtinTypes } from './builtin-types.ts';

export class BranchTypes implements CatalogReader {
  #types: Map<string, TypeDefinition>;
  #shared = false;
  #ontologyVersion: number;
  #sorted: readonly TypeDefinition[] | null = null;

  constructor(types: Map<string, TypeDefinition>, ontologyVersion: number) {
    this.#types = types;
    this.#ontologyVersion = ontologyVersion;
  }

  static builtin(): BranchTypes {
    return new BranchTypes(new Map(builtinTypes.map((type) => [type.name, type])), 0);
  }

  get ontologyVersion(): number {
    return this.#ontologyVersion;
  }

  type(name: string): TypeDefinition | undefined {
    return this.#types.get(name);
  }

  types(): readonly TypeDefinition[] {
    this.#sorted ??= [...this.#types.values()].sort((a, b) => compareText(a.name, b.name));
    return this.#sorted;
  }

  fork(): BranchTypes {
    const fork = new BranchTypes(this.#types, this.#ontologyVersion);
    fork.#sorted = this.#sorted;
    fork.#shared = this.#shared = true;
    return fork;
  }

  define(definition: TypeDefinition): void {
    assert(definition.ontologyVersion === this.#ontologyVersion + 1, 'the ontology version rises by one');
    if (this.#shared) {
      this.#types = new Map(this.#types);
      this.#shared = false;
    }
    this.#types.set(definition.name, definition);
    this.#ontologyVersion = definition.ontologyVersion;
    this.#sorted = null;
  }
}
