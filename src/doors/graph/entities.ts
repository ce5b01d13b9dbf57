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

interface Written {
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

type Types = OutputEntity['types'];

/** `json`: the text of a cell. */
export function readEntities<T>(json: string, { shape, types }: OutputEntity, forms: EntityForms<T>): T {
  return read(parseExactJson(json), shape, types, forms);
}

function read<T>(value: unknown, shape: EntityShape | undefined, types: Types, forms: EntityForms<T>): T {
  if (shape === undefined || typeof value !== 'object' || value === null) return forms.value(value);
  switch (shape.kind) {
    case 'node':
      return forms.node(nodeOf(value as Written, types));
    case 'relationship':
      return forms.relationship(relationshipOf(value as Written, types));
    case 'path': {
      const { nodes, relationships } = value as { nodes: readonly Written[]; relationships: readonly Written[] };
      return forms.path({
        nodes: nodes.map((node) => nodeOf(node, types)),
        relationships: relationships.map((each) => relationshipOf(each, types)),
      });
    }
    case 'list':
      return forms.list((value as readonly unknown[]).map((each) => read(each, shape.of, types, forms)));
    case 'map':
      return forms.map(Object.entries(value).map(([name, each]) => [name, read(each, shape.of.get(name), types, forms)]));
  }
}

const idOf = (systemFrom: bigint | number | null | undefined): bigint => BigInt(systemFrom ?? -1);

function nodeOf({ labels = [], element_id: elementId, system_from: id, properties }: Written, types: Types): NodeValue {
  return { labels, elementId, id: idOf(id), properties: propertiesOf(properties, labels[0], types) };
}

function relationshipOf(written: Written, types: Types): RelationshipValue {
  const { type = '', element_id: elementId, system_from: id, start = '', end = '', properties } = written;
  return {
    type,
    elementId,
    id: idOf(id),
    start: { elementId: start, id: idOf(written.start_system_from) },
    end: { elementId: end, id: idOf(written.end_system_from) },
    properties: propertiesOf(properties, type, types),
  };
}

function propertiesOf(given: Written['properties'], of: string | undefined, types: Types): readonly Property[] {
  const known = of === undefined ? undefined : types.get(of);
  return Object.entries(given).map(([name, value]) => ({ name, value, type: known?.get(name) }));
}
