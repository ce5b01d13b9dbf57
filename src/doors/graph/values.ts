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

const second = 1_000_000_000n;
const day = 86_400n * second;
const tags = {
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
const refused: ReadonlyMap<number, string> = new Map([
  [tags.node, 'a node'],
  [tags.relationship, 'a relationship'],
  [tags.unboundRelationship, 'a relationship'],
  [tags.path, 'a path'],
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
  return new Map([...packedParameters].map(([name, value]) => [name, parameterOf(name, value)]));
}

function parameterOf(name: string, value: PackStreamValue): Literal | TypedValue {
  if (typeof value === 'string') checkText(value, `$${name}`);
  if (value === null || typeof value === 'string' || typeof value === 'bigint' || typeof value === 'boolean') return value;
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new ServiceError('REL_INVALID', `$${name} is not a finite number`);
    return value;
  }
  if (value instanceof PackStreamStructure) {
    if (value.tag === tags.date) return new TypedValue('date', inReach(name, wholeOf(name, value, 0) * day));
    return new TypedValue('timestamp', instantOf(name, value));
  }
  if (value instanceof Uint8Array) throw new ServiceError('REL_INVALID', `$${name} holds bytes, which no column can store`);
  return new TypedValue('json', jsonOf(name, value));
}

function instantOf(name: string, value: PackStreamStructure): bigint {
  const { tag } = value;
  const what = refused.get(tag);
  if (what !== undefined) throw new ServiceError('REL_INVALID', `$${name} holds ${what}, which no column can store`);
  if (tag !== tags.dateTime && tag !== tags.dateTimeOfZone && tag !== tags.dateTimeOfClock)
    throw new ServiceError('REL_INVALID', `$${name} holds an unknown structure 0x${tag.toString(16)}`);
  const offset = tag === tags.dateTimeOfClock ? wholeOf(name, value, 2) : 0n;
  return inReach(name, (wholeOf(name, value, 0) - offset) * second + wholeOf(name, value, 1));
}

function inReach(name: string, instant: bigint): bigint {
  if (instant < INSTANT_MIN || instant > FOREVER)
    throw new ServiceError('REL_INVALID', `$${name} is out of range: an instant is 64 bits of nanoseconds since 1970`);
  return instant;
}

function wholeOf(name: string, { fields }: PackStreamStructure, at: number): bigint {
  const field = fields[at];
  if (typeof field !== 'bigint') throw new ServiceError('REL_INVALID', `$${name} holds a malformed structure`);
  return field;
}

/** Exact: integers of any size, floats that stay floats. */
function jsonOf(name: string, value: PackStreamValue): string {
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new ServiceError('REL_INVALID', `$${name} holds a number that is not finite`);
    return Number.isInteger(value) && Math.abs(value) < 1e21 ? value.toFixed(1) : String(value);
  }
  if (value instanceof PackStreamStructure || value instanceof Uint8Array)
    throw new ServiceError('REL_INVALID', `$${name} holds a value within a list or a map that JSON cannot hold`);
  if (isMap(value)) return `{${[...value].map(([key, each]) => `${JSON.stringify(key)}:${jsonOf(name, each)}`).join()}}`;
  if (value === null || typeof value === 'boolean') return String(value);
  return `[${value.map((each) => jsonOf(name, each)).join()}]`;
}

/** How a version of the protocol writes values. */
export interface BoltForms {
  /** Instants are written in UTC, as from 5.0 on; before, as the clock of their zone shows them. */
  readonly utc: boolean;
  /** Entities have element ids, as from 5.0 on. */
  readonly elementIds: boolean;
}

export function cellOf(vector: Vector, column: OutputColumn, row: number, forms: BoltForms): PackStreamValue {
  const { utc } = forms;
  const { type, entity } = column;
  const cell = cellAt(vector, type, row);
  if (cell === null || typeof cell === 'boolean' || typeof cell === 'number') return cell;
  if (typeof cell === 'bigint') return isInstant(column) ? dateTimeOf(cell, utc) : cell;
  if (typeof cell === 'string') {
    if (entity !== undefined) return readEntities(cell, entity, new PackedEntities(forms));
    return type === 'json' ? ofJson(parseExactJson(cell)) : cell;
  }
  return [...cell];
}

/** Source: neo4j.com/docs/bolt/current/bolt/structure-semantics. */
class PackedEntities implements EntityForms<PackStreamValue> {
  readonly #forms: BoltForms;

  constructor(forms: BoltForms) {
    this.#forms = forms;
  }

  node({ id, labels, elementId, properties }: NodeValue): PackStreamStructure {
    return new PackStreamStructure(tags.node, [id, [...labels], this.#properties(properties), ...this.#ids(elementId)]);
  }

  relationship({ id, start, end, type, properties, elementId }: RelationshipValue): PackStreamStructure {
    const ids = this.#ids(elementId, start.elementId, end.elementId);
    return new PackStreamStructure(tags.relationship, [id, start.id, end.id, type, this.#properties(properties), ...ids]);
  }

  /** Each node and relationship once, and the way along them by their numbers: below zero against a relationship's direction. */
  path({ nodes, relationships }: PathValue): PackStreamStructure {
    const nodeNumbers = new Map<string, bigint>();
    const relationshipNumbers = new Map<string, bigint>();
    const numberOf = (numbers: Map<string, bigint>, id: string): bigint => {
      const known = numbers.get(id) ?? BigInt(numbers.size);
      numbers.set(id, known);
      return known;
    };
    numberOf(nodeNumbers, nodes[0]!.elementId);
    const way: bigint[] = [];
    for (const [i, { elementId, start }] of relationships.entries()) {
      const number = numberOf(relationshipNumbers, elementId) + 1n;
      way.push(start.elementId === nodes[i]!.elementId ? number : -number);
      way.push(numberOf(nodeNumbers, nodes[i + 1]!.elementId));
    }
    const packedNodes = [...nodeNumbers.keys()].map((id) => this.node(nodes.find((node) => node.elementId === id)!));
    const packed = [...relationshipNumbers.keys()].map((id) => {
      const { id: number, type, properties, elementId } = relationships.find((each) => each.elementId === id)!;
      return new PackStreamStructure(tags.unboundRelationship, [
        number,
        type,
        this.#properties(properties),
        ...this.#ids(elementId),
      ]);
    });
    return new PackStreamStructure(tags.path, [packedNodes, packed, way]);
  }

  list(items: readonly PackStreamValue[]): PackStreamValue {
    return [...items];
  }

  map(members: readonly (readonly [string, PackStreamValue])[]): PackStreamValue {
    return new Map(members);
  }

  value(json: unknown): PackStreamValue {
    return ofJson(json);
  }

  #ids(...ids: readonly string[]): readonly string[] {
    return this.#forms.elementIds ? ids : [];
  }

  #properties(properties: readonly Property[]): PackStreamMap {
    return new Map(
      properties.map(({ name, value, type }): [string, PackStreamValue] => {
        if (type === 'timestamp') return [name, dateTimeOf(BigInt(value as bigint | number), this.#forms.utc)];
        if (type === 'number') return [name, Number(value)];
        if (type === 'vector') return [name, (value as readonly number[]).map(Number)];
        return [name, ofJson(value)];
      }),
    );
  }
}

/** The four instants of the system are cursors, and hold the greatest integer: they stay numbers. */
export function isInstant({ name, type, origin }: OutputColumn): boolean {
  return type === 'timestamp' && !Object.hasOwn(systemColumns, origin?.column ?? name);
}

function dateTimeOf(instant: bigint, utc: boolean): PackStreamStructure {
  const nanoseconds = ((instant % second) + second) % second;
  return new PackStreamStructure(utc ? tags.dateTime : tags.dateTimeOfClock, [(instant - nanoseconds) / second, nanoseconds, 0n]);
}

const i64 = { least: -(2n ** 63n), most: 2n ** 63n - 1n } as const;

function ofJson(value: unknown): PackStreamValue {
  if (typeof value === 'bigint') return value < i64.least || value > i64.most ? Number(value) : value;
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(ofJson);
  if (typeof value === 'object' && value !== null)
    return new Map(Object.entries(value).map(([name, member]) => [name, ofJson(member)]));
  return value as null | boolean | string;
}
