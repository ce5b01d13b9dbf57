/** Cells of the catalogue's types: what is no number and no boolean is a text, arrays as Postgres writes them. */
import type { Cell, ColumnType } from '../../log/values/value.ts';
import { familyOf, isReference, type Names, textOf, type Value } from './types.ts';

export function columnType(type: string): ColumnType {
  if (isReference(type) || type === 'numeric') return 'string';
  switch (familyOf(type)) {
    case 'number':
      return type.startsWith('float') ? 'number' : 'integer';
    case 'bool':
      return 'boolean';
    default:
      return 'string';
  }
}

export function cellOf(value: Value, type: string, names: Names): Cell {
  if (value === null) return null;
  switch (columnType(type)) {
    case 'integer':
      return BigInt(Math.round(value as number));
    case 'number':
    case 'boolean':
      return value as number | boolean;
    default:
      return textOf(value, type, names);
  }
}
