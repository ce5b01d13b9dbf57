/**
 * Cells of an answer as texts of JSON, CSV and TabSeparated, as ClickHouse writes them: instants of properties to nine digits, integers
 * of 64 bits exact, NULL as `null` or `\N`, and an array that is NULL as an empty one.
 */
import type { Vector } from '../../log/values/columns.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import { shortFloat } from '../../planner/formats/byte-writer.ts';
import type { OutputColumn } from '../../planner/planner-contract.ts';
import { columnarTypeOf, everyType } from './column-types.ts';

export interface CellOptions {
  /** 64-bit integers of JSON stand in quotes. */
  readonly quotesIntegers: boolean;
}

export class CellColumn {
  readonly name: string;
  /** ClickHouse's name of the type. */
  readonly type: string;
  readonly #type: OutputColumn['type'];
  readonly #isInstant: boolean;
  readonly #quotesIntegers: boolean;
  #vector: Vector | null = null;

  constructor(column: OutputColumn, { quotesIntegers }: CellOptions) {
    this.name = column.name;
    this.type = columnarTypeOf(column, everyType);
    this.#type = column.type;
    this.#isInstant = column.type === 'timestamp' && this.type.includes('DateTime64');
    this.#quotesIntegers = quotesIntegers;
  }

  open(vector: Vector): void {
    this.#vector = vector;
  }

  json(row: number): string {
    const cell = cellAt(this.#vector!, this.#type, row);
    if (cell === null) return this.#type === 'vector' ? '[]' : 'null';
    switch (typeof cell) {
      case 'bigint':
        return this.#isInstant ? `"${instantText(cell)}"` : this.#quotesIntegers ? `"${cell}"` : String(cell);
      case 'number':
        return Number.isFinite(cell) ? numberText(cell) : 'null';
      case 'boolean':
        return cell ? 'true' : 'false';
      case 'string':
        return JSON.stringify(cell);
      default:
        return arrayText(cell);
    }
  }

  csv(row: number): string {
    const text = this.#text(row);
    if (text === null) return '\\N';
    return this.#isQuoted ? `"${text.replaceAll('"', '""')}"` : text;
  }

  tsv(row: number): string {
    const text = this.#text(row);
    if (text === null) return '\\N';
    return this.#type === 'string' || this.#type === 'json' ? escapeText(text) : text;
  }

  get #isQuoted(): boolean {
    return this.#type === 'string' || this.#type === 'json' || this.#type === 'vector' || this.#isInstant;
  }

  #text(row: number): string | null {
    const cell = cellAt(this.#vector!, this.#type, row);
    if (cell === null) return this.#type === 'vector' ? '[]' : null;
    switch (typeof cell) {
      case 'bigint':
        return this.#isInstant ? instantText(cell) : String(cell);
      case 'number':
        return numberText(cell);
      case 'boolean':
        return cell ? 'true' : 'false';
      case 'string':
        return cell;
      default:
        return arrayText(cell);
    }
  }
}

/** `2024-05-01 10:00:00.123456789`. */
export function instantText(ns: bigint): string {
  const fraction = ((ns % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n;
  const head = new Date(Number((ns - fraction) / 1_000_000n)).toISOString().slice(0, 19).replace('T', ' ');
  return `${head}.${fraction.toString().padStart(9, '0')}`;
}

function numberText(value: number): string {
  if (Object.is(value, -0)) return '-0';
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
}

function arrayText(values: Iterable<number>): string {
  return `[${Array.from(values, (each) => String(shortFloat(each))).join(',')}]`;
}

const special = /[\\\t\n\r\b\f\0']/g;
const escapes: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
  '\b': '\\b',
  '\f': '\\f',
  '\0': '\\0',
  "'": "\\'",
};

export function escapeText(text: string): string {
  return text.replace(special, (letter) => escapes[letter]!);
}
