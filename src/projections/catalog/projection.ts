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
  #branchTree = new BranchTree();
  /** By fork; main's is 0. */
  #typesByBranch = new Map<number, BranchTypes>([[0, BranchTypes.builtin()]]);
  /** By branch, tenant and type, until a `type` or `branch` entry is applied: every scan asks. */
  readonly #protections = new Map<string, Protection>();
  /** By branch and tenant, as long as those: by link type, the types whose rows have its edges. */
  readonly #edgeMakers = new Map<string, ReadonlyMap<string, ReadonlySet<string>>>();
  /** By tenant, null: of what everybody inherits. */
  readonly #protectionEpochs = new Map<string | null, number>();

  /** Types of the branch with this fork, as a tenant means them. */
  catalogOn(branch: number, tenant: string | null): CatalogReader {
    return this.#branchTypesOn(branch).readerFor(tenant);
  }

  /** Every definition of a name on a branch, in every scope. */
  definitions(branch: number, typeName: string): readonly TypeDefinition[] {
    return this.#branchTypesOn(branch)
      .scopes()
      .flatMap(({ types }) => types.get(typeName) ?? []);
  }

  #branchTypesOn(branch: number): BranchTypes {
    const branchTypes = this.#typesByBranch.get(branch);
    assert(branchTypes, 'a branch that is read has types');
    return branchTypes;
  }

  /**
   * The guards of a tenant's type on a branch, now: from its own definition, those of the branches whose rows it reads, and
   * main's.
   * It holds until a `type` or `branch` entry is applied.
   */
  protection(branch: number, tenant: string | null, typeName: string): Protection {
    // A control character can't occur in a path.
    const protectionKey = `${branch}\0${tenant ?? '\0'}\0${typeName}`;
    let protection = this.#protections.get(protectionKey);
    if (protection === undefined)
      this.#protections.set(protectionKey, (protection = this.#protectionOf(branch, tenant, typeName)));
    return protection;
  }

  /**
   * Rises when a protection of the tenant's types may be another one than before; what this process made under it is no
   * longer good then.
   */
  protectionEpoch(tenant: string | null): number {
    const ownEpoch = tenant === null ? 0 : (this.#protectionEpochs.get(tenant) ?? 0);
    return (this.#protectionEpochs.get(null) ?? 0) + ownEpoch;
  }

  #protectionOf(branch: number, tenant: string | null, typeName: string): Protection {
    const branchNode = this.#branchTree.byId(branch);
    assert(branchNode, 'a branch that is read is kept');
    const lineage = new Set([0, ...lineageOf(branchNode).map((range) => range.branch.id)]);
    const definitionsOf = (type: string): readonly TypeDefinition[] =>
      [...lineage].flatMap((id) => this.#typesByBranch.get(id)?.readerFor(tenant).type(type) ?? []);
    return protectionOf(definitionsOf(typeName), this.#edgeSourcesOf(lineage, tenant, typeName, definitionsOf));
  }

  /** Types whose rows have edges of this type; and theirs, where they are edges themselves. */
  #edgeSourcesOf(
    lineage: ReadonlySet<number>,
    tenant: string | null,
    typeName: string,
    definitionsOf: (edgeMaker: string) => readonly TypeDefinition[],
  ): readonly EdgeSource[] {
    const edgeSources: EdgeSource[] = [];
    const seenTypes = new Set([typeName]);
    for (const linkTypeName of seenTypes) {
      for (const lineageBranchId of lineage) {
        for (const edgeMaker of this.#edgeMakersOn(lineageBranchId, tenant).get(linkTypeName) ?? []) {
          if (edgeMaker === typeName || (linkTypeName !== typeName && seenTypes.has(edgeMaker))) continue;
          seenTypes.add(edgeMaker);
          for (const definition of definitionsOf(edgeMaker)) {
            const triggers =
              linkTypeName === typeName ? definition.graphTriggers.filter(({ linkType }) => linkType === typeName) : [];
            edgeSources.push({ definition, triggers });
          }
        }
      }
    }
    return edgeSources;
  }

  /** By link type, the types of a branch whose rows have its edges. */
  #edgeMakersOn(branch: number, tenant: string | null): ReadonlyMap<string, ReadonlySet<string>> {
    const edgeMakersKey = `${branch}\0${tenant ?? '\0'}`;
    let edgeMakers = this.#edgeMakers.get(edgeMakersKey);
    if (edgeMakers !== undefined) return edgeMakers;
    const edgeMakersByType = new Map<string, Set<string>>();
    for (const { name, graphTriggers } of this.#typesByBranch.get(branch)?.readerFor(tenant).types() ?? []) {
      for (const { linkType } of graphTriggers)
        edgeMakersByType.set(linkType, (edgeMakersByType.get(linkType) ?? new Set()).add(name));
    }
    this.#edgeMakers.set(edgeMakersKey, (edgeMakers = edgeMakersByType));
    return edgeMakers;
  }

  #forgetProtections(): void {
    this.#protections.clear();
    this.#edgeMakers.clear();
  }

  #raiseProtectionEpoch(tenant: string | null): void {
    this.#protectionEpochs.set(tenant, (this.#protectionEpochs.get(tenant) ?? 0) + 1);
  }

  apply(catalogEntry: CommittedEntry): void {
    const { body: catalogBody } = catalogEntry;
    if (catalogBody.kind === 'type' || catalogBody.kind === 'branch') this.#forgetProtections();
    if (catalogBody.kind === 'type') {
      const { definition } = catalogBody;
      const tenant = scopeOfName(catalogEntry, catalogBody);
      const branchTypes = this.#branchTypesOn(this.#branchTree.branchOf(catalogEntry).id);
      const earlierDefinition = branchTypes.readerFor(tenant).type(definition.name);
      branchTypes.define(tenant, ownDefinition(definition, Object.entries(definition.properties)));
      if (!guardsAlike(earlierDefinition, definition)) this.#raiseProtectionEpoch(tenant);
    } else if (catalogBody.kind === 'branch') {
      const { forked: forkedBranch, ended: endedBranch } = this.#branchTree.apply(catalogEntry, catalogBody);
      // A fork reads what its source guards, and takes nothing from any other branch.
      if (endedBranch) this.#raiseProtectionEpoch(endedBranch.tenant);
      if (forkedBranch) this.#typesByBranch.set(forkedBranch.id, this.#branchTypesOn(forkedBranch.source!.id).fork());
      else this.#typesByBranch.delete(endedBranch.id);
    } else if (catalogBody.kind === 'tenant' && catalogBody.change === 'purged') {
      for (const branchTypes of this.#typesByBranch.values()) branchTypes.forget(catalogBody.tenant.id);
      this.#forgetProtections();
      this.#raiseProtectionEpoch(catalogBody.tenant.id);
    }
  }

  async checkpoint(catalogCheckpoint: CheckpointWriter): Promise<void> {
    const branches = this.#typesByFork().map(
      ([branch, branchCatalog]): SavedTypes => ({
        branch,
        scopes: branchCatalog.scopes().map(({ tenant, changes, types }) => ({
          tenant,
          changes,
          types: [...types.values()].map((type) => ({ ...type, properties: Object.entries(type.properties) })),
        })),
      }),
    );
    catalogCheckpoint.section('types', serialize({ tree: this.#branchTree.savedState(), branches }));
  }

  async restore(catalogCheckpoint: CheckpointReader): Promise<void> {
    const catalogBytes = catalogCheckpoint.section('types');
    assert(catalogBytes, 'a catalog checkpoint has types');
    const savedCatalog = deserialize(catalogBytes) as { tree: SavedBranches; branches: readonly SavedTypes[] };
    this.#forgetProtections();
    this.#raiseProtectionEpoch(null);
    this.#branchTree = BranchTree.fromSaved(savedCatalog.tree);
    this.#typesByBranch = new Map(
      savedCatalog.branches.map(({ branch, scopes }) => {
        const restoredScopes = scopes.map(({ types, ...savedScope }) => ({
          ...savedScope,
          types: new Map(types.map((type) => [type.name, ownDefinition(type, type.properties)])),
        }));
        return [branch, new BranchTypes(restoredScopes)];
      }),
    );
  }

  reset(): void {
    this.#forgetProtections();
    this.#raiseProtectionEpoch(null);
    this.#branchTree = new BranchTree();
    this.#typesByBranch = new Map([[0, BranchTypes.builtin()]]);
  }

  digest(): string {
    const catalogHash = new CanonicalHash();
    for (const [branch, branchCatalog] of this.#typesByFork()) {
      if (branch > 0) catalogHash.number(branch);
      for (const { tenant, changes, types } of branchCatalog.scopes()) {
        if (tenant !== null) catalogHash.value(tenant);
        catalogHash.number(changes);
        for (const type of [...types.values()].sort((a, b) => compareText(a.name, b.name))) {
          // Order of properties is state: it is the order in which readers see them.
          catalogHash.value({ ...type, properties: Object.entries(type.properties) });
        }
      }
    }
    return catalogHash.hex();
  }

  /** By fork, main first. */
  #typesByFork(): [number, BranchTypes][] {
    return [...this.#typesByBranch].sort(([a], [b]) => a - b);
  }
}

/** System columns first, then properties in order. A declared `id` takes the type that was declared. */
export function readableColumns(type: TypeDefinition): ReadableColumn[] {
  const readable: ReadableColumn[] = [];
  for (const [readableName, columnType] of Object.entries(systemColumns)) {
    readable.push({
      name: readableName,
      type: (readableName === 'id' ? type.properties['id']?.type : undefined) ?? columnType,
      system: true,
    });
  }
  for (const [name, propertyDefinition] of Object.entries(type.properties)) {
    if (name !== 'id') readable.push({ name, type: propertyDefinition.type, system: false });
  }
  return readable;
}

/** Type of a column as readers see it, system columns included; undefined when there is no such column. */
export function columnTypeOf(type: TypeDefinition, name: string): ColumnType | undefined {
  const declaredProperty = type.properties[name];
  if (declaredProperty) return declaredProperty.type;
  return Object.hasOwn(systemColumns, name) ? systemColumns[name as keyof typeof systemColumns] : undefined;
}
