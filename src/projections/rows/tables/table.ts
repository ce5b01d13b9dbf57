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

const keyDecoder = new TextDecoder('utf-8', { ignoreBOM: true });

export interface PathCounts {
  versions: number;
  live: number;
}

/** Hashes of keys that are entered at a time. */
const scratchHashes = new Int32Array(1024);

/** Segments of a table whose keys are entered before anybody asks. */
const SEGMENTS_ENTERED_MAX = 2;

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
  readonly #tableFork: number;
  readonly segments: Segment[] = [];
  readonly #primaryKeyIndex: PrimaryKeyIndex;
  /** Enters the keys of restored segments; null once all are there. */
  #keyIndexRestore: KeyIndexRestore | null = null;
  readonly #rowStorage: RowStorage;
  readonly #tableTimeline: Timeline;
  readonly #tableColumns = new TableColumns();
  readonly #tableProvenances = new Provenances();
  readonly #countsByPath = new Map<number, PathCounts>();
  readonly dictionaryOf = this.#tableColumns.dictionaryOf;
  readonly #removedVersions: RemovedVersions = { count: 0, lastPosition: -1, unwiped: new Set(), expected: new Map() };
  readonly #deferredCopies = new DeferredCopies<WholeTable>(() => {
    // Reading a segment may wipe the last cell of a text.
    const segments = this.segments.map((segment) => segment.savedState());
    return { table: this.savedState(), segments };
  });

  constructor(tenant: string | null, type: string, storage: RowStorage, fork = 0) {
    this.tenant = tenant;
    this.type = type;
    this.#rowStorage = storage;
    this.#tableTimeline = storage.timeline;
    this.#primaryKeyIndex = new PrimaryKeyIndex(this, storage.space.extents());
    this.#tableFork = fork;
  }

  get index(): PrimaryKeyIndex {
    if (this.#keyIndexRestore) this.#enterAllKeys();
    return this.#primaryKeyIndex;
  }

  /** Fills the index of a restored table a slice a turn, before the first who needs it would have to. */
  async enterKeys(turn: () => Promise<void>): Promise<void> {
    while (this.#keyIndexRestore) {
      await turn();
      this.enterSome();
    }
  }

  /** Looking for a key would enter all of them first. */
  get isEntering(): boolean {
    return this.#keyIndexRestore !== null;
  }

  /** A query searches these columns. */
  noteSearched(names: readonly string[]): void {
    this.#tableColumns.noteSearched(names);
  }

  /** Columns of texts that were searched, and those of these names; of columns that are ends of edges, those that are spelled out. */
  toIndex(
    names: readonly string[],
    ends: readonly string[],
  ): { readonly texts: readonly string[]; readonly ends: readonly string[] } {
    return { texts: this.#tableColumns.textsToIndex(names), ends: this.#tableColumns.spellings(ends) };
  }

  /** A slice of that; false where there is nothing to do. */
  enterSome(): boolean {
    if (this.#keyIndexRestore?.step() === false) this.#keyIndexRestore = null;
    return this.#keyIndexRestore !== null;
  }

  /** Versions that are not removed, by path code. */
  get counts(): ReadonlyMap<number, PathCounts> {
    return this.#countsByPath;
  }

  get closingOrders(): ClosingOrders {
    return this.#rowStorage.closingOrders(this.tenant, this.type);
  }

  get bloomColumns(): readonly string[] {
    return this.#rowStorage.settings.bloomColumns;
  }

  get pruned(): PruningCounts {
    return this.#rowStorage.pruned;
  }

  paths(): Iterable<number> {
    return this.#countsByPath.keys();
  }

  columnTypes(): ReadonlyMap<string, { readonly type: ColumnType }> {
    return this.#tableColumns.types;
  }

  provenances(): readonly Provenance[] {
    return this.#tableProvenances.all;
  }

  /** Declares a column, or widens one that exists. Its former type is kept for branches that still read it so. */
  setColumnType(name: string, type: ColumnType, keepFormer = false): void {
    this.#deferredCopies.settle();
    this.#tableColumns.declare(name, type, this.segments, keepFormer);
  }

  /**
   * Position of the last version that is gone; -1 without one. Up to there what closed a version may be younger than every
   * version that its key still has.
   */
  get lastGone(): number {
    return this.#removedVersions.lastPosition;
  }

  append(rowsEntry: CommittedEntry, rowsBody: RowsBody, path: number): void {
    this.#deferredCopies.settle();
    if (this.#keyIndexRestore) this.#enterAllKeys();
    const bodyRowCount = rowsBody.ops.length;
    const provenanceCode = this.#tableProvenances.codeOf(rowsBody.provenance);
    const [keyVector, validFrom, validTo] = rowsBody.keys.columns.map((bodyColumn) => bodyColumn.vector);
    const keyTexts = rowsBody.dropped ? withGaps(keyVector, bodyRowCount) : keyVector;
    assert(keyTexts && validFrom && validTo && keyTexts.kind === 'text', 'a rows entry has keys and bounds');
    for (const column of rowsBody.cells.columns) {
      if (!this.columnTypes().has(column.name)) this.setColumnType(column.name, column.type);
    }
    const keyHashes = bodyRowCount > 1 ? takeHashes(keyTexts, bodyRowCount, path) : null;
    const droppedRows = rowsBody.dropped ? new Set(rowsBody.dropped) : noDroppedRows;
    const lastDropped = rowsBody.dropped?.at(-1);
    if (lastDropped !== undefined) this.#noteRemovedVersions(droppedRows.size, rowsEntry.position + lastDropped);
    const appendedRows: AppendedRows = { body: rowsBody, path, keys: keyTexts, hashes: keyHashes, dropped: droppedRows };
    let closedCount = 0;
    for (let appendedCount = 0; appendedCount < bodyRowCount; ) {
      const rowPosition = rowsEntry.position + appendedCount;
      const headSegment = this.#headSegmentFor(rowPosition);
      const fittingCount = Math.min(bodyRowCount - appendedCount, this.#segmentRoom(headSegment, rowPosition));
      const firstAppended = headSegment.extend(rowPosition, fittingCount, path, provenanceCode);
      headSegment.keys.append(keyTexts, appendedCount, appendedCount + fittingCount);
      headSegment.setValid(validFrom, validTo, appendedCount, firstAppended, fittingCount, this.#tableTimeline);
      this.#appendOps(headSegment, rowsBody.ops, appendedCount, firstAppended, fittingCount);
      for (const { name, vector } of rowsBody.cells.columns) {
        this.#tableColumns.append(headSegment, name, vector, appendedCount, appendedCount + fittingCount, firstAppended);
      }
      closedCount += this.#linkVersions(appendedRows, headSegment, firstAppended, appendedCount, fittingCount);
      appendedCount += fittingCount;
    }
    const pathCounts = this.#pathCountsOf(path);
    pathCounts.versions += bodyRowCount - droppedRows.size;
    pathCounts.live += bodyRowCount - droppedRows.size - closedCount;
  }

  /** Loads the data that `remove` needs for versions at these positions, ascending, a slice a step; changes no row. */
  *expectRemoval(positions: readonly number[]): Generator<undefined, void> {
    yield* expectRemovals(positions, this, this.#keyIndexRestore ? null : this.#primaryKeyIndex, this.#removedVersions.expected);
  }

  /** Cancels `expectRemoval`. */
  expectNoRemoval(): void {
    this.#removedVersions.expected.clear();
  }

  /**
   * Removes the versions at these positions for good; positions of other tables, and of versions already gone, are passed over.
   * Keys without a version are free again, others fall back to their newest live version. With `wipes` at `later` the cells stay
   * in memory until `wipe` has run, or a query reads the columns.
   */
  remove(positions: ArrayLike<number>, wipes: 'now' | 'later' = 'now'): void {
    const removedRows = Array.from(positions, (position) => this.versionAt(position)).filter((row) => row !== NO_ROW);
    if (removedRows.length === 0) return;
    this.#deferredCopies.settle();
    removedRows.sort((a, b) => a - b);
    if (this.#keyIndexRestore) this.#keyIndexRestore.leave(removedRows);
    else passOn(removedRows, this, this.#primaryKeyIndex, this.#removedVersions.expected);
    this.#removedVersions.expected.clear();
    for (let segmentRowsFrom = 0; segmentRowsFrom < removedRows.length; ) {
      const removalSegment = this.segmentOf(removedRows[segmentRowsFrom]!);
      let segmentRowsEnd = segmentRowsFrom;
      while (segmentRowsEnd < removedRows.length && removedRows[segmentRowsEnd]! >>> 16 === removedRows[segmentRowsFrom]! >>> 16)
        segmentRowsEnd++;
      const rowsInSegment = removedRows.slice(segmentRowsFrom, segmentRowsEnd).map((row) => row & 0xffff);
      this.#removeFromSegment(removalSegment, rowsInSegment);
      segmentRowsFrom = segmentRowsEnd;
    }
    this.#noteRemovedVersions(removedRows.length, this.positionOf(removedRows.at(-1)!));
    if (wipes === 'now') for (const _ of this.wipe());
  }

  /** Wipes cells of removed versions, and their summaries, from memory, a slice a step. */
  *wipe(): Generator<undefined, void> {
    for (const unwipedSegment of this.#removedVersions.unwiped) {
      this.#removedVersions.unwiped.delete(unwipedSegment);
      unwipedSegment.cells.wipe();
      forgetZoneMaps(unwipedSegment);
      yield;
    }
  }

  #noteRemovedVersions(removedCount: number, lastRemovedPosition: number): void {
    this.#removedVersions.count += removedCount;
    this.#removedVersions.lastPosition = Math.max(this.#removedVersions.lastPosition, lastRemovedPosition);
  }

  #removeFromSegment(segment: Segment, rowsInSegment: readonly number[]): void {
    for (const removedRow of rowsInSegment) {
      const pathCounts = this.#pathCountsOf(segment.paths.codeAt(removedRow));
      pathCounts.versions--;
      if (segment.isOpen(removedRow)) pathCounts.live--;
    }
    segment.remove(rowsInSegment, this.#tableTimeline);
    this.#removedVersions.unwiped.add(segment);
  }

  /** Row number of the newest version of a key, or -1. */
  newest(path: number, key: Uint8Array, start: number, end: number): number {
    return this.index.find(key, start, end - start, path, hashBytes(key, start, end, path));
  }

  newestOf(path: number, key: string): number {
    const encodedKeyBytes = encodeKey(key);
    return encodedKeyBytes < 0 ? NO_ROW : this.newest(path, keyScratch, 0, encodedKeyBytes);
  }

  touch(hashes: Int32Array, count: number): void {
    this.index.touch(hashes, count);
  }

  openPositions(path: number, key: Uint8Array, start: number, end: number, hash: number, openPositionList: number[]): void {
    const newestRow = this.index.find(key, start, end - start, path, hash);
    for (let openRow = this.#firstOpenVersion(newestRow); openRow !== NO_ROW; openRow = this.nextOpen(openRow))
      openPositionList.push(this.positionOf(openRow));
  }

  /** The next older open version of the same key, or -1. */
  nextOpen(row: number): number {
    return this.#firstOpenVersion(this.segmentOf(row).nextLive.codeAt(row & 0xffff));
  }

  /** From a link of the chain of open versions the first that is one: where some are gone, what they closed is in it still. */
  #firstOpenVersion(row: number): number {
    if (this.#removedVersions.count === 0) return row;
    let candidateRow = row;
    while (candidateRow !== NO_ROW && !this.segmentOf(candidateRow).isOpen(candidateRow & 0xffff)) {
      const candidateSegment = this.segmentOf(candidateRow);
      const wasClosedByRemoved =
        candidateSegment.isRemoved(candidateRow & 0xffff) ||
        this.versionAt(candidateSegment.closingOf(candidateRow & 0xffff)) === NO_ROW;
      assert(wasClosedByRemoved, 'what a standing version closed is in no chain of open versions');
      candidateRow = candidateSegment.nextLive.codeAt(candidateRow & 0xffff);
    }
    return candidateRow;
  }

  /** The version of the same key before this one, or -1. */
  previousOf(row: number): number {
    let previousRow = this.segmentOf(row).previous.codeAt(row & 0xffff);
    while (previousRow !== NO_ROW && this.segmentOf(previousRow).isRemoved(previousRow & 0xffff)) {
      previousRow = this.segmentOf(previousRow).previous.codeAt(previousRow & 0xffff);
    }
    return previousRow;
  }

  matches(row: number, heap: Uint8Array, start: number, size: number, path: number): boolean {
    const keyedSegment = this.segments[row >>> 16]!;
    const rowInSegment = row & 0xffff;
    if (keyedSegment.paths.codeAt(rowInSegment) !== path) return false;
    const { offsets, heap: ownKeyHeap } = keyedSegment.keys;
    const ownKeyStart = offsets[rowInSegment]!;
    if (offsets[rowInSegment + 1]! - ownKeyStart !== size) return false;
    for (let i = 0; i < size; i++) if (ownKeyHeap[ownKeyStart + i] !== heap[start + i]) return false;
    return !keyedSegment.isRemoved(rowInSegment);
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
    const versionSegment = this.segmentOf(row);
    return versionSegment.validFrom ? versionSegment.validFrom[row & 0xffff]! : this.#tableTimeline.timeOf(this.positionOf(row));
  }

  validToOf(row: number): bigint {
    return this.segmentOf(row).validTo?.[row & 0xffff] ?? FOREVER;
  }

  keyOf(row: number): string {
    const { offsets: keyOffsets, heap } = this.segmentOf(row).keys;
    return keyDecoder.decode(heap.subarray(keyOffsets[row & 0xffff]!, keyOffsets[(row & 0xffff) + 1]!));
  }

  pathOf(row: number): number {
    return this.segmentOf(row).paths.codeAt(row & 0xffff);
  }

  versionAt(position: number): number {
    const row = this.rowAt(position);
    return row !== NO_ROW && this.segmentOf(row).isRemoved(row & 0xffff) ? NO_ROW : row;
  }

  cellOf(row: number, name: string): Cell {
    const cellAddress = this.addressOf(row, name);
    return cellAddress === undefined ? null : cellAt(cellAddress.vector, cellAddress.type, cellAddress.row);
  }

  addressOf(row: number, name: string): CellAddress | undefined {
    const segment = this.segmentOf(row);
    const column = segment.column(name);
    return column && { vector: column.vector(segment.length), type: column.type, row: row & 0xffff };
  }

  /** Open versions of a key, newest first, from its newest version. */
  openVersions(newest: number): number[] {
    const openRows: number[] = [];
    for (let openRow = this.#firstOpenVersion(newest); openRow !== NO_ROW; openRow = this.nextOpen(openRow))
      openRows.push(openRow);
    return openRows;
  }

  /** All versions of a key, newest first. */
  allVersions(newest: number): number[] {
    const versionRows: number[] = [];
    for (let versionRow = newest; versionRow !== NO_ROW; versionRow = this.previousOf(versionRow)) versionRows.push(versionRow);
    return versionRows;
  }

  /** Row number of the version at a position, or -1. */
  rowAt(position: number): number {
    let lowSegment = 0;
    let highSegment = this.segments.length;
    while (lowSegment < highSegment) {
      const middleSegment = (lowSegment + highSegment) >>> 1;
      if (this.segments[middleSegment]!.base <= position) lowSegment = middleSegment + 1;
      else highSegment = middleSegment;
    }
    const positionSegment = this.segments[lowSegment - 1];
    if (!positionSegment) return NO_ROW;
    const rowInSegment = positionSegment.rowAtOrAfter(position);
    return rowInSegment < positionSegment.length && positionSegment.positionOf(rowInSegment) === position
      ? positionSegment.firstRow + rowInSegment
      : NO_ROW;
  }

  get bytes(): number {
    let tableBytes = this.#primaryKeyIndex.bytes + this.#tableColumns.bytes;
    for (const segment of this.segments) tableBytes += segment.bytes;
    return tableBytes;
  }

  /** As it stands now, copied before it changes: for a table whose segments rest on no file. */
  savedLater(): () => WholeTable {
    return this.#deferredCopies.defer();
  }

  savedState(): TableState {
    const { tenant, type, segments } = this;
    return {
      tenant,
      type,
      segments: segments.length,
      columns: this.#tableColumns.savedState(),
      provenances: this.#tableProvenances.all,
    };
  }

  /** Index and counts are made again from the segments, all but the last of which are sealed; a large index while it is used. */
  static fromSaved(
    tableState: TableState,
    segments: readonly (SegmentState | RestingSegment)[],
    storage: RowStorage,
    fork: number,
  ): Table {
    const savedTable = new Table(tableState.tenant, tableState.type, storage, fork);
    savedTable.#tableColumns.restore(tableState.columns);
    for (const provenance of tableState.provenances) savedTable.#tableProvenances.codeOf(provenance);
    const segmentHashes = segments.map((segment, segmentNumber) =>
      savedTable.#adoptSegment(segment, segmentNumber < segments.length - 1),
    );
    savedTable.segments.forEach((segment) => savedTable.#countSegment(segment));
    savedTable.#keyIndexRestore = new KeyIndexRestore(
      savedTable.#primaryKeyIndex,
      [...savedTable.segments],
      segmentHashes.map((hashesOfSegment) => hashesOfSegment()),
      (rows, leftHashes) => passOn(rows, savedTable, savedTable.#primaryKeyIndex, leftHashes),
    );
    if (segments.length <= SEGMENTS_ENTERED_MAX) savedTable.#enterAllKeys();
    return savedTable;
  }

  /** Returns the way to the hashes of its keys: they are needed for a moment only. */
  #adoptSegment(savedSegment: SegmentState | RestingSegment, isFollowed: boolean): () => Int32Array {
    const { space, store } = this.#rowStorage;
    if ('file' in savedSegment) {
      const { file, changes } = savedSegment;
      assert(store, 'what rests on files has a store');
      const adoptedSegment = Segment.resting(file.parts(), changes, file, this.dictionaryOf, store, space);
      this.segments.push(adoptedSegment);
      store.addRestored(adoptedSegment, file, this.dictionaryOf);
      return () => file.hashes();
    }
    const segment = Segment.fromSaved(savedSegment, this.dictionaryOf, space);
    this.segments.push(segment);
    if (isFollowed) {
      segment.seal();
      store?.onSealed(segment, this.dictionaryOf);
    }
    return () => hashesOf(segment);
  }

  #enterAllKeys(): void {
    while (this.enterSome());
  }

  #countSegment(countedSegment: Segment): void {
    const { length } = countedSegment;
    if (countedSegment.removedCount > 0) {
      let lastRemoved = length - 1;
      while (!countedSegment.isRemoved(lastRemoved)) lastRemoved--;
      this.#noteRemovedVersions(countedSegment.removedCount, countedSegment.positionOf(lastRemoved));
    }
    const onlyPath = countedSegment.paths.constant;
    if (onlyPath !== null) {
      const pathCounts = this.#pathCountsOf(onlyPath);
      pathCounts.versions += length - countedSegment.removedCount;
      pathCounts.live += countedSegment.liveCount;
      return;
    }
    for (let row = 0; row < length; row++) {
      if (countedSegment.isRemoved(row)) continue;
      const pathCounts = this.#pathCountsOf(countedSegment.paths.codeAt(row));
      pathCounts.versions++;
      if (countedSegment.isOpen(row)) pathCounts.live++;
    }
  }

  #segmentRoom(segment: Segment, position: number): number {
    return Math.min(segment.room(position), this.#rowStorage.settings.segmentRows - segment.length);
  }

  /** Columns of the segments after `segmentNumber`, for a scan that is about to read them. */
  ahead(segmentNumber: number, names: readonly string[]): void {
    const { store } = this.#rowStorage;
    if (!store) return;
    for (const segmentAhead of this.segments.slice(segmentNumber + 1, segmentNumber + 3)) {
      const segmentColumnNames = names.filter((name) => segmentAhead.columnNames().includes(name));
      store.ahead(segmentAhead, names.includes('_pk') ? [null, ...segmentColumnNames] : segmentColumnNames);
    }
  }

  #headSegmentFor(position: number): Segment {
    const headSegment = this.segments.at(-1);
    if (headSegment && this.#segmentRoom(headSegment, position) > 0) return headSegment;
    if (headSegment) {
      headSegment.seal();
      this.#rowStorage.store?.onSealed(headSegment, this.dictionaryOf);
    }
    const newHead = new Segment(this.segments.length * SEGMENT_ROWS, position, this.#rowStorage.space, headSegment ?? null);
    this.segments.push(newHead);
    return newHead;
  }

  #appendOps(segment: Segment, ops: Uint8Array, firstOp: number, first: number, count: number): void {
    for (let i = 0; i < count; i++) if (ops[firstOp + i] !== 0) segment.ops.set(first + i, ops[firstOp + i]!, segment.capacity);
  }

  /**
   * Enters rows [source, source + count) that were just appended at `first` of a segment into index and chains, closing what they
   * close. Returns how many versions that were.
   */
  #linkVersions(appendedRows: AppendedRows, segment: Segment, first: number, firstBodyRow: number, count: number): number {
    const { body: rowsBody, path, keys, hashes: knownHashes, dropped: droppedRows } = appendedRows;
    const { offsets, heap } = keys;
    const keyHashes = knownHashes ?? scratchHashes;
    let closedCount = 0;
    for (let hashBlock = 0; hashBlock < count; hashBlock += scratchHashes.length) {
      const hashBlockEnd = Math.min(count, hashBlock + scratchHashes.length);
      const hashShift = knownHashes === null ? -hashBlock : firstBodyRow;
      if (knownHashes === null) {
        for (let i = hashBlock; i < hashBlockEnd; i++)
          keyHashes[i - hashBlock] = hashBytes(heap, offsets[firstBodyRow + i]!, offsets[firstBodyRow + i + 1]!, path);
        this.index.touch(keyHashes, hashBlockEnd - hashBlock);
      }
      for (let i = hashBlock; i < hashBlockEnd; i++) {
        const keyStart = offsets[firstBodyRow + i]!;
        const linkedRow = segment.firstRow + first + i;
        const closeFrom = rowsBody.closeOffsets[firstBodyRow + i]!;
        const closeTo = rowsBody.closeOffsets[firstBodyRow + i + 1]!;
        if (droppedRows.has(firstBodyRow + i)) {
          segment.drop(first + i);
          closedCount += this.#closeForDropped(segment.positionOf(first + i), rowsBody.closes, closeFrom, closeTo);
          continue;
        }
        const previousRow = this.index.put(
          heap,
          keyStart,
          offsets[firstBodyRow + i + 1]! - keyStart,
          path,
          keyHashes[i + hashShift]!,
          linkedRow,
        );
        if (previousRow === NO_ROW) {
          const ownCloses = this.#ownCloses(rowsBody.closes, closeFrom, closeTo);
          assert(ownCloses === 0, 'a new key closes nothing');
        } else closedCount += this.#chainToPrevious(segment, first + i, previousRow, rowsBody.closes, closeFrom, closeTo);
      }
    }
    return closedCount;
  }

  /** Puts a version in front of its key's chains and closes the versions at closes[from..to). */
  #chainToPrevious(
    segment: Segment,
    rowInSegment: number,
    previousRow: number,
    closes: Float64Array,
    firstClose: number,
    closesEnd: number,
  ): number {
    segment.previous.set(rowInSegment, previousRow, segment.capacity);
    const closingPosition = segment.positionOf(rowInSegment);
    let liveTailSegment = segment;
    let liveTail = rowInSegment;
    let closedCount = 0;
    for (let openRow = this.#firstOpenVersion(previousRow); openRow !== NO_ROW; ) {
      const openSegment = this.segmentOf(openRow);
      const openRowInSegment = openRow & 0xffff;
      const nextOpenRow = this.nextOpen(openRow);
      let isSuperseded = false;
      const openPosition = openSegment.positionOf(openRowInSegment);
      for (let i = firstClose; i < closesEnd; i++) if (closes[i] === openPosition) isSuperseded = true;
      if (isSuperseded) {
        openSegment.close(openRowInSegment, closingPosition);
        closedCount++;
      } else {
        liveTailSegment.setNextLive(liveTail, openRow);
        liveTailSegment = openSegment;
        liveTail = openRowInSegment;
      }
      openRow = nextOpenRow;
    }
    liveTailSegment.setNextLive(liveTail, NO_ROW);
    assert(closedCount === this.#ownCloses(closes, firstClose, closesEnd), 'a version closes open versions of its own key');
    return closedCount;
  }

  /** Closes versions for one of which only its position and closings are left. Chains are left as they are. */
  #closeForDropped(position: number, closes: Float64Array, firstClose: number, closesEnd: number): number {
    let closedCount = 0;
    for (let i = firstClose; i < closesEnd; i++) {
      const closedRow = closes[i]! < this.#tableFork ? NO_ROW : this.versionAt(closes[i]!);
      if (closedRow === NO_ROW) continue;
      this.segmentOf(closedRow).close(closedRow & 0xffff, position);
      closedCount++;
    }
    return closedCount;
  }

  /** How many of positions[from..to) are of this table and not gone; on a branch the others are inherited. */
  #ownCloses(positions: Float64Array, from: number, to: number): number {
    if (this.#tableFork === 0 && this.#removedVersions.count === 0) return to - from;
    let ownCloses = 0;
    for (let i = from; i < to; i++) if (positions[i]! >= this.#tableFork && this.versionAt(positions[i]!) !== NO_ROW) ownCloses++;
    return ownCloses;
  }

  #pathCountsOf(path: number): PathCounts {
    let pathCounts = this.#countsByPath.get(path);
    if (!pathCounts) this.#countsByPath.set(path, (pathCounts = { versions: 0, live: 0 }));
    return pathCounts;
  }
}

const noDroppedRows: ReadonlySet<number> = new Set();
