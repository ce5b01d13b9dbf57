/** Types as the log's `type` entries left them, over the built-in ones. The ontology version counts those entries. */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import type { CommittedEntry, PropertyDefinition, TypeDefinition } from '../../log/entry.ts';
import { type ColumnType, compareText, systemColumns } from '../../log/value.ts';
import type { CatalogReader, ReadableColumn } from '../access-paths.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';
import { builtinTypes } from './builtin-types.ts';

export class Catalog implements Projection, CatalogReader {
  readonly name = 'catalog';
  readonly formatVersion = 1;
  #types = new Map<string, TypeDefinition>(builtinTypes.map((type) => [type.name, type]));
  #ontologyVersion = 0;
  #sorted: readonly TypeDefinition[] | null = null;

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

  apply(entry: CommittedEntry): void {
    if (entry.body.kind !== 'type') return;
    const { definition } = entry.body;
    assert(definition.ontologyVersion === this.#ontologyVersion + 1, 'the ontology version rises by one');
    this.#types.set(definition.name, { ...definition, properties: ownProperties(definition.properties) });
    this.#ontologyVersion = definition.ontologyVersion;
    this.#sorted = null;
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    const types = [...this.#types.values()].map((type) => ({ ...type, properties: Object.entries(type.properties) }));
    target.section('types', serialize({ ontologyVersion: this.#ontologyVersion, types }));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('types');
    assert(bytes, 'a catalog checkpoint has types');
    const state = deserialize(bytes) as {
      ontologyVersion: number;
      types: (Omit<TypeDefinition, 'properties'> & { properties: [string, PropertyDefinition][] })[];
    };
    this.#types = new Map(
      state.types.map((type) => [type.name, { ...type, properties: ownProperties(Object.fromEntries(type.properties)) }]),
    );
    this.#ontologyVersion = state.ontologyVersion;
    this.#sorted = null;
  }

  reset(): void {
    this.#types = new Map(builtinTypes.map((type) => [type.name, type]));
    this.#ontologyVersion = 0;
    this.#sorted = null;
  }

  digest(): string {
    const hash = new CanonicalHash();
    hash.number(this.#ontologyVersion);
    for (const type of this.types()) {
      // Order of properties is state: it is the order in which readers see them.
      hash.value({ ...type, properties: Object.entries(type.properties) });
    }
    return hash.hex();
  }
}

/** System columns first, then properties in order. A declared `id` takes the type that was declared. */
export function readableColumns(type: TypeDefinition): ReadableColumn[] {
  const columns: ReadableColumn[] = [];
  for (const [name, columnType] of Object.entries(systemColumns)) {
    columns.push({ name, type: (name === 'id' ? type.properties['id']?.type : undefined) ?? columnType, system: true });
  }
  for (const [name, definition] of Object.entries(type.properties)) {
    if (name !== 'id') columns.push({ name, type: definition.type, system: false });
  }
  return columns;
}

/** Type of a column as readers see it, system columns included; undefined when there is no such column. */
export function columnTypeOf(type: TypeDefinition, name: string): ColumnType | undefined {
  const declared = type.properties[name];
  if (declared) return declared.type;
  return Object.hasOwn(systemColumns, name) ? systemColumns[name as keyof typeof systemColumns] : undefined;
}

/** A record without a prototype: a property called `constructor` is then absent unless it was declared. */
function ownProperties(properties: Readonly<Record<string, PropertyDefinition>>): Record<string, PropertyDefinition> {
  const own: Record<string, PropertyDefinition> = Object.create(null);
  for (const [name, definition] of Object.entries(properties)) own[name] = definition;
  return own;
}
