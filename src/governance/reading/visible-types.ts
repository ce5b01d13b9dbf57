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
  readonly #visibleTypeParts: VisibleTypesDependencies;
  readonly #typesByName = new Map<string, VisibleType | undefined>();
  readonly #ownGuards: Guards;

  constructor(parts: VisibleTypesDependencies) {
    this.#visibleTypeParts = parts;
    this.#ownGuards = parts.guardsOf(parts.paths);
  }

  /** Undefined when the caller can name no such type. Throws REL_HUMINT for a classified one. */
  find(name: string): VisibleType | undefined {
    if (this.#typesByName.has(name)) return this.#typesByName.get(name);
    const visibleType = this.#findVisibleType(name);
    this.#typesByName.set(name, visibleType);
    return visibleType;
  }

  /** A name that is no type yet stands for rows of its own. */
  typeNamed(name: string): VisibleType {
    return this.find(name) ?? visibleTypeOf([this.#ownSource(unregisteredType(name))])!;
  }

  /** Goes through all types that can be named, in the order of their names: those that only others share included. */
  definitions(): readonly TypeDefinition[] {
    const { paths, grant, visiting } = this.#visibleTypeParts;
    const ownTypes = visiting ? [] : dropClassified(paths.catalog.types());
    const sharedNames = new Set(grant.sharing.flatMap(({ types }) => [...types]).filter((name) => !isClassified(name)));
    if (!visiting) for (const { name } of ownTypes) sharedNames.delete(name);
    if (sharedNames.size === 0) return ownTypes;
    const sharedTypes = [...sharedNames].flatMap((name) => this.find(name)?.definition ?? []);
    return [...ownTypes, ...sharedTypes].sort((a, b) => compareText(a.name, b.name));
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
    const { grant, paths } = this.#visibleTypeParts;
    const tenantKeys = grant.sharing.map(({ tenant, types }) => {
      const sharingPaths = paths.pathsOf(tenant);
      const typeVersions = [...types].map((name) => [name, sharingPaths.catalog.type(name)?.ontologyVersion ?? 0]);
      return [tenant, sharingPaths.protectionEpoch, typeVersions];
    });
    return tenantKeys.length === 0 ? '' : JSON.stringify(tenantKeys);
  }

  /** Sentences about rows of others that lack some of these columns, or are left out. */
  notices(name: string, columns: readonly string[]): readonly string[] {
    const visibleType = this.find(name);
    return (visibleType?.sources ?? []).flatMap(({ paths, type, grant, guards }) => {
      if (paths.tenant === this.#visibleTypeParts.paths.tenant) return [];
      const sharedRowsText = `rows of ${JSON.stringify(type.name)} that ${paths.tenant} shares`;
      if (visibleType!.sources.length > 1 && isClosed(guards, type.name, columns))
        return [`${sharedRowsText} are left out: they are guarded`];
      const withheldColumns = columns.filter((column) =>
        grant.lanes.every((lane) => lane.columns !== null && lane.masks.get(column)?.kind === 'null'),
      );
      const lackingColumns = columns.filter((column) => !isAlike(visibleType!.definition, type, column));
      return [
        ...(withheldColumns.length === 0 ? [] : [`${sharedRowsText} have NULL in ${withheldColumns.join(', ')}: not shared`]),
        ...(lackingColumns.length === 0
          ? []
          : [`${sharedRowsText} have NULL in ${lackingColumns.join(', ')}: no such column there, or of another type`]),
      ];
    });
  }

  #findVisibleType(name: string): VisibleType | undefined {
    refuseClassified(name);
    const { paths, visiting } = this.#visibleTypeParts;
    const declaredType = visiting ? undefined : (paths.catalog.type(name) ?? (name === alertType ? unraisedAlerts : undefined));
    const ownSources = declaredType === undefined ? [] : [this.#ownSource(declaredType)];
    const rowSources = [...ownSources, ...this.#sharedSources(name)];
    if (rowSources.length > 0) return visibleTypeOf(rowSources);
    const qualifiedName = splitTypeName(name);
    if (qualifiedName === null) return undefined;
    refuseClassified(qualifiedName.type);
    if (qualifiedName.tenant !== paths.tenant)
      return visibleTypeOf(this.#sharedSources(qualifiedName.type, qualifiedName.tenant));
    const qualifiedType = visiting ? undefined : paths.catalog.type(qualifiedName.type);
    return qualifiedType && visibleTypeOf([this.#ownSource(qualifiedType)]);
  }

  #ownSource(declared: TypeDefinition): RowSource {
    const { paths, grant } = this.#visibleTypeParts;
    const type = maskDeclared(paths, declared);
    return { paths, declared, type, grant: grant.grantFor(type), guards: this.#ownGuards };
  }

  #sharedSources(name: string, onlyTenant?: string): RowSource[] {
    const { paths, grant, guardsOf } = this.#visibleTypeParts;
    return grant.sharing.flatMap(({ tenant, types, grantFor: sharedGrantFor }) => {
      if (!types.has(name) || (onlyTenant !== undefined && tenant !== onlyTenant)) return [];
      const sharingPaths = paths.pathsOf(tenant);
      const declared = sharingPaths.catalog.type(name);
      if (declared === undefined) return [];
      const type = maskDeclared(sharingPaths, declared);
      const sharedGrant = sharedGrantFor(type);
      return sharedGrant.allowed
        ? [{ paths: sharingPaths, declared, type, grant: sharedGrant, guards: guardsOf(sharingPaths) }]
        : [];
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
  let unclassifiedTypes = withoutClassified.get(types);
  if (unclassifiedTypes === undefined)
    withoutClassified.set(types, (unclassifiedTypes = types.filter(({ name }) => !isClassified(name))));
  return unclassifiedTypes;
}

function visibleTypeOf(sources: readonly RowSource[]): VisibleType | undefined {
  const [firstSource] = sources;
  if (firstSource === undefined) return undefined;
  return { definition: firstSource.declared, sources, grant: joinedGrant(sources.map(({ grant }) => grant)) };
}

/**
 * The sources of several that a read uses. Shared rows that are guarded, and not opened, are left out when they are read together with the
 * caller's own, and a notice says so; so are the caller's own where policies permit none of them.
 */
export function openSources({ sources }: VisibleType, columns: readonly string[]): readonly RowSource[] {
  const permittedSources = sources.filter(({ grant }) => grant.allowed);
  const openedSources = permittedSources.filter(
    ({ guards, declared }, i) => i === 0 || !isClosed(guards, declared.name, columns),
  );
  return openedSources.length > 0 ? openedSources : sources.slice(0, 1);
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
  return names.size === 0 ? declared : withMaskedColumns(declared, names);
}

const maskedTypes = new WeakMap<TypeDefinition, { readonly masked: ReadonlySet<string>; readonly type: TypeDefinition }>();

/** The same object for the same columns: decisions about a type are found by its identity. */
function withMaskedColumns(type: TypeDefinition, names: ReadonlySet<string>): TypeDefinition {
  const knownMasked = maskedTypes.get(type);
  if (knownMasked?.masked === names) return knownMasked.type;
  const presentNames = [...names].filter((name) => Object.hasOwn(type.properties, name));
  const maskedProperties = presentNames.map((name) => [name, { ...type.properties[name]!, masked: true }] as const);
  const widenedType = { ...type, properties: { ...type.properties, ...Object.fromEntries(maskedProperties) } };
  maskedTypes.set(type, { masked: names, type: widenedType });
  return widenedType;
}
