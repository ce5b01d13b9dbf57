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
  sentColumn: NamedColumn,
  property: PropertyDefinition,
  length: number,
  rejections: RejectedRows,
  open = false,
): Vector {
  const { vector, type: sentType } = sentColumn;
  if (vector.kind === 'null') return vector;
  if (sentType === property.type) return checkSameType(sentColumn, property, length, rejections);
  // Integers up to 2^53 are numbers as they are.
  if (sentType === 'integer' && property.type === 'number' && vector.kind !== 'i64') return vector;
  const fittedBuilder = new VectorBuilder(property.type, length);
  for (let row = 0; row < length; row++) {
    const sentCell = cellAt(vector, sentType, row);
    const becomesString = open && property.type === 'string' && becomesText(sentType);
    const fittingCell =
      sentCell === null ? null : becomesString ? jsonText(sentCell, sentType) : fitCell(sentCell, sentType, property);
    const fittedCell =
      typeof fittingCell === 'bigint' && sentType === 'integer' && isBound(sentColumn.name) && isCoarse(fittingCell)
        ? undefined
        : fittingCell;
    if (fittedCell === undefined) {
      rejections.add(
        row,
        'REL_TYPE_MISMATCH',
        `column ${JSON.stringify(sentColumn.name)}: ${sentType} given, ${isBound(sentColumn.name) && sentType === 'integer' ? coarseHint : `${describeExpected(property)} expected`}`,
      );
      fittedBuilder.appendNull();
    } else fittedBuilder.append(fittedCell);
  }
  return fittedBuilder.build();
}

/** Text that a scalar has as a key. */
export function keyText(cell: Exclude<Cell, null>): string {
  return typeof cell === 'string' ? cell : String(cell);
}

function checkSameType(sentColumn: NamedColumn, property: PropertyDefinition, length: number, rejections: RejectedRows): Vector {
  const { vector, name } = sentColumn;
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
      const vectorCells = vector.values.subarray(row * vector.dims, (row + 1) * vector.dims);
      if (vector.dims !== property.dims || !vectorCells.every(Number.isFinite)) {
        rejections.add(
          row,
          'REL_TYPE_MISMATCH',
          `column ${JSON.stringify(name)}: ${describeExpected(property)} expected, ${vector.dims} dims given`,
        );
      }
    }
    // Vectors of another length can't share a column with those that fit.
    if (vector.dims !== property.dims) return { kind: 'null' };
  }
  return vector;
}

/** The cell as the property's type, or undefined when it has no exact form there. */
function fitCell(cell: Exclude<Cell, null>, sentType: ColumnType, property: PropertyDefinition): Cell | undefined {
  const parsedCell = sentType === 'json' && property.type !== 'json' ? parseJsonCell(cell) : cell;
  switch (property.type) {
    case 'json':
      return jsonText(cell, sentType);
    case 'string':
      return sentType === 'json' && typeof parsedCell === 'string' ? parsedCell : undefined;
    case 'boolean':
      return typeof parsedCell === 'boolean' ? parsedCell : undefined;
    case 'integer':
      return sentType === 'timestamp' ? undefined : exactInteger(parsedCell);
    case 'number':
      return exactNumber(parsedCell);
    case 'timestamp':
      return typeof parsedCell === 'string' ? parsedInstantOf(parsedCell) : exactInteger(parsedCell);
    case 'vector':
      return Array.isArray(parsedCell) ? vectorFloatsOf(parsedCell, property.dims) : undefined;
    default:
      return unreachable(property.type);
  }
}

function exactInteger(integerCell: unknown): bigint | undefined {
  if (typeof integerCell === 'bigint') return integerCell >= I64_MIN && integerCell <= I64_MAX ? integerCell : undefined;
  return typeof integerCell === 'number' && Number.isSafeInteger(integerCell) ? BigInt(integerCell) : undefined;
}

function exactNumber(numberCell: unknown): number | undefined {
  if (typeof numberCell === 'bigint') return BigInt(Number(numberCell)) === numberCell ? Number(numberCell) : undefined;
  return typeof numberCell === 'number' && Number.isFinite(numberCell) ? numberCell : undefined;
}

function parsedInstantOf(instantText: string): bigint | undefined {
  try {
    return parseInstant(instantText);
  } catch (error) {
    if (error instanceof ServiceError) return undefined;
    throw error;
  }
}

function vectorFloatsOf(vectorItems: readonly unknown[], dims: number): Float32Array | undefined {
  if (vectorItems.length !== dims) return undefined;
  const floats = new Float32Array(dims);
  for (let i = 0; i < dims; i++) {
    const vectorItem = vectorItems[i];
    floats[i] = typeof vectorItem === 'number' ? vectorItem : Number.NaN;
    if (!Number.isFinite(floats[i])) return undefined;
  }
  return floats;
}

const integerLiteral = /^\s*(-?(?:0|[1-9]\d*))\s*$/;

/** Integers stay exact; anything else as JSON.parse has it, undefined where that fails. */
function parseJsonCell(cell: Cell): unknown {
  const jsonCell = String(cell);
  const integerMatch = integerLiteral.exec(jsonCell);
  if (integerMatch) return BigInt(integerMatch[1]!);
  try {
    return JSON.parse(jsonCell);
  } catch {
    return undefined;
  }
}

function describeExpected(expectedProperty: PropertyDefinition): string {
  return expectedProperty.type === 'vector' ? `a vector of ${expectedProperty.dims} finite numbers` : expectedProperty.type;
}
