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
const BYTES_A_TURN = 1 << 22;

/** Rows by which a segment grows until its first ones are indexed anew. */
const GROWN_ROWS = 8_192;

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

interface BuildRequest {
  readonly cells: TextCells;
  readonly language: string;
}

export const textIndexJob: SteppedJob<BuildRequest, Uint8Array> = {
  module: import.meta.url,
  name: 'textIndexJob',
  steps: ({ cells, language }) => buildTextIndex(cells, language),
};

/** Indexes by segment, and by column and its use. */
const keepers = new WeakMap<Segment, Map<string, ColumnIndexes>>();

/** Without a column: of all of them. */
export function forgetIndexes(segment: Segment, column?: string): void {
  forgetGraphs(segment, column);
  const columns = keepers.get(segment);
  if (!columns) return;
  for (const [name, columnIndexes] of columns) {
    if (column !== undefined && columnIndexes.column !== column) continue;
    columnIndexes.building?.abort.abort();
    columnIndexes.building?.end();
    columnIndexes.release();
    columns.delete(name);
  }
}

export class SegmentIndexes {
  readonly #options: SegmentIndexesOptions;
  readonly #space: ColumnSpace;
  /** Where vectors rest as bytes. */
  readonly #extents: Extents;
  /** By their age; those over the budget are let go. */
  readonly #ages: LRUCache<ColumnIndexes, ColumnIndexes>;
  /** Indexes that a worker is to make, in the order of their requests. */
  #queue: ColumnIndexes[] = [];
  #running = 0;
  /** Bytes of vectors that are being made. */
  #coming = 0;
  readonly graphs: NeighbourGraphs | null;
  /** Null: nothing rests on files. */
  readonly files: IndexFiles | null;

  constructor(space: ColumnSpace, options: SegmentIndexesOptions = defaultIndexes, files: IndexFiles | null = null) {
    this.#options = options;
    this.files = files;
    if (files) files.onRested = (segment) => this.#onRest(segment);
    this.#space = space;
    this.#extents = space.extents();
    const hasRoom = (bytes: number): boolean => this.bytes + this.#coming + bytes <= options.budgetBytes;
    this.graphs = options.graphs && new NeighbourGraphs(options.graphs, { space, hasRoom, files });
    this.#ages = new LRUCache({
      maxSize: Math.max(1, options.budgetBytes),
      sizeCalculation: ({ bytes }) => Math.max(1, bytes),
      dispose: (columnIndexes, _, reason) => {
        if (reason === 'evict') this.#empty(columnIndexes);
      },
    });
  }

  get bytes(): number {
    return this.#ages.calculatedSize + (this.graphs?.bytes ?? 0);
  }

  get language(): string {
    return this.#options.language;
  }

  /**
   * Rows from the first on that one index covers: those of a sealed segment once it was made, and the first many of a growing
   * one. Requests the missing index.
   */
  coveredRows(segment: Segment, column: string): number {
    const columnIndexes = this.#indexesOf(segment, column);
    const rows = columnIndexes.whole?.rows ?? 0;
    if (columnIndexes.whole) this.#ages.get(columnIndexes);
    const { length } = segment;
    if (segment.sealed ? rows < length : length - rows >= GROWN_ROWS) this.#build(columnIndexes);
    return rows;
  }

  /** The same as far as it is there; nothing is begun. */
  indexedRows(segment: Segment, column: string): number {
    return keepers.get(segment)?.get(column)?.whole?.rows ?? 0;
  }

  /** The index of those rows. */
  whole(segment: Segment, column: string): TextIndex | null {
    const { whole } = this.#indexesOf(segment, column);
    return whole instanceof TextIndex ? whole : null;
  }

  /** Vectors as bytes, good for the turn. Requests a missing one, where there is room. */
  coarse(segment: Segment, column: string): CoarseVectors | null {
    if (!this.#options.workers || (!segment.sealed && segment.length < SEGMENT_ROWS)) return null;
    const columnIndexes = this.#indexesOf(segment, column);
    if (columnIndexes.whole instanceof CoarseVectors) {
      this.#ages.get(columnIndexes);
      return columnIndexes.whole;
    }
    this.#build(columnIndexes);
    return null;
  }

  /** Which rows of a column have the same text. Requests a missing index, where there is room. */
  ends(segment: Segment, column: string): EndRun | null {
    if (!this.#options.workers || !segment.sealed) return null;
    const columnIndexes = this.#indexesOf(segment, column, 'ends');
    if (columnIndexes.whole instanceof EndRun) {
      this.#ages.get(columnIndexes);
      return columnIndexes.whole;
    }
    this.#build(columnIndexes);
    return null;
  }

  /** Which rows of a column hold which identifiers of a kind. Requests a missing index, where there is room. */
  identifiers(segment: Segment, column: string, kind: string | null): IdentifierRun | null {
    if (!this.#options.workers || !segment.sealed) return null;
    const columnIndexes = this.#indexesOf(segment, column, { identifiers: kind });
    if (columnIndexes.whole instanceof IdentifierRun) {
      this.#ages.get(columnIndexes);
      return columnIndexes.whole;
    }
    this.#build(columnIndexes);
    return null;
  }

  /** Drops the indexes of segments that are gone. */
  clear(): void {
    this.graphs?.clear();
    const all = [...this.#ages.values()];
    for (const { segment } of all) forgetIndexes(segment);
  }

  /** Begins to index whole segments; null where all of them are, or none can be. */
  prepare(segments: readonly Segment[], columns: readonly string[]): Preparation | null {
    if (!this.#options.workers) return null;
    const building = segments.flatMap((segment) =>
      columns.flatMap((column) =>
        this.coveredRows(segment, column) < segment.length ? (this.#indexesOf(segment, column).building ?? []) : [],
      ),
    );
    if (building.length === 0) return null;
    let done = 0;
    const each = building.map(({ over }) => over.then(() => void done++));
    return { ready: Promise.all(each).then(() => undefined), progress: () => ({ done, of: building.length }) };
  }

  /** Makes indexes of whole segments anew, one after the other: searches meanwhile read what is there, and chunks of the rest. */
  async renew(wanted: readonly IndexedColumn[], { signal, onProgress }: RenewOptions = {}): Promise<Renewed> {
    let [indexes, bytes] = [0, 0];
    for (const [done, { segment, column }] of wanted.entries()) {
      onProgress?.(done, wanted.length);
      signal?.throwIfAborted();
      forgetIndexes(segment, column);
      await this.files?.drop(segment, this.#key(this.#indexesOf(segment, column)));
      await this.prepare([segment], [column])?.ready;
      const builtIndex = this.#indexesOf(segment, column).whole;
      if (builtIndex === null) continue;
      indexes++;
      bytes += builtIndex.bytes.length;
    }
    onProgress?.(wanted.length, wanted.length);
    return { indexes, bytes };
  }

  /** Columns of a segment that were searched, as far as anything of them is kept. */
  searchedColumns(segment: Segment): readonly string[] {
    return [...(keepers.get(segment)?.values() ?? [])].flatMap(({ column, use }) => (use === 'cells' ? column : []));
  }

  /** How many indexes hold a term, or were made of rows that have been removed since: none should. */
  holding(term: string): number {
    let count = this.graphs?.stale ?? 0;
    for (const { segment, whole, chunks, removals } of this.#ages.values()) {
      const holds = [whole, ...chunks.values()].some((index) => index instanceof TextIndex && index.find(term) >= 0);
      if (holds || removals !== segment.removals) count++;
    }
    return count;
  }

  /** How many indexes were made of rows that have been removed since. */
  get stale(): number {
    let count = this.graphs?.stale ?? 0;
    for (const { segment, removals } of this.#ages.values()) if (removals !== segment.removals) count++;
    return count;
  }

  /** Whether the index of a chunk is there, and says all of its rows. */
  hasChunk(segment: Segment, column: string, number: number): boolean {
    const rows = Math.min(CHUNK_ROWS, segment.length - number * CHUNK_ROWS);
    return keepers.get(segment)?.get(column)?.chunks.get(number)?.rows === rows;
  }

  /** Makes the index of the rows of a chunk that are there by now, unless it is there: texts may be long. */
  *makeChunk(segment: Segment, column: string, number: number): Generator<unknown, TextIndex> {
    const columnIndexes = this.#indexesOf(segment, column);
    const first = number * CHUNK_ROWS;
    const rows = Math.min(CHUNK_ROWS, segment.length - first);
    const builtChunk = columnIndexes.chunks.get(number);
    if (builtChunk?.rows === rows) return builtChunk;
    const chunkIndex = yield* textIndexOf(
      cellsOf(segment, vectorOf(segment, column), typeOf(segment, column), first, rows),
      this.#options.language,
    );
    // Rows may have been removed meanwhile, or another question may have made it.
    if (keepers.get(segment)?.get(column) !== columnIndexes || columnIndexes.removals !== segment.removals) return chunkIndex;
    this.#resize(columnIndexes, chunkIndex.bytes.length - (columnIndexes.chunks.get(number)?.bytes.length ?? 0));
    columnIndexes.chunks.set(number, chunkIndex);
    return chunkIndex;
  }

  /** The same at once. */
  chunk(segment: Segment, column: string, number: number): TextIndex {
    return finishSteps(this.makeChunk(segment, column, number));
  }

  #indexesOf(segment: Segment, column: string, use: ColumnUse = 'cells'): ColumnIndexes {
    let columns = keepers.get(segment);
    if (!columns) keepers.set(segment, (columns = new Map()));
    const name = nameOf({ column, use });
    const columnIndexes = columns.get(name);
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
        this.#ages.delete(newIndexes);
        this.#empty(newIndexes);
      },
    };
    columns.set(name, newIndexes);
    return newIndexes;
  }

  #empty(columnIndexes: ColumnIndexes): void {
    if (columnIndexes.whole instanceof CoarseVectors) this.#extents.giveBack(columnIndexes.whole.bytes);
    columnIndexes.whole = null;
    columnIndexes.chunks.clear();
    columnIndexes.bytes = 0;
  }

  #resize(columnIndexes: ColumnIndexes, by: number): void {
    columnIndexes.bytes += by;
    this.#ages.delete(columnIndexes);
    this.#ages.set(columnIndexes, columnIndexes);
  }

  #build(columnIndexes: ColumnIndexes): void {
    if (!this.#options.workers || columnIndexes.building) return;
    const expected = this.#estimateBytes(columnIndexes);
    if (expected === null) return;
    this.#coming += expected;
    const abort = new AbortController();
    let resolve = (): void => undefined;
    const over = new Promise<void>((resolved) => (resolve = resolved));
    let ended = false;
    const end = (): void => {
      if (!ended) this.#coming -= expected;
      ended = true;
      resolve();
    };
    columnIndexes.building = { abort, over, end };
    this.#queue.push(columnIndexes);
    this.#pump();
  }

  /** One at a time is read for the worker, and one waits for it: all at once would bring all columns into memory. */
  #pump(): void {
    while (this.#running < 2) {
      const columnIndexes = this.#queue.shift();
      if (!columnIndexes) return;
      if (columnIndexes.building?.abort.signal.aborted !== false) continue;
      this.#running++;
      // The next is not begun before this one is saved: they would wait for the disk in memory.
      void this.#buildOrRead(columnIndexes, columnIndexes.building)
        .then((isNew) => (isNew ? this.#save(columnIndexes) : undefined))
        .finally(() => {
          this.#running--;
          this.#pump();
        });
    }
  }

  /** True where it was made, and not read. */
  async #buildOrRead(columnIndexes: ColumnIndexes, { abort, end }: NonNullable<ColumnIndexes['building']>): Promise<boolean> {
    const { say } = this.#options;
    const { segment, column, use } = columnIndexes;
    // The worker's input stays in place until it is done, even if columns leave memory meanwhile.
    const hold = this.#space.read([null]);
    hold.next();
    try {
      const { removals } = segment;
      const storedIndex = segment.sealed ? await this.files?.read(segment, this.#key(columnIndexes)) : null;
      if (abort.signal.aborted) return false;
      const vector: Vector = use !== 'cells' && storedIndex ? { kind: 'null' } : vectorOf(segment, column);
      const whole =
        use !== 'cells'
          ? await this.#ofEqual(columnIndexes, vector, storedIndex ?? null, abort.signal)
          : vector.kind === 'vec'
            ? await this.#ofVectors(columnIndexes, vector, storedIndex ?? null, abort.signal)
            : storedIndex
              ? TextIndex.open(storedIndex)
              : await this.#ofTexts(columnIndexes, vector, abort.signal);
      if (whole === null || abort.signal.aborted) return false;
      columnIndexes.whole = whole;
      columnIndexes.removals = removals;
      for (const number of columnIndexes.chunks.keys()) if (number * CHUNK_ROWS < whole.rows) columnIndexes.chunks.delete(number);
      const chunks = [...columnIndexes.chunks.values()].reduce((sum, chunk) => sum + chunk.bytes.length, 0);
      this.#resize(columnIndexes, whole.bytes.length + chunks - columnIndexes.bytes);
      return !storedIndex;
    } catch (error) {
      // Chunks, and the vectors themselves, answer in its place.
      if (!abort.signal.aborted && !isCancelled(error)) say(`an index can't be made (${messageOf(error)})`);
      return false;
    } finally {
      columnIndexes.building = null;
      end();
      hold.return();
    }
  }

  /** A segment came to rest: saves the indexes made of it before. */
  #onRest(segment: Segment): void {
    for (const columnIndexes of keepers.get(segment)?.values() ?? []) void this.#save(columnIndexes);
    this.graphs?.onRest(segment);
  }

  /** Saves the indexes once their segment rests on a file. Indexes of rows that have been removed since are not written. */
  async #save(columnIndexes: ColumnIndexes): Promise<void> {
    const { segment, whole } = columnIndexes;
    if (!this.files || whole === null || !segment.sealed || whole.rows !== segment.length) return;
    // Bytes that leave memory meanwhile are not reused before they are written.
    const hold = this.#space.read([null]);
    hold.next();
    const isCurrent = (): boolean =>
      keepers.get(segment)?.get(nameOf(columnIndexes)) === columnIndexes && columnIndexes.removals === segment.removals;
    await this.files.write(segment, this.#key(columnIndexes), whole.bytes, isCurrent);
    hold.return();
  }

  #key({ segment, column, use }: ColumnIndexes): IndexKey {
    const of = { column, rows: segment.length };
    // A segment that rests on no file has none of its indexes on one.
    if (use === 'ends') return { kind: 'ends', format: END_RUN_FORMAT, language: '', ...of };
    if (use !== 'cells') {
      const language = `${use.identifiers ?? '*'} ${formsVersion()}`;
      return { kind: 'identifiers', format: IDENTIFIER_RUN_FORMAT, language, ...of };
    }
    if (segment.cells.typesOf(column).at(-1) === 'vector') return { kind: 'coarse', format: COARSE_FORMAT, language: '', ...of };
    return { kind: 'text', format: TEXT_FORMAT, language: this.#options.language, ...of };
  }

  async #ofTexts({ segment, column }: ColumnIndexes, vector: Vector, signal: AbortSignal): Promise<TextIndex | null> {
    const { workers, language } = this.#options;
    const rows = segment.sealed ? segment.length : segment.length - (segment.length % CHUNK_ROWS);
    const cells = await this.#cells(segment, vector, typeOf(segment, column), rows, signal);
    if (cells === null) return null;
    const request = { cells: segment.sealed ? cells : copyCells(cells), language };
    return TextIndex.open(await workers!.run(textIndexJob, request, 'index', signal));
  }

  /** Cells for a worker, copied with turns for others; null where it was given up. */
  async #cells(
    segment: Segment,
    vector: Vector,
    type: ColumnType | undefined,
    rows: number,
    signal: AbortSignal,
  ): Promise<TextCells | null> {
    const steps = cellsOf(segment, vector, type, 0, rows);
    let step = steps.next();
    for (; step.done !== true && !signal.aborted; step = steps.next()) await this.#space.turn();
    return step.done === true ? step.value : null;
  }

  /** Rows by what their cells are equal in: the texts themselves, or the identifiers that they are. */
  async #ofEqual(
    { segment, use }: ColumnIndexes,
    vector: Vector,
    storedIndex: Uint8Array | null,
    signal: AbortSignal,
  ): Promise<EndRun | IdentifierRun | null> {
    if (storedIndex) return use === 'ends' ? new EndRun(storedIndex) : new IdentifierRun(storedIndex);
    const texts = vector.kind === 'text' || vector.kind === 'dict';
    const cells =
      use === 'ends' || texts
        ? await this.#cells(segment, vector, 'string', segment.length, signal)
        : wholeNumberTexts(vector, segment.length, absentOf(segment, vector, 0, segment.length));
    if (cells === null || signal.aborted) return null;
    const workers = this.#options.workers!;
    if (use === 'ends') return new EndRun(await workers.run(endRunJob, cells, 'index', signal));
    const { identifiers: kind } = use as Exclude<ColumnUse, string>;
    return new IdentifierRun(await workers.run(identifierRunJob, { cells, kind }, 'index', signal));
  }

  /** Null where it was given up, or no memory of columns has room. */
  async #ofVectors(
    { segment }: ColumnIndexes,
    vector: VectorColumn,
    storedIndex: Uint8Array | null,
    signal: AbortSignal,
  ): Promise<CoarseVectors | null> {
    const { values, dims } = vector;
    const cells = { rows: segment.length, dims, values, absent: absentOf(segment, vector, 0, segment.length) };
    const coarseBytes = storedIndex ?? (await this.#options.workers!.run(coarseVectorsJob, cells, 'index', signal));
    const bytes = this.#extents.allocate(Uint8Array, coarseBytes.length);
    for (let at = 0; at < coarseBytes.length && !signal.aborted; at += BYTES_A_TURN) {
      if (at > 0) await this.#space.turn();
      bytes.set(coarseBytes.subarray(at, at + BYTES_A_TURN), at);
    }
    if (!signal.aborted && memoryOf(bytes)) return new CoarseVectors(cells, bytes);
    this.#extents.giveBack(bytes);
    return null;
  }

  /**
   * Bytes that vectors, ends or identifiers are going to take; null where there is no room: many columns would put out each other at every
   * question, so the first ones stay.
   */
  #estimateBytes({ segment, column, use }: ColumnIndexes): number | null {
    if (use === 'ends') return this.#roomFor(endRunBytes(segment.length));
    if (use !== 'cells') return this.#roomFor(identifierRunBytes(segment.length));
    const vector = vectorOf(segment, column);
    if (vector.kind !== 'vec') return 0;
    // A worker would need a copy of a column that it cannot read in place.
    if (!memoryOf(vector.values)) return null;
    const bytes = coarseBytes({ rows: segment.length, dims: vector.dims });
    return this.#roomFor(bytes);
  }

  #roomFor(bytes: number): number | null {
    return this.bytes + this.#coming + bytes <= this.#options.budgetBytes ? bytes : null;
  }
}

/** Names of columns have no NUL in them. */
function nameOf({ column, use }: Pick<ColumnIndexes, 'column' | 'use'>): string {
  if (use === 'cells') return column;
  return use === 'ends' ? `\0${column}` : `\0${column}\0${use.identifiers ?? ''}`;
}

/** A growing segment moves its arrays, so the worker gets copies. */
function copyCells(cells: TextCells): TextCells {
  const { rows, offsets, heap, codes, absent, isJson } = cells;
  if (codes !== null) return cells;
  const [start, end] = [offsets[0]!, offsets[rows]!];
  const own = offsets.slice(0, rows + 1).map((offset) => offset - start);
  return { rows, offsets: own, heap: heap.slice(start, end), codes, absent: absent && absent.slice(), ...(isJson && { isJson }) };
}

function typeOf(segment: Segment, column: string): ColumnType | undefined {
  return segment.column(column)?.type;
}

function vectorOf(segment: Segment, column: string): Vector {
  return segment.column(column)?.vector(segment.length) ?? { kind: 'null' };
}

function isCancelled(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'REL_CANCELLED';
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
