/** The real disk, on which writing does nothing: opening the keys must not change what is only looked at. */
import type { Disk } from '../log/disk/disk.ts';
import { nodeDisk } from '../log/disk/node-disk.ts';

export const readOnlyDisk: Disk = {
  ...nodeDisk,
  makeDirectory: () => Promise.resolve(),
  replaceFile: () => Promise.resolve(),
  syncDirectory: () => Promise.resolve(),
};
