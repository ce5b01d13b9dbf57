/**
 * A branch's changes to inherited rows: which it closed and which it removed. Its source's columns stay as they
 * are, so this is sparse: 8 KiB for a segment that was touched at all, and an entry for each row that was.
 */
import { assert } from '../../../errors.ts';
import type { ColumnType } from '../../../log/values/value.ts';
import type { Segment } from '../segments/segment.ts';
import { SEGMENT_ROWS, type SegmentColumn } from '../segments/segment-column.ts';

/** Closing of a row that a hard delete on the branch took out of it, at every basis. */
export const HIDDEN = -1;

interface TouchedSegment {
  /** One bit a row. */
  readonly bits: Int32Array;
  /** Row of the segment -> position that closed it, or HIDDEN. */
  readonly closings: Map<number, number>;
}

/** Changes of one branch to one table that it inherited. Row numbers are the table's. */
export class BranchOverlay {
  readonly #touchedSegments = new Map<number, TouchedSegment>();

  close(row: number, position: number): void {
    assert(this.closingOf(row) === Infinity, 'a branch closes an inherited version once');
    this.#setOverlayClosing(row, position);
  }

  hide(row: number): void {
    this.#setOverlayClosing(row, HIDDEN);
  }

  /** Position that closed the row on the branch; Infinity while none did. */
  closingOf(row: number): number {
    return this.#touchedSegments.get(row >>> 16)?.closings.get(row & 0xffff) ?? Infinity;
  }

  /** Bits of the rows of a segment that have an entry; undefined when none has. */
  touchedBits(segment: number): Int32Array | undefined {
    return this.#touchedSegments.get(segment)?.bits;
  }

  /** Row and closing of every entry, by row. */
  entries(): [row: number, closing: number][] {
    const overlayEntries: [number, number][] = [];
    for (const [segment, { closings }] of this.#touchedSegments) {
      for (const [row, overlayClosing] of closings) overlayEntries.push([segment * SEGMENT_ROWS + row, overlayClosing]);
    }
    return overlayEntries.sort(([a], [b]) => a - b);
  }

  get bytes(): number {
    let overlayBytes = 0;
    // A number in a hash table takes about 32 bytes.
    for (const { bits, closings } of this.#touchedSegments.values()) overlayBytes += bits.byteLength + closings.size * 32;
    return overlayBytes;
  }

  savedState(): Float64Array {
    return Float64Array.from(this.entries().flat());
  }

  static fromSaved(savedClosings: Float64Array): BranchOverlay {
    const savedOverlay = new BranchOverlay();
    for (let i = 0; i < savedClosings.length; i += 2) savedOverlay.#setOverlayClosing(savedClosings[i]!, savedClosings[i + 1]!);
    return savedOverlay;
  }

  #setOverlayClosing(row: number, overlayClosing: number): void {
    const segmentNumber = row >>> 16;
    const rowInSegment = row & 0xffff;
    let touchedSegment = this.#touchedSegments.get(segmentNumber);
    if (!touchedSegment)
      this.#touchedSegments.set(
        segmentNumber,
        (touchedSegment = { bits: new Int32Array(SEGMENT_ROWS >>> 5), closings: new Map() }),
      );
    touchedSegment.bits[rowInSegment >>> 5]! |= 1 << (rowInSegment & 31);
    touchedSegment.closings.set(rowInSegment, overlayClosing);
  }
}

/** Types of columns as the branch declares them; undefined for those that it does not. */
export type DeclaredTypes = (column: string) => ColumnType | undefined;

/** An inherited table as one branch sees it: the rows below `end`, as the overlays of the branches in between left them. */
export class Inherited {
  readonly end: number;
  /** Each with the position from which on its changes are not the reader's: where the next branch was forked from it. */
  readonly #upperOverlays: readonly { readonly overlay: BranchOverlay; readonly end: number }[];
  readonly #declaredTypes: DeclaredTypes;

  constructor(end: number, overlays: readonly { readonly overlay: BranchOverlay; readonly end: number }[], types: DeclaredTypes) {
    this.end = end;
    this.#upperOverlays = overlays;
    this.#declaredTypes = types;
  }

  /** Position at which a branch closed the row, Infinity when none did, HIDDEN when one removed it. */
  closingOf(row: number): number {
    let leastClosing = Infinity;
    for (const { overlay, end } of this.#upperOverlays) {
      const overlayClosing = overlay.closingOf(row);
      // HIDDEN is below every fork: a removal takes the row from all that was ever forked from the branch, as one on main does.
      if (overlayClosing < end && overlayClosing < leastClosing) leastClosing = overlayClosing;
    }
    return leastClosing;
  }

  touches(segment: Segment): boolean {
    return this.#upperOverlays.some(({ overlay }) => overlay.touchedBits(segment.firstRow >>> 16) !== undefined);
  }

  /** Rows of a segment that some overlay has an entry for, ascending. */
  changedRows(segment: Segment): number[] {
    const changedRowNumbers: number[] = [];
    this.#mergedTouchedBits(segment)?.forEach((touchedWord, index) => {
      for (let touchedBits = touchedWord; touchedBits !== 0; touchedBits &= touchedBits - 1)
        changedRowNumbers.push((index << 5) + 31 - Math.clz32(touchedBits & -touchedBits));
    });
    return changedRowNumbers;
  }

  /**
   * The rows among first .. end-1, or among `rows`, that are not hidden and, given a bound, not closed below it; null: all
   * of first .. end-1.
   */
  keep(segment: Segment, rows: Int32Array | null, first: number, end: number, openAt: number | null): Int32Array | null {
    const touchedBits = this.#mergedTouchedBits(segment);
    if (!touchedBits) return rows;
    const count = rows ? rows.length : end - first;
    const selectedRows = new Int32Array(count);
    let keptCount = 0;
    for (let k = 0; k < count; k++) {
      const row = rows ? rows[k]! : first + k;
      if ((touchedBits[row >>> 5]! & (1 << (row & 31))) !== 0) {
        const inheritedClosing = this.closingOf(segment.firstRow + row);
        if (inheritedClosing === HIDDEN || (openAt !== null && inheritedClosing < openAt)) continue;
      }
      selectedRows[keptCount++] = row;
    }
    return keptCount === count ? rows : selectedRows.slice(0, keptCount);
  }

  /** Bits of the rows that some overlay has an entry for; null when none has. */
  #mergedTouchedBits(segment: Segment): Int32Array | null {
    const overlayBits = this.#upperOverlays.flatMap(({ overlay }) => overlay.touchedBits(segment.firstRow >>> 16) ?? []);
    if (overlayBits.length <= 1) return overlayBits[0] ?? null;
    const mergedBits = new Int32Array(SEGMENT_ROWS >>> 5);
    for (const touchedBits of overlayBits)
      for (let touchedWord = 0; touchedWord < mergedBits.length; touchedWord++)
        mergedBits[touchedWord]! |= touchedBits[touchedWord]!;
    return mergedBits;
  }

  /** A column of a segment in the type that the branch declares, whatever became of it elsewhere since the fork. */
  column(segment: Segment, name: string): SegmentColumn | undefined {
    const declaredType = this.#declaredTypes(name);
    return declaredType === undefined
      ? segment.column(name)
      : segment.columnAs(name, declaredType, segment.rowAtOrAfter(this.end));
  }

  /** True when the segments' own values of a column are what the branch reads, so that their extremes mean something. */
  readsAsStored(name: string, stored: ColumnType | undefined): boolean {
    const declaredType = this.#declaredTypes(name);
    return declaredType === undefined || declaredType === stored;
  }
}
