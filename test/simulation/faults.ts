/** The failures that a disk may show at each kind of call. */
import type { Fault, Step } from './faulty-disk.ts';
import { Seeded } from './seeded.ts';

/** What can go wrong at a step, by name. */
export function faultsOf({ kind, bytes, index }: Step, seed: number): [string, Fault][] {
  const error = (code: 'EIO' | 'ENOSPC', taken = 0): Fault => ({ kind: 'error', code, bytes: taken });
  switch (kind) {
    case 'write':
      return [
        ['full', error('ENOSPC')],
        ['fullPart', error('ENOSPC', bytes >> 1)],
        ['short', { kind: 'short', bytes: Math.max(1, bytes >> 2) }],
      ];
    case 'sync':
      return [
        ['eio', error('EIO')],
        ['eioTorn', { kind: 'error', code: 'EIO', torn: new Seeded(seed + index) }],
        ['full', error('ENOSPC')],
      ];
    case 'create':
    case 'rename':
    case 'truncate':
    case 'syncDirectory':
      return [['eio', error(kind === 'create' || kind === 'rename' ? 'ENOSPC' : 'EIO')]];
    case 'read':
    case 'unlink':
    case 'removeDirectory':
    case 'open':
    case 'makeDirectory':
      return [['eio', error('EIO')]];
    case 'list':
    case 'size':
    case 'lock':
      return [];
  }
}
