/**
 * Which columns of sealed segments are in memory, and which rest on files only. Invariants:
 *
 * - a segment is written to a file of its own in the background after it was sealed, and again under another name when a hard
 *   delete or a wider type changed it; only columns that a file has may leave memory;
 * - during bulk writes segments gather: only a checkpoint, which asks for their files, and a shortage of memory, checked with
 *   each of them, need the files;
 * - a column leaves in a turn of its own, when resident columns exceed what the budget leaves for them: those that were not read
 *   since the hand last passed go first;
 * - a file that the newest checkpoint rests on stays until the next one is in place;
 * - files are derived: one that can't be written leaves its segment in memory, one that can't be read ends the question, and
 *   the next start rebuilds everything from the log.
 */
import { ServiceError } from '../../../errors.ts';
import { type DerivedFile, DerivedFileError, type DerivedHome, type DerivedReader } from '../../../log/blobs/derived-file.ts';
import { hexOf } from '../../../log/bytes/sha256.ts';
import type { DerivedKind } from '../../derived-kinds.ts';
import type { Segment } from '../segments/segment.ts';
import type { SegmentColumn } from '../segments/segment-column.ts';
import type { AbsentColumns, SegmentColumns, SegmentKeeper } from '../segments/segment-columns.ts';
import { type BytesFor, type DictionaryOf, sameBytes } from '../segments/segment-state.ts';
import { ReadAhead } from './read-ahead.ts';
import { ResidentColumns } from './resident-columns.ts';
import { rewriteSegmentFile, SegmentFile, writeSegmentFile } from './segment-file.ts';
import type { ColumnCounts, ColumnStoreOptions, Compacted, CompactOptions, SegmentWatcher } from './store-contract.ts';
import { StoredSegments } from './stored-segments.ts';
import { type Queued, WriteQueue } from './write-queue.ts';

interface StoredSegment extends Queued {
  readonly segment: Segment;
  readonly dictionaryOf: DictionaryOf;
  file: SegmentFile | null;
  /** Its file was packed as tightly as can be. */
  dense: boolean;
}

/** The segment's rows changed before the captured state was written. */
export class SegmentChangedError extends Error {
  constructor() {
    super('a segment changed before it was written');
    this.name = 'SegmentChangedError';
  }
}

/** Reading a changed segment may wipe cells: earlier facts about its table are then wrong. */
function isUnchangedSinceSealed({ segment, file }: StoredSegment): boolean {
  return file === null && segment.cells.version === 0;
}

export class ColumnStore implements SegmentKeeper, DerivedKind {
  readonly #storeOptions: ColumnStoreOptions;
  #storeHome: DerivedHome | null = null;
  readonly #storedSegments = new Map<SegmentColumns, StoredSegment>();
  readonly #segmentFiles = new StoredSegments();
  readonly #residentColumns: ResidentColumns;
  readonly #readAhead: ReadAhead;
  readonly #segmentWriteQueue: WriteQueue<StoredSegment>;
  /** By column, what it is read into to be written again. */
  readonly #columnBuffers = new Map<string | null, BytesFor>();
  /** Files that are being packed. */
  readonly #segmentRewrites = new Set<Promise<unknown>>();
  readonly #columnCounts = { hydrated: 0, written: 0, compacted: 0 };
  #segmentWatcher: SegmentWatcher | null = null;

  constructor(storeOptions: ColumnStoreOptions) {
    this.#storeOptions = storeOptions;
    this.#residentColumns = new ResidentColumns(
      storeOptions,
      (denseCells) => this.#storedSegments.get(denseCells)?.dense === true,
    );
    this.#readAhead = new ReadAhead(storeOptions.hydrateMax);
    this.#segmentWriteQueue = new WriteQueue({
      ...storeOptions,
      yieldTurn: () => this.#storeHome!.yieldTurn(),
      isKept: (stored) => this.#storedSegments.get(stored.segment.cells) === stored,
      write: (stored) => this.#writeSegment(this.#storeHome!, stored.segment.cells, stored),
      onFailed: (error) => storeOptions.say(`a segment can't be saved (${storeErrorMessage(error)}); its columns stay in memory`),
      onRest: () => this.#columnBuffers.clear(),
    });
  }

  /** From here on segments are written; until the log is known they wait. */
  begin(storeHome: DerivedHome): void {
    if (this.#storeHome?.logId === storeHome.logId) return;
    this.#storeHome = storeHome;
    this.#segmentWriteQueue.begin();
  }

  /** How much memory rows take beside what this store can put away. */
  measureBy(fixed: () => number): void {
    this.#residentColumns.measureBy(fixed);
  }

  watch(watcher: SegmentWatcher): void {
    this.#segmentWatcher = watcher;
  }

  get home(): DerivedHome | null {
    return this.#storeHome;
  }

  get counts(): ColumnCounts {
    return { ...this.#columnCounts, evicted: this.#residentColumns.evicted };
  }

  /** Bytes of columns in memory that could leave it. */
  get residentBytes(): number {
    return this.#residentColumns.bytes;
  }

  get budgetBytes(): number {
    return this.#storeOptions.budgetBytes;
  }

  /** Bytes of segment files, and how many there are. */
  get storedBytes(): number {
    return this.#segmentFiles.bytes;
  }

  get storedSegments(): number {
    return this.#segmentFiles.count;
  }

  /** The prefix of its file names. */
  readonly prefix = 'segment-';

  holds(name: string): boolean {
    return this.#segmentFiles.has(name);
  }

  /** A segment could not be written: its former file is still there. */
  get isBehind(): boolean {
    return this.#segmentWriteQueue.hasFailed;
  }

  /** Segments that no file has yet. */
  get unsaved(): number {
    return this.#segmentWriteQueue.length;
  }

  onSealed(segment: Segment, dictionaryOf: DictionaryOf): void {
    const storedSegment: StoredSegment = { segment, dictionaryOf, file: null, dense: false, queued: false };
    this.#storedSegments.set(segment.cells, storedSegment);
    this.#segmentWriteQueue.addSealed(storedSegment, segment.bytes);
  }

  /** A segment of a checkpoint, and the file that it rests on. */
  addRestored(segment: Segment, file: SegmentFile, dictionaryOf: DictionaryOf): void {
    this.#storedSegments.set(segment.cells, { segment, dictionaryOf, file, dense: false, queued: false });
  }

  onChanged(cells: SegmentColumns): void {
    this.#enqueueSegment(cells);
    this.#segmentWatcher?.onChanged();
  }

  onLoaded(cells: SegmentColumns, name: string | null, column: SegmentColumn): void {
    this.#columnCounts.hydrated++;
    this.#residentColumns.add(cells, name, column);
  }

  unreadable(error: unknown): never {
    if (!(error instanceof DerivedFileError)) throw error;
    this.#storeOptions.say(`a derived file can't be read (${error.message}); the next start rebuilds from the log`);
    this.#storeOptions.onDamaged?.();
    throw new ServiceError('REL_STORAGE', 'a column can not be read from its file; a restart rebuilds it from the log', {
      cause: error,
    });
  }

  /** A segment that is dropped with its branch: readers that are at it go on by themselves. */
  forget({ cells }: Segment): void {
    if (!this.#storedSegments.delete(cells)) return;
    cells.leave();
    this.#residentColumns.drop((otherCells) => otherCells === cells);
    this.#segmentWriteQueue.dropGone();
    this.#segmentWatcher?.onChanged();
  }

  /** All segments are dropped. */
  clear(): void {
    for (const cells of this.#storedSegments.keys()) cells.leave();
    this.#storedSegments.clear();
    this.#residentColumns.drop(() => true);
    this.#segmentWriteQueue.dropGone();
    this.#segmentWatcher?.onChanged();
  }

  /** Name of the file that says what the segment's columns hold now; null while none does. */
  fileOf({ cells }: Segment): string | null {
    return cells.isAtRest ? (this.#storedSegments.get(cells)?.file?.name ?? null) : null;
  }

  /** Stands for what the segment's columns hold now, for as long as its file says it; null while none does. */
  contentsOf({ cells }: Segment): string | null {
    return cells.isAtRest ? (this.#storedSegments.get(cells)?.file?.contents ?? null) : null;
  }

  /** Ids of the contents of all segments. */
  contents(): ReadonlySet<string> {
    return new Set([...this.#storedSegments.values()].flatMap(({ segment }) => this.contentsOf(segment) ?? []));
  }

  /**
   * For a segment that is as it was sealed and has no file yet: gives the name of its file once `settled` has resolved. Then it
   * throws a SegmentChangedError where that file says something else than the segment held when this was asked, or is not there.
   * Null where there is nothing to wait for.
   */
  fileToCome({ cells }: Segment): (() => string) | null {
    const storedSegment = this.#storedSegments.get(cells);
    if (!storedSegment || !this.#segmentWriteQueue.isAtWork || !isUnchangedSinceSealed(storedSegment)) return null;
    return () => {
      if (cells.version > 0 || !storedSegment.file || this.#storedSegments.get(cells) !== storedSegment)
        throw new SegmentChangedError();
      return storedSegment.file.name;
    };
  }

  /** Segments without a file that is true of them are as they were sealed, and files can be written. */
  get isOnlyNew(): boolean {
    if (this.#segmentWriteQueue.hasFailed) return false;
    for (const storedSegment of this.#storedSegments.values())
      if (!storedSegment.segment.cells.isAtRest && !isUnchangedSinceSealed(storedSegment)) return false;
    return true;
  }

  /** Where the files of a checkpoint are. */
  readFrom(reader: DerivedReader): void {
    this.#segmentFiles.readFrom(reader);
  }

  openFile(name: string): Promise<SegmentFile> {
    return this.#segmentFiles.open(name);
  }

  /** Reads columns ahead of a scan, beside the turn. */
  ahead({ cells }: Segment, names: readonly (string | null)[]): void {
    const segmentFile = this.#storedSegments.get(cells)?.file;
    if (segmentFile && cells.isAtRest) this.#readAhead.read(cells, names, segmentFile);
  }

  /** Takes columns out of memory now: for who walks all of a store within one turn and holds no view of any. */
  trim(limit?: number): void {
    this.#residentColumns.trim(limit);
  }

  /**
   * For writers that are faster than segments are written: undefined while there is room, otherwise it resolves when some were
   * written. Memory that can't be freed is not waited for.
   */
  room(): Promise<void> | undefined {
    return this.#segmentWriteQueue.room();
  }

  /** Resolves when every sealed segment has a file, or could not get one. */
  whenIdle(): Promise<void> {
    return this.#segmentWriteQueue.whenIdle();
  }

  /** Resolves when each file that is being written now is kept or gone. */
  async whenWritten(): Promise<void> {
    await this.whenIdle();
    await Promise.allSettled(this.#segmentRewrites);
  }

  /** Number that files get from here on: those of before may go once a checkpoint of now is in place. */
  get generation(): number {
    return this.#segmentFiles.generation;
  }

  /** Removes files of before `generation` that nothing rests on any more. */
  async collect(generation: number, neededFiles: ReadonlySet<string>): Promise<void> {
    const usedFiles = new Set<string>();
    for (const { file } of this.#storedSegments.values()) if (file) usedFiles.add(file.name);
    await this.#segmentFiles.collect(this.#storeHome, generation, (name) => neededFiles.has(name) || usedFiles.has(name));
  }

  /**
   * Files of segments that are mostly superseded are packed tightly: history stays, in less room, and leaves memory first.
   */
  async compact({ signal, onProgress }: CompactOptions = {}): Promise<Compacted> {
    await this.whenIdle();
    const compactable = [...this.#storedSegments.values()].filter(
      ({ segment, file, dense }) => file && !dense && segment.cells.isAtRest && segment.liveCount * 2 <= segment.length,
    );
    let [compactedSegments, bytesBefore, bytesAfter] = [0, 0, 0];
    const compactableCount = compactable.length;
    let compactedCount = 0;
    onProgress?.(0, compactableCount);
    const compactNext = async (): Promise<void> => {
      for (let sparseSegment = compactable.pop(); sparseSegment; sparseSegment = compactable.pop()) {
        if (signal?.aborted) return;
        const sparseFile = sparseSegment.file!;
        let denseFile: SegmentFile | null;
        try {
          denseFile = await this.#trackRewrite(this.#rewriteSegment(sparseSegment, sparseFile));
        } catch (error) {
          this.#storeOptions.say(`compaction stops (${storeErrorMessage(error)}); segments stay as they are`);
          compactable.length = 0;
          return;
        }
        onProgress?.(++compactedCount, compactableCount);
        if (!denseFile) continue;
        compactedSegments++;
        bytesBefore += sparseFile.file.size;
        bytesAfter += denseFile.file.size;
      }
    };
    await Promise.all(Array.from({ length: this.#storeOptions.compactMax }, compactNext));
    signal?.throwIfAborted();
    return { segments: compactedSegments, bytesBefore, bytesAfter };
  }

  /** Waits for what is being written, and closes all files. */
  async close(): Promise<void> {
    this.#readAhead.close();
    this.#residentColumns.close();
    await this.#segmentWriteQueue.close();
    await this.#segmentWatcher?.close();
    await this.#segmentFiles.close();
  }

  #enqueueSegment(cells: SegmentColumns): void {
    const storedSegment = this.#storedSegments.get(cells);
    if (storedSegment) this.#segmentWriteQueue.add(storedSegment);
  }

  async #writeSegment(storeHome: DerivedHome, cells: SegmentColumns, storedSegment: StoredSegment): Promise<void> {
    const { version } = cells;
    const absentColumns = await this.#readAbsent(storeHome, cells);
    if (cells.version !== version || this.#storedSegments.get(cells) !== storedSegment) {
      this.#enqueueSegment(cells);
      return;
    }
    const writtenFile = await writeSegmentFile(
      storeHome,
      this.#newSegmentFileName(storeHome),
      storedSegment.segment.parts(absentColumns),
    );
    if (cells.version !== version || this.#storedSegments.get(cells) !== storedSegment) {
      // Changed under the pen, or gone.
      await discardSegmentFile(storeHome, writtenFile);
      this.#enqueueSegment(cells);
      return;
    }
    this.#restSegmentOn(storedSegment, new SegmentFile(writtenFile), version);
    storedSegment.dense = false;
    this.#residentColumns.drop((otherCells) => otherCells === cells);
    for (const [name, residentColumn] of cells.residents()) this.#residentColumns.add(cells, name, residentColumn);
    this.#columnCounts.written++;
  }

  /** Reads columns of a changed segment that are out of memory, one a turn: rewriting the segment need not load them. */
  async #readAbsent(storeHome: DerivedHome, cells: SegmentColumns): Promise<AbsentColumns> {
    const absentColumns = new Map<string | null, SegmentColumn>();
    for (const name of [null, ...cells.names()]) {
      if (!cells.isAbsent(name)) continue;
      let columnBuffers = this.#columnBuffers.get(name);
      if (!columnBuffers) this.#columnBuffers.set(name, (columnBuffers = sameBytes()));
      const absentColumn = cells.absentColumn(name, columnBuffers);
      if (absentColumn) absentColumns.set(name, absentColumn);
      else if (name !== null) cells.column(name);
      await storeHome.yieldTurn();
    }
    return absentColumns;
  }

  async #rewriteSegment(storedSegment: StoredSegment, sparseFile: SegmentFile): Promise<SegmentFile | null> {
    const storeHome = this.#storeHome!;
    const { cells } = storedSegment.segment;
    // Rows were removed since it was chosen: the file still has them.
    if (!cells.isAtRest) return null;
    const { version } = cells;
    const writtenFile = await rewriteSegmentFile(storeHome, this.#newSegmentFileName(storeHome), sparseFile.file);
    if (cells.version !== version || this.#storedSegments.get(cells) !== storedSegment || storedSegment.file !== sparseFile) {
      await discardSegmentFile(storeHome, writtenFile);
      return null;
    }
    const denseFile = new SegmentFile(writtenFile);
    this.#restSegmentOn(storedSegment, denseFile, version);
    storedSegment.dense = true;
    this.#columnCounts.compacted++;
    return denseFile;
  }

  async #trackRewrite<T>(rewriting: Promise<T>): Promise<T> {
    this.#segmentRewrites.add(rewriting);
    try {
      return await rewriting;
    } finally {
      this.#segmentRewrites.delete(rewriting);
    }
  }

  #restSegmentOn(storedSegment: StoredSegment, segmentFile: SegmentFile, version: number): void {
    this.#segmentFiles.add(segmentFile);
    storedSegment.file = segmentFile;
    storedSegment.segment.cells.restOn(segmentFile, version, storedSegment.dictionaryOf, this);
    this.#segmentWatcher?.onRest(storedSegment.segment);
  }

  #newSegmentFileName({ random }: DerivedHome): string {
    return `${this.prefix}${hexOf(random.fill(new Uint8Array(8)))}`;
  }
}

async function discardSegmentFile(home: DerivedHome, discardedFile: DerivedFile): Promise<void> {
  await discardedFile.close();
  await home.disk.unlink(`${home.directory}/${discardedFile.name}`).catch(() => undefined);
}

function storeErrorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
