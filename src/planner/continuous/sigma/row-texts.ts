/**
 * Cells of rows as rules read them: the text of a cell, several of them where JSON holds a list, none where a field is absent.
 * Dotted names reach into JSON columns. NULL is absent: a column cannot tell them apart.
 */
import { isAscii } from 'node:buffer';
import type { NamedColumn } from '../../../log/values/columns.ts';
import { formatInstant } from '../../../log/values/timestamp.ts';
import { cellAt } from '../../../log/values/vector-builder.ts';

/** Texts of one field of one row. */
export type Texts = readonly string[];

const noTexts: Texts = [];
const asciiBytesMax = 512 * 1024;

export interface AsciiColumn {
  readonly heap: Uint8Array;
  readonly offsets: Uint32Array;
  readonly nulls: Uint8Array | null;
  /** The texts in lower case, one after the other: that of a row begins at its offset less `from`. */
  readonly lower: string;
  readonly from: number;
}

/** Reads one column at a time. The last JSON text that was parsed is kept, since several names reach into one cell. */
export class ColumnTexts {
  readonly column: NamedColumn;
  #parsedRow = -1;
  #parsedJson: unknown;

  constructor(column: NamedColumn) {
    this.column = column;
  }

  /**
   * Bytes of a text column whose rows [first, last) are ASCII, for readers that need no strings; null for any other column. Short ones
   * only: the look at them is part of one turn.
   */
  asciiBytes(first: number, last: number): AsciiColumn | null {
    const { vector, type } = this.column;
    if (vector.kind !== 'text' || type === 'json' || last <= first) return null;
    const { offsets, heap, nulls } = vector;
    const [firstByte, endByte] = [offsets[first]!, offsets[last]!];
    if (endByte - firstByte > asciiBytesMax || !isAscii(heap.subarray(firstByte, endByte))) return null;
    const lowercaseText = Buffer.from(heap.buffer, heap.byteOffset + firstByte, endByte - firstByte)
      .toString('latin1')
      .toLowerCase();
    return { heap, offsets, nulls, lower: lowercaseText, from: firstByte };
  }

  /** Texts of the cell itself. */
  textsAt(row: number): Texts {
    const { vector, type } = this.column;
    if (vector.kind === 'null' || vector.kind === 'vec' || vector.nulls?.[row] === 1) return noTexts;
    if (type === 'json') return jsonTexts(this.#parsedJsonAt(row));
    if (vector.kind === 'dict') return [vector.dictionary.text(vector.values[row]!)];
    if (vector.kind === 'i32' || vector.kind === 'f64') return [String(vector.values[row]!)];
    const textCell = cellAt(vector, type, row);
    if (type === 'timestamp' && typeof textCell === 'bigint') return [formatInstant(textCell)];
    return [String(textCell)];
  }

  /** Texts at the keys below a JSON cell; `keys` may be joined again where a key has dots itself. */
  textsBelow(row: number, keys: readonly string[]): Texts {
    const { vector, type } = this.column;
    if (type !== 'json' || vector.kind === 'null' || vector.kind === 'vec' || vector.nulls?.[row] === 1) return noTexts;
    return jsonTexts(jsonValueAt(this.#parsedJsonAt(row), keys, 0));
  }

  /** All texts anywhere in the cell, for keywords. */
  leaves(row: number): Texts {
    const { type } = this.column;
    if (type !== 'json') return this.textsAt(row);
    const { vector } = this.column;
    if (vector.kind === 'null' || vector.kind === 'vec' || vector.nulls?.[row] === 1) return noTexts;
    const cellTexts: string[] = [];
    collectLeaves(this.#parsedJsonAt(row), cellTexts);
    return cellTexts;
  }

  #parsedJsonAt(row: number): unknown {
    if (this.#parsedRow !== row) {
      this.#parsedRow = row;
      this.#parsedJson = JSON.parse(String(cellAt(this.column.vector, 'string', row)));
    }
    return this.#parsedJson;
  }
}

/** A list stands for each of its elements; an object has no text. */
function jsonTexts(jsonValue: unknown): Texts {
  if (jsonValue === null || jsonValue === undefined) return noTexts;
  if (Array.isArray(jsonValue))
    return jsonValue.flatMap((jsonItem: unknown) => (Array.isArray(jsonItem) ? [] : jsonTexts(jsonItem)));
  return typeof jsonValue === 'object' ? [JSON.stringify(jsonValue)] : [String(jsonValue as string | number | boolean)];
}

function jsonValueAt(jsonValue: unknown, jsonKeys: readonly string[], firstKey: number): unknown {
  if (firstKey === jsonKeys.length) return jsonValue;
  if (Array.isArray(jsonValue)) {
    const elementValues = jsonValue
      .map((each: unknown) => jsonValueAt(each, jsonKeys, firstKey))
      .filter((each) => each !== undefined);
    return elementValues.length === 0 ? undefined : elementValues.flat();
  }
  if (typeof jsonValue !== 'object' || jsonValue === null) return undefined;
  for (let endKey = firstKey + 1; endKey <= jsonKeys.length; endKey++) {
    const dottedKey = jsonKeys.slice(firstKey, endKey).join('.');
    if (Object.hasOwn(jsonValue, dottedKey)) {
      const nestedValue = jsonValueAt((jsonValue as Record<string, unknown>)[dottedKey], jsonKeys, endKey);
      if (nestedValue !== undefined) return nestedValue;
    }
  }
  return undefined;
}

function collectLeaves(jsonValue: unknown, leafTexts: string[]): void {
  if (Array.isArray(jsonValue)) for (const leafValue of jsonValue) collectLeaves(leafValue, leafTexts);
  else if (typeof jsonValue === 'object' && jsonValue !== null)
    for (const each of Object.values(jsonValue)) collectLeaves(each, leafTexts);
  else if (jsonValue !== null && jsonValue !== undefined) leafTexts.push(String(jsonValue as string | number | boolean));
}

/** How a name is read: from a column of that name, or below the JSON column whose name it begins with. */
export type FieldReader = (row: number) => Texts;

export function fieldReader(columns: ReadonlyMap<string, ColumnTexts>, name: string): FieldReader | null {
  const wholeColumn = columns.get(name);
  if (wholeColumn !== undefined) return (row) => wholeColumn.textsAt(row);
  const fieldKeys = name.split('.');
  for (let keyCount = fieldKeys.length - 1; keyCount > 0; keyCount--) {
    const jsonColumn = columns.get(fieldKeys.slice(0, keyCount).join('.'));
    if (jsonColumn === undefined || jsonColumn.column.type !== 'json') continue;
    const jsonKeysBelow = fieldKeys.slice(keyCount);
    return (row) => jsonColumn.textsBelow(row, jsonKeysBelow);
  }
  return null;
}
