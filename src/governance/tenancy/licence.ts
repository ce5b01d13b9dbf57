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
  const isFreeProfile = profile === 'free';
  return {
    tier: profile,
    storageBytesMax: isFreeProfile ? 10 * bytesPerGb : 0,
    tenantsMax: profile === 'cluster' ? 0 : 1,
    capabilities: [],
    expiresAt: null,
    graceEndsAt: null,
  };
}

export class StorageCap {
  readonly #cappedLicence: Pick<Licence, 'tier' | 'storageBytesMax'>;
  readonly #storedBytes: () => number;
  readonly #warnOfCap: (line: string) => void;
  #hasWarnedOfCap = false;

  constructor(licence: Pick<Licence, 'tier' | 'storageBytesMax'>, storedBytes: () => number, warn: (line: string) => void) {
    this.#cappedLicence = licence;
    this.#storedBytes = storedBytes;
    this.#warnOfCap = warn;
  }

  /** Throws REL_STORAGE_CAP at the cap, or where so many bytes go beyond it; warns once on every rise over 90 % of it. */
  admitWrite(bytes = 0): void {
    const storageBytesMax = this.#cappedLicence.storageBytesMax;
    if (storageBytesMax === 0) return;
    const storedBytes = this.#storedBytes();
    if (storedBytes >= storageBytesMax || storedBytes + bytes > storageBytesMax) {
      throw new ServiceError('REL_STORAGE_CAP', `the storage cap of ${storageBytesMax} bytes is reached`);
    }
    const isNearCap = storedBytes >= storageBytesMax * 0.9;
    if (isNearCap && !this.#hasWarnedOfCap)
      this.#warnOfCap(
        `storage is at ${Math.floor((storedBytes / storageBytesMax) * 100)} % of its cap of ${storageBytesMax} bytes`,
      );
    this.#hasWarnedOfCap = isNearCap;
  }
}

/**
 * Commands that an expired licence still allows: removals, endings and withdrawals, and changes of permissions. Erasure is a duty
 * that no licence suspends.
 */
const allowedAfterExpiry: ReadonlySet<CommandKind> = new Set<CommandKind>([
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
  readonly #termedLicence: Pick<Licence, 'expiresAt' | 'graceEndsAt'>;
  readonly #warnOfTerm: (line: string) => void;

  constructor(licence: Pick<Licence, 'expiresAt' | 'graceEndsAt'>, warn: (line: string) => void) {
    this.#termedLicence = licence;
    this.#warnOfTerm = warn;
  }

  /** At an instant in nanoseconds. */
  stateAt(now: bigint): 'valid' | 'grace' | 'expired' {
    const { expiresAt, graceEndsAt } = this.#termedLicence;
    if (expiresAt === null || graceEndsAt === null || now < expiresAt) return 'valid';
    return now < graceEndsAt ? 'grace' : 'expired';
  }

  /** Throws REL_LICENSE_EXPIRED for a write after the grace period. */
  admit(kind: CommandKind, now: bigint): void {
    if (this.#termedLicence.expiresAt === null || allowedAfterExpiry.has(kind) || this.stateAt(now) !== 'expired') return;
    throw new ServiceError('REL_LICENSE_EXPIRED', 'the licence has expired: the store can be read, and no longer be written to');
  }

  /** Says what there is to be said about it now, and again every day, at its expiry and at the end of its grace. */
  async watch(clock: Clock, signal: AbortSignal): Promise<void> {
    const { expiresAt, graceEndsAt } = this.#termedLicence;
    if (expiresAt === null || graceEndsAt === null) return;
    while (!signal.aborted) {
      const now = clock.now();
      const termState = this.stateAt(now);
      if (termState !== 'valid') this.#warnOfTerm(this.#termWarning(termState));
      const nextTermChange = termState === 'valid' ? expiresAt : termState === 'grace' ? graceEndsAt : null;
      // Rounded up: at the instant itself, never just before it.
      const msToTermChange = nextTermChange === null ? dayMs : Number((nextTermChange - now + nsPerMs - 1n) / nsPerMs);
      await clock.sleep(Math.min(msToTermChange, dayMs), signal);
    }
  }

  #termWarning(termState: 'grace' | 'expired'): string {
    const { expiresAt, graceEndsAt } = this.#termedLicence;
    const expiredSince = `THE LICENCE HAS EXPIRED on ${formatInstant(expiresAt!)}`;
    return termState === 'grace'
      ? `${expiredSince}: writes are refused from ${formatInstant(graceEndsAt!)} on; renew SERVICE_LICENSE_FILE`
      : `${expiredSince} and its grace is over: writes are refused, reads stay open; renew SERVICE_LICENSE_FILE`;
  }
}
