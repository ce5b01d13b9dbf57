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
const runRowsMin = 8;
/** Rows that the general reader is left with, at the most, before a run is tried again. */
const pauseMax = 1024;
/** Bytes are moved into the scanner again when it has less than this left. */
const leftBytesMin = 16_384;

export interface RunLimits {
  readonly byLine: boolean;
  readonly rows: number;
  readonly bytes: number;
}

export class PredictedRows {
  readonly #columns: ColumnSet;
  readonly #bytesMin: number;
  /** Columns in the order in which rows name them. */
  #order: number[] = [];
  /** Rows that the general reader still reads. */
  #pause = 1;
  /** Short runs in a row. */
  #short = 0;
  /** The range of the window that the scanner has loaded. */
  #loadedFrom = 0;
  #loadedTo = 0;

  /** A run is tried where at least `bytesMin` bytes are there. */
  constructor(columns: ColumnSet, bytesMin: number) {
    this.#columns = columns;
    this.#bytesMin = bytesMin;
  }

  /** The window's bytes have moved, or there are more. */
  invalidate(): void {
    this.#loadedTo = 0;
  }

  /** The row on the tape was read the general way, and taken. */
  learn(tape: RowTape): void {
    if (--this.#pause > 0) return;
    const order = this.#order;
    let columnAt = 0;
    for (let i = 0; i < tape.count; i++) {
      const slot = tape.slots[i]!;
      if (order[columnAt] === slot) {
        columnAt++;
        continue;
      }
      const known = order.indexOf(slot);
      if (known < 0) order.splice(columnAt++, 0, slot);
      else if (known > columnAt) columnAt = known + 1;
      else return this.#reorder(tape);
    }
  }

  /** A row that was refused, or was no row. */
  pass(): void {
    this.#pause--;
  }

  /** Takes rows from `from` on; null when none could be taken. */
  read(window: Uint8Array, from: number, to: number, validText: boolean, limits: RunLimits): ScanEnd | null {
    if (this.#pause > 0 || to - from < this.#bytesMin || this.#order.length === 0) return null;
    const scanner = sharedScanner();
    if (scanner.owner !== this || from < this.#loadedFrom || this.#isNearlyRead(from, to)) {
      this.#loadedFrom = from;
      this.#loadedTo = from + scanner.load(this, window, from, to);
    }
    const shape = this.#order.map(
      (slot): ScanColumn => ({ name: this.#columns.names[slot]!, kind: this.#columns.scanKindOf(slot) }),
    );
    if (!scanner.useShape(shape)) {
      this.#pause = pauseMax;
      return null;
    }
    const { byLine, rows, bytes } = limits;
    const scan = (rowsMax: number): ScanEnd =>
      scanner.scan(from - this.#loadedFrom, byLine, shape.length, rowsMax, bytes, validText);
    let end = scan(rows);
    const sound = this.#fillDeferred(scanner, shape, end.deferred);
    if (sound >= 0) {
      end = scan(sound);
      this.#fillDeferred(scanner, shape, end.deferred);
    }
    const at = end.at + this.#loadedFrom;
    this.#judge(end.rows, sound >= 0 || end.surprised, this.#loadedTo - at);
    if (end.rows === 0) return null;
    this.#columns.takeRun(scanner, this.#order, end.rows);
    return { ...end, at };
  }

  /** Row of the first cell that the general reader refuses; negative when there is none. */
  #fillDeferred(scanner: RowScanner, shape: readonly ScanColumn[], count: number): number {
    const { text } = scanner;
    for (let i = 0; i < count; i++) {
      const { row, column, start, end } = scanner.deferredCell(i);
      if (shape[column]!.kind === scanKind.number) {
        const value = Number(latin1(text, start, end));
        if (!Number.isFinite(value)) return row;
        scanner.numbers(column)[row] = value;
        continue;
      }
      try {
        scanner.timestamps(column)[row] = instantAt(text, start, end);
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        return row;
      }
    }
    return -1;
  }

  /** After a surprise the general reader has a row; where surprises are many, more and more of them. */
  #judge(rows: number, surprised: boolean, leftBytes: number): void {
    if (!surprised) return;
    // At the end of the bytes every run ends so; the general reader finds out that they are too few.
    const atTheEnd = leftBytes < this.#bytesMin || (this.#loadedTo - this.#loadedFrom === RowScanner.textBytes && rows > 0);
    if (rows >= runRowsMin) this.#short = 0;
    else if (!atTheEnd) this.#short++;
    if (!atTheEnd) this.#pause = Math.min(pauseMax, 2 ** this.#short);
  }

  #isNearlyRead(from: number, to: number): boolean {
    return this.#loadedTo < to && this.#loadedTo - from < leftBytesMin;
  }

  /** The row's own order, and behind it what else there is. */
  #reorder(tape: RowTape): void {
    const slots = [...tape.slots.subarray(0, tape.count)];
    this.#order = [...slots, ...this.#order.filter((slot) => !slots.includes(slot))];
  }
}
