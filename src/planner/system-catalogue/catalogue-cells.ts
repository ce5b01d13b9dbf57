/** Cells of the catalogue's types: values other than numbers and booleans are texts, arrays as Postgres writes them. */
import type { Cell, ColumnType } from '../../log/values/value.ts';
import { familyOf, type Names, textOf, type Value } from './catalogue-types.ts';

export function columnType(wireTypeName: string): ColumnType {
  if (wireTypeName === 'numeric') return 'string';
  if (wireTypeName === 'json') return 'json';
  switch (familyOf(wireTypeName)) {
    case 'number':
      return wireTypeName.startsWith('float') ? 'number' : 'integer';
    case 'bool':
      return 'boolean';
    default:
      return 'string';
  }
}

/** Converts values of one type to cells. */
export function cellMaker(wireTypeName: string, names: Names): (catalogueValue: Value) => Cell {
  switch (columnType(wireTypeName)) {
    case 'integer':
      return (catalogueValue) => (catalogueValue === null ? null : BigInt(Math.round(catalogueValue as number)));
    case 'number':
    case 'boolean':
      return (catalogueValue) => catalogueValue as number | boolean | null;
    default:
      return (catalogueValue) =>
        catalogueValue === null
          ? null
          : typeof catalogueValue === 'string'
            ? catalogueValue
            : textOf(catalogueValue, wireTypeName, names);
  }
}
