/**
 * Rows that were removed for good and whose bytes are still in the log, sealed: the work ahead of a redaction. Rows of subjects
 * are not among them: without their keys they are unreadable. Vectors of removed rows go with them, out of the entries that hold
 * them.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import type { CommittedEntry } from '../../log/entries/entry.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { Embeddings } from '../embeddings/projection.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';

interface PendingRedaction {
  /** Leaf of the entry that removed them. */
  readonly leaf: number;
  readonly positions: Float64Array;
}

/** Positions to drop, ascending, and the last leaf that removed some of them. */
export interface Redaction {
  readonly positions: Float64Array;
  readonly through: number;
}

/** Positions of one redaction, or those of one entry: a file is written anew in each that touches it. */
const redactedAtOnceMax = 100_000;

export class Redactions implements Projection {
  readonly name = 'redactions';
  readonly formatVersion = 1;
  /** In order of leaves. */
  #pendingRedactions: PendingRedaction[] = [];
  readonly #embeddings: Pick<Embeddings, 'entriesOf'>;

  constructor(embeddings: Pick<Embeddings, 'entriesOf'>) {
    this.#embeddings = embeddings;
  }

  /** The first of what waits; null while nothing does. */
  next(): Redaction | null {
    const redactedPositions: number[] = [];
    let throughLeaf = -1;
    for (const { leaf, positions } of this.#pendingRedactions) {
      if (redactedPositions.length >= redactedAtOnceMax) break;
      for (const position of positions) redactedPositions.push(position);
      throughLeaf = leaf;
    }
    return redactedPositions.length === 0
      ? null
      : { positions: Float64Array.from(redactedPositions).sort(), through: throughLeaf };
  }

  apply({ leaf, body }: CommittedEntry): void {
    if (body.kind === 'removal' && body.positions.length > 0) {
      const embeddingEntries = this.#embeddings.entriesOf(body.positions);
      const positions =
        embeddingEntries.length === 0 ? body.positions : Float64Array.from([...body.positions, ...embeddingEntries]).sort();
      this.#pendingRedactions.push({ leaf, positions });
    }
    if (body.kind === 'redaction')
      this.#pendingRedactions = this.#pendingRedactions.filter((pendingRedaction) => pendingRedaction.leaf > body.through);
  }

  async checkpoint(redactionCheckpoint: CheckpointWriter): Promise<void> {
    redactionCheckpoint.section('pending', serialize(this.#pendingRedactions));
  }

  async restore(redactionCheckpoint: CheckpointReader): Promise<void> {
    const redactionBytes = redactionCheckpoint.section('pending');
    assert(redactionBytes, 'a checkpoint of redactions has what is pending');
    this.#pendingRedactions = deserialize(redactionBytes) as PendingRedaction[];
  }

  reset(): void {
    this.#pendingRedactions = [];
  }

  digest(): string {
    const redactionsHash = new CanonicalHash();
    // Leaves are storage locations; the state is the set of removed rows.
    for (const { positions } of this.#pendingRedactions) {
      redactionsHash.number(positions.length);
      for (const redactedPosition of positions) redactionsHash.number(redactedPosition);
    }
    return redactionsHash.hex();
  }
}
