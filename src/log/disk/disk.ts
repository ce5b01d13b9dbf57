/**
 * The file-system seam. Every call is one step that a simulation can stop at, fail or tear.
 * Nothing else in the codebase touches `node:fs`, save `config.ts`, lookups, the servers' own certificates, and files in memory
 * (`memory-file.ts`).
 */
import { assert } from '../../errors.ts';

export interface Disk {
  /** Opens a file for reading and writing. `create` makes it when absent and fails when present. */
  open(path: string, mode: 'read' | 'write' | 'create'): Promise<DiskFile>;
  /** Whole content of a small file; undefined when there is none. */
  readFile(path: string): Promise<Uint8Array | undefined>;
  /** Atomic and durable replacement: temporary file, fsync, rename, fsync of the directory. */
  replaceFile(path: string, content: Uint8Array, mode?: number): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  unlink(path: string): Promise<void>;
  /** Names in a directory, sorted bytewise; empty when there is no such directory. */
  list(directory: string): Promise<string[]>;
  /** Makes a directory and its parents, and makes their names durable. */
  makeDirectory(path: string): Promise<void>;
  /** Removes an empty directory. Durable with a sync of its parent. */
  removeDirectory(path: string): Promise<void>;
  /** Makes created, renamed and removed names in a directory durable. */
  syncDirectory(path: string): Promise<void>;
  /** Size in bytes, or undefined when absent. */
  size(path: string): Promise<number | undefined>;
  /** Bytes that are free where a directory lies; null where that is not known. */
  freeBytes(path: string): Promise<number | null>;
  /** Takes the exclusive lock of a data directory, or throws when another live process holds it. */
  lock(path: string): Promise<{ release(): Promise<void> }>;
}

export interface DiskFile {
  readonly path: string;
  size(): Promise<number>;
  /** Reads up to `target.length` bytes at `offset`; returns how many. 0 only at or past the end. */
  read(target: Uint8Array, offset: number): Promise<number>;
  /**
   * The same within the turn, for a cell that a query needs and that is not in memory. At most some hundred KiB, so that the
   * event loop is held no longer than a page takes.
   */
  readNow(target: Uint8Array, offset: number): number;
  /** Writes some or all of `source` at `offset`; returns how many. Callers loop (`writeFully`). */
  write(source: Uint8Array, offset: number): Promise<number>;
  /**
   * fdatasync. After an error it must never be called again on this file (the caller is poisoned). `inTurn`: a disk may hold the
   * calling turn until it is done, because no other work waits for the event loop.
   */
  sync(inTurn?: boolean): Promise<void>;
  truncate(length: number): Promise<void>;
  close(): Promise<void>;
}

/** Why a disk takes no more for now. */
export type NoRoom = 'ENOSPC' | 'EDQUOT' | 'EROFS';

/**
 * Why a call found no room; null for every other error. A call that was refused has changed nothing that the same call
 * does not write over. After a failed sync that is not known: what it says of room does not count.
 */
export function noRoomIn(error: unknown): NoRoom | null {
  if (!(error instanceof Error)) return null;
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (syscall === 'fsync' || syscall === 'fdatasync') return null;
  return code === 'ENOSPC' || code === 'EDQUOT' || code === 'EROFS' ? code : null;
}

/** Writes all of `bytesToWrite`: a write may be short, and is then continued. */
export async function writeFully(file: DiskFile, bytesToWrite: Uint8Array, offset: number): Promise<void> {
  for (let writtenOffset = 0; writtenOffset < bytesToWrite.length; ) {
    const writtenBytes = await file.write(
      writtenOffset === 0 ? bytesToWrite : bytesToWrite.subarray(writtenOffset),
      offset + writtenOffset,
    );
    assert(writtenBytes > 0, 'a write that writes nothing fails');
    writtenOffset += writtenBytes;
  }
}
