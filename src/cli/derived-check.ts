/**
 * Derived files held against the log: the states that a closed process left, brought up to date by the rest of the
 * log, must have the digests of states rebuilt from its first entry. Where a process left none (it was killed), the
 * log is replayed a second time through its reader, and the two rebuilds are compared.
 */
import { totalmem } from 'node:os';
import { AuditProjection } from '../projections/audit/projection.ts';
import { Checkpoint } from '../projections/checkpoint.ts';
import { Projections } from '../projections/projections.ts';
import { ColumnStore } from '../projections/rows/store/column-store.ts';
import { hexOf } from '../log/bytes/sha256.ts';
import { nodeDisk } from '../log/disk/node-disk.ts';
import type { Service } from '../service.ts';
import { derivedDirectory } from '../store.ts';

export interface DerivedState {
  readonly projection: string;
  readonly rebuilt: string;
  readonly compared: string;
  /** Where the second digest comes from: `saved at leaf n`, or why it is a second rebuild. */
  readonly basis: string;
  readonly same: boolean;
}

/** Collects leaf hashes while the log is replayed: pass `note` as `onReplay`. */
export class LeafHashes {
  readonly #hashes: Uint8Array[] = [];

  note = (_entries: number, leafHash: Uint8Array): void => {
    this.#hashes.push(leafHash.slice());
  };

  hashAt(leaf: number): string | undefined {
    const hash = this.#hashes[leaf];
    return hash && hexOf(hash);
  }
}

export async function compareDerived(
  service: Service,
  hashes: LeafHashes,
  onLeaf: (leaf: number) => void,
): Promise<DerivedState[]> {
  const { settings } = service;
  const { log, projections } = service.store;
  const rebuilt = projections.digests();
  const columns = new ColumnStore({
    budgetBytes: settings.SERVICE_MEMORY_BUDGET_MB * 2 ** 20 || Math.floor(totalmem() / 4),
    hydrateMax: settings.SERVICE_HYDRATE_MAX_PARALLEL,
    compactMax: 1,
    say: () => undefined,
    defer: (task) => void setImmediate(task),
  });
  const saved = new Projections({
    newKey: () => service.ids.next(),
    tokensMax: settings.SERVICE_TOKEN_REGISTRY_MAX,
    textKeys: service.store.keyring.subjects,
    more: [new AuditProjection()],
    rows: { store: columns },
  });
  const basis = await restoreSaved(service, saved, columns, hashes);
  await saved.projector.catchUp(log, onLeaf);
  for await (const entry of log.read(saved.projector.watermark)) {
    saved.apply(entry);
    onLeaf(entry.leaf);
  }
  const compared = saved.digests();
  await columns.close();
  return saved.projector.names.map((projection) => ({
    projection,
    rebuilt: rebuilt[projection]!,
    compared: compared[projection]!,
    basis,
    same: rebuilt[projection] === compared[projection],
  }));
}

/** The state that a process left, where the log still holds what it stands for; says which, or why there is none. */
async function restoreSaved(service: Service, saved: Projections, columns: ColumnStore, hashes: LeafHashes): Promise<string> {
  const none = (why: string): string => `replayed twice, no saved state: ${why}`;
  const { settings } = service;
  const reader = {
    disk: nodeDisk,
    keyring: service.store.keyring,
    directory: derivedDirectory(settings),
    logId: service.store.log.status().logId,
  };
  columns.readFrom(reader);
  try {
    const checkpoint = await Checkpoint.open(reader);
    if (!checkpoint) return none('there is none');
    const { leaves, leafHash } = checkpoint.position;
    try {
      if (hashes.hashAt(leaves - 1) !== leafHash) return none('the log does not hold what it stands for');
      await checkpoint.restore(saved.projector);
      return `saved at leaf ${leaves}`;
    } finally {
      await checkpoint.closeState();
      await checkpoint.closeBlobs();
    }
  } catch (error) {
    return none(error instanceof Error ? error.message : String(error));
  }
}
