/** Cells of the catalogue's types: values other than numbers and booleans are texts, arrays as Postgres writes them. */
import type { Cell, ColumnType } from '../../log/values/value.ts';
import { familyOf, type Names, textOf, type Value } from './catalogue-types.ts';

export function columnType(type: string): ColumnType {
  if (type === 'numeric') return 'string';
  if (type === 'json') return 'json';
  switch (familyOf(type)) {
    case 'number':
      return type.startsWith('float') ? 'number' : 'integer';
    case 'bool':
      return 'boolean';
    default:
      return 'string';
  }
}

/** Converts values of one type to cells. */
export function cellMaker(type: string, names: Names): (value: Value) => Cell {
  switch (columnType(type)) {
    case 'integer':
      return (value) => (value === null ? null : BigInt(Math.round(value as number)));
    case 'number':
    case 'boolean':
      return (value) => value as number | boolean | null;
    default:
      return (value) => (value === null ? null : typeof value === 'string' ? value : textOf(value, type, names));
  }
}
