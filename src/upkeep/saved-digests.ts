/**
 * Digests of all projections as a store has saved them, read from its derived files alone: they describe the store's state, not a
 * replay of its log, so a restore with the same digests has rebuilt that state.
 */
import type { KeyObject } from 'node:crypto';
import { ServiceError } from '../errors.ts';
import { DerivedFileError, type DerivedReader } from '../log/blobs/derived-file.ts';
import type { Disk } from '../log/disk/disk.ts';
import { AuditProjection } from '../projections/audit/projection.ts';
import { Checkpoint, type CheckpointPosition } from '../projections/checkpoint.ts';
import { Projections } from '../projections/projections.ts';
import { ColumnStore } from '../projections/rows/store/column-store.ts';

/** Nothing but values that can be handed to a thread. */
export interface SavedStateRequest {
  /** Where the derived files lie. */
  readonly directory: string;
  /** The checkpoint that must be there. */
  readonly checkpointPosition: CheckpointPosition;
  /** By number. */
  readonly dataKeys: readonly (readonly [number, KeyObject])[];
  readonly tokensMax: number;
}

/** Columns in memory at a time: a digest goes through them once. */
const DIGEST_COLUMN_BYTES = 64 << 20;

/** Rejects with a DerivedFileError for files that are not what they must be, and when another checkpoint has taken the place. */
export async function digestsOfSaved(
  savedStateRequest: SavedStateRequest,
  disk: Disk,
): Promise<Readonly<Record<string, string>>> {
  const { directory, checkpointPosition, dataKeys, tokensMax } = savedStateRequest;
  const openedDataKeys = new Map(dataKeys);
  const openDataKey = (id: number): KeyObject => {
    const dataKey = openedDataKeys.get(id);
    if (!dataKey) throw new ServiceError('REL_STORAGE', `data key ${id} is not there`);
    return dataKey;
  };
  const savedStateReader: DerivedReader = { disk, keyring: { open: openDataKey }, directory, logId: checkpointPosition.logId };
  const digestColumns = new ColumnStore({
    budgetBytes: DIGEST_COLUMN_BYTES,
    hydrateMax: 1,
    compactMax: 1,
    say: () => undefined,
    defer: (task) => void setImmediate(task),
  });
  digestColumns.readFrom(savedStateReader);
  const newKey = (): string => {
    throw new ServiceError('REL_INTERNAL', 'a saved state takes no rows');
  };
  const savedProjections = new Projections({ newKey, tokensMax, more: [new AuditProjection()], rows: { store: digestColumns } });
  try {
    await restoreSavedState(savedStateReader, checkpointPosition, savedProjections);
    return savedProjections.digests();
  } finally {
    await digestColumns.close();
  }
}

async function restoreSavedState(
  savedStateReader: DerivedReader,
  wantedPosition: CheckpointPosition,
  savedProjections: Projections,
): Promise<void> {
  const checkpoint = await Checkpoint.open(savedStateReader);
  try {
    const savedPosition = checkpoint?.position;
    if (savedPosition?.leaves !== wantedPosition.leaves || savedPosition.leafHash !== wantedPosition.leafHash)
      throw new ServiceError('REL_UNAVAILABLE', 'the saved state was replaced before it was read');
    await checkpoint!.restore(savedProjections.projector);
    const { behind } = savedProjections.projector;
    if (behind.length > 0) throw new DerivedFileError('checkpoint', `it does not hold ${behind.join(', ')} as this version does`);
  } finally {
    await checkpoint?.closeState();
    await checkpoint?.closeBlobs();
  }
}
