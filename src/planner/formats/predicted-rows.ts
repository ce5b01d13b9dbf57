/**
 * Rows that look like those before them, taken many at a time: learns which columns come in which order from rows that the
 * general reader has read, and has the scanner read on until a row is of another shape. Invariants: every row taken here is the
 * row that the general reader would have taken, bytes counted alike, so that a body gives the same batches with and without; a
 * row that would be refused is never taken.
 */
import { ServiceError } from '../../errors.ts';
import type { ColumnSet } from './column-set.ts';
import { instantAt } from './instant-text.ts';
import { latin1 } from './json-tokens.ts';
import { RowScanner, type ScanColumn, type ScanEnd, scanKind, sharedScanner } from './row-scanner.ts';
import type { RowTape } from './row-tape.ts';

/** A run shorter than this was hardly worth its start. */
const predictedRunRowsMin = 8;
/** Rows that the general reader is left with, at the most, before a run is tried again. */
const predictionPauseMax = 1024;
/** Bytes are moved into the scanner again when it has less than this left. */
const predictedBytesMin = 16_384;

export interface RunLimits {
  readonly byLine: boolean;
  readonly rows: number;
  readonly bytes: number;
}

export class PredictedRows {
  readonly #predictedColumns: ColumnSet;
  readonly #predictedBytesMin: number;
  /** Columns in the order in which rows name them. */
  #predictedSlots: number[] = [];
  /** Rows that the general reader still reads. */
  #predictionPause = 1;
  /** Short runs in a row. */
  #shortRunCount = 0;
  /** The range of the window that the scanner has loaded. */
  #loadedWindowFrom = 0;
  #loadedWindowTo = 0;

  /** A run is tried where at least `bytesMin` bytes are there. */
  constructor(predictedColumns: ColumnSet, bytesMin: number) {
    this.#predictedColumns = predictedColumns;
    this.#predictedBytesMin = bytesMin;
  }

  /** The window's bytes have moved, or there are more. */
  invalidate(): void {
    this.#loadedWindowTo = 0;
  }

  /** The row on the tape was read the general way, and taken. */
  learn(learnedTape: RowTape): void {
    if (--this.#predictionPause > 0) return;
    const predictedSlots = this.#predictedSlots;
    let columnAt = 0;
    for (let i = 0; i < learnedTape.count; i++) {
      const learnedSlot = learnedTape.slots[i]!;
      if (predictedSlots[columnAt] === learnedSlot) {
        columnAt++;
        continue;
      }
      const knownOrdinal = predictedSlots.indexOf(learnedSlot);
      if (knownOrdinal < 0) predictedSlots.splice(columnAt++, 0, learnedSlot);
      else if (knownOrdinal > columnAt) columnAt = knownOrdinal + 1;
      else return this.#reorderSlots(learnedTape);
    }
  }

  /** A row that was refused, or was no row. */
  pass(): void {
    this.#predictionPause--;
  }

  /** Takes rows from `windowFrom` on; null when none could be taken. */
  read(window: Uint8Array, windowFrom: number, windowTo: number, validText: boolean, runLimits: RunLimits): ScanEnd | null {
    if (this.#predictionPause > 0 || windowTo - windowFrom < this.#predictedBytesMin || this.#predictedSlots.length === 0)
      return null;
    const rowScanner = sharedScanner();
    if (rowScanner.owner !== this || windowFrom < this.#loadedWindowFrom || this.#isWindowNearlyRead(windowFrom, windowTo)) {
      this.#loadedWindowFrom = windowFrom;
      this.#loadedWindowTo = windowFrom + rowScanner.load(this, window, windowFrom, windowTo);
    }
    const scanShape = this.#predictedSlots.map(
      (slot): ScanColumn => ({ name: this.#predictedColumns.names[slot]!, kind: this.#predictedColumns.scanKindOf(slot) }),
    );
    if (!rowScanner.useShape(scanShape)) {
      this.#predictionPause = predictionPauseMax;
      return null;
    }
    const { byLine, rows, bytes } = runLimits;
    const scanRows = (rowsMax: number): ScanEnd =>
      rowScanner.scan(windowFrom - this.#loadedWindowFrom, byLine, scanShape.length, rowsMax, bytes, validText);
    let scanEnd = scanRows(rows);
    const soundRowCount = this.#fillDeferredCells(rowScanner, scanShape, scanEnd.deferred);
    if (soundRowCount >= 0) {
      scanEnd = scanRows(soundRowCount);
      this.#fillDeferredCells(rowScanner, scanShape, scanEnd.deferred);
    }
    const windowEnd = scanEnd.at + this.#loadedWindowFrom;
    this.#judgeRun(scanEnd.rows, soundRowCount >= 0 || scanEnd.surprised, this.#loadedWindowTo - windowEnd);
    if (scanEnd.rows === 0) return null;
    this.#predictedColumns.takeRun(rowScanner, this.#predictedSlots, scanEnd.rows);
    return { ...scanEnd, at: windowEnd };
  }

  /** Row of the first cell that the general reader refuses; negative when there is none. */
  #fillDeferredCells(rowScanner: RowScanner, scanShape: readonly ScanColumn[], deferredCount: number): number {
    const { text: scannedText } = rowScanner;
    for (let i = 0; i < deferredCount; i++) {
      const { row, column, start, end } = rowScanner.deferredCell(i);
      if (scanShape[column]!.kind === scanKind.number) {
        const deferredNumber = Number(latin1(scannedText, start, end));
        if (!Number.isFinite(deferredNumber)) return row;
        rowScanner.numbers(column)[row] = deferredNumber;
        continue;
      }
      try {
        rowScanner.timestamps(column)[row] = instantAt(scannedText, start, end);
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        return row;
      }
    }
    return -1;
  }

  /** After a surprise the general reader has a row; where surprises are many, more and more of them. */
  #judgeRun(rows: number, isSurprised: boolean, leftBytes: number): void {
    if (!isSurprised) return;
    // At the end of the bytes every run ends so; the general reader finds out that they are too few.
    const isAtWindowEnd =
      leftBytes < this.#predictedBytesMin || (this.#loadedWindowTo - this.#loadedWindowFrom === RowScanner.textBytes && rows > 0);
    if (rows >= predictedRunRowsMin) this.#shortRunCount = 0;
    else if (!isAtWindowEnd) this.#shortRunCount++;
    if (!isAtWindowEnd) this.#predictionPause = Math.min(predictionPauseMax, 2 ** this.#shortRunCount);
  }

  #isWindowNearlyRead(from: number, to: number): boolean {
    return this.#loadedWindowTo < to && this.#loadedWindowTo - from < predictedBytesMin;
  }

  /** The row's own order, and behind it what else there is. */
  #reorderSlots(tape: RowTape): void {
    const tapeSlots = [...tape.slots.subarray(0, tape.count)];
    this.#predictedSlots = [...tapeSlots, ...this.#predictedSlots.filter((slot) => !tapeSlots.includes(slot))];
  }
}
