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

interface Scope {
  types: Map<string, TypeDefinition>;
  shared: boolean;
  changes: number;
  /** Names that the latest changes defined, the newest last. */
  readonly latest: string[];
}

/** So many names are kept at least: who last looked before them looks at all types. */
const latestMin = 1_024;

export class BranchTypes {
  /** By tenant; null: the store's. */
  readonly #scopes: Map<string | null, Scope>;
  readonly #readers = new Map<string | null, TenantTypes>();

  constructor(scopes: Iterable<ScopeTypes>) {
    this.#scopes = new Map();
    for (const { tenant, types, changes } of scopes)
      this.#scopes.set(tenant, { types: new Map(types), shared: false, changes, latest: [] });
    assert(this.#scopes.has(null), 'a branch has the types of the store');
  }

  static builtin(): BranchTypes {
    return new BranchTypes([{ tenant: null, types: new Map(builtinTypes.map((type) => [type.name, type])), changes: 0 }]);
  }

  /** Types as a tenant means them: its own, and those that it inherits. */
  readerFor(tenant: string | null): CatalogReader {
    let reader = this.#readers.get(tenant);
    if (reader === undefined) this.#readers.set(tenant, (reader = new TenantTypes(this, tenant)));
    return reader;
  }

  /** A type that the scope defines itself. */
  own(tenant: string | null, name: string): TypeDefinition | undefined {
    return this.ownOf(tenant).get(name);
  }

  ownOf(tenant: string | null): ReadonlyMap<string, TypeDefinition> {
    return this.#scopes.get(tenant)?.types ?? none;
  }

  /** By tenant, the store's first. */
  scopes(): readonly ScopeTypes[] {
    const each = [...this.#scopes].map(([tenant, { types, changes }]) => ({ tenant, types, changes }));
    return each.sort((a, b) => compareText(a.tenant ?? '', b.tenant ?? ''));
  }

  /** Names that a scope defined since it had so many changes; null: that is too long ago. */
  definedSince(tenant: string | null, changes: number): readonly string[] | null {
    const scope = this.#scopes.get(tenant);
    const count = (scope?.changes ?? 0) - changes;
    if (count === 0) return [];
    return scope === undefined || count > scope.latest.length ? null : scope.latest.slice(-count);
  }

  changesOf(tenant: string | null): number {
    return this.#scopes.get(tenant)?.changes ?? 0;
  }

  fork(): BranchTypes {
    const fork = new BranchTypes([{ tenant: null, types: new Map(), changes: 0 }]);
    for (const [tenant, scope] of this.#scopes) {
      scope.shared = true;
      fork.#scopes.set(tenant, { ...scope, latest: [] });
    }
    return fork;
  }

  define(tenant: string | null, definition: TypeDefinition): void {
    assert(definition.ontologyVersion === this.readerFor(tenant).ontologyVersion + 1, 'the ontology version rises by one');
    const scope = this.#scopes.get(tenant) ?? { types: new Map<string, TypeDefinition>(), shared: false, changes: 0, latest: [] };
    if (scope.shared) {
      scope.types = new Map(scope.types);
      scope.shared = false;
    }
    scope.types.set(definition.name, definition);
    scope.changes++;
    scope.latest.push(definition.name);
    if (scope.latest.length >= 2 * latestMin) scope.latest.splice(0, latestMin);
    this.#scopes.set(tenant, scope);
  }

  /** Drops the names of a purged tenant: a later tenant of its id begins with the inherited ones. */
  forget(tenant: string): void {
    const scope = this.#scopes.get(tenant);
    if (scope) this.#scopes.set(tenant, { types: new Map(), shared: false, changes: scope.changes + 1, latest: [] });
  }
}

class TenantTypes implements CatalogReader {
  readonly #branch: BranchTypes;
  readonly #tenant: string | null;
  #sorted: readonly TypeDefinition[] = [];
  /** Changes of the store's scope and of its own that are in it. */
  #sortedAt: Changes = { inherited: -1, own: -1 };

  constructor(branch: BranchTypes, tenant: string | null) {
    this.#branch = branch;
    this.#tenant = tenant;
  }

  /** Rises with every change that this tenant sees, and with no other: it must not reveal how much others define. */
  get ontologyVersion(): number {
    const { inherited, own } = this.#changes;
    return inherited + own;
  }

  get #changes(): Changes {
    return { inherited: this.#branch.changesOf(null), own: this.#tenant === null ? 0 : this.#branch.changesOf(this.#tenant) };
  }

  type(name: string): TypeDefinition | undefined {
    const inherited = this.#branch.own(null, name);
    return this.#tenant === null ? inherited : (this.#branch.own(this.#tenant, name) ?? inherited);
  }

  isOwn(name: string): boolean {
    return this.#branch.own(this.#tenant, name) !== undefined;
  }

  types(): readonly TypeDefinition[] {
    const { inherited, own } = this.#changes;
    if (inherited !== this.#sortedAt.inherited || own !== this.#sortedAt.own) {
      const changed = this.#definedSince(this.#sortedAt);
      this.#sorted = changed === null ? this.#allSorted() : this.#mergedTypes(changed);
      this.#sortedAt = { inherited, own };
    }
    return this.#sorted;
  }

  #definedSince({ inherited, own }: Changes): ReadonlySet<string> | null {
    const everywhere = this.#branch.definedSince(null, inherited);
    const here = this.#tenant === null ? [] : this.#branch.definedSince(this.#tenant, own);
    return everywhere === null || here === null ? null : new Set([...everywhere, ...here]);
  }

  #allSorted(): readonly TypeDefinition[] {
    const seen = new Map<string, TypeDefinition>();
    for (const tenant of new Set([null, this.#tenant])) {
      for (const [name, type] of this.#branch.ownOf(tenant)) seen.set(name, type);
    }
    return [...seen.values()].sort(byName);
  }

  /** The sorted types, those of some names as they are now: sorting all of them after each change would take a turn of some milliseconds. */
  #mergedTypes(names: ReadonlySet<string>): readonly TypeDefinition[] {
    const changed = [...names].map((name) => this.type(name)!).sort(byName);
    const merged: TypeDefinition[] = [];
    let next = 0;
    for (const type of this.#sorted) {
      while (next < changed.length && byName(changed[next]!, type) < 0) merged.push(changed[next++]!);
      if (changed[next]?.name === type.name) merged.push(changed[next++]!);
      else merged.push(type);
    }
    return merged.concat(changed.slice(next));
  }
}

interface Changes {
  readonly inherited: number;
  readonly own: number;
}

const byName = (a: TypeDefinition, b: TypeDefinition): number => compareText(a.name, b.name);
const none: ReadonlyMap<string, TypeDefinition> = new Map();
