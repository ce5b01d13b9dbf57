/** What the installation was sold: how much it may store. Reads stay open at the cap; only what grows it is refused. */
import { ServiceError } from '../../errors.ts';

export interface Licence {
  readonly tier: 'free' | 'server' | 'cluster';
  /** Bytes; 0 is unlimited. */
  readonly storageBytesMax: number;
}

/** Source: specification, "Deployment profiles". */
export function licenceOf(profile: 'free' | 'server' | 'cluster'): Licence {
  return { tier: profile, storageBytesMax: profile === 'free' ? 10_000_000_000 : 0 };
}

export class StorageCap {
  readonly #licence: Licence;
  readonly #storedBytes: () => number;
  readonly #warn: (line: string) => void;
  #warned = false;

  constructor(licence: Licence, storedBytes: () => number, warn: (line: string) => void) {
    this.#licence = licence;
    this.#storedBytes = storedBytes;
    this.#warn = warn;
  }

  /** Throws REL_STORAGE_CAP at the cap; warns once on every rise over 90 % of it. */
  admitWrite(): void {
    const max = this.#licence.storageBytesMax;
    if (max === 0) return;
    const stored = this.#storedBytes();
    if (stored >= max) {
      throw new ServiceError('REL_STORAGE_CAP', `the storage cap of ${max} bytes is reached`);
    }
    const high = stored >= max * 0.9;
    if (high && !this.#warned) this.#warn(`storage is at ${Math.floor((stored / max) * 100)} % of its cap of ${max} bytes`);
    this.#warned = high;
  }
}
