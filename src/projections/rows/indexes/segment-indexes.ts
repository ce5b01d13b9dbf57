/**
 * Indexes of texts, of vectors, of ends of edges and of identifiers, by segment and column: each a pure function of the segment's
 * cells, in the segment's own row numbers. The reader decides visibility, so versions, branches and policies need nothing here.
 *
 * - A worker indexes a sealed segment as a whole once a query searched the column, and the rows that a growing segment has by
 *   then; chunks of some hundred further rows are indexed when a reader comes to them, so that every answer is complete.
 * - A worker makes the vectors of a full segment into bytes once a query asked which are near; queries before that read the
 *   vectors themselves. They are made where there is room, and no other index is dropped for them.
 * - Ends of edges and identifiers are indexed in the same way, once a segment is sealed.
 * - A removal of cells, or a change of a column's stored type, forgets the segment's indexes: none holds a word of a removed row,
 *   and the next reader has new ones made.
 * - All of them share one budget: those that were not used lately go first. On the next use they are read from files where
 *   segments rest on files (`../store/index-files.ts`), and made again elsewhere.
 */
import { LRUCache } from 'lru-cache';
import { memoryOf } from '../../../log/values/column-memory.ts';
import type { Vector } from '../../../log/values/columns.ts';
import type { ColumnType } from '../../../log/values/value.ts';
import { finishSteps, type SteppedJob } from '../../../log/threads/stepping-job.ts';
import type { WorkerKeeper } from '../../../log/threads/worker-keeper.ts';
import type { ColumnSpace, Extents } from '../cells/column-extents.ts';
import type { Preparation } from '../../access-paths.ts';
import type { Segment } from '../segments/segment.ts';
import { SEGMENT_ROWS } from '../segments/segment-column.ts';
import type { IndexFiles, IndexKey } from '../store/index-files.ts';
import { absentOf, cellsOf, wholeNumberTexts } from './text/chosen-cells.ts';
import { buildTextIndex, type TextCells, textIndexOf } from './text/text-builder.ts';
import { TEXT_FORMAT, TextIndex } from './text/text-index.ts';
import { END_RUN_FORMAT, EndRun, endRunBytes, endRunJob } from './end-run.ts';
import { formsVersion, IDENTIFIER_RUN_FORMAT, IdentifierRun, identifierRunBytes, identifierRunJob } from './identifier-run.ts';
import { forgetGraphs, NeighbourGraphs, type NeighbourGraphsOptions } from './vectors/neighbour-graphs.ts';
import { COARSE_FORMAT, coarseBytes, CoarseVectors, coarseVectorsJob } from './vectors/coarse-vectors.ts';

/** Rows that are indexed in one turn. */
export const CHUNK_ROWS = 512;

/** Bytes that are brought to where they rest in one turn. */
const INDEX_BYTES_A_TURN = 1 << 22;

/** Rows by which a segment grows until its first ones are indexed anew. */
const REINDEX_GROWN_ROWS = 8_192;

export interface SegmentIndexesOptions {
  /** null: nothing is made beside the event loop, and segments are indexed chunk by chunk. */
  readonly workers: WorkerKeeper | null;
  /** null: nearest vectors are always found by a look at all of them. */
  readonly graphs: NeighbourGraphsOptions | null;
  /** Language of stems. */
  readonly language: string;
  readonly budgetBytes: number;
  /** One line for the operator. */
  readonly say: (line: string) => void;
}

export const defaultIndexes: SegmentIndexesOptions = {
  workers: null,
  graphs: null,
  language: 'english',
  budgetBytes: 64 * 1024 * 1024,
  say: () => undefined,
};

type VectorColumn = Extract<Vector, { readonly kind: 'vec' }>;

/** How a column is read: by its words or vectors, as an end of edges, or as identifiers of a kind (null: of whichever a cell is). */
type ColumnUse = 'cells' | 'ends' | { readonly identifiers: string | null };

/** Indexes of one column of one segment, read in one way. */
interface ColumnIndexes {
  readonly segment: Segment;
  readonly column: string;
  readonly use: ColumnUse;
  whole: TextIndex | CoarseVectors | EndRun | IdentifierRun | null;
  building: { readonly abort: AbortController; readonly over: Promise<void>; readonly end: () => void } | null;
  /** Removals from the segment by the time that the oldest of what is kept was made. */
  removals: number;
  /** By number. */
  readonly chunks: Map<number, TextIndex>;
  bytes: number;
  /** Drops the indexes, and takes them off the budget. */
  readonly release: () => void;
}

export interface IndexedColumn {
  readonly segment: Segment;
  readonly column: string;
}

export interface RenewOptions {
  readonly signal?: AbortSignal;
  /** In indexes. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** Indexes of whole segments, and their bytes. */
export interface Renewed {
  readonly indexes: number;
  readonly bytes: number;
}

interface TextIndexRequest {
  readonly cells: TextCells;
  readonly language: string;
}

export const textIndexJob: SteppedJob<TextIndexRequest, Uint8Array> = {
  module: import.meta.url,
  name: 'textIndexJob',
  steps: ({ cells, language }) => buildTextIndex(cells, language),
};

/** Indexes by segment, and by column and its use. */
const indexesBySegment = new WeakMap<Segment, Map<string, ColumnIndexes>>();

/** Without a column: of all of them. */
export function forgetIndexes(segment: Segment, column?: string): void {
  forgetGraphs(segment, column);
  const indexesOfSegment = indexesBySegment.get(segment);
  if (!indexesOfSegment) return;
  for (const [indexName, columnIndexes] of indexesOfSegment) {
    if (column !== undefined && columnIndexes.column !== column) continue;
    columnIndexes.building?.abort.abort();
    columnIndexes.building?.end();
    columnIndexes.release();
    indexesOfSegment.delete(indexName);
  }
}

export class SegmentIndexes {
  readonly #indexOptions: SegmentIndexesOptions;
  readonly #columnSpace: ColumnSpace;
  /** Where vectors rest as bytes. */
  readonly #indexExtents: Extents;
  /** By their age; those over the budget are let go. */
  readonly #indexesByAge: LRUCache<ColumnIndexes, ColumnIndexes>;
  /** Indexes that a worker is to make, in the order of their requests. */
  #indexBuildQueue: ColumnIndexes[] = [];
  #runningBuilds = 0;
  /** Bytes of vectors that are being made. */
  #comingIndexBytes = 0;
  readonly graphs: NeighbourGraphs | null;
  /** Null: nothing rests on files. */
  readonly files: IndexFiles | null;

  constructor(space: ColumnSpace, options: SegmentIndexesOptions = defaultIndexes, files: IndexFiles | null = null) {
    this.#indexOptions = options;
    this.files = files;
    if (files) files.onRested = (segment) => this.#saveIndexesAtRest(segment);
    this.#columnSpace = space;
    this.#indexExtents = space.extents();
    const hasIndexRoom = (bytes: number): boolean => this.bytes + this.#comingIndexBytes + bytes <= options.budgetBytes;
    this.graphs = options.graphs && new NeighbourGraphs(options.graphs, { space, hasRoom: hasIndexRoom, files });
    this.#indexesByAge = new LRUCache({
      maxSize: Math.max(1, options.budgetBytes),
      sizeCalculation: ({ bytes }) => Math.max(1, bytes),
      dispose: (columnIndexes, _, reason) => {
        if (reason === 'evict') this.#emptyIndexes(columnIndexes);
      },
    });
  }

  get bytes(): number {
    return this.#indexesByAge.calculatedSize + (this.graphs?.bytes ?? 0);
  }

  get language(): string {
    return this.#indexOptions.language;
  }

  /**
   * Rows from the first on that one index covers: those of a sealed segment once it was made, and the first many of a growing
   * one. Requests the missing index.
   */
  coveredRows(segment: Segment, column: string): number {
    const columnIndexes = this.#columnIndexesOf(segment, column);
    const indexedRowCount = columnIndexes.whole?.rows ?? 0;
    if (columnIndexes.whole) this.#indexesByAge.get(columnIndexes);
    const { length } = segment;
    if (segment.sealed ? indexedRowCount < length : length - indexedRowCount >= REINDEX_GROWN_ROWS)
      this.#queueIndexBuild(columnIndexes);
    return indexedRowCount;
  }

  /** The same as far as it is there; nothing is begun. */
  indexedRows(segment: Segment, column: string): number {
    return indexesBySegment.get(segment)?.get(column)?.whole?.rows ?? 0;
  }

  /** The index of those rows. */
  whole(segment: Segment, column: string): TextIndex | null {
    const { whole } = this.#columnIndexesOf(segment, column);
    return whole instanceof TextIndex ? whole : null;
  }

  /** Vectors as bytes, good for the turn. Requests a missing one, where there is room. */
  coarse(segment: Segment, column: string): CoarseVectors | null {
    if (!this.#indexOptions.workers || (!segment.sealed && segment.length < SEGMENT_ROWS)) return null;
    const columnIndexes = this.#columnIndexesOf(segment, column);
    if (columnIndexes.whole instanceof CoarseVectors) {
      this.#indexesByAge.get(columnIndexes);
      return columnIndexes.whole;
    }
    this.#queueIndexBuild(columnIndexes);
    return null;
  }

  /** Which rows of a column have the same text. Requests a missing index, where there is room. */
  ends(segment: Segment, column: string): EndRun | null {
    if (!this.#indexOptions.workers || !segment.sealed) return null;
    const columnIndexes = this.#columnIndexesOf(segment, column, 'ends');
    if (columnIndexes.whole instanceof EndRun) {
      this.#indexesByAge.get(columnIndexes);
      return columnIndexes.whole;
    }
    this.#queueIndexBuild(columnIndexes);
    return null;
  }

  /** Which rows of a column hold which identifiers of a kind. Requests a missing index, where there is room. */
  identifiers(segment: Segment, column: string, kind: string | null): IdentifierRun | null {
    if (!this.#indexOptions.workers || !segment.sealed) return null;
    const columnIndexes = this.#columnIndexesOf(segment, column, { identifiers: kind });
    if (columnIndexes.whole instanceof IdentifierRun) {
      this.#indexesByAge.get(columnIndexes);
      return columnIndexes.whole;
    }
    this.#queueIndexBuild(columnIndexes);
    return null;
  }

  /** Drops the indexes of segments that are gone. */
  clear(): void {
    this.graphs?.clear();
    const keptIndexes = [...this.#indexesByAge.values()];
    for (const { segment } of keptIndexes) forgetIndexes(segment);
  }

  /** Begins to index whole segments; null where all of them are, or none can be. */
  prepare(segments: readonly Segment[], columns: readonly string[]): Preparation | null {
    if (!this.#indexOptions.workers) return null;
    const indexBuilds = segments.flatMap((segment) =>
      columns.flatMap((column) =>
        this.coveredRows(segment, column) < segment.length ? (this.#columnIndexesOf(segment, column).building ?? []) : [],
      ),
    );
    if (indexBuilds.length === 0) return null;
    let builtCount = 0;
    const buildsOver = indexBuilds.map(({ over }) => over.then(() => void builtCount++));
    return {
      ready: Promise.all(buildsOver).then(() => undefined),
      progress: () => ({ done: builtCount, of: indexBuilds.length }),
    };
  }

  /** Makes indexes of whole segments anew, one after the other: searches meanwhile read what is there, and chunks of the rest. */
  async renew(indexedColumns: readonly IndexedColumn[], { signal, onProgress }: RenewOptions = {}): Promise<Renewed> {
    let [renewedIndexCount, renewedIndexBytes] = [0, 0];
    for (const [renewedCount, { segment, column }] of indexedColumns.entries()) {
      onProgress?.(renewedCount, indexedColumns.length);
      signal?.throwIfAborted();
      forgetIndexes(segment, column);
      await this.files?.drop(segment, this.#indexFileKey(this.#columnIndexesOf(segment, column)));
      await this.prepare([segment], [column])?.ready;
      const builtIndex = this.#columnIndexesOf(segment, column).whole;
      if (builtIndex === null) continue;
      renewedIndexCount++;
      renewedIndexBytes += builtIndex.bytes.length;
    }
    onProgress?.(indexedColumns.length, indexedColumns.length);
    return { indexes: renewedIndexCount, bytes: renewedIndexBytes };
  }

  /** Columns of a segment that were searched, as far as anything of them is kept. */
  searchedColumns(segment: Segment): readonly string[] {
    return [...(indexesBySegment.get(segment)?.values() ?? [])].flatMap(({ column, use }) => (use === 'cells' ? column : []));
  }

  /** How many indexes hold a term, or were made of rows that have been removed since: none should. */
  holding(term: string): number {
    let holdingCount = this.graphs?.stale ?? 0;
    for (const { segment, whole, chunks, removals } of this.#indexesByAge.values()) {
      const holdsTerm = [whole, ...chunks.values()].some(
        (textIndex) => textIndex instanceof TextIndex && textIndex.find(term) >= 0,
      );
      if (holdsTerm || removals !== segment.removals) holdingCount++;
    }
    return holdingCount;
  }

  /** How many indexes were made of rows that have been removed since. */
  get stale(): number {
    let staleIndexCount = this.graphs?.stale ?? 0;
    for (const { segment, removals } of this.#indexesByAge.values()) if (removals !== segment.removals) staleIndexCount++;
    return staleIndexCount;
  }

  /** Whether the index of a chunk is there, and says all of its rows. */
  hasChunk(segment: Segment, column: string, chunkNumber: number): boolean {
    const chunkRows = Math.min(CHUNK_ROWS, segment.length - chunkNumber * CHUNK_ROWS);
    return indexesBySegment.get(segment)?.get(column)?.chunks.get(chunkNumber)?.rows === chunkRows;
  }

  /** Makes the index of the rows of a chunk that are there by now, unless it is there: texts may be long. */
  *makeChunk(segment: Segment, column: string, chunkNumber: number): Generator<unknown, TextIndex> {
    const columnIndexes = this.#columnIndexesOf(segment, column);
    const firstChunkRow = chunkNumber * CHUNK_ROWS;
    const chunkRows = Math.min(CHUNK_ROWS, segment.length - firstChunkRow);
    const builtChunk = columnIndexes.chunks.get(chunkNumber);
    if (builtChunk?.rows === chunkRows) return builtChunk;
    const chunkIndex = yield* textIndexOf(
      cellsOf(segment, indexedVectorOf(segment, column), indexedTypeOf(segment, column), firstChunkRow, chunkRows),
      this.#indexOptions.language,
    );
    // Rows may have been removed meanwhile, or another question may have made it.
    if (indexesBySegment.get(segment)?.get(column) !== columnIndexes || columnIndexes.removals !== segment.removals)
      return chunkIndex;
    this.#resizeIndexes(columnIndexes, chunkIndex.bytes.length - (columnIndexes.chunks.get(chunkNumber)?.bytes.length ?? 0));
    columnIndexes.chunks.set(chunkNumber, chunkIndex);
    return chunkIndex;
  }

  /** The same at once. */
  chunk(segment: Segment, column: string, chunkNumber: number): TextIndex {
    return finishSteps(this.makeChunk(segment, column, chunkNumber));
  }

  #columnIndexesOf(segment: Segment, column: string, use: ColumnUse = 'cells'): ColumnIndexes {
    let indexesOfSegment = indexesBySegment.get(segment);
    if (!indexesOfSegment) indexesBySegment.set(segment, (indexesOfSegment = new Map()));
    const indexName = indexNameOf({ column, use });
    const columnIndexes = indexesOfSegment.get(indexName);
    if (columnIndexes) return columnIndexes;
    const newIndexes: ColumnIndexes = {
      segment,
      column,
      use,
      removals: segment.removals,
      whole: null,
      building: null,
      chunks: new Map(),
      bytes: 0,
      release: () => {
        this.#indexesByAge.delete(newIndexes);
        this.#emptyIndexes(newIndexes);
      },
    };
    indexesOfSegment.set(indexName, newIndexes);
    return newIndexes;
  }

  #emptyIndexes(columnIndexes: ColumnIndexes): void {
    if (columnIndexes.whole instanceof CoarseVectors) this.#indexExtents.giveBack(columnIndexes.whole.bytes);
    columnIndexes.whole = null;
    columnIndexes.chunks.clear();
    columnIndexes.bytes = 0;
  }

  #resizeIndexes(columnIndexes: ColumnIndexes, addedBytes: number): void {
    columnIndexes.bytes += addedBytes;
    this.#indexesByAge.delete(columnIndexes);
    this.#indexesByAge.set(columnIndexes, columnIndexes);
  }

  #queueIndexBuild(columnIndexes: ColumnIndexes): void {
    if (!this.#indexOptions.workers || columnIndexes.building) return;
    const expectedIndexBytes = this.#estimateIndexBytes(columnIndexes);
    if (expectedIndexBytes === null) return;
    this.#comingIndexBytes += expectedIndexBytes;
    const abort = new AbortController();
    let resolveBuild = (): void => undefined;
    const over = new Promise<void>((resolved) => (resolveBuild = resolved));
    let hasBuildEnded = false;
    const end = (): void => {
      if (!hasBuildEnded) this.#comingIndexBytes -= expectedIndexBytes;
      hasBuildEnded = true;
      resolveBuild();
    };
    columnIndexes.building = { abort, over, end };
    this.#indexBuildQueue.push(columnIndexes);
    this.#runIndexBuilds();
  }

  /** One at a time is read for the worker, and one waits for it: all at once would bring all columns into memory. */
  #runIndexBuilds(): void {
    while (this.#runningBuilds < 2) {
      const columnIndexes = this.#indexBuildQueue.shift();
      if (!columnIndexes) return;
      if (columnIndexes.building?.abort.signal.aborted !== false) continue;
      this.#runningBuilds++;
      // The next is not begun before this one is saved: they would wait for the disk in memory.
      void this.#buildOrReadIndex(columnIndexes, columnIndexes.building)
        .then((isNewIndex) => (isNewIndex ? this.#saveIndex(columnIndexes) : undefined))
        .finally(() => {
          this.#runningBuilds--;
          this.#runIndexBuilds();
        });
    }
  }

  /** True where it was made, and not read. */
  async #buildOrReadIndex(
    columnIndexes: ColumnIndexes,
    { abort: abortBuild, end: endBuild }: NonNullable<ColumnIndexes['building']>,
  ): Promise<boolean> {
    const { say: sayIndexFailed } = this.#indexOptions;
    const { segment, column, use } = columnIndexes;
    // The worker's input stays in place until it is done, even if columns leave memory meanwhile.
    const extentHold = this.#columnSpace.read([null]);
    extentHold.next();
    try {
      const { removals } = segment;
      const storedIndex = segment.sealed ? await this.files?.read(segment, this.#indexFileKey(columnIndexes)) : null;
      if (abortBuild.signal.aborted) return false;
      const indexedVector: Vector = use !== 'cells' && storedIndex ? { kind: 'null' } : indexedVectorOf(segment, column);
      const wholeIndex =
        use !== 'cells'
          ? await this.#runOfEqualCells(columnIndexes, indexedVector, storedIndex ?? null, abortBuild.signal)
          : indexedVector.kind === 'vec'
            ? await this.#coarseVectorsOf(columnIndexes, indexedVector, storedIndex ?? null, abortBuild.signal)
            : storedIndex
              ? TextIndex.open(storedIndex)
              : await this.#textIndexOf(columnIndexes, indexedVector, abortBuild.signal);
      if (wholeIndex === null || abortBuild.signal.aborted) return false;
      columnIndexes.whole = wholeIndex;
      columnIndexes.removals = removals;
      for (const chunkNumber of columnIndexes.chunks.keys())
        if (chunkNumber * CHUNK_ROWS < wholeIndex.rows) columnIndexes.chunks.delete(chunkNumber);
      const chunkBytes = [...columnIndexes.chunks.values()].reduce((sum, chunkIndex) => sum + chunkIndex.bytes.length, 0);
      this.#resizeIndexes(columnIndexes, wholeIndex.bytes.length + chunkBytes - columnIndexes.bytes);
      return !storedIndex;
    } catch (error) {
      // Chunks, and the vectors themselves, answer in its place.
      if (!abortBuild.signal.aborted && !isIndexCancelled(error))
        sayIndexFailed(`an index can't be made (${indexErrorMessage(error)})`);
      return false;
    } finally {
      columnIndexes.building = null;
      endBuild();
      extentHold.return();
    }
  }

  /** A segment came to rest: saves the indexes made of it before. */
  #saveIndexesAtRest(segment: Segment): void {
    for (const columnIndexes of indexesBySegment.get(segment)?.values() ?? []) void this.#saveIndex(columnIndexes);
    this.graphs?.onRest(segment);
  }

  /** Saves the indexes once their segment rests on a file. Indexes of rows that have been removed since are not written. */
  async #saveIndex(columnIndexes: ColumnIndexes): Promise<void> {
    const { segment, whole: wholeIndex } = columnIndexes;
    if (!this.files || wholeIndex === null || !segment.sealed || wholeIndex.rows !== segment.length) return;
    // Bytes that leave memory meanwhile are not reused before they are written.
    const extentHold = this.#columnSpace.read([null]);
    extentHold.next();
    const isIndexCurrent = (): boolean =>
      indexesBySegment.get(segment)?.get(indexNameOf(columnIndexes)) === columnIndexes &&
      columnIndexes.removals === segment.removals;
    await this.files.write(segment, this.#indexFileKey(columnIndexes), wholeIndex.bytes, isIndexCurrent);
    extentHold.return();
  }

  #indexFileKey({ segment, column, use }: ColumnIndexes): IndexKey {
    const indexedRange = { column, rows: segment.length };
    // A segment that rests on no file has none of its indexes on one.
    if (use === 'ends') return { kind: 'ends', format: END_RUN_FORMAT, language: '', ...indexedRange };
    if (use !== 'cells') {
      const identifierForms = `${use.identifiers ?? '*'} ${formsVersion()}`;
      return { kind: 'identifiers', format: IDENTIFIER_RUN_FORMAT, language: identifierForms, ...indexedRange };
    }
    if (segment.cells.typesOf(column).at(-1) === 'vector')
      return { kind: 'coarse', format: COARSE_FORMAT, language: '', ...indexedRange };
    return { kind: 'text', format: TEXT_FORMAT, language: this.#indexOptions.language, ...indexedRange };
  }

  async #textIndexOf({ segment, column }: ColumnIndexes, indexedVector: Vector, signal: AbortSignal): Promise<TextIndex | null> {
    const { workers, language } = this.#indexOptions;
    const indexedRowCount = segment.sealed ? segment.length : segment.length - (segment.length % CHUNK_ROWS);
    const indexedCells = await this.#cellsToIndex(
      segment,
      indexedVector,
      indexedTypeOf(segment, column),
      indexedRowCount,
      signal,
    );
    if (indexedCells === null) return null;
    const textIndexRequest = { cells: segment.sealed ? indexedCells : copyTextCells(indexedCells), language };
    return TextIndex.open(await workers!.run(textIndexJob, textIndexRequest, 'index', signal));
  }

  /** Cells for a worker, copied with turns for others; null where it was given up. */
  async #cellsToIndex(
    segment: Segment,
    indexedVector: Vector,
    type: ColumnType | undefined,
    rows: number,
    signal: AbortSignal,
  ): Promise<TextCells | null> {
    const cellSteps = cellsOf(segment, indexedVector, type, 0, rows);
    let cellStep = cellSteps.next();
    for (; cellStep.done !== true && !signal.aborted; cellStep = cellSteps.next()) await this.#columnSpace.turn();
    return cellStep.done === true ? cellStep.value : null;
  }

  /** Rows by what their cells are equal in: the texts themselves, or the identifiers that they are. */
  async #runOfEqualCells(
    { segment, use }: ColumnIndexes,
    indexedVector: Vector,
    storedIndex: Uint8Array | null,
    signal: AbortSignal,
  ): Promise<EndRun | IdentifierRun | null> {
    if (storedIndex) return use === 'ends' ? new EndRun(storedIndex) : new IdentifierRun(storedIndex);
    const isTextVector = indexedVector.kind === 'text' || indexedVector.kind === 'dict';
    const indexedCells =
      use === 'ends' || isTextVector
        ? await this.#cellsToIndex(segment, indexedVector, 'string', segment.length, signal)
        : wholeNumberTexts(indexedVector, segment.length, absentOf(segment, indexedVector, 0, segment.length));
    if (indexedCells === null || signal.aborted) return null;
    const workers = this.#indexOptions.workers!;
    if (use === 'ends') return new EndRun(await workers.run(endRunJob, indexedCells, 'index', signal));
    const { identifiers: identifierKind } = use as Exclude<ColumnUse, string>;
    return new IdentifierRun(await workers.run(identifierRunJob, { cells: indexedCells, kind: identifierKind }, 'index', signal));
  }

  /** Null where it was given up, or no memory of columns has room. */
  async #coarseVectorsOf(
    { segment }: ColumnIndexes,
    indexedVector: VectorColumn,
    storedIndex: Uint8Array | null,
    signal: AbortSignal,
  ): Promise<CoarseVectors | null> {
    const { values, dims } = indexedVector;
    const vectorCells = { rows: segment.length, dims, values, absent: absentOf(segment, indexedVector, 0, segment.length) };
    const coarseBytes = storedIndex ?? (await this.#indexOptions.workers!.run(coarseVectorsJob, vectorCells, 'index', signal));
    const coarseMemory = this.#indexExtents.allocate(Uint8Array, coarseBytes.length);
    for (let copiedBytes = 0; copiedBytes < coarseBytes.length && !signal.aborted; copiedBytes += INDEX_BYTES_A_TURN) {
      if (copiedBytes > 0) await this.#columnSpace.turn();
      coarseMemory.set(coarseBytes.subarray(copiedBytes, copiedBytes + INDEX_BYTES_A_TURN), copiedBytes);
    }
    if (!signal.aborted && memoryOf(coarseMemory)) return new CoarseVectors(vectorCells, coarseMemory);
    this.#indexExtents.giveBack(coarseMemory);
    return null;
  }

  /**
   * Bytes that vectors, ends or identifiers are going to take; null where there is no room: many columns would put out each other at every
   * question, so the first ones stay.
   */
  #estimateIndexBytes({ segment, column, use }: ColumnIndexes): number | null {
    if (use === 'ends') return this.#indexRoomFor(endRunBytes(segment.length));
    if (use !== 'cells') return this.#indexRoomFor(identifierRunBytes(segment.length));
    const indexedVector = indexedVectorOf(segment, column);
    if (indexedVector.kind !== 'vec') return 0;
    // A worker would need a copy of a column that it cannot read in place.
    if (!memoryOf(indexedVector.values)) return null;
    const coarseIndexBytes = coarseBytes({ rows: segment.length, dims: indexedVector.dims });
    return this.#indexRoomFor(coarseIndexBytes);
  }

  #indexRoomFor(expectedIndexBytes: number): number | null {
    return this.bytes + this.#comingIndexBytes + expectedIndexBytes <= this.#indexOptions.budgetBytes ? expectedIndexBytes : null;
  }
}

/** Names of columns have no NUL in them. */
function indexNameOf({ column, use }: Pick<ColumnIndexes, 'column' | 'use'>): string {
  if (use === 'cells') return column;
  return use === 'ends' ? `\0${column}` : `\0${column}\0${use.identifiers ?? ''}`;
}

/** A growing segment moves its arrays, so the worker gets copies. */
function copyTextCells(grownCells: TextCells): TextCells {
  const { rows, offsets, heap, codes, absent, isJson } = grownCells;
  if (codes !== null) return grownCells;
  const [heapStart, heapEnd] = [offsets[0]!, offsets[rows]!];
  const copiedOffsets = offsets.slice(0, rows + 1).map((offset) => offset - heapStart);
  return {
    rows,
    offsets: copiedOffsets,
    heap: heap.slice(heapStart, heapEnd),
    codes,
    absent: absent && absent.slice(),
    ...(isJson && { isJson }),
  };
}

function indexedTypeOf(segment: Segment, column: string): ColumnType | undefined {
  return segment.column(column)?.type;
}

function indexedVectorOf(segment: Segment, column: string): Vector {
  return segment.column(column)?.vector(segment.length) ?? { kind: 'null' };
}

function isIndexCancelled(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'REL_CANCELLED';
}

function indexErrorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
