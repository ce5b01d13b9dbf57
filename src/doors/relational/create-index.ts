/** CREATE INDEX makes nothing: indexes are made as queries need them. The columns that it names must exist all the same. */
import { ServiceError } from '../../errors.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { systemColumns } from '../../log/values/value.ts';
import { ProtocolRefusal } from './errors.ts';

/** Throws for a table that the caller does not see, and for a column that it has not. */
export function checkIndexed(definition: TypeDefinition | undefined, table: string, columns: readonly string[]): void {
  if (definition === undefined)
    throw new ProtocolRefusal('42P01', 'REL_NOT_FOUND', `relation ${JSON.stringify(table)} does not exist`);
  const isKnown = (name: string): boolean => Object.hasOwn(definition.properties, name) || Object.hasOwn(systemColumns, name);
  const unknown = columns.find((name) => !isKnown(name) && name !== '_pk' && name !== 'id');
  if (unknown !== undefined) throw new ServiceError('REL_UNKNOWN_COLUMN', `column ${JSON.stringify(unknown)} does not exist`);
}
