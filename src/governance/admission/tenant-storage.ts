/**
 * How much one tenant may store, where a limit was agreed. Rows are measured, which takes a while, only when a limit is near or
 * the size is unknown; in between writes are counted. Invariant: a tenant over its limit is measured before a write is refused,
 * at most once a second, so that removals make room.
 */
import { ServiceError } from '../../errors.ts';

export interface TenantStorageDependencies {
  /** Agreed bytes of a tenant; null or undefined where nothing was agreed. */
  readonly bytesMaxOf: (tenant: string) => number | null | undefined;
  /** Bytes of a tenant's rows, superseded versions and branches among them, and of bodies beside them. */
  readonly measure: (tenant: string) => number;
  readonly warn: (line: string) => void;
}

interface Known {
  bytes: number;
  measuredAtMs: number;
  warned: boolean;
}

const measureEveryMs = 1_000;

export class TenantStorage {
  readonly #parts: TenantStorageDependencies;
  /** Tenants with a limit that wrote since the start. */
  readonly #known = new Map<string, Known>();

  constructor(parts: TenantStorageDependencies) {
    this.#parts = parts;
  }

  /** Throws REL_STORAGE_CAP at the limit; warns once on every rise over 90 % of it. The last write may go beyond. */
  admitWrite(tenant: string, bytes: number, nowMs: number): void {
    const max = this.#parts.bytesMaxOf(tenant) ?? null;
    if (max === null) return;
    const known = this.#knownOf(tenant, max, nowMs);
    if (known.bytes >= max) {
      throw new ServiceError('REL_STORAGE_CAP', `the storage limit of this tenant, ${max} bytes, is reached`);
    }
    const high = known.bytes >= max * 0.9;
    if (high && !known.warned) {
      this.#parts.warn(
        `the tenant ${tenant} is at ${Math.floor((known.bytes / max) * 100)} % of the ${max} bytes that it may store`,
      );
    }
    known.warned = high;
    known.bytes += bytes;
  }

  /** Gives back admitted bytes that were not stored after all. */
  giveBack(tenant: string, bytes: number): void {
    const known = this.#known.get(tenant);
    if (known !== undefined) known.bytes = Math.max(0, known.bytes - bytes);
  }

  #knownOf(tenant: string, max: number, nowMs: number): Known {
    let known = this.#known.get(tenant);
    if (known !== undefined && (known.bytes < max || nowMs - known.measuredAtMs < measureEveryMs)) return known;
    if (known === undefined) {
      known = { bytes: 0, measuredAtMs: nowMs, warned: false };
      this.#known.set(tenant, known);
    }
    known.bytes = this.#parts.measure(tenant);
    known.measuredAtMs = nowMs;
    return known;
  }
}
