/**
 * WITH RECURSIVE: the rows of the base, then the step over the rows that the round before added, until a round adds nothing. Rows
 * leave as they are found. `union` drops rows that were there before.
 */
import { ServiceError } from '../../errors.ts';
import type { RecursiveNode } from '../logical-plan.ts';
import { CollectedRows } from './collected-rows.ts';
import { DistinctOperator } from './distinct.ts';
import { type Batch, emptyBatch, type Execution, type Operator, type WorkingRows } from './operator.ts';

const recursionRoundsMax = 10_000;

export interface RecursiveSetup {
  readonly base: Operator;
  /** The step over these rows. */
  readonly step: (working: WorkingRows) => Operator;
  readonly node: RecursiveNode;
  readonly execution: Execution;
}

export class RecursiveOperator implements Operator {
  readonly #setup: RecursiveSetup;
  readonly #recursiveRows: Operator;
  #currentRound: Operator;
  #addedRows: CollectedRows;
  #roundCount = 0;
  #heldBytes = 0;
  #earlierRoundBytes = 0;

  constructor(setup: RecursiveSetup) {
    const { node, execution } = setup;
    this.#setup = setup;
    this.#currentRound = setup.base;
    // One DISTINCT over all rounds: it remembers rows when its input changes.
    const baseAndRounds: Operator = { next: () => this.#currentRound.next(), close: () => this.#currentRound.close() };
    this.#recursiveRows =
      node.op === 'union'
        ? new DistinctOperator(baseAndRounds, { kind: 'distinct', input: node, columns: node.columns }, execution)
        : baseAndRounds;
    this.#addedRows = this.#newRoundRows();
  }

  next(): Batch | null {
    const batch = this.#recursiveRows.next();
    if (batch === null) return this.#nextRound();
    if (batch.count === 0) return emptyBatch;
    this.#addedRows.append(batch);
    this.#heldBytes = this.#setup.execution.memory.change(this.#heldBytes, this.#earlierRoundBytes + this.#addedRows.bytes);
    return batch;
  }

  close(): void {
    this.#recursiveRows.close();
  }

  #nextRound(): Batch | null {
    this.#currentRound.close();
    if (this.#addedRows.length === 0) {
      this.#currentRound = endedOperator;
      return null;
    }
    if (++this.#roundCount > recursionRoundsMax) {
      throw new ServiceError('REL_SCAN_CAP', `the recursion goes on for more than ${recursionRoundsMax} rounds`);
    }
    const workingRows = this.#addedRows.pieces();
    this.#earlierRoundBytes = this.#addedRows.bytes;
    this.#addedRows = this.#newRoundRows();
    this.#currentRound = this.#setup.step(workingRows);
    return emptyBatch;
  }

  #newRoundRows(): CollectedRows {
    return new CollectedRows(this.#setup.node.columns.map(({ type }) => type));
  }
}

const endedOperator: Operator = { next: () => null, close: () => undefined };
