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
function isAsSealed({ segment, file }: StoredSegment): boolean {
  return file === null && segment.cells.version === 0;
}

export class ColumnStore implements SegmentKeeper, DerivedKind {
  readonly #options: ColumnStoreOptions;
  #home: DerivedHome | null = null;
  readonly #storedSegments = new Map<SegmentColumns, StoredSegment>();
  readonly #files = new StoredSegments();
  readonly #residents: ResidentColumns;
  readonly #readAhead: ReadAhead;
  readonly #queue: WriteQueue<StoredSegment>;
  /** By column, what it is read into to be written again. */
  readonly #bytes = new Map<string | null, BytesFor>();
  /** Files that are being packed. */
  readonly #rewriting = new Set<Promise<unknown>>();
  readonly #counts = { hydrated: 0, written: 0, compacted: 0 };
  #watcher: SegmentWatcher | null = null;

  constructor(options: ColumnStoreOptions) {
    this.#options = options;
    this.#residents = new ResidentColumns(options, (cells) => this.#storedSegments.get(cells)?.dense === true);
    this.#readAhead = new ReadAhead(options.hydrateMax);
    this.#queue = new WriteQueue({
      ...options,
      yieldTurn: () => this.#home!.yieldTurn(),
      isKept: (stored) => this.#storedSegments.get(stored.segment.cells) === stored,
      write: (stored) => this.#write(this.#home!, stored.segment.cells, stored),
      onFailed: (error) => options.say(`a segment can't be saved (${messageOf(error)}); its columns stay in memory`),
      onRest: () => this.#bytes.clear(),
    });
  }

  /** From here on segments are written; until the log is known they wait. */
  begin(home: DerivedHome): void {
    if (this.#home?.logId === home.logId) return;
    this.#home = home;
    this.#queue.begin();
  }

  /** How much memory rows take beside what this store can put away. */
  measureBy(fixed: () => number): void {
    this.#residents.measureBy(fixed);
  }

  watch(watcher: SegmentWatcher): void {
    this.#watcher = watcher;
  }

  get home(): DerivedHome | null {
    return this.#home;
  }

  get counts(): ColumnCounts {
    return { ...this.#counts, evicted: this.#residents.evicted };
  }

  /** Bytes of columns in memory that could leave it. */
  get residentBytes(): number {
    return this.#residents.bytes;
  }

  get budgetBytes(): number {
    return this.#options.budgetBytes;
  }

  /** Bytes of segment files, and how many there are. */
  get storedBytes(): number {
    return this.#files.bytes;
  }

  get storedSegments(): number {
    return this.#files.count;
  }

  /** The prefix of its file names. */
  readonly prefix = 'segment-';

  holds(name: string): boolean {
    return this.#files.has(name);
  }

  /** A segment could not be written: its former file is still there. */
  get isBehind(): boolean {
    return this.#queue.hasFailed;
  }

  /** Segments that no file has yet. */
  get unsaved(): number {
    return this.#queue.length;
  }

  onSealed(segment: Segment, dictionaryOf: DictionaryOf): void {
    const storedSegment: StoredSegment = { segment, dictionaryOf, file: null, dense: false, queued: false };
    this.#storedSegments.set(segment.cells, storedSegment);
    this.#queue.addSealed(storedSegment, segment.bytes);
  }

  /** A segment of a checkpoint, and the file that it rests on. */
  addRestored(segment: Segment, file: SegmentFile, dictionaryOf: DictionaryOf): void {
    this.#storedSegments.set(segment.cells, { segment, dictionaryOf, file, dense: false, queued: false });
  }

  onChanged(cells: SegmentColumns): void {
    this.#enqueue(cells);
    this.#watcher?.onChanged();
  }

  onLoaded(cells: SegmentColumns, name: string | null, column: SegmentColumn): void {
    this.#counts.hydrated++;
    this.#residents.add(cells, name, column);
  }

  unreadable(error: unknown): never {
    if (!(error instanceof DerivedFileError)) throw error;
    this.#options.say(`a derived file can't be read (${error.message}); the next start rebuilds from the log`);
    this.#options.onDamaged?.();
    throw new ServiceError('REL_STORAGE', 'a column can not be read from its file; a restart rebuilds it from the log', {
      cause: error,
    });
  }

  /** A segment that is dropped with its branch: readers that are at it go on by themselves. */
  forget({ cells }: Segment): void {
    if (!this.#storedSegments.delete(cells)) return;
    cells.leave();
    this.#residents.drop((other) => other === cells);
    this.#queue.dropGone();
    this.#watcher?.onChanged();
  }

  /** All segments are dropped. */
  clear(): void {
    for (const cells of this.#storedSegments.keys()) cells.leave();
    this.#storedSegments.clear();
    this.#residents.drop(() => true);
    this.#queue.dropGone();
    this.#watcher?.onChanged();
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
    if (!storedSegment || !this.#queue.isAtWork || !isAsSealed(storedSegment)) return null;
    return () => {
      if (cells.version > 0 || !storedSegment.file || this.#storedSegments.get(cells) !== storedSegment)
        throw new SegmentChangedError();
      return storedSegment.file.name;
    };
  }

  /** Segments without a file that is true of them are as they were sealed, and files can be written. */
  get isOnlyNew(): boolean {
    if (this.#queue.hasFailed) return false;
    for (const storedSegment of this.#storedSegments.values())
      if (!storedSegment.segment.cells.isAtRest && !isAsSealed(storedSegment)) return false;
    return true;
  }

  /** Where the files of a checkpoint are. */
  readFrom(reader: DerivedReader): void {
    this.#files.readFrom(reader);
  }

  openFile(name: string): Promise<SegmentFile> {
    return this.#files.open(name);
  }

  /** Reads columns ahead of a scan, beside the turn. */
  ahead({ cells }: Segment, names: readonly (string | null)[]): void {
    const file = this.#storedSegments.get(cells)?.file;
    if (file && cells.isAtRest) this.#readAhead.read(cells, names, file);
  }

  /** Takes columns out of memory now: for who walks all of a store within one turn and holds no view of any. */
  trim(limit?: number): void {
    this.#residents.trim(limit);
  }

  /**
   * For writers that are faster than segments are written: undefined while there is room, otherwise it resolves when some were
   * written. Memory that can't be freed is not waited for.
   */
  room(): Promise<void> | undefined {
    return this.#queue.room();
  }

  /** Resolves when every sealed segment has a file, or could not get one. */
  whenIdle(): Promise<void> {
    return this.#queue.whenIdle();
  }

  /** Resolves when each file that is being written now is kept or gone. */
  async whenWritten(): Promise<void> {
    await this.whenIdle();
    await Promise.allSettled(this.#rewriting);
  }

  /** Number that files get from here on: those of before may go once a checkpoint of now is in place. */
  get generation(): number {
    return this.#files.generation;
  }

  /** Removes files of before `generation` that nothing rests on any more. */
  async collect(generation: number, needed: ReadonlySet<string>): Promise<void> {
    const used = new Set<string>();
    for (const { file } of this.#storedSegments.values()) if (file) used.add(file.name);
    await this.#files.collect(this.#home, generation, (name) => needed.has(name) || used.has(name));
  }

  /**
   * Files of segments that are mostly superseded are packed tightly: history stays, in less room, and leaves memory first.
   */
  async compact({ signal, onProgress }: CompactOptions = {}): Promise<Compacted> {
    await this.whenIdle();
    const worth = [...this.#storedSegments.values()].filter(
      ({ segment, file, dense }) => file && !dense && segment.cells.isAtRest && segment.liveCount * 2 <= segment.length,
    );
    let [segments, bytesBefore, bytesAfter] = [0, 0, 0];
    const total = worth.length;
    let done = 0;
    onProgress?.(0, total);
    const work = async (): Promise<void> => {
      for (let next = worth.pop(); next; next = worth.pop()) {
        if (signal?.aborted) return;
        const before = next.file!;
        let after: SegmentFile | null;
        try {
          after = await this.#underPen(this.#rewritten(next, before));
        } catch (error) {
          this.#options.say(`compaction stops (${messageOf(error)}); segments stay as they are`);
          worth.length = 0;
          return;
        }
        onProgress?.(++done, total);
        if (!after) continue;
        segments++;
        bytesBefore += before.file.size;
        bytesAfter += after.file.size;
      }
    };
    await Promise.all(Array.from({ length: this.#options.compactMax }, work));
    signal?.throwIfAborted();
    return { segments, bytesBefore, bytesAfter };
  }

  /** Waits for what is being written, and closes all files. */
  async close(): Promise<void> {
    this.#readAhead.close();
    this.#residents.close();
    await this.#queue.close();
    await this.#watcher?.close();
    await this.#files.close();
  }

  #enqueue(cells: SegmentColumns): void {
    const storedSegment = this.#storedSegments.get(cells);
    if (storedSegment) this.#queue.add(storedSegment);
  }

  async #write(home: DerivedHome, cells: SegmentColumns, storedSegment: StoredSegment): Promise<void> {
    const { version } = cells;
    const beside = await this.#readAbsent(home, cells);
    if (cells.version !== version || this.#storedSegments.get(cells) !== storedSegment) {
      this.#enqueue(cells);
      return;
    }
    const written = await writeSegmentFile(home, this.#newName(home), storedSegment.segment.parts(beside));
    if (cells.version !== version || this.#storedSegments.get(cells) !== storedSegment) {
      // Changed under the pen, or gone.
      await discard(home, written);
      this.#enqueue(cells);
      return;
    }
    this.#rest(storedSegment, new SegmentFile(written), version);
    storedSegment.dense = false;
    this.#residents.drop((other) => other === cells);
    for (const [name, column] of cells.residents()) this.#residents.add(cells, name, column);
    this.#counts.written++;
  }

  /** Reads columns of a changed segment that are out of memory, one a turn: rewriting the segment need not load them. */
  async #readAbsent(home: DerivedHome, cells: SegmentColumns): Promise<AbsentColumns> {
    const beside = new Map<string | null, SegmentColumn>();
    for (const name of [null, ...cells.names()]) {
      if (!cells.isAbsent(name)) continue;
      let bytes = this.#bytes.get(name);
      if (!bytes) this.#bytes.set(name, (bytes = sameBytes()));
      const column = cells.absentColumn(name, bytes);
      if (column) beside.set(name, column);
      else if (name !== null) cells.column(name);
      await home.yieldTurn();
    }
    return beside;
  }

  async #rewritten(storedSegment: StoredSegment, before: SegmentFile): Promise<SegmentFile | null> {
    const home = this.#home!;
    const { cells } = storedSegment.segment;
    // Rows were removed since it was chosen: the file still has them.
    if (!cells.isAtRest) return null;
    const { version } = cells;
    const written = await rewriteSegmentFile(home, this.#newName(home), before.file);
    if (cells.version !== version || this.#storedSegments.get(cells) !== storedSegment || storedSegment.file !== before) {
      await discard(home, written);
      return null;
    }
    const after = new SegmentFile(written);
    this.#rest(storedSegment, after, version);
    storedSegment.dense = true;
    this.#counts.compacted++;
    return after;
  }

  async #underPen<T>(rewriting: Promise<T>): Promise<T> {
    this.#rewriting.add(rewriting);
    try {
      return await rewriting;
    } finally {
      this.#rewriting.delete(rewriting);
    }
  }

  #rest(storedSegment: StoredSegment, file: SegmentFile, version: number): void {
    this.#files.add(file);
    storedSegment.file = file;
    storedSegment.segment.cells.restOn(file, version, storedSegment.dictionaryOf, this);
    this.#watcher?.onRest(storedSegment.segment);
  }

  #newName({ random }: DerivedHome): string {
    return `${this.prefix}${hexOf(random.fill(new Uint8Array(8)))}`;
  }
}

async function discard(home: DerivedHome, file: DerivedFile): Promise<void> {
  await file.close();
  await home.disk.unlink(`${home.directory}/${file.name}`).catch(() => undefined);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
