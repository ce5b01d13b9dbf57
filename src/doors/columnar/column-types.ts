/**
 * ClickHouse's types for columns, as far as the client knows them. An instant of a property is a DateTime64, the four system
 * instants are Int64 nanoseconds: they are cursors, and hold the greatest i64. Every cell may be NULL, but for arrays, which
 * can't be: a vector that is NULL is an empty one.
 */
import { type ColumnType, systemColumns } from '../../log/values/value.ts';
import type { OutputColumn } from '../../planner/planner-contract.ts';

/** The server whose protocol is spoken: clients of later revisions go down to this one, those of earlier ones to theirs. */
export const spoken = { name: 'ClickHouse', major: 20, minor: 9, patch: 1, revision: 54_440, timezone: 'UTC' } as const;
export const serverVersion = `${spoken.major}.${spoken.minor}.${spoken.patch}.1`;

/** Types that older clients lack. */
export interface KnownTypes {
  readonly bool: boolean;
  readonly dateTime64: boolean;
}

export const everyType: KnownTypes = { bool: true, dateTime64: true };

/** DateTime64 came with 20.1, Bool with 21.12. */
export function typesKnownTo(clientRevision: number): KnownTypes {
  return { bool: clientRevision >= 54_452, dateTime64: clientRevision >= 54_431 };
}

/** The name of a column's type. */
export function columnarTypeOf({ name: columnName, type: columnType, origin }: OutputColumn, clientTypes: KnownTypes): string {
  const isSystemColumn = Object.hasOwn(systemColumns, origin?.column ?? columnName);
  if (columnType === 'vector') return 'Array(Float32)';
  return `Nullable(${columnType === 'timestamp' && isSystemColumn ? 'Int64' : clickHouseScalar(columnType, clientTypes)})`;
}

function clickHouseScalar(columnType: Exclude<ColumnType, 'vector'>, clientTypes: KnownTypes): string {
  switch (columnType) {
    case 'string':
    case 'json':
      return 'String';
    case 'integer':
      return 'Int64';
    case 'number':
      return 'Float64';
    case 'boolean':
      return clientTypes.bool ? 'Bool' : 'UInt8';
    case 'timestamp':
      return clientTypes.dateTime64 ? "DateTime64(9, 'UTC')" : 'Int64';
  }
}
