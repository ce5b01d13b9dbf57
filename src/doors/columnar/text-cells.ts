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
  readonly #columnType: OutputColumn['type'];
  readonly #isDateTime64: boolean;
  readonly #areIntegersQuoted: boolean;
  #cellVector: Vector | null = null;

  constructor(outputColumn: OutputColumn, { quotesIntegers }: CellOptions) {
    this.name = outputColumn.name;
    this.type = columnarTypeOf(outputColumn, everyType);
    this.#columnType = outputColumn.type;
    this.#isDateTime64 = outputColumn.type === 'timestamp' && this.type.includes('DateTime64');
    this.#areIntegersQuoted = quotesIntegers;
  }

  open(cellVector: Vector): void {
    this.#cellVector = cellVector;
  }

  json(cellRow: number): string {
    const jsonCell = cellAt(this.#cellVector!, this.#columnType, cellRow);
    if (jsonCell === null) return this.#columnType === 'vector' ? '[]' : 'null';
    switch (typeof jsonCell) {
      case 'bigint':
        return this.#isDateTime64 ? `"${instantText(jsonCell)}"` : this.#areIntegersQuoted ? `"${jsonCell}"` : String(jsonCell);
      case 'number':
        return Number.isFinite(jsonCell) ? columnarNumberText(jsonCell) : 'null';
      case 'boolean':
        return jsonCell ? 'true' : 'false';
      case 'string':
        return JSON.stringify(jsonCell);
      default:
        return columnarArrayText(jsonCell);
    }
  }

  csv(cellRow: number): string {
    const csvText = this.#cellText(cellRow);
    if (csvText === null) return '\\N';
    return this.#isCsvQuoted ? `"${csvText.replaceAll('"', '""')}"` : csvText;
  }

  tsv(cellRow: number): string {
    const tsvText = this.#cellText(cellRow);
    if (tsvText === null) return '\\N';
    return this.#columnType === 'string' || this.#columnType === 'json' ? escapeText(tsvText) : tsvText;
  }

  get #isCsvQuoted(): boolean {
    return this.#columnType === 'string' || this.#columnType === 'json' || this.#columnType === 'vector' || this.#isDateTime64;
  }

  #cellText(cellRow: number): string | null {
    const textCell = cellAt(this.#cellVector!, this.#columnType, cellRow);
    if (textCell === null) return this.#columnType === 'vector' ? '[]' : null;
    switch (typeof textCell) {
      case 'bigint':
        return this.#isDateTime64 ? instantText(textCell) : String(textCell);
      case 'number':
        return columnarNumberText(textCell);
      case 'boolean':
        return textCell ? 'true' : 'false';
      case 'string':
        return textCell;
      default:
        return columnarArrayText(textCell);
    }
  }
}

/** `2024-05-01 10:00:00.123456789`. */
export function instantText(instantNs: bigint): string {
  const fractionNs = ((instantNs % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n;
  const secondsText = new Date(Number((instantNs - fractionNs) / 1_000_000n)).toISOString().slice(0, 19).replace('T', ' ');
  return `${secondsText}.${fractionNs.toString().padStart(9, '0')}`;
}

function columnarNumberText(numberValue: number): string {
  if (Object.is(numberValue, -0)) return '-0';
  if (Number.isFinite(numberValue)) return String(numberValue);
  return Number.isNaN(numberValue) ? 'nan' : numberValue > 0 ? 'inf' : '-inf';
}

function columnarArrayText(arrayFloats: Iterable<number>): string {
  return `[${Array.from(arrayFloats, (arrayFloat) => String(shortFloat(arrayFloat))).join(',')}]`;
}

const escapedLetters = /[\\\t\n\r\b\f\0']/g;
const letterEscapes: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
  '\b': '\\b',
  '\f': '\\f',
  '\0': '\\0',
  "'": "\\'",
};

export function escapeText(unescapedText: string): string {
  return unescapedText.replace(escapedLetters, (escapedLetter) => letterEscapes[escapedLetter]!);
}
