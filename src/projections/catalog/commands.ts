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
  storedColumns: Pick<StoredColumns, 'wasWritten'>,
  context: DecideContext,
  next: NextPosition,
): Decision {
  checkIdentifier(command.name, 'a type name');
  refuseClassified(command.name);
  const declaredProperties = Object.entries(command.properties ?? {});
  checkPropertyCount(declaredProperties.length);
  for (const [name, declaredProperty] of declaredProperties) checkProperty(name, declaredProperty);
  checkSubjectProperties(declaredProperties);
  checkPrimaryKey(command);
  checkGraphTriggers(command);
  const declaredMeaning = meaningOf(command.meaning ?? {});
  checkMeaning(declaredMeaning, new Map(declaredProperties), command.properties === null);

  const registeredType = catalog.type(command.name);
  if (registeredType) {
    if (isSameDeclaration(command, registeredType)) return decideOne('register-type', command.name, [], next);
    const typeConflict = builtinTypeNames.has(command.name)
      ? 'is built in: add columns to it with POST /types/:name/schema'
      : catalog.isOwn(command.name)
        ? 'is registered with another definition'
        : storedColumns.wasWritten(command.name)
          ? 'has rows already, under the definition that everybody inherits'
          : null;
    if (typeConflict !== null) throw new ServiceError('REL_CONFLICT', `type ${JSON.stringify(command.name)} ${typeConflict}`);
  }
  const newTypeDefinition: TypeDefinition = {
    name: command.name,
    properties: Object.fromEntries(declaredProperties),
    open: command.properties === null,
    primaryKey: command.primaryKey,
    graphTriggers: command.graphTriggers,
    ontologyVersion: catalog.ontologyVersion + 1,
    ...typeGuardOf(command.guard),
    ...declaredMeaning,
  };
  return decideOne('register-type', command.name, [typeDraft(newTypeDefinition, context)], next);
}

export function decideEvolve(
  command: EvolveType,
  catalog: CatalogReader,
  storedColumns: StoredColumns,
  context: DecideContext,
  next: NextPosition,
): Decision {
  refuseClassified(command.name);
  const evolvedType = catalog.type(command.name);
  if (!evolvedType) throw new ServiceError('REL_UNKNOWN_TYPE', `no type ${JSON.stringify(command.name)}`);
  const evolvedProperties = new Map(Object.entries(evolvedType.properties));
  const changedGuards = changedTypeGuard(evolvedType, command);
  const evolvedMeaning = changedMeaning(evolvedType, command.meaning);
  let isTypeChanged = !hasSameGuard(changedGuards.guard, evolvedType.guard) || !sameMeaning(evolvedMeaning, evolvedType);
  for (const [name, givenProperty] of Object.entries(command.properties)) {
    checkProperty(name, givenProperty);
    const earlierProperty = evolvedProperties.get(name);
    const property =
      earlierProperty?.references === undefined ? givenProperty : { references: earlierProperty.references, ...givenProperty };
    if (earlierProperty && isSameProperty(earlierProperty, property)) continue;
    // Rows have an `id` from the first one on: text, unless it is declared otherwise.
    if (!earlierProperty && name === 'id' && property.type !== 'string')
      throw new ServiceError('REL_CONFLICT', 'id is text in a type that was registered without it');
    if (earlierProperty) checkWidening(evolvedType, name, earlierProperty, property, storedColumns, command.mayTakeBack === true);
    const isEdgeEnd = evolvedType.graphTriggers.some(
      ({ sourceField, targetField }) => sourceField === name || targetField === name,
    );
    if (property.masked && earlierProperty?.masked !== true && isEdgeEnd) throw maskedEdgeEndError(name);
    if (property.subject && earlierProperty?.subject !== true && storedColumns.wasWritten(evolvedType.name)) {
      const propertyOfType = `property ${JSON.stringify(name)} of ${JSON.stringify(evolvedType.name)}`;
      throw new ServiceError('REL_CONFLICT', `${propertyOfType} cannot hold the subject: stored rows are not sealed for one`);
    }
    evolvedProperties.set(name, property);
    isTypeChanged = true;
  }
  checkPropertyCount(evolvedProperties.size);
  checkSubjectProperties([...evolvedProperties]);
  checkMeaning(evolvedMeaning, evolvedProperties, evolvedType.open);
  if (!isTypeChanged) return decideOne('evolve-type', command.name, [], next);
  const {
    guard: _,
    edge: _e,
    role: _r,
    roleColumns: _rc,
    identifier: _i,
    identifierKinds: _ik,
    language: _l,
    ...definitionAlone
  } = evolveDefinition(evolvedType, evolvedProperties, catalog);
  const evolvedDefinition: TypeDefinition = { ...definitionAlone, ...changedGuards, ...evolvedMeaning };
  return decideOne('evolve-type', command.name, [typeDraft(evolvedDefinition, context)], next);
}

/** A tenant's definitions are its own; every tenant inherits definitions made without a tenant. */
export function typeDraft(definition: TypeDefinition, { entry }: DecideContext): EntryDraft {
  const ownScope = tenantOf(entry.path) === null ? {} : ({ own: true } as const);
  return { context: entry, body: { kind: 'type', definition, ...ownScope } };
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
  const quotedProperty = `property ${JSON.stringify(name)}`;
  if (!columnTypes.includes(property.type)) throw new ServiceError('REL_INVALID', `${quotedProperty} has an unknown type`);
  if (isReservedName(name)) throw new ServiceError('REL_INVALID', `${quotedProperty} has a reserved name`);
  if (property.references !== undefined) {
    checkIdentifier(property.references, `the type that ${quotedProperty} references`);
    refuseClassified(property.references);
  }
  if (property.subject && !canBeSubject(property.type)) {
    throw new ServiceError('REL_INVALID', `${quotedProperty} cannot hold the subject: only a string or an integer can`);
  }
  if (name.startsWith(embeddingPrefix) && property.type !== 'vector')
    throw new ServiceError('REL_INVALID', `${quotedProperty} must be a vector`);
  if (name === 'id' && (property.type === 'vector' || property.type === 'json')) {
    throw new ServiceError('REL_INVALID', `${quotedProperty} must have a scalar type`);
  }
  const areDimsValid =
    property.type === 'vector'
      ? Number.isInteger(property.dims) && property.dims >= 1 && property.dims <= limits.vectorDims
      : property.dims === 0;
  if (!areDimsValid) {
    const dimsRule = property.type === 'vector' ? `needs dims of 1 to ${limits.vectorDims}` : 'has dims but is no vector';
    throw new ServiceError('REL_INVALID', `${quotedProperty} ${dimsRule}`);
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

function checkPropertyCount(propertyCount: number): void {
  if (propertyCount > limits.columnsPerType) {
    throw new ServiceError('REL_INVALID', `a type has at most ${limits.columnsPerType} properties`);
  }
}

function checkSubjectProperties(properties: readonly (readonly [string, PropertyDefinition])[]): void {
  const subjectProperties = properties.filter(([, { subject }]) => subject);
  if (subjectProperties.length > 1) throw new ServiceError('REL_INVALID', 'a type has at most one subject property');
}

function checkPrimaryKey(command: RegisterType): void {
  if (command.primaryKey === null) return;
  checkIdentifier(command.primaryKey, 'a primary key');
  if (isReservedName(command.primaryKey)) throw new ServiceError('REL_INVALID', 'the primary key must be a property');
  if (command.properties === null) return;
  const primaryKeyProperty = Object.hasOwn(command.properties, command.primaryKey)
    ? command.properties[command.primaryKey]
    : undefined;
  if (!primaryKeyProperty)
    throw new ServiceError('REL_INVALID', `primary key ${JSON.stringify(command.primaryKey)} is not a property`);
  if (!canBeKey(primaryKeyProperty.type))
    throw new ServiceError('REL_INVALID', `a primary key can't be ${primaryKeyProperty.type}`);
}

function checkGraphTriggers(command: RegisterType): void {
  for (const graphTrigger of command.graphTriggers) {
    checkIdentifier(graphTrigger.linkType, 'a link type');
    refuseClassified(graphTrigger.linkType);
    if (graphTrigger.linkType === command.name) throw new ServiceError('REL_INVALID', 'the link type must be another type');
    for (const triggerField of [graphTrigger.sourceField, graphTrigger.targetField]) {
      checkIdentifier(triggerField, 'a field of a graph trigger');
      const triggerProperty =
        command.properties !== null && Object.hasOwn(command.properties, triggerField)
          ? command.properties[triggerField]
          : undefined;
      if (command.properties !== null && triggerProperty === undefined && !Object.hasOwn(systemColumns, triggerField))
        throw new ServiceError(
          'REL_UNKNOWN_COLUMN',
          `graph trigger names ${JSON.stringify(triggerField)}, which is not a property${didYouMean(triggerField, Object.keys(command.properties))}`,
        );
      if (triggerProperty?.masked === true) throw maskedEdgeEndError(triggerField);
      if (triggerProperty?.type === 'vector')
        throw new ServiceError(
          'REL_INVALID',
          `graph trigger names ${JSON.stringify(triggerField)}, which is a vector and cannot name a row`,
        );
    }
  }
}

/** Readers of the edges are not checked against the row's mask: a masked value would show in them. */
function maskedEdgeEndError(maskedField: string): ServiceError {
  return new ServiceError(
    'REL_MASKED_COLUMN',
    `a graph trigger would show the masked property ${JSON.stringify(maskedField)} in its edges`,
  );
}

function checkWidening(
  type: TypeDefinition,
  name: string,
  earlierProperty: PropertyDefinition,
  widenedProperty: PropertyDefinition,
  storedColumns: StoredColumns,
  mayTakeBack: boolean,
): void {
  const wideningConflict = (why: string): ServiceError =>
    new ServiceError('REL_CONFLICT', `property ${JSON.stringify(name)} of ${JSON.stringify(type.name)}: ${why}`);
  if (earlierProperty.type !== widenedProperty.type) {
    const isTypeWidened =
      widenedProperty.type === 'json' ||
      (earlierProperty.type === 'integer' && widenedProperty.type === 'number') ||
      (widenedProperty.type === 'string' && becomesText(earlierProperty.type));
    if (!isTypeWidened) throw wideningConflict(`${earlierProperty.type} can't become ${widenedProperty.type}`);
    if (type.primaryKey === name) throw wideningConflict('the primary key keeps its type');
    if (earlierProperty.subject) throw wideningConflict('what says whose rows are keeps its type');
    if (widenedProperty.type === 'number' && !storedColumns.integersFitNumber(type.name, name)) {
      throw wideningConflict('a stored integer has no exact number (above 2^53)');
    }
  } else if (earlierProperty.dims !== widenedProperty.dims) throw wideningConflict(`vectors have ${earlierProperty.dims} dims`);
  const quotedProperty = `property ${JSON.stringify(name)} of ${JSON.stringify(type.name)}`;
  if (earlierProperty.masked && !widenedProperty.masked && !mayTakeBack)
    throw administratorsOnlyError(`the mask of ${quotedProperty}`);
  if (earlierProperty.subject && !widenedProperty.subject && !mayTakeBack)
    throw administratorsOnlyError(`what ${quotedProperty} says of whose rows are`);
  if (earlierProperty.references !== undefined && earlierProperty.references !== widenedProperty.references) {
    throw wideningConflict(`it references ${JSON.stringify(earlierProperty.references)}`);
  }
  if (widenedProperty.required && !earlierProperty.required) throw wideningConflict("an optional property can't become required");
}

function isSameProperty(a: PropertyDefinition, b: PropertyDefinition): boolean {
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
function typeGuardOf(givenGuard: Partial<TypeGuard> | undefined): Pick<TypeDefinition, 'guard'> {
  const { protected: isProtected = false, accessScope = false } = givenGuard ?? {};
  return isProtected || accessScope ? { guard: { protected: isProtected, accessScope } } : {};
}

/** Any caller who may define types raises a guard; only an administrator takes it back: else it would guard nothing. */
function changedTypeGuard(
  type: TypeDefinition,
  { guard: givenGuard = {}, mayTakeBack }: EvolveType,
): Pick<TypeDefinition, 'guard'> {
  const loweredGuard = (['protected', 'accessScope'] as const).find(
    (word) => type.guard?.[word] === true && givenGuard[word] === false,
  );
  if (loweredGuard !== undefined && mayTakeBack !== true) {
    throw administratorsOnlyError(`the guard of ${JSON.stringify(type.name)}, which asks for ${guardWords[loweredGuard]},`);
  }
  return typeGuardOf({ ...type.guard, ...givenGuard });
}

function administratorsOnlyError(guardedMatter: string): ServiceError {
  const administrator =
    'an administrator: a token of the tenant with the role tenant-admin, or one of no tenant with platform-admin';
  return new ServiceError('REL_ACL', `${guardedMatter} can only be taken back by ${administrator}`);
}

const guardWords: Readonly<Record<keyof TypeGuard, string>> = {
  protected: 'a reason (break-glass)',
  accessScope: 'an access scope',
};

function hasSameGuard(a: TypeGuard | undefined, b: TypeGuard | undefined): boolean {
  return a?.protected === b?.protected && a?.accessScope === b?.accessScope;
}

/** True when registering this again would change nothing. Columns inferred since then don't count against it. */
function isSameDeclaration(command: RegisterType, registeredType: TypeDefinition): boolean {
  if ((command.properties === null) !== registeredType.open || command.primaryKey !== registeredType.primaryKey) return false;
  if (!hasSameTriggers(command.graphTriggers, registeredType.graphTriggers)) return false;
  if (!hasSameGuard(typeGuardOf(command.guard).guard, registeredType.guard)) return false;
  if (!sameMeaning(meaningOf(command.meaning ?? {}), registeredType)) return false;
  if (command.properties === null) return true;
  const declaredProperties = Object.entries(command.properties);
  if (
    !declaredProperties.every(
      ([name, property]) => registeredType.properties[name] && isSameProperty(registeredType.properties[name], property),
    )
  )
    return false;
  const declaredNames = new Set(declaredProperties.map(([name]) => name));
  return Object.keys(registeredType.properties).every((name) => declaredNames.has(name) || name.startsWith(embeddingPrefix));
}

function hasSameTriggers(a: readonly GraphTrigger[], b: readonly GraphTrigger[]): boolean {
  return (
    a.length === b.length &&
    a.every((trigger, i) => {
      const otherTrigger = b[i]!;
      return (
        trigger.linkType === otherTrigger.linkType &&
        trigger.sourceField === otherTrigger.sourceField &&
        trigger.targetField === otherTrigger.targetField
      );
    })
  );
}
