/**
 * Feeds committed entries to every projection in a fixed order, live and on replay alike. Each projection has a
 * watermark: leaves below it are applied. An entry is applied to a projection once, and never past a gap.
 */
import { assert } from '../errors.ts';
import type { CommittedEntry } from '../log/entry.ts';
import type { StartWorker } from '../log/workers.ts';
import type { Projection } from './projection.ts';

interface Watched {
  readonly projection: Projection;
  watermark: number;
}

export class Projector {
  readonly #watched: readonly Watched[];
  #waiting: { readonly leaves: number; readonly resolve: () => void }[] = [];

  /** In the order in which each entry reaches them: one that reads another stands after it. */
  constructor(projections: readonly Projection[]) {
    this.#watched = projections.map((projection) => ({ projection, watermark: 0 }));
    assert(new Set(projections.map(({ name }) => name)).size === projections.length, 'projections have different names');
  }

  get names(): readonly string[] {
    return this.#watched.map(({ projection }) => projection.name);
  }

  /** Leaves that every projection has applied. */
  get watermark(): number {
    return Math.min(...this.#watched.map(({ watermark }) => watermark));
  }

  watermarkOf(name: string): number {
    return this.#find(name).watermark;
  }

  /** Projections that have applied this leaf already, after a restore, are passed over. */
  apply(entry: CommittedEntry): void {
    for (const watched of this.#watched) {
      if (entry.leaf < watched.watermark) continue;
      assert(
        entry.leaf === watched.watermark,
        `${watched.projection.name} applies leaf ${watched.watermark} next, not ${entry.leaf}`,
      );
      watched.projection.apply(entry);
      watched.watermark = entry.leaf + 1;
    }
    this.#wake();
  }

  /** Resolves once every projection has applied the first `leaves` leaves. */
  async until(leaves: number): Promise<void> {
    if (this.watermark >= leaves) return;
    await new Promise<void>((resolve) => this.#waiting.push({ leaves, resolve }));
  }

  /** After a restore: the projection stands where its checkpoint was taken. */
  restored(name: string, watermark: number): void {
    this.#find(name).watermark = watermark;
  }

  /** All of them are as if nothing had been applied. */
  reset(): void {
    for (const watched of this.#watched) {
      watched.projection.reset();
      watched.watermark = 0;
    }
  }

  projection(name: string): Projection {
    return this.#find(name).projection;
  }

  /**
   * Forgets named projections and applies the log to them from its first leaf. The others stand still meanwhile, so the
   * log must not move on until this resolves, or the caller applies the rest afterwards.
   */
  async rebuild(
    names: readonly string[],
    entries: AsyncIterable<CommittedEntry>,
    onEntry?: (leaf: number) => void,
  ): Promise<void> {
    for (const name of names) {
      const watched = this.#find(name);
      watched.projection.reset();
      watched.watermark = 0;
    }
    for await (const entry of entries) {
      this.apply(entry);
      onEntry?.(entry.leaf);
    }
  }

  digests(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#watched.map(({ projection }) => [projection.name, projection.digest()]));
  }

  /** The same, with workers' help. Nothing may be applied before it resolves. */
  async digestsBeside(startWorker: StartWorker): Promise<Readonly<Record<string, string>>> {
    const digests: Record<string, string> = {};
    for (const { projection } of this.#watched) {
      digests[projection.name] = (await projection.digestBeside?.(startWorker)) ?? projection.digest();
    }
    return digests;
  }

  #find(name: string): Watched {
    const watched = this.#watched.find(({ projection }) => projection.name === name);
    assert(watched, `no projection ${name}`);
    return watched;
  }

  #wake(): void {
    if (this.#waiting.length === 0) return;
    const { watermark } = this;
    const ready = this.#waiting.filter(({ leaves }) => leaves <= watermark);
    if (ready.length === 0) return;
    this.#waiting = this.#waiting.filter(({ leaves }) => leaves > watermark);
    for (const { resolve } of ready) resolve();
  }
}
