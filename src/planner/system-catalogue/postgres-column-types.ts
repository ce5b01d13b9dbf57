/**
 * Types of columns as Postgres names them. Integers are int8, numbers float8; an instant of a
 * property is a timestamptz, the four system instants are int8 nanoseconds: they are cursors, and hold the greatest i64.
 */
import { FOREVER } from '../../log/values/timestamp.ts';
import { type ColumnType, systemColumns } from '../../log/values/value.ts';
import type { OutputColumn } from '../planner-contract.ts';
import type { ParameterType } from '../syntax/statement.ts';
import type { InstantStyle } from './client-session.ts';

export interface WireType {
  readonly name: string;
  readonly oid: number;
  /** Bytes of a cell in memory, as Postgres tells them; -1: it varies. */
  readonly size: number;
  /** The type of arrays of it. */
  readonly array: number;
}

const type = (name: string, oid: number, size: number, array: number): WireType => ({ name, oid, size, array });

export const wireTypes = {
  bool: type('bool', 16, 1, 1000),
  int8: type('int8', 20, 8, 1016),
  text: type('text', 25, -1, 1009),
  /** The type that mappers choose for json columns: Django reads no others. */
  jsonb: type('jsonb', 3802, -1, 3807),
  float8: type('float8', 701, 8, 1022),
  timestamptz: type('timestamptz', 1184, 8, 1185),
  /** The pgvector extension's: types of extensions have numbers from 16,384 on. */
  vector: type('vector', 16_385, -1, 16_386),
  /** Expressions have it; columns never do. */
  date: type('date', 1082, 4, 1182),
} as const;

/** Types that only columns of the catalogue have, and those of the store; arrays are named as Postgres does: `_text`. */
export const catalogueTypes: ReadonlyMap<string, WireType> = new Map(
  [
    ...Object.values(wireTypes),
    type('bytea', 17, -1, 1001),
    type('char', 18, 1, 1002),
    type('name', 19, 64, 1003),
    type('int2', 21, 2, 1005),
    type('int2vector', 22, -1, 1006),
    type('int4', 23, 4, 1007),
    type('regproc', 24, 4, 1008),
    type('oid', 26, 4, 1028),
    type('xid', 28, 4, 1011),
    type('oidvector', 30, -1, 1013),
    type('json', 114, -1, 199),
    type('pg_node_tree', 194, -1, 0),
    type('float4', 700, 4, 1021),
    type('unknown', 705, -2, 0),
    type('aclitem', 1033, 12, 1034),
    type('bpchar', 1042, -1, 1014),
    type('varchar', 1043, -1, 1015),
    type('time', 1083, 8, 1183),
    type('timestamp', 1114, 8, 1115),
    type('interval', 1186, 16, 1187),
    type('numeric', 1700, -1, 1231),
    type('regprocedure', 2202, 4, 2207),
    type('regoper', 2203, 4, 2208),
    type('regoperator', 2204, 4, 2209),
    type('regclass', 2205, 4, 2210),
    type('regtype', 2206, 4, 2211),
    type('record', 2249, -1, 2287),
    type('any', 2276, 4, 0),
    type('void', 2278, 4, 0),
    type('trigger', 2279, 4, 0),
    type('anyarray', 2277, -1, 0),
    type('uuid', 2950, 16, 2951),
    type('regnamespace', 4089, 4, 4090),
    type('regrole', 4096, 4, 4097),
  ].flatMap((each) => [
    [each.name, each] as const,
    ...(each.array === 0 ? [] : [[`_${each.name}`, type(`_${each.name}`, each.array, -1, 0)] as const]),
  ]),
);

/** A column that says itself how it is sent. */
export interface WiredColumn extends OutputColumn {
  readonly wire: WireType;
}

const ofColumn: Record<ColumnType, WireType> = {
  string: wireTypes.text,
  integer: wireTypes.int8,
  number: wireTypes.float8,
  boolean: wireTypes.bool,
  timestamp: wireTypes.timestamptz,
  json: wireTypes.jsonb,
  vector: wireTypes.vector,
};

export function wireTypeOf(column: OutputColumn | WiredColumn, instants: InstantStyle): WireType {
  if ('wire' in column) return column.wire;
  const { name, type: of } = column;
  if (column.shownAs !== undefined) return catalogueTypes.get(column.shownAs)!;
  const isSystem = Object.hasOwn(systemColumns, column.origin?.column ?? name);
  if (of === 'timestamp' && (instants === 'int8' || isSystem)) return wireTypes.int8;
  return ofColumn[of];
}

export function parameterType(of: ParameterType): WireType {
  return of === 'date' ? wireTypes.date : ofColumn[of];
}

/** Days since 2000-01-01. */
export function dateNumber(ns: bigint): number {
  return ns === FOREVER ? 0x7fff_ffff : Math.floor(Number(instantMicroseconds(ns)) / 86_400_000_000);
}

/** Since 2000-01-01, towards the past where it is not whole. */
export function instantMicroseconds(ns: bigint): bigint {
  if (ns === FOREVER) return FOREVER;
  const rest = ((ns % 1_000n) + 1_000n) % 1_000n;
  return (ns - rest) / 1_000n - microsecondsTo2000;
}

export const microsecondsTo2000 = 946_684_800_000_000n;
