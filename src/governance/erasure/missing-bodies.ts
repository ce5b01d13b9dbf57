/**
 * Finds bodies that rows of a log name and that are missing: an fsck must find them, for no other check does before a client
 * asks.
 */
import { type BlobName, listBlobs } from '../../log/blobs/blobs.ts';
import type { Disk } from '../../log/disk/disk.ts';
import { type CommittedEntry, splitParts, type WholeEntry } from '../../log/entries/entry.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import type { Finding } from '../../log/proofs/verify-findings.ts';
import { bodyNamed } from '../writing/large-bodies.ts';
import { named } from './blob-sweep.ts';

export interface MissingBodiesDependencies {
  /** As `LargeBodiesDependencies` has it. */
  readonly key: Uint8Array;
  readonly address: (name: BlobName) => string;
}

export class MissingBodies {
  readonly #missingBodyParts: MissingBodiesDependencies;
  /** By position of the row, what it names and the leaf it stands in. */
  readonly #namedBodies = new Map<number, { readonly address: string; readonly leaf: number }>();

  constructor(parts: MissingBodiesDependencies) {
    this.#missingBodyParts = parts;
  }

  /** Takes entries in their order: removals come after the rows that they remove. */
  note(entry: CommittedEntry): void {
    for (const part of splitParts(entry)) this.#noteNamedBodies(part);
  }

  #noteNamedBodies({ body, context, leaf, position }: WholeEntry): void {
    if (body.kind === 'removal') for (const removedPosition of body.positions) this.#namedBodies.delete(removedPosition);
    if (body.kind === 'erasure')
      for (const { positions } of body.versions) for (const each of positions) this.#namedBodies.delete(each);
    if (body.kind !== 'rows' || body.type !== named.type) return;
    const bodyCells = body.cells.columns.find(({ name }) => name === named.column);
    if (bodyCells === undefined) return;
    const { key: bodyKeySecret, address } = this.#missingBodyParts;
    for (let row = 0; row < body.ops.length; row++) {
      const bodyCell = cellAt(bodyCells.vector, 'string', row);
      const objectKey = cellAt(body.keys.columns[0]!.vector, 'string', row);
      if (typeof bodyCell !== 'string' || typeof objectKey !== 'string') continue;
      const namedBody = bodyNamed(bodyKeySecret, bodyCell, { type: body.type, key: objectKey, path: context.path });
      if (namedBody !== null) this.#namedBodies.set(position + row, { address: address(namedBody), leaf });
    }
  }

  /** One finding a body, at the first row that names it. */
  async findings(disk: Disk, directory: string): Promise<Finding[]> {
    if (this.#namedBodies.size === 0) return [];
    const storedBlobs = new Set(await listBlobs(disk, directory));
    const missingBodies: Finding[] = [];
    for (const { address, leaf } of this.#namedBodies.values()) {
      if (storedBlobs.has(address)) continue;
      storedBlobs.add(address);
      missingBodies.push({ place: `blobs/${address.slice(0, 2)}/${address}`, leaf, what: 'is missing, and a row names it' });
    }
    return missingBodies;
  }
}
