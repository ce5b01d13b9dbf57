/** Files of segments that were written or opened, until nothing rests on them. */
import { assert } from '../../../errors.ts';
import type { DerivedFile, DerivedHome, DerivedReader } from '../../../log/blobs/derived-file.ts';
import { SegmentFile } from './segment-file.ts';

export class StoredSegments {
  readonly #files = new Map<string, { readonly file: DerivedFile; readonly born: number }>();
  #born = 0;
  #reader: DerivedReader | null = null;
  /** Removed under readers that may be at them still. */
  readonly #dropped: DerivedFile[] = [];

  get count(): number {
    return this.#files.size;
  }

  get bytes(): number {
    let total = 0;
    for (const { file } of this.#files.values()) total += file.size;
    return total;
  }

  /** Number that files get from here on. */
  get generation(): number {
    return this.#born;
  }

  has(name: string): boolean {
    return this.#files.has(name);
  }

  readFrom(reader: DerivedReader): void {
    this.#reader = reader;
  }

  async open(name: string): Promise<SegmentFile> {
    assert(this.#reader, 'files are read from somewhere');
    const file = await SegmentFile.open(this.#reader, name);
    this.add(file);
    return file;
  }

  add({ name, file }: SegmentFile): void {
    this.#files.set(name, { file, born: this.#born++ });
  }

  /** Removes files of before `generation` that are not needed. */
  async collect(home: DerivedHome | null, generation: number, isNeeded: (name: string) => boolean): Promise<void> {
    for (const [name, { file, born }] of this.#files) {
      if (born >= generation || isNeeded(name)) continue;
      this.#files.delete(name);
      // A reader of a dropped branch may be at it still: the name goes, the bytes when the last handle does.
      await home?.disk.unlink(`${home.directory}/${name}`).catch(() => undefined);
      this.#dropped.push(file);
    }
  }

  async close(): Promise<void> {
    for (const { file } of this.#files.values()) await file.close().catch(() => undefined);
    for (const file of this.#dropped) await file.close().catch(() => undefined);
    this.#files.clear();
  }
}
