/** A disk for long reads in the background: other work gets the turn before each read of a file. */
import type { Disk, DiskFile } from './disk.ts';

/** A few milliseconds of decoding and hashing. */
export const PACED_BYTES = 256 << 10;

export function pacedDisk(disk: Disk, paceRead: () => Promise<void>): Disk {
  return {
    open: async (path, mode) => pacedFile(await disk.open(path, mode), paceRead),
    readFile: (path) => disk.readFile(path),
    replaceFile: (path, content, mode) => disk.replaceFile(path, content, mode),
    rename: (from, to) => disk.rename(from, to),
    unlink: (path) => disk.unlink(path),
    list: (directory) => disk.list(directory),
    makeDirectory: (path) => disk.makeDirectory(path),
    removeDirectory: (path) => disk.removeDirectory(path),
    syncDirectory: (path) => disk.syncDirectory(path),
    size: (path) => disk.size(path),
    freeBytes: (path) => disk.freeBytes(path),
    lock: (path) => disk.lock(path),
  };
}

function pacedFile(unpacedFile: DiskFile, paceRead: () => Promise<void>): DiskFile {
  return {
    path: unpacedFile.path,
    size: () => unpacedFile.size(),
    read: async (target, offset) => {
      await paceRead();
      return unpacedFile.read(target, offset);
    },
    readNow: (target, offset) => unpacedFile.readNow(target, offset),
    write: (source, offset) => unpacedFile.write(source, offset),
    sync: (inTurn) => unpacedFile.sync(inTurn),
    truncate: (length) => unpacedFile.truncate(length),
    close: () => unpacedFile.close(),
  };
}
