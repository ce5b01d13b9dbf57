/** How far files have been copied, one after the other, and a disk that reads them no further than that. */
import type { Disk, DiskFile } from './disk.ts';

/** A file as it will be. */
interface FileBeingCopied {
  readonly path: string;
  readonly length: number;
}

interface PrefixReader {
  /** Bytes of all files, one after the other. */
  readonly bytes: number;
  readonly resolve: () => void;
  readonly reject: (cause: unknown) => void;
}

export class CopiedPrefix {
  readonly #filesBeingCopied: ReadonlyMap<string, { readonly start: number; readonly length: number }>;
  #prefixReaders: PrefixReader[] = [];
  #copiedPrefixBytes = 0;
  #copyFailure: { readonly cause: unknown } | null = null;

  /** In the order in which they are copied. */
  constructor(files: readonly FileBeingCopied[]) {
    let fileStart = 0;
    this.#filesBeingCopied = new Map(files.map(({ path, length }) => [path, { start: (fileStart += length) - length, length }]));
  }

  /** So many bytes more are written. */
  advance(newlyCopied: number): void {
    this.#copiedPrefixBytes += newlyCopied;
    const readyReaders = this.#prefixReaders.filter((prefixReader) => prefixReader.bytes <= this.#copiedPrefixBytes);
    this.#prefixReaders = this.#prefixReaders.filter((prefixReader) => prefixReader.bytes > this.#copiedPrefixBytes);
    for (const { resolve } of readyReaders) resolve();
  }

  /** Rejects all waiting reads: nothing more is written. */
  fail(cause: unknown): void {
    this.#copyFailure = { cause };
    for (const { reject } of this.#prefixReaders.splice(0)) reject(cause);
  }

  /** Files that are copied have their final length, and reads of them find the bytes in place. */
  limitedDisk(disk: Disk): Disk {
    return {
      open: async (path, mode) => {
        const coming = this.#filesBeingCopied.get(path);
        // Its first byte is written, so the file is there.
        if (coming) await this.#untilCopied(coming.start + Math.min(1, coming.length));
        const file = await disk.open(path, mode);
        return coming ? this.#fileBehindCopy(file, coming) : file;
      },
      size: async (path) => this.#filesBeingCopied.get(path)?.length ?? (await disk.size(path)),
      readFile: (path) => disk.readFile(path),
      replaceFile: (path, content, mode) => disk.replaceFile(path, content, mode),
      rename: (from, to) => disk.rename(from, to),
      unlink: (path) => disk.unlink(path),
      list: (directory) => disk.list(directory),
      makeDirectory: (path) => disk.makeDirectory(path),
      removeDirectory: (path) => disk.removeDirectory(path),
      syncDirectory: (path) => disk.syncDirectory(path),
      freeBytes: (path) => disk.freeBytes(path),
      lock: (path) => disk.lock(path),
    };
  }

  #fileBehindCopy(file: DiskFile, { start, length }: { readonly start: number; readonly length: number }): DiskFile {
    return {
      path: file.path,
      size: async () => length,
      read: async (target, offset) => {
        await this.#untilCopied(start + Math.min(offset + target.length, length));
        return file.read(target, offset);
      },
      readNow: (target, offset) => file.readNow(target, offset),
      write: (source, offset) => file.write(source, offset),
      sync: (inTurn) => file.sync(inTurn),
      truncate: (to) => file.truncate(to),
      close: () => file.close(),
    };
  }

  #untilCopied(bytes: number): Promise<void> {
    if (bytes <= this.#copiedPrefixBytes) return Promise.resolve();
    if (this.#copyFailure) return Promise.reject(this.#copyFailure.cause);
    return new Promise((resolve, reject) => this.#prefixReaders.push({ bytes, resolve, reject }));
  }
}
