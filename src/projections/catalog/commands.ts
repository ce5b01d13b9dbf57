/** Registering and evolving types: a command and the catalog to a `type` entry. Pure. */
import { didYouMean, ServiceError } from '../../errors.ts';
import type { EntryDraft, GraphTrigger, PropertyDefinition, TypeDefinition, TypeGuard } from '../../log/entries/entry.ts';
import type { NextPosition } from '../../log/log-store.ts';
import {
  becomesText,
  checkIdentifier,
  type ColumnType,
  columnTypes,
  embeddingPrefix,
  limits,
  systemColumns,
  tenantOf,
} from '../../log/values/value.ts';
import type { CatalogReader } from '../access-paths.ts';
import type { EvolveType, RegisterType } from '../command.ts';
import { type DecideContext, type Decision, decideOne } from '../decision.ts';
import { builtinTypeNames, classifiedTypes } from './builtin-types.ts';
import { changedMeaning, checkMeaning, meaningOf, sameMeaning } from './type-meaning.ts';
import { canBeSubject } from './subject-property.ts';

/** Facts about stored cells that evolving a type needs. */
export interface StoredColumns {
  /** True when every stored integer of the column is exact as a double (at most 2^53 either way). */
  integersFitNumber(type: string, column: string): boolean;
  /** True when the branch has versions of the type, ended ones and those that were removed for good included. */
  wasWritten(type: string): boolean;
}

export function decideRegister(
  command: RegisterType,
  catalog: CatalogReader,
  stored: Pick<StoredColumns, 'wasWritten'>,
  context: DecideContext,
  next: NextPosition,
): Decision {
  checkIdentifier(command.name, 'a type name');
  refuseClassified(command.name);
  const properties = Object.entries(command.properties ?? {});
  checkCount(properties.length);
  for (const [name, property] of properties) checkProperty(name, property);
  checkSubjects(properties);
  checkPrimaryKey(command);
  checkTriggers(command);
  const meaning = meaningOf(command.meaning ?? {});
  checkMeaning(meaning, new Map(properties), command.properties === null);

  const existing = catalog.type(command.name);
  if (existing) {
    if (sameDeclaration(command, existing)) return decideOne('register-type', command.name, [], next);
    const why = builtinTypeNames.has(command.name)
      ? 'is built in: add columns to it with POST /types/:name/schema'
      : catalog.isOwn(command.name)
        ? 'is registered with another definition'
        : stored.wasWritten(command.name)
          ? 'has rows already, under the definition that everybody inherits'
          : null;
    if (why !== null) throw new ServiceError('REL_CONFLICT', `type ${JSON.stringify(command.name)} ${why}`);
  }
  const definition: TypeDefinition = {
    name: command.name,
    properties: Object.fromEntries(properties),
    open: command.properties === null,
    primaryKey: command.primaryKey,
    graphTriggers: command.graphTriggers,
    ontologyVersion: catalog.ontologyVersion + 1,
    ...guardOf(command.guard),
    ...meaning,
  };
  return decideOne('register-type', command.name, [typeDraft(definition, context)], next);
}

export function decideEvolve(
  command: EvolveType,
  catalog: CatalogReader,
  stored: StoredColumns,
  context: DecideContext,
  next: NextPosition,
): Decision {
  refuseClassified(command.name);
  const existing = catalog.type(command.name);
  if (!existing) throw new ServiceError('REL_UNKNOWN_TYPE', `no type ${JSON.stringify(command.name)}`);
  const properties = new Map(Object.entries(existing.properties));
  const guard = changedGuard(existing, command);
  const meaning = changedMeaning(existing, command.meaning);
  let changed = !sameGuard(guard.guard, existing.guard) || !sameMeaning(meaning, existing);
  for (const [name, given] of Object.entries(command.properties)) {
    checkProperty(name, given);
    const before = properties.get(name);
    const property = before?.references === undefined ? given : { references: before.references, ...given };
    if (before && sameProperty(before, property)) continue;
    // Rows have an `id` from the first one on: text, unless it is declared otherwise.
    if (!before && name === 'id' && property.type !== 'string')
      throw new ServiceError('REL_CONFLICT', 'id is text in a type that was registered without it');
    if (before) checkWidening(existing, name, before, property, stored, command.mayTakeBack === true);
    const isEnd = existing.graphTriggers.some(({ sourceField, targetField }) => sourceField === name || targetField === name);
    if (property.masked && before?.masked !== true && isEnd) throw maskedEnd(name);
    if (property.subject && before?.subject !== true && stored.wasWritten(existing.name)) {
      const what = `property ${JSON.stringify(name)} of ${JSON.stringify(existing.name)}`;
      throw new ServiceError('REL_CONFLICT', `${what} cannot hold the subject: stored rows are not sealed for one`);
    }
    properties.set(name, property);
    changed = true;
  }
  checkCount(properties.size);
  checkSubjects([...properties]);
  checkMeaning(meaning, properties, existing.open);
  if (!changed) return decideOne('evolve-type', command.name, [], next);
  const {
    guard: _,
    edge: _e,
    role: _r,
    roleColumns: _rc,
    identifier: _i,
    identifierKinds: _ik,
    language: _l,
    ...plain
  } = evolveDefinition(existing, properties, catalog);
  const definition: TypeDefinition = { ...plain, ...guard, ...meaning };
  return decideOne('evolve-type', command.name, [typeDraft(definition, context)], next);
}

/** A tenant's definitions are its own; every tenant inherits definitions made without a tenant. */
export function typeDraft(definition: TypeDefinition, { entry }: DecideContext): EntryDraft {
  const own = tenantOf(entry.path) === null ? {} : ({ own: true } as const);
  return { context: entry, body: { kind: 'type', definition, ...own } };
}

/** The definition with these properties, one ontology version later. */
export function evolveDefinition(
  type: TypeDefinition,
  properties: ReadonlyMap<string, PropertyDefinition>,
  catalog: CatalogReader,
): TypeDefinition {
  return { ...type, properties: Object.fromEntries(properties), ontologyVersion: catalog.ontologyVersion + 1 };
}

/** Throws when `name` can't be a property at all, or its definition makes no sense. */
export function checkProperty(name: string, property: PropertyDefinition): void {
  checkIdentifier(name, 'a property name');
  const what = `property ${JSON.stringify(name)}`;
  if (!columnTypes.includes(property.type)) throw new ServiceError('REL_INVALID', `${what} has an unknown type`);
  if (isReservedName(name)) throw new ServiceError('REL_INVALID', `${what} has a reserved name`);
  if (property.references !== undefined) {
    checkIdentifier(property.references, `the type that ${what} references`);
    refuseClassified(property.references);
  }
  if (property.subject && !canBeSubject(property.type)) {
    throw new ServiceError('REL_INVALID', `${what} cannot hold the subject: only a string or an integer can`);
  }
  if (name.startsWith(embeddingPrefix) && property.type !== 'vector')
    throw new ServiceError('REL_INVALID', `${what} must be a vector`);
  if (name === 'id' && (property.type === 'vector' || property.type === 'json')) {
    throw new ServiceError('REL_INVALID', `${what} must have a scalar type`);
  }
  const dimsRight =
    property.type === 'vector'
      ? Number.isInteger(property.dims) && property.dims >= 1 && property.dims <= limits.vectorDims
      : property.dims === 0;
  if (!dimsRight) {
    const rule = property.type === 'vector' ? `needs dims of 1 to ${limits.vectorDims}` : 'has dims but is no vector';
    throw new ServiceError('REL_INVALID', `${what} ${rule}`);
  }
}

/** System columns other than `id`, and names with a leading underscore other than embeddings. */
export function isReservedName(name: string): boolean {
  if (name === 'id') return false;
  return (
    Object.hasOwn(systemColumns, name) || (name.startsWith('_') && !name.startsWith(embeddingPrefix)) || name.startsWith('#')
  );
}

/** Types whose values have one canonical text, so that they can be a key. */
export function canBeKey(type: ColumnType): boolean {
  return type !== 'json' && type !== 'vector';
}

function refuseClassified(name: string): void {
  if (classifiedTypes.has(name)) throw new ServiceError('REL_HUMINT', 'classified type');
}

function checkCount(count: number): void {
  if (count > limits.columnsPerType) {
    throw new ServiceError('REL_INVALID', `a type has at most ${limits.columnsPerType} properties`);
  }
}

function checkSubjects(properties: readonly (readonly [string, PropertyDefinition])[]): void {
  const subjects = properties.filter(([, { subject }]) => subject);
  if (subjects.length > 1) throw new ServiceError('REL_INVALID', 'a type has at most one subject property');
}

function checkPrimaryKey(command: RegisterType): void {
  if (command.primaryKey === null) return;
  checkIdentifier(command.primaryKey, 'a primary key');
  if (isReservedName(command.primaryKey)) throw new ServiceError('REL_INVALID', 'the primary key must be a property');
  if (command.properties === null) return;
  const property = Object.hasOwn(command.properties, command.primaryKey) ? command.properties[command.primaryKey] : undefined;
  if (!property) throw new ServiceError('REL_INVALID', `primary key ${JSON.stringify(command.primaryKey)} is not a property`);
  if (!canBeKey(property.type)) throw new ServiceError('REL_INVALID', `a primary key can't be ${property.type}`);
}

function checkTriggers(command: RegisterType): void {
  for (const trigger of command.graphTriggers) {
    checkIdentifier(trigger.linkType, 'a link type');
    refuseClassified(trigger.linkType);
    if (trigger.linkType === command.name) throw new ServiceError('REL_INVALID', 'the link type must be another type');
    for (const field of [trigger.sourceField, trigger.targetField]) {
      checkIdentifier(field, 'a field of a graph trigger');
      const property =
        command.properties !== null && Object.hasOwn(command.properties, field) ? command.properties[field] : undefined;
      if (command.properties !== null && property === undefined && !Object.hasOwn(systemColumns, field))
        throw new ServiceError(
          'REL_UNKNOWN_COLUMN',
          `graph trigger names ${JSON.stringify(field)}, which is not a property${didYouMean(field, Object.keys(command.properties))}`,
        );
      if (property?.masked === true) throw maskedEnd(field);
      if (property?.type === 'vector')
        throw new ServiceError(
          'REL_INVALID',
          `graph trigger names ${JSON.stringify(field)}, which is a vector and cannot name a row`,
        );
    }
  }
}

/** Readers of the edges are not checked against the row's mask: a masked value would show in them. */
function maskedEnd(field: string): ServiceError {
  return new ServiceError(
    'REL_MASKED_COLUMN',
    `a graph trigger would show the masked property ${JSON.stringify(field)} in its edges`,
  );
}

function checkWidening(
  type: TypeDefinition,
  name: string,
  before: PropertyDefinition,
  after: PropertyDefinition,
  stored: StoredColumns,
  mayTakeBack: boolean,
): void {
  const conflict = (why: string): ServiceError =>
    new ServiceError('REL_CONFLICT', `property ${JSON.stringify(name)} of ${JSON.stringify(type.name)}: ${why}`);
  if (before.type !== after.type) {
    const widens =
      after.type === 'json' ||
      (before.type === 'integer' && after.type === 'number') ||
      (after.type === 'string' && becomesText(before.type));
    if (!widens) throw conflict(`${before.type} can't become ${after.type}`);
    if (type.primaryKey === name) throw conflict('the primary key keeps its type');
    if (before.subject) throw conflict('what says whose rows are keeps its type');
    if (after.type === 'number' && !stored.integersFitNumber(type.name, name)) {
      throw conflict('a stored integer has no exact number (above 2^53)');
    }
  } else if (before.dims !== after.dims) throw conflict(`vectors have ${before.dims} dims`);
  const what = `property ${JSON.stringify(name)} of ${JSON.stringify(type.name)}`;
  if (before.masked && !after.masked && !mayTakeBack) throw administratorsOnly(`the mask of ${what}`);
  if (before.subject && !after.subject && !mayTakeBack) throw administratorsOnly(`what ${what} says of whose rows are`);
  if (before.references !== undefined && before.references !== after.references) {
    throw conflict(`it references ${JSON.stringify(before.references)}`);
  }
  if (after.required && !before.required) throw conflict("an optional property can't become required");
}

function sameProperty(a: PropertyDefinition, b: PropertyDefinition): boolean {
  return (
    a.type === b.type &&
    a.required === b.required &&
    a.masked === b.masked &&
    a.indexed === b.indexed &&
    a.subject === b.subject &&
    a.dims === b.dims &&
    a.references === b.references
  );
}

/** A guard that requires nothing is left out. */
function guardOf(given: Partial<TypeGuard> | undefined): Pick<TypeDefinition, 'guard'> {
  const { protected: isProtected = false, accessScope = false } = given ?? {};
  return isProtected || accessScope ? { guard: { protected: isProtected, accessScope } } : {};
}

/** Any caller who may define types raises a guard; only an administrator takes it back: else it would guard nothing. */
function changedGuard(type: TypeDefinition, { guard: given = {}, mayTakeBack }: EvolveType): Pick<TypeDefinition, 'guard'> {
  const lowered = (['protected', 'accessScope'] as const).find((word) => type.guard?.[word] === true && given[word] === false);
  if (lowered !== undefined && mayTakeBack !== true) {
    throw administratorsOnly(`the guard of ${JSON.stringify(type.name)}, which asks for ${guardWords[lowered]},`);
  }
  return guardOf({ ...type.guard, ...given });
}

function administratorsOnly(what: string): ServiceError {
  const who = 'an administrator: a token of the tenant with the role tenant-admin, or one of no tenant with platform-admin';
  return new ServiceError('REL_ACL', `${what} can only be taken back by ${who}`);
}

const guardWords: Readonly<Record<keyof TypeGuard, string>> = {
  protected: 'a reason (break-glass)',
  accessScope: 'an access scope',
};

function sameGuard(a: TypeGuard | undefined, b: TypeGuard | undefined): boolean {
  return a?.protected === b?.protected && a?.accessScope === b?.accessScope;
}

/** True when registering this again would change nothing. Columns inferred since then don't count against it. */
function sameDeclaration(command: RegisterType, existing: TypeDefinition): boolean {
  if ((command.properties === null) !== existing.open || command.primaryKey !== existing.primaryKey) return false;
  if (!sameTriggers(command.graphTriggers, existing.graphTriggers)) return false;
  if (!sameGuard(guardOf(command.guard).guard, existing.guard)) return false;
  if (!sameMeaning(meaningOf(command.meaning ?? {}), existing)) return false;
  if (command.properties === null) return true;
  const declared = Object.entries(command.properties);
  if (!declared.every(([name, property]) => existing.properties[name] && sameProperty(existing.properties[name], property)))
    return false;
  const names = new Set(declared.map(([name]) => name));
  return Object.keys(existing.properties).every((name) => names.has(name) || name.startsWith(embeddingPrefix));
}

function sameTriggers(a: readonly GraphTrigger[], b: readonly GraphTrigger[]): boolean {
  return (
    a.length === b.length &&
    a.every((one, i) => {
      const other = b[i]!;
      return one.linkType === other.linkType && one.sourceField === other.sourceField && one.targetField === other.targetField;
    })
  );
}
