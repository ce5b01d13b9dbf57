/** Types of a catalog as they stand after definitions that are not in it yet. */
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { compareText } from '../../log/values/value.ts';
import type { CatalogReader } from '../access-paths.ts';

export class DraftedTypes implements CatalogReader {
  readonly #catalog: CatalogReader;
  readonly #made = new Map<string, TypeDefinition>();
  #changes = 0;

  constructor(catalog: CatalogReader) {
    this.#catalog = catalog;
  }

  get ontologyVersion(): number {
    return this.#catalog.ontologyVersion + this.#changes;
  }

  type(name: string): TypeDefinition | undefined {
    return this.#made.get(name) ?? this.#catalog.type(name);
  }

  isOwn(name: string): boolean {
    return this.#made.has(name) || this.#catalog.isOwn(name);
  }

  types(): readonly TypeDefinition[] {
    if (this.#made.size === 0) return this.#catalog.types();
    const others = this.#catalog.types().filter(({ name }) => !this.#made.has(name));
    return [...others, ...this.#made.values()].sort((a, b) => compareText(a.name, b.name));
  }

  /** As it was made; undefined for what the catalog itself says, or does not know. */
  madeType(name: string): TypeDefinition | undefined {
    return this.#made.get(name);
  }

  add(definition: TypeDefinition): void {
    this.#made.set(definition.name, definition);
    this.#changes++;
  }
}
