/**
 * Types as the log's `type` entries left them on each branch, by the tenant that their names belong to, over the built-in
 * ones. A branch starts with its source's types and ontology versions, and goes its own way from there.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import { BranchTree, lineageOf, type SavedBranches } from '../../log/entries/branches.ts';
import { type CommittedEntry, type PropertyDefinition, scopeOfName, type TypeDefinition } from '../../log/entries/entry.ts';
import { compareText, type ColumnType, systemColumns } from '../../log/values/value.ts';
import type { CatalogReader, ReadableColumn } from '../access-paths.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';
import { BranchTypes } from './branch-types.ts';
import { ownDefinition } from './own-definition.ts';
import { type EdgeSource, guardsAlike, type Protection, protectionOf } from './type-guards.ts';

type SavedType = Omit<TypeDefinition, 'properties'> & { readonly properties: [string, PropertyDefinition][] };

interface SavedTypes {
  readonly branch: number;
  readonly scopes: readonly { readonly tenant: string | null; readonly changes: number; readonly types: readonly SavedType[] }[];
}

export class Catalog implements Projection {
  readonly name = 'catalog';
  readonly formatVersion = 3;
  #tree = new BranchTree();
  /** By fork; main's is 0. */
  #branches = new Map<number, BranchTypes>([[0, BranchTypes.builtin()]]);
  /** By branch, tenant and type, until a `type` or `branch` entry is applied: every scan asks. */
  readonly #protections = new Map<string, Protection>();
  /** By branch and tenant, as long as those: by link type, the types whose rows have its edges. */
  readonly #edgeMakers = new Map<string, ReadonlyMap<string, ReadonlySet<string>>>();
  /** By tenant, null: of what everybody inherits. */
  readonly #protectionEpochs = new Map<string | null, number>();

  /** Types of the branch with this fork, as a tenant means them. */
  catalogOn(branch: number, tenant: string | null): CatalogReader {
    return this.#typesOn(branch).readerFor(tenant);
  }

  /** Every definition of a name on a branch, in every scope. */
  definitions(branch: number, name: string): readonly TypeDefinition[] {
    return this.#typesOn(branch)
      .scopes()
      .flatMap(({ types }) => types.get(name) ?? []);
  }

  #typesOn(branch: number): BranchTypes {
    const types = this.#branches.get(branch);
    assert(types, 'a branch that is read has types');
    return types;
  }

  /**
   * The guards of a tenant's type on a branch, now: from its own definition, those of the branches whose rows it reads, and
   * main's.
   * It holds until a `type` or `branch` entry is applied.
   */
  protection(branch: number, tenant: string | null, name: string): Protection {
    // A control character can't occur in a path.
    const key = `${branch}\0${tenant ?? '\0'}\0${name}`;
    let protection = this.#protections.get(key);
    if (protection === undefined) this.#protections.set(key, (protection = this.#protectionOf(branch, tenant, name)));
    return protection;
  }

  /**
   * Rises when a protection of the tenant's types may be another one than before; what this process made under it is no
   * longer good then.
   */
  protectionEpoch(tenant: string | null): number {
    const own = tenant === null ? 0 : (this.#protectionEpochs.get(tenant) ?? 0);
    return (this.#protectionEpochs.get(null) ?? 0) + own;
  }

  #protectionOf(branch: number, tenant: string | null, name: string): Protection {
    const at = this.#tree.byId(branch);
    assert(at, 'a branch that is read is kept');
    const lineage = new Set([0, ...lineageOf(at).map((range) => range.branch.id)]);
    const definitionsOf = (type: string): readonly TypeDefinition[] =>
      [...lineage].flatMap((id) => this.#branches.get(id)?.readerFor(tenant).type(type) ?? []);
    return protectionOf(definitionsOf(name), this.#sourcesOf(lineage, tenant, name, definitionsOf));
  }

  /** Types whose rows have edges of this type; and theirs, where they are edges themselves. */
  #sourcesOf(
    lineage: ReadonlySet<number>,
    tenant: string | null,
    name: string,
    definitionsOf: (type: string) => readonly TypeDefinition[],
  ): readonly EdgeSource[] {
    const sources: EdgeSource[] = [];
    const seen = new Set([name]);
    for (const link of seen) {
      for (const id of lineage) {
        for (const type of this.#makers(id, tenant).get(link) ?? []) {
          if (type === name || (link !== name && seen.has(type))) continue;
          seen.add(type);
          for (const definition of definitionsOf(type)) {
            const triggers = link === name ? definition.graphTriggers.filter(({ linkType }) => linkType === name) : [];
            sources.push({ definition, triggers });
          }
        }
      }
    }
    return sources;
  }

  /** By link type, the types of a branch whose rows have its edges. */
  #makers(branch: number, tenant: string | null): ReadonlyMap<string, ReadonlySet<string>> {
    const key = `${branch}\0${tenant ?? '\0'}`;
    let edgeMakers = this.#edgeMakers.get(key);
    if (edgeMakers !== undefined) return edgeMakers;
    const edgeMakersByType = new Map<string, Set<string>>();
    for (const { name, graphTriggers } of this.#branches.get(branch)?.readerFor(tenant).types() ?? []) {
      for (const { linkType } of graphTriggers)
        edgeMakersByType.set(linkType, (edgeMakersByType.get(linkType) ?? new Set()).add(name));
    }
    this.#edgeMakers.set(key, (edgeMakers = edgeMakersByType));
    return edgeMakers;
  }

  #forgetProtections(): void {
    this.#protections.clear();
    this.#edgeMakers.clear();
  }

  #raiseEpoch(tenant: string | null): void {
    this.#protectionEpochs.set(tenant, (this.#protectionEpochs.get(tenant) ?? 0) + 1);
  }

  apply(entry: CommittedEntry): void {
    const { body } = entry;
    if (body.kind === 'type' || body.kind === 'branch') this.#forgetProtections();
    if (body.kind === 'type') {
      const { definition } = body;
      const tenant = scopeOfName(entry, body);
      const types = this.#typesOn(this.#tree.branchOf(entry).id);
      const before = types.readerFor(tenant).type(definition.name);
      types.define(tenant, ownDefinition(definition, Object.entries(definition.properties)));
      if (!guardsAlike(before, definition)) this.#raiseEpoch(tenant);
    } else if (body.kind === 'branch') {
      const { forked, ended } = this.#tree.apply(entry, body);
      // A fork reads what its source guards, and takes nothing from any other branch.
      if (ended) this.#raiseEpoch(ended.tenant);
      if (forked) this.#branches.set(forked.id, this.#typesOn(forked.source!.id).fork());
      else this.#branches.delete(ended.id);
    } else if (body.kind === 'tenant' && body.change === 'purged') {
      for (const types of this.#branches.values()) types.forget(body.tenant.id);
      this.#forgetProtections();
      this.#raiseEpoch(body.tenant.id);
    }
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    const branches = this.#byFork().map(
      ([branch, catalog]): SavedTypes => ({
        branch,
        scopes: catalog.scopes().map(({ tenant, changes, types }) => ({
          tenant,
          changes,
          types: [...types.values()].map((type) => ({ ...type, properties: Object.entries(type.properties) })),
        })),
      }),
    );
    target.section('types', serialize({ tree: this.#tree.savedState(), branches }));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('types');
    assert(bytes, 'a catalog checkpoint has types');
    const state = deserialize(bytes) as { tree: SavedBranches; branches: readonly SavedTypes[] };
    this.#forgetProtections();
    this.#raiseEpoch(null);
    this.#tree = BranchTree.fromSaved(state.tree);
    this.#branches = new Map(
      state.branches.map(({ branch, scopes }) => {
        const restored = scopes.map(({ types, ...scope }) => ({
          ...scope,
          types: new Map(types.map((type) => [type.name, ownDefinition(type, type.properties)])),
        }));
        return [branch, new BranchTypes(restored)];
      }),
    );
  }

  reset(): void {
    this.#forgetProtections();
    this.#raiseEpoch(null);
    this.#tree = new BranchTree();
    this.#branches = new Map([[0, BranchTypes.builtin()]]);
  }

  digest(): string {
    const hash = new CanonicalHash();
    for (const [branch, catalog] of this.#byFork()) {
      if (branch > 0) hash.number(branch);
      for (const { tenant, changes, types } of catalog.scopes()) {
        if (tenant !== null) hash.value(tenant);
        hash.number(changes);
        for (const type of [...types.values()].sort((a, b) => compareText(a.name, b.name))) {
          // Order of properties is state: it is the order in which readers see them.
          hash.value({ ...type, properties: Object.entries(type.properties) });
        }
      }
    }
    return hash.hex();
  }

  /** By fork, main first. */
  #byFork(): [number, BranchTypes][] {
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
