/**
 * Roles: the meaning of rows to the domain functions, independent of the name of their type. A type plays a role that it declares
 * (`role` of its definition); a type that has the name of the role's default type plays it where its columns fit. No name is
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

function role(name: RoleName, defaultType: string, written: string): Role {
  const columns = written.split(' ').map((each): RoleColumn => {
    const [column, kind = 'text'] = each.replaceAll('!', '').split(':');
    return { name: column!, kind: kind as RoleColumnKind, ...(each.includes('!') && { required: true }) };
  });
  return { name, defaultType, columns };
}

const party = 'name! kind aliases:list birth_date country';

export const roles: Readonly<Record<RoleName, Role>> = {
  party: role('party', 'Party', party),
  ownership: role('ownership', 'Ownership', 'owner! owned! pct:number'),
  listing: role('listing', 'Listing', `${party} program list`),
  transfer: role('transfer', 'Transfer', 'from! to! amount:number at:instant currency txid channel'),
  sighting: role('sighting', 'Sighting', 'subject! lat:number! lon:number! at:instant'),
  incident: role('incident', 'Incident', 'kind! lat:number lon:number at:instant severity:number mo status'),
  unit: role('unit', 'Unit', 'lat:number! lon:number! status'),
  account: role('account', 'Account', 'platform handle! name bio created_at:instant followers:number'),
  post: role('post', 'Post', 'account! platform text! at:instant object reply_to'),
  case: role('case', 'Case', 'title! status subjects:list'),
  case_note: role('case_note', 'CaseNote', 'case_id! text! author exhibit_id'),
  identity_model: role('identity_model', 'IdentityModel', 'of_type! weights:list!'),
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
export function roleTypes(scope: FunctionScope, uses: readonly RoleUse[], areAlternatives: boolean): readonly RoleType[] {
  const definitions = [...(scope.catalog?.types() ?? [])].sort((a, b) => compareText(a.name, b.name));
  const source = scope.words.word('SOURCE');
  const narrowed = source === undefined ? [] : areAlternatives ? uses : uses.slice(0, 1);
  const sourced = definitions
    .filter(({ name }) => name === source)
    .flatMap((each) => {
      const fitting = narrowed.map((use) => roles[use.role]).filter((wanted) => fits(each, wanted));
      const chosen = fitting.find((wanted) => wanted.name === each.role) ?? fitting[0];
      return chosen ? [roleType(each, chosen.name, true)] : [];
    });
  const rest = uses.filter((use) => !narrowed.includes(use));
  const played = rest.flatMap((use) =>
    definitions.filter((each) => plays(each, roles[use.role])).map((each) => roleType(each, use.role, false)),
  );
  return [...sourced, ...played];
}

/** Throws REL_UNKNOWN_TYPE where no type plays a role that is not optional, REL_INVALID where SOURCE plays none that it may. */
export function checkRoles(scope: BoundScope, uses: readonly RoleUse[], areAlternatives: boolean): void {
  const { words, catalog } = scope;
  const types = roleTypes(scope, uses, areAlternatives);
  const source = words.word('SOURCE');
  if (source !== undefined && !types.some(({ isNamed }) => isNamed)) {
    const sourceProblem = `type ${JSON.stringify(source)} of SOURCE`;
    if (catalog.type(source) === undefined) {
      throw errorAt('REL_UNKNOWN_TYPE', `${sourceProblem} is not registered`, words.locationOf('SOURCE'));
    }
    const wanted = (areAlternatives ? uses : uses.slice(0, 1)).map((use) => use.role).join(' or ');
    throw errorAt('REL_INVALID', `${sourceProblem} has not the columns of the role ${wanted}`, words.locationOf('SOURCE'));
  }
  const isPlayed = (use: RoleUse): boolean => types.some((each) => each.role === use.role);
  const missing = areAlternatives
    ? types.length === 0
      ? uses[0]
      : undefined
    : uses.find((use) => !use.optional && !isPlayed(use));
  if (missing === undefined) return;
  throw errorAt('REL_UNKNOWN_TYPE', unplayedMessage(missing.role), words.locationOf('SOURCE'));
}

/** The detail of REL_UNKNOWN_TYPE about a role. */
export function unplayedMessage(name: RoleName): string {
  return `no type plays the role ${name}: declare it of a type, or register ${roles[name].defaultType}`;
}

/** Roles that one of these types plays. */
export function playedRoles(types: readonly TypeDefinition[]): ReadonlySet<RoleName> {
  const names = Object.keys(roles) as RoleName[];
  return new Set(names.filter((name) => types.some((each) => plays(each, roles[name]))));
}

/** Those of the types that play a role. */
export function rolePlayers(types: readonly TypeDefinition[], role: RoleName): readonly RoleType[] {
  return types.filter((each) => plays(each, roles[role])).map((each) => roleType(each, role, false));
}

function plays(definition: TypeDefinition, wanted: Role): boolean {
  if (definition.role !== undefined) return definition.role === wanted.name;
  return definition.name === wanted.defaultType && fits(definition, wanted);
}

function fits(definition: TypeDefinition, { name, columns }: Role): boolean {
  return (
    definition.role === name || columns.every((each) => each.required === undefined || propertyOf(definition, each) !== undefined)
  );
}

function roleType(definition: TypeDefinition, name: RoleName, isNamed: boolean): RoleType {
  const columns = new Map<string, string>();
  for (const each of roles[name].columns) {
    const column = propertyOf(definition, each);
    if (column !== undefined) columns.set(each.name, column);
  }
  return { role: name, type: definition.name, columns, isNamed };
}

/** The column of a type that serves as one of a role, where it has one of a fitting type. */
function propertyOf({ properties, roleColumns }: TypeDefinition, { name, kind }: RoleColumn): string | undefined {
  const column = roleColumns?.[name] ?? name;
  const type = properties[column]?.type ?? (systemColumns as Readonly<Record<string, ColumnType>>)[column];
  return type !== undefined && readable[kind].has(type) ? column : undefined;
}

const readable: Readonly<Record<RoleColumnKind, ReadonlySet<ColumnType>>> = {
  text: new Set(['string', 'integer']),
  number: new Set(['number', 'integer']),
  instant: new Set(['timestamp', 'string']),
  list: new Set(['json', 'string']),
};
