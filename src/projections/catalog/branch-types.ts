/**
 * Types of one branch, by the tenant that a name belongs to. Names of the store's scope (no tenant) are inherited by every
 * tenant, until the tenant defines the name itself: from then on its own definition counts, for this tenant alone. A fork
 * shares the tables of its source until either of the two changes a type.
 */
import { assert } from '../../errors.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { compareText } from '../../log/values/value.ts';
import type { CatalogReader } from '../access-paths.ts';
import { builtinTypes } from './builtin-types.ts';

/** Definitions of one scope and how often they changed. */
export interface ScopeTypes {
  readonly tenant: string | null;
  readonly types: ReadonlyMap<string, TypeDefinition>;
  readonly changes: number;
}

interface TypeScope {
  types: Map<string, TypeDefinition>;
  shared: boolean;
  changes: number;
  /** Names that the latest changes defined, the newest last. */
  readonly latest: string[];
}

/** So many names are kept at least: who last looked before them looks at all types. */
const latestTypesMin = 1_024;

export class BranchTypes {
  /** By tenant; null: the store's. */
  readonly #typeScopes: Map<string | null, TypeScope>;
  readonly #tenantTypes = new Map<string | null, TenantTypes>();

  constructor(scopesOfTypes: Iterable<ScopeTypes>) {
    this.#typeScopes = new Map();
    for (const { tenant, types, changes } of scopesOfTypes)
      this.#typeScopes.set(tenant, { types: new Map(types), shared: false, changes, latest: [] });
    assert(this.#typeScopes.has(null), 'a branch has the types of the store');
  }

  static builtin(): BranchTypes {
    return new BranchTypes([{ tenant: null, types: new Map(builtinTypes.map((type) => [type.name, type])), changes: 0 }]);
  }

  /** Types as a tenant means them: its own, and those that it inherits. */
  readerFor(tenant: string | null): CatalogReader {
    let tenantTypes = this.#tenantTypes.get(tenant);
    if (tenantTypes === undefined) this.#tenantTypes.set(tenant, (tenantTypes = new TenantTypes(this, tenant)));
    return tenantTypes;
  }

  /** A type that the scope defines itself. */
  own(tenant: string | null, typeName: string): TypeDefinition | undefined {
    return this.ownOf(tenant).get(typeName);
  }

  ownOf(tenant: string | null): ReadonlyMap<string, TypeDefinition> {
    return this.#typeScopes.get(tenant)?.types ?? noOwnTypes;
  }

  /** By tenant, the store's first. */
  scopes(): readonly ScopeTypes[] {
    const typeScopes = [...this.#typeScopes].map(([tenant, { types, changes }]) => ({ tenant, types, changes }));
    return typeScopes.sort((a, b) => compareText(a.tenant ?? '', b.tenant ?? ''));
  }

  /** Names that a scope defined since it had so many changes; null: that is too long ago. */
  definedSince(tenant: string | null, changesBefore: number): readonly string[] | null {
    const typeScope = this.#typeScopes.get(tenant);
    const newTypeCount = (typeScope?.changes ?? 0) - changesBefore;
    if (newTypeCount === 0) return [];
    return typeScope === undefined || newTypeCount > typeScope.latest.length ? null : typeScope.latest.slice(-newTypeCount);
  }

  changesOf(tenant: string | null): number {
    return this.#typeScopes.get(tenant)?.changes ?? 0;
  }

  fork(): BranchTypes {
    const forkedTypes = new BranchTypes([{ tenant: null, types: new Map(), changes: 0 }]);
    for (const [tenant, sourceScope] of this.#typeScopes) {
      sourceScope.shared = true;
      forkedTypes.#typeScopes.set(tenant, { ...sourceScope, latest: [] });
    }
    return forkedTypes;
  }

  define(tenant: string | null, typeDefinition: TypeDefinition): void {
    assert(typeDefinition.ontologyVersion === this.readerFor(tenant).ontologyVersion + 1, 'the ontology version rises by one');
    const typeScope = this.#typeScopes.get(tenant) ?? {
      types: new Map<string, TypeDefinition>(),
      shared: false,
      changes: 0,
      latest: [],
    };
    if (typeScope.shared) {
      typeScope.types = new Map(typeScope.types);
      typeScope.shared = false;
    }
    typeScope.types.set(typeDefinition.name, typeDefinition);
    typeScope.changes++;
    typeScope.latest.push(typeDefinition.name);
    if (typeScope.latest.length >= 2 * latestTypesMin) typeScope.latest.splice(0, latestTypesMin);
    this.#typeScopes.set(tenant, typeScope);
  }

  /** Drops the names of a purged tenant: a later tenant of its id begins with the inherited ones. */
  forget(tenant: string): void {
    const purgedScope = this.#typeScopes.get(tenant);
    if (purgedScope)
      this.#typeScopes.set(tenant, { types: new Map(), shared: false, changes: purgedScope.changes + 1, latest: [] });
  }
}

class TenantTypes implements CatalogReader {
  readonly #branchTypes: BranchTypes;
  readonly #tenant: string | null;
  #sortedTypes: readonly TypeDefinition[] = [];
  /** Changes of the store's scope and of its own that are in it. */
  #sortedAtChanges: TypeChanges = { inherited: -1, own: -1 };

  constructor(branchTypes: BranchTypes, tenant: string | null) {
    this.#branchTypes = branchTypes;
    this.#tenant = tenant;
  }

  /** Rises with every change that this tenant sees, and with no other: it must not reveal how much others define. */
  get ontologyVersion(): number {
    const { inherited, own } = this.#typeChanges;
    return inherited + own;
  }

  get #typeChanges(): TypeChanges {
    return {
      inherited: this.#branchTypes.changesOf(null),
      own: this.#tenant === null ? 0 : this.#branchTypes.changesOf(this.#tenant),
    };
  }

  type(typeName: string): TypeDefinition | undefined {
    const inheritedType = this.#branchTypes.own(null, typeName);
    return this.#tenant === null ? inheritedType : (this.#branchTypes.own(this.#tenant, typeName) ?? inheritedType);
  }

  isOwn(typeName: string): boolean {
    return this.#branchTypes.own(this.#tenant, typeName) !== undefined;
  }

  types(): readonly TypeDefinition[] {
    const { inherited: inheritedChanges, own: ownChanges } = this.#typeChanges;
    if (inheritedChanges !== this.#sortedAtChanges.inherited || ownChanges !== this.#sortedAtChanges.own) {
      const changedTypeNames = this.#typesDefinedSince(this.#sortedAtChanges);
      this.#sortedTypes = changedTypeNames === null ? this.#sortAllTypes() : this.#mergedTypes(changedTypeNames);
      this.#sortedAtChanges = { inherited: inheritedChanges, own: ownChanges };
    }
    return this.#sortedTypes;
  }

  #typesDefinedSince({ inherited, own }: TypeChanges): ReadonlySet<string> | null {
    const inheritedNewTypes = this.#branchTypes.definedSince(null, inherited);
    const ownNewTypes = this.#tenant === null ? [] : this.#branchTypes.definedSince(this.#tenant, own);
    return inheritedNewTypes === null || ownNewTypes === null ? null : new Set([...inheritedNewTypes, ...ownNewTypes]);
  }

  #sortAllTypes(): readonly TypeDefinition[] {
    const typesByName = new Map<string, TypeDefinition>();
    for (const tenant of new Set([null, this.#tenant])) {
      for (const [name, type] of this.#branchTypes.ownOf(tenant)) typesByName.set(name, type);
    }
    return [...typesByName.values()].sort(byTypeName);
  }

  /** The sorted types, those of some names as they are now: sorting all of them after each change would take a turn of some milliseconds. */
  #mergedTypes(names: ReadonlySet<string>): readonly TypeDefinition[] {
    const changed = [...names].map((name) => this.type(name)!).sort(byTypeName);
    const merged: TypeDefinition[] = [];
    let next = 0;
    for (const type of this.#sortedTypes) {
      while (next < changed.length && byTypeName(changed[next]!, type) < 0) merged.push(changed[next++]!);
      if (changed[next]?.name === type.name) merged.push(changed[next++]!);
      else merged.push(type);
    }
    return merged.concat(changed.slice(next));
  }
}

interface TypeChanges {
  readonly inherited: number;
  readonly own: number;
}

const byTypeName = (a: TypeDefinition, b: TypeDefinition): number => compareText(a.name, b.name);
const noOwnTypes: ReadonlyMap<string, TypeDefinition> = new Map();
