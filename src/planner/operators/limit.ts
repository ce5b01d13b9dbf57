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
  readonly #countsHits: boolean;
  readonly #rowLimit: number;
  /** At least one more than the page holds, to know whether there is another page. */
  readonly #hitsMax: number;
  readonly #systemFromColumn: number;
  #limitedInput: Operator;
  #deliveredRows = 0;
  /** A row came of what counts its matches itself. */
  #hasCounted = false;
  #scannedAtEnd = -1;
  #countingCalls = 0;
  #lastSystemFrom: bigint | null = null;

  constructor(setup: LimitSetup) {
    this.#setup = setup;
    this.#limitedInput = setup.input;
    this.#rowLimit = firstRows(setup.node.limit, setup.node.offset, setup.execution);
    this.#hitsMax = Math.max(hitsMax, this.#rowLimit + 1);
    this.#countsHits = setup.node.counted && !countsItself(setup.node.input);
    this.#systemFromColumn = setup.node.counting ? setup.node.columns.findIndex(({ name }) => name === 'system_from') : -1;
  }

  next(): Batch | null {
    const { counters } = this.#setup.execution;
    const rowLimit = this.#rowLimit;
    if (this.#deliveredRows >= rowLimit && !this.#goOnCounting() && !this.#letsInputCount) return null;
    if (this.#lastSystemFrom !== null) this.#startCounting(this.#lastSystemFrom);
    const limitedBatch = this.#limitedInput.next();
    if (limitedBatch === null) return null;
    const deliveredNow = Math.min(limitedBatch.count, rowLimit - this.#deliveredRows);
    if (deliveredNow === 0) {
      this.#hasCounted = limitedBatch.count > 0;
      if (this.#countsHits) this.#countHits(limitedBatch.count);
      return emptyBatch;
    }
    this.#deliveredRows += deliveredNow;
    if (this.#deliveredRows === rowLimit && this.#systemFromColumn >= 0) {
      counters.hits += deliveredNow;
      this.#lastSystemFrom = this.#systemFromOf(limitedBatch, deliveredNow - 1);
    } else if (this.#countsHits) this.#countHits(limitedBatch.count);
    return deliveredNow === limitedBatch.count ? limitedBatch : { ...limitedBatch, count: deliveredNow };
  }

  close(): void {
    this.#limitedInput.close();
  }

  /** A LIMIT of 0 asks for the first row all the same, where its input counts the matches on the way to it. */
  get #letsInputCount(): boolean {
    return this.#rowLimit === 0 && this.#setup.node.counted && !this.#countsHits && !this.#hasCounted;
  }

  #countHits(hitRows: number): void {
    const { counters } = this.#setup.execution;
    counters.hits = Math.max(counters.hits, Math.min(counters.hits + hitRows, this.#hitsMax));
  }

  #goOnCounting(): boolean {
    const { counters } = this.#setup.execution;
    if (this.#scannedAtEnd < 0) this.#scannedAtEnd = counters.scanned;
    if (++this.#countingCalls > countingCallsMax) return false;
    const scannedMax = this.#systemFromColumn < 0 ? countingRowsMax : countingRowsMax * versionsPerRow;
    const countedVersions = counters.scanned - this.#scannedAtEnd;
    return this.#countsHits && counters.hits < this.#hitsMax && countedVersions <= Math.min(scannedMax, this.#scannableRows);
  }

  /** Rows that may still be scanned below the cap. Counting must never cause a refusal. */
  get #scannableRows(): number {
    return this.#setup.execution.limits.scannedRowsMax - this.#scannedAtEnd - 65_536;
  }

  /** Reads the rows after the last one delivered again, with fewer columns; its own batch has been taken by now. */
  #startCounting(lastSystemFrom: bigint): void {
    this.#lastSystemFrom = null;
    this.#limitedInput.close();
    this.#limitedInput = this.#setup.countAfter(lastSystemFrom, Math.max(0, Math.min(countingRowsMax, this.#scannableRows)));
  }

  #systemFromOf(batch: Batch, k: number): bigint {
    const systemFromVector = batch.columns[this.#systemFromColumn]!;
    assert(systemFromVector.kind === 'i64', 'rows of a type carry their system_from');
    return systemFromVector.values[batch.selection ? batch.selection[k]! : batch.first + k]!;
  }
}

/** A sort, and a function that ranks rows, drops some of its matches. */
function countsItself(limitedNode: PlanNode): boolean {
  return (
    limitedNode.kind === 'sort' ||
    (limitedNode.kind === 'function' && (limitedNode.input !== null || limitedNode.graph !== undefined))
  );
}
