/**
 * Up to 65,536 row versions of one type in position order, as columns. What must hold:
 *
 * - positions rise with the row; a version is known below its bound, so "known at P" is a prefix of the rows;
 * - `closings[row]` is the position that superseded the version, `open` while nothing did, `REMOVED` after a hard delete;
 *   a version is visible at bound P when its position < P and its closing >= P;
 * - the live bitmap says what is open as of the last applied entry; like `closings` it exists only once something was closed;
 * - once a segment is sealed (another one follows) no row is added; closings, chains, removals and wider types still change it.
 */
import { assert } from '../../errors.ts';
import type { Vector } from '../../log/columns.ts';
import { FOREVER } from '../../log/timestamp.ts';
import type { ColumnType } from '../../log/value.ts';
import type { Timeline } from '../../log/timeline.ts';
import type { ByteDictionary } from './byte-dictionary.ts';
import { CodeColumn, type SavedCodes } from './code-column.ts';
import type { ColumnSpace, Extents, FixedArray, FixedKind } from './extents.ts';
import { type SavedVector, SEGMENT_ROWS, SegmentColumn } from './segment-column.ts';

/** Closing of an open version, in the narrow layout of `closings`. */
export const OPEN = 2_147_483_647;
export const REMOVED = -1;
const DELTA_MAX = 2_147_483_646;
/** Text heaps beyond this end a segment early: their offsets are 32 bits wide. */
const HEAP_MAX = 256 * 1024 * 1024;
export const NO_ROW = -1;

/** Extremes of the valid axis over a segment's given bounds. */
export interface ValidZone {
  readonly fromLeast: bigint;
  readonly fromMost: bigint;
  readonly toLeast: bigint;
  readonly toMost: bigint;
}

/** Of the first `length` rows. */
interface Extremes {
  readonly length: number;
  readonly least: bigint;
  readonly most: bigint;
}

const never: Extremes = { length: 0, least: FOREVER, most: FOREVER };

/** A segment at rest, its live bitmap and counts left out: closings say them. */
export interface SegmentState {
  readonly firstRow: number;
  readonly base: number;
  readonly length: number;
  readonly deltas: Int32Array | null;
  readonly closings: Int32Array | Float64Array | null;
  readonly validFrom: BigInt64Array | null;
  readonly validTo: BigInt64Array | null;
  readonly paths: SavedCodes;
  readonly ops: SavedCodes;
  readonly provenances: SavedCodes;
  readonly previous: SavedCodes;
  readonly nextLive: SavedCodes;
  readonly keys: SavedVector;
  readonly columns: readonly SavedColumn[];
  /** What columns were before they were widened, for branches that read them as that; oldest first. */
  readonly formers: readonly (SavedColumn & { readonly rows: number })[];
}

/** The first `rows` cells of a column in another type. */
interface Copy {
  readonly column: SegmentColumn;
  readonly rows: number;
}

interface SavedColumn {
  readonly name: string;
  readonly type: ColumnType;
  readonly vector: SavedVector;
}

export class Segment {
  /** First row number of the segment in its table. */
  readonly firstRow: number;
  /** Position that `deltas` and `closings` count from. */
  readonly base: number;
  readonly #extents: Extents;
  #length = 0;
  #capacity = 0;
  #sealed = false;
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
  #keys: SegmentColumn;
  readonly #before: Segment | null;
  readonly #columns = new Map<string, SegmentColumn>();
  /** Columns as they were before they were widened: for branches that were forked before that. */
  readonly #formers = new Map<string, Copy[]>();
  /** Copies in a type that a branch widened its inherited column to. */
  readonly #derived = new Map<string, Copy[]>();

  /** `before` is the segment that this one follows: a full one tells how much room columns need. */
  constructor(firstRow: number, base: number, space: ColumnSpace, before: Segment | null = null) {
    this.firstRow = firstRow;
    this.base = base;
    this.#extents = space.extents();
    this.#before = before?.length === SEGMENT_ROWS ? before : null;
    this.#keys = new SegmentColumn('string', null, this.#extents, this.#before?.keys);
    if (this.#before) this.#reserve(SEGMENT_ROWS);
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

  get keys(): SegmentColumn {
    return this.#keys;
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
    const from = this.#validFrom ? widened(this.#fromZone, this.#validFrom, this.#length) : never;
    const to = this.#validTo ? widened(this.#toZone, this.#validTo, this.#length) : never;
    this.#fromZone = from;
    this.#toZone = to;
    return { fromLeast: from.least, fromMost: from.most, toLeast: to.least, toMost: to.most };
  }

  /** One bit a row, 1 = open; null while every row is. */
  get live(): Int32Array | null {
    return this.#live;
  }

  /** Rises when cells were wiped: what was summarised before may be looser than need be. */
  get removals(): number {
    return this.#removals;
  }

  get full(): boolean {
    return (
      this.#length === SEGMENT_ROWS ||
      this.keys.heapBytes > HEAP_MAX ||
      [...this.#columns.values()].some((column) => column.heapBytes > HEAP_MAX)
    );
  }

  /** How many rows from `position` on can still be appended. */
  room(position: number): number {
    if (this.full) return 0;
    return Math.max(0, Math.min(SEGMENT_ROWS - this.#length, this.base + DELTA_MAX - position + 1));
  }

  column(name: string): SegmentColumn | undefined {
    return this.#columns.get(name);
  }

  columns(): ReadonlyMap<string, SegmentColumn> {
    return this.#columns;
  }

  columnFor(name: string, type: ColumnType, dictionary: ByteDictionary | null): SegmentColumn {
    let column = this.#columns.get(name);
    if (!column) {
      column = new SegmentColumn(type, dictionary, this.#extents, this.#before?.column(name));
      this.#columns.set(name, column);
    }
    return column;
  }

  /**
   * Cells of a column under a wider type. What they were is kept when branches read them as that, and for good: a reader of
   * a branch that is deleted meanwhile reads on, and a column widens twice at most.
   */
  widen(name: string, type: ColumnType, keepFormer: boolean): void {
    const column = this.#columns.get(name);
    if (!column || column.type === type) return;
    if (keepFormer) pushTo(this.#formers, name, this.#copyOf(column, this.#length));
    this.#derived.delete(name);
    column.widen(type);
  }

  /**
   * The first `rows` cells of a column as `type`: the column itself, what it was before it was widened, or a widened
   * copy, which is made once. Undefined when none of its first `rows` cells had such a type.
   */
  columnAs(name: string, type: ColumnType, rows: number): SegmentColumn | undefined {
    const column = this.#columns.get(name);
    if (!column || column.type === type) return column;
    const formers = this.#formers.get(name) ?? [];
    const known = [...formers, ...(this.#derived.get(name) ?? [])].find((copy) => copy.column.type === type && copy.rows >= rows);
    if (known) return known.column;
    // The oldest that holds all of the rows is what the branch was forked with.
    const former = formers.find((copy) => copy.rows >= rows);
    const origin = former ?? { column, rows: this.#length };
    if (type !== 'json' && !(type === 'number' && origin.column.type === 'integer')) return undefined;
    const copy = this.#copyOf(origin.column, origin.rows);
    copy.column.widen(type);
    pushTo(this.#derived, name, copy);
    return copy.column;
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

  close(row: number, position: number): void {
    assert(this.isOpen(row), 'a version is closed once');
    const delta = position - this.base;
    this.#ownClosings();
    if (delta > DELTA_MAX && this.#closings instanceof Int32Array) this.#widenClosings();
    this.#closings![row] = delta;
    this.#closedLeast = Math.min(this.#closedLeast, position);
    this.#closedMost = Math.max(this.#closedMost, position);
    this.#ownLive()[row >>> 5]! &= ~(1 << (row & 31));
    this.#liveCount--;
  }

  /** Hard delete of one version: out of every scan at every basis, its cells and key wiped. */
  remove(row: number): void {
    assert(!this.isRemoved(row), 'a version is removed once');
    if (this.isOpen(row)) {
      this.#ownLive()[row >>> 5]! &= ~(1 << (row & 31));
      this.#liveCount--;
    }
    this.#ownClosings()[row] = REMOVED;
    this.#removedCount++;
    this.#removals++;
    this.keys.clear(row);
    for (const column of this.#columns.values()) column.clear(row);
    for (const copies of [...this.#formers.values(), ...this.#derived.values()])
      for (const { column } of copies) column.clear(row);
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
    this.keys.seal(length);
    for (const column of this.#columns.values()) column.seal(length);
    for (const codes of Object.values(this.#codes)) codes.seal(length, this.#extents);
    if (this.#deltas) this.#deltas = this.#extents.settle(this.#deltas, length);
    if (this.#closings) this.#closings = this.#extents.settle<Int32Array | Float64Array>(this.#closings, length);
    if (this.#live) this.#live = this.#extents.settle(this.#live, this.#live.length);
    if (this.#validFrom) this.#validFrom = this.#extents.settle(this.#validFrom, length);
    if (this.#validTo) this.#validTo = this.#extents.settle(this.#validTo, length);
  }

  get sealed(): boolean {
    return this.#sealed;
  }

  get bytes(): number {
    let total = (this.#deltas?.byteLength ?? 0) + (this.#closings?.byteLength ?? 0) + this.keys.bytes;
    total += (this.#validFrom?.byteLength ?? 0) + (this.#validTo?.byteLength ?? 0) + (this.#live?.byteLength ?? 0);
    for (const codes of Object.values(this.#codes)) total += codes.values?.byteLength ?? 0;
    for (const column of this.#columns.values()) total += column.bytes;
    for (const copies of [...this.#formers.values(), ...this.#derived.values()])
      for (const { column } of copies) total += column.bytes;
    return total;
  }

  saved(): SegmentState {
    const length = this.#length;
    return {
      firstRow: this.firstRow,
      base: this.base,
      length,
      deltas: this.#deltas?.slice(0, length) ?? null,
      closings: this.#closings?.slice(0, length) ?? null,
      validFrom: this.#validFrom?.slice(0, length) ?? null,
      validTo: this.#validTo?.slice(0, length) ?? null,
      paths: this.paths.saved(length),
      ops: this.ops.saved(length),
      provenances: this.provenances.saved(length),
      previous: this.previous.saved(length),
      nextLive: this.nextLive.saved(length),
      keys: this.#keys.saved(length),
      columns: [...this.#columns].map(([name, column]) => ({ name, type: column.type, vector: column.saved(length) })),
      formers: [...this.#formers].flatMap(([name, columns]) =>
        columns.map(({ column, rows }) => ({ name, type: column.type, vector: column.saved(rows), rows })),
      ),
    };
  }

  /** Over the arrays of `state`, as a head: it may take more rows, or be sealed. */
  static restored(state: SegmentState, dictionaryOf: (column: string) => ByteDictionary | null, space: ColumnSpace): Segment {
    const segment = new Segment(state.firstRow, state.base, space);
    const extents = segment.#extents;
    const { length } = state;
    segment.#length = length;
    segment.#capacity = length;
    segment.#deltas = state.deltas;
    segment.#closings = state.closings;
    segment.#validFrom = state.validFrom;
    segment.#validTo = state.validTo;
    for (const name of ['paths', 'ops', 'provenances', 'previous', 'nextLive'] as const) {
      segment.#codes[name] = CodeColumn.restored(state[name], extents);
    }
    segment.#keys = SegmentColumn.restored('string', state.keys, length, null, extents);
    for (const { name, type, vector } of state.columns) {
      segment.#columns.set(
        name,
        SegmentColumn.restored(type, vector, length, vector.kind === 'dict' ? dictionaryOf(name) : null, extents),
      );
    }
    for (const { name, type, vector, rows } of state.formers) {
      pushTo(segment.#formers, name, { column: SegmentColumn.restored(type, vector, rows, null, null), rows });
    }
    segment.#summarise();
    return segment;
  }

  /** What closings say, counted again. */
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

  #copyOf(column: SegmentColumn, rows: number): Copy {
    return { column: column.copy(rows), rows };
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
    return (this.#closings ??= this.#array(Int32Array, this.#capacity).fill(OPEN, 0, this.#length));
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
    if (this.#deltas) this.#deltas = this.#grown(Int32Array, this.#deltas);
    if (this.#closings instanceof Int32Array) this.#closings = this.#grown(Int32Array, this.#closings);
    else if (this.#closings) this.#closings = this.#grown(Float64Array, this.#closings);
    if (this.#validFrom) this.#validFrom = this.#grown(BigInt64Array, this.#validFrom);
    if (this.#validTo) this.#validTo = this.#grown(BigInt64Array, this.#validTo);
  }

  /** A segment that is expected to fill up has its arrays made where they are to rest; contents may be undefined. */
  #array<T extends FixedArray>(kind: FixedKind<T>, length: number): T {
    return this.#sealed || this.#capacity >= SEGMENT_ROWS ? this.#extents.allocate(kind, length) : new kind(length);
  }

  #grown<T extends FixedArray>(kind: FixedKind<T>, from: T): T {
    const to = this.#array(kind, this.#capacity);
    (to as Uint8Array).set(from as Uint8Array);
    this.#extents.giveBack(from);
    return to;
  }
}

function pushTo<T>(lists: Map<string, T[]>, key: string, item: T): void {
  const list = lists.get(key);
  if (list) list.push(item);
  else lists.set(key, [item]);
}

/** Takes in the rows that came since; all of them where the bounds came later than the segment's first row. */
function widened(before: Extremes, values: BigInt64Array, length: number): Extremes {
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
