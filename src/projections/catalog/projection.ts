/**
 * Types as the log's `type` entries left them on each branch, over the built-in ones. A branch starts with its source's
 * types and ontology version, and goes its own way from there.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import { BranchTree, lineageOf, type SavedBranches } from '../../log/branches.ts';
import type { CommittedEntry, PropertyDefinition, TypeDefinition } from '../../log/entry.ts';
import { type ColumnType, systemColumns } from '../../log/value.ts';
import type { CatalogReader, ReadableColumn } from '../access-paths.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';
import { BranchTypes } from './branch-types.ts';
import { type Protection, protectionOf } from './protection.ts';

interface SavedTypes {
  readonly branch: number;
  readonly ontologyVersion: number;
  readonly types: readonly (Omit<TypeDefinition, 'properties'> & { readonly properties: [string, PropertyDefinition][] })[];
}

/** Itself it reads as main's. */
export class Catalog implements Projection, CatalogReader {
  readonly name = 'catalog';
  readonly formatVersion = 2;
  #tree = new BranchTree();
  /** By fork; main's is 0. */
  #branches = new Map<number, BranchTypes>([[0, BranchTypes.builtin()]]);
  /** By branch and type, until a `type` or `branch` entry is applied: every scan asks. */
  readonly #protections = new Map<string, Protection>();
  #protectionEpoch = 0;

  get ontologyVersion(): number {
    return this.on(0).ontologyVersion;
  }

  type(name: string): TypeDefinition | undefined {
    return this.on(0).type(name);
  }

  types(): readonly TypeDefinition[] {
    return this.on(0).types();
  }

  /** Types of the branch with this fork. */
  on(branch: number): BranchTypes {
    const types = this.#branches.get(branch);
    assert(types, 'a branch that is read has types');
    return types;
  }

  /**
   * What guards a type on a branch, now: by its own definition, those of the branches whose rows it reads, and main's. It
   * holds until a `type` or `branch` entry is applied.
   */
  protection(branch: number, name: string): Protection {
    const key = `${branch}\0${name}`;
    let found = this.#protections.get(key);
    if (found === undefined) this.#protections.set(key, (found = this.#protectionOf(branch, name)));
    return found;
  }

  /** Rises when a protection may be another one than before; what this process made under it is no longer good then. */
  get protectionEpoch(): number {
    return this.#protectionEpoch;
  }

  #protectionOf(branch: number, name: string): Protection {
    const at = this.#tree.kept().find(({ id }) => id === branch);
    assert(at, 'a branch that is read is kept');
    const lineage = new Set([0, ...lineageOf(at).map((stretch) => stretch.branch.id)]);
    return protectionOf([...lineage].flatMap((id) => this.#branches.get(id)?.type(name) ?? []));
  }

  apply(entry: CommittedEntry): void {
    const { body } = entry;
    if (body.kind === 'type' || body.kind === 'branch') this.#protections.clear();
    // A fork reads what its source guards, and takes nothing from any other branch.
    if (body.kind === 'type' || (body.kind === 'branch' && this.#tree.get(body.name) !== undefined)) this.#protectionEpoch++;
    if (body.kind === 'type') {
      const { definition } = body;
      const types = this.on(this.#tree.of(entry).id);
      types.define({ ...definition, properties: ownProperties(definition.properties) });
    } else if (body.kind === 'branch') {
      const ended = this.#tree.get(body.name);
      const { forked } = this.#tree.apply(entry, body);
      if (forked) this.#branches.set(forked.id, this.on(forked.source!.id).fork());
      else this.#branches.delete(ended!.id);
    }
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    const branches = this.#ordered().map(
      ([branch, catalog]): SavedTypes => ({
        branch,
        ontologyVersion: catalog.ontologyVersion,
        types: catalog.types().map((type) => ({ ...type, properties: Object.entries(type.properties) })),
      }),
    );
    target.section('types', serialize({ tree: this.#tree.saved(), branches }));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('types');
    assert(bytes, 'a catalog checkpoint has types');
    const state = deserialize(bytes) as { tree: SavedBranches; branches: readonly SavedTypes[] };
    this.#protections.clear();
    this.#protectionEpoch++;
    this.#tree = BranchTree.restored(state.tree);
    this.#branches = new Map(
      state.branches.map(({ branch, ontologyVersion, types }) => {
        const definitions = types.map((type) => ({ ...type, properties: ownProperties(Object.fromEntries(type.properties)) }));
        return [branch, new BranchTypes(new Map(definitions.map((type) => [type.name, type])), ontologyVersion)];
      }),
    );
  }

  reset(): void {
    this.#protections.clear();
    this.#protectionEpoch++;
    this.#tree = new BranchTree();
    this.#branches = new Map([[0, BranchTypes.builtin()]]);
  }

  digest(): string {
    const hash = new CanonicalHash();
    for (const [branch, catalog] of this.#ordered()) {
      if (branch > 0) hash.number(branch);
      hash.number(catalog.ontologyVersion);
      for (const type of catalog.types()) {
        // Order of properties is state: it is the order in which readers see them.
        hash.value({ ...type, properties: Object.entries(type.properties) });
      }
    }
    return hash.hex();
  }

  /** By fork, main first. */
  #ordered(): [number, BranchTypes][] {
    return [...this.#branches].sort(([a], [b]) => a - b);
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
