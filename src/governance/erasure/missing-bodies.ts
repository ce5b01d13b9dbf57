/**
 * Finds bodies that rows of a log name and that are missing: an fsck must find them, for no other check does before a client
 * asks.
 */
import { type BlobName, listBlobs } from '../../log/blobs/blobs.ts';
import type { Disk } from '../../log/disk/disk.ts';
import { type CommittedEntry, splitParts, type WholeEntry } from '../../log/entries/entry.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import type { Finding } from '../../log/verify/verify-findings.ts';
import { bodyNamed } from '../writing/large-bodies.ts';
import { named } from './blob-sweep.ts';

export interface MissingBodiesDependencies {
  /** As `LargeBodiesDependencies` has it. */
  readonly key: Uint8Array;
  readonly address: (name: BlobName) => string;
}

export class MissingBodies {
  readonly #parts: MissingBodiesDependencies;
  /** By position of the row, what it names and the leaf it stands in. */
  readonly #named = new Map<number, { readonly address: string; readonly leaf: number }>();

  constructor(parts: MissingBodiesDependencies) {
    this.#parts = parts;
  }

  /** Takes entries in their order: removals come after the rows that they remove. */
  note(entry: CommittedEntry): void {
    for (const part of splitParts(entry)) this.#note(part);
  }

  #note({ body, context, leaf, position }: WholeEntry): void {
    if (body.kind === 'removal') for (const each of body.positions) this.#named.delete(each);
    if (body.kind === 'erasure')
      for (const { positions } of body.versions) for (const each of positions) this.#named.delete(each);
    if (body.kind !== 'rows' || body.type !== named.type) return;
    const cells = body.cells.columns.find(({ name }) => name === named.column);
    if (cells === undefined) return;
    const { key: secret, address } = this.#parts;
    for (let row = 0; row < body.ops.length; row++) {
      const cell = cellAt(cells.vector, 'string', row);
      const key = cellAt(body.keys.columns[0]!.vector, 'string', row);
      if (typeof cell !== 'string' || typeof key !== 'string') continue;
      const namedBody = bodyNamed(secret, cell, { type: body.type, key, path: context.path });
      if (namedBody !== null) this.#named.set(position + row, { address: address(namedBody), leaf });
    }
  }

  /** One finding a body, at the first row that names it. */
  async findings(disk: Disk, directory: string): Promise<Finding[]> {
    if (this.#named.size === 0) return [];
    const known = new Set(await listBlobs(disk, directory));
    const missing: Finding[] = [];
    for (const { address, leaf } of this.#named.values()) {
      if (known.has(address)) continue;
      known.add(address);
      missing.push({ place: `blobs/${address.slice(0, 2)}/${address}`, leaf, what: 'is missing, and a row names it' });
    }
    return missing;
  }
}
