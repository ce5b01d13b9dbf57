/** A disk that shows an image and takes no writes: for readers that look at one image many thousand times. */
import { dirname } from 'node:path/posix';
import type { Disk, DiskFile } from '../../src/log/disk/disk.ts';
import { DiskError } from '../../src/log/disk/memory-disk.ts';
import type { Image } from './faulty-disk.ts';

export function imageDisk(image: Image): Disk {
  const refuse = (): Promise<never> => Promise.reject(new DiskError('EROFS', 'an image is read-only'));
  return {
    open: async (path, mode) => {
      const bytes = image.files.get(path);
      if (!bytes) throw new DiskError('ENOENT', path);
      return mode === 'read' ? imageFile(path, bytes) : await refuse();
    },
    readFile: async (path) => image.files.get(path),
    list: async (directory) => {
      const names: string[] = [];
      for (const path of image.files.keys()) if (dirname(path) === directory) names.push(path.slice(directory.length + 1));
      return names.sort();
    },
    size: async (path) => image.files.get(path)?.length,
    replaceFile: refuse,
    rename: refuse,
    unlink: refuse,
    makeDirectory: refuse,
    removeDirectory: refuse,
    syncDirectory: refuse,
    freeBytes: async () => null,
    lock: refuse,
  };
}

function imageFile(path: string, bytes: Uint8Array): DiskFile {
  const refuse = (): Promise<never> => Promise.reject(new DiskError('EBADF', path));
  const copyOut = (target: Uint8Array, offset: number): number => {
    const part = bytes.subarray(offset, offset + target.length);
    target.set(part);
    return part.length;
  };
  return {
    path,
    size: async () => bytes.length,
    read: async (target, offset) => copyOut(target, offset),
    readNow: copyOut,
    write: refuse,
    sync: refuse,
    truncate: refuse,
    close: async () => undefined,
  };
}
