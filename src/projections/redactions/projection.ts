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

interface Pending {
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
const atOnce = 100_000;

export class Redactions implements Projection {
  readonly name = 'redactions';
  readonly formatVersion = 1;
  /** In order of leaves. */
  #pending: Pending[] = [];
  readonly #embeddings: Pick<Embeddings, 'entriesOf'>;

  constructor(embeddings: Pick<Embeddings, 'entriesOf'>) {
    this.#embeddings = embeddings;
  }

  /** The first of what waits; null while nothing does. */
  next(): Redaction | null {
    const some: number[] = [];
    let through = -1;
    for (const { leaf, positions } of this.#pending) {
      if (some.length >= atOnce) break;
      for (const position of positions) some.push(position);
      through = leaf;
    }
    return some.length === 0 ? null : { positions: Float64Array.from(some).sort(), through };
  }

  apply({ leaf, body }: CommittedEntry): void {
    if (body.kind === 'removal' && body.positions.length > 0) {
      const entries = this.#embeddings.entriesOf(body.positions);
      const positions = entries.length === 0 ? body.positions : Float64Array.from([...body.positions, ...entries]).sort();
      this.#pending.push({ leaf, positions });
    }
    if (body.kind === 'redaction') this.#pending = this.#pending.filter((each) => each.leaf > body.through);
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    target.section('pending', serialize(this.#pending));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('pending');
    assert(bytes, 'a checkpoint of redactions has what is pending');
    this.#pending = deserialize(bytes) as Pending[];
  }

  reset(): void {
    this.#pending = [];
  }

  digest(): string {
    const hash = new CanonicalHash();
    // Leaves are storage locations; the state is the set of removed rows.
    for (const { positions } of this.#pending) {
      hash.number(positions.length);
      for (const position of positions) hash.number(position);
    }
    return hash.hex();
  }
}
