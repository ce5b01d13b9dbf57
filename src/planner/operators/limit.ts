/**
 * The first rows. Having them, it goes on counting matches for `estimatedTotalHits` without delivering any: up to
 * `hitsMax` matches, and no further than `countingRowsMax` scanned rows, so that LIMIT stays cheap on a large type.
 *
 * Where rows of a type are counted, it stops at a row and not at the end of a batch: which rows make up a batch depends on
 * those among them that the caller may not see.
 */
import { assert } from '../../errors.ts';
import type { LimitNode, PlanNode } from '../logical-plan.ts';
import { type Batch, emptyBatch, type Execution, firstRows, type Operator } from './operator.ts';

/** Source: specification, "Result envelopes": accurate up to 100,000. */
export const hitsMax = 100_000;
/** Rows scanned for the estimate alone. */
const countingRowsMax = 131_072;
/** Versions looked at to find this many rows. */
const versionsPerRow = 16;
/** Calls made for the estimate alone: a join may try many pairs for each row that it scans. */
const countingCallsMax = 1_024;

export interface LimitSetup {
  readonly input: Operator;
  readonly node: LimitNode;
  readonly execution: Execution;
  /** Operators that count the rows after this system_from, up to a number, where the node has a plan for that. */
  readonly countAfter: (systemFrom: bigint, rows: number) => Operator;
}

export class LimitOperator implements Operator {
  readonly #setup: LimitSetup;
  /** False where the input counts its matches itself (a sort with a limit drops some of them), and inside a statement. */
  readonly #counting: boolean;
  readonly #limit: number;
  /** At least one more than the page holds, to know whether there is another page. */
  readonly #hitsMax: number;
  readonly #systemFrom: number;
  #input: Operator;
  #delivered = 0;
  /** A row came of what counts its matches itself. */
  #hasCounted = false;
  #scannedAtEnd = -1;
  #countingCalls = 0;
  #lastSystemFrom: bigint | null = null;

  constructor(setup: LimitSetup) {
    this.#setup = setup;
    this.#input = setup.input;
    this.#limit = firstRows(setup.node.limit, setup.node.offset, setup.execution);
    this.#hitsMax = Math.max(hitsMax, this.#limit + 1);
    this.#counting = setup.node.counted && !countsItself(setup.node.input);
    this.#systemFrom = setup.node.counting ? setup.node.columns.findIndex(({ name }) => name === 'system_from') : -1;
  }

  next(): Batch | null {
    const { counters } = this.#setup.execution;
    const limit = this.#limit;
    if (this.#delivered >= limit && !this.#goOnCounting() && !this.#letsInputCount) return null;
    if (this.#lastSystemFrom !== null) this.#startCounting(this.#lastSystemFrom);
    const batch = this.#input.next();
    if (batch === null) return null;
    const count = Math.min(batch.count, limit - this.#delivered);
    if (count === 0) {
      this.#hasCounted = batch.count > 0;
      if (this.#counting) this.#count(batch.count);
      return emptyBatch;
    }
    this.#delivered += count;
    if (this.#delivered === limit && this.#systemFrom >= 0) {
      counters.hits += count;
      this.#lastSystemFrom = this.#systemFromOf(batch, count - 1);
    } else if (this.#counting) this.#count(batch.count);
    return count === batch.count ? batch : { ...batch, count };
  }

  close(): void {
    this.#input.close();
  }

  /** A LIMIT of 0 asks for the first row all the same, where its input counts the matches on the way to it. */
  get #letsInputCount(): boolean {
    return this.#limit === 0 && this.#setup.node.counted && !this.#counting && !this.#hasCounted;
  }

  #count(rows: number): void {
    const { counters } = this.#setup.execution;
    counters.hits = Math.max(counters.hits, Math.min(counters.hits + rows, this.#hitsMax));
  }

  #goOnCounting(): boolean {
    const { counters } = this.#setup.execution;
    if (this.#scannedAtEnd < 0) this.#scannedAtEnd = counters.scanned;
    if (++this.#countingCalls > countingCallsMax) return false;
    const scannedMax = this.#systemFrom < 0 ? countingRowsMax : countingRowsMax * versionsPerRow;
    const scanned = counters.scanned - this.#scannedAtEnd;
    return this.#counting && counters.hits < this.#hitsMax && scanned <= Math.min(scannedMax, this.#scannable);
  }

  /** Rows that may still be scanned below the cap. Counting must never cause a refusal. */
  get #scannable(): number {
    return this.#setup.execution.limits.scannedRowsMax - this.#scannedAtEnd - 65_536;
  }

  /** Reads the rows after the last one delivered again, with fewer columns; its own batch has been taken by now. */
  #startCounting(after: bigint): void {
    this.#lastSystemFrom = null;
    this.#input.close();
    this.#input = this.#setup.countAfter(after, Math.max(0, Math.min(countingRowsMax, this.#scannable)));
  }

  #systemFromOf(batch: Batch, k: number): bigint {
    const vector = batch.columns[this.#systemFrom]!;
    assert(vector.kind === 'i64', 'rows of a type carry their system_from');
    return vector.values[batch.selection ? batch.selection[k]! : batch.first + k]!;
  }
}

/** A sort, and a function that ranks rows, drops some of its matches. */
function countsItself(input: PlanNode): boolean {
  return input.kind === 'sort' || (input.kind === 'function' && (input.input !== null || input.graph !== undefined));
}
