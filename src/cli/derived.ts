/**
 * Derived files held against the log: the states that a closed process left, brought up to date by the rest of the
 * log, must have the digests of states rebuilt from its first entry. Where a process left none (it was killed), the
 * log is replayed a second time through its reader, and the two rebuilds are compared.
 */
import { AuditProjection } from '../projections/audit/projection.ts';
import { restoreCheckpoint } from '../projections/checkpoint.ts';
import { Projections } from '../projections/projections.ts';
import { nodeDisk } from '../log/node-disk.ts';
import { derivedDirectory, hex, type Service } from '../service.ts';

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

  at(leaf: number): string | undefined {
    const hash = this.#hashes[leaf];
    return hash && hex(hash);
  }
}

export async function compareDerived(
  service: Service,
  hashes: LeafHashes,
  onLeaf: (leaf: number) => void,
): Promise<DerivedState[]> {
  const { log, projections, settings } = service;
  const rebuilt = projections.digests();
  const saved = new Projections({
    newKey: () => service.ids.next(),
    tokensMax: settings.SERVICE_TOKEN_REGISTRY_MAX,
    more: [new AuditProjection()],
  });
  const identity = { logId: log.status().logId, leafHash: (leaf: number) => hashes.at(leaf) };
  const basis: Record<string, string> = {};
  for (const name of saved.projector.names) {
    const place = await restoreCheckpoint(nodeDisk, derivedDirectory(settings), saved.projector, name, identity);
    basis[name] = typeof place === 'string' ? `replayed twice, no saved state: ${place}` : `saved at leaf ${place.leaves}`;
  }
  for await (const entry of log.read(saved.projector.watermark)) {
    saved.apply(entry);
    onLeaf(entry.leaf);
  }
  const compared = saved.digests();
  return saved.projector.names.map((projection) => ({
    projection,
    rebuilt: rebuilt[projection]!,
    compared: compared[projection]!,
    basis: basis[projection]!,
    same: rebuilt[projection] === compared[projection],
  }));
}
