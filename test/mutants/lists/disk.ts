/** Mistakes in the disks under the log. */
import type { Mutant } from '../mutant.ts';

const killedBy = ['test/log/disk/disks.test.ts'];
const file = 'src/log/disk/node-disk.ts';

export const mutants: readonly Mutant[] = [
  { name: 'lock that never refuses', file, find: 'if (!takeFlock(fd, holder)) {', replace: 'if (false) {', killedBy },
  { name: 'files readable by everyone', file, find: 'const fileMode = 0o600;', replace: 'const fileMode = 0o644;', killedBy },
  {
    name: 'replacement that writes one piece only',
    file,
    find: 'for (let at = 0; at < content.length; ) at += await writeAt(fd, content.subarray(at), at);',
    replace: 'await writeAt(fd, content.subarray(0, writeSyncBytesMax), 0);',
    killedBy,
  },
];
