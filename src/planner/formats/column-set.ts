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
const firstCapacity = 8;

export class ColumnSet implements ColumnNames {
  /** Names as JSON text, so that equal names have equal bytes whichever characters are escaped. */
  readonly names: Uint8Array[] = [];
  readonly columns: Column[] = [];
  readonly #slots = new Map<string, number>();
  readonly #definer: ColumnDefiner;
  readonly #tape: RowTape;
  /** Columns that existed before the row on the tape. */
  #settled = 0;
  #rows = 0;
  /** Never fewer rows are made room for. */
  readonly #capacityMin: number;
  #capacity: number;
  readonly #instants: bigint[] = [];
  readonly #vectors: Float32Array[] = [];
  #scratch = new Uint8Array(256);

  /** Cells are plain text (CSV): an open type's columns are typed by all their cells, when the batch is taken. */
  readonly #plainText: boolean;
  /** By slot: rows that sent the column, NULL or not. Null where the reader does not need them. */
  readonly #sent: number[][] | null;

  constructor(
    definition: TypeDefinition | null,
    tape: RowTape,
    plainText: boolean,
    capacityMin = firstCapacity,
    tracksSent = false,
  ) {
    this.#sent = tracksSent ? [] : null;
    this.#capacity = this.#capacityMin = capacityMin;
    this.#definer = new ColumnDefiner(definition, tape);
    this.#tape = tape;
    this.#plainText = plainText;
  }

  get rows(): number {
    return this.#rows;
  }

  slotOf(name: string): number {
    const known = this.#slots.get(name);
    if (known !== undefined) return known;
    const column = this.#definer.define(name);
    if (column === null) return -1;
    const slot = this.columns.length;
    this.columns.push(column);
    this.#tape.reserve(this.columns.length);
    this.names.push(encodedName(name));
    this.#slots.set(name, slot);
    return slot;
  }

  /** Takes the row on the tape, or forgets it and the columns that it alone would have made; then the tape says why. */
  commit(): boolean {
    const tape = this.#tape;
    const count = tape.count;
    for (let i = 0; i < count && tape.problem === null; i++) this.#check(i);
    if (tape.problem !== null) {
      this.abandon();
      return false;
    }
    for (let i = 0; i < count; i++) this.#append(i);
    if (this.#sent !== null) for (let i = 0; i < count; i++) (this.#sent[tape.slots[i]!] ??= []).push(this.#rows);
    this.#rows++;
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
  takeRun(run: RowScanner, slots: readonly number[], rows: number): void {
    for (let i = 0; i < slots.length; i++) {
      const column = this.columns[slots[i]!]!;
      const nulls = run.nulls(i, rows);
      if (nulls !== null && !nulls.includes(0)) continue;
      const builder = this.#builderOf(column);
      switch (column.type) {
        case 'string':
          builder.appendTexts(run.heap(i), run.offsets(i), nulls, rows);
          break;
        case 'integer':
          builder.appendIntegers(run.integers(i, rows), nulls, rows);
          break;
        case 'timestamp':
          builder.appendIntegers(run.timestamps(i), nulls, rows);
          break;
        case 'number':
          builder.appendNumbers(run.numbers(i), nulls, rows);
          break;
        case 'boolean':
          builder.appendBooleans(run.booleans(i), nulls, rows);
          break;
        default:
          throw new AssertionError(`a run has no cells of ${column.type}`);
      }
    }
    this.#rows += rows;
  }

  /** Keeps the columns made so far, even if the next row is refused. */
  settle(): void {
    this.#settled = this.columns.length;
  }

  /** Forgets columns that only an abandoned row has named. */
  abandon(): void {
    while (this.columns.length > this.#settled) {
      const column = this.columns.pop()!;
      this.#slots.delete(column.name);
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
    const sent = new Map<string, Uint8Array>();
    this.columns.forEach(({ name }, slot) => {
      const flags = new Uint8Array(this.#rows);
      for (const row of this.#sent?.[slot] ?? []) flags[row] = 1;
      sent.set(name, flags);
    });
    if (this.#sent !== null) this.#sent.length = 0;
    return sent;
  }

  take(): RowBatch {
    const length = this.#rows;
    const columns: NamedColumn[] = [];
    for (const column of this.columns) {
      if (column.builder === null) continue;
      padTo(column.builder, length);
      if (this.#plainText && !column.fixed) {
        const before = column.type;
        column.builder = typedFromText(column.builder, before, column.kindsSeen);
        column.type = column.builder.type;
        column.mixed ||= column.type === 'string' && before !== null && before !== 'string';
      }
      const vector = column.builder.build();
      columns.push({ name: column.name, type: column.builder.type, vector });
      if (vector.kind === 'text') column.heapBytes = vector.heap.length;
      column.builder = null;
      column.kindsSeen = 0;
    }
    this.#rows = 0;
    this.#capacity = Math.max(this.#capacityMin, length);
    return { length, columns };
  }

  /** Refuses the row when a declared column can't hold cell `i`; leaves parsed instants and vectors for `#append`. */
  #check(i: number): void {
    const tape = this.#tape;
    const column = this.columns[tape.slots[i]!]!;
    const kind = tape.kinds[i]!;
    if (kind === cellKind.huge && column.type !== 'json') {
      return tape.refuse('REL_INVALID', `${column.name} is beyond a 64-bit integer or a double`);
    }
    if (kind === cellKind.null) return;
    if (!column.fixed) {
      if (!this.#mayBecome(column, i, kind)) this.#misfit(i, column, `is ${kindWords[kind]!}`);
      return;
    }
    switch (column.type) {
      case 'string':
        if (kind === cellKind.text || kind === cellKind.escaped) return;
        if (column.integersAsText && (kind === cellKind.integer || kind === cellKind.wide)) return;
        break;
      case 'integer':
        if (kind === cellKind.integer || kind === cellKind.wide) return;
        if (kind === cellKind.number && tape.numbers[i] === 0 && tape.ends[i]! - tape.starts[i]! === 2) return; // the token -0
        break;
      case 'number':
        if (kind === cellKind.integer || kind === cellKind.number) return;
        if (kind === cellKind.wide) {
          if (exactInDouble(integerAt(tape.bytes, tape.starts[i]!, tape.ends[i]!))) return;
          return this.#misfit(i, column, 'is an integer that a double does not hold exactly');
        }
        break;
      case 'boolean':
        if (kind === cellKind.true || kind === cellKind.false) return;
        break;
      case 'timestamp':
        if (kind === cellKind.integer || kind === cellKind.wide) {
          const instant = integerAt(tape.bytes, tape.starts[i]!, tape.ends[i]!);
          if (isBound(column.name) && isCoarse(instant)) return this.#misfit(i, column, `is no number of ${coarseHint}`);
          this.#instants[i] = instant;
          return;
        }
        if (kind === cellKind.text) {
          try {
            this.#instants[i] = instantAt(tape.bytes, tape.starts[i]!, tape.ends[i]!);
          } catch (error) {
            if (!(error instanceof ServiceError)) throw error;
            this.#misfit(i, column, `is ${error.message}`);
          }
          return;
        }
        break;
      case 'json':
        if (!this.#plainText || kind !== cellKind.text) return;
        break;
      case 'vector':
        if (kind === cellKind.json && tape.bytes[tape.starts[i]!] === 0x5b) return this.#checkVector(i, column);
        break;
      case null:
        throw new AssertionError('a fixed column has a type');
    }
    this.#misfit(i, column, `is ${kindWords[kind]!}`);
  }

  /** False when nothing that an open type's declared column could widen to holds cell `i`. */
  #mayBecome({ declared, integersAsText }: Column, i: number, kind: number): boolean {
    const isText = kind === cellKind.text || kind === cellKind.escaped;
    const isBoolean = kind === cellKind.true || kind === cellKind.false;
    const tape = this.#tape;
    // A quoted field of CSV is a text, but one that looks like a number or boolean may be meant as such.
    const isScalar = () => this.#plainText && scalarToken.test(latin1(tape.bytes, tape.starts[i]!, tape.ends[i]!));
    switch (declared) {
      case 'integer':
      case 'number':
        return isText ? isScalar() : !isBoolean && kind !== cellKind.json;
      case 'boolean':
        return isBoolean || (isText && isScalar());
      case 'string':
        return isText || this.#plainText || (integersAsText && (kind === cellKind.integer || kind === cellKind.wide));
      default:
        return true;
    }
  }

  #checkVector(i: number, column: Column): void {
    const tape = this.#tape;
    const inside = latin1(tape.bytes, tape.starts[i]! + 1, tape.ends[i]! - 1);
    const items = inside.trim() === '' ? [] : inside.split(',');
    if (items.length === 0 || items.length > limits.vectorDims) {
      return this.#misfit(i, column, `has ${items.length} dimensions, not 1 to ${limits.vectorDims}`);
    }
    if (column.dims !== 0 && items.length !== column.dims) {
      return this.#misfit(i, column, `has ${items.length} dimensions instead of ${column.dims}`);
    }
    const values = new Float32Array(items.length);
    for (let j = 0; j < items.length; j++) {
      const item = items[j]!.trim();
      const value = numberToken.test(item) ? Number(item) : Number.NaN;
      values[j] = value;
      if (!Number.isFinite(values[j])) return this.#misfit(i, column, 'holds what is not a finite 32-bit number');
    }
    this.#vectors[i] = values;
  }

  #misfit(i: number, column: Column, problem: string): void {
    const tape = this.#tape;
    const sample = decoder.decode(tape.bytes.subarray(tape.starts[i]!, Math.min(tape.ends[i]!, tape.starts[i]! + 40)));
    tape.refuse(
      'REL_TYPE_MISMATCH',
      `${column.name} is ${articleOf(column.type!)} ${column.type}; ${JSON.stringify(sample)} ${problem}`,
    );
  }

  #append(i: number): void {
    const tape = this.#tape;
    const column = this.columns[tape.slots[i]!]!;
    const kind = tape.kinds[i]! as CellKind;
    if (kind === cellKind.null) return;
    if (!column.fixed) {
      if (this.#plainText) return this.#appendUntyped(column, i, kind);
      this.#widen(column, i, kind);
    }
    const builder = this.#builderOf(column);
    const start = tape.starts[i]!;
    const end = tape.ends[i]!;
    switch (column.type!) {
      case 'string':
        if (kind !== cellKind.escaped) return builder.appendText(tape.bytes, start, end);
        if (this.#scratch.length < end - start) this.#scratch = new Uint8Array((end - start) * 2);
        return builder.appendText(this.#scratch, 0, unescapeInto(this.#scratch, tape.bytes, start, end));
      case 'integer':
        if (kind === cellKind.wide) return builder.appendBigint(integerAt(tape.bytes, start, end));
        return builder.appendInteger(tape.numbers[i]!);
      case 'number':
        if (kind === cellKind.wide) return builder.appendNumber(Number(integerAt(tape.bytes, start, end)));
        return builder.appendNumber(tape.numbers[i]!);
      case 'boolean':
        return builder.appendBoolean(kind === cellKind.true);
      case 'timestamp':
        return builder.appendBigint(this.#instants[i]!);
      case 'json':
        // A text's quotes stand right outside of its bytes.
        if (kind === cellKind.text || kind === cellKind.escaped) return builder.appendText(tape.bytes, start - 1, end + 1);
        return builder.appendText(tape.bytes, start, end);
      case 'vector':
        column.dims = this.#vectors[i]!.length;
        return builder.appendVector(this.#vectors[i]!);
    }
  }

  /** The builder for a cell of the current row. */
  #builderOf(column: Column): VectorBuilder {
    let builder = column.builder;
    if (builder === null) {
      const type = this.#plainText && !column.fixed ? 'string' : column.type!;
      // A little more than last time, so that texts that grow slowly do not have their bytes moved in every batch.
      const heapBytes = column.heapBytes === 0 ? this.#capacity * 16 : column.heapBytes + (column.heapBytes >> 4);
      builder = column.builder = new VectorBuilder(type, this.#capacity, heapBytes);
    }
    if (builder.length < this.#rows) padTo(builder, this.#rows);
    return builder;
  }

  #appendUntyped(column: Column, i: number, kind: CellKind): void {
    const tape = this.#tape;
    const builder = this.#builderOf(column);
    column.kindsSeen |= 1 << kind;
    builder.appendText(tape.bytes, tape.starts[i]!, tape.ends[i]!);
  }

  /** Makes an open type's column able to hold cell `i`. */
  #widen(column: Column, i: number, kind: CellKind): void {
    const type = column.type;
    const kindType = typeOfKind[kind]!;
    if (type === kindType || type === 'json') return;
    if (type === null) {
      column.type = kindType;
      return;
    }
    const tape = this.#tape;
    if (column.integersAsText && kindType === 'integer') return;
    if (type === 'number' && kindType === 'integer') {
      if (kind === cellKind.integer || exactInDouble(integerAt(tape.bytes, tape.starts[i]!, tape.ends[i]!))) return;
    } else if (type === 'integer' && kindType === 'number') {
      const widened = column.builder === null ? null : numbersFrom(column.builder);
      if (widened !== undefined) {
        column.type = 'number';
        column.builder = widened;
        return;
      }
    }
    if (kindType !== 'json') {
      column.type = 'string';
      column.mixed = true;
      if (type !== 'string' && column.builder !== null) column.builder = textFrom(column.builder);
      return;
    }
    column.type = 'json';
    if (column.builder !== null) column.builder = jsonFrom(column.builder);
  }
}

function padTo(builder: VectorBuilder, length: number): void {
  while (builder.length < length) builder.appendNull();
}

function articleOf(type: ColumnType): string {
  return type === 'integer' ? 'an' : 'a';
}

/** Bodies of one type name the same columns again and again. */
const encodedNames = new Map<string, Uint8Array>();
const encodedNamesMax = 10_000;

function encodedName(name: string): Uint8Array {
  let bytes = encodedNames.get(name);
  if (bytes === undefined) {
    bytes = encoder.encode(JSON.stringify(name).slice(1, -1));
    if (encodedNames.size >= encodedNamesMax) encodedNames.clear();
    encodedNames.set(name, bytes);
  }
  return bytes;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const numberToken = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/;

const kindWords: readonly string[] = [
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
