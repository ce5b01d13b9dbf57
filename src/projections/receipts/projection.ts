/**
 * Batches by idempotency key: for each key its batches, where the receipt of each lies in the log, and whether the request was
 * completed. Outcomes stay in the log, so a receipt costs memory its two digests.
 *
 * A key is kept for 24 hours after its last batch, counted in the times of receipts, and the oldest ones go first when
 * there are very many: what is forgotten follows from the log alone.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import type { CommittedEntry } from '../../log/entries/entry.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';
import { isLast } from './receipt-outcome.ts';

export const keptNanoseconds = 24n * 3_600n * 1_000_000_000n;
/** Batches of all keys. */
const batchesMax = 1_000_000;

export interface ReceiptedBatch {
  /** SHA-256, lower-case hex, of what the batch asked for. */
  readonly request: string;
  readonly leaf: number;
}

export interface Receipted {
  /** In order from batch 0. */
  readonly batches: readonly ReceiptedBatch[];
  /** The last batch of the request is among them. */
  readonly complete: boolean;
}

interface Known extends Receipted {
  readonly batches: ReceiptedBatch[];
  complete: boolean;
  /** Time of the newest batch. */
  time: bigint;
}

export class Receipts implements Projection {
  readonly name = 'receipts';
  readonly formatVersion = 1;
  /** The key with the oldest newest batch first. */
  readonly #keys = new Map<string, Known>();
  #batches = 0;

  /** Undefined when nothing was done under the key in the 24 hours before `instant`. */
  find(key: string, instant: bigint): Receipted | undefined {
    const known = this.#keys.get(key);
    return known && instant - known.time <= keptNanoseconds ? known : undefined;
  }

  apply(entry: CommittedEntry): void {
    const { body, time, leaf } = entry;
    if (body.kind !== 'receipt') return;
    const { key, batch, request, outcome } = body;
    const before = this.#keys.get(key);
    if (before !== undefined) {
      this.#keys.delete(key);
      if (batch === 0) this.#batches -= before.batches.length;
    }
    this.#forget(time);
    // A key starts again only once what was done under it has expired, which deciding has settled.
    const known: Known = batch === 0 || before === undefined ? { batches: [], complete: false, time } : before;
    assert(known.batches.length === batch && !known.complete, 'batches of a request are receipted in order');
    known.batches.push({ request, leaf });
    known.complete = isLast(outcome);
    known.time = time;
    this.#keys.set(key, known);
    this.#batches++;
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    target.section('keys', serialize([...this.#keys]));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('keys');
    assert(bytes, 'a checkpoint of receipts has keys');
    this.reset();
    for (const [key, known] of deserialize(bytes) as [string, Known][]) {
      this.#keys.set(key, known);
      this.#batches += known.batches.length;
    }
  }

  reset(): void {
    this.#keys.clear();
    this.#batches = 0;
  }

  digest(): string {
    const hash = new CanonicalHash();
    for (const [key, { batches, complete, time }] of this.#keys) {
      // Leaves are storage locations; the state is the content of the receipts.
      hash.value([key, batches.map(({ request }) => request), complete, time]);
    }
    return hash.hex();
  }

  #forget(time: bigint): void {
    for (const [key, known] of this.#keys) {
      if (time - known.time <= keptNanoseconds && this.#batches < batchesMax) return;
      this.#keys.delete(key);
      this.#batches -= known.batches.length;
    }
  }
}
