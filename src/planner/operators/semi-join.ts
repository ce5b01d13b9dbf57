/**
 * Which rows of a join's left side have a partner: those rows alone (semi), the others (anti), or all of them with a column
 * that says so (mark). A row's partners are tried until one passes the residual condition, a bounded number of pairs at once.
 */
import type { Vector } from '../../log/values/columns.ts';
import { columnsIn } from '../expressions/bound-expression.ts';
import type { JoinNode } from '../logical-plan.ts';
import { type Fetch, Gatherer } from './column-gatherer.ts';
import type { Partners } from './join-pairs.ts';
import { type Batch, emptyBatch } from './operator.ts';
import type { Predicate } from './predicate.ts';

const semiJoinPairsMax = 4_096;
const unreadColumn: Vector = { kind: 'null' };

export class MarkMatches {
  readonly #semiJoinType: JoinNode['type'];
  readonly #joinPartners: Partners;
  readonly #residualPredicate: Predicate | null;
  readonly #leftColumnCount: number;
  /** Columns that the residual reads. */
  readonly #residualColumns: readonly number[];
  readonly #residualGatherers: readonly Gatherer[];
  readonly #joinedColumnCount: number;
  #markedLefts = new Uint8Array(0);
  #outputRows = new Int32Array(0);
  readonly #candidateLefts = new Int32Array(semiJoinPairsMax);
  readonly #leftRows = new Int32Array(semiJoinPairsMax);
  readonly #candidatePartners = new Int32Array(semiJoinPairsMax);

  constructor(node: JoinNode, partners: Partners, residual: Predicate | null) {
    this.#semiJoinType = node.type;
    this.#joinPartners = partners;
    this.#residualPredicate = residual;
    this.#leftColumnCount = node.left.columns.length;
    this.#joinedColumnCount = this.#leftColumnCount + node.right.columns.length;
    this.#residualColumns = node.residual ? [...columnsIn(node.residual)] : [];
    this.#residualGatherers = this.#residualColumns.map(() => new Gatherer());
  }

  readonly bytes = 0;

  /** Output for a batch of left rows; `heads[j]` is the first partner + 1 of the row at place j, 0 for none. */
  *match(batch: Batch, chainHeads: Int32Array): Generator<Batch, void, void> {
    const { count } = batch;
    if (this.#markedLefts.length < count) {
      this.#markedLefts = new Uint8Array(count);
      this.#outputRows = new Int32Array(count);
    }
    const markedLefts = this.#markedLefts;
    if (this.#residualPredicate === null) for (let j = 0; j < count; j++) markedLefts[j] = chainHeads[j] === 0 ? 0 : 1;
    else yield* this.#testResidual(batch, chainHeads, this.#residualPredicate);
    yield this.#markedOutput(batch);
  }

  /** No row of the right side comes out by itself. */
  *unmet(): Generator<Batch, void, void> {}

  #markedOutput({ columns, selection, first, count }: Batch): Batch {
    const markedLefts = this.#markedLefts;
    if (this.#semiJoinType === 'mark') {
      let markLength = 0;
      for (let j = 0; j < count; j++) markLength = Math.max(markLength, (selection === null ? first + j : selection[j]!) + 1);
      const markColumn = new Uint8Array(markLength);
      for (let j = 0; j < count; j++) markColumn[selection === null ? first + j : selection[j]!] = markedLefts[j]!;
      return {
        columns: [...columns.slice(0, this.#leftColumnCount), { kind: 'bool', values: markColumn, nulls: null }],
        selection,
        first,
        count,
      };
    }
    const wantedMark = this.#semiJoinType === 'semi' ? 1 : 0;
    const outputRows = this.#outputRows;
    let markedCount = 0;
    for (let j = 0; j < count; j++)
      if (markedLefts[j] === wantedMark) outputRows[markedCount++] = selection === null ? first + j : selection[j]!;
    if (markedCount === 0) return emptyBatch;
    return { columns, selection: outputRows, first: 0, count: markedCount };
  }

  *#testResidual(batch: Batch, chainHeads: Int32Array, residual: Predicate): Generator<Batch, void, void> {
    const { selection, first, count } = batch;
    const { following } = this.#joinPartners;
    const markedLefts = this.#markedLefts;
    const candidateLefts = this.#candidateLefts;
    const leftRows = this.#leftRows;
    const candidatePartners = this.#candidatePartners;
    markedLefts.fill(0, 0, count);
    // Each round takes the next few partners of each row that has met none yet.
    let openLeftCount = 0;
    const partnerChains = new Int32Array(count);
    const waitingLefts = this.#outputRows;
    for (let j = 0; j < count; j++) {
      partnerChains[j] = chainHeads[j]!;
      if (chainHeads[j] !== 0) waitingLefts[openLeftCount++] = j;
    }
    let partnersPerLeft = 1;
    while (openLeftCount > 0) {
      let pairCount = 0;
      let waitingIndex = 0;
      for (; waitingIndex < openLeftCount && pairCount < semiJoinPairsMax; waitingIndex++) {
        const j = waitingLefts[waitingIndex]!;
        for (let n = 0; n < partnersPerLeft && partnerChains[j] !== 0 && pairCount < semiJoinPairsMax; n++) {
          leftRows[pairCount] = j;
          candidateLefts[pairCount] = selection === null ? first + j : selection[j]!;
          candidatePartners[pairCount++] = partnerChains[j]! - 1;
          partnerChains[j] = following[partnerChains[j]! - 1]!;
        }
      }
      const leftFetch: Fetch = { rows: candidateLefts, count: pairCount, targetRows: null, length: pairCount, absent: false };
      const partnerFetch: Fetch = {
        rows: candidatePartners,
        count: pairCount,
        targetRows: null,
        length: pairCount,
        absent: false,
      };
      const residualVectors: Vector[] = Array.from({ length: this.#joinedColumnCount }, () => unreadColumn);
      this.#residualColumns.forEach((c, t) => {
        const residualGatherer = this.#residualGatherers[t]!;
        residualVectors[c] =
          c < this.#leftColumnCount
            ? residualGatherer.fetch(batch.columns[c]!, leftFetch)
            : residualGatherer.fetch(this.#joinPartners.columns[c - this.#leftColumnCount]!, partnerFetch);
      });
      const stayingCount = yield* residual.inTurns({ columns: residualVectors, selection: null, first: 0, count: pairCount });
      for (let n = 0; n < stayingCount; n++) markedLefts[leftRows[residual.passing[n]!]!] = 1;
      let stillOpenCount = 0;
      for (let k = 0; k < openLeftCount; k++) {
        const j = waitingLefts[k]!;
        if (markedLefts[j] === 0 && partnerChains[j] !== 0) waitingLefts[stillOpenCount++] = j;
      }
      openLeftCount = stillOpenCount;
      partnersPerLeft = Math.min(semiJoinPairsMax, partnersPerLeft * 4);
      yield emptyBatch;
    }
  }
}
