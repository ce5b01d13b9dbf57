/** Values of Bolt and those of the planner. Source: neo4j.com/docs/bolt/current/bolt/structure-semantics. */
import { ServiceError } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import { FOREVER, INSTANT_MIN } from '../../log/values/timestamp.ts';
import { checkText, systemColumns } from '../../log/values/value.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import type { OutputColumn } from '../../planner/planner-contract.ts';
import { type Literal, TypedValue } from '../../planner/syntax/statement.ts';
import { parseExactJson } from '../shared/read-exact-json.ts';
import {
  type EntityForms,
  type NodeValue,
  type PathValue,
  type Property,
  readEntities,
  type RelationshipValue,
} from './entities.ts';
import { isMap, type PackStreamValue, type PackStreamMap, PackStreamStructure } from './packstream.ts';

const nsPerSecond = 1_000_000_000n;
const nsPerDay = 86_400n * nsPerSecond;
const structureTags = {
  date: 0x44,
  dateTime: 0x49,
  dateTimeOfZone: 0x69,
  dateTimeOfClock: 0x46,
  node: 0x4e,
  relationship: 0x52,
  unboundRelationship: 0x72,
  path: 0x50,
} as const;

/** Structures that no cell holds. */
const refusedStructures: ReadonlyMap<number, string> = new Map([
  [structureTags.node, 'a node'],
  [structureTags.relationship, 'a relationship'],
  [structureTags.unboundRelationship, 'a relationship'],
  [structureTags.path, 'a path'],
  [0x54, 'a time'],
  [0x74, 'a local time'],
  [0x64, 'a local date and time'],
  [0x66, 'a date and time of a named zone, without its instant'],
  [0x45, 'a duration'],
  [0x58, 'a point'],
  [0x59, 'a point'],
]);

/** Throws REL_INVALID, with the parameter's name, for what no cell holds. */
export function parametersOf(packedParameters: PackStreamMap): ReadonlyMap<string, Literal | TypedValue> {
  return new Map(
    [...packedParameters].map(([parameterName, packedValue]) => [parameterName, boltParameterOf(parameterName, packedValue)]),
  );
}

function boltParameterOf(parameterName: string, packedValue: PackStreamValue): Literal | TypedValue {
  if (typeof packedValue === 'string') checkText(packedValue, `$${parameterName}`);
  if (
    packedValue === null ||
    typeof packedValue === 'string' ||
    typeof packedValue === 'bigint' ||
    typeof packedValue === 'boolean'
  )
    return packedValue;
  if (typeof packedValue === 'number') {
    if (!Number.isFinite(packedValue)) throw new ServiceError('REL_INVALID', `$${parameterName} is not a finite number`);
    return packedValue;
  }
  if (packedValue instanceof PackStreamStructure) {
    if (packedValue.tag === structureTags.date)
      return new TypedValue('date', instantInReach(parameterName, structureInteger(parameterName, packedValue, 0) * nsPerDay));
    return new TypedValue('timestamp', structureInstant(parameterName, packedValue));
  }
  if (packedValue instanceof Uint8Array)
    throw new ServiceError('REL_INVALID', `$${parameterName} holds bytes, which no column can store`);
  return new TypedValue('json', parameterJson(parameterName, packedValue));
}

function structureInstant(parameterName: string, instantStructure: PackStreamStructure): bigint {
  const { tag: structureTag } = instantStructure;
  const refusedStructure = refusedStructures.get(structureTag);
  if (refusedStructure !== undefined)
    throw new ServiceError('REL_INVALID', `$${parameterName} holds ${refusedStructure}, which no column can store`);
  if (
    structureTag !== structureTags.dateTime &&
    structureTag !== structureTags.dateTimeOfZone &&
    structureTag !== structureTags.dateTimeOfClock
  )
    throw new ServiceError('REL_INVALID', `$${parameterName} holds an unknown structure 0x${structureTag.toString(16)}`);
  const zoneOffset = structureTag === structureTags.dateTimeOfClock ? structureInteger(parameterName, instantStructure, 2) : 0n;
  return instantInReach(
    parameterName,
    (structureInteger(parameterName, instantStructure, 0) - zoneOffset) * nsPerSecond +
      structureInteger(parameterName, instantStructure, 1),
  );
}

function instantInReach(parameterName: string, instantNs: bigint): bigint {
  if (instantNs < INSTANT_MIN || instantNs > FOREVER)
    throw new ServiceError('REL_INVALID', `$${parameterName} is out of range: an instant is 64 bits of nanoseconds since 1970`);
  return instantNs;
}

function structureInteger(parameterName: string, { fields: structureFields }: PackStreamStructure, fieldIndex: number): bigint {
  const structureField = structureFields[fieldIndex];
  if (typeof structureField !== 'bigint') throw new ServiceError('REL_INVALID', `$${parameterName} holds a malformed structure`);
  return structureField;
}

/** Exact: integers of any size, floats that stay floats. */
function parameterJson(parameterName: string, packedValue: PackStreamValue): string {
  if (typeof packedValue === 'bigint') return String(packedValue);
  if (typeof packedValue === 'string') return JSON.stringify(packedValue);
  if (typeof packedValue === 'number') {
    if (!Number.isFinite(packedValue))
      throw new ServiceError('REL_INVALID', `$${parameterName} holds a number that is not finite`);
    return Number.isInteger(packedValue) && Math.abs(packedValue) < 1e21 ? packedValue.toFixed(1) : String(packedValue);
  }
  if (packedValue instanceof PackStreamStructure || packedValue instanceof Uint8Array)
    throw new ServiceError('REL_INVALID', `$${parameterName} holds a value within a list or a map that JSON cannot hold`);
  if (isMap(packedValue))
    return `{${[...packedValue].map(([mapKey, packedMember]) => `${JSON.stringify(mapKey)}:${parameterJson(parameterName, packedMember)}`).join()}}`;
  if (packedValue === null || typeof packedValue === 'boolean') return String(packedValue);
  return `[${packedValue.map((packedMember) => parameterJson(parameterName, packedMember)).join()}]`;
}

/** How a version of the protocol writes values. */
export interface BoltForms {
  /** Instants are written in UTC, as from 5.0 on; before, as the clock of their zone shows them. */
  readonly utc: boolean;
  /** Entities have element ids, as from 5.0 on. */
  readonly elementIds: boolean;
}

export function cellOf(cellVector: Vector, cellColumn: OutputColumn, cellRow: number, boltForms: BoltForms): PackStreamValue {
  const { utc: isUtc } = boltForms;
  const { type: cellType, entity: cellEntity } = cellColumn;
  const graphCell = cellAt(cellVector, cellType, cellRow);
  if (graphCell === null || typeof graphCell === 'boolean' || typeof graphCell === 'number') return graphCell;
  if (typeof graphCell === 'bigint') return isInstant(cellColumn) ? dateTimeStructure(graphCell, isUtc) : graphCell;
  if (typeof graphCell === 'string') {
    if (cellEntity !== undefined) return readEntities(graphCell, cellEntity, new PackedEntities(boltForms));
    return cellType === 'json' ? packedOfJson(parseExactJson(graphCell)) : graphCell;
  }
  return [...graphCell];
}

/** Source: neo4j.com/docs/bolt/current/bolt/structure-semantics. */
class PackedEntities implements EntityForms<PackStreamValue> {
  readonly #boltForms: BoltForms;

  constructor(boltForms: BoltForms) {
    this.#boltForms = boltForms;
  }

  node({ id: nodeId, labels: nodeLabels, elementId, properties: nodeProperties }: NodeValue): PackStreamStructure {
    return new PackStreamStructure(structureTags.node, [
      nodeId,
      [...nodeLabels],
      this.#packedProperties(nodeProperties),
      ...this.#elementIds(elementId),
    ]);
  }

  relationship({
    id: relationshipId,
    start: startNode,
    end: endNode,
    type: relationshipType,
    properties,
    elementId,
  }: RelationshipValue): PackStreamStructure {
    const elementIds = this.#elementIds(elementId, startNode.elementId, endNode.elementId);
    return new PackStreamStructure(structureTags.relationship, [
      relationshipId,
      startNode.id,
      endNode.id,
      relationshipType,
      this.#packedProperties(properties),
      ...elementIds,
    ]);
  }

  /** Each node and relationship once, and the way along them by their numbers: below zero against a relationship's direction. */
  path({ nodes: pathNodes, relationships: pathRelationships }: PathValue): PackStreamStructure {
    const nodeNumbers = new Map<string, bigint>();
    const relationshipNumbers = new Map<string, bigint>();
    const numberOf = (entityNumbers: Map<string, bigint>, entityElementId: string): bigint => {
      const entityNumber = entityNumbers.get(entityElementId) ?? BigInt(entityNumbers.size);
      entityNumbers.set(entityElementId, entityNumber);
      return entityNumber;
    };
    numberOf(nodeNumbers, pathNodes[0]!.elementId);
    const pathIndices: bigint[] = [];
    for (const [i, { elementId, start: startNode }] of pathRelationships.entries()) {
      const relationshipNumber = numberOf(relationshipNumbers, elementId) + 1n;
      pathIndices.push(startNode.elementId === pathNodes[i]!.elementId ? relationshipNumber : -relationshipNumber);
      pathIndices.push(numberOf(nodeNumbers, pathNodes[i + 1]!.elementId));
    }
    const packedNodes = [...nodeNumbers.keys()].map((entityElementId) =>
      this.node(pathNodes.find((pathNode) => pathNode.elementId === entityElementId)!),
    );
    const packedRelationships = [...relationshipNumbers.keys()].map((entityElementId) => {
      const {
        id: relationshipNumber,
        type,
        properties,
        elementId,
      } = pathRelationships.find((pathRelationship) => pathRelationship.elementId === entityElementId)!;
      return new PackStreamStructure(structureTags.unboundRelationship, [
        relationshipNumber,
        type,
        this.#packedProperties(properties),
        ...this.#elementIds(elementId),
      ]);
    });
    return new PackStreamStructure(structureTags.path, [packedNodes, packedRelationships, pathIndices]);
  }

  list(packedItems: readonly PackStreamValue[]): PackStreamValue {
    return [...packedItems];
  }

  map(packedMembers: readonly (readonly [string, PackStreamValue])[]): PackStreamValue {
    return new Map(packedMembers);
  }

  value(jsonValue: unknown): PackStreamValue {
    return packedOfJson(jsonValue);
  }

  #elementIds(...statedIds: readonly string[]): readonly string[] {
    return this.#boltForms.elementIds ? statedIds : [];
  }

  #packedProperties(entityProperties: readonly Property[]): PackStreamMap {
    return new Map(
      entityProperties.map(({ name: propertyName, value: propertyValue, type: propertyType }): [string, PackStreamValue] => {
        if (propertyType === 'timestamp')
          return [propertyName, dateTimeStructure(BigInt(propertyValue as bigint | number), this.#boltForms.utc)];
        if (propertyType === 'number') return [propertyName, Number(propertyValue)];
        if (propertyType === 'vector') return [propertyName, (propertyValue as readonly number[]).map(Number)];
        return [propertyName, packedOfJson(propertyValue)];
      }),
    );
  }
}

/** The four instants of the system are cursors, and hold the greatest integer: they stay numbers. */
export function isInstant({ name: columnName, type: columnType, origin: columnOrigin }: OutputColumn): boolean {
  return columnType === 'timestamp' && !Object.hasOwn(systemColumns, columnOrigin?.column ?? columnName);
}

function dateTimeStructure(instantNs: bigint, isUtc: boolean): PackStreamStructure {
  const instantFraction = ((instantNs % nsPerSecond) + nsPerSecond) % nsPerSecond;
  return new PackStreamStructure(isUtc ? structureTags.dateTime : structureTags.dateTimeOfClock, [
    (instantNs - instantFraction) / nsPerSecond,
    instantFraction,
    0n,
  ]);
}

const int64Range = { least: -(2n ** 63n), most: 2n ** 63n - 1n } as const;

function packedOfJson(jsonValue: unknown): PackStreamValue {
  if (typeof jsonValue === 'bigint')
    return jsonValue < int64Range.least || jsonValue > int64Range.most ? Number(jsonValue) : jsonValue;
  if (typeof jsonValue === 'number') return Number.isSafeInteger(jsonValue) ? BigInt(jsonValue) : jsonValue;
  if (Array.isArray(jsonValue)) return jsonValue.map(packedOfJson);
  if (typeof jsonValue === 'object' && jsonValue !== null)
    return new Map(Object.entries(jsonValue).map(([memberName, jsonMember]) => [memberName, packedOfJson(jsonMember)]));
  return jsonValue as null | boolean | string;
}
