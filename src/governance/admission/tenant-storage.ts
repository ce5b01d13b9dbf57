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

interface MeasuredStorage {
  bytes: number;
  measuredAtMs: number;
  warned: boolean;
}

const measureEveryMs = 1_000;

export class TenantStorage {
  readonly #storageDependencies: TenantStorageDependencies;
  /** Tenants with a limit that wrote since the start. */
  readonly #measuredTenants = new Map<string, MeasuredStorage>();

  constructor(parts: TenantStorageDependencies) {
    this.#storageDependencies = parts;
  }

  /** Throws REL_STORAGE_CAP at the limit; warns once on every rise over 90 % of it. The last write may go beyond. */
  admitWrite(tenant: string, bytes: number, nowMs: number): void {
    const storageBytesMax = this.#storageDependencies.bytesMaxOf(tenant) ?? null;
    if (storageBytesMax === null) return;
    const tenantStorage = this.#measuredStorageOf(tenant, storageBytesMax, nowMs);
    if (tenantStorage.bytes >= storageBytesMax) {
      throw new ServiceError('REL_STORAGE_CAP', `the storage limit of this tenant, ${storageBytesMax} bytes, is reached`);
    }
    const isNearlyFull = tenantStorage.bytes >= storageBytesMax * 0.9;
    if (isNearlyFull && !tenantStorage.warned) {
      this.#storageDependencies.warn(
        `the tenant ${tenant} is at ${Math.floor((tenantStorage.bytes / storageBytesMax) * 100)} % of the ${storageBytesMax} bytes that it may store`,
      );
    }
    tenantStorage.warned = isNearlyFull;
    tenantStorage.bytes += bytes;
  }

  /** Gives back admitted bytes that were not stored after all. */
  giveBack(tenant: string, bytes: number): void {
    const tenantStorage = this.#measuredTenants.get(tenant);
    if (tenantStorage !== undefined) tenantStorage.bytes = Math.max(0, tenantStorage.bytes - bytes);
  }

  #measuredStorageOf(tenant: string, storageBytesMax: number, nowMs: number): MeasuredStorage {
    let tenantStorage = this.#measuredTenants.get(tenant);
    if (
      tenantStorage !== undefined &&
      (tenantStorage.bytes < storageBytesMax || nowMs - tenantStorage.measuredAtMs < measureEveryMs)
    )
      return tenantStorage;
    if (tenantStorage === undefined) {
      tenantStorage = { bytes: 0, measuredAtMs: nowMs, warned: false };
      this.#measuredTenants.set(tenant, tenantStorage);
    }
    tenantStorage.bytes = this.#storageDependencies.measure(tenant);
    tenantStorage.measuredAtMs = nowMs;
    return tenantStorage;
  }
}
