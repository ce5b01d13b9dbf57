/**
 * Feeds committed entries to every projection in a fixed order, live and on replay alike. Each projection has a
 * watermark: leaves below it are applied. An entry is applied to a projection once, and never past a gap.
 */
import { assert } from '../errors.ts';
import { type CommittedEntry, isWhole, splitParts } from '../log/entries/entry.ts';
import type { LogStore } from '../log/log-store.ts';
import type { StartWorker } from '../log/threads/workers.ts';
import type { Projection } from './projection.ts';

interface WatchedProjection {
  readonly projection: Projection;
  watermark: number;
  /** It stands at the first leaf while others were restored: entries pass it by until it is rebuilt. */
  behind: boolean;
}

export class Projector {
  readonly #watchedProjections: readonly WatchedProjection[];
  #watermarkWaiters: { readonly leaves: number; readonly resolve: () => void }[] = [];

  /** In the order in which each entry reaches them: one that reads another stands after it. */
  constructor(projected: readonly Projection[]) {
    this.#watchedProjections = projected.map((projection) => ({ projection, watermark: 0, behind: false }));
    assert(new Set(projected.map(({ name }) => name)).size === projected.length, 'projections have different names');
  }

  get names(): readonly string[] {
    return this.#watchedProjections.map(({ projection }) => projection.name);
  }

  /** Leaves that every projection has applied. */
  get watermark(): number {
    return Math.min(...this.#watchedProjections.map(({ watermark }) => watermark));
  }

  watermarkOf(name: string): number {
    return this.#findWatched(name).watermark;
  }

  /** Names of projections that no saved state holds as they are now, and that must be rebuilt before anything is read. */
  get behind(): readonly string[] {
    return this.#watchedProjections.filter(({ behind }) => behind).map(({ projection }) => projection.name);
  }

  /** Projections that have applied this leaf already, after a restore, are passed over, and so are those that are behind. */
  apply(projectedEntry: CommittedEntry): void {
    for (const watchedProjection of this.#watchedProjections)
      if (!watchedProjection.behind) this.#applyToProjection(watchedProjection, projectedEntry);
    this.#wakeWatermarkWaiters();
  }

  /** Resolves once every projection has applied the first `awaitedLeaves` leaves. */
  async until(awaitedLeaves: number): Promise<void> {
    if (this.watermark >= awaitedLeaves) return;
    await new Promise<void>((resolve) => this.#watermarkWaiters.push({ leaves: awaitedLeaves, resolve }));
  }

  /** After a restore: the projection stands where its checkpoint was taken. */
  markRestored(name: string, watermark: number): void {
    this.#findWatched(name).watermark = watermark;
  }

  /** After a restore of others: until `rebuild` names it, the projection is as if nothing had been applied. */
  leaveBehind(name: string): void {
    const lateProjection = this.#findWatched(name);
    lateProjection.projection.reset();
    lateProjection.watermark = 0;
    lateProjection.behind = true;
  }

  /** All of them are as if nothing had been applied. */
  reset(): void {
    for (const watchedProjection of this.#watchedProjections) this.#forgetProjection(watchedProjection);
  }

  projection(name: string): Projection {
    return this.#findWatched(name).projection;
  }

  /**
   * Forgets named projections and applies the log to them from its first leaf. The others stand still meanwhile, so the
   * log must not move on until this resolves, or the caller applies the rest afterwards.
   */
  async rebuild(
    rebuiltNames: readonly string[],
    replayedEntries: AsyncIterable<CommittedEntry>,
    onEntry?: (leaf: number) => void,
  ): Promise<void> {
    for (const rebuiltName of rebuiltNames) this.#forgetProjection(this.#findWatched(rebuiltName));
    for await (const replayedEntry of replayedEntries) {
      this.apply(replayedEntry);
      onEntry?.(replayedEntry.leaf);
    }
  }

  /** Rebuilds those that are behind from the log, which may grow meanwhile; the others stand still only where it does. */
  async catchUp(
    log: Pick<LogStore, 'read' | 'status'> & { durable(leaves: number): Promise<void> },
    onEntry: (leaf: number) => void | Promise<void> = () => undefined,
  ): Promise<void> {
    const lateProjections = this.#watchedProjections.filter(({ behind }) => behind);
    if (lateProjections.length === 0) return;
    for (let nextLeaf = 0; nextLeaf < log.status().leaves; ) {
      // Readers never see an entry that was placed but not yet written.
      await log.durable(log.status().leaves);
      for await (const missedEntry of log.read(nextLeaf)) {
        for (const lateProjection of lateProjections) this.#applyToProjection(lateProjection, missedEntry);
        nextLeaf = missedEntry.leaf + 1;
        await onEntry(missedEntry.leaf);
      }
    }
    for (const watched of lateProjections) watched.behind = false;
    this.#wakeWatermarkWaiters();
  }

  digests(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#watchedProjections.map(({ projection }) => [projection.name, projection.digest()]));
  }

  /** The same, with workers' help. Nothing may be applied before it resolves. */
  async digestsBeside(startWorker: StartWorker): Promise<Readonly<Record<string, string>>> {
    const projectionDigests: Record<string, string> = {};
    for (const { projection } of this.#watchedProjections) {
      projectionDigests[projection.name] = (await projection.digestBeside?.(startWorker)) ?? projection.digest();
    }
    return projectionDigests;
  }

  #applyToProjection(watchedProjection: WatchedProjection, projectedEntry: CommittedEntry): void {
    if (projectedEntry.leaf < watchedProjection.watermark) return;
    const { projection } = watchedProjection;
    assert(
      projectedEntry.leaf === watchedProjection.watermark,
      `${projection.name} applies leaf ${watchedProjection.watermark} next, not ${projectedEntry.leaf}`,
    );
    if (isWhole(projectedEntry)) projection.apply(projectedEntry);
    else for (const entryPart of splitParts(projectedEntry)) projection.apply(entryPart);
    watchedProjection.watermark = projectedEntry.leaf + 1;
  }

  #forgetProjection(watchedProjection: WatchedProjection): void {
    watchedProjection.projection.reset();
    watchedProjection.watermark = 0;
    watchedProjection.behind = false;
  }

  #findWatched(projectionName: string): WatchedProjection {
    const watchedProjection = this.#watchedProjections.find(({ projection }) => projection.name === projectionName);
    assert(watchedProjection, `no projection ${projectionName}`);
    return watchedProjection;
  }

  #wakeWatermarkWaiters(): void {
    if (this.#watermarkWaiters.length === 0) return;
    const { watermark } = this;
    const readyWaiters = this.#watermarkWaiters.filter(({ leaves }) => leaves <= watermark);
    if (readyWaiters.length === 0) return;
    this.#watermarkWaiters = this.#watermarkWaiters.filter(({ leaves }) => leaves > watermark);
    for (const { resolve: resolveWaiter } of readyWaiters) resolveWaiter();
  }
}
