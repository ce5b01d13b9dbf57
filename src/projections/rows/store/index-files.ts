/**
 * Indexes of sealed segments as derived files, so that one that left memory, or was made before the last start, is read and not
 * made again. Invariants:
 *
 * - a file is of one index of one column, and of one state of its segment's cells: its name begins with the id that the segment's
 *   own file has for its contents, and its head says how the column is read and how the index was made. One that says anything else
 *   than what is asked for is not read;
 * - a change of cells leaves the files of their segment without use from that turn on: they are deleted, and until then they are
 *   strays, which keep an erasure from its certificate;
 * - one that can't be read, or was not finished, is deleted, and the index made anew. No checkpoint names any of them.
 */
import { DerivedFile, DerivedFileWriter, type DerivedHome } from '../../../log/blobs/derived-file.ts';
import { sha256Hex } from '../../../log/bytes/sha256.ts';
import type { DerivedKind } from '../../derived-kinds.ts';
import type { Segment } from '../segments/segment.ts';
import type { ColumnStore } from './column-store.ts';
import type { SegmentWatcher } from './store-contract.ts';

export const INDEX_PREFIX = 'index-';

/** Everything that identifies an index beside the cells of the segment. */
export interface IndexKey {
  readonly kind: 'text' | 'coarse' | 'graph' | 'ends' | 'identifiers';
  readonly format: number;
  readonly column: string;
  /** Number of the organisation path whose rows it is of; absent: of all of the segment. */
  readonly path?: number;
  /** Language of stems; of identifiers, which kind, and the version of their forms; empty for what has none. */
  readonly language: string;
  readonly rows: number;
}

/** The key, and the type of the column that was indexed. */
type IndexHead = IndexKey & { readonly types: readonly string[]; readonly unicode: string };

export class IndexFiles implements DerivedKind, SegmentWatcher {
  readonly prefix = INDEX_PREFIX;
  readonly #columnStore: ColumnStore;
  readonly #sayOfIndexes: (line: string) => void;
  /** On disk, as far as this store has looked or written. */
  readonly #indexFileNames = new Set<string>();
  /** One after the other. */
  #lastIndexWork: Promise<void> = Promise.resolve();
  #isSweepQueued = false;
  #hasSaidFailure = false;
  #areIndexesClosed = false;
  /** Called when a segment came to rest: its indexes can be saved. */
  onRested: (segment: Segment) => void = () => undefined;
  readonly counts = { read: 0, written: 0, refused: 0 };

  constructor(columnStore: ColumnStore, sayOfIndexes: (line: string) => void) {
    this.#columnStore = columnStore;
    this.#sayOfIndexes = sayOfIndexes;
    columnStore.watch(this);
  }

  holds(name: string): boolean {
    return this.#indexFileNames.has(name) && this.#columnStore.contents().has(this.#segmentContentsOf(name));
  }

  async whenWritten(): Promise<void> {
    for (let lastIndexWork: Promise<void> | null = null; lastIndexWork !== this.#lastIndexWork; )
      await (lastIndexWork = this.#lastIndexWork);
  }

  async close(): Promise<void> {
    this.#areIndexesClosed = true;
    await this.whenWritten();
  }

  onRest(segment: Segment): void {
    this.onRested(segment);
  }

  /** Cells of some segment are not what its files say any more. */
  onChanged(): void {
    if (this.#indexFileNames.size === 0 || this.#isSweepQueued) return;
    this.#isSweepQueued = true;
    void this.#queueIndexWork(async (indexHome) => {
      this.#isSweepQueued = false;
      await this.#sweepIndexFiles(indexHome, [...this.#indexFileNames]);
    });
  }

  /** After a start: of the files that it left, those that rest on a segment stay. */
  async begin(): Promise<void> {
    await this.#queueIndexWork(async (indexHome) => {
      const indexFileNames = await indexHome.disk.list(indexHome.directory);
      for (const indexFileName of indexFileNames)
        if (indexFileName.startsWith(this.prefix)) this.#indexFileNames.add(indexFileName);
      await this.#sweepIndexFiles(indexHome, [...this.#indexFileNames]);
    });
  }

  /** The segment rests on a file, so that an index of it may. */
  rests(segment: Segment): boolean {
    return this.#columnStore.home !== null && this.#columnStore.contentsOf(segment) !== null;
  }

  /** In memory that threads share; null where there is none that says just this. */
  async read(segment: Segment, indexKey: IndexKey): Promise<Uint8Array | null> {
    const indexHome = this.#columnStore.home;
    const indexFileName = this.#indexFileNameOf(segment, indexKey);
    if (!indexHome || indexFileName === null || !this.#indexFileNames.has(indexFileName)) return null;
    try {
      const indexBytes = await readIndexFile(indexHome, indexFileName, indexHeadOf(segment, indexKey));
      if (indexBytes) this.counts.read++;
      return indexBytes;
    } catch (error) {
      // Swept meanwhile: there is nothing wrong with it.
      if (!this.#indexFileNames.has(indexFileName)) return null;
      this.counts.refused++;
      this.#sayOfIndexes(`an index can't be read from its file (${indexErrorMessage(error)}); it is made anew`);
      await this.#queueIndexWork(() => this.#unlinkIndexFile(indexHome, indexFileName));
      return null;
    }
  }

  /** Resolves when it is written, or turned out not to be wanted: `isWanted` is asked when its turn comes, and after that. */
  async write(segment: Segment, indexKey: IndexKey, indexBytes: Uint8Array, isWanted: () => boolean): Promise<void> {
    const indexFileName = this.#indexFileNameOf(segment, indexKey);
    if (indexFileName === null) return;
    const isIndexWanted = (): boolean =>
      !this.#areIndexesClosed && isWanted() && this.#indexFileNameOf(segment, indexKey) === indexFileName;
    await this.#queueIndexWork(async (indexHome) => {
      if (!isIndexWanted()) return;
      const indexHead = JSON.stringify(indexHeadOf(segment, indexKey));
      await this.#unlinkIndexFile(indexHome, indexFileName);
      this.#indexFileNames.add(indexFileName);
      try {
        await writeIndexFile(indexHome, indexFileName, indexHead, indexBytes);
      } catch (error) {
        this.#indexFileNames.delete(indexFileName);
        throw error;
      }
      if (isIndexWanted() && JSON.stringify(indexHeadOf(segment, indexKey)) === indexHead) this.counts.written++;
      else await this.#unlinkIndexFile(indexHome, indexFileName);
    });
  }

  /** The file of an index that is to be made anew. */
  async drop(segment: Segment, key: IndexKey): Promise<void> {
    const indexFileName = this.#indexFileNameOf(segment, key);
    if (indexFileName !== null) await this.#queueIndexWork((indexHome) => this.#unlinkIndexFile(indexHome, indexFileName));
  }

  #indexFileNameOf(segment: Segment, { kind, column, path }: IndexKey): string | null {
    const segmentContents = this.#columnStore.contentsOf(segment);
    if (segmentContents === null) return null;
    const namedIndex = [segmentContents, kind, column, ...(path === undefined ? [] : [path])];
    const indexDigest = sha256Hex(JSON.stringify(namedIndex)).slice(0, 16);
    return `${this.prefix}${segmentContents.slice(this.#columnStore.prefix.length)}-${indexDigest}`;
  }

  /** The id that is in the name of a file. */
  #segmentContentsOf(name: string): string {
    return this.#columnStore.prefix + name.slice(this.prefix.length, name.lastIndexOf('-'));
  }

  async #sweepIndexFiles(home: DerivedHome, indexFileNames: readonly string[]): Promise<void> {
    const liveContents = this.#columnStore.contents();
    for (const indexFileName of indexFileNames)
      if (!liveContents.has(this.#segmentContentsOf(indexFileName))) await this.#unlinkIndexFile(home, indexFileName);
  }

  async #unlinkIndexFile({ disk, directory }: DerivedHome, indexFileName: string): Promise<void> {
    if (!this.#indexFileNames.delete(indexFileName)) return;
    // A file that stays is a stray, and reported as one.
    await disk.unlink(`${directory}/${indexFileName}`).catch(() => undefined);
  }

  #queueIndexWork(indexWork: (home: DerivedHome) => Promise<void>): Promise<void> {
    this.#lastIndexWork = this.#lastIndexWork.then(async () => {
      const { home } = this.#columnStore;
      if (!home) return;
      try {
        await indexWork(home);
      } catch (error) {
        if (!this.#hasSaidFailure)
          this.#sayOfIndexes(`an index can't be saved (${indexErrorMessage(error)}); it is made again when it is needed`);
        this.#hasSaidFailure = true;
      }
    });
    return this.#lastIndexWork;
  }
}

function indexHeadOf(segment: Segment, indexKey: IndexKey): IndexHead {
  const { kind, format, column, path, language, rows } = indexKey;
  // The boundaries of words depend on the characters that this version of the engine knows.
  const unicodeVersion = kind === 'text' ? process.versions.unicode! : '';
  return {
    kind,
    format,
    column,
    ...(path !== undefined && { path }),
    language,
    rows,
    types: segment.cells.typesOf(column),
    unicode: unicodeVersion,
  };
}

async function readIndexFile(home: DerivedHome, name: string, expectedHead: IndexHead): Promise<Uint8Array | null> {
  const indexFile = await DerivedFile.open(home, name);
  if (!indexFile) return null;
  try {
    const indexHead = Buffer.from(await indexFile.read('head')).toString();
    return indexHead === JSON.stringify(expectedHead) ? await indexFile.readShared('index') : null;
  } finally {
    await indexFile.close();
  }
}

async function writeIndexFile(home: DerivedHome, name: string, indexHead: string, indexBytes: Uint8Array): Promise<void> {
  const indexWriter = await DerivedFileWriter.create(home, name);
  let indexFile: DerivedFile;
  try {
    await indexWriter.chunk('head', [Buffer.from(indexHead)]);
    await indexWriter.chunk('index', [indexBytes]);
    indexFile = await indexWriter.finish();
  } catch (error) {
    await indexWriter.abandon();
    throw error;
  }
  await indexFile.close();
}

function indexErrorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
