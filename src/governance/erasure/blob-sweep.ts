/**
 * Removes bodies that no row names any more from the disk: their rows were removed for good, were erased, or never came to be. In
 * slices, with turns for other work in between. Invariant: a body that an invocation is about to name stays.
 */
import { referredTo } from '../writing/large-bodies.ts';
import type { Blobs } from '../../log/blobs/blobs.ts';
import { tenantOf } from '../../log/values/value.ts';
import type { PathCodes } from '../../projections/access-paths.ts';
import type { StoredTexts, TextVector } from '../../projections/rows/erasure/stored-texts.ts';

export interface BlobSweepDependencies {
  readonly blobs: Blobs;
  readonly rows: {
    readonly scopes: PathCodes;
    texts(paths: ReadonlySet<number>, only: { readonly type: string; readonly column: string }): Iterable<StoredTexts>;
  };
  readonly yieldTurn: () => Promise<void>;
}

/** Cells that hold what refers to a body. */
export const named = { type: 'ObjectStoreObject', column: 'body' } as const;
const blobCellsPerTurn = 4_096;

export class BlobSweep {
  readonly #blobSweepParts: BlobSweepDependencies;
  #runningSweep: Promise<void> | null = null;

  constructor(parts: BlobSweepDependencies) {
    this.#blobSweepParts = parts;
  }

  /** Bytes of bodies on the disk. */
  get storedBytes(): number {
    return this.#blobSweepParts.blobs.bytes;
  }

  /** One round at a time: a later caller waits for a round that begins after its call. */
  async round(): Promise<void> {
    while (this.#runningSweep !== null) await this.#runningSweep;
    this.#runningSweep = this.#sweepBlobs().finally(() => (this.#runningSweep = null));
    await this.#runningSweep;
  }

  async #sweepBlobs(): Promise<void> {
    const { blobs } = this.#blobSweepParts;
    const touchedBlobs = blobs.watch();
    try {
      const storedBlobs = await blobs.list();
      if (storedBlobs.length === 0) return;
      const blobsInUse = await this.#findBlobsInUse();
      for (const blobAddress of storedBlobs)
        if (!blobsInUse.has(blobAddress) && !touchedBlobs.has(blobAddress)) await blobs.remove(blobAddress);
    } finally {
      blobs.unwatch();
    }
  }

  async #findBlobsInUse(): Promise<Set<string>> {
    const { blobs, rows, yieldTurn } = this.#blobSweepParts;
    const blobAddresses = new Set<string>();
    for (const [tenant, tenantPathCodes] of pathsByTenant(rows.scopes)) {
      for (const { vector, length, stands } of rows.texts(tenantPathCodes, named)) {
        for (let row = 0; row < length; row++) {
          const bodySha256 = stands(row) ? referredTo(textAt(vector, row)) : null;
          if (bodySha256 !== null) {
            const blobScope = tenant ?? '';
            const blobAddress = blobs.address({ scope: blobScope, sha256: bodySha256 });
            blobAddresses.add(blobAddress);
            blobs.claim(blobAddress, blobScope);
          }
          if (row % blobCellsPerTurn === blobCellsPerTurn - 1) await yieldTurn();
        }
        await yieldTurn();
      }
    }
    return blobAddresses;
  }
}

function pathsByTenant(scopes: PathCodes): Map<string | null, Set<number>> {
  const pathCodesByTenant = new Map<string | null, Set<number>>();
  for (let pathCode = 0; pathCode < scopes.size; pathCode++) {
    const tenant = tenantOf(scopes.path(pathCode));
    const paths = pathCodesByTenant.get(tenant) ?? new Set();
    pathCodesByTenant.set(tenant, paths.add(pathCode));
  }
  return pathCodesByTenant;
}

/** References are short: a longer cell is a body itself, and skipped. */
const referenceBytesMax = 256;

export function textAt(vector: TextVector, row: number): string {
  if (vector.nulls?.[row] === 1) return '';
  if (vector.kind === 'dict') return vector.dictionary.text(vector.values[row]!);
  const cellStart = vector.offsets[row]!;
  const cellEnd = vector.offsets[row + 1]!;
  return cellEnd - cellStart > referenceBytesMax ? '' : Buffer.from(vector.heap.subarray(cellStart, cellEnd)).toString('latin1');
}
