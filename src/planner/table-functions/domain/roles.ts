/**
 * Roles: the meaning of rows to the domain functions, independent of the name of their type. A type plays a role that it declares
 * (`domainRole` of its definition); a type that has the name of the role's default type plays it where its columns fit. No name is
 * reserved for that: a default type is known to these functions alone. Source: specification, "SQL dialect", the table of
 * operators; `docs/domain.md`.
 */
import type { TypeDefinition } from '../../../log/entries/entry.ts';
import { type ColumnType, compareText, systemColumns } from '../../../log/values/value.ts';
import { errorAt } from '../../syntax/error-location.ts';
import type { BoundScope, FunctionScope } from '../../calls/table-function.ts';

/** How cells of a column of a role are read: `list` is JSON of texts, or one text; `instant` a timestamp or a text of one. */
export type RoleColumnKind = 'text' | 'number' | 'instant' | 'list';

export interface RoleColumn {
  readonly name: string;
  readonly kind: RoleColumnKind;
  /** A type of the default's name without this column does not play the role. */
  readonly required?: true;
}

export interface Role {
  readonly name: RoleName;
  /** Name of the type that plays the role without declaring it. */
  readonly defaultType: string;
  readonly columns: readonly RoleColumn[];
}

export type RoleName =
  | 'party'
  | 'ownership'
  | 'listing'
  | 'transfer'
  | 'sighting'
  | 'incident'
  | 'unit'
  | 'account'
  | 'post'
  | 'case'
  | 'case_note'
  | 'identity_model';

function domainRole(name: RoleName, defaultType: string, writtenColumns: string): Role {
  const roleColumns = writtenColumns.split(' ').map((writtenColumn): RoleColumn => {
    const [column, columnKind = 'text'] = writtenColumn.replaceAll('!', '').split(':');
    return { name: column!, kind: columnKind as RoleColumnKind, ...(writtenColumn.includes('!') && { required: true }) };
  });
  return { name, defaultType, columns: roleColumns };
}

const partyColumns = 'name! kind aliases:list birth_date country';

export const roles: Readonly<Record<RoleName, Role>> = {
  party: domainRole('party', 'Party', partyColumns),
  ownership: domainRole('ownership', 'Ownership', 'owner! owned! pct:number'),
  listing: domainRole('listing', 'Listing', `${partyColumns} program list`),
  transfer: domainRole('transfer', 'Transfer', 'from! to! amount:number at:instant currency txid channel'),
  sighting: domainRole('sighting', 'Sighting', 'subject! lat:number! lon:number! at:instant'),
  incident: domainRole('incident', 'Incident', 'kind! lat:number lon:number at:instant severity:number mo status'),
  unit: domainRole('unit', 'Unit', 'lat:number! lon:number! status'),
  account: domainRole('account', 'Account', 'platform handle! name bio created_at:instant followers:number'),
  post: domainRole('post', 'Post', 'account! platform text! at:instant object reply_to'),
  case: domainRole('case', 'Case', 'title! status subjects:list'),
  case_note: domainRole('case_note', 'CaseNote', 'case_id! text! author exhibit_id'),
  identity_model: domainRole('identity_model', 'IdentityModel', 'of_type! weights:list!'),
};

/** A type that plays a role, and which of its columns stand for those of the role. */
export interface RoleType {
  readonly role: RoleName;
  readonly type: string;
  /** By column of the role; a column that the type lacks reads as NULL. */
  readonly columns: ReadonlyMap<string, string>;
  /** The caller named it: then not to be allowed to read it is an error. */
  readonly isNamed: boolean;
}

/** A role that a function reads. One that is optional may be played by no type at all. */
export interface RoleUse {
  readonly role: RoleName;
  readonly optional?: true;
}

/**
 * The types whose rows a call reads, by role and name. SOURCE narrows the first role; of roles that are alternatives to each
 * other, as all that have coordinates are, it leaves that one alone which its type plays.
 */
export function roleTypes(scope: FunctionScope, roleUses: readonly RoleUse[], areAlternatives: boolean): readonly RoleType[] {
  const sortedDefinitions = [...(scope.catalog?.types() ?? [])].sort((a, b) => compareText(a.name, b.name));
  const sourceType = scope.words.word('SOURCE');
  const narrowedUses = sourceType === undefined ? [] : areAlternatives ? roleUses : roleUses.slice(0, 1);
  const sourcedRoles = sortedDefinitions
    .filter(({ name }) => name === sourceType)
    .flatMap((roleDefinition) => {
      const fittingRoles = narrowedUses
        .map((roleUse) => roles[roleUse.role])
        .filter((wantedRole) => fitsRole(roleDefinition, wantedRole));
      const chosenRole = fittingRoles.find((wantedRole) => wantedRole.name === roleDefinition.role) ?? fittingRoles[0];
      return chosenRole ? [roleTypeOf(roleDefinition, chosenRole.name, true)] : [];
    });
  const otherUses = roleUses.filter((roleUse) => !narrowedUses.includes(roleUse));
  const playedRoleTypes = otherUses.flatMap((roleUse) =>
    sortedDefinitions
      .filter((roleDefinition) => playsRole(roleDefinition, roles[roleUse.role]))
      .map((roleDefinition) => roleTypeOf(roleDefinition, roleUse.role, false)),
  );
  return [...sourcedRoles, ...playedRoleTypes];
}

/** Throws REL_UNKNOWN_TYPE where no type plays a role that is not optional, REL_INVALID where SOURCE plays none that it may. */
export function checkRoles(scope: BoundScope, roleUses: readonly RoleUse[], areAlternatives: boolean): void {
  const { words, catalog } = scope;
  const types = roleTypes(scope, roleUses, areAlternatives);
  const sourceType = words.word('SOURCE');
  if (sourceType !== undefined && !types.some(({ isNamed }) => isNamed)) {
    const sourceProblem = `type ${JSON.stringify(sourceType)} of SOURCE`;
    if (catalog.type(sourceType) === undefined) {
      throw errorAt('REL_UNKNOWN_TYPE', `${sourceProblem} is not registered`, words.locationOf('SOURCE'));
    }
    const wantedRoles = (areAlternatives ? roleUses : roleUses.slice(0, 1)).map((use) => use.role).join(' or ');
    throw errorAt('REL_INVALID', `${sourceProblem} has not the columns of the role ${wantedRoles}`, words.locationOf('SOURCE'));
  }
  const isRolePlayed = (use: RoleUse): boolean => types.some((each) => each.role === use.role);
  const missingUse = areAlternatives
    ? types.length === 0
      ? roleUses[0]
      : undefined
    : roleUses.find((use) => !use.optional && !isRolePlayed(use));
  if (missingUse === undefined) return;
  throw errorAt('REL_UNKNOWN_TYPE', unplayedMessage(missingUse.role), words.locationOf('SOURCE'));
}

/** The detail of REL_UNKNOWN_TYPE about a role. */
export function unplayedMessage(name: RoleName): string {
  return `no type plays the role ${name}: declare it of a type, or register ${roles[name].defaultType}`;
}

/** Roles that one of these types plays. */
export function playedRoles(types: readonly TypeDefinition[]): ReadonlySet<RoleName> {
  const roleNames = Object.keys(roles) as RoleName[];
  return new Set(roleNames.filter((name) => types.some((each) => playsRole(each, roles[name]))));
}

/** Those of the types that play a role. */
export function rolePlayers(types: readonly TypeDefinition[], role: RoleName): readonly RoleType[] {
  return types.filter((each) => playsRole(each, roles[role])).map((each) => roleTypeOf(each, role, false));
}

function playsRole(definition: TypeDefinition, wantedRole: Role): boolean {
  if (definition.role !== undefined) return definition.role === wantedRole.name;
  return definition.name === wantedRole.defaultType && fitsRole(definition, wantedRole);
}

function fitsRole(definition: TypeDefinition, { name, columns }: Role): boolean {
  return (
    definition.role === name ||
    columns.every((roleColumn) => roleColumn.required === undefined || rolePropertyOf(definition, roleColumn) !== undefined)
  );
}

function roleTypeOf(definition: TypeDefinition, name: RoleName, isNamed: boolean): RoleType {
  const roleColumns = new Map<string, string>();
  for (const roleColumn of roles[name].columns) {
    const propertyName = rolePropertyOf(definition, roleColumn);
    if (propertyName !== undefined) roleColumns.set(roleColumn.name, propertyName);
  }
  return { role: name, type: definition.name, columns: roleColumns, isNamed };
}

/** The column of a type that serves as one of a role, where it has one of a fitting type. */
function rolePropertyOf({ properties, roleColumns }: TypeDefinition, { name, kind }: RoleColumn): string | undefined {
  const propertyName = roleColumns?.[name] ?? name;
  const propertyType = properties[propertyName]?.type ?? (systemColumns as Readonly<Record<string, ColumnType>>)[propertyName];
  return propertyType !== undefined && readableColumnTypes[kind].has(propertyType) ? propertyName : undefined;
}

const readableColumnTypes: Readonly<Record<RoleColumnKind, ReadonlySet<ColumnType>>> = {
  text: new Set(['string', 'integer']),
  number: new Set(['number', 'integer']),
  instant: new Set(['timestamp', 'string']),
  list: new Set(['json', 'string']),
};
