/** How far files have been copied, one after the other, and a disk that reads them no further than that. */
import type { Disk, DiskFile } from './disk.ts';

/** A file as it will be. */
interface Coming {
  readonly path: string;
  readonly length: number;
}

interface Waiting {
  /** Bytes of all files, one after the other. */
  readonly bytes: number;
  readonly resolve: () => void;
  readonly reject: (cause: unknown) => void;
}

export class CopiedPrefix {
  readonly #files: ReadonlyMap<string, { readonly start: number; readonly length: number }>;
  #waiting: Waiting[] = [];
  #copied = 0;
  #failed: { readonly cause: unknown } | null = null;

  /** In the order in which they are copied. */
  constructor(files: readonly Coming[]) {
    let start = 0;
    this.#files = new Map(files.map(({ path, length }) => [path, { start: (start += length) - length, length }]));
  }

  /** So many bytes more are written. */
  advance(bytes: number): void {
    this.#copied += bytes;
    const ready = this.#waiting.filter((each) => each.bytes <= this.#copied);
    this.#waiting = this.#waiting.filter((each) => each.bytes > this.#copied);
    for (const { resolve } of ready) resolve();
  }

  /** Rejects all waiting reads: nothing more is written. */
  fail(cause: unknown): void {
    this.#failed = { cause };
    for (const { reject } of this.#waiting.splice(0)) reject(cause);
  }

  /** Files that are copied have their final length, and reads of them find the bytes in place. */
  limitedDisk(disk: Disk): Disk {
    return {
      open: async (path, mode) => {
        const coming = this.#files.get(path);
        // Its first byte is written, so the file is there.
        if (coming) await this.#until(coming.start + Math.min(1, coming.length));
        const file = await disk.open(path, mode);
        return coming ? this.#fileBehind(file, coming) : file;
      },
      size: async (path) => this.#files.get(path)?.length ?? (await disk.size(path)),
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

  #fileBehind(file: DiskFile, { start, length }: { readonly start: number; readonly length: number }): DiskFile {
    return {
      path: file.path,
      size: async () => length,
      read: async (target, offset) => {
        await this.#until(start + Math.min(offset + target.length, length));
        return file.read(target, offset);
      },
      readNow: (target, offset) => file.readNow(target, offset),
      write: (source, offset) => file.write(source, offset),
      sync: (inTurn) => file.sync(inTurn),
      truncate: (to) => file.truncate(to),
      close: () => file.close(),
    };
  }

  #until(bytes: number): Promise<void> {
    if (bytes <= this.#copied) return Promise.resolve();
    if (this.#failed) return Promise.reject(this.#failed.cause);
    return new Promise((resolve, reject) => this.#waiting.push({ bytes, resolve, reject }));
  }
}
