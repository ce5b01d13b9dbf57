/** Files copied one after the other, and read behind the copying, while the last bytes are still in memory. */
import type { CopiedFile } from './backup-artefact.ts';
import { CopiedPrefix } from '../disk/copied-prefix.ts';
import type { Disk } from '../disk/disk.ts';
import { type CopyOptions, copyFile } from '../disk/file-copy.ts';

/** A file by its path below the data directory, and how much of it is to be copied. */
export interface FileToCopy {
  readonly name: string;
  readonly length: number;
}

export interface FileCopierOptions extends CopyOptions {
  /** Source and target directories: a file keeps its name below them. */
  readonly from: string;
  readonly to: string;
}

/** Files that may be on their way to the disk while the next one is copied. */
const UNSYNCED_MAX = 2;

export class FileCopier {
  readonly #options: FileCopierOptions;
  /** Oldest first. */
  readonly #unsynced: Promise<void>[] = [];

  constructor(options: FileCopierOptions) {
    this.#options = options;
  }

  async copy({ name, length }: FileToCopy, onBytes?: (bytes: number) => void): Promise<CopiedFile> {
    const { from, to } = this.#options;
    const options: CopyOptions = {
      ...this.#options,
      onBytes: (bytes) => {
        onBytes?.(bytes);
        this.#options.onBytes?.(bytes);
      },
    };
    await this.#syncedBut(UNSYNCED_MAX - 1);
    const { sha256, durable } = await copyFile(options, `${from}/${name}`, `${to}/${name}`, length);
    this.#unsynced.push(durable);
    return { name, length, sha256 };
  }

  /** The bytes of all files are on the disk. */
  async sync(): Promise<void> {
    await this.#syncedBut(0);
  }

  /** Resolves when no file is in use any more. */
  async whenIdle(): Promise<void> {
    await Promise.allSettled(this.#unsynced);
  }

  async #syncedBut(most: number): Promise<void> {
    while (this.#unsynced.length > most) {
      await this.#unsynced[0];
      void this.#unsynced.shift();
    }
  }
}

/**
 * Copies files, `copyAll` calling `copy` for one after the other in this order, and reads them meanwhile on a disk that goes no
 * further than they are copied. Their bytes are durable when it resolves; no file is in use any more when it rejects.
 */
export async function copyAndRead<C, R>(
  copier: FileCopier,
  { disk, to }: { readonly disk: Disk; readonly to: string },
  files: readonly FileToCopy[],
  copyAll: (copy: (file: FileToCopy) => Promise<CopiedFile>) => Promise<C>,
  read: (behind: Disk) => Promise<R>,
): Promise<[C, R]> {
  const front = new CopiedPrefix(files.map(({ name, length }) => ({ path: `${to}/${name}`, length })));
  const copyFiles = async (): Promise<C> => {
    try {
      const result = await copyAll((file) => copier.copy(file, (bytes) => front.advance(bytes)));
      await copier.sync();
      return result;
    } catch (error) {
      front.fail(error);
      await copier.whenIdle();
      throw error;
    }
  };
  const [copying, reading] = await Promise.allSettled([copyFiles(), read(front.limitedDisk(disk))]);
  // A file that could not be copied could not be read either: the copy's error is the cause.
  if (copying.status === 'rejected') throw copying.reason;
  if (reading.status === 'rejected') throw reading.reason;
  return [copying.value, reading.value];
}
