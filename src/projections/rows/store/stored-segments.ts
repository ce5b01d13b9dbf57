/** Files of segments that were written or opened, until nothing rests on them. */
import { assert } from '../../../errors.ts';
import type { DerivedFile, DerivedHome, DerivedReader } from '../../../log/blobs/derived-file.ts';
import { SegmentFile } from './segment-file.ts';

export class StoredSegments {
  readonly #segmentFiles = new Map<string, { readonly file: DerivedFile; readonly born: number }>();
  #nextGeneration = 0;
  #derivedReader: DerivedReader | null = null;
  /** Removed under readers that may be at them still. */
  readonly #droppedFiles: DerivedFile[] = [];

  get count(): number {
    return this.#segmentFiles.size;
  }

  get bytes(): number {
    let storedBytes = 0;
    for (const { file } of this.#segmentFiles.values()) storedBytes += file.size;
    return storedBytes;
  }

  /** Number that files get from here on. */
  get generation(): number {
    return this.#nextGeneration;
  }

  has(name: string): boolean {
    return this.#segmentFiles.has(name);
  }

  readFrom(reader: DerivedReader): void {
    this.#derivedReader = reader;
  }

  async open(name: string): Promise<SegmentFile> {
    assert(this.#derivedReader, 'files are read from somewhere');
    const openedSegment = await SegmentFile.open(this.#derivedReader, name);
    this.add(openedSegment);
    return openedSegment;
  }

  add({ name, file }: SegmentFile): void {
    this.#segmentFiles.set(name, { file, born: this.#nextGeneration++ });
  }

  /** Removes files of before `generation` that are not needed. */
  async collect(home: DerivedHome | null, generation: number, isNeeded: (segmentFileName: string) => boolean): Promise<void> {
    for (const [segmentFileName, { file, born }] of this.#segmentFiles) {
      if (born >= generation || isNeeded(segmentFileName)) continue;
      this.#segmentFiles.delete(segmentFileName);
      // A reader of a dropped branch may be at it still: the name goes, the bytes when the last handle does.
      await home?.disk.unlink(`${home.directory}/${segmentFileName}`).catch(() => undefined);
      this.#droppedFiles.push(file);
    }
  }

  async close(): Promise<void> {
    for (const { file: segmentFile } of this.#segmentFiles.values()) await segmentFile.close().catch(() => undefined);
    for (const file of this.#droppedFiles) await file.close().catch(() => undefined);
    this.#segmentFiles.clear();
  }
}
