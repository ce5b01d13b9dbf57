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
const UNSYNCED_COPIES_MAX = 2;

export class FileCopier {
  readonly #copierOptions: FileCopierOptions;
  /** Oldest first. */
  readonly #unsyncedCopies: Promise<void>[] = [];

  constructor(copierOptions: FileCopierOptions) {
    this.#copierOptions = copierOptions;
  }

  async copy(
    { name: copiedName, length: copiedLength }: FileToCopy,
    onBytes?: (copiedBytes: number) => void,
  ): Promise<CopiedFile> {
    const { from, to } = this.#copierOptions;
    const fileCopyOptions: CopyOptions = {
      ...this.#copierOptions,
      onBytes: (bytes) => {
        onBytes?.(bytes);
        this.#copierOptions.onBytes?.(bytes);
      },
    };
    await this.#awaitSyncedCopies(UNSYNCED_COPIES_MAX - 1);
    const { sha256, durable } = await copyFile(fileCopyOptions, `${from}/${copiedName}`, `${to}/${copiedName}`, copiedLength);
    this.#unsyncedCopies.push(durable);
    return { name: copiedName, length: copiedLength, sha256 };
  }

  /** The bytes of all files are on the disk. */
  async sync(): Promise<void> {
    await this.#awaitSyncedCopies(0);
  }

  /** Resolves when no file is in use any more. */
  async whenIdle(): Promise<void> {
    await Promise.allSettled(this.#unsyncedCopies);
  }

  async #awaitSyncedCopies(unsyncedMax: number): Promise<void> {
    while (this.#unsyncedCopies.length > unsyncedMax) {
      await this.#unsyncedCopies[0];
      void this.#unsyncedCopies.shift();
    }
  }
}

/**
 * Copies files, `copyAll` calling `copy` for one after the other in this order, and reads them meanwhile on a disk that goes no
 * further than they are copied. Their bytes are durable when it resolves; no file is in use any more when it rejects.
 */
export async function copyAndRead<C, R>(
  fileCopier: FileCopier,
  { disk, to }: { readonly disk: Disk; readonly to: string },
  filesToCopy: readonly FileToCopy[],
  copyAll: (copy: (file: FileToCopy) => Promise<CopiedFile>) => Promise<C>,
  read: (diskBehindCopy: Disk) => Promise<R>,
): Promise<[C, R]> {
  const copiedPrefix = new CopiedPrefix(filesToCopy.map(({ name, length }) => ({ path: `${to}/${name}`, length })));
  const copyBackupFiles = async (): Promise<C> => {
    try {
      const copyResult = await copyAll((file) => fileCopier.copy(file, (bytes) => copiedPrefix.advance(bytes)));
      await fileCopier.sync();
      return copyResult;
    } catch (error) {
      copiedPrefix.fail(error);
      await fileCopier.whenIdle();
      throw error;
    }
  };
  const [copyOutcome, readOutcome] = await Promise.allSettled([copyBackupFiles(), read(copiedPrefix.limitedDisk(disk))]);
  // A file that could not be copied could not be read either: the copy's error is the cause.
  if (copyOutcome.status === 'rejected') throw copyOutcome.reason;
  if (readOutcome.status === 'rejected') throw readOutcome.reason;
  return [copyOutcome.value, readOutcome.value];
}
