/** Answers as JSON of Neo4j's HTTP interfaces: integers of 64 bits are exact numbers, instants of properties texts in UTC. */

import { formatInstant } from '../../log/values/timestamp.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import { shortFloat } from '../../planner/formats/byte-writer.ts';
import type { Answer, OutputColumn } from '../../planner/planner-contract.ts';
import { exactJson } from '../shared/write-exact-json.ts';
import { type EntityForms, type NodeValue, type PathValue, type Property, readEntities } from './entities.ts';
import { isInstant } from './values.ts';

const pieceBytes = 65_536;

export type GraphRows = Pick<Answer, 'columns' | 'batches'>;

export interface ShownCell {
  readonly column: OutputColumn;
  readonly cell: ReturnType<typeof cellAt>;
}

/** Rows as `rowText` has them, with commas between, in pieces of some 64 KiB. */
export function* rowPieces(
  { columns, batches }: GraphRows,
  rowText: (row: readonly ShownCell[]) => string,
): Generator<string, void> {
  let text = '';
  let isFirst = true;
  for (const { columns: vectors, selection, first, count } of batches)
    for (let i = 0; i < count; i++) {
      const row = selection === null ? first + i : selection[i]!;
      text += `${isFirst ? '' : ','}${rowText(columns.map((column, c) => ({ column, cell: cellAt(vectors[c]!, column.type, row) })))}`;
      isFirst = false;
      if (text.length < pieceBytes) continue;
      yield text;
      text = '';
    }
  yield text;
}

export const arrayOf = (row: readonly ShownCell[], forms: EntityForms<string>): string =>
  `[${row.map((each) => cellText(each, forms)).join(',')}]`;

function cellText({ column, cell }: ShownCell, forms: EntityForms<string>): string {
  if (cell === null) return 'null';
  switch (typeof cell) {
    case 'bigint':
      return isInstant(column) ? JSON.stringify(formatInstant(cell)) : String(cell);
    case 'number':
      return Number.isFinite(cell) ? String(cell) : 'null';
    case 'boolean':
      return String(cell);
    case 'string':
      if (column.entity !== undefined) return readEntities(cell, column.entity, forms);
      return column.type === 'json' ? cell : JSON.stringify(cell);
    default:
      return `[${Array.from(cell, (each) => String(shortFloat(each))).join(',')}]`;
  }
}

function propertiesText(properties: readonly Property[]): string {
  const members = properties.map(({ name, value, type }) => {
    const isInstantOf = type === 'timestamp';
    const text = isInstantOf ? JSON.stringify(formatInstant(BigInt(value as bigint | number))) : exactJson(value);
    return `${JSON.stringify(name)}:${text}`;
  });
  return `{${members.join(',')}}`;
}

/** Forms of lists, maps and plain values, which both interfaces share. */
const plainForms = {
  list: (items: readonly string[]): string => `[${items.join(',')}]`,
  map: (members: readonly (readonly [string, string])[]): string =>
    `{${members.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`,
  value: exactJson,
} as const;

/** A path as its nodes with its relationships between them. */
function alongPath(forms: Pick<EntityForms<string>, 'node' | 'relationship'>, { nodes, relationships }: PathValue): string {
  const parts = nodes.flatMap((node, i) => [
    forms.node(node),
    ...relationships.slice(i, i + 1).map((each) => forms.relationship(each)),
  ]);
  return `[${parts.join(',')}]`;
}

/** Forms of the query interface. */
export const objectForms: EntityForms<string> = {
  ...plainForms,
  node: ({ elementId, labels, properties }) =>
    `{"elementId":${JSON.stringify(elementId)},"labels":${JSON.stringify(labels)},"properties":${propertiesText(properties)}}`,
  relationship: ({ elementId, start, end, type, properties }) =>
    `{"elementId":${JSON.stringify(elementId)},"startNodeElementId":${JSON.stringify(start.elementId)},` +
    `"endNodeElementId":${JSON.stringify(end.elementId)},"type":${JSON.stringify(type)},"properties":${propertiesText(properties)}}`,
  path: (path) => alongPath(objectForms, path),
};

/** Rows of the transactional interface: entities are their properties; what else there is of them stands in `meta`. */
export const rowForms: EntityForms<string> = {
  ...plainForms,
  node: ({ properties }) => propertiesText(properties),
  relationship: ({ properties }) => propertiesText(properties),
  path: (path) => alongPath(rowForms, path),
};

const metaOf =
  (type: 'node' | 'relationship') =>
  ({ id, elementId }: Pick<NodeValue, 'id' | 'elementId'>): string =>
    `{"id":${id},"elementId":${JSON.stringify(elementId)},"type":"${type}","deleted":false}`;

const metaForms: EntityForms<string> = {
  node: metaOf('node'),
  relationship: metaOf('relationship'),
  path: (path) => alongPath(metaForms, path),
  list: plainForms.list,
  map: (members) => `[${members.map(([, value]) => value).join(',')}]`,
  value: () => 'null',
};

export const metaText = (row: readonly ShownCell[]): string =>
  `[${row.map(({ column, cell }) => (column.entity === undefined || typeof cell !== 'string' ? 'null' : readEntities(cell, column.entity, metaForms))).join(',')}]`;

/** Every node and relationship of a row, each once. */
export function graphText(row: readonly ShownCell[]): string {
  const nodes = new Map<string, string>();
  const relationships = new Map<string, string>();
  const forms: EntityForms<null> = {
    node: ({ id, elementId, labels, properties }) => {
      const named = `"id":"${id}","elementId":${JSON.stringify(elementId)},"labels":${JSON.stringify(labels)}`;
      nodes.set(elementId, `{${named},"properties":${propertiesText(properties)}}`);
      return null;
    },
    relationship: ({ id, elementId, type, start, end, properties }) => {
      const ends =
        `"startNode":"${start.id}","startNodeElementId":${JSON.stringify(start.elementId)},` +
        `"endNode":"${end.id}","endNodeElementId":${JSON.stringify(end.elementId)}`;
      const named = `"id":"${id}","elementId":${JSON.stringify(elementId)},"type":${JSON.stringify(type)},${ends}`;
      relationships.set(elementId, `{${named},"properties":${propertiesText(properties)}}`);
      return null;
    },
    path: (path) => {
      path.nodes.forEach((node) => forms.node(node));
      path.relationships.forEach((each) => forms.relationship(each));
      return null;
    },
    list: () => null,
    map: () => null,
    value: () => null,
  };
  for (const { column, cell } of row)
    if (column.entity !== undefined && typeof cell === 'string') readEntities(cell, column.entity, forms);
  return `{"nodes":[${[...nodes.values()].join(',')}],"relationships":[${[...relationships.values()].join(',')}]}`;
}

export const namesOf = ({ columns }: GraphRows): string => `[${columns.map(({ name }) => JSON.stringify(name)).join(',')}]`;
