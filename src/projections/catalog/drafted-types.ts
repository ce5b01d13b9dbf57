/** Types of a catalog as they stand after definitions that are not in it yet. */
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { compareText } from '../../log/values/value.ts';
import type { CatalogReader } from '../access-paths.ts';

export class DraftedTypes implements CatalogReader {
  readonly #catalog: CatalogReader;
  readonly #draftedTypes = new Map<string, TypeDefinition>();
  #changes = 0;

  constructor(catalog: CatalogReader) {
    this.#catalog = catalog;
  }

  get ontologyVersion(): number {
    return this.#catalog.ontologyVersion + this.#changes;
  }

  type(name: string): TypeDefinition | undefined {
    return this.#draftedTypes.get(name) ?? this.#catalog.type(name);
  }

  isOwn(name: string): boolean {
    return this.#draftedTypes.has(name) || this.#catalog.isOwn(name);
  }

  types(): readonly TypeDefinition[] {
    if (this.#draftedTypes.size === 0) return this.#catalog.types();
    const others = this.#catalog.types().filter(({ name }) => !this.#draftedTypes.has(name));
    return [...others, ...this.#draftedTypes.values()].sort((a, b) => compareText(a.name, b.name));
  }

  /** As it was made; undefined for what the catalog itself says, or does not know. */
  madeType(name: string): TypeDefinition | undefined {
    return this.#draftedTypes.get(name);
  }

  add(definition: TypeDefinition): void {
    this.#draftedTypes.set(definition.name, definition);
    this.#changes++;
  }
}
