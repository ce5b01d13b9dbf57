/**
 * Columns that rows of one ingest fall into. `commit` takes the tape's row whole or refuses it whole; `take` hands over
 * what was gathered as one `RowBatch` and starts the next.
 *
 * Declared columns hold what their type allows and nothing else. Columns of an open type start with the first value
 * that they see and widen without loss: integers to numbers while every one is exact in a double, scalars of different
 * kinds to text, and anything else to JSON text. A widened column stays so for the rest of the stream, so that later batches agree with earlier ones.
 */
import { AssertionError, ServiceError } from '../../errors.ts';
import type { NamedColumn, RowBatch } from '../../log/values/columns.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import type { SentCells } from '../../projections/command.ts';
import { coarseHint, isBound, isCoarse } from '../../log/values/timestamp.ts';
import { type ColumnType, limits } from '../../log/values/value.ts';
import { VectorBuilder } from '../../log/values/vector-builder.ts';
import { exactInDouble, jsonFrom, numbersFrom, scalarToken, textFrom, typedFromText, typeOfKind } from './inferred-column.ts';
import { instantAt } from './instant-text.ts';
import { type Column, ColumnDefiner } from './ingest-column.ts';
import type { ColumnNames } from './json-reader.ts';
import { integerAt, latin1, unescapeInto } from './json-tokens.ts';
import { type RowScanner, type ScanKind, scanKind } from './row-scanner.ts';
import { type CellKind, cellKind, type RowTape } from './row-tape.ts';

/** Rows that a batch is expected to hold, before there was one: a body may be one small row. */
const columnCapacityMin = 8;

export class ColumnSet implements ColumnNames {
  /** Names as JSON text, so that equal names have equal bytes whichever characters are escaped. */
  readonly names: Uint8Array[] = [];
  readonly columns: Column[] = [];
  readonly #slotsByName = new Map<string, number>();
  readonly #definer: ColumnDefiner;
  readonly #rowTape: RowTape;
  /** Columns that existed before the row on the tape. */
  #settledColumns = 0;
  #builtRows = 0;
  /** Never fewer rows are made room for. */
  readonly #columnCapacityMin: number;
  #columnCapacity: number;
  readonly #checkedInstants: bigint[] = [];
  readonly #checkedVectors: Float32Array[] = [];
  #unescapeScratch = new Uint8Array(256);

  /** Cells are plain text (CSV): an open type's columns are typed by all their cells, when the batch is taken. */
  readonly #isPlainText: boolean;
  /** By slot: rows that sent the column, NULL or not. Null where the reader does not need them. */
  readonly #sentRowsBySlot: number[][] | null;

  constructor(
    typeDefinition: TypeDefinition | null,
    rowTape: RowTape,
    isPlainText: boolean,
    capacityMin = columnCapacityMin,
    tracksSent = false,
  ) {
    this.#sentRowsBySlot = tracksSent ? [] : null;
    this.#columnCapacity = this.#columnCapacityMin = capacityMin;
    this.#definer = new ColumnDefiner(typeDefinition, rowTape);
    this.#rowTape = rowTape;
    this.#isPlainText = isPlainText;
  }

  get rows(): number {
    return this.#builtRows;
  }

  slotOf(name: string): number {
    const knownSlot = this.#slotsByName.get(name);
    if (knownSlot !== undefined) return knownSlot;
    const column = this.#definer.define(name);
    if (column === null) return -1;
    const newSlot = this.columns.length;
    this.columns.push(column);
    this.#rowTape.reserve(this.columns.length);
    this.names.push(encodedColumnName(name));
    this.#slotsByName.set(name, newSlot);
    return newSlot;
  }

  /** Takes the row on the tape, or forgets it and the columns that it alone would have made; then the tape says why. */
  commit(): boolean {
    const rowTape = this.#rowTape;
    const cellCount = rowTape.count;
    for (let i = 0; i < cellCount && rowTape.problem === null; i++) this.#checkCell(i);
    if (rowTape.problem !== null) {
      this.abandon();
      return false;
    }
    for (let i = 0; i < cellCount; i++) this.#appendCell(i);
    if (this.#sentRowsBySlot !== null)
      for (let i = 0; i < cellCount; i++) (this.#sentRowsBySlot[rowTape.slots[i]!] ??= []).push(this.#builtRows);
    this.#builtRows++;
    this.settle();
    return true;
  }

  /** The kind by which the module reads cells of a column: only cells that need no other check. */
  scanKindOf(slot: number): ScanKind {
    const { type, integersAsText } = this.columns[slot]!;
    switch (type) {
      case 'string':
        return integersAsText ? scanKind.keyText : scanKind.text;
      case 'integer':
      case 'number':
      case 'boolean':
      case 'timestamp':
        return scanKind[type];
      default:
        return scanKind.untyped;
    }
  }

  /** Takes the first `rows` rows of a scanner's latest run, whose column i is `slots[i]`. */
  takeRun(scannedRun: RowScanner, slots: readonly number[], rows: number): void {
    for (let i = 0; i < slots.length; i++) {
      const runColumn = this.columns[slots[i]!]!;
      const runNulls = scannedRun.nulls(i, rows);
      if (runNulls !== null && !runNulls.includes(0)) continue;
      const runBuilder = this.#columnBuilder(runColumn);
      switch (runColumn.type) {
        case 'string':
          runBuilder.appendTexts(scannedRun.heap(i), scannedRun.offsets(i), runNulls, rows);
          break;
        case 'integer':
          runBuilder.appendIntegers(scannedRun.integers(i, rows), runNulls, rows);
          break;
        case 'timestamp':
          runBuilder.appendIntegers(scannedRun.timestamps(i), runNulls, rows);
          break;
        case 'number':
          runBuilder.appendNumbers(scannedRun.numbers(i), runNulls, rows);
          break;
        case 'boolean':
          runBuilder.appendBooleans(scannedRun.booleans(i), runNulls, rows);
          break;
        default:
          throw new AssertionError(`a run has no cells of ${runColumn.type}`);
      }
    }
    this.#builtRows += rows;
  }

  /** Keeps the columns made so far, even if the next row is refused. */
  settle(): void {
    this.#settledColumns = this.columns.length;
  }

  /** Forgets columns that only an abandoned row has named. */
  abandon(): void {
    while (this.columns.length > this.#settledColumns) {
      const column = this.columns.pop()!;
      this.#slotsByName.delete(column.name);
      this.names.pop();
      this.#definer.forget(column);
    }
  }

  /** Names of columns that hold scalars of different kinds, as text. */
  mixedColumns(): string[] {
    return this.columns.filter((column) => column.mixed).map(({ name }) => name);
  }

  /** Which cells the rows sent that are taken next, where this is kept track of. */
  takeSent(): SentCells {
    const sentCells = new Map<string, Uint8Array>();
    this.columns.forEach(({ name }, slot) => {
      const sentFlags = new Uint8Array(this.#builtRows);
      for (const sentRow of this.#sentRowsBySlot?.[slot] ?? []) sentFlags[sentRow] = 1;
      sentCells.set(name, sentFlags);
    });
    if (this.#sentRowsBySlot !== null) this.#sentRowsBySlot.length = 0;
    return sentCells;
  }

  take(): RowBatch {
    const builtLength = this.#builtRows;
    const builtColumns: NamedColumn[] = [];
    for (const ingestColumn of this.columns) {
      if (ingestColumn.builder === null) continue;
      padWithNulls(ingestColumn.builder, builtLength);
      if (this.#isPlainText && !ingestColumn.fixed) {
        const textType = ingestColumn.type;
        ingestColumn.builder = typedFromText(ingestColumn.builder, textType, ingestColumn.kindsSeen);
        ingestColumn.type = ingestColumn.builder.type;
        ingestColumn.mixed ||= ingestColumn.type === 'string' && textType !== null && textType !== 'string';
      }
      const builtVector = ingestColumn.builder.build();
      builtColumns.push({ name: ingestColumn.name, type: ingestColumn.builder.type, vector: builtVector });
      if (builtVector.kind === 'text') ingestColumn.heapBytes = builtVector.heap.length;
      ingestColumn.builder = null;
      ingestColumn.kindsSeen = 0;
    }
    this.#builtRows = 0;
    this.#columnCapacity = Math.max(this.#columnCapacityMin, builtLength);
    return { length: builtLength, columns: builtColumns };
  }

  /** Refuses the row when a declared column can't hold cell `i`; leaves parsed instants and vectors for `#appendCell`. */
  #checkCell(i: number): void {
    const rowTape = this.#rowTape;
    const cellColumn = this.columns[rowTape.slots[i]!]!;
    const tokenKind = rowTape.kinds[i]!;
    if (tokenKind === cellKind.huge && cellColumn.type !== 'json') {
      return rowTape.refuse('REL_INVALID', `${cellColumn.name} is beyond a 64-bit integer or a double`);
    }
    if (tokenKind === cellKind.null) return;
    if (!cellColumn.fixed) {
      if (!this.#mayCellBecome(cellColumn, i, tokenKind)) this.#refuseMisfit(i, cellColumn, `is ${cellKindWords[tokenKind]!}`);
      return;
    }
    switch (cellColumn.type) {
      case 'string':
        if (tokenKind === cellKind.text || tokenKind === cellKind.escaped) return;
        if (cellColumn.integersAsText && (tokenKind === cellKind.integer || tokenKind === cellKind.wide)) return;
        break;
      case 'integer':
        if (tokenKind === cellKind.integer || tokenKind === cellKind.wide) return;
        if (tokenKind === cellKind.number && rowTape.numbers[i] === 0 && rowTape.ends[i]! - rowTape.starts[i]! === 2) return; // the token -0
        break;
      case 'number':
        if (tokenKind === cellKind.integer || tokenKind === cellKind.number) return;
        if (tokenKind === cellKind.wide) {
          if (exactInDouble(integerAt(rowTape.bytes, rowTape.starts[i]!, rowTape.ends[i]!))) return;
          return this.#refuseMisfit(i, cellColumn, 'is an integer that a double does not hold exactly');
        }
        break;
      case 'boolean':
        if (tokenKind === cellKind.true || tokenKind === cellKind.false) return;
        break;
      case 'timestamp':
        if (tokenKind === cellKind.integer || tokenKind === cellKind.wide) {
          const cellInstant = integerAt(rowTape.bytes, rowTape.starts[i]!, rowTape.ends[i]!);
          if (isBound(cellColumn.name) && isCoarse(cellInstant))
            return this.#refuseMisfit(i, cellColumn, `is no number of ${coarseHint}`);
          this.#checkedInstants[i] = cellInstant;
          return;
        }
        if (tokenKind === cellKind.text) {
          try {
            this.#checkedInstants[i] = instantAt(rowTape.bytes, rowTape.starts[i]!, rowTape.ends[i]!);
          } catch (error) {
            if (!(error instanceof ServiceError)) throw error;
            this.#refuseMisfit(i, cellColumn, `is ${error.message}`);
          }
          return;
        }
        break;
      case 'json':
        if (!this.#isPlainText || tokenKind !== cellKind.text) return;
        break;
      case 'vector':
        if (tokenKind === cellKind.json && rowTape.bytes[rowTape.starts[i]!] === 0x5b)
          return this.#checkVectorCell(i, cellColumn);
        break;
      case null:
        throw new AssertionError('a fixed column has a type');
    }
    this.#refuseMisfit(i, cellColumn, `is ${cellKindWords[tokenKind]!}`);
  }

  /** False when nothing that an open type's declared column could widen to holds cell `i`. */
  #mayCellBecome({ declared, integersAsText }: Column, i: number, tokenKind: number): boolean {
    const isTextCell = tokenKind === cellKind.text || tokenKind === cellKind.escaped;
    const isBooleanCell = tokenKind === cellKind.true || tokenKind === cellKind.false;
    const rowTape = this.#rowTape;
    // A quoted field of CSV is a text, but one that looks like a number or boolean may be meant as such.
    const isScalarText = () => this.#isPlainText && scalarToken.test(latin1(rowTape.bytes, rowTape.starts[i]!, rowTape.ends[i]!));
    switch (declared) {
      case 'integer':
      case 'number':
        return isTextCell ? isScalarText() : !isBooleanCell && tokenKind !== cellKind.json;
      case 'boolean':
        return isBooleanCell || (isTextCell && isScalarText());
      case 'string':
        return (
          isTextCell || this.#isPlainText || (integersAsText && (tokenKind === cellKind.integer || tokenKind === cellKind.wide))
        );
      default:
        return true;
    }
  }

  #checkVectorCell(i: number, column: Column): void {
    const rowTape = this.#rowTape;
    const vectorText = latin1(rowTape.bytes, rowTape.starts[i]! + 1, rowTape.ends[i]! - 1);
    const vectorItems = vectorText.trim() === '' ? [] : vectorText.split(',');
    if (vectorItems.length === 0 || vectorItems.length > limits.vectorDims) {
      return this.#refuseMisfit(i, column, `has ${vectorItems.length} dimensions, not 1 to ${limits.vectorDims}`);
    }
    if (column.dims !== 0 && vectorItems.length !== column.dims) {
      return this.#refuseMisfit(i, column, `has ${vectorItems.length} dimensions instead of ${column.dims}`);
    }
    const vectorFloats = new Float32Array(vectorItems.length);
    for (let j = 0; j < vectorItems.length; j++) {
      const vectorItem = vectorItems[j]!.trim();
      const itemNumber = vectorNumberToken.test(vectorItem) ? Number(vectorItem) : Number.NaN;
      vectorFloats[j] = itemNumber;
      if (!Number.isFinite(vectorFloats[j])) return this.#refuseMisfit(i, column, 'holds what is not a finite 32-bit number');
    }
    this.#checkedVectors[i] = vectorFloats;
  }

  #refuseMisfit(i: number, column: Column, problem: string): void {
    const rowTape = this.#rowTape;
    const cellSample = sampleDecoder.decode(
      rowTape.bytes.subarray(rowTape.starts[i]!, Math.min(rowTape.ends[i]!, rowTape.starts[i]! + 40)),
    );
    rowTape.refuse(
      'REL_TYPE_MISMATCH',
      `${column.name} is ${typeArticle(column.type!)} ${column.type}; ${JSON.stringify(cellSample)} ${problem}`,
    );
  }

  #appendCell(i: number): void {
    const rowTape = this.#rowTape;
    const cellColumn = this.columns[rowTape.slots[i]!]!;
    const tokenKind = rowTape.kinds[i]! as CellKind;
    if (tokenKind === cellKind.null) return;
    if (!cellColumn.fixed) {
      if (this.#isPlainText) return this.#appendUntypedCell(cellColumn, i, tokenKind);
      this.#widenColumn(cellColumn, i, tokenKind);
    }
    const cellBuilder = this.#columnBuilder(cellColumn);
    const cellStart = rowTape.starts[i]!;
    const cellEnd = rowTape.ends[i]!;
    switch (cellColumn.type!) {
      case 'string':
        if (tokenKind !== cellKind.escaped) return cellBuilder.appendText(rowTape.bytes, cellStart, cellEnd);
        if (this.#unescapeScratch.length < cellEnd - cellStart) this.#unescapeScratch = new Uint8Array((cellEnd - cellStart) * 2);
        return cellBuilder.appendText(
          this.#unescapeScratch,
          0,
          unescapeInto(this.#unescapeScratch, rowTape.bytes, cellStart, cellEnd),
        );
      case 'integer':
        if (tokenKind === cellKind.wide) return cellBuilder.appendBigint(integerAt(rowTape.bytes, cellStart, cellEnd));
        return cellBuilder.appendInteger(rowTape.numbers[i]!);
      case 'number':
        if (tokenKind === cellKind.wide) return cellBuilder.appendNumber(Number(integerAt(rowTape.bytes, cellStart, cellEnd)));
        return cellBuilder.appendNumber(rowTape.numbers[i]!);
      case 'boolean':
        return cellBuilder.appendBoolean(tokenKind === cellKind.true);
      case 'timestamp':
        return cellBuilder.appendBigint(this.#checkedInstants[i]!);
      case 'json':
        // A text's quotes stand right outside of its bytes.
        if (tokenKind === cellKind.text || tokenKind === cellKind.escaped)
          return cellBuilder.appendText(rowTape.bytes, cellStart - 1, cellEnd + 1);
        return cellBuilder.appendText(rowTape.bytes, cellStart, cellEnd);
      case 'vector':
        cellColumn.dims = this.#checkedVectors[i]!.length;
        return cellBuilder.appendVector(this.#checkedVectors[i]!);
    }
  }

  /** The builder for a cell of the current row. */
  #columnBuilder(column: Column): VectorBuilder {
    let columnBuilder = column.builder;
    if (columnBuilder === null) {
      const builderType = this.#isPlainText && !column.fixed ? 'string' : column.type!;
      // A little more than last time, so that texts that grow slowly do not have their bytes moved in every batch.
      const heapBytes = column.heapBytes === 0 ? this.#columnCapacity * 16 : column.heapBytes + (column.heapBytes >> 4);
      columnBuilder = column.builder = new VectorBuilder(builderType, this.#columnCapacity, heapBytes);
    }
    if (columnBuilder.length < this.#builtRows) padWithNulls(columnBuilder, this.#builtRows);
    return columnBuilder;
  }

  #appendUntypedCell(column: Column, i: number, kind: CellKind): void {
    const rowTape = this.#rowTape;
    const untypedBuilder = this.#columnBuilder(column);
    column.kindsSeen |= 1 << kind;
    untypedBuilder.appendText(rowTape.bytes, rowTape.starts[i]!, rowTape.ends[i]!);
  }

  /** Makes an open type's column able to hold cell `i`. */
  #widenColumn(column: Column, i: number, kind: CellKind): void {
    const columnType = column.type;
    const kindType = typeOfKind[kind]!;
    if (columnType === kindType || columnType === 'json') return;
    if (columnType === null) {
      column.type = kindType;
      return;
    }
    const rowTape = this.#rowTape;
    if (column.integersAsText && kindType === 'integer') return;
    if (columnType === 'number' && kindType === 'integer') {
      if (kind === cellKind.integer || exactInDouble(integerAt(rowTape.bytes, rowTape.starts[i]!, rowTape.ends[i]!))) return;
    } else if (columnType === 'integer' && kindType === 'number') {
      const widenedBuilder = column.builder === null ? null : numbersFrom(column.builder);
      if (widenedBuilder !== undefined) {
        column.type = 'number';
        column.builder = widenedBuilder;
        return;
      }
    }
    if (kindType !== 'json') {
      column.type = 'string';
      column.mixed = true;
      if (columnType !== 'string' && column.builder !== null) column.builder = textFrom(column.builder);
      return;
    }
    column.type = 'json';
    if (column.builder !== null) column.builder = jsonFrom(column.builder);
  }
}

function padWithNulls(builder: VectorBuilder, length: number): void {
  while (builder.length < length) builder.appendNull();
}

function typeArticle(type: ColumnType): string {
  return type === 'integer' ? 'an' : 'a';
}

/** Bodies of one type name the same columns again and again. */
const encodedColumnNames = new Map<string, Uint8Array>();
const encodedNamesMax = 10_000;

function encodedColumnName(name: string): Uint8Array {
  let encodedBytes = encodedColumnNames.get(name);
  if (encodedBytes === undefined) {
    encodedBytes = columnNameEncoder.encode(JSON.stringify(name).slice(1, -1));
    if (encodedColumnNames.size >= encodedNamesMax) encodedColumnNames.clear();
    encodedColumnNames.set(name, encodedBytes);
  }
  return encodedBytes;
}

const columnNameEncoder = new TextEncoder();
const sampleDecoder = new TextDecoder('utf-8', { ignoreBOM: true });
const vectorNumberToken = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/;

const cellKindWords: readonly string[] = [
  'null',
  'a boolean',
  'a boolean',
  'an integer',
  'an integer',
  'a number',
  'a string',
  'a string',
  'an object or array',
  'a number',
];
