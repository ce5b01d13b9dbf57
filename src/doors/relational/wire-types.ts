/**
 * Types of columns as Postgres names them. Integers are int8, numbers float8; an instant of a
 * property is a timestamptz, the four system instants are int8 nanoseconds: they are cursors, and hold the greatest i64.
 */
import { FOREVER } from '../../log/timestamp.ts';
import { type ColumnType, systemColumns } from '../../log/value.ts';
import type { OutputColumn } from '../../planner/planner-contract.ts';

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
  json: type('json', 114, -1, 199),
  float8: type('float8', 701, 8, 1022),
  timestamptz: type('timestamptz', 1184, 8, 1185),
  /** The pgvector extension's: types of extensions have numbers from 16,384 on. */
  vector: type('vector', 16_385, -1, 16_386),
} as const;

const ofColumn: Record<ColumnType, WireType> = {
  string: wireTypes.text,
  integer: wireTypes.int8,
  number: wireTypes.float8,
  boolean: wireTypes.bool,
  timestamp: wireTypes.timestamptz,
  json: wireTypes.json,
  vector: wireTypes.vector,
};

/** How instants are shown: those of properties as timestamptz, or all of them as nanoseconds. */
export type InstantStyle = 'timestamptz' | 'int8';

export function wireTypeOf({ name, type: of }: OutputColumn, instants: InstantStyle): WireType {
  if (of === 'timestamp' && (instants === 'int8' || name in systemColumns)) return wireTypes.int8;
  return ofColumn[of];
}

export function parameterType(of: ColumnType): WireType {
  return ofColumn[of];
}

/** `2024-05-01 10:00:00.123456789+00`, with as many digits of a fraction as it takes. */
export function instantText(ns: bigint): string {
  if (ns === FOREVER) return 'infinity';
  const fraction = ((ns % second) + second) % second;
  const head = new Date(Number((ns - fraction) / 1_000_000n)).toISOString().slice(0, 19).replace('T', ' ');
  const digits = fraction === 0n ? '' : `.${fraction.toString().padStart(9, '0').replace(/0+$/, '')}`;
  return `${head}${digits}+00`;
}

/** Since 2000-01-01, towards the past where it is not whole. */
export function instantMicroseconds(ns: bigint): bigint {
  if (ns === FOREVER) return FOREVER;
  const rest = ((ns % 1_000n) + 1_000n) % 1_000n;
  return (ns - rest) / 1_000n - microsecondsTo2000;
}

const second = 1_000_000_000n;
export const microsecondsTo2000 = 946_684_800_000_000n;
