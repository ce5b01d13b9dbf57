/**
 * All row versions of one type of one tenant, every organisation path of it: segments in position order, an index from key
 * to newest version, and two chains through the versions of a key: all of them, and the open ones only, so that reading
 * what is current costs the same after a hundred updates as after one.
 */
import { assert } from '../../../errors.ts';
import type { CommittedEntry, Provenance, RowsBody } from '../../../log/entries/entry.ts';
import type { Vector } from '../../../log/values/columns.ts';
import { cellAt } from '../../../log/values/vector-builder.ts';
import type { Cell, ColumnType } from '../../../log/values/value.ts';
import { FOREVER } from '../../../log/values/timestamp.ts';
import type { Timeline } from '../../../log/values/timeline.ts';
import { hashBytes } from '../cells/byte-hash.ts';
import { DeferredCopies } from './deferred-copies.ts';
import { hashesOf, takeHashes } from '../keys/key-hashes.ts';
import { encodeKey, keyScratch, withGaps } from '../cells/key-text.ts';
import { KeyIndexRestore } from '../keys/key-index-restore.ts';
import { PrimaryKeyIndex, type StoredKeys } from '../keys/primary-key-index.ts';
import { Provenances } from '../cells/row-provenance.ts';
import type { RowStorage } from './row-storage.ts';
import { expectRemovals, type KeyHashes, passOn } from '../keys/key-removal.ts';
import { NO_ROW, Segment } from '../segments/segment.ts';
import { SEGMENT_ROWS } from '../segments/segment-column.ts';
import type { SegmentState } from '../segments/segment-state.ts';
import type { CellAddress, StoredVersions } from '../cells/stored-versions.ts';
import { TableColumns } from './table-columns.ts';
import type { RestingSegment, TableState, WholeTable } from './table-state.ts';
import type { ClosingOrders } from './closing-order.ts';
import { forgetZoneMaps, type PruningCounts } from './zone-maps.ts';

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

export interface PathCounts {
  versions: number;
  live: number;
}

/** Hashes of keys that are entered at a time. */
const scratch = new Int32Array(1024);

/** Segments of a table whose keys are entered before anybody asks. */
const ENTERED_AT_ONCE = 2;

/** Versions that were removed for good, or came without key and cells: they are in chains still, and stand for nothing. */
interface RemovedVersions {
  count: number;
  /** Position of the last of them; -1 without one. */
  lastPosition: number;
  /** Segments of which versions were removed and cells not wiped yet. */
  readonly unwiped: Set<Segment>;
  /** Keys of versions that are expected to be removed. */
  readonly expected: KeyHashes;
}

/** Rows of one entry on their way into segments, index and chains. */
interface AppendedRows {
  readonly body: RowsBody;
  readonly path: number;
  readonly keys: Extract<Vector, { kind: 'text' }>;
  /** Hashes of all keys, whose slots were touched when they were decided about. */
  readonly hashes: Int32Array | null;
  readonly dropped: ReadonlySet<number>;
}

export class Table implements StoredKeys, StoredVersions {
  /** null: of rows without a tenant. */
  readonly tenant: string | null;
  readonly type: string;
  /** Fork of the branch that the table belongs to: its entries close lower positions in other tables. */
  readonly #fork: number;
  readonly segments: Segment[] = [];
  readonly #index: PrimaryKeyIndex;
  /** Enters the keys of restored segments; null once all are there. */
  #entering: KeyIndexRestore | null = null;
  readonly #storage: RowStorage;
  readonly #timeline: Timeline;
  readonly #columns = new TableColumns();
  readonly #provenances = new Provenances();
  readonly #counts = new Map<number, PathCounts>();
  readonly dictionaryOf = this.#columns.dictionaryOf;
  readonly #removed: RemovedVersions = { count: 0, lastPosition: -1, unwiped: new Set(), expected: new Map() };
  readonly #copies = new DeferredCopies<WholeTable>(() => {
    // Reading a segment may wipe the last cell of a text.
    const segments = this.segments.map((segment) => segment.savedState());
    return { table: this.savedState(), segments };
  });

  constructor(tenant: string | null, type: string, storage: RowStorage, fork = 0) {
    this.tenant = tenant;
    this.type = type;
    this.#storage = storage;
    this.#timeline = storage.timeline;
    this.#index = new PrimaryKeyIndex(this, storage.space.extents());
    this.#fork = fork;
  }

  get index(): PrimaryKeyIndex {
    if (this.#entering) this.#enterAll();
    return this.#index;
  }

  /** Fills the index of a restored table a slice a turn, before the first who needs it would have to. */
  async enterKeys(turn: () => Promise<void>): Promise<void> {
    while (this.#entering) {
      await turn();
      this.enterSome();
    }
  }

  /** Looking for a key would enter all of them first. */
  get isEntering(): boolean {
    return this.#entering !== null;
  }

  /** A query searches these columns. */
  noteSearched(names: readonly string[]): void {
    this.#columns.noteSearched(names);
  }

  /** Columns of texts that were searched, and those of these names; of columns that are ends of edges, those that are spelled out. */
  toIndex(
    names: readonly string[],
    ends: readonly string[],
  ): { readonly texts: readonly string[]; readonly ends: readonly string[] } {
    return { texts: this.#columns.textsToIndex(names), ends: this.#columns.spellings(ends) };
  }

  /** A slice of that; false where there is nothing to do. */
  enterSome(): boolean {
    if (this.#entering?.step() === false) this.#entering = null;
    return this.#entering !== null;
  }

  /** Versions that are not removed, by path code. */
  get counts(): ReadonlyMap<number, PathCounts> {
    return this.#counts;
  }

  get closingOrders(): ClosingOrders {
    return this.#storage.closingOrders(this.tenant, this.type);
  }

  get bloomColumns(): readonly string[] {
    return this.#storage.settings.bloomColumns;
  }

  get pruned(): PruningCounts {
    return this.#storage.pruned;
  }

  paths(): Iterable<number> {
    return this.#counts.keys();
  }

  columnTypes(): ReadonlyMap<string, { readonly type: ColumnType }> {
    return this.#columns.types;
  }

  provenances(): readonly Provenance[] {
    return this.#provenances.all;
  }

  /** Declares a column, or widens one that exists. Its former type is kept for branches that still read it so. */
  setColumnType(name: string, type: ColumnType, keepFormer = false): void {
    this.#copies.settle();
    this.#columns.declare(name, type, this.segments, keepFormer);
  }

  /**
   * Position of the last version that is gone; -1 without one. Up to there what closed a version may be younger than every
   * version that its key still has.
   */
  get lastGone(): number {
    return this.#removed.lastPosition;
  }

  append(entry: CommittedEntry, body: RowsBody, path: number): void {
    this.#copies.settle();
    if (this.#entering) this.#enterAll();
    const rowCount = body.ops.length;
    const provenance = this.#provenances.codeOf(body.provenance);
    const [keyCells, from, to] = body.keys.columns.map((column) => column.vector);
    const keys = body.dropped ? withGaps(keyCells, rowCount) : keyCells;
    assert(keys && from && to && keys.kind === 'text', 'a rows entry has keys and bounds');
    for (const column of body.cells.columns) {
      if (!this.columnTypes().has(column.name)) this.setColumnType(column.name, column.type);
    }
    const hashes = rowCount > 1 ? takeHashes(keys, rowCount, path) : null;
    const dropped = body.dropped ? new Set(body.dropped) : none;
    const lastDropped = body.dropped?.at(-1);
    if (lastDropped !== undefined) this.#noteRemoved(dropped.size, entry.position + lastDropped);
    const rows: AppendedRows = { body, path, keys, hashes, dropped };
    let closed = 0;
    for (let done = 0; done < rowCount; ) {
      const position = entry.position + done;
      const segment = this.#headFor(position);
      const count = Math.min(rowCount - done, this.#roomIn(segment, position));
      const first = segment.extend(position, count, path, provenance);
      segment.keys.append(keys, done, done + count);
      segment.setValid(from, to, done, first, count, this.#timeline);
      this.#appendOps(segment, body.ops, done, first, count);
      for (const { name, vector } of body.cells.columns) {
        this.#columns.append(segment, name, vector, done, done + count, first);
      }
      closed += this.#link(rows, segment, first, done, count);
      done += count;
    }
    const counts = this.#countsOf(path);
    counts.versions += rowCount - dropped.size;
    counts.live += rowCount - dropped.size - closed;
  }

  /** Loads the data that `remove` needs for versions at these positions, ascending, a slice a step; changes no row. */
  *expectRemoval(positions: readonly number[]): Generator<undefined, void> {
    yield* expectRemovals(positions, this, this.#entering ? null : this.#index, this.#removed.expected);
  }

  /** Cancels `expectRemoval`. */
  expectNoRemoval(): void {
    this.#removed.expected.clear();
  }

  /**
   * Removes the versions at these positions for good; positions of other tables, and of versions already gone, are passed over.
   * Keys without a version are free again, others fall back to their newest live version. With `wipes` at `later` the cells stay
   * in memory until `wipe` has run, or a query reads the columns.
   */
  remove(positions: ArrayLike<number>, wipes: 'now' | 'later' = 'now'): void {
    const rows = Array.from(positions, (position) => this.versionAt(position)).filter((row) => row !== NO_ROW);
    if (rows.length === 0) return;
    this.#copies.settle();
    rows.sort((a, b) => a - b);
    if (this.#entering) this.#entering.leave(rows);
    else passOn(rows, this, this.#index, this.#removed.expected);
    this.#removed.expected.clear();
    for (let from = 0; from < rows.length; ) {
      const segment = this.segmentOf(rows[from]!);
      let end = from;
      while (end < rows.length && rows[end]! >>> 16 === rows[from]! >>> 16) end++;
      const inSegment = rows.slice(from, end).map((row) => row & 0xffff);
      this.#removeFrom(segment, inSegment);
      from = end;
    }
    this.#noteRemoved(rows.length, this.positionOf(rows.at(-1)!));
    if (wipes === 'now') for (const _ of this.wipe());
  }

  /** Wipes cells of removed versions, and their summaries, from memory, a slice a step. */
  *wipe(): Generator<undefined, void> {
    for (const segment of this.#removed.unwiped) {
      this.#removed.unwiped.delete(segment);
      segment.cells.wipe();
      forgetZoneMaps(segment);
      yield;
    }
  }

  #noteRemoved(count: number, last: number): void {
    this.#removed.count += count;
    this.#removed.lastPosition = Math.max(this.#removed.lastPosition, last);
  }

  #removeFrom(segment: Segment, rows: readonly number[]): void {
    for (const row of rows) {
      const counts = this.#countsOf(segment.paths.codeAt(row));
      counts.versions--;
      if (segment.isOpen(row)) counts.live--;
    }
    segment.remove(rows, this.#timeline);
    this.#removed.unwiped.add(segment);
  }

  /** Row number of the newest version of a key, or -1. */
  newest(path: number, key: Uint8Array, start: number, end: number): number {
    return this.index.find(key, start, end - start, path, hashBytes(key, start, end, path));
  }

  newestOf(path: number, key: string): number {
    const size = encodeKey(key);
    return size < 0 ? NO_ROW : this.newest(path, keyScratch, 0, size);
  }

  touch(hashes: Int32Array, count: number): void {
    this.index.touch(hashes, count);
  }

  openPositions(path: number, key: Uint8Array, start: number, end: number, hash: number, into: number[]): void {
    const newest = this.index.find(key, start, end - start, path, hash);
    for (let row = this.#firstOpen(newest); row !== NO_ROW; row = this.nextOpen(row)) into.push(this.positionOf(row));
  }

  /** The next older open version of the same key, or -1. */
  nextOpen(row: number): number {
    return this.#firstOpen(this.segmentOf(row).nextLive.codeAt(row & 0xffff));
  }

  /** From a link of the chain of open versions the first that is one: where some are gone, what they closed is in it still. */
  #firstOpen(row: number): number {
    if (this.#removed.count === 0) return row;
    let at = row;
    while (at !== NO_ROW && !this.segmentOf(at).isOpen(at & 0xffff)) {
      const segment = this.segmentOf(at);
      const byGone = segment.isRemoved(at & 0xffff) || this.versionAt(segment.closingOf(at & 0xffff)) === NO_ROW;
      assert(byGone, 'what a standing version closed is in no chain of open versions');
      at = segment.nextLive.codeAt(at & 0xffff);
    }
    return at;
  }

  /** The version of the same key before this one, or -1. */
  previousOf(row: number): number {
    let before = this.segmentOf(row).previous.codeAt(row & 0xffff);
    while (before !== NO_ROW && this.segmentOf(before).isRemoved(before & 0xffff)) {
      before = this.segmentOf(before).previous.codeAt(before & 0xffff);
    }
    return before;
  }

  matches(row: number, heap: Uint8Array, start: number, size: number, path: number): boolean {
    const segment = this.segments[row >>> 16]!;
    const at = row & 0xffff;
    if (segment.paths.codeAt(at) !== path) return false;
    const { offsets, heap: own } = segment.keys;
    const from = offsets[at]!;
    if (offsets[at + 1]! - from !== size) return false;
    for (let i = 0; i < size; i++) if (own[from + i] !== heap[start + i]) return false;
    return !segment.isRemoved(at);
  }

  segmentOf(row: number): Segment {
    return this.segments[row >>> 16]!;
  }

  positionOf(row: number): number {
    return this.segmentOf(row).positionOf(row & 0xffff);
  }

  closingOf(row: number): number {
    return this.segmentOf(row).closingOf(row & 0xffff);
  }

  opOf(row: number): number {
    return this.segmentOf(row).ops.codeAt(row & 0xffff);
  }

  validFromOf(row: number): bigint {
    const segment = this.segmentOf(row);
    return segment.validFrom ? segment.validFrom[row & 0xffff]! : this.#timeline.timeOf(this.positionOf(row));
  }

  validToOf(row: number): bigint {
    return this.segmentOf(row).validTo?.[row & 0xffff] ?? FOREVER;
  }

  keyOf(row: number): string {
    const { offsets, heap } = this.segmentOf(row).keys;
    return decoder.decode(heap.subarray(offsets[row & 0xffff]!, offsets[(row & 0xffff) + 1]!));
  }

  pathOf(row: number): number {
    return this.segmentOf(row).paths.codeAt(row & 0xffff);
  }

  versionAt(position: number): number {
    const row = this.rowAt(position);
    return row !== NO_ROW && this.segmentOf(row).isRemoved(row & 0xffff) ? NO_ROW : row;
  }

  cellOf(row: number, name: string): Cell {
    const cellAddress = this.placeOf(row, name);
    return cellAddress === undefined ? null : cellAt(cellAddress.vector, cellAddress.type, cellAddress.row);
  }

  placeOf(row: number, name: string): CellAddress | undefined {
    const segment = this.segmentOf(row);
    const column = segment.column(name);
    return column && { vector: column.vector(segment.length), type: column.type, row: row & 0xffff };
  }

  /** Open versions of a key, newest first, from its newest version. */
  openVersions(newest: number): number[] {
    const rows: number[] = [];
    for (let row = this.#firstOpen(newest); row !== NO_ROW; row = this.nextOpen(row)) rows.push(row);
    return rows;
  }

  /** All versions of a key, newest first. */
  allVersions(newest: number): number[] {
    const rows: number[] = [];
    for (let row = newest; row !== NO_ROW; row = this.previousOf(row)) rows.push(row);
    return rows;
  }

  /** Row number of the version at a position, or -1. */
  rowAt(position: number): number {
    let low = 0;
    let high = this.segments.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.segments[middle]!.base <= position) low = middle + 1;
      else high = middle;
    }
    const segment = this.segments[low - 1];
    if (!segment) return NO_ROW;
    const at = segment.rowAtOrAfter(position);
    return at < segment.length && segment.positionOf(at) === position ? segment.firstRow + at : NO_ROW;
  }

  get bytes(): number {
    let total = this.#index.bytes + this.#columns.bytes;
    for (const segment of this.segments) total += segment.bytes;
    return total;
  }

  /** As it stands now, copied before it changes: for a table whose segments rest on no file. */
  savedLater(): () => WholeTable {
    return this.#copies.defer();
  }

  savedState(): TableState {
    const { tenant, type, segments } = this;
    return { tenant, type, segments: segments.length, columns: this.#columns.savedState(), provenances: this.#provenances.all };
  }

  /** Index and counts are made again from the segments, all but the last of which are sealed; a large index while it is used. */
  static fromSaved(
    state: TableState,
    segments: readonly (SegmentState | RestingSegment)[],
    storage: RowStorage,
    fork: number,
  ): Table {
    const table = new Table(state.tenant, state.type, storage, fork);
    table.#columns.restore(state.columns);
    for (const provenance of state.provenances) table.#provenances.codeOf(provenance);
    const hashes = segments.map((segment, number) => table.#adopt(segment, number < segments.length - 1));
    table.segments.forEach((segment) => table.#count(segment));
    table.#entering = new KeyIndexRestore(
      table.#index,
      [...table.segments],
      hashes.map((of) => of()),
      (rows, left) => passOn(rows, table, table.#index, left),
    );
    if (segments.length <= ENTERED_AT_ONCE) table.#enterAll();
    return table;
  }

  /** Returns the way to the hashes of its keys: they are needed for a moment only. */
  #adopt(saved: SegmentState | RestingSegment, followed: boolean): () => Int32Array {
    const { space, store } = this.#storage;
    if ('file' in saved) {
      const { file, changes } = saved;
      assert(store, 'what rests on files has a store');
      const segment = Segment.resting(file.parts(), changes, file, this.dictionaryOf, store, space);
      this.segments.push(segment);
      store.addRestored(segment, file, this.dictionaryOf);
      return () => file.hashes();
    }
    const segment = Segment.fromSaved(saved, this.dictionaryOf, space);
    this.segments.push(segment);
    if (followed) {
      segment.seal();
      store?.onSealed(segment, this.dictionaryOf);
    }
    return () => hashesOf(segment);
  }

  #enterAll(): void {
    while (this.enterSome());
  }

  #count(segment: Segment): void {
    const { length } = segment;
    if (segment.removedCount > 0) {
      let last = length - 1;
      while (!segment.isRemoved(last)) last--;
      this.#noteRemoved(segment.removedCount, segment.positionOf(last));
    }
    const path = segment.paths.constant;
    if (path !== null) {
      const counts = this.#countsOf(path);
      counts.versions += length - segment.removedCount;
      counts.live += segment.liveCount;
      return;
    }
    for (let row = 0; row < length; row++) {
      if (segment.isRemoved(row)) continue;
      const counts = this.#countsOf(segment.paths.codeAt(row));
      counts.versions++;
      if (segment.isOpen(row)) counts.live++;
    }
  }

  #roomIn(segment: Segment, position: number): number {
    return Math.min(segment.room(position), this.#storage.settings.segmentRows - segment.length);
  }

  /** Columns of the segments after `number`, for a scan that is about to read them. */
  ahead(number: number, names: readonly string[]): void {
    const { store } = this.#storage;
    if (!store) return;
    for (const segment of this.segments.slice(number + 1, number + 3)) {
      const known = names.filter((name) => segment.columnNames().includes(name));
      store.ahead(segment, names.includes('_pk') ? [null, ...known] : known);
    }
  }

  #headFor(position: number): Segment {
    const head = this.segments.at(-1);
    if (head && this.#roomIn(head, position) > 0) return head;
    if (head) {
      head.seal();
      this.#storage.store?.onSealed(head, this.dictionaryOf);
    }
    const segment = new Segment(this.segments.length * SEGMENT_ROWS, position, this.#storage.space, head ?? null);
    this.segments.push(segment);
    return segment;
  }

  #appendOps(segment: Segment, ops: Uint8Array, source: number, first: number, count: number): void {
    for (let i = 0; i < count; i++) if (ops[source + i] !== 0) segment.ops.set(first + i, ops[source + i]!, segment.capacity);
  }

  /**
   * Enters rows [source, source + count) that were just appended at `first` of a segment into index and chains, closing what they
   * close. Returns how many versions that were.
   */
  #link(rows: AppendedRows, segment: Segment, first: number, source: number, count: number): number {
    const { body, path, keys, hashes: known, dropped } = rows;
    const { offsets, heap } = keys;
    const hashes = known ?? scratch;
    let closed = 0;
    for (let block = 0; block < count; block += scratch.length) {
      const end = Math.min(count, block + scratch.length);
      const shift = known === null ? -block : source;
      if (known === null) {
        for (let i = block; i < end; i++)
          hashes[i - block] = hashBytes(heap, offsets[source + i]!, offsets[source + i + 1]!, path);
        this.index.touch(hashes, end - block);
      }
      for (let i = block; i < end; i++) {
        const start = offsets[source + i]!;
        const row = segment.firstRow + first + i;
        const closeFrom = body.closeOffsets[source + i]!;
        const closeTo = body.closeOffsets[source + i + 1]!;
        if (dropped.has(source + i)) {
          segment.drop(first + i);
          closed += this.#closeFor(segment.positionOf(first + i), body.closes, closeFrom, closeTo);
          continue;
        }
        const before = this.index.put(heap, start, offsets[source + i + 1]! - start, path, hashes[i + shift]!, row);
        if (before === NO_ROW) {
          const ownCloses = this.#ownCloses(body.closes, closeFrom, closeTo);
          assert(ownCloses === 0, 'a new key closes nothing');
        } else closed += this.#chain(segment, first + i, before, body.closes, closeFrom, closeTo);
      }
    }
    return closed;
  }

  /** Puts a version in front of its key's chains and closes the versions at closes[from..to). */
  #chain(segment: Segment, at: number, before: number, closes: Float64Array, from: number, to: number): number {
    segment.previous.set(at, before, segment.capacity);
    const position = segment.positionOf(at);
    let tailSegment = segment;
    let tail = at;
    let closed = 0;
    for (let row = this.#firstOpen(before); row !== NO_ROW; ) {
      const open = this.segmentOf(row);
      const openAt = row & 0xffff;
      const next = this.nextOpen(row);
      let superseded = false;
      const openPosition = open.positionOf(openAt);
      for (let i = from; i < to; i++) if (closes[i] === openPosition) superseded = true;
      if (superseded) {
        open.close(openAt, position);
        closed++;
      } else {
        tailSegment.setNextLive(tail, row);
        tailSegment = open;
        tail = openAt;
      }
      row = next;
    }
    tailSegment.setNextLive(tail, NO_ROW);
    assert(closed === this.#ownCloses(closes, from, to), 'a version closes open versions of its own key');
    return closed;
  }

  /** Closes versions for one of which only its position and closings are left. Chains are left as they are. */
  #closeFor(position: number, closes: Float64Array, from: number, to: number): number {
    let closed = 0;
    for (let i = from; i < to; i++) {
      const row = closes[i]! < this.#fork ? NO_ROW : this.versionAt(closes[i]!);
      if (row === NO_ROW) continue;
      this.segmentOf(row).close(row & 0xffff, position);
      closed++;
    }
    return closed;
  }

  /** How many of positions[from..to) are of this table and not gone; on a branch the others are inherited. */
  #ownCloses(positions: Float64Array, from: number, to: number): number {
    if (this.#fork === 0 && this.#removed.count === 0) return to - from;
    let ownCloses = 0;
    for (let i = from; i < to; i++) if (positions[i]! >= this.#fork && this.versionAt(positions[i]!) !== NO_ROW) ownCloses++;
    return ownCloses;
  }

  #countsOf(path: number): PathCounts {
    let counts = this.#counts.get(path);
    if (!counts) this.#counts.set(path, (counts = { versions: 0, live: 0 }));
    return counts;
  }
}

const none: ReadonlySet<number> = new Set();
