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
const scannedTextAt = 4096;
const scannedTextBytes = 65_536;
/** Zeros behind every text, at which the module stops. */
const scannedTextPadding = 64;
const scanColumnsAt = scannedTextAt + scannedTextBytes + scannedTextPadding;
const scanColumnsMax = 128;
const scanNamesAt = scanColumnsAt + scanColumnsMax * 16;
const scanNamesBytes = 16_384;
const deferredCellsAt = scanNamesAt + scanNamesBytes + 64;
const deferredCellsMax = 4096;
const scannedCellsAt = deferredCellsAt + deferredCellsMax * 16;
const scannedRowsMax = 1024;
const scannedValuesAt = scannedRowsMax;
const narrowedValuesAt = scannedValuesAt + scannedRowsMax * 8 + 64;
const scannedHeapAt = narrowedValuesAt + scannedRowsMax * 8;
const scannedColumnBytes = scannedHeapAt + scannedTextBytes + 64;

interface ScannerExports {
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

interface ScannedColumnViews {
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
  static readonly textBytes = scannedTextBytes;
  static readonly rowsMax = scannedRowsMax;
  owner: object | null = null;
  readonly #scannerExports: ScannerExports;
  readonly #scannerBytes: Uint8Array;
  readonly #scannerWords: Uint32Array;
  readonly #columnViews: ScannedColumnViews[] = [];

  constructor() {
    const scannerModule = new WebAssembly.Module(Buffer.from(rowScannerCode, 'base64'));
    this.#scannerExports = new WebAssembly.Instance(scannerModule).exports as unknown as ScannerExports;
    const { buffer: scannerMemory } = this.#scannerExports.memory;
    assert(
      scannerMemory.byteLength >= scannedCellsAt + scanColumnsMax * scannedColumnBytes,
      'the scanner has memory for all of its columns',
    );
    this.#scannerBytes = new Uint8Array(scannerMemory);
    this.#scannerWords = new Uint32Array(scannerMemory);
  }

  /** The text that was loaded, at the places that runs speak of. */
  get text(): Uint8Array {
    return this.#scannerBytes.subarray(scannedTextAt, scannedTextAt + scannedTextBytes);
  }

  /** Takes over at most `scannedTextBytes` bytes; gives how many. */
  load(owner: object, source: Uint8Array, from: number, to: number): number {
    this.owner = owner;
    const loadedBytes = Math.min(to - from, scannedTextBytes);
    this.#scannerBytes.set(source.subarray(from, from + loadedBytes), scannedTextAt);
    this.#scannerBytes.fill(0, scannedTextAt + loadedBytes, scannedTextAt + loadedBytes + scannedTextPadding);
    return loadedBytes;
  }

  /** False when there are too many columns, or their names are too long: rows of this shape are nothing for it. */
  useShape(shapeColumns: readonly ScanColumn[]): boolean {
    if (shapeColumns.length > scanColumnsMax) return false;
    let usedNameBytes = 0;
    for (let i = 0; i < shapeColumns.length; i++) {
      const { name, kind } = shapeColumns[i]!;
      const nameSize = name.length + 3;
      if (usedNameBytes + nameSize + 8 > scanNamesBytes) return false;
      const nameAt = scanNamesAt + usedNameBytes;
      this.#scannerBytes[nameAt] = 0x22;
      this.#scannerBytes.set(name, nameAt + 1);
      this.#scannerBytes[nameAt + nameSize - 2] = 0x22;
      this.#scannerBytes[nameAt + nameSize - 1] = 0x3a;
      const columnWord = scanColumnsAt / 4 + i * 4;
      this.#scannerWords[columnWord] = usedNameBytes;
      this.#scannerWords[columnWord + 1] = nameSize;
      this.#scannerWords[columnWord + 2] = kind;
      usedNameBytes += (nameSize + 7) & ~7;
    }
    return true;
  }

  /** `validText`: all of the text is valid UTF-8. */
  scan(from: number, byLine: boolean, columns: number, rows: number, bytes: number, validText: boolean): ScanEnd {
    const scannerExports = this.#scannerExports;
    const scannedRows = scannerExports.scan(
      from,
      Number(byLine),
      columns,
      Math.min(rows, scannedRowsMax),
      Math.min(bytes, 0x7fff_ffff),
      Number(validText),
    );
    return {
      rows: scannedRows,
      at: scannerExports.at.value as number,
      bytes: scannerExports.bytesTaken.value as number,
      afterRow: scannerExports.afterRow.value !== 0,
      surprised: scannerExports.surprised.value !== 0,
      deferred: scannerExports.deferred.value as number,
    };
  }

  deferredCell(i: number): DeferredCell {
    const deferredWord = deferredCellsAt / 4 + i * 4;
    const [row, column, start, end] = this.#scannerWords.subarray(deferredWord, deferredWord + 4) as unknown as [
      number,
      number,
      number,
      number,
    ];
    return { row, column, start, end };
  }

  /** NULL marks of the latest run's rows; null when there is none. */
  nulls(column: number, rows: number): Uint8Array | null {
    if (this.#scannerWords[scanColumnsAt / 4 + column * 4 + 3] === 0) return null;
    const columnNulls = this.#columnViewsOf(column).nulls.subarray(0, rows);
    return columnNulls.includes(1) ? columnNulls : null;
  }

  offsets(column: number): Uint32Array {
    return this.#columnViewsOf(column).offsets;
  }

  heap(column: number): Uint8Array {
    return this.#columnViewsOf(column).heap;
  }

  numbers(column: number): Float64Array {
    return this.#columnViewsOf(column).f64;
  }

  booleans(column: number): Uint8Array {
    return this.#columnViewsOf(column).bool;
  }

  timestamps(column: number): BigInt64Array {
    return this.#columnViewsOf(column).i64;
  }

  /** Integers in the narrowest layout that holds them all. */
  integers(column: number, rows: number): Int32Array | Float64Array | BigInt64Array {
    const columnViews = this.#columnViewsOf(column);
    switch (this.#scannerExports.narrow(column, rows)) {
      case 0:
        return columnViews.narrowI32;
      case 1:
        return columnViews.narrowF64;
      default:
        return columnViews.i64;
    }
  }

  #columnViewsOf(column: number): ScannedColumnViews {
    return (this.#columnViews[column] ??= this.#newColumnViews(column));
  }

  #newColumnViews(column: number): ScannedColumnViews {
    const { buffer: scannerMemory } = this.#scannerExports.memory;
    const cellsOffset = scannedCellsAt + column * scannedColumnBytes;
    return {
      nulls: new Uint8Array(scannerMemory, cellsOffset, scannedRowsMax),
      offsets: new Uint32Array(scannerMemory, cellsOffset + scannedValuesAt, scannedRowsMax + 1),
      heap: new Uint8Array(scannerMemory, cellsOffset + scannedHeapAt, scannedTextBytes),
      f64: new Float64Array(scannerMemory, cellsOffset + scannedValuesAt, scannedRowsMax),
      i64: new BigInt64Array(scannerMemory, cellsOffset + scannedValuesAt, scannedRowsMax),
      bool: new Uint8Array(scannerMemory, cellsOffset + scannedValuesAt, scannedRowsMax),
      narrowI32: new Int32Array(scannerMemory, cellsOffset + narrowedValuesAt, scannedRowsMax),
      narrowF64: new Float64Array(scannerMemory, cellsOffset + narrowedValuesAt, scannedRowsMax),
    };
  }
}

let sharedRowScanner: RowScanner | null = null;

export function sharedScanner(): RowScanner {
  return (sharedRowScanner ??= new RowScanner());
}
