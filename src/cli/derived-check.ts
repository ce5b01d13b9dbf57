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
  readonly #replayedHashes: Uint8Array[] = [];

  note = (_entries: number, leafHash: Uint8Array): void => {
    this.#replayedHashes.push(leafHash.slice());
  };

  hashAt(leafIndex: number): string | undefined {
    const replayedHash = this.#replayedHashes[leafIndex];
    return replayedHash && hexOf(replayedHash);
  }
}

export async function compareDerived(
  service: Service,
  replayedLeafHashes: LeafHashes,
  onLeaf: (leaf: number) => void,
): Promise<DerivedState[]> {
  const { settings } = service;
  const { log, projections } = service.store;
  const rebuiltDigests = projections.digests();
  const savedColumns = new ColumnStore({
    budgetBytes: settings.SERVICE_MEMORY_BUDGET_MB * 2 ** 20 || Math.floor(totalmem() / 4),
    hydrateMax: settings.SERVICE_HYDRATE_MAX_PARALLEL,
    compactMax: 1,
    say: () => undefined,
    defer: (task) => void setImmediate(task),
  });
  const savedProjections = new Projections({
    newKey: () => service.ids.next(),
    tokensMax: settings.SERVICE_TOKEN_REGISTRY_MAX,
    textKeys: service.store.keyring.subjects,
    more: [new AuditProjection()],
    rows: { store: savedColumns },
  });
  const comparisonBasis = await restoreSavedProjections(service, savedProjections, savedColumns, replayedLeafHashes);
  await savedProjections.projector.catchUp(log, onLeaf);
  for await (const logEntry of log.read(savedProjections.projector.watermark)) {
    savedProjections.apply(logEntry);
    onLeaf(logEntry.leaf);
  }
  const savedDigests = savedProjections.digests();
  await savedColumns.close();
  return savedProjections.projector.names.map((projection) => ({
    projection,
    rebuilt: rebuiltDigests[projection]!,
    compared: savedDigests[projection]!,
    basis: comparisonBasis,
    same: rebuiltDigests[projection] === savedDigests[projection],
  }));
}

/** The state that a process left, where the log still holds what it stands for; says which, or why there is none. */
async function restoreSavedProjections(
  service: Service,
  savedProjections: Projections,
  savedColumns: ColumnStore,
  replayedLeafHashes: LeafHashes,
): Promise<string> {
  const withoutSavedState = (absentReason: string): string => `replayed twice, no saved state: ${absentReason}`;
  const { settings } = service;
  const derivedReader = {
    disk: nodeDisk,
    keyring: service.store.keyring,
    directory: derivedDirectory(settings),
    logId: service.store.log.status().logId,
  };
  savedColumns.readFrom(derivedReader);
  try {
    const savedCheckpoint = await Checkpoint.open(derivedReader);
    if (!savedCheckpoint) return withoutSavedState('there is none');
    const { leaves, leafHash } = savedCheckpoint.position;
    try {
      if (replayedLeafHashes.hashAt(leaves - 1) !== leafHash)
        return withoutSavedState('the log does not hold what it stands for');
      await savedCheckpoint.restore(savedProjections.projector);
      return `saved at leaf ${leaves}`;
    } finally {
      await savedCheckpoint.closeState();
      await savedCheckpoint.closeBlobs();
    }
  } catch (restoreError) {
    return withoutSavedState(restoreError instanceof Error ? restoreError.message : String(restoreError));
  }
}
