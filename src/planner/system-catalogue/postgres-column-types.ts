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

const pgType = (name: string, oid: number, size: number, array: number): WireType => ({ name, oid, size, array });

export const wireTypes = {
  bool: pgType('bool', 16, 1, 1000),
  int8: pgType('int8', 20, 8, 1016),
  text: pgType('text', 25, -1, 1009),
  /** The type that mappers choose for json columns: Django reads no others. */
  jsonb: pgType('jsonb', 3802, -1, 3807),
  float8: pgType('float8', 701, 8, 1022),
  timestamptz: pgType('timestamptz', 1184, 8, 1185),
  /** The pgvector extension's: types of extensions have numbers from 16,384 on. */
  vector: pgType('vector', 16_385, -1, 16_386),
  /** Expressions have it; columns never do. */
  date: pgType('date', 1082, 4, 1182),
} as const;

/** Types that only columns of the catalogue have, and those of the store; arrays are named as Postgres does: `_text`. */
export const catalogueTypes: ReadonlyMap<string, WireType> = new Map(
  [
    ...Object.values(wireTypes),
    pgType('bytea', 17, -1, 1001),
    pgType('char', 18, 1, 1002),
    pgType('name', 19, 64, 1003),
    pgType('int2', 21, 2, 1005),
    pgType('int2vector', 22, -1, 1006),
    pgType('int4', 23, 4, 1007),
    pgType('regproc', 24, 4, 1008),
    pgType('oid', 26, 4, 1028),
    pgType('xid', 28, 4, 1011),
    pgType('oidvector', 30, -1, 1013),
    pgType('json', 114, -1, 199),
    pgType('pg_node_tree', 194, -1, 0),
    pgType('float4', 700, 4, 1021),
    pgType('unknown', 705, -2, 0),
    pgType('aclitem', 1033, 12, 1034),
    pgType('bpchar', 1042, -1, 1014),
    pgType('varchar', 1043, -1, 1015),
    pgType('time', 1083, 8, 1183),
    pgType('timestamp', 1114, 8, 1115),
    pgType('interval', 1186, 16, 1187),
    pgType('numeric', 1700, -1, 1231),
    pgType('regprocedure', 2202, 4, 2207),
    pgType('regoper', 2203, 4, 2208),
    pgType('regoperator', 2204, 4, 2209),
    pgType('regclass', 2205, 4, 2210),
    pgType('regtype', 2206, 4, 2211),
    pgType('record', 2249, -1, 2287),
    pgType('any', 2276, 4, 0),
    pgType('void', 2278, 4, 0),
    pgType('trigger', 2279, 4, 0),
    pgType('anyarray', 2277, -1, 0),
    pgType('uuid', 2950, 16, 2951),
    pgType('regnamespace', 4089, 4, 4090),
    pgType('regrole', 4096, 4, 4097),
  ].flatMap((each) => [
    [each.name, each] as const,
    ...(each.array === 0 ? [] : [[`_${each.name}`, pgType(`_${each.name}`, each.array, -1, 0)] as const]),
  ]),
);

/** A column that says itself how it is sent. */
export interface WiredColumn extends OutputColumn {
  readonly wire: WireType;
}

const wireTypeOfColumn: Record<ColumnType, WireType> = {
  string: wireTypes.text,
  integer: wireTypes.int8,
  number: wireTypes.float8,
  boolean: wireTypes.bool,
  timestamp: wireTypes.timestamptz,
  json: wireTypes.jsonb,
  vector: wireTypes.vector,
};

export function wireTypeOf(wiredColumn: OutputColumn | WiredColumn, instants: InstantStyle): WireType {
  if ('wire' in wiredColumn) return wiredColumn.wire;
  const { name, type: columnType } = wiredColumn;
  if (wiredColumn.shownAs !== undefined) return catalogueTypes.get(wiredColumn.shownAs)!;
  const isSystemColumn = Object.hasOwn(systemColumns, wiredColumn.origin?.column ?? name);
  if (columnType === 'timestamp' && (instants === 'int8' || isSystemColumn)) return wireTypes.int8;
  return wireTypeOfColumn[columnType];
}

export function parameterType(parameterKind: ParameterType): WireType {
  return parameterKind === 'date' ? wireTypes.date : wireTypeOfColumn[parameterKind];
}

/** Days since 2000-01-01. */
export function dateNumber(ns: bigint): number {
  return ns === FOREVER ? 0x7fff_ffff : Math.floor(Number(instantMicroseconds(ns)) / 86_400_000_000);
}

/** Since 2000-01-01, towards the past where it is not whole. */
export function instantMicroseconds(ns: bigint): bigint {
  if (ns === FOREVER) return FOREVER;
  const submicrosecondNs = ((ns % 1_000n) + 1_000n) % 1_000n;
  return (ns - submicrosecondNs) / 1_000n - microsecondsTo2000;
}

export const microsecondsTo2000 = 946_684_800_000_000n;
