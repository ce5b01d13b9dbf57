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
const subjectColumn = 'subject';

const text: PropertyDefinition = {
  type: 'string',
  required: false,
  masked: false,
  indexed: false,
  subject: false,
  dims: 0,
};

/** The definition under which edges of rows of `source` are written: `known` itself where it takes them as it is; or why it can't. */
export function linkTypeOf(
  name: string,
  known: TypeDefinition | undefined,
  source: TypeDefinition,
  stored: Pick<StoredColumns, 'wasWritten'>,
  ontologyVersion: number,
): TypeDefinition | string {
  if (name === source.name) return 'the link type must be another type';
  if (known !== undefined && known.primaryKey !== null) return `${what(name)} has a primary key, and the key of an edge is made`;
  const properties = new Map(Object.entries(known?.properties ?? {}));
  const wanted = new Map<string, PropertyDefinition>();
  for (const column of Object.values(edgeColumns)) wanted.set(column, text);
  for (const trigger of source.graphTriggers.filter(({ linkType }) => linkType === name)) {
    for (const [column, field] of [
      [edgeColumns.source, trigger.sourceField],
      [edgeColumns.target, trigger.targetField],
    ] as const) {
      const references = Object.hasOwn(source.properties, field) ? source.properties[field]!.references : undefined;
      if (references === undefined) continue;
      const before = wanted.get(column)!.references ?? properties.get(column)?.references;
      if (before !== undefined && before !== references) return `${what(name)} has ends of ${JSON.stringify(before)} already`;
      wanted.set(column, { ...text, references });
    }
  }
  const subject = subjectOf(name, known, source, stored);
  if (typeof subject === 'string') return subject;
  if (subject !== null) wanted.set(...subject);
  for (const [column, property] of wanted) {
    const before = properties.get(column);
    if (before === undefined && known?.open === false) return `${what(name)} has no property ${JSON.stringify(column)}`;
    if (before !== undefined && before.type !== property.type)
      return `${what(name)} has a ${JSON.stringify(column)} that is no string`;
    properties.set(column, { ...property, ...before, ...inheritFlags(before, property) });
  }
  for (const [column, { required }] of properties) {
    if (required && !wanted.has(column)) return `${what(name)} requires ${JSON.stringify(column)}, which no edge has`;
  }
  const guard = guardOf(known?.guard, source.guard);
  if (known !== undefined && isSame(known, properties, guard)) return known;
  const open = known?.open ?? true;
  const graphTriggers = known?.graphTriggers ?? [];
  const own = { name, properties: Object.fromEntries(properties), open, primaryKey: null, graphTriggers, ontologyVersion };
  return { ...own, ...guard, ...meaningOf(known ?? {}) };
}

/** The property that says whose an edge is; null where the type has one that is right as it is. */
function subjectOf(
  name: string,
  known: TypeDefinition | undefined,
  source: TypeDefinition,
  stored: Pick<StoredColumns, 'wasWritten'>,
): readonly [string, PropertyDefinition] | string | null {
  const ofSource = subjectProperty(source);
  const ofLink = known === undefined ? null : subjectProperty(known);
  const masked = ofSource !== null && source.properties[ofSource]!.masked;
  if (ofLink !== null) {
    const property = known!.properties[ofLink]!;
    if (ofSource === null) return null;
    if (property.type !== 'string' || !canBeSubject(property.type)) return `${what(name)} says whose its rows are by no text`;
    return [ofLink, { ...property, masked }];
  }
  if (known?.open === false && ofSource === null) return null;
  if (known === undefined || !stored.wasWritten(name)) return [subjectColumn, { ...text, subject: true, masked }];
  return ofSource === null
    ? null
    : `${what(name)} has rows, and no property says whose they are: the edges of a subject could not be erased`;
}

/** Flags that a property of a link type inherits: it is never less guarded than before, nor than its source. */
function inheritFlags(before: PropertyDefinition | undefined, wanted: PropertyDefinition): Partial<PropertyDefinition> {
  const references = before?.references ?? wanted.references;
  return {
    masked: before?.masked === true || wanted.masked,
    subject: before?.subject === true || wanted.subject,
    ...(references !== undefined && { references }),
  };
}

function guardOf(known: TypeGuard | undefined, source: TypeGuard | undefined): Pick<TypeDefinition, 'guard'> {
  const isProtected = known?.protected === true || source?.protected === true;
  const accessScope = known?.accessScope === true || source?.accessScope === true;
  return isProtected || accessScope ? { guard: { protected: isProtected, accessScope } } : {};
}

function isSame(
  known: TypeDefinition,
  properties: ReadonlyMap<string, PropertyDefinition>,
  { guard }: Pick<TypeDefinition, 'guard'>,
): boolean {
  return (
    known.guard?.protected === guard?.protected &&
    known.guard?.accessScope === guard?.accessScope &&
    [...properties].every(([name, property]) => {
      const before = Object.hasOwn(known.properties, name) ? known.properties[name]! : undefined;
      return (
        before !== undefined &&
        before.masked === property.masked &&
        before.subject === property.subject &&
        before.references === property.references
      );
    })
  );
}

function what(name: string): string {
  return `the link type ${JSON.stringify(name)}`;
}
