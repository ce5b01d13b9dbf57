/**
 * The licence of the installation: how much it may store, how many tenants it may have, and until when. Reads stay open in every
 * state; only writes that make the store grow are refused.
 *
 *   valid ──expiresAt──> grace ──graceEndsAt──> expired        a warning a day from the first on; writes refused at the last
 */
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import { formatInstant } from '../../log/values/timestamp.ts';
import type { CommandKind } from '../../projections/command.ts';

export interface Licence {
  readonly tier: 'free' | 'server' | 'cluster';
  /** Bytes; 0 is unlimited. */
  readonly storageBytesMax: number;
  /** Tenants that may be registered; 0 is unlimited. */
  readonly tenantsMax: number;
  readonly capabilities: readonly string[];
  /** Nanoseconds; null: never. */
  readonly expiresAt: bigint | null;
  /** From here on writes are refused; null: never. */
  readonly graceEndsAt: bigint | null;
}

/** Bytes of a GB as licences count them. */
export const bytesPerGb = 1_000_000_000;

/** The limits of a profile without a licence file. Source: specification, "Deployment profiles". */
export function licenceOf(profile: Licence['tier']): Licence {
  const free = profile === 'free';
  return {
    tier: profile,
    storageBytesMax: free ? 10 * bytesPerGb : 0,
    tenantsMax: profile === 'cluster' ? 0 : 1,
    capabilities: [],
    expiresAt: null,
    graceEndsAt: null,
  };
}

export class StorageCap {
  readonly #licence: Pick<Licence, 'tier' | 'storageBytesMax'>;
  readonly #storedBytes: () => number;
  readonly #warn: (line: string) => void;
  #warned = false;

  constructor(licence: Pick<Licence, 'tier' | 'storageBytesMax'>, storedBytes: () => number, warn: (line: string) => void) {
    this.#licence = licence;
    this.#storedBytes = storedBytes;
    this.#warn = warn;
  }

  /** Throws REL_STORAGE_CAP at the cap, or where so many bytes go beyond it; warns once on every rise over 90 % of it. */
  admitWrite(bytes = 0): void {
    const max = this.#licence.storageBytesMax;
    if (max === 0) return;
    const stored = this.#storedBytes();
    if (stored >= max || stored + bytes > max) {
      throw new ServiceError('REL_STORAGE_CAP', `the storage cap of ${max} bytes is reached`);
    }
    const high = stored >= max * 0.9;
    if (high && !this.#warned) this.#warn(`storage is at ${Math.floor((stored / max) * 100)} % of its cap of ${max} bytes`);
    this.#warned = high;
  }
}

/**
 * Commands that an expired licence still allows: removals, endings and withdrawals, and changes of permissions. Erasure is a duty
 * that no licence suspends.
 */
const alwaysAllowed: ReadonlySet<CommandKind> = new Set<CommandKind>([
  'remove-rows',
  'intend-erasure',
  'complete-erasure',
  'schedule-retention',
  'hold-row',
  'release-retention',
  'expire-retention',
  'mint-token',
  'rotate-token',
  'revoke-token',
  'delete-branch',
  'drop-view',
  'end-rule',
  'change-job',
  'put-policy',
  'delete-policy',
  'change-tenant',
  'suspend-tenant',
  'reactivate-tenant',
  'delete-tenant',
  'purge-tenant',
  'move-agreement',
]);

const dayMs = 86_400_000;
const nsPerMs = 1_000_000n;

/** How much time a licence has left, and the stage that follows. */
export class LicenceTerm {
  readonly #licence: Pick<Licence, 'expiresAt' | 'graceEndsAt'>;
  readonly #warn: (line: string) => void;

  constructor(licence: Pick<Licence, 'expiresAt' | 'graceEndsAt'>, warn: (line: string) => void) {
    this.#licence = licence;
    this.#warn = warn;
  }

  /** At an instant in nanoseconds. */
  stateAt(now: bigint): 'valid' | 'grace' | 'expired' {
    const { expiresAt, graceEndsAt } = this.#licence;
    if (expiresAt === null || graceEndsAt === null || now < expiresAt) return 'valid';
    return now < graceEndsAt ? 'grace' : 'expired';
  }

  /** Throws REL_LICENSE_EXPIRED for a write after the grace period. */
  admit(kind: CommandKind, now: bigint): void {
    if (this.#licence.expiresAt === null || alwaysAllowed.has(kind) || this.stateAt(now) !== 'expired') return;
    throw new ServiceError('REL_LICENSE_EXPIRED', 'the licence has expired: the store can be read, and no longer be written to');
  }

  /** Says what there is to be said about it now, and again every day, at its expiry and at the end of its grace. */
  async watch(clock: Clock, signal: AbortSignal): Promise<void> {
    const { expiresAt, graceEndsAt } = this.#licence;
    if (expiresAt === null || graceEndsAt === null) return;
    while (!signal.aborted) {
      const now = clock.now();
      const state = this.stateAt(now);
      if (state !== 'valid') this.#warn(this.#warning(state));
      const next = state === 'valid' ? expiresAt : state === 'grace' ? graceEndsAt : null;
      // Rounded up: at the instant itself, never just before it.
      const ms = next === null ? dayMs : Number((next - now + nsPerMs - 1n) / nsPerMs);
      await clock.sleep(Math.min(ms, dayMs), signal);
    }
  }

  #warning(state: 'grace' | 'expired'): string {
    const { expiresAt, graceEndsAt } = this.#licence;
    const since = `THE LICENCE HAS EXPIRED on ${formatInstant(expiresAt!)}`;
    return state === 'grace'
      ? `${since}: writes are refused from ${formatInstant(graceEndsAt!)} on; renew SERVICE_LICENSE_FILE`
      : `${since} and its grace is over: writes are refused, reads stay open; renew SERVICE_LICENSE_FILE`;
  }
}
