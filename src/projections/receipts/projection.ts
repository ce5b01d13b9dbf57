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
const receiptedBatchesMax = 1_000_000;

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

interface KnownRequest extends Receipted {
  readonly batches: ReceiptedBatch[];
  complete: boolean;
  /** Time of the newest batch. */
  time: bigint;
}

export class Receipts implements Projection {
  readonly name = 'receipts';
  readonly formatVersion = 1;
  /** The key with the oldest newest batch first. */
  readonly #requestsByKey = new Map<string, KnownRequest>();
  #receiptedBatchCount = 0;

  /** Undefined when nothing was done under the key in the 24 hours before `instant`. */
  find(idempotencyKey: string, instant: bigint): Receipted | undefined {
    const knownRequest = this.#requestsByKey.get(idempotencyKey);
    return knownRequest && instant - knownRequest.time <= keptNanoseconds ? knownRequest : undefined;
  }

  apply(receiptEntry: CommittedEntry): void {
    const { body, time, leaf } = receiptEntry;
    if (body.kind !== 'receipt') return;
    const { key: idempotencyKey, batch, request, outcome } = body;
    const requestBefore = this.#requestsByKey.get(idempotencyKey);
    if (requestBefore !== undefined) {
      this.#requestsByKey.delete(idempotencyKey);
      if (batch === 0) this.#receiptedBatchCount -= requestBefore.batches.length;
    }
    this.#forgetOldReceipts(time);
    // A key starts again only once what was done under it has expired, which deciding has settled.
    const knownRequest: KnownRequest =
      batch === 0 || requestBefore === undefined ? { batches: [], complete: false, time } : requestBefore;
    assert(knownRequest.batches.length === batch && !knownRequest.complete, 'batches of a request are receipted in order');
    knownRequest.batches.push({ request, leaf });
    knownRequest.complete = isLast(outcome);
    knownRequest.time = time;
    this.#requestsByKey.set(idempotencyKey, knownRequest);
    this.#receiptedBatchCount++;
  }

  async checkpoint(receiptCheckpoint: CheckpointWriter): Promise<void> {
    receiptCheckpoint.section('keys', serialize([...this.#requestsByKey]));
  }

  async restore(receiptCheckpoint: CheckpointReader): Promise<void> {
    const receiptBytes = receiptCheckpoint.section('keys');
    assert(receiptBytes, 'a checkpoint of receipts has keys');
    this.reset();
    for (const [idempotencyKey, savedRequest] of deserialize(receiptBytes) as [string, KnownRequest][]) {
      this.#requestsByKey.set(idempotencyKey, savedRequest);
      this.#receiptedBatchCount += savedRequest.batches.length;
    }
  }

  reset(): void {
    this.#requestsByKey.clear();
    this.#receiptedBatchCount = 0;
  }

  digest(): string {
    const receiptsHash = new CanonicalHash();
    for (const [idempotencyKey, { batches, complete, time }] of this.#requestsByKey) {
      // Leaves are storage locations; the state is the content of the receipts.
      receiptsHash.value([idempotencyKey, batches.map(({ request }) => request), complete, time]);
    }
    return receiptsHash.hex();
  }

  #forgetOldReceipts(time: bigint): void {
    for (const [idempotencyKey, knownRequest] of this.#requestsByKey) {
      if (time - knownRequest.time <= keptNanoseconds && this.#receiptedBatchCount < receiptedBatchesMax) return;
      this.#requestsByKey.delete(idempotencyKey);
      this.#receiptedBatchCount -= knownRequest.batches.length;
    }
  }
}
