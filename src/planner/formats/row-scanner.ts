/**
 * Reads many rows of one predicted shape at once: the caller's side of `kernels/row-scanner.ts`, a WebAssembly module that goes
 * over the bytes once and leaves columns in its memory. One instance serves the process. Invariant: its content belongs to the
 * call between `load` and the last look at the run's columns, within one turn; `owner` is the reader whose text is loaded;
 * another reader loads its own text again.
 */
import { assert } from '../../errors.ts';
import { rowScannerCode } from './row-scanner-code.ts';

/** How cells of a column are read: the same numbers stand in the module. */
export const scanKind = { untyped: 0, text: 1, integer: 2, number: 3, boolean: 4, timestamp: 5, keyText: 6 } as const;

export type ScanKind = (typeof scanKind)[keyof typeof scanKind];

export interface ScanColumn {
  /** The name as JSON text, without quotes. */
  readonly name: Uint8Array;
  readonly kind: ScanKind;
}

// Offsets in the module's memory.
const textAt = 4096;
const textBytes = 65_536;
/** Zeros behind every text, at which the module stops. */
const textEnd = 64;
const columnsAt = textAt + textBytes + textEnd;
const columnsMax = 128;
const namesAt = columnsAt + columnsMax * 16;
const namesBytes = 16_384;
const deferredAt = namesAt + namesBytes + 64;
const deferredMax = 4096;
const cellsAt = deferredAt + deferredMax * 16;
const rowsMax = 1024;
const values = rowsMax;
const narrowed = values + rowsMax * 8 + 64;
const heap = narrowed + rowsMax * 8;
const cellsBytes = heap + textBytes + 64;

interface Exports {
  readonly memory: WebAssembly.Memory;
  readonly at: WebAssembly.Global;
  readonly bytesTaken: WebAssembly.Global;
  readonly deferred: WebAssembly.Global;
  readonly afterRow: WebAssembly.Global;
  readonly surprised: WebAssembly.Global;
  scan(from: number, byLine: number, columns: number, rows: number, bytes: number, validText: number): number;
  narrow(column: number, rows: number): number;
}

/** The end of a run. */
export interface ScanEnd {
  readonly rows: number;
  /** Offset in the loaded text. */
  readonly at: number;
  /** Bytes of the rows as `BodyReader` counts them for its batches. */
  readonly bytes: number;
  /** In an array: a comma must follow. */
  readonly afterRow: boolean;
  /** Stopped at a row of another shape, or one that does not end within the text. */
  readonly surprised: boolean;
  /** Cells that wait for their value: see `deferredCell`. */
  readonly deferred: number;
}

/** A cell that the module has found the bytes of, and no value. */
export interface DeferredCell {
  readonly row: number;
  readonly column: number;
  readonly start: number;
  readonly end: number;
}

interface ColumnViews {
  readonly nulls: Uint8Array;
  readonly offsets: Uint32Array;
  readonly heap: Uint8Array;
  readonly f64: Float64Array;
  readonly i64: BigInt64Array;
  readonly bool: Uint8Array;
  readonly narrowI32: Int32Array;
  readonly narrowF64: Float64Array;
}

export class RowScanner {
  static readonly textBytes = textBytes;
  static readonly rowsMax = rowsMax;
  owner: object | null = null;
  readonly #code: Exports;
  readonly #bytes: Uint8Array;
  readonly #words: Uint32Array;
  readonly #views: ColumnViews[] = [];

  constructor() {
    const module = new WebAssembly.Module(Buffer.from(rowScannerCode, 'base64'));
    this.#code = new WebAssembly.Instance(module).exports as unknown as Exports;
    const { buffer } = this.#code.memory;
    assert(buffer.byteLength >= cellsAt + columnsMax * cellsBytes, 'the scanner has memory for all of its columns');
    this.#bytes = new Uint8Array(buffer);
    this.#words = new Uint32Array(buffer);
  }

  /** The text that was loaded, at the places that runs speak of. */
  get text(): Uint8Array {
    return this.#bytes.subarray(textAt, textAt + textBytes);
  }

  /** Takes over at most `textBytes` bytes; gives how many. */
  load(owner: object, source: Uint8Array, from: number, to: number): number {
    this.owner = owner;
    const size = Math.min(to - from, textBytes);
    this.#bytes.set(source.subarray(from, from + size), textAt);
    this.#bytes.fill(0, textAt + size, textAt + size + textEnd);
    return size;
  }

  /** False when there are too many columns, or their names are too long: rows of this shape are nothing for it. */
  useShape(columns: readonly ScanColumn[]): boolean {
    if (columns.length > columnsMax) return false;
    let used = 0;
    for (let i = 0; i < columns.length; i++) {
      const { name, kind } = columns[i]!;
      const size = name.length + 3;
      if (used + size + 8 > namesBytes) return false;
      const at = namesAt + used;
      this.#bytes[at] = 0x22;
      this.#bytes.set(name, at + 1);
      this.#bytes[at + size - 2] = 0x22;
      this.#bytes[at + size - 1] = 0x3a;
      const word = columnsAt / 4 + i * 4;
      this.#words[word] = used;
      this.#words[word + 1] = size;
      this.#words[word + 2] = kind;
      used += (size + 7) & ~7;
    }
    return true;
  }

  /** `validText`: all of the text is valid UTF-8. */
  scan(from: number, byLine: boolean, columns: number, rows: number, bytes: number, validText: boolean): ScanEnd {
    const code = this.#code;
    const taken = code.scan(
      from,
      Number(byLine),
      columns,
      Math.min(rows, rowsMax),
      Math.min(bytes, 0x7fff_ffff),
      Number(validText),
    );
    return {
      rows: taken,
      at: code.at.value as number,
      bytes: code.bytesTaken.value as number,
      afterRow: code.afterRow.value !== 0,
      surprised: code.surprised.value !== 0,
      deferred: code.deferred.value as number,
    };
  }

  deferredCell(i: number): DeferredCell {
    const word = deferredAt / 4 + i * 4;
    const [row, column, start, end] = this.#words.subarray(word, word + 4) as unknown as [number, number, number, number];
    return { row, column, start, end };
  }

  /** NULL marks of the latest run's rows; null when there is none. */
  nulls(column: number, rows: number): Uint8Array | null {
    if (this.#words[columnsAt / 4 + column * 4 + 3] === 0) return null;
    const nulls = this.#viewsOf(column).nulls.subarray(0, rows);
    return nulls.includes(1) ? nulls : null;
  }

  offsets(column: number): Uint32Array {
    return this.#viewsOf(column).offsets;
  }

  heap(column: number): Uint8Array {
    return this.#viewsOf(column).heap;
  }

  numbers(column: number): Float64Array {
    return this.#viewsOf(column).f64;
  }

  booleans(column: number): Uint8Array {
    return this.#viewsOf(column).bool;
  }

  timestamps(column: number): BigInt64Array {
    return this.#viewsOf(column).i64;
  }

  /** Integers in the narrowest layout that holds them all. */
  integers(column: number, rows: number): Int32Array | Float64Array | BigInt64Array {
    const views = this.#viewsOf(column);
    switch (this.#code.narrow(column, rows)) {
      case 0:
        return views.narrowI32;
      case 1:
        return views.narrowF64;
      default:
        return views.i64;
    }
  }

  #viewsOf(column: number): ColumnViews {
    return (this.#views[column] ??= this.#newViews(column));
  }

  #newViews(column: number): ColumnViews {
    const { buffer } = this.#code.memory;
    const at = cellsAt + column * cellsBytes;
    return {
      nulls: new Uint8Array(buffer, at, rowsMax),
      offsets: new Uint32Array(buffer, at + values, rowsMax + 1),
      heap: new Uint8Array(buffer, at + heap, textBytes),
      f64: new Float64Array(buffer, at + values, rowsMax),
      i64: new BigInt64Array(buffer, at + values, rowsMax),
      bool: new Uint8Array(buffer, at + values, rowsMax),
      narrowI32: new Int32Array(buffer, at + narrowed, rowsMax),
      narrowF64: new Float64Array(buffer, at + narrowed, rowsMax),
    };
  }
}

let shared: RowScanner | null = null;

export function sharedScanner(): RowScanner {
  return (shared ??= new RowScanner());
}
