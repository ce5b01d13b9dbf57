/** Answers of one Bolt connection whose rows its client has not taken yet, each with the row that leaves next. */
import { ServiceError } from '../../errors.ts';
import type { Executed } from '../../planner/planner-contract.ts';
import type { Terms } from '../shared/session-terms.ts';
import type { PackStreamMap } from './packstream.ts';

/** Answers of one transaction that are not taken yet. */
const openAnswersMax = 64;

export interface OpenAnswer {
  readonly executed: Executed;
  readonly terms: Terms;
  batch: number;
  row: number;
}

export class OpenAnswers {
  readonly #answersById = new Map<bigint, OpenAnswer>();
  #nextAnswerId = 0n;

  get count(): number {
    return this.#answersById.size;
  }

  checkRoom(): void {
    if (this.#answersById.size >= openAnswersMax)
      throw new ServiceError('REL_INVALID', `${openAnswersMax} answers are open: take or discard one of them first`);
  }

  add(executed: Executed, answerTerms: Terms): bigint {
    const answerId = this.#nextAnswerId++;
    this.#answersById.set(answerId, { executed, terms: answerTerms, batch: 0, row: 0 });
    return answerId;
  }

  /** The answer that a PULL or DISCARD names by its `qid`, or the latest one. */
  findNamed(boltMetadata: PackStreamMap): [bigint, OpenAnswer] {
    const qid = boltMetadata.get('qid');
    const id = typeof qid === 'bigint' && qid >= 0n ? qid : this.#nextAnswerId - 1n;
    const answer = this.#answersById.get(id);
    if (answer === undefined) throw new ServiceError('REL_INVALID', 'no answer is open: RUN something first');
    return [id, answer];
  }

  delete(answerId: bigint): void {
    this.#answersById.delete(answerId);
  }

  clear(): void {
    this.#answersById.clear();
  }
}

/** Passes over so many rows, and over batches without any. */
export function skipRows(openAnswer: OpenAnswer, rowCount: number): void {
  const { batches: answerBatches } = openAnswer.executed.answer;
  for (let rowsToSkip = rowCount; openAnswer.batch < answerBatches.length; ) {
    const batchRowsLeft = answerBatches[openAnswer.batch]!.count - openAnswer.row;
    if (batchRowsLeft > rowsToSkip) {
      openAnswer.row += rowsToSkip;
      return;
    }
    rowsToSkip -= batchRowsLeft;
    openAnswer.batch++;
    openAnswer.row = 0;
  }
}
