/**
 * Feeds committed entries to every projection in a fixed order, live and on replay alike. Each projection has a
 * watermark: leaves below it are applied. An entry is applied to a projection once, and never past a gap.
 */
import { assert } from '../errors.ts';
import { type CommittedEntry, isWhole, splitParts } from '../log/entries/entry.ts';
import type { LogStore } from '../log/log-store.ts';
import type { StartWorker } from '../log/threads/workers.ts';
import type { Projection } from './projection.ts';

interface Watched {
  readonly projection: Projection;
  watermark: number;
  /** It stands at the first leaf while others were restored: entries pass it by until it is rebuilt. */
  behind: boolean;
}

export class Projector {
  readonly #watched: readonly Watched[];
  #waiting: { readonly leaves: number; readonly resolve: () => void }[] = [];

  /** In the order in which each entry reaches them: one that reads another stands after it. */
  constructor(projections: readonly Projection[]) {
    this.#watched = projections.map((projection) => ({ projection, watermark: 0, behind: false }));
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

  /** Names of projections that no saved state holds as they are now, and that must be rebuilt before anything is read. */
  get behind(): readonly string[] {
    return this.#watched.filter(({ behind }) => behind).map(({ projection }) => projection.name);
  }

  /** Projections that have applied this leaf already, after a restore, are passed over, and so are those that are behind. */
  apply(entry: CommittedEntry): void {
    for (const watched of this.#watched) if (!watched.behind) this.#applyTo(watched, entry);
    this.#wake();
  }

  /** Resolves once every projection has applied the first `leaves` leaves. */
  async until(leaves: number): Promise<void> {
    if (this.watermark >= leaves) return;
    await new Promise<void>((resolve) => this.#waiting.push({ leaves, resolve }));
  }

  /** After a restore: the projection stands where its checkpoint was taken. */
  markRestored(name: string, watermark: number): void {
    this.#find(name).watermark = watermark;
  }

  /** After a restore of others: until `rebuild` names it, the projection is as if nothing had been applied. */
  leaveBehind(name: string): void {
    const watched = this.#find(name);
    watched.projection.reset();
    watched.watermark = 0;
    watched.behind = true;
  }

  /** All of them are as if nothing had been applied. */
  reset(): void {
    for (const watched of this.#watched) this.#forget(watched);
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
    for (const name of names) this.#forget(this.#find(name));
    for await (const entry of entries) {
      this.apply(entry);
      onEntry?.(entry.leaf);
    }
  }

  /** Rebuilds those that are behind from the log, which may grow meanwhile; the others stand still only where it does. */
  async catchUp(
    log: Pick<LogStore, 'read' | 'status'> & { durable(leaves: number): Promise<void> },
    onEntry: (leaf: number) => void | Promise<void> = () => undefined,
  ): Promise<void> {
    const late = this.#watched.filter(({ behind }) => behind);
    if (late.length === 0) return;
    for (let next = 0; next < log.status().leaves; ) {
      // Readers never see an entry that was placed but not yet written.
      await log.durable(log.status().leaves);
      for await (const entry of log.read(next)) {
        for (const watched of late) this.#applyTo(watched, entry);
        next = entry.leaf + 1;
        await onEntry(entry.leaf);
      }
    }
    for (const watched of late) watched.behind = false;
    this.#wake();
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

  #applyTo(watched: Watched, entry: CommittedEntry): void {
    if (entry.leaf < watched.watermark) return;
    const { projection } = watched;
    assert(entry.leaf === watched.watermark, `${projection.name} applies leaf ${watched.watermark} next, not ${entry.leaf}`);
    if (isWhole(entry)) projection.apply(entry);
    else for (const part of splitParts(entry)) projection.apply(part);
    watched.watermark = entry.leaf + 1;
  }

  #forget(watched: Watched): void {
    watched.projection.reset();
    watched.watermark = 0;
    watched.behind = false;
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
