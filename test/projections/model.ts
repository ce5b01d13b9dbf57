/** Row versions as a plain list, closed and filtered by walking all of it: what the columnar store must agree with. */
import { FOREVER } from '../../src/log/values/timestamp.ts';
import type { TimeBounds } from '../../src/projections/access-paths.ts';

export interface ModelVersion {
  readonly path: string | null;
  readonly key: string;
  readonly value: bigint;
  readonly position: number;
  readonly systemFrom: bigint;
  readonly validFrom: bigint;
  readonly validTo: bigint;
  readonly deleted: boolean;
  closedAt: { readonly position: number; readonly time: bigint } | null;
}

export interface ModelRow {
  readonly key: string;
  readonly value: bigint;
  readonly from: bigint | null;
  readonly to: bigint | null;
}

export class Model {
  readonly versions: ModelVersion[] = [];

  /** Rows of one entry at (position, time). Rows whose bounds are empty are refused and take no place. */
  put(path: string | null, rows: readonly ModelRow[], position: number, time: bigint): void {
    let taken = 0;
    const place = (): { position: number; time: bigint } => ({ position: position + taken, time: time + BigInt(taken++) });
    for (const row of rows) {
      const validFrom = row.from ?? time + BigInt(taken);
      const validTo = row.to ?? FOREVER;
      if (validFrom >= validTo) continue;
      const bounded = row.from !== null || row.to !== null;
      const hit = this.#open(path, row.key).filter((old) => !bounded || (old.validFrom < validTo && validFrom < old.validTo));
      const at = place();
      for (const old of hit) old.closedAt = at;
      this.#add({ path, key: row.key, value: row.value, validFrom, validTo, deleted: false }, at);
      if (!bounded) continue;
      for (const old of hit) {
        if (old.validFrom < validFrom) this.#add({ ...old, validTo: validFrom, deleted: false }, place());
        if (validTo < old.validTo) this.#add({ ...old, validFrom: validTo, deleted: false }, place());
      }
    }
  }

  end(path: string | null, keys: readonly string[], position: number, time: bigint): void {
    let taken = 0;
    for (const key of new Set(keys)) {
      for (const old of this.#open(path, key).filter((version) => !version.deleted)) {
        const at = { position: position + taken, time: time + BigInt(taken++) };
        old.closedAt = at;
        const until = old.validTo < at.time ? old.validTo : at.time;
        this.#add({ ...old, validTo: until < old.validFrom ? old.validFrom : until, deleted: true }, at);
      }
    }
  }

  remove(path: string | null, keys: readonly string[]): void {
    const kept = this.versions.filter((version) => version.path !== path || !keys.includes(version.key));
    this.versions.splice(0, this.versions.length, ...kept);
  }

  read(time: TimeBounds, basis: number, paths: readonly (string | null)[], keys?: readonly string[]): ModelVersion[] {
    return this.versions.filter((version) => {
      if (version.position >= basis || !paths.includes(version.path) || (keys && !keys.includes(version.key))) return false;
      const to = systemTo(version, basis);
      const believed = time.system === 'all' || (version.systemFrom <= time.system && time.system < to);
      return believed && (time.valid === 'all' || (version.validFrom <= time.valid && time.valid < version.validTo));
    });
  }

  /** Open versions of a key, newest first. */
  #open(path: string | null, key: string): ModelVersion[] {
    return this.versions.filter((version) => version.path === path && version.key === key && version.closedAt === null).reverse();
  }

  #add(
    version: Omit<ModelVersion, 'position' | 'systemFrom' | 'closedAt'>,
    { position, time }: { position: number; time: bigint },
  ): void {
    this.versions.push({ ...version, position, systemFrom: time, closedAt: null });
  }
}

/** As a reader at this basis sees it. */
export function systemTo(version: ModelVersion, basis: number): bigint {
  return version.closedAt && version.closedAt.position < basis ? version.closedAt.time : FOREVER;
}
