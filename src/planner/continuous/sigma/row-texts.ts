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

const none: Texts = [];
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
  #row = -1;
  #parsed: unknown;

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
    const [from, to] = [offsets[first]!, offsets[last]!];
    if (to - from > asciiBytesMax || !isAscii(heap.subarray(from, to))) return null;
    const lower = Buffer.from(heap.buffer, heap.byteOffset + from, to - from)
      .toString('latin1')
      .toLowerCase();
    return { heap, offsets, nulls, lower, from };
  }

  /** Texts of the cell itself. */
  textsAt(row: number): Texts {
    const { vector, type } = this.column;
    if (vector.kind === 'null' || vector.kind === 'vec' || vector.nulls?.[row] === 1) return none;
    if (type === 'json') return textsOf(this.#json(row));
    if (vector.kind === 'dict') return [vector.dictionary.text(vector.values[row]!)];
    if (vector.kind === 'i32' || vector.kind === 'f64') return [String(vector.values[row]!)];
    const cell = cellAt(vector, type, row);
    if (type === 'timestamp' && typeof cell === 'bigint') return [formatInstant(cell)];
    return [String(cell)];
  }

  /** Texts at the keys below a JSON cell; `keys` may be joined again where a key has dots itself. */
  textsBelow(row: number, keys: readonly string[]): Texts {
    const { vector, type } = this.column;
    if (type !== 'json' || vector.kind === 'null' || vector.kind === 'vec' || vector.nulls?.[row] === 1) return none;
    return textsOf(valueAt(this.#json(row), keys, 0));
  }

  /** All texts anywhere in the cell, for keywords. */
  leaves(row: number): Texts {
    const { type } = this.column;
    if (type !== 'json') return this.textsAt(row);
    const { vector } = this.column;
    if (vector.kind === 'null' || vector.kind === 'vec' || vector.nulls?.[row] === 1) return none;
    const cellTexts: string[] = [];
    collectLeaves(this.#json(row), cellTexts);
    return cellTexts;
  }

  #json(row: number): unknown {
    if (this.#row !== row) {
      this.#row = row;
      this.#parsed = JSON.parse(String(cellAt(this.column.vector, 'string', row)));
    }
    return this.#parsed;
  }
}

/** A list stands for each of its elements; an object has no text. */
function textsOf(value: unknown): Texts {
  if (value === null || value === undefined) return none;
  if (Array.isArray(value)) return value.flatMap((each: unknown) => (Array.isArray(each) ? [] : textsOf(each)));
  return typeof value === 'object' ? [JSON.stringify(value)] : [String(value as string | number | boolean)];
}

function valueAt(value: unknown, keys: readonly string[], from: number): unknown {
  if (from === keys.length) return value;
  if (Array.isArray(value)) {
    const elementValues = value.map((each: unknown) => valueAt(each, keys, from)).filter((each) => each !== undefined);
    return elementValues.length === 0 ? undefined : elementValues.flat();
  }
  if (typeof value !== 'object' || value === null) return undefined;
  for (let to = from + 1; to <= keys.length; to++) {
    const key = keys.slice(from, to).join('.');
    if (Object.hasOwn(value, key)) {
      const nestedValue = valueAt((value as Record<string, unknown>)[key], keys, to);
      if (nestedValue !== undefined) return nestedValue;
    }
  }
  return undefined;
}

function collectLeaves(value: unknown, leafTexts: string[]): void {
  if (Array.isArray(value)) for (const each of value) collectLeaves(each, leafTexts);
  else if (typeof value === 'object' && value !== null) for (const each of Object.values(value)) collectLeaves(each, leafTexts);
  else if (value !== null && value !== undefined) leafTexts.push(String(value as string | number | boolean));
}

/** How a name is read: from a column of that name, or below the JSON column whose name it begins with. */
export type FieldReader = (row: number) => Texts;

export function fieldReader(columns: ReadonlyMap<string, ColumnTexts>, name: string): FieldReader | null {
  const whole = columns.get(name);
  if (whole !== undefined) return (row) => whole.textsAt(row);
  const keys = name.split('.');
  for (let length = keys.length - 1; length > 0; length--) {
    const column = columns.get(keys.slice(0, length).join('.'));
    if (column === undefined || column.column.type !== 'json') continue;
    const rest = keys.slice(length);
    return (row) => column.textsBelow(row, rest);
  }
  return null;
}
