/**
 * Finds the entities in the values of an answer, for writers with forms of their own: PackStream has structures, JSON has
 * objects. Where json does not show that a property is an instant or a float, the column does.
 */
import type { ColumnType } from '../../log/values/value.ts';
import type { EntityShape, OutputEntity } from '../../planner/syntax/statement.ts';
import { parseExactJson } from '../shared/read-exact-json.ts';

export interface Property {
  readonly name: string;
  readonly value: unknown;
  /** Undefined: json says it. */
  readonly type: ColumnType | undefined;
}

export interface NodeValue {
  readonly labels: readonly string[];
  readonly elementId: string;
  /** -1 for a node that has no row. */
  readonly id: bigint;
  readonly properties: readonly Property[];
}

export interface RelationshipValue {
  readonly type: string;
  readonly elementId: string;
  readonly id: bigint;
  readonly start: { readonly elementId: string; readonly id: bigint };
  readonly end: { readonly elementId: string; readonly id: bigint };
  readonly properties: readonly Property[];
}

export interface PathValue {
  /** Nodes in the order of the path, one more than relationships. */
  readonly nodes: readonly NodeValue[];
  readonly relationships: readonly RelationshipValue[];
}

export interface EntityForms<T> {
  node(node: NodeValue): T;
  relationship(relationship: RelationshipValue): T;
  path(path: PathValue): T;
  list(items: readonly T[]): T;
  map(members: readonly (readonly [string, T])[]): T;
  /** Writes a value without entities. */
  value(json: unknown): T;
}

interface WrittenEntity {
  readonly labels?: readonly string[];
  readonly type?: string;
  readonly element_id: string;
  readonly system_from: bigint | number | null;
  readonly start?: string;
  readonly start_system_from?: bigint | number | null;
  readonly end?: string;
  readonly end_system_from?: bigint | number | null;
  readonly properties: Readonly<Record<string, unknown>>;
}

type EntityTypes = OutputEntity['types'];

/** `entityJson`: the text of a cell. */
export function readEntities<T>(
  entityJson: string,
  { shape: entityShape, types: entityTypes }: OutputEntity,
  entityForms: EntityForms<T>,
): T {
  return readEntity(parseExactJson(entityJson), entityShape, entityTypes, entityForms);
}

function readEntity<T>(
  entityValue: unknown,
  entityShape: EntityShape | undefined,
  entityTypes: EntityTypes,
  entityForms: EntityForms<T>,
): T {
  if (entityShape === undefined || typeof entityValue !== 'object' || entityValue === null) return entityForms.value(entityValue);
  switch (entityShape.kind) {
    case 'node':
      return entityForms.node(nodeValueOf(entityValue as WrittenEntity, entityTypes));
    case 'relationship':
      return entityForms.relationship(relationshipValueOf(entityValue as WrittenEntity, entityTypes));
    case 'path': {
      const { nodes, relationships } = entityValue as {
        nodes: readonly WrittenEntity[];
        relationships: readonly WrittenEntity[];
      };
      return entityForms.path({
        nodes: nodes.map((pathNode) => nodeValueOf(pathNode, entityTypes)),
        relationships: relationships.map((innerEntity) => relationshipValueOf(innerEntity, entityTypes)),
      });
    }
    case 'list':
      return entityForms.list(
        (entityValue as readonly unknown[]).map((innerEntity) =>
          readEntity(innerEntity, entityShape.of, entityTypes, entityForms),
        ),
      );
    case 'map':
      return entityForms.map(
        Object.entries(entityValue).map(([memberName, innerEntity]) => [
          memberName,
          readEntity(innerEntity, entityShape.of.get(memberName), entityTypes, entityForms),
        ]),
      );
  }
}

const boltIdOf = (systemFrom: bigint | number | null | undefined): bigint => BigInt(systemFrom ?? -1);

function nodeValueOf(
  { labels: nodeLabels = [], element_id: elementId, system_from: nodeSystemFrom, properties }: WrittenEntity,
  entityTypes: EntityTypes,
): NodeValue {
  return {
    labels: nodeLabels,
    elementId,
    id: boltIdOf(nodeSystemFrom),
    properties: entityPropertiesOf(properties, nodeLabels[0], entityTypes),
  };
}

function relationshipValueOf(writtenRelationship: WrittenEntity, entityTypes: EntityTypes): RelationshipValue {
  const { type = '', element_id: elementId, system_from: id, start = '', end = '', properties } = writtenRelationship;
  return {
    type,
    elementId,
    id: boltIdOf(id),
    start: { elementId: start, id: boltIdOf(writtenRelationship.start_system_from) },
    end: { elementId: end, id: boltIdOf(writtenRelationship.end_system_from) },
    properties: entityPropertiesOf(properties, type, entityTypes),
  };
}

function entityPropertiesOf(
  writtenProperties: WrittenEntity['properties'],
  labelOrType: string | undefined,
  entityTypes: EntityTypes,
): readonly Property[] {
  const knownProperties = labelOrType === undefined ? undefined : entityTypes.get(labelOrType);
  return Object.entries(writtenProperties).map(([name, value]) => ({ name, value, type: knownProperties?.get(name) }));
}
