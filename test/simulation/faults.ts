/** The failures that a disk may show at each kind of call. */
import type { NoRoom } from '../../src/log/disk/disk.ts';
import type { Fault, Step } from './faulty-disk.ts';
import { Seeded } from './seeded.ts';

const needsRoom = new Set<Step['kind']>(['write', 'create', 'rename', 'unlink', 'truncate']);

/** A disk that refuses so many calls that need room from a step on, each for the same reason, and of a write any part. */
export class WithoutRoom {
  readonly #from: number;
  readonly #code: NoRoom;
  readonly #random: Seeded;
  #left: number;
  /** The last step that was refused; -1 before the first. */
  last = -1;

  constructor(from: number, calls: number, code: NoRoom, random: Seeded) {
    this.#from = from;
    this.#left = calls;
    this.#code = code;
    this.#random = random;
  }

  /** Whether there is room again. */
  get over(): boolean {
    return this.#left === 0;
  }

  fault({ kind, index, bytes }: Step): Fault | undefined {
    if (index < this.#from || this.over || !needsRoom.has(kind)) return undefined;
    this.#left--;
    this.last = index;
    return { kind: 'error', code: this.#code, bytes: this.#random.below(bytes + 1) };
  }
}

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
