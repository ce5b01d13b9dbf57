/** A catalog together with type definitions that are drafted and not applied yet. */
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { compareText } from '../../log/values/value.ts';
import type { CatalogReader } from '../access-paths.ts';

export class DraftedTypes implements CatalogReader {
  readonly #baseCatalog: CatalogReader;
  readonly #draftedTypes = new Map<string, TypeDefinition>();
  #draftedChanges = 0;

  constructor(baseCatalog: CatalogReader) {
    this.#baseCatalog = baseCatalog;
  }

  get ontologyVersion(): number {
    return this.#baseCatalog.ontologyVersion + this.#draftedChanges;
  }

  type(typeName: string): TypeDefinition | undefined {
    return this.#draftedTypes.get(typeName) ?? this.#baseCatalog.type(typeName);
  }

  isOwn(typeName: string): boolean {
    return this.#draftedTypes.has(typeName) || this.#baseCatalog.isOwn(typeName);
  }

  types(): readonly TypeDefinition[] {
    if (this.#draftedTypes.size === 0) return this.#baseCatalog.types();
    const undraftedTypes = this.#baseCatalog.types().filter(({ name }) => !this.#draftedTypes.has(name));
    return [...undraftedTypes, ...this.#draftedTypes.values()].sort((a, b) => compareText(a.name, b.name));
  }

  /** As it was made; undefined for what the catalog itself says, or does not know. */
  madeType(typeName: string): TypeDefinition | undefined {
    return this.#draftedTypes.get(typeName);
  }

  add(draftedType: TypeDefinition): void {
    this.#draftedTypes.set(draftedType.name, draftedType);
    this.#draftedChanges++;
  }
}
