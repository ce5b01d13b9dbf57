/** Copying files while others work: a slice at a time, hashed on the way. */
import * as crypto from 'node:crypto';
import { ServiceError } from '../../errors.ts';
import { type Disk, type DiskFile, writeFully } from './disk.ts';

/** Hashing one takes the turn for about a millisecond. */
const SLICE_BYTES = 1 << 20;

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

/** The first `length` bytes of a file as a new one. Its name is not durable yet, its bytes once `durable` resolves. */
export async function copyFile(options: CopyOptions, source: string, target: string, length: number): Promise<FileCopy> {
  const { disk } = options;
  const from = await disk.open(source, 'read');
  try {
    const to = await disk.open(target, 'create');
    const sha256 = await copyBytes(options, from, to, length).catch(async (error: unknown) => {
      await to.close();
      throw error;
    });
    const durable = syncedAndClosed(to);
    durable.catch(() => undefined);
    return { sha256, durable };
  } finally {
    await from.close();
  }
}

async function syncedAndClosed(to: DiskFile): Promise<void> {
  try {
    await to.sync();
  } finally {
    await to.close();
  }
}

/** The next slice is read while the one before it is hashed and written. */
async function copyBytes(options: CopyOptions, from: DiskFile, to: DiskFile, length: number): Promise<string> {
  const { yieldTurn, onBytes, sliceBytes = SLICE_BYTES } = options;
  const hash = crypto.createHash('sha256');
  const buffers = [new Uint8Array(Math.min(length, sliceBytes)), new Uint8Array(Math.min(length, sliceBytes))] as const;
  const sliceAt = (at: number): Uint8Array => buffers[(at / sliceBytes) & 1]!.subarray(0, Math.min(sliceBytes, length - at));
  const read = async (at: number): Promise<Uint8Array> => {
    const slice = sliceAt(at);
    for (let done = 0; done < slice.length; ) {
      const count = await from.read(slice.subarray(done), at + done);
      if (count === 0)
        throw new ServiceError('REL_STORAGE', `${from.path} ends at ${at + done}; ${length} bytes were to be there`);
      done += count;
    }
    return slice;
  };
  let next = length > 0 ? await read(0) : null;
  for (let at = 0; next; at += sliceBytes) {
    const slice = next;
    const after = at + slice.length;
    const [ahead, written] = await Promise.allSettled([after < length ? read(after) : null, writeSlice(to, slice, at, hash)]);
    // Both must be over before either failure is thrown: the caller then closes the files.
    if (written.status === 'rejected') throw written.reason;
    if (ahead.status === 'rejected') throw ahead.reason;
    next = ahead.value;
    onBytes?.(slice.length);
    await yieldTurn();
  }
  return hash.digest('hex');
}

async function writeSlice(to: DiskFile, slice: Uint8Array, at: number, hash: crypto.Hash): Promise<void> {
  const writing = writeFully(to, slice, at);
  hash.update(slice);
  await writing;
}

/** Removes a directory and all in it. Durable with a sync of its parent. */
export async function removeTree(disk: Disk, directory: string): Promise<void> {
  for (const name of await disk.list(directory)) {
    const path = `${directory}/${name}`;
    // No disk unlinks a directory.
    await disk.unlink(path).catch(() => removeTree(disk, path));
  }
  await disk.removeDirectory(directory);
}
