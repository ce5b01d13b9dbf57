/** Answers of one Bolt connection whose rows its client has not taken yet, each with the row that leaves next. */
import { ServiceError } from '../../errors.ts';
import type { Executed } from '../../planner/planner-contract.ts';
import type { Terms } from '../shared/session-terms.ts';
import type { PackStreamMap } from './packstream.ts';

/** Answers of one transaction that are not taken yet. */
const answersMax = 64;

export interface OpenAnswer {
  readonly executed: Executed;
  readonly terms: Terms;
  batch: number;
  row: number;
}

export class OpenAnswers {
  readonly #answers = new Map<bigint, OpenAnswer>();
  #nextId = 0n;

  get count(): number {
    return this.#answers.size;
  }

  checkRoom(): void {
    if (this.#answers.size >= answersMax)
      throw new ServiceError('REL_INVALID', `${answersMax} answers are open: take or discard one of them first`);
  }

  add(executed: Executed, terms: Terms): bigint {
    const id = this.#nextId++;
    this.#answers.set(id, { executed, terms, batch: 0, row: 0 });
    return id;
  }

  /** The answer that a PULL or DISCARD names by its `qid`, or the latest one. */
  findNamed(boltMetadata: PackStreamMap): [bigint, OpenAnswer] {
    const qid = boltMetadata.get('qid');
    const id = typeof qid === 'bigint' && qid >= 0n ? qid : this.#nextId - 1n;
    const answer = this.#answers.get(id);
    if (answer === undefined) throw new ServiceError('REL_INVALID', 'no answer is open: RUN something first');
    return [id, answer];
  }

  delete(id: bigint): void {
    this.#answers.delete(id);
  }

  clear(): void {
    this.#answers.clear();
  }
}

/** Passes over so many rows, and over batches without any. */
export function skipRows(open: OpenAnswer, rowCount: number): void {
  const { batches } = open.executed.answer;
  for (let left = rowCount; open.batch < batches.length; ) {
    const rest = batches[open.batch]!.count - open.row;
    if (rest > left) {
      open.row += left;
      return;
    }
    left -= rest;
    open.batch++;
    open.row = 0;
  }
}
