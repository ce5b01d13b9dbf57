/**
 * Up to 65,536 row versions of one type in position order, as columns. Invariants:
 *
 * - positions rise with the row; a version is known below its bound, so "known at P" is a prefix of the rows;
 * - a version is visible at bound P when its position < P and its closing >= P (`closings.ts`); of one that was removed for good, or
 *   came without its cells, only its position and its closing are left;
 * - once a segment is sealed (another one follows) no row is added; closings, chains, removals and wider types still change it;
 * - the columns of a sealed segment that rests on a file may leave memory (`segment-columns.ts`): a view of one is good until
 *   its reader next yields.
 */
import { assert } from '../../../errors.ts';
import type { Vector } from '../../../log/values/columns.ts';
import type { ColumnType } from '../../../log/values/value.ts';
import type { Timeline } from '../../../log/values/timeline.ts';
import type { ByteDictionary } from '../cells/byte-dictionary.ts';
import { CodeColumn } from '../cells/code-column.ts';
import type { ColumnSpace } from '../cells/column-extents.ts';
import { Closings, DELTA_MAX } from './closings.ts';
import { RowArrays } from './row-arrays.ts';
import { SEGMENT_ROWS, type SegmentColumn } from './segment-column.ts';
import { type AbsentColumns, SegmentColumns, type SegmentKeeper } from './segment-columns.ts';
import { ValidBounds, type ValidZone } from './valid-bounds.ts';
import type { DictionaryOf, RestingColumns, SegmentChanges, FixedSegmentState, SegmentState } from './segment-state.ts';

/** A segment is full with so many bytes of texts in one column: growing the heap of a larger one would copy all of it within a turn. */
const SEGMENT_HEAP_MAX = 16 * 1024 * 1024;
export const NO_ROW = -1;

export class Segment {
  /** First row number of the segment in its table. */
  readonly firstRow: number;
  /** Position that `deltas` and `closings` count from. */
  readonly base: number;
  /** Stands for it where it must not be named. */
  readonly segmentKey: object = Object.freeze({});
  /** Keys and columns, and whether they are in memory. */
  readonly cells: SegmentColumns;
  readonly #rowArrays: RowArrays;
  #segmentLength = 0;
  #segmentExtent: { readonly length: number } | null = null;
  /** Null while row i stands at `base` + i. */
  #positionDeltas: Int32Array | null = null;
  readonly #segmentClosings: Closings;
  readonly #validBounds: ValidBounds;
  readonly #codeColumns = {
    paths: new CodeColumn(0),
    ops: new CodeColumn(0),
    provenances: new CodeColumn(0),
    previous: new CodeColumn(NO_ROW),
    nextLive: new CodeColumn(NO_ROW),
  };
  /** Closings and chain that a checkpoint is about to read: the next change leaves it a copy. */
  #capturedChanges: SegmentChanges | null = null;
  /** `segmentBefore` is the segment that this one follows: a full one tells how much room columns need. */
  constructor(firstRow: number, base: number, space: ColumnSpace, segmentBefore: Segment | null = null) {
    this.firstRow = firstRow;
    this.base = base;
    this.#rowArrays = new RowArrays(space.extents());
    this.#segmentClosings = new Closings(base, this.#rowArrays);
    this.#validBounds = new ValidBounds(this.#rowArrays);
    const fullSegment = segmentBefore?.length === SEGMENT_ROWS ? segmentBefore : null;
    this.cells = new SegmentColumns(this, this.#rowArrays.extents, fullSegment?.cells ?? null);
    if (fullSegment) this.#reserveSegmentRows(SEGMENT_ROWS);
  }

  get paths(): CodeColumn {
    return this.#codeColumns.paths;
  }

  get ops(): CodeColumn {
    return this.#codeColumns.ops;
  }

  get provenances(): CodeColumn {
    return this.#codeColumns.provenances;
  }

  /** Row number of the version of the same key before this one. */
  get previous(): CodeColumn {
    return this.#codeColumns.previous;
  }

  /** Row number of the next older open version of the same key; meaningful while this one is open. */
  get nextLive(): CodeColumn {
    return this.#codeColumns.nextLive;
  }

  setNextLive(row: number, nextLiveRow: number): void {
    if (this.#capturedChanges) this.#leaveCapturedCopy(this.#capturedChanges);
    this.#codeColumns.nextLive.set(row, nextLiveRow, this.#rowArrays.capacity);
  }

  get keys(): SegmentColumn {
    return this.cells.keys;
  }

  get length(): number {
    return this.#segmentLength;
  }

  get capacity(): number {
    return this.#rowArrays.capacity;
  }

  get liveCount(): number {
    return this.#segmentClosings.liveCount;
  }

  get removedCount(): number {
    return this.#segmentClosings.removedCount;
  }

  /** Least and greatest closing position of versions that something superseded. */
  get closedLeast(): number {
    return this.#segmentClosings.least;
  }

  get closedMost(): number {
    return this.#segmentClosings.most;
  }

  /** Positions of the rows, counted from `base`; null while they are dense. */
  get deltas(): Int32Array | null {
    return this.#positionDeltas;
  }

  /** Null while nothing was closed. */
  get closings(): Int32Array | Float64Array | null {
    return this.#segmentClosings.values;
  }

  /** Null while every version is valid from its own system_from. */
  get validFrom(): BigInt64Array | null {
    return this.#validBounds.from;
  }

  /** Null while every version is valid for ever. */
  get validTo(): BigInt64Array | null {
    return this.#validBounds.to;
  }

  validZone(): ValidZone {
    return this.#validBounds.zone(this.#segmentLength);
  }

  /** One bit a row, 1 = open; null while every row is. */
  get live(): Int32Array | null {
    return this.#segmentClosings.live;
  }

  /** Rises when cells were wiped: earlier summaries may be looser than need be. */
  get removals(): number {
    return this.#segmentClosings.removals;
  }

  get full(): boolean {
    return this.#segmentLength === SEGMENT_ROWS || this.cells.heapBytes > SEGMENT_HEAP_MAX;
  }

  /** How many rows from `position` on can still be appended. */
  room(position: number): number {
    if (this.full) return 0;
    return Math.max(0, Math.min(SEGMENT_ROWS - this.#segmentLength, this.base + DELTA_MAX - position + 1));
  }

  column(name: string): SegmentColumn | undefined {
    return this.cells.column(name);
  }

  columnNames(): readonly string[] {
    return this.cells.names();
  }

  columnFor(name: string, type: ColumnType, dictionary: ByteDictionary | null): SegmentColumn {
    return this.cells.columnFor(name, type, dictionary);
  }

  /** Cells of a column under a wider type. */
  widen(name: string, type: ColumnType, keepFormer: boolean): void {
    this.cells.widen(name, type, keepFormer);
  }

  /** The first `rows` cells of a column as `type`; undefined when none of them had such a type. */
  columnAs(name: string, type: ColumnType, rows: number): SegmentColumn | undefined {
    return this.cells.columnAs(name, type, rows);
  }

  /** Takes `count` rows at `position`; cells and keys are appended to their columns by the caller. Returns the first. */
  extend(position: number, count: number, path: number, provenance: number): number {
    const first = this.#segmentLength;
    const extendedLength = first + count;
    assert(count <= this.room(position), 'rows fit the segment');
    this.#reserveSegmentRows(extendedLength);
    const positionDelta = position - this.base;
    if (positionDelta !== first && !this.#positionDeltas) this.#spellPositionDeltas();
    if (this.#positionDeltas) for (let i = 0; i < count; i++) this.#positionDeltas[first + i] = positionDelta + i;
    this.#segmentClosings.extend(first, extendedLength);
    this.paths.fill(path, first, extendedLength, this.#rowArrays.capacity);
    this.provenances.fill(provenance, first, extendedLength, this.#rowArrays.capacity);
    this.#segmentLength = extendedLength;
    return first;
  }

  /** Bounds of rows that were just extended; null vectors and null cells mean own system_from and FOREVER. */
  setValid(from: Vector, to: Vector, source: number, first: number, count: number, timeline: Timeline): void {
    this.#validBounds.set(from, to, { source, first, count }, (validTimes, firstRow, rows) =>
      timeline.writeTimes(validTimes, this, null, firstRow, rows, false),
    );
  }

  positionOf(row: number): number {
    return this.base + (this.#positionDeltas ? this.#positionDeltas[row]! : row);
  }

  /** Position that superseded the version; Infinity while none did. */
  closingOf(row: number): number {
    return this.#segmentClosings.closingOf(row);
  }

  isOpen(row: number): boolean {
    return this.#segmentClosings.isOpen(row);
  }

  isRemoved(row: number): boolean {
    return this.#segmentClosings.isRemoved(row);
  }

  /** The first row from there on that is removed; its length where none is. */
  removedAtOrAfter(row: number): number {
    const removedRow = this.#segmentClosings.removedFrom(row);
    return removedRow < 0 ? this.#segmentLength : Math.min(removedRow, this.#segmentLength);
  }

  close(row: number, position: number): void {
    if (this.#capturedChanges) this.#leaveCapturedCopy(this.#capturedChanges);
    this.#segmentClosings.close(row, position, this.#segmentLength);
  }

  /** Makes room for closings, so that the first one costs no more than the next. */
  expectClosings(): void {
    this.#segmentClosings.expect(this.#segmentLength);
  }

  /** Takes versions out of every scan at every basis for good; their cells, keys and bounds are not readable any more. */
  remove(rows: readonly number[], timeline: Timeline): void {
    for (const removedRow of rows) {
      this.drop(removedRow);
      this.#validBounds.clear(removedRow, this.positionOf(removedRow), timeline);
    }
    this.#validBounds.forgetZone();
    this.cells.clear(rows);
  }

  /** A row that was just appended came without key and cells: it is as one that was removed. */
  drop(row: number): void {
    if (this.#capturedChanges) this.#leaveCapturedCopy(this.#capturedChanges);
    this.#segmentClosings.remove(row, this.#segmentLength);
  }

  /** First row at or after a position. */
  rowAtOrAfter(position: number): number {
    const wantedDelta = position - this.base;
    const positionDeltas = this.#positionDeltas;
    if (!positionDeltas) return Math.max(0, Math.min(this.#segmentLength, wantedDelta));
    let lowRow = 0;
    let highRow = this.#segmentLength;
    while (lowRow < highRow) {
      const middleRow = (lowRow + highRow) >>> 1;
      if (positionDeltas[middleRow]! < wantedDelta) lowRow = middleRow + 1;
      else highRow = middleRow;
    }
    return lowRow;
  }

  /** No row follows: every array moves to an extent of just its length, where kernels read it. */
  seal(): void {
    if (this.#rowArrays.sealed) return;
    this.#rowArrays.sealed = true;
    const sealedLength = this.#segmentLength;
    const { extents } = this.#rowArrays;
    this.#rowArrays.capacity = sealedLength;
    this.cells.seal(sealedLength);
    for (const codeColumn of Object.values(this.#codeColumns)) codeColumn.seal(sealedLength, extents);
    if (this.#positionDeltas) this.#positionDeltas = extents.settle(this.#positionDeltas, sealedLength);
    this.#segmentClosings.seal(sealedLength);
    this.#validBounds.seal(sealedLength);
  }

  /** Stands for the cells that are there: another one once rows were added. */
  get extent(): object {
    if (this.#segmentExtent?.length !== this.#segmentLength) this.#segmentExtent = { length: this.#segmentLength };
    return this.#segmentExtent;
  }

  get sealed(): boolean {
    return this.#rowArrays.sealed;
  }

  get bytes(): number {
    let segmentBytes =
      (this.#positionDeltas?.byteLength ?? 0) + this.#segmentClosings.bytes + this.#validBounds.bytes + this.cells.bytes;
    for (const codeColumn of Object.values(this.#codeColumns)) segmentBytes += codeColumn.values?.byteLength ?? 0;
    return segmentBytes;
  }

  savedState(): SegmentState {
    const savedLength = this.#segmentLength;
    return {
      firstRow: this.firstRow,
      base: this.base,
      length: savedLength,
      deltas: this.#positionDeltas?.slice(0, savedLength) ?? null,
      closings: this.#segmentClosings.values?.slice(0, savedLength) ?? null,
      validFrom: this.#validBounds.from?.slice(0, savedLength) ?? null,
      validTo: this.#validBounds.to?.slice(0, savedLength) ?? null,
      paths: this.paths.savedState(savedLength),
      ops: this.ops.savedState(savedLength),
      provenances: this.provenances.savedState(savedLength),
      previous: this.previous.savedState(savedLength),
      nextLive: this.nextLive.savedState(savedLength),
      ...this.cells.savedState(false),
    };
  }

  /** Over the arrays of `segmentState`, as a head: it may take more rows, or be sealed. */
  static fromSaved(segmentState: SegmentState, dictionaryOf: DictionaryOf, space: ColumnSpace): Segment {
    const savedSegment = Segment.#segmentFrom(segmentState, segmentState, space);
    savedSegment.cells.fill(segmentState, dictionaryOf);
    return savedSegment;
  }

  /** A sealed segment whose columns are all out of memory. */
  static resting(
    fixedState: Omit<FixedSegmentState, 'keys' | 'columns'>,
    segmentChanges: SegmentChanges,
    columns: RestingColumns,
    dictionaryOf: DictionaryOf,
    keeper: SegmentKeeper,
    space: ColumnSpace,
  ): Segment {
    const restingSegment = Segment.#segmentFrom(fixedState, segmentChanges, space);
    restingSegment.seal();
    restingSegment.cells.rest(columns, segmentChanges.widened);
    restingSegment.cells.restOn(columns, 0, dictionaryOf, keeper);
    return restingSegment;
  }

  /** All but keys and columns. */
  static #segmentFrom(
    fixedState: Omit<FixedSegmentState, 'keys' | 'columns'>,
    segmentChanges: Pick<SegmentChanges, 'closings' | 'nextLive'>,
    space: ColumnSpace,
  ): Segment {
    const framedSegment = new Segment(fixedState.firstRow, fixedState.base, space);
    const { extents } = framedSegment.#rowArrays;
    const { length } = fixedState;
    framedSegment.#segmentLength = length;
    framedSegment.#rowArrays.capacity = length;
    framedSegment.#positionDeltas = fixedState.deltas;
    framedSegment.#segmentClosings.restore(segmentChanges.closings, length);
    framedSegment.#validBounds.from = fixedState.validFrom;
    framedSegment.#validBounds.to = fixedState.validTo;
    for (const codeName of ['paths', 'ops', 'provenances', 'previous'] as const) {
      framedSegment.#codeColumns[codeName] = CodeColumn.fromSaved(fixedState[codeName], extents);
    }
    framedSegment.#codeColumns.nextLive = CodeColumn.fromSaved(segmentChanges.nextLive, extents);
    framedSegment.cells.keepFormers(fixedState.formers);
    return framedSegment;
  }

  /** By reference: good while the version stays what it is and none of the columns leaves memory. */
  parts(beside?: AbsentColumns): FixedSegmentState {
    assert(this.#rowArrays.sealed, 'a segment that grows has no parts yet');
    const sealedLength = this.#segmentLength;
    return {
      firstRow: this.firstRow,
      base: this.base,
      length: sealedLength,
      deltas: this.#positionDeltas,
      validFrom: this.#validBounds.from,
      validTo: this.#validBounds.to,
      paths: this.paths.sharedState(),
      ops: this.ops.sharedState(),
      provenances: this.provenances.sharedState(),
      previous: this.previous.sharedState(),
      ...this.cells.savedState(true, beside),
    };
  }

  /** As they are in this turn, by reference where nothing changes until they are read; `released` says that they were. */
  capture(): SegmentChanges {
    // One reader at a time; one that gave up has no use for a copy.
    this.#capturedChanges = {
      closings: this.#segmentClosings.values,
      nextLive: this.nextLive.sharedState(),
      widened: this.cells.widened,
    };
    return this.#capturedChanges;
  }

  release(captured: SegmentChanges): void {
    if (this.#capturedChanges === captured) this.#capturedChanges = null;
  }

  #leaveCapturedCopy(capturedChanges: SegmentChanges): void {
    capturedChanges.closings = capturedChanges.closings?.slice(0, this.#segmentLength) ?? null;
    capturedChanges.nextLive = this.nextLive.savedState(this.#segmentLength);
    this.#capturedChanges = null;
  }

  #spellPositionDeltas(): void {
    const spelledDeltas = (this.#positionDeltas = this.#rowArrays.allocate(Int32Array));
    for (let row = 0; row < this.#segmentLength; row++) spelledDeltas[row] = row;
  }

  #reserveSegmentRows(rows: number): void {
    if (!this.#rowArrays.reserve(rows)) return;
    if (this.#positionDeltas) this.#positionDeltas = this.#rowArrays.grow(Int32Array, this.#positionDeltas);
    this.#segmentClosings.grow();
    this.#validBounds.grow();
  }
}
