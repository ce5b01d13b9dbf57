/** Mistakes in the disks under the log. */
import type { Mutant } from '../mutant.ts';

const killedBy = ['test/log/disk/disks.test.ts'];
const file = 'src/log/disk/node-disk.ts';

export const mutants: readonly Mutant[] = [
  {
    name: 'lock that never refuses',
    file,
    find: 'if (!takeDirectoryLock(lockFd, lockHolder)) {',
    replace: 'if (false) {',
    killedBy,
  },
  {
    name: 'files readable by everyone',
    file,
    find: 'const storeFileMode = 0o600;',
    replace: 'const storeFileMode = 0o644;',
    killedBy,
  },
  {
    name: 'replacement that writes one piece only',
    file,
    find: 'for (let contentOffset = 0; contentOffset < replacingContent.length; ) contentOffset += await writeDiskBytes(temporaryFd, replacingContent.subarray(contentOffset), contentOffset);',
    replace: 'await writeDiskBytes(temporaryFd, replacingContent.subarray(0, writeInTurnBytesMax), 0);',
    killedBy,
  },
];
