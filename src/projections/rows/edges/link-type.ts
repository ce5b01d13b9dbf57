/**
 * The type of a graph trigger's edges: made, open, with the first edge, and given the columns it lacks. Any caller who may read
 * the link type reads its edges, so it has the guards of the rows' type. Pure.
 */
import type { PropertyDefinition, TypeDefinition, TypeGuard } from '../../../log/entries/entry.ts';
import { meaningOf } from '../../catalog/type-meaning.ts';
import { edgeColumns } from '../../catalog/edge-columns.ts';
import { canBeSubject, subjectProperty } from '../../catalog/subject-property.ts';
import type { StoredColumns } from '../../catalog/commands.ts';

/** The subject column of link types that are made here. */
const linkSubjectColumn = 'subject';

const linkTextProperty: PropertyDefinition = {
  type: 'string',
  required: false,
  masked: false,
  indexed: false,
  subject: false,
  dims: 0,
};

/** The definition under which edges of rows of `sourceType` are written: `knownLinkType` itself where it takes them as it is; or why it can't. */
export function linkTypeOf(
  linkName: string,
  knownLinkType: TypeDefinition | undefined,
  sourceType: TypeDefinition,
  storedColumns: Pick<StoredColumns, 'wasWritten'>,
  ontologyVersion: number,
): TypeDefinition | string {
  if (linkName === sourceType.name) return 'the link type must be another type';
  if (knownLinkType !== undefined && knownLinkType.primaryKey !== null)
    return `${quotedLinkType(linkName)} has a primary key, and the key of an edge is made`;
  const linkProperties = new Map(Object.entries(knownLinkType?.properties ?? {}));
  const wantedProperties = new Map<string, PropertyDefinition>();
  for (const column of Object.values(edgeColumns)) wantedProperties.set(column, linkTextProperty);
  for (const graphTrigger of sourceType.graphTriggers.filter(({ linkType }) => linkType === linkName)) {
    for (const [column, triggerField] of [
      [edgeColumns.source, graphTrigger.sourceField],
      [edgeColumns.target, graphTrigger.targetField],
    ] as const) {
      const references = Object.hasOwn(sourceType.properties, triggerField)
        ? sourceType.properties[triggerField]!.references
        : undefined;
      if (references === undefined) continue;
      const propertyBefore = wantedProperties.get(column)!.references ?? linkProperties.get(column)?.references;
      if (propertyBefore !== undefined && propertyBefore !== references)
        return `${quotedLinkType(linkName)} has ends of ${JSON.stringify(propertyBefore)} already`;
      wantedProperties.set(column, { ...linkTextProperty, references });
    }
  }
  const linkSubject = linkSubjectOf(linkName, knownLinkType, sourceType, storedColumns);
  if (typeof linkSubject === 'string') return linkSubject;
  if (linkSubject !== null) wantedProperties.set(...linkSubject);
  for (const [column, property] of wantedProperties) {
    const propertyBefore = linkProperties.get(column);
    if (propertyBefore === undefined && knownLinkType?.open === false)
      return `${quotedLinkType(linkName)} has no property ${JSON.stringify(column)}`;
    if (propertyBefore !== undefined && propertyBefore.type !== property.type)
      return `${quotedLinkType(linkName)} has a ${JSON.stringify(column)} that is no string`;
    linkProperties.set(column, { ...property, ...propertyBefore, ...inheritFlags(propertyBefore, property) });
  }
  for (const [column, { required }] of linkProperties) {
    if (required && !wantedProperties.has(column))
      return `${quotedLinkType(linkName)} requires ${JSON.stringify(column)}, which no edge has`;
  }
  const linkGuard = linkGuardOf(knownLinkType?.guard, sourceType.guard);
  if (knownLinkType !== undefined && isSameLinkType(knownLinkType, linkProperties, linkGuard)) return knownLinkType;
  const open = knownLinkType?.open ?? true;
  const graphTriggers = knownLinkType?.graphTriggers ?? [];
  const linkDefinition = {
    name: linkName,
    properties: Object.fromEntries(linkProperties),
    open,
    primaryKey: null,
    graphTriggers,
    ontologyVersion,
  };
  return { ...linkDefinition, ...linkGuard, ...meaningOf(knownLinkType ?? {}) };
}

/** The property that says whose an edge is; null where the type has one that is right as it is. */
function linkSubjectOf(
  linkName: string,
  knownLinkType: TypeDefinition | undefined,
  sourceType: TypeDefinition,
  stored: Pick<StoredColumns, 'wasWritten'>,
): readonly [string, PropertyDefinition] | string | null {
  const sourceSubject = subjectProperty(sourceType);
  const linkSubject = knownLinkType === undefined ? null : subjectProperty(knownLinkType);
  const isSubjectMasked = sourceSubject !== null && sourceType.properties[sourceSubject]!.masked;
  if (linkSubject !== null) {
    const property = knownLinkType!.properties[linkSubject]!;
    if (sourceSubject === null) return null;
    if (property.type !== 'string' || !canBeSubject(property.type))
      return `${quotedLinkType(linkName)} says whose its rows are by no text`;
    return [linkSubject, { ...property, masked: isSubjectMasked }];
  }
  if (knownLinkType?.open === false && sourceSubject === null) return null;
  if (knownLinkType === undefined || !stored.wasWritten(linkName))
    return [linkSubjectColumn, { ...linkTextProperty, subject: true, masked: isSubjectMasked }];
  return sourceSubject === null
    ? null
    : `${quotedLinkType(linkName)} has rows, and no property says whose they are: the edges of a subject could not be erased`;
}

/** Flags that a property of a link type inherits: it is never less guarded than before, nor than its source. */
function inheritFlags(
  propertyBefore: PropertyDefinition | undefined,
  wantedProperty: PropertyDefinition,
): Partial<PropertyDefinition> {
  const references = propertyBefore?.references ?? wantedProperty.references;
  return {
    masked: propertyBefore?.masked === true || wantedProperty.masked,
    subject: propertyBefore?.subject === true || wantedProperty.subject,
    ...(references !== undefined && { references }),
  };
}

function linkGuardOf(linkGuard: TypeGuard | undefined, sourceGuard: TypeGuard | undefined): Pick<TypeDefinition, 'guard'> {
  const isProtected = linkGuard?.protected === true || sourceGuard?.protected === true;
  const accessScope = linkGuard?.accessScope === true || sourceGuard?.accessScope === true;
  return isProtected || accessScope ? { guard: { protected: isProtected, accessScope } } : {};
}

function isSameLinkType(
  knownLinkType: TypeDefinition,
  linkProperties: ReadonlyMap<string, PropertyDefinition>,
  { guard }: Pick<TypeDefinition, 'guard'>,
): boolean {
  return (
    knownLinkType.guard?.protected === guard?.protected &&
    knownLinkType.guard?.accessScope === guard?.accessScope &&
    [...linkProperties].every(([name, property]) => {
      const propertyBefore = Object.hasOwn(knownLinkType.properties, name) ? knownLinkType.properties[name]! : undefined;
      return (
        propertyBefore !== undefined &&
        propertyBefore.masked === property.masked &&
        propertyBefore.subject === property.subject &&
        propertyBefore.references === property.references
      );
    })
  );
}

function quotedLinkType(linkName: string): string {
  return `the link type ${JSON.stringify(linkName)}`;
}
