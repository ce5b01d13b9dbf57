/**
 * Which types a caller can name, and whose rows each name reads: the tenant's own rows of the type, by its own definition,
 * and those that agreements share. Where the tenant has no such type, the assigner's definition counts.
 * `"acme"."Parcel"` names the rows of one assigner alone. A name that does not exist and one that is not visible are alike.
 */
import { ServiceError } from '../../errors.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { compareText } from '../../log/values/value.ts';
import { type AccessPaths, splitTypeName, type TenantPaths } from '../../projections/access-paths.ts';
import { alertProperties, alertType } from '../../projections/catalog/builtin-types.ts';
import { columnTypeOf } from '../../projections/catalog/projection.ts';
import { isClassified, refuseClassified } from '../authorization/egress.ts';
import type { Grant, TypeGrant } from '../authorization/grant.ts';
import { joinedGrant } from '../authorization/grants.ts';
import type { Guards } from '../authorization/guards.ts';
import { unregisteredType } from '../authorization/access-rules.ts';

/** Rows of one tenant's type. */
export interface RowSource {
  readonly paths: TenantPaths;
  readonly declared: TypeDefinition;
  /** The same with every mask of the lineage: a column that any branch of it declares masked is. */
  readonly type: TypeDefinition;
  readonly grant: TypeGrant;
  readonly guards: Guards;
}

export interface VisibleType {
  /** As the caller means it. */
  readonly definition: TypeDefinition;
  /** The tenant's own first, then the assigners' in codepoint order. At least one. */
  readonly sources: readonly RowSource[];
  readonly grant: TypeGrant;
}

export interface VisibleTypesDependencies {
  readonly paths: AccessPaths;
  readonly grant: Grant;
  /** Another tenant's path is named, whose rows alone are asked for. */
  readonly visiting: boolean;
  guardsOf(paths: TenantPaths): Guards;
}

export class VisibleTypes {
  readonly #parts: VisibleTypesDependencies;
  readonly #known = new Map<string, VisibleType | undefined>();
  readonly #guards: Guards;

  constructor(parts: VisibleTypesDependencies) {
    this.#parts = parts;
    this.#guards = parts.guardsOf(parts.paths);
  }

  /** Undefined when the caller can name no such type. Throws REL_HUMINT for a classified one. */
  find(name: string): VisibleType | undefined {
    if (this.#known.has(name)) return this.#known.get(name);
    const visibleType = this.#find(name);
    this.#known.set(name, visibleType);
    return visibleType;
  }

  /** A name that is no type yet stands for rows of its own. */
  typeNamed(name: string): VisibleType {
    return this.find(name) ?? visible([this.#own(unregisteredType(name))])!;
  }

  /** Goes through all types that can be named, in the order of their names: those that only others share included. */
  definitions(): readonly TypeDefinition[] {
    const { paths, grant, visiting } = this.#parts;
    const own = visiting ? [] : dropClassified(paths.catalog.types());
    const names = new Set(grant.sharing.flatMap(({ types }) => [...types]).filter((name) => !isClassified(name)));
    if (!visiting) for (const { name } of own) names.delete(name);
    if (names.size === 0) return own;
    const shared = [...names].flatMap((name) => this.find(name)?.definition ?? []);
    return [...own, ...shared].sort((a, b) => compareText(a.name, b.name));
  }

  /** Some rows of it may be read, as far as policies and guards go. */
  offers(name: string): boolean {
    return (
      this.find(name)?.sources.some(({ grant, guards, declared }) => grant.allowed && !isClosed(guards, declared.name, [])) ===
      true
    );
  }

  /** Part of the plan key: definitions of shared types change plans. */
  get sharedKey(): string {
    const { grant, paths } = this.#parts;
    const keys = grant.sharing.map(({ tenant, types }) => {
      const of = paths.pathsOf(tenant);
      const versions = [...types].map((name) => [name, of.catalog.type(name)?.ontologyVersion ?? 0]);
      return [tenant, of.protectionEpoch, versions];
    });
    return keys.length === 0 ? '' : JSON.stringify(keys);
  }

  /** Sentences about rows of others that lack some of these columns, or are left out. */
  notices(name: string, columns: readonly string[]): readonly string[] {
    const visibleType = this.find(name);
    return (visibleType?.sources ?? []).flatMap(({ paths, type, grant, guards }) => {
      if (paths.tenant === this.#parts.paths.tenant) return [];
      const rows = `rows of ${JSON.stringify(type.name)} that ${paths.tenant} shares`;
      if (visibleType!.sources.length > 1 && isClosed(guards, type.name, columns))
        return [`${rows} are left out: they are guarded`];
      const withheld = columns.filter((column) =>
        grant.lanes.every((lane) => lane.columns !== null && lane.masks.get(column)?.kind === 'null'),
      );
      const lacking = columns.filter((column) => !isAlike(visibleType!.definition, type, column));
      return [
        ...(withheld.length === 0 ? [] : [`${rows} have NULL in ${withheld.join(', ')}: not shared`]),
        ...(lacking.length === 0 ? [] : [`${rows} have NULL in ${lacking.join(', ')}: no such column there, or of another type`]),
      ];
    });
  }

  #find(name: string): VisibleType | undefined {
    refuseClassified(name);
    const { paths, visiting } = this.#parts;
    const declared = visiting ? undefined : (paths.catalog.type(name) ?? (name === alertType ? unraisedAlerts : undefined));
    const own = declared === undefined ? [] : [this.#own(declared)];
    const sources = [...own, ...this.#sharedSources(name)];
    if (sources.length > 0) return visible(sources);
    const parts = splitTypeName(name);
    if (parts === null) return undefined;
    refuseClassified(parts.type);
    if (parts.tenant !== paths.tenant) return visible(this.#sharedSources(parts.type, parts.tenant));
    const named = visiting ? undefined : paths.catalog.type(parts.type);
    return named && visible([this.#own(named)]);
  }

  #own(declared: TypeDefinition): RowSource {
    const { paths, grant } = this.#parts;
    const type = maskDeclared(paths, declared);
    return { paths, declared, type, grant: grant.grantFor(type), guards: this.#guards };
  }

  #sharedSources(name: string, only?: string): RowSource[] {
    const { paths, grant, guardsOf } = this.#parts;
    return grant.sharing.flatMap(({ tenant, types, grantFor: of }) => {
      if (!types.has(name) || (only !== undefined && tenant !== only)) return [];
      const theirs = paths.pathsOf(tenant);
      const declared = theirs.catalog.type(name);
      if (declared === undefined) return [];
      const type = maskDeclared(theirs, declared);
      const shared = of(type);
      return shared.allowed ? [{ paths: theirs, declared, type, grant: shared, guards: guardsOf(theirs) }] : [];
    });
  }
}

/** Alerts are asked for before there is one, whose entry registers the type. */
const unraisedAlerts: TypeDefinition = {
  name: alertType,
  properties: alertProperties,
  open: false,
  primaryKey: null,
  graphTriggers: [],
  ontologyVersion: 0,
};

const withoutClassified = new WeakMap<readonly TypeDefinition[], readonly TypeDefinition[]>();

/** One list for all who ask of the same list: a tenant may have 10,000 types. */
function dropClassified(types: readonly TypeDefinition[]): readonly TypeDefinition[] {
  let left = withoutClassified.get(types);
  if (left === undefined) withoutClassified.set(types, (left = types.filter(({ name }) => !isClassified(name))));
  return left;
}

function visible(sources: readonly RowSource[]): VisibleType | undefined {
  const [first] = sources;
  if (first === undefined) return undefined;
  return { definition: first.declared, sources, grant: joinedGrant(sources.map(({ grant }) => grant)) };
}

/**
 * The sources of several that a read uses. Shared rows that are guarded, and not opened, are left out when they are read together with the
 * caller's own, and a notice says so; so are the caller's own where policies permit none of them.
 */
export function openSources({ sources }: VisibleType, columns: readonly string[]): readonly RowSource[] {
  const permitted = sources.filter(({ grant }) => grant.allowed);
  const open = permitted.filter(({ guards, declared }, i) => i === 0 || !isClosed(guards, declared.name, columns));
  return open.length > 0 ? open : sources.slice(0, 1);
}

/** True when a column that the reader names is there, and means the same. */
export function isAlike(definition: TypeDefinition, of: TypeDefinition, column: string): boolean {
  return definition === of || columnTypeOf(definition, column) === columnTypeOf(of, column);
}

/** True when something that guards a type is not opened by what the caller stated. */
export function isClosed(guards: Guards, type: string, columns: readonly string[]): boolean {
  try {
    guards.check(type, columns);
    return false;
  } catch (error) {
    if (error instanceof ServiceError) return true;
    throw error;
  }
}

/** A column that any definition of the lineage declares masked is, whatever the branch, or the catalog of then, says. */
function maskDeclared({ protection }: TenantPaths, declared: TypeDefinition): TypeDefinition {
  const { masked: names } = protection(declared.name);
  return names.size === 0 ? declared : withMasked(declared, names);
}

const maskedTypes = new WeakMap<TypeDefinition, { readonly masked: ReadonlySet<string>; readonly type: TypeDefinition }>();

/** The same object for the same columns: decisions about a type are found by its identity. */
function withMasked(type: TypeDefinition, names: ReadonlySet<string>): TypeDefinition {
  const known = maskedTypes.get(type);
  if (known?.masked === names) return known.type;
  const present = [...names].filter((name) => Object.hasOwn(type.properties, name));
  const added = present.map((name) => [name, { ...type.properties[name]!, masked: true }] as const);
  const widenedType = { ...type, properties: { ...type.properties, ...Object.fromEntries(added) } };
  maskedTypes.set(type, { masked: names, type: widenedType });
  return widenedType;
}
