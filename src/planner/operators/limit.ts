/**
 * The first rows. Having them, it goes on counting matches for `estimatedTotalHits`, without delivering any: up to
 * `hitsMax` matches, and no further than `countingRowsMax` scanned rows, so that LIMIT stays cheap on a large type.
 */
import { type Batch, emptyBatch, type Execution, type Operator } from './operator.ts';

/** Source: specification, "Result envelopes": accurate up to 100,000. */
export const hitsMax = 100_000;
/** Rows scanned for the estimate alone; about a millisecond. */
const countingRowsMax = 131_072;

export class LimitOperator implements Operator {
  readonly #input: Operator;
  readonly #counting: boolean;
  readonly #execution: Execution;
  #delivered = 0;
  #scannedAtEnd = -1;

  /** `counting` is false where the input counts its matches itself: a sort with a limit drops some of them. */
  constructor(input: Operator, counting: boolean, execution: Execution) {
    this.#input = input;
    this.#counting = counting;
    this.#execution = execution;
  }

  next(): Batch | null {
    const { limit, counters } = this.#execution;
    if (this.#delivered >= limit && !this.#goOnCounting()) return null;
    const batch = this.#input.next();
    if (batch === null) return null;
    if (this.#counting) counters.hits += batch.count;
    const count = Math.min(batch.count, limit - this.#delivered);
    if (count === 0) return emptyBatch;
    this.#delivered += count;
    return count === batch.count ? batch : { ...batch, count };
  }

  close(): void {
    this.#input.close();
  }

  #goOnCounting(): boolean {
    const { counters, scannedRowsMax } = this.#execution;
    if (this.#scannedAtEnd < 0) this.#scannedAtEnd = counters.scanned;
    const countingMax = Math.min(countingRowsMax, scannedRowsMax - this.#scannedAtEnd - 65_536);
    return this.#counting && counters.hits < hitsMax && counters.scanned - this.#scannedAtEnd <= countingMax;
  }
}
