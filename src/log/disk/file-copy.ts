/** Copying files while others work: a slice at a time, hashed on the way. */
import * as crypto from 'node:crypto';
import { ServiceError } from '../../errors.ts';
import { type Disk, type DiskFile, writeFully } from './disk.ts';

/** Hashing one takes the turn for about a millisecond. */
const COPY_SLICE_BYTES = 1 << 20;

export interface CopyOptions {
  readonly disk: Disk;
  readonly yieldTurn: () => Promise<void>;
  readonly onBytes?: (bytes: number) => void;
  /** How much is hashed in one turn, where that may be more than a millisecond's worth. */
  readonly sliceBytes?: number;
}

export interface FileCopy {
  /** In hex. */
  readonly sha256: string;
  /**
   * Resolves when the bytes are on the disk, rejects when they can't be; the file is not in use after either. Never unhandled.
   */
  readonly durable: Promise<void>;
}

/** The first `copiedLength` bytes of a file as a new one. Its name is not durable yet, its bytes once `durable` resolves. */
export async function copyFile(
  copyOptions: CopyOptions,
  sourcePath: string,
  targetPath: string,
  copiedLength: number,
): Promise<FileCopy> {
  const { disk } = copyOptions;
  const sourceFile = await disk.open(sourcePath, 'read');
  try {
    const targetFile = await disk.open(targetPath, 'create');
    const sha256 = await copySlices(copyOptions, sourceFile, targetFile, copiedLength).catch(async (error: unknown) => {
      await targetFile.close();
      throw error;
    });
    const durable = syncAndCloseCopy(targetFile);
    durable.catch(() => undefined);
    return { sha256, durable };
  } finally {
    await sourceFile.close();
  }
}

async function syncAndCloseCopy(targetFile: DiskFile): Promise<void> {
  try {
    await targetFile.sync();
  } finally {
    await targetFile.close();
  }
}

/** The next slice is read while the one before it is hashed and written. */
async function copySlices(
  copyOptions: CopyOptions,
  sourceFile: DiskFile,
  targetFile: DiskFile,
  copiedLength: number,
): Promise<string> {
  const { yieldTurn, onBytes, sliceBytes = COPY_SLICE_BYTES } = copyOptions;
  const copyHash = crypto.createHash('sha256');
  const sliceBuffers = [
    new Uint8Array(Math.min(copiedLength, sliceBytes)),
    new Uint8Array(Math.min(copiedLength, sliceBytes)),
  ] as const;
  const copySliceAt = (bufferOffset: number): Uint8Array =>
    sliceBuffers[(bufferOffset / sliceBytes) & 1]!.subarray(0, Math.min(sliceBytes, copiedLength - bufferOffset));
  const readCopySlice = async (readOffset: number): Promise<Uint8Array> => {
    const readSlice = copySliceAt(readOffset);
    for (let readSliceBytes = 0; readSliceBytes < readSlice.length; ) {
      const diskReadCount = await sourceFile.read(readSlice.subarray(readSliceBytes), readOffset + readSliceBytes);
      if (diskReadCount === 0)
        throw new ServiceError(
          'REL_STORAGE',
          `${sourceFile.path} ends at ${readOffset + readSliceBytes}; ${copiedLength} bytes were to be there`,
        );
      readSliceBytes += diskReadCount;
    }
    return readSlice;
  };
  let nextSlice = copiedLength > 0 ? await readCopySlice(0) : null;
  for (let sliceOffset = 0; nextSlice; sliceOffset += sliceBytes) {
    const copySlice = nextSlice;
    const nextSliceOffset = sliceOffset + copySlice.length;
    const [sliceReadAhead, sliceWritten] = await Promise.allSettled([
      nextSliceOffset < copiedLength ? readCopySlice(nextSliceOffset) : null,
      writeCopySlice(targetFile, copySlice, sliceOffset, copyHash),
    ]);
    // Both must be over before either failure is thrown: the caller then closes the files.
    if (sliceWritten.status === 'rejected') throw sliceWritten.reason;
    if (sliceReadAhead.status === 'rejected') throw sliceReadAhead.reason;
    nextSlice = sliceReadAhead.value;
    onBytes?.(copySlice.length);
    await yieldTurn();
  }
  return copyHash.digest('hex');
}

async function writeCopySlice(
  targetFile: DiskFile,
  copySlice: Uint8Array,
  sliceOffset: number,
  copyHash: crypto.Hash,
): Promise<void> {
  const sliceWrite = writeFully(targetFile, copySlice, sliceOffset);
  copyHash.update(copySlice);
  await sliceWrite;
}

/** Removes a directory and all in it. Durable with a sync of its parent. */
export async function removeTree(disk: Disk, directory: string): Promise<void> {
  for (const treeName of await disk.list(directory)) {
    const treePath = `${directory}/${treeName}`;
    // No disk unlinks a directory.
    await disk.unlink(treePath).catch(() => removeTree(disk, treePath));
  }
  await disk.removeDirectory(directory);
}
