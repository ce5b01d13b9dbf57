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
type Head = IndexKey & { readonly types: readonly string[]; readonly unicode: string };

export class IndexFiles implements DerivedKind, SegmentWatcher {
  readonly prefix = INDEX_PREFIX;
  readonly #store: ColumnStore;
  readonly #say: (line: string) => void;
  /** On disk, as far as this store has looked or written. */
  readonly #names = new Set<string>();
  /** One after the other. */
  #last: Promise<void> = Promise.resolve();
  #sweeping = false;
  #said = false;
  #closed = false;
  /** Called when a segment came to rest: its indexes can be saved. */
  onRested: (segment: Segment) => void = () => undefined;
  readonly counts = { read: 0, written: 0, refused: 0 };

  constructor(store: ColumnStore, say: (line: string) => void) {
    this.#store = store;
    this.#say = say;
    store.watch(this);
  }

  holds(name: string): boolean {
    return this.#names.has(name) && this.#store.contents().has(this.#contentsOf(name));
  }

  async whenWritten(): Promise<void> {
    for (let last: Promise<void> | null = null; last !== this.#last; ) await (last = this.#last);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.whenWritten();
  }

  onRest(segment: Segment): void {
    this.onRested(segment);
  }

  /** Cells of some segment are not what its files say any more. */
  onChanged(): void {
    if (this.#names.size === 0 || this.#sweeping) return;
    this.#sweeping = true;
    void this.#next(async (home) => {
      this.#sweeping = false;
      await this.#sweep(home, [...this.#names]);
    });
  }

  /** After a start: of the files that it left, those that rest on a segment stay. */
  async begin(): Promise<void> {
    await this.#next(async (home) => {
      const names = await home.disk.list(home.directory);
      for (const name of names) if (name.startsWith(this.prefix)) this.#names.add(name);
      await this.#sweep(home, [...this.#names]);
    });
  }

  /** The segment rests on a file, so that an index of it may. */
  rests(segment: Segment): boolean {
    return this.#store.home !== null && this.#store.contentsOf(segment) !== null;
  }

  /** In memory that threads share; null where there is none that says just this. */
  async read(segment: Segment, key: IndexKey): Promise<Uint8Array | null> {
    const home = this.#store.home;
    const name = this.#nameOf(segment, key);
    if (!home || name === null || !this.#names.has(name)) return null;
    try {
      const bytes = await readIndex(home, name, headOf(segment, key));
      if (bytes) this.counts.read++;
      return bytes;
    } catch (error) {
      // Swept meanwhile: there is nothing wrong with it.
      if (!this.#names.has(name)) return null;
      this.counts.refused++;
      this.#say(`an index can't be read from its file (${messageOf(error)}); it is made anew`);
      await this.#next(() => this.#unlink(home, name));
      return null;
    }
  }

  /** Resolves when it is written, or turned out not to be wanted: `isWanted` is asked when its turn comes, and after that. */
  async write(segment: Segment, key: IndexKey, bytes: Uint8Array, isWanted: () => boolean): Promise<void> {
    const name = this.#nameOf(segment, key);
    if (name === null) return;
    const isGood = (): boolean => !this.#closed && isWanted() && this.#nameOf(segment, key) === name;
    await this.#next(async (home) => {
      if (!isGood()) return;
      const head = JSON.stringify(headOf(segment, key));
      await this.#unlink(home, name);
      this.#names.add(name);
      try {
        await writeIndex(home, name, head, bytes);
      } catch (error) {
        this.#names.delete(name);
        throw error;
      }
      if (isGood() && JSON.stringify(headOf(segment, key)) === head) this.counts.written++;
      else await this.#unlink(home, name);
    });
  }

  /** The file of an index that is to be made anew. */
  async drop(segment: Segment, key: IndexKey): Promise<void> {
    const name = this.#nameOf(segment, key);
    if (name !== null) await this.#next((home) => this.#unlink(home, name));
  }

  #nameOf(segment: Segment, { kind, column, path }: IndexKey): string | null {
    const contents = this.#store.contentsOf(segment);
    if (contents === null) return null;
    const of = [contents, kind, column, ...(path === undefined ? [] : [path])];
    const which = sha256Hex(JSON.stringify(of)).slice(0, 16);
    return `${this.prefix}${contents.slice(this.#store.prefix.length)}-${which}`;
  }

  /** The id that is in the name of a file. */
  #contentsOf(name: string): string {
    return this.#store.prefix + name.slice(this.prefix.length, name.lastIndexOf('-'));
  }

  async #sweep(home: DerivedHome, names: readonly string[]): Promise<void> {
    const contents = this.#store.contents();
    for (const name of names) if (!contents.has(this.#contentsOf(name))) await this.#unlink(home, name);
  }

  async #unlink({ disk, directory }: DerivedHome, name: string): Promise<void> {
    if (!this.#names.delete(name)) return;
    // A file that stays is a stray, and reported as one.
    await disk.unlink(`${directory}/${name}`).catch(() => undefined);
  }

  #next(work: (home: DerivedHome) => Promise<void>): Promise<void> {
    this.#last = this.#last.then(async () => {
      const { home } = this.#store;
      if (!home) return;
      try {
        await work(home);
      } catch (error) {
        if (!this.#said) this.#say(`an index can't be saved (${messageOf(error)}); it is made again when it is needed`);
        this.#said = true;
      }
    });
    return this.#last;
  }
}

function headOf(segment: Segment, key: IndexKey): Head {
  const { kind, format, column, path, language, rows } = key;
  // The boundaries of words depend on the characters that this version of the engine knows.
  const unicode = kind === 'text' ? process.versions.unicode! : '';
  return {
    kind,
    format,
    column,
    ...(path !== undefined && { path }),
    language,
    rows,
    types: segment.cells.typesOf(column),
    unicode,
  };
}

async function readIndex(home: DerivedHome, name: string, head: Head): Promise<Uint8Array | null> {
  const file = await DerivedFile.open(home, name);
  if (!file) return null;
  try {
    const indexHead = Buffer.from(await file.read('head')).toString();
    return indexHead === JSON.stringify(head) ? await file.readShared('index') : null;
  } finally {
    await file.close();
  }
}

async function writeIndex(home: DerivedHome, name: string, head: string, bytes: Uint8Array): Promise<void> {
  const writer = await DerivedFileWriter.create(home, name);
  let file: DerivedFile;
  try {
    await writer.chunk('head', [Buffer.from(head)]);
    await writer.chunk('index', [bytes]);
    file = await writer.finish();
  } catch (error) {
    await writer.abandon();
    throw error;
  }
  await file.close();
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
