/**
 * Up to 65,536 row versions of one type in position order, as columns. Invariants:
 *
 * - positions rise with the row; a version is known below its bound, so "known at P" is a prefix of the rows;
 * - `closings[row]` is the position that superseded the version, `open` while nothing did, `REMOVED` once it was removed for
 *   good, or where it came without its cells: then only its position and its closings are left;
 *   a version is visible at bound P when its position < P and its closing >= P;
 * - the live bitmap shows open versions as of the last applied entry; like `closings` it exists only once a version was closed;
 * - once a segment is sealed (another one follows) no row is added; closings, chains, removals and wider types still change it;
 * - the columns of a sealed segment that rests on a file may leave memory (`segment-columns.ts`): a view of one is good until
 *   its reader next yields.
 */
import { assert } from '../../../errors.ts';
import type { Vector } from '../../../log/values/columns.ts';
import { FOREVER } from '../../../log/values/timestamp.ts';
import type { ColumnType } from '../../../log/values/value.ts';
import type { Timeline } from '../../../log/values/timeline.ts';
import type { ByteDictionary } from '../cells/byte-dictionary.ts';
import { CodeColumn } from '../cells/code-column.ts';
import type { ColumnSpace, Extents, FixedArray, FixedKind } from '../cells/extents.ts';
import { SEGMENT_ROWS, type SegmentColumn } from './segment-column.ts';
import { type AbsentColumns, SegmentColumns, type SegmentKeeper } from './segment-columns.ts';
import type { DictionaryOf, RestingColumns, SegmentChanges, FixedSegmentState, SegmentState } from './segment-state.ts';

/** Closing of an open version, in the narrow layout of `closings`. */
export const OPEN = 2_147_483_647;
export const REMOVED = -1;
const DELTA_MAX = 2_147_483_646;
/** A segment is full with so many bytes of texts in one column: growing the heap of a larger one would copy all of it within a turn. */
const HEAP_MAX = 16 * 1024 * 1024;
export const NO_ROW = -1;

/** Extremes of the valid axis over a segment's given bounds. */
export interface ValidZone {
  readonly fromLeast: bigint;
  readonly fromMost: bigint;
  readonly toLeast: bigint;
  readonly toMost: bigint;
}

/** Extremes of the first `length` rows. */
interface Extremes {
  readonly length: number;
  readonly least: bigint;
  readonly most: bigint;
}

/** Shared memory is filled word by word, but copied in one go. */
const allOpen = new Int32Array(SEGMENT_ROWS).fill(OPEN);

const never: Extremes = { length: 0, least: FOREVER, most: FOREVER };

export class Segment {
  /** First row number of the segment in its table. */
  readonly firstRow: number;
  /** Position that `deltas` and `closings` count from. */
  readonly base: number;
  readonly #extents: Extents;
  /** Stands for it where it must not be named. */
  readonly place: object = Object.freeze({});
  /** Keys and columns, and whether they are in memory. */
  readonly cells: SegmentColumns;
  #length = 0;
  #capacity = 0;
  #sealed = false;
  #extent: { readonly length: number } | null = null;
  /** Null while row i stands at `base` + i. */
  #deltas: Int32Array | null = null;
  /** Null while nothing was closed; widened to doubles (open = Infinity) when something is closed 2^31 positions after `base`. */
  #closings: Int32Array | Float64Array | null = null;
  #validFrom: BigInt64Array | null = null;
  #validTo: BigInt64Array | null = null;
  #fromZone: Extremes = never;
  #toZone: Extremes = never;
  #live: Int32Array | null = null;
  #liveCount = 0;
  #removedCount = 0;
  #closedLeast = Infinity;
  #closedMost = -Infinity;
  #removals = 0;
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
    this.#extents = space.extents();
    const full = before?.length === SEGMENT_ROWS ? before : null;
    this.cells = new SegmentColumns(this, this.#extents, full?.cells ?? null);
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
    this.#codes.nextLive.set(row, next, this.#capacity);
  }

  get keys(): SegmentColumn {
    return this.cells.keys;
  }

  get length(): number {
    return this.#length;
  }

  get capacity(): number {
    return this.#capacity;
  }

  get liveCount(): number {
    return this.#liveCount;
  }

  get removedCount(): number {
    return this.#removedCount;
  }

  /** Least and greatest closing position of versions that something superseded. */
  get closedLeast(): number {
    return this.#closedLeast;
  }

  get closedMost(): number {
    return this.#closedMost;
  }

  /** Positions of the rows, counted from `base`; null while they are dense. */
  get deltas(): Int32Array | null {
    return this.#deltas;
  }

  /** Null while nothing was closed. */
  get closings(): Int32Array | Float64Array | null {
    return this.#closings;
  }

  /** Null while every version is valid from its own system_from. */
  get validFrom(): BigInt64Array | null {
    return this.#validFrom;
  }

  /** Null while every version is valid for ever. */
  get validTo(): BigInt64Array | null {
    return this.#validTo;
  }

  validZone(): ValidZone {
    const from = this.#validFrom ? widenExtremes(this.#fromZone, this.#validFrom, this.#length) : never;
    const to = this.#validTo ? widenExtremes(this.#toZone, this.#validTo, this.#length) : never;
    this.#fromZone = from;
    this.#toZone = to;
    return { fromLeast: from.least, fromMost: from.most, toLeast: to.least, toMost: to.most };
  }

  /** One bit a row, 1 = open; null while every row is. */
  get live(): Int32Array | null {
    return this.#live;
  }

  /** Rises when cells were wiped: earlier summaries may be looser than need be. */
  get removals(): number {
    return this.#removals;
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
    if (this.#closings) this.#closings.fill(this.#closings instanceof Int32Array ? OPEN : Infinity, first, length);
    if (this.#live) for (let row = first; row < length; row++) this.#live[row >>> 5]! |= 1 << (row & 31);
    this.paths.fill(path, first, length, this.#capacity);
    this.provenances.fill(provenance, first, length, this.#capacity);
    this.#length = length;
    this.#liveCount += count;
    return first;
  }

  /** Bounds of rows that were just extended; null vectors and null cells mean own system_from and FOREVER. */
  setValid(from: Vector, to: Vector, source: number, first: number, count: number, timeline: Timeline): void {
    assert((from.kind === 'i64' || from.kind === 'null') && (to.kind === 'i64' || to.kind === 'null'), 'bounds are 64 bits wide');
    const given = from.kind === 'i64' ? from : null;
    const ends = to.kind === 'i64' ? to : null;
    if (this.#validFrom || given) {
      const target = (this.#validFrom ??= this.#ownTimes(timeline, first));
      timeline.writeTimes(target, this, null, first, count, false);
      if (given && !given.nulls) target.set(given.values.subarray(source, source + count), first);
      else if (given)
        for (let i = 0; i < count; i++) if (given.nulls![source + i] !== 1) target[first + i] = given.values[source + i]!;
    }
    if (this.#validTo || ends) {
      const target = (this.#validTo ??= this.#array(BigInt64Array, this.#capacity).fill(FOREVER, 0, first));
      target.fill(FOREVER, first, first + count);
      if (ends && !ends.nulls) target.set(ends.values.subarray(source, source + count), first);
      else if (ends)
        for (let i = 0; i < count; i++) if (ends.nulls![source + i] !== 1) target[first + i] = ends.values[source + i]!;
    }
  }

  positionOf(row: number): number {
    return this.base + (this.#deltas ? this.#deltas[row]! : row);
  }

  /** Position that superseded the version; Infinity while none did. */
  closingOf(row: number): number {
    if (!this.#closings) return Infinity;
    const closing = this.#closings[row]!;
    return closing === OPEN && this.#closings instanceof Int32Array ? Infinity : this.base + closing;
  }

  isOpen(row: number): boolean {
    return !this.#closings || this.#closings[row] === (this.#closings instanceof Int32Array ? OPEN : Infinity);
  }

  isRemoved(row: number): boolean {
    return this.#closings !== null && this.#closings[row] === REMOVED;
  }

  /** The first row from there on that is removed; its length where none is. */
  removedAtOrAfter(row: number): number {
    const found = this.#removedCount === 0 ? -1 : this.#closings!.indexOf(REMOVED, row);
    return found < 0 ? this.#length : Math.min(found, this.#length);
  }

  close(row: number, position: number): void {
    assert(this.isOpen(row), 'a version is closed once');
    if (this.#captured) this.#leaveCopy(this.#captured);
    const delta = position - this.base;
    this.#ownClosings();
    if (delta > DELTA_MAX && this.#closings instanceof Int32Array) this.#widenClosings();
    this.#closings![row] = delta;
    this.#closedLeast = Math.min(this.#closedLeast, position);
    this.#closedMost = Math.max(this.#closedMost, position);
    this.#ownLive()[row >>> 5]! &= ~(1 << (row & 31));
    this.#liveCount--;
  }

  /** Makes room for closings, so that the first one costs no more than the next. */
  expectClosings(): void {
    this.#ownClosings();
    this.#ownLive();
  }

  /** Takes versions out of every scan at every basis for good; their cells, keys and bounds are not readable any more. */
  remove(rows: readonly number[], timeline: Timeline): void {
    for (const row of rows) {
      this.#takeOut(row);
      if (this.#validFrom) this.#validFrom[row] = timeline.timeOf(this.positionOf(row));
      if (this.#validTo) this.#validTo[row] = FOREVER;
    }
    this.#fromZone = never;
    this.#toZone = never;
    this.cells.clear(rows);
  }

  /** A row that was just appended came without key and cells: it is as one that was removed. */
  drop(row: number): void {
    this.#takeOut(row);
  }

  #takeOut(row: number): void {
    assert(!this.isRemoved(row), 'a version is removed once');
    if (this.#captured) this.#leaveCopy(this.#captured);
    if (this.isOpen(row)) {
      this.#ownLive()[row >>> 5]! &= ~(1 << (row & 31));
      this.#liveCount--;
    }
    this.#ownClosings()[row] = REMOVED;
    this.#removedCount++;
    this.#removals++;
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
    if (this.#sealed) return;
    this.#sealed = true;
    const length = this.#length;
    this.#capacity = length;
    this.cells.seal(length);
    for (const codes of Object.values(this.#codes)) codes.seal(length, this.#extents);
    if (this.#deltas) this.#deltas = this.#extents.settle(this.#deltas, length);
    if (this.#closings) this.#closings = this.#extents.settle<Int32Array | Float64Array>(this.#closings, length);
    if (this.#live) this.#live = this.#extents.settle(this.#live, this.#live.length);
    if (this.#validFrom) this.#validFrom = this.#extents.settle(this.#validFrom, length);
    if (this.#validTo) this.#validTo = this.#extents.settle(this.#validTo, length);
  }

  /** Stands for the cells that are there: another one once rows were added. */
  get extent(): object {
    if (this.#extent?.length !== this.#length) this.#extent = { length: this.#length };
    return this.#extent;
  }

  get sealed(): boolean {
    return this.#sealed;
  }

  get bytes(): number {
    let total = (this.#deltas?.byteLength ?? 0) + (this.#closings?.byteLength ?? 0) + this.cells.bytes;
    total += (this.#validFrom?.byteLength ?? 0) + (this.#validTo?.byteLength ?? 0) + (this.#live?.byteLength ?? 0);
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
      closings: this.#closings?.slice(0, length) ?? null,
      validFrom: this.#validFrom?.slice(0, length) ?? null,
      validTo: this.#validTo?.slice(0, length) ?? null,
      paths: this.paths.savedState(length),
      ops: this.ops.savedState(length),
      provenances: this.provenances.savedState(length),
      previous: this.previous.savedState(length),
      nextLive: this.nextLive.savedState(length),
      ...this.cells.saved(false),
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
    const extents = segment.#extents;
    const { length } = state;
    segment.#length = length;
    segment.#capacity = length;
    segment.#deltas = state.deltas;
    segment.#closings = changes.closings;
    segment.#validFrom = state.validFrom;
    segment.#validTo = state.validTo;
    for (const name of ['paths', 'ops', 'provenances', 'previous'] as const) {
      segment.#codes[name] = CodeColumn.fromSaved(state[name], extents);
    }
    segment.#codes.nextLive = CodeColumn.fromSaved(changes.nextLive, extents);
    segment.cells.keepFormers(state.formers);
    segment.#summarise();
    return segment;
  }

  /** By reference: good while the version stays what it is and none of the columns leaves memory. */
  parts(beside?: AbsentColumns): FixedSegmentState {
    assert(this.#sealed, 'a segment that grows has no parts yet');
    const length = this.#length;
    return {
      firstRow: this.firstRow,
      base: this.base,
      length,
      deltas: this.#deltas,
      validFrom: this.#validFrom,
      validTo: this.#validTo,
      paths: this.paths.sharedState(),
      ops: this.ops.sharedState(),
      provenances: this.provenances.sharedState(),
      previous: this.previous.sharedState(),
      ...this.cells.saved(true, beside),
    };
  }

  /** As they are in this turn, by reference where nothing changes until they are read; `released` says that they were. */
  capture(): SegmentChanges {
    // One reader at a time; one that gave up has no use for a copy.
    this.#captured = {
      closings: this.#closings,
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

  /** Recounts live rows and closing bounds from the closings. */
  #summarise(): void {
    this.#liveCount = this.#length;
    if (!this.#closings) return;
    for (let row = 0; row < this.#length; row++) {
      if (this.isOpen(row)) continue;
      this.#ownLive()[row >>> 5]! &= ~(1 << (row & 31));
      this.#liveCount--;
      if (this.isRemoved(row)) {
        this.#removedCount++;
        continue;
      }
      const position = this.closingOf(row);
      this.#closedLeast = Math.min(this.#closedLeast, position);
      this.#closedMost = Math.max(this.#closedMost, position);
    }
  }

  #ownTimes(timeline: Timeline, count: number): BigInt64Array {
    const times = this.#array(BigInt64Array, this.#capacity);
    timeline.writeTimes(times, this, null, 0, count, false);
    return times;
  }

  #ownLive(): Int32Array {
    if (!this.#live) {
      this.#live = this.#array(Int32Array, SEGMENT_ROWS >>> 5).fill(0);
      const whole = this.#length >>> 5;
      this.#live.fill(-1, 0, whole);
      if ((this.#length & 31) !== 0) this.#live[whole] = (1 << (this.#length & 31)) - 1;
    }
    return this.#live;
  }

  #ownClosings(): Int32Array | Float64Array {
    if (!this.#closings) {
      this.#closings = this.#array(Int32Array, this.#capacity);
      this.#closings.set(allOpen.subarray(0, this.#length));
    }
    return this.#closings;
  }

  #widenClosings(): void {
    const narrow = this.#closings!;
    const wide = this.#array(Float64Array, narrow.length);
    for (let row = 0; row < this.#length; row++) wide[row] = narrow[row] === OPEN ? Infinity : narrow[row]!;
    this.#closings = wide;
    this.#extents.giveBack(narrow);
  }

  #spellDeltas(): void {
    const deltas = (this.#deltas = this.#array(Int32Array, this.#capacity));
    for (let row = 0; row < this.#length; row++) deltas[row] = row;
  }

  #reserve(rows: number): void {
    if (rows <= this.#capacity) return;
    let capacity = Math.max(64, this.#capacity * 2);
    while (capacity < rows) capacity *= 2;
    this.#capacity = capacity;
    if (this.#deltas) this.#deltas = this.#growArray(Int32Array, this.#deltas);
    if (this.#closings instanceof Int32Array) this.#closings = this.#growArray(Int32Array, this.#closings);
    else if (this.#closings) this.#closings = this.#growArray(Float64Array, this.#closings);
    if (this.#validFrom) this.#validFrom = this.#growArray(BigInt64Array, this.#validFrom);
    if (this.#validTo) this.#validTo = this.#growArray(BigInt64Array, this.#validTo);
  }

  /** A segment that is expected to fill up has its arrays made where they are to rest; contents may be undefined. */
  #array<T extends FixedArray>(kind: FixedKind<T>, length: number): T {
    return this.#sealed || this.#capacity >= SEGMENT_ROWS ? this.#extents.allocate(kind, length) : new kind(length);
  }

  #growArray<T extends FixedArray>(kind: FixedKind<T>, from: T): T {
    const to = this.#array(kind, this.#capacity);
    (to as Uint8Array).set(from as Uint8Array);
    this.#extents.giveBack(from);
    return to;
  }
}

/** Takes in the rows that came since; all of them where the bounds came later than the segment's first row. */
function widenExtremes(before: Extremes, values: BigInt64Array, length: number): Extremes {
  if (before.length === length) return before;
  let { least, most } = before;
  if (before === never) least = most = values[0]!;
  for (let row = before.length; row < length; row++) {
    const value = values[row]!;
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return { length, least, most };
}
