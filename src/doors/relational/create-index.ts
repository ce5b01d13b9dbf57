/** CREATE INDEX makes nothing: indexes are made as queries need them. The columns that it names must exist all the same. */
import { ServiceError } from '../../errors.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { systemColumns } from '../../log/values/value.ts';
import { ProtocolRefusal } from './errors.ts';

/** Throws for a table that the caller does not see, and for a column that it has not. */
export function checkIndexed(
  indexedType: TypeDefinition | undefined,
  indexedTable: string,
  indexedColumns: readonly string[],
): void {
  if (indexedType === undefined)
    throw new ProtocolRefusal('42P01', 'REL_NOT_FOUND', `relation ${JSON.stringify(indexedTable)} does not exist`);
  const isKnownColumn = (columnName: string): boolean =>
    Object.hasOwn(indexedType.properties, columnName) || Object.hasOwn(systemColumns, columnName);
  const unknownColumn = indexedColumns.find(
    (columnName) => !isKnownColumn(columnName) && columnName !== '_pk' && columnName !== 'id',
  );
  if (unknownColumn !== undefined)
    throw new ServiceError('REL_UNKNOWN_COLUMN', `column ${JSON.stringify(unknownColumn)} does not exist`);
}
