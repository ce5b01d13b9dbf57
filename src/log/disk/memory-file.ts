/**
 * Files in the machine's memory, for a library that reads and writes nothing but what has a path. Such a file lies in a file system
 * that never reaches a disk, loses its name before a byte is in it, and is found by its owner's process alone, so nothing of it is left
 * where a process is killed. Like all memory of a process it may be swapped out.
 */
import fsp, { type FileHandle } from 'node:fs/promises';

/** Where Linux has one. */
export const MEMORY_DIRECTORY = '/dev/shm';

/** File system types, as `statfs` reports them, that lie in memory: tmpfs and ramfs. */
const MEMORY_TYPES = new Set([0x0102_1994, 0x8584_58f6]);

export interface MemoryFile {
  /** Good for this process until the file is closed. */
  readonly path: string;
  write(bytes: Uint8Array): Promise<void>;
  /** All of it, in memory that threads share. */
  read(): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** Null where there is no such file system, or none with room for so many bytes. */
export async function openMemoryFile(memoryDirectory: string, memoryBytes: number): Promise<MemoryFile | null> {
  if (!(await hasMemoryRoom(memoryDirectory, memoryBytes))) return null;
  const temporaryDirectory = await fsp.mkdtemp(`${memoryDirectory}/annals-`);
  const memoryFilePath = `${temporaryDirectory}/file`;
  let memoryHandle: FileHandle;
  try {
    memoryHandle = await fsp.open(memoryFilePath, 'wx+', 0o600);
    await fsp.unlink(memoryFilePath);
  } finally {
    await fsp.rmdir(temporaryDirectory);
  }
  return {
    path: `/proc/self/fd/${memoryHandle.fd}`,
    write: async (source) => {
      for (let at = 0; at < source.length; ) at += (await memoryHandle.write(source, at, source.length - at, at)).bytesWritten;
    },
    read: async () => {
      const { size } = await memoryHandle.stat();
      const target = new Uint8Array(new SharedArrayBuffer(size));
      for (let at = 0; at < size; ) {
        const { bytesRead } = await memoryHandle.read(target, at, size - at, at);
        if (bytesRead === 0) throw new Error('a file in memory ends early');
        at += bytesRead;
      }
      return target;
    },
    close: () => memoryHandle.close(),
  };
}

async function hasMemoryRoom(memoryDirectory: string, neededBytes: number): Promise<boolean> {
  try {
    const { type, bsize, bavail } = await fsp.statfs(memoryDirectory);
    return MEMORY_TYPES.has(type) && bsize * bavail >= neededBytes;
  } catch {
    return false;
  }
}
