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
const HEAP_MAX = 16 * 1024 * 1024;
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
  readonly #arrays: RowArrays;
  #length = 0;
  #extent: { readonly length: number } | null = null;
  /** Null while row i stands at `base` + i. */
  #deltas: Int32Array | null = null;
  readonly #closings: Closings;
  readonly #valid: ValidBounds;
  readonly #codes = {
    paths: new CodeColumn(0),
    ops: new CodeColumn(0),
    provenances: new CodeColumn(0),
    previous: new CodeColumn(NO_ROW),
    nextLive: new CodeColumn(NO_ROW),
  };
  /** Closings and chain that a checkpoint is about to read: the next change leaves it a copy. */
  #captured: SegmentChanges | null = null;
  /** `before` is the segment that this one follows: a full one tells how much room columns need. */
  constructor(firstRow: number, base: number, space: ColumnSpace, before: Segment | null = null) {
    this.firstRow = firstRow;
    this.base = base;
    this.#arrays = new RowArrays(space.extents());
    this.#closings = new Closings(base, this.#arrays);
    this.#valid = new ValidBounds(this.#arrays);
    const full = before?.length === SEGMENT_ROWS ? before : null;
    this.cells = new SegmentColumns(this, this.#arrays.extents, full?.cells ?? null);
    if (full) this.#reserve(SEGMENT_ROWS);
  }

  get paths(): CodeColumn {
    return this.#codes.paths;
  }

  get ops(): CodeColumn {
    return this.#codes.ops;
  }

  get provenances(): CodeColumn {
    return this.#codes.provenances;
  }

  /** Row number of the version of the same key before this one. */
  get previous(): CodeColumn {
    return this.#codes.previous;
  }

  /** Row number of the next older open version of the same key; meaningful while this one is open. */
  get nextLive(): CodeColumn {
    return this.#codes.nextLive;
  }

  setNextLive(row: number, next: number): void {
    if (this.#captured) this.#leaveCopy(this.#captured);
    this.#codes.nextLive.set(row, next, this.#arrays.capacity);
  }

  get keys(): SegmentColumn {
    return this.cells.keys;
  }

  get length(): number {
    return this.#length;
  }

  get capacity(): number {
    return this.#arrays.capacity;
  }

  get liveCount(): number {
    return this.#closings.liveCount;
  }

  get removedCount(): number {
    return this.#closings.removedCount;
  }

  /** Least and greatest closing position of versions that something superseded. */
  get closedLeast(): number {
    return this.#closings.least;
  }

  get closedMost(): number {
    return this.#closings.most;
  }

  /** Positions of the rows, counted from `base`; null while they are dense. */
  get deltas(): Int32Array | null {
    return this.#deltas;
  }

  /** Null while nothing was closed. */
  get closings(): Int32Array | Float64Array | null {
    return this.#closings.values;
  }

  /** Null while every version is valid from its own system_from. */
  get validFrom(): BigInt64Array | null {
    return this.#valid.from;
  }

  /** Null while every version is valid for ever. */
  get validTo(): BigInt64Array | null {
    return this.#valid.to;
  }

  validZone(): ValidZone {
    return this.#valid.zone(this.#length);
  }

  /** One bit a row, 1 = open; null while every row is. */
  get live(): Int32Array | null {
    return this.#closings.live;
  }

  /** Rises when cells were wiped: earlier summaries may be looser than need be. */
  get removals(): number {
    return this.#closings.removals;
  }

  get full(): boolean {
    return this.#length === SEGMENT_ROWS || this.cells.heapBytes > HEAP_MAX;
  }

  /** How many rows from `position` on can still be appended. */
  room(position: number): number {
    if (this.full) return 0;
    return Math.max(0, Math.min(SEGMENT_ROWS - this.#length, this.base + DELTA_MAX - position + 1));
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
    const first = this.#length;
    const length = first + count;
    assert(count <= this.room(position), 'rows fit the segment');
    this.#reserve(length);
    const delta = position - this.base;
    if (delta !== first && !this.#deltas) this.#spellDeltas();
    if (this.#deltas) for (let i = 0; i < count; i++) this.#deltas[first + i] = delta + i;
    this.#closings.extend(first, length);
    this.paths.fill(path, first, length, this.#arrays.capacity);
    this.provenances.fill(provenance, first, length, this.#arrays.capacity);
    this.#length = length;
    return first;
  }

  /** Bounds of rows that were just extended; null vectors and null cells mean own system_from and FOREVER. */
  setValid(from: Vector, to: Vector, source: number, first: number, count: number, timeline: Timeline): void {
    this.#valid.set(from, to, { source, first, count }, (target, firstRow, rows) =>
      timeline.writeTimes(target, this, null, firstRow, rows, false),
    );
  }

  positionOf(row: number): number {
    return this.base + (this.#deltas ? this.#deltas[row]! : row);
  }

  /** Position that superseded the version; Infinity while none did. */
  closingOf(row: number): number {
    return this.#closings.closingOf(row);
  }

  isOpen(row: number): boolean {
    return this.#closings.isOpen(row);
  }

  isRemoved(row: number): boolean {
    return this.#closings.isRemoved(row);
  }

  /** The first row from there on that is removed; its length where none is. */
  removedAtOrAfter(row: number): number {
    const removedRow = this.#closings.removedFrom(row);
    return removedRow < 0 ? this.#length : Math.min(removedRow, this.#length);
  }

  close(row: number, position: number): void {
    if (this.#captured) this.#leaveCopy(this.#captured);
    this.#closings.close(row, position, this.#length);
  }

  /** Makes room for closings, so that the first one costs no more than the next. */
  expectClosings(): void {
    this.#closings.expect(this.#length);
  }

  /** Takes versions out of every scan at every basis for good; their cells, keys and bounds are not readable any more. */
  remove(rows: readonly number[], timeline: Timeline): void {
    for (const row of rows) {
      this.drop(row);
      this.#valid.clear(row, this.positionOf(row), timeline);
    }
    this.#valid.forgetZone();
    this.cells.clear(rows);
  }

  /** A row that was just appended came without key and cells: it is as one that was removed. */
  drop(row: number): void {
    if (this.#captured) this.#leaveCopy(this.#captured);
    this.#closings.remove(row, this.#length);
  }

  /** First row at or after a position. */
  rowAtOrAfter(position: number): number {
    const delta = position - this.base;
    const deltas = this.#deltas;
    if (!deltas) return Math.max(0, Math.min(this.#length, delta));
    let low = 0;
    let high = this.#length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (deltas[middle]! < delta) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** No row follows: every array moves to an extent of just its length, where kernels read it. */
  seal(): void {
    if (this.#arrays.sealed) return;
    this.#arrays.sealed = true;
    const length = this.#length;
    const { extents } = this.#arrays;
    this.#arrays.capacity = length;
    this.cells.seal(length);
    for (const codes of Object.values(this.#codes)) codes.seal(length, extents);
    if (this.#deltas) this.#deltas = extents.settle(this.#deltas, length);
    this.#closings.seal(length);
    this.#valid.seal(length);
  }

  /** Stands for the cells that are there: another one once rows were added. */
  get extent(): object {
    if (this.#extent?.length !== this.#length) this.#extent = { length: this.#length };
    return this.#extent;
  }

  get sealed(): boolean {
    return this.#arrays.sealed;
  }

  get bytes(): number {
    let total = (this.#deltas?.byteLength ?? 0) + this.#closings.bytes + this.#valid.bytes + this.cells.bytes;
    for (const codes of Object.values(this.#codes)) total += codes.values?.byteLength ?? 0;
    return total;
  }

  savedState(): SegmentState {
    const length = this.#length;
    return {
      firstRow: this.firstRow,
      base: this.base,
      length,
      deltas: this.#deltas?.slice(0, length) ?? null,
      closings: this.#closings.values?.slice(0, length) ?? null,
      validFrom: this.#valid.from?.slice(0, length) ?? null,
      validTo: this.#valid.to?.slice(0, length) ?? null,
      paths: this.paths.savedState(length),
      ops: this.ops.savedState(length),
      provenances: this.provenances.savedState(length),
      previous: this.previous.savedState(length),
      nextLive: this.nextLive.savedState(length),
      ...this.cells.savedState(false),
    };
  }

  /** Over the arrays of `state`, as a head: it may take more rows, or be sealed. */
  static fromSaved(state: SegmentState, dictionaryOf: DictionaryOf, space: ColumnSpace): Segment {
    const segment = Segment.#frame(state, state, space);
    segment.cells.fill(state, dictionaryOf);
    return segment;
  }

  /** A sealed segment whose columns are all out of memory. */
  static resting(
    parts: Omit<FixedSegmentState, 'keys' | 'columns'>,
    changes: SegmentChanges,
    columns: RestingColumns,
    dictionaryOf: DictionaryOf,
    keeper: SegmentKeeper,
    space: ColumnSpace,
  ): Segment {
    const segment = Segment.#frame(parts, changes, space);
    segment.seal();
    segment.cells.rest(columns, changes.widened);
    segment.cells.restOn(columns, 0, dictionaryOf, keeper);
    return segment;
  }

  /** All but keys and columns. */
  static #frame(
    state: Omit<FixedSegmentState, 'keys' | 'columns'>,
    changes: Pick<SegmentChanges, 'closings' | 'nextLive'>,
    space: ColumnSpace,
  ): Segment {
    const segment = new Segment(state.firstRow, state.base, space);
    const { extents } = segment.#arrays;
    const { length } = state;
    segment.#length = length;
    segment.#arrays.capacity = length;
    segment.#deltas = state.deltas;
    segment.#closings.restore(changes.closings, length);
    segment.#valid.from = state.validFrom;
    segment.#valid.to = state.validTo;
    for (const name of ['paths', 'ops', 'provenances', 'previous'] as const) {
      segment.#codes[name] = CodeColumn.fromSaved(state[name], extents);
    }
    segment.#codes.nextLive = CodeColumn.fromSaved(changes.nextLive, extents);
    segment.cells.keepFormers(state.formers);
    return segment;
  }

  /** By reference: good while the version stays what it is and none of the columns leaves memory. */
  parts(beside?: AbsentColumns): FixedSegmentState {
    assert(this.#arrays.sealed, 'a segment that grows has no parts yet');
    const length = this.#length;
    return {
      firstRow: this.firstRow,
      base: this.base,
      length,
      deltas: this.#deltas,
      validFrom: this.#valid.from,
      validTo: this.#valid.to,
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
    this.#captured = {
      closings: this.#closings.values,
      nextLive: this.nextLive.sharedState(),
      widened: this.cells.widened,
    };
    return this.#captured;
  }

  release(captured: SegmentChanges): void {
    if (this.#captured === captured) this.#captured = null;
  }

  #leaveCopy(captured: SegmentChanges): void {
    captured.closings = captured.closings?.slice(0, this.#length) ?? null;
    captured.nextLive = this.nextLive.savedState(this.#length);
    this.#captured = null;
  }

  #spellDeltas(): void {
    const deltas = (this.#deltas = this.#arrays.allocate(Int32Array));
    for (let row = 0; row < this.#length; row++) deltas[row] = row;
  }

  #reserve(rows: number): void {
    if (!this.#arrays.reserve(rows)) return;
    if (this.#deltas) this.#deltas = this.#arrays.grow(Int32Array, this.#deltas);
    this.#closings.grow();
    this.#valid.grow();
  }
}
