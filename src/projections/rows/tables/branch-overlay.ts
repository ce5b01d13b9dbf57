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

interface Touched {
  /** One bit a row. */
  readonly bits: Int32Array;
  /** Row of the segment -> position that closed it, or HIDDEN. */
  readonly closings: Map<number, number>;
}

/** Changes of one branch to one table that it inherited. Row numbers are the table's. */
export class BranchOverlay {
  readonly #segments = new Map<number, Touched>();

  close(row: number, position: number): void {
    assert(this.closingOf(row) === Infinity, 'a branch closes an inherited version once');
    this.#set(row, position);
  }

  hide(row: number): void {
    this.#set(row, HIDDEN);
  }

  /** Position that closed the row on the branch; Infinity while none did. */
  closingOf(row: number): number {
    return this.#segments.get(row >>> 16)?.closings.get(row & 0xffff) ?? Infinity;
  }

  /** Bits of the rows of a segment that have an entry; undefined when none has. */
  touchedBits(segment: number): Int32Array | undefined {
    return this.#segments.get(segment)?.bits;
  }

  /** Row and closing of every entry, by row. */
  entries(): [row: number, closing: number][] {
    const entries: [number, number][] = [];
    for (const [segment, { closings }] of this.#segments) {
      for (const [row, closing] of closings) entries.push([segment * SEGMENT_ROWS + row, closing]);
    }
    return entries.sort(([a], [b]) => a - b);
  }

  get bytes(): number {
    let total = 0;
    // A number in a hash table takes about 32 bytes.
    for (const { bits, closings } of this.#segments.values()) total += bits.byteLength + closings.size * 32;
    return total;
  }

  savedState(): Float64Array {
    return Float64Array.from(this.entries().flat());
  }

  static fromSaved(saved: Float64Array): BranchOverlay {
    const overlay = new BranchOverlay();
    for (let i = 0; i < saved.length; i += 2) overlay.#set(saved[i]!, saved[i + 1]!);
    return overlay;
  }

  #set(row: number, closing: number): void {
    const number = row >>> 16;
    const at = row & 0xffff;
    let segment = this.#segments.get(number);
    if (!segment) this.#segments.set(number, (segment = { bits: new Int32Array(SEGMENT_ROWS >>> 5), closings: new Map() }));
    segment.bits[at >>> 5]! |= 1 << (at & 31);
    segment.closings.set(at, closing);
  }
}

/** Types of columns as the branch declares them; undefined for those that it does not. */
export type DeclaredTypes = (column: string) => ColumnType | undefined;

/** An inherited table as one branch sees it: the rows below `end`, as the overlays of the branches in between left them. */
export class Inherited {
  readonly end: number;
  /** Each with the position from which on its changes are not the reader's: where the next branch was forked from it. */
  readonly #overlays: readonly { readonly overlay: BranchOverlay; readonly end: number }[];
  readonly #types: DeclaredTypes;

  constructor(end: number, overlays: readonly { readonly overlay: BranchOverlay; readonly end: number }[], types: DeclaredTypes) {
    this.end = end;
    this.#overlays = overlays;
    this.#types = types;
  }

  /** Position at which a branch closed the row, Infinity when none did, HIDDEN when one removed it. */
  closingOf(row: number): number {
    let least = Infinity;
    for (const { overlay, end } of this.#overlays) {
      const closing = overlay.closingOf(row);
      // HIDDEN is below every fork: a removal takes the row from all that was ever forked from the branch, as one on main does.
      if (closing < end && closing < least) least = closing;
    }
    return least;
  }

  touches(segment: Segment): boolean {
    return this.#overlays.some(({ overlay }) => overlay.touchedBits(segment.firstRow >>> 16) !== undefined);
  }

  /** Rows of a segment that some overlay has an entry for, ascending. */
  changedRows(segment: Segment): number[] {
    const rows: number[] = [];
    this.#touchedBits(segment)?.forEach((word, index) => {
      for (let bits = word; bits !== 0; bits &= bits - 1) rows.push((index << 5) + 31 - Math.clz32(bits & -bits));
    });
    return rows;
  }

  /**
   * The rows among first .. end-1, or among `rows`, that are not hidden and, given a bound, not closed below it; null: all
   * of first .. end-1.
   */
  keep(segment: Segment, rows: Int32Array | null, first: number, end: number, openAt: number | null): Int32Array | null {
    const bits = this.#touchedBits(segment);
    if (!bits) return rows;
    const count = rows ? rows.length : end - first;
    const selectedRows = new Int32Array(count);
    let used = 0;
    for (let k = 0; k < count; k++) {
      const row = rows ? rows[k]! : first + k;
      if ((bits[row >>> 5]! & (1 << (row & 31))) !== 0) {
        const closing = this.closingOf(segment.firstRow + row);
        if (closing === HIDDEN || (openAt !== null && closing < openAt)) continue;
      }
      selectedRows[used++] = row;
    }
    return used === count ? rows : selectedRows.slice(0, used);
  }

  /** Bits of the rows that some overlay has an entry for; null when none has. */
  #touchedBits(segment: Segment): Int32Array | null {
    const each = this.#overlays.flatMap(({ overlay }) => overlay.touchedBits(segment.firstRow >>> 16) ?? []);
    if (each.length <= 1) return each[0] ?? null;
    const merged = new Int32Array(SEGMENT_ROWS >>> 5);
    for (const bits of each) for (let word = 0; word < merged.length; word++) merged[word]! |= bits[word]!;
    return merged;
  }

  /** A column of a segment in the type that the branch declares, whatever became of it elsewhere since the fork. */
  column(segment: Segment, name: string): SegmentColumn | undefined {
    const type = this.#types(name);
    return type === undefined ? segment.column(name) : segment.columnAs(name, type, segment.rowAtOrAfter(this.end));
  }

  /** True when the segments' own values of a column are what the branch reads, so that their extremes mean something. */
  readsAsStored(name: string, stored: ColumnType | undefined): boolean {
    const type = this.#types(name);
    return type === undefined || type === stored;
  }
}
