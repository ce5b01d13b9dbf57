/** Makes a batch's column fit its property, cell by cell only where it must: a value that can't be held exactly is refused. */
import { ServiceError, unreachable } from '../../../errors.ts';
import type { NamedColumn, Vector } from '../../../log/values/columns.ts';
import type { PropertyDefinition } from '../../../log/entries/entry.ts';
import { coarseHint, isBound, isCoarse, parseInstant } from '../../../log/values/timestamp.ts';
import { becomesText, type Cell, type ColumnType, I64_MAX, I64_MIN } from '../../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../../log/values/vector-builder.ts';
import { jsonText } from '../cells/json-text.ts';
import type { RejectedRows } from '../cells/rejected-rows.ts';

/**
 * Cells as the property's type; rows whose cell doesn't fit are rejected and read NULL in the result. A text column of an
 * `open` type takes every scalar, by its text.
 */
export function fitColumn(
  column: NamedColumn,
  property: PropertyDefinition,
  length: number,
  rejections: RejectedRows,
  open = false,
): Vector {
  const { vector, type } = column;
  if (vector.kind === 'null') return vector;
  if (type === property.type) return checkSame(column, property, length, rejections);
  // Integers up to 2^53 are numbers as they are.
  if (type === 'integer' && property.type === 'number' && vector.kind !== 'i64') return vector;
  const builder = new VectorBuilder(property.type, length);
  for (let row = 0; row < length; row++) {
    const cell = cellAt(vector, type, row);
    const asText = open && property.type === 'string' && becomesText(type);
    const fits = cell === null ? null : asText ? jsonText(cell, type) : fitCell(cell, type, property);
    const fitted = typeof fits === 'bigint' && type === 'integer' && isBound(column.name) && isCoarse(fits) ? undefined : fits;
    if (fitted === undefined) {
      rejections.add(
        row,
        'REL_TYPE_MISMATCH',
        `column ${JSON.stringify(column.name)}: ${type} given, ${isBound(column.name) && type === 'integer' ? coarseHint : `${describe(property)} expected`}`,
      );
      builder.appendNull();
    } else builder.append(fitted);
  }
  return builder.build();
}

/** Text that a scalar has as a key. */
export function keyText(cell: Exclude<Cell, null>): string {
  return typeof cell === 'string' ? cell : String(cell);
}

function checkSame(column: NamedColumn, property: PropertyDefinition, length: number, rejections: RejectedRows): Vector {
  const { vector, name } = column;
  if (property.type === 'number' && vector.kind === 'f64') {
    const { values, nulls } = vector;
    for (let row = 0; row < length; row++) {
      if (!Number.isFinite(values[row]!) && nulls?.[row] !== 1) {
        rejections.add(row, 'REL_TYPE_MISMATCH', `column ${JSON.stringify(name)}: a finite number expected`);
      }
    }
  } else if (property.type === 'vector' && vector.kind === 'vec') {
    for (let row = 0; row < length; row++) {
      if (vector.nulls?.[row] === 1) continue;
      const cells = vector.values.subarray(row * vector.dims, (row + 1) * vector.dims);
      if (vector.dims !== property.dims || !cells.every(Number.isFinite)) {
        rejections.add(
          row,
          'REL_TYPE_MISMATCH',
          `column ${JSON.stringify(name)}: ${describe(property)} expected, ${vector.dims} dims given`,
        );
      }
    }
    // Vectors of another length can't share a column with those that fit.
    if (vector.dims !== property.dims) return { kind: 'null' };
  }
  return vector;
}

/** The cell as the property's type, or undefined when it has no exact form there. */
function fitCell(cell: Exclude<Cell, null>, from: ColumnType, property: PropertyDefinition): Cell | undefined {
  const value = from === 'json' && property.type !== 'json' ? parseJson(cell) : cell;
  switch (property.type) {
    case 'json':
      return jsonText(cell, from);
    case 'string':
      return from === 'json' && typeof value === 'string' ? value : undefined;
    case 'boolean':
      return typeof value === 'boolean' ? value : undefined;
    case 'integer':
      return from === 'timestamp' ? undefined : exactInteger(value);
    case 'number':
      return exactNumber(value);
    case 'timestamp':
      return typeof value === 'string' ? instantOf(value) : exactInteger(value);
    case 'vector':
      return Array.isArray(value) ? floatsOf(value, property.dims) : undefined;
    default:
      return unreachable(property.type);
  }
}

function exactInteger(value: unknown): bigint | undefined {
  if (typeof value === 'bigint') return value >= I64_MIN && value <= I64_MAX ? value : undefined;
  return typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : undefined;
}

function exactNumber(value: unknown): number | undefined {
  if (typeof value === 'bigint') return BigInt(Number(value)) === value ? Number(value) : undefined;
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

function instantOf(text: string): bigint | undefined {
  try {
    return parseInstant(text);
  } catch (error) {
    if (error instanceof ServiceError) return undefined;
    throw error;
  }
}

function floatsOf(values: readonly unknown[], dims: number): Float32Array | undefined {
  if (values.length !== dims) return undefined;
  const floats = new Float32Array(dims);
  for (let i = 0; i < dims; i++) {
    const value = values[i];
    floats[i] = typeof value === 'number' ? value : Number.NaN;
    if (!Number.isFinite(floats[i])) return undefined;
  }
  return floats;
}

const integerLiteral = /^\s*(-?(?:0|[1-9]\d*))\s*$/;

/** Integers stay exact; anything else as JSON.parse has it, undefined where that fails. */
function parseJson(cell: Cell): unknown {
  const text = String(cell);
  const integer = integerLiteral.exec(text);
  if (integer) return BigInt(integer[1]!);
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function describe(property: PropertyDefinition): string {
  return property.type === 'vector' ? `a vector of ${property.dims} finite numbers` : property.type;
}
