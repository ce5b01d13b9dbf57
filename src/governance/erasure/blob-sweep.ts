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
const cellsPerTurn = 4_096;

export class BlobSweep {
  readonly #parts: BlobSweepDependencies;
  #running: Promise<void> | null = null;

  constructor(parts: BlobSweepDependencies) {
    this.#parts = parts;
  }

  /** Bytes of bodies on the disk. */
  get storedBytes(): number {
    return this.#parts.blobs.bytes;
  }

  /** One round at a time: a later caller waits for a round that begins after its call. */
  async round(): Promise<void> {
    while (this.#running !== null) await this.#running;
    this.#running = this.#sweep().finally(() => (this.#running = null));
    await this.#running;
  }

  async #sweep(): Promise<void> {
    const { blobs } = this.#parts;
    const touched = blobs.watch();
    try {
      const stored = await blobs.list();
      if (stored.length === 0) return;
      const inUse = await this.#inUse();
      for (const address of stored) if (!inUse.has(address) && !touched.has(address)) await blobs.remove(address);
    } finally {
      blobs.unwatch();
    }
  }

  async #inUse(): Promise<Set<string>> {
    const { blobs, rows, yieldTurn } = this.#parts;
    const addresses = new Set<string>();
    for (const [tenant, paths] of pathsByTenant(rows.scopes)) {
      for (const { vector, length, stands } of rows.texts(paths, named)) {
        for (let row = 0; row < length; row++) {
          const sha256 = stands(row) ? referredTo(textAt(vector, row)) : null;
          if (sha256 !== null) {
            const scope = tenant ?? '';
            const address = blobs.address({ scope, sha256 });
            addresses.add(address);
            blobs.claim(address, scope);
          }
          if (row % cellsPerTurn === cellsPerTurn - 1) await yieldTurn();
        }
        await yieldTurn();
      }
    }
    return addresses;
  }
}

function pathsByTenant(scopes: PathCodes): Map<string | null, Set<number>> {
  const tenants = new Map<string | null, Set<number>>();
  for (let code = 0; code < scopes.size; code++) {
    const tenant = tenantOf(scopes.path(code));
    const paths = tenants.get(tenant) ?? new Set();
    tenants.set(tenant, paths.add(code));
  }
  return tenants;
}

/** References are short: a longer cell is a body itself, and skipped. */
const referenceBytesMax = 256;

export function textAt(vector: TextVector, row: number): string {
  if (vector.nulls?.[row] === 1) return '';
  if (vector.kind === 'dict') return vector.dictionary.text(vector.values[row]!);
  const from = vector.offsets[row]!;
  const to = vector.offsets[row + 1]!;
  return to - from > referenceBytesMax ? '' : Buffer.from(vector.heap.subarray(from, to)).toString('latin1');
}
