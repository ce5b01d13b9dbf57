/** Answers as JSON of Neo4j's HTTP interfaces: integers of 64 bits are exact numbers, instants of properties texts in UTC. */

import { formatInstant } from '../../log/values/timestamp.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import { shortFloat } from '../../planner/formats/byte-writer.ts';
import type { Answer, OutputColumn } from '../../planner/planner-contract.ts';
import { exactJson } from '../shared/write-exact-json.ts';
import { type EntityForms, type NodeValue, type PathValue, type Property, readEntities } from './entities.ts';
import { isInstant } from './values.ts';

const answerPieceBytes = 65_536;

export type GraphRows = Pick<Answer, 'columns' | 'batches'>;

export interface ShownCell {
  readonly column: OutputColumn;
  readonly cell: ReturnType<typeof cellAt>;
}

/** Rows as `rowTextOf` has them, with commas between, in pieces of some 64 KiB. */
export function* rowPieces(
  { columns: answerColumns, batches: answerBatches }: GraphRows,
  rowTextOf: (answerRow: readonly ShownCell[]) => string,
): Generator<string, void> {
  let answerText = '';
  let isFirstRow = true;
  for (const { columns: answerVectors, selection, first, count: batchRowCount } of answerBatches)
    for (let i = 0; i < batchRowCount; i++) {
      const answerRow = selection === null ? first + i : selection[i]!;
      answerText += `${isFirstRow ? '' : ','}${rowTextOf(answerColumns.map((answerColumn, c) => ({ column: answerColumn, cell: cellAt(answerVectors[c]!, answerColumn.type, answerRow) })))}`;
      isFirstRow = false;
      if (answerText.length < answerPieceBytes) continue;
      yield answerText;
      answerText = '';
    }
  yield answerText;
}

export const arrayOf = (answerRow: readonly ShownCell[], entityForms: EntityForms<string>): string =>
  `[${answerRow.map((shownCell) => graphCellText(shownCell, entityForms)).join(',')}]`;

function graphCellText({ column: cellColumn, cell: shownCell }: ShownCell, entityForms: EntityForms<string>): string {
  if (shownCell === null) return 'null';
  switch (typeof shownCell) {
    case 'bigint':
      return isInstant(cellColumn) ? JSON.stringify(formatInstant(shownCell)) : String(shownCell);
    case 'number':
      return Number.isFinite(shownCell) ? String(shownCell) : 'null';
    case 'boolean':
      return String(shownCell);
    case 'string':
      if (cellColumn.entity !== undefined) return readEntities(shownCell, cellColumn.entity, entityForms);
      return cellColumn.type === 'json' ? shownCell : JSON.stringify(shownCell);
    default:
      return `[${Array.from(shownCell, (vectorFloat) => String(shortFloat(vectorFloat))).join(',')}]`;
  }
}

function entityPropertiesText(entityProperties: readonly Property[]): string {
  const propertyMembers = entityProperties.map(({ name: propertyName, value: propertyValue, type: propertyType }) => {
    const isTimestamp = propertyType === 'timestamp';
    const propertyText = isTimestamp
      ? JSON.stringify(formatInstant(BigInt(propertyValue as bigint | number)))
      : exactJson(propertyValue);
    return `${JSON.stringify(propertyName)}:${propertyText}`;
  });
  return `{${propertyMembers.join(',')}}`;
}

/** Forms of lists, maps and plain values, which both interfaces share. */
const plainEntityForms = {
  list: (entityTexts: readonly string[]): string => `[${entityTexts.join(',')}]`,
  map: (mapMembers: readonly (readonly [string, string])[]): string =>
    `{${mapMembers.map(([memberName, memberText]) => `${JSON.stringify(memberName)}:${memberText}`).join(',')}}`,
  value: exactJson,
} as const;

/** A path as its nodes with its relationships between them. */
function pathAsList(
  entityForms: Pick<EntityForms<string>, 'node' | 'relationship'>,
  { nodes: pathNodes, relationships: pathRelationships }: PathValue,
): string {
  const pathParts = pathNodes.flatMap((pathNode, i) => [
    entityForms.node(pathNode),
    ...pathRelationships.slice(i, i + 1).map((pathRelationship) => entityForms.relationship(pathRelationship)),
  ]);
  return `[${pathParts.join(',')}]`;
}

/** Forms of the query interface. */
export const objectForms: EntityForms<string> = {
  ...plainEntityForms,
  node: ({ elementId, labels, properties }) =>
    `{"elementId":${JSON.stringify(elementId)},"labels":${JSON.stringify(labels)},"properties":${entityPropertiesText(properties)}}`,
  relationship: ({ elementId, start, end, type, properties }) =>
    `{"elementId":${JSON.stringify(elementId)},"startNodeElementId":${JSON.stringify(start.elementId)},` +
    `"endNodeElementId":${JSON.stringify(end.elementId)},"type":${JSON.stringify(type)},"properties":${entityPropertiesText(properties)}}`,
  path: (entityPath) => pathAsList(objectForms, entityPath),
};

/** Rows of the transactional interface: entities are their properties; what else there is of them stands in `meta`. */
export const rowForms: EntityForms<string> = {
  ...plainEntityForms,
  node: ({ properties }) => entityPropertiesText(properties),
  relationship: ({ properties }) => entityPropertiesText(properties),
  path: (entityPath) => pathAsList(rowForms, entityPath),
};

const entityMetaOf =
  (entityType: 'node' | 'relationship') =>
  ({ id: entityId, elementId }: Pick<NodeValue, 'id' | 'elementId'>): string =>
    `{"id":${entityId},"elementId":${JSON.stringify(elementId)},"type":"${entityType}","deleted":false}`;

const metaEntityForms: EntityForms<string> = {
  node: entityMetaOf('node'),
  relationship: entityMetaOf('relationship'),
  path: (entityPath) => pathAsList(metaEntityForms, entityPath),
  list: plainEntityForms.list,
  map: (mapMembers) => `[${mapMembers.map(([, memberText]) => memberText).join(',')}]`,
  value: () => 'null',
};

export const metaText = (answerRow: readonly ShownCell[]): string =>
  `[${answerRow.map(({ column: cellColumn, cell: entityCell }) => (cellColumn.entity === undefined || typeof entityCell !== 'string' ? 'null' : readEntities(entityCell, cellColumn.entity, metaEntityForms))).join(',')}]`;

/** Every node and relationship of a row, each once. */
export function graphText(answerRow: readonly ShownCell[]): string {
  const nodeTexts = new Map<string, string>();
  const relationshipTexts = new Map<string, string>();
  const graphForms: EntityForms<null> = {
    node: ({ id, elementId, labels, properties }) => {
      const nodeMembers = `"id":"${id}","elementId":${JSON.stringify(elementId)},"labels":${JSON.stringify(labels)}`;
      nodeTexts.set(elementId, `{${nodeMembers},"properties":${entityPropertiesText(properties)}}`);
      return null;
    },
    relationship: ({ id, elementId, type, start, end, properties }) => {
      const relationshipEnds =
        `"startNode":"${start.id}","startNodeElementId":${JSON.stringify(start.elementId)},` +
        `"endNode":"${end.id}","endNodeElementId":${JSON.stringify(end.elementId)}`;
      const relationshipMembers = `"id":"${id}","elementId":${JSON.stringify(elementId)},"type":${JSON.stringify(type)},${relationshipEnds}`;
      relationshipTexts.set(elementId, `{${relationshipMembers},"properties":${entityPropertiesText(properties)}}`);
      return null;
    },
    path: (path) => {
      path.nodes.forEach((pathNode) => graphForms.node(pathNode));
      path.relationships.forEach((pathRelationship) => graphForms.relationship(pathRelationship));
      return null;
    },
    list: () => null,
    map: () => null,
    value: () => null,
  };
  for (const { column: cellColumn, cell: entityCell } of answerRow)
    if (cellColumn.entity !== undefined && typeof entityCell === 'string')
      readEntities(entityCell, cellColumn.entity, graphForms);
  return `{"nodes":[${[...nodeTexts.values()].join(',')}],"relationships":[${[...relationshipTexts.values()].join(',')}]}`;
}

export const namesOf = ({ columns: answerColumns }: GraphRows): string =>
  `[${answerColumns.map(({ name: columnName }) => JSON.stringify(columnName)).join(',')}]`;
