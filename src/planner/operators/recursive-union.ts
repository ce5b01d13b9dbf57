/**
 * WITH RECURSIVE: the rows of the base, then the step over the rows that the round before added, until a round adds nothing. Rows
 * leave as they are found. `union` drops rows that were there before.
 */
import { ServiceError } from '../../errors.ts';
import type { RecursiveNode } from '../logical-plan.ts';
import { CollectedRows } from './collected-rows.ts';
import { DistinctOperator } from './distinct.ts';
import { type Batch, emptyBatch, type Execution, type Operator, type WorkingRows } from './operator.ts';

const roundsMax = 10_000;

export interface RecursiveSetup {
  readonly base: Operator;
  /** The step over these rows. */
  readonly step: (working: WorkingRows) => Operator;
  readonly node: RecursiveNode;
  readonly execution: Execution;
}

export class RecursiveOperator implements Operator {
  readonly #setup: RecursiveSetup;
  readonly #rows: Operator;
  #current: Operator;
  #added: CollectedRows;
  #rounds = 0;
  #heldBytes = 0;
  #heldBefore = 0;

  constructor(setup: RecursiveSetup) {
    const { node, execution } = setup;
    this.#setup = setup;
    this.#current = setup.base;
    // One DISTINCT over all rounds: it remembers rows when its input changes.
    const baseAndRounds: Operator = { next: () => this.#current.next(), close: () => this.#current.close() };
    this.#rows =
      node.op === 'union'
        ? new DistinctOperator(baseAndRounds, { kind: 'distinct', input: node, columns: node.columns }, execution)
        : baseAndRounds;
    this.#added = this.#sink();
  }

  next(): Batch | null {
    const batch = this.#rows.next();
    if (batch === null) return this.#nextRound();
    if (batch.count === 0) return emptyBatch;
    this.#added.append(batch);
    this.#heldBytes = this.#setup.execution.memory.change(this.#heldBytes, this.#heldBefore + this.#added.bytes);
    return batch;
  }

  close(): void {
    this.#rows.close();
  }

  #nextRound(): Batch | null {
    this.#current.close();
    if (this.#added.length === 0) {
      this.#current = ended;
      return null;
    }
    if (++this.#rounds > roundsMax) {
      throw new ServiceError('REL_SCAN_CAP', `the recursion goes on for more than ${roundsMax} rounds`);
    }
    const working = this.#added.pieces();
    this.#heldBefore = this.#added.bytes;
    this.#added = this.#sink();
    this.#current = this.#setup.step(working);
    return emptyBatch;
  }

  #sink(): CollectedRows {
    return new CollectedRows(this.#setup.node.columns.map(({ type }) => type));
  }
}

const ended: Operator = { next: () => null, close: () => undefined };
