/**
 * Rows that a join puts out for the rows of its left side, in their order, each with its partners in the order of the
 * right side. Blocks are bounded: a row with a million partners comes out in pieces, and pairs that the residual condition
 * drops count as work. The columns of a side are fetched for pairs that come out, and for no others.
 */
import type { Vector } from '../../log/values/columns.ts';
import { columnsIn } from '../expressions/bound-expression.ts';
import type { JoinNode } from '../logical-plan.ts';
import { type Fetch, Gatherer } from './column-gatherer.ts';
import { type Batch, emptyBatch } from './operator.ts';
import { secondRow } from './several-rows-error.ts';
import type { Predicate } from './predicate.ts';

const joinPairsPerBlock = 4_096;
const rowsPerStep = 65_536;

/** The right side, held. */
export interface Partners {
  readonly columns: readonly Vector[];
  readonly rows: number;
  /** Next partner of the same left row, + 1; 0 ends the chain. */
  readonly following: Int32Array;
  /** No left row has two partners. */
  readonly unique: boolean;
}

/** The condition of ON beside the keys, and the columns that it reads. */
interface Residual {
  readonly predicate: Predicate;
  readonly columns: readonly number[];
  readonly gatherers: readonly Gatherer[];
}

const unreadColumn: Vector = { kind: 'null' };

export class JoinPairs {
  readonly #partners: Partners;
  readonly #residual: Residual | null;
  readonly #keepsLeft: boolean;
  /** A second partner is an error. */
  readonly #atMostOne: boolean;
  readonly #leftCount: number;
  /** By output column; null where no operator reads it. */
  readonly #gatherers: readonly (Gatherer | null)[];
  /** By right row: 1 once it came out. Null where the join does not need it. */
  readonly #met: Uint8Array | null;
  /** Text can't be fetched to given places. */
  readonly #passesLeft: boolean;
  readonly #leftRows = new Int32Array(joinPairsPerBlock);
  readonly #candidates = new Int32Array(joinPairsPerBlock);
  #lefts = new Int32Array(2 * joinPairsPerBlock);
  #rights = new Int32Array(2 * joinPairsPerBlock);
  /** Place of the left row at work, its next partner + 1, and whether it came out before. */
  #leftRow = 0;
  #chain = 0;
  #leftMet = false;

  constructor(node: JoinNode, partners: Partners, residual: Predicate | null) {
    this.#partners = partners;
    this.#keepsLeft = node.type === 'left' || node.type === 'full' || node.type === 'single';
    this.#atMostOne = node.type === 'single';
    this.#leftCount = node.left.columns.length;
    const readColumns = node.read && new Set(node.read);
    this.#gatherers = node.columns.map((_, c) => (!readColumns || readColumns.has(c) ? new Gatherer() : null));
    const tested = node.residual ? [...columnsIn(node.residual)] : [];
    this.#residual = residual && {
      predicate: residual,
      columns: tested,
      gatherers: tested.map((c) => this.#gatherers[c] ?? new Gatherer()),
    };
    this.#met = node.type === 'right' || node.type === 'full' ? new Uint8Array(partners.rows) : null;
    const fetchesText = partners.columns.some(({ kind }, c) => kind === 'text' && this.#gatherers[this.#leftCount + c]);
    this.#passesLeft = partners.unique && !residual && !fetchesText;
  }

  get bytes(): number {
    return this.#met?.length ?? 0;
  }

  /** Output for a batch of left rows; `heads[j]` is the first partner + 1 of the row at place j, 0 for none. */
  *match(batch: Batch, chainHeads: Int32Array): Generator<Batch, void, void> {
    if (this.#passesLeft) {
      yield this.#single(batch, chainHeads);
      return;
    }
    this.#leftRow = -1;
    this.#chain = 0;
    this.#leftMet = false;
    while (this.#leftRow + (this.#chain === 0 ? 1 : 0) < batch.count) yield yield* this.#block(batch, chainHeads);
  }

  /** Right rows that never came out; the left side is NULL. */
  *unmet(): Generator<Batch, void, void> {
    const metPartners = this.#met;
    if (metPartners === null) return;
    const { columns, rows } = this.#partners;
    const leftNulls: Vector[] = Array.from({ length: this.#leftCount }, () => ({ kind: 'null' }));
    for (let partnerRow = 0; partnerRow < rows; ) {
      const selection = new Int32Array(joinPairsPerBlock);
      const scanEnd = Math.min(rows, partnerRow + rowsPerStep);
      let unmetCount = 0;
      for (; partnerRow < scanEnd && unmetCount < joinPairsPerBlock; partnerRow++)
        if (metPartners[partnerRow] === 0) selection[unmetCount++] = partnerRow;
      yield { columns: [...leftNulls, ...columns], selection, first: 0, count: unmetCount };
    }
  }

  /** At most one partner a row: left columns pass as they are, those of the right are fetched to the same row numbers. */
  #single(batch: Batch, chainHeads: Int32Array): Batch {
    const { selection, first, count } = batch;
    if (this.#lefts.length < count) {
      this.#lefts = new Int32Array(count);
      this.#rights = new Int32Array(count);
    }
    const leftRows = this.#lefts;
    const partnerRows = this.#rights;
    const keepsLeft = this.#keepsLeft;
    let joinedCount = 0;
    let fetchLength = 0;
    let partnerSigns = 0;
    for (let j = 0; j < count; j++) {
      const partnerRow = chainHeads[j]! - 1;
      if (partnerRow < 0 && !keepsLeft) continue;
      const i = selection === null ? first + j : selection[j]!;
      leftRows[joinedCount] = i;
      partnerRows[joinedCount++] = partnerRow;
      partnerSigns |= partnerRow;
      if (i >= fetchLength) fetchLength = i + 1;
    }
    if (joinedCount === 0) return emptyBatch;
    this.#meet(partnerRows, joinedCount);
    const partnerFetch: Fetch = {
      rows: partnerRows,
      count: joinedCount,
      targetRows: leftRows,
      length: fetchLength,
      absent: partnerSigns < 0,
    };
    const columns = batch.columns.slice();
    this.#partners.columns.forEach((partnerColumn, c) =>
      columns.push(this.#gatherers[this.#leftCount + c]?.fetch(partnerColumn, partnerFetch) ?? unreadColumn),
    );
    return joinedCount === count
      ? { columns, selection, first, count }
      : { columns, selection: leftRows, first: 0, count: joinedCount };
  }

  *#block(batch: Batch, chainHeads: Int32Array): Generator<Batch, Batch> {
    const firstPlace = this.#chain === 0 ? this.#leftRow + 1 : this.#leftRow;
    let pairCount = this.#fill(batch.count, chainHeads);
    if (this.#residual !== null && pairCount > 0) pairCount = yield* this.#test(batch, this.#residual, pairCount);
    const lastPlace = this.#chain === 0 ? this.#leftRow + 1 : this.#leftRow;
    const joinedCount = this.#keepsLeft ? this.#withUnmet(firstPlace, lastPlace, pairCount) : this.#copy(pairCount);
    if (joinedCount === 0) return emptyBatch;
    const { selection, first } = batch;
    const leftRows = this.#lefts;
    for (let n = 0; n < joinedCount; n++) leftRows[n] = selection === null ? first + leftRows[n]! : selection[leftRows[n]!]!;
    this.#meet(this.#rights, joinedCount);
    const leftFetch: Fetch = { rows: leftRows, count: joinedCount, targetRows: null, length: joinedCount, absent: false };
    const partnerFetch: Fetch = {
      rows: this.#rights,
      count: joinedCount,
      targetRows: null,
      length: joinedCount,
      absent: this.#keepsLeft,
    };
    const columns = this.#gatherers.map((gatherer, c) =>
      gatherer ? this.#fetch(gatherer, c, batch, leftFetch, partnerFetch) : unreadColumn,
    );
    return { columns, selection: null, first: 0, count: joinedCount };
  }

  /** Pairs of the next rows, as places and right rows; returns how many. Rows without partners count as work too. */
  #fill(count: number, chainHeads: Int32Array): number {
    const { following } = this.#partners;
    const leftRows = this.#leftRows;
    const candidatePartners = this.#candidates;
    let leftRow = this.#leftRow;
    let partnerChain = this.#chain;
    const placesMax = Math.min(count, leftRow + joinPairsPerBlock);
    let pairCount = 0;
    while (pairCount < joinPairsPerBlock) {
      if (partnerChain !== 0) {
        leftRows[pairCount] = leftRow;
        candidatePartners[pairCount++] = partnerChain - 1;
        partnerChain = following[partnerChain - 1]!;
      } else if (leftRow + 1 < placesMax) partnerChain = chainHeads[++leftRow]!;
      else break;
    }
    this.#leftRow = leftRow;
    this.#chain = partnerChain;
    return pairCount;
  }

  /** Drops the pairs for which the residual is not true; returns how many stay. */
  *#test(batch: Batch, { predicate, columns: tested, gatherers }: Residual, pairCount: number): Generator<Batch, number> {
    const { selection, first } = batch;
    const leftRows = this.#leftRows;
    const lefts = this.#lefts;
    for (let n = 0; n < pairCount; n++) lefts[n] = selection === null ? first + leftRows[n]! : selection[leftRows[n]!]!;
    const leftFetch: Fetch = { rows: lefts, count: pairCount, targetRows: null, length: pairCount, absent: false };
    const partnerFetch: Fetch = { rows: this.#candidates, count: pairCount, targetRows: null, length: pairCount, absent: false };
    const residualVectors: Vector[] = this.#gatherers.map(() => unreadColumn);
    tested.forEach((c, t) => {
      residualVectors[c] = this.#fetch(gatherers[t]!, c, batch, leftFetch, partnerFetch);
    });
    const stayingCount = yield* predicate.inTurns({ columns: residualVectors, selection: null, first: 0, count: pairCount });
    const { passing } = predicate;
    for (let n = 0; n < stayingCount; n++) {
      leftRows[n] = leftRows[passing[n]!]!;
      this.#candidates[n] = this.#candidates[passing[n]!]!;
    }
    return stayingCount;
  }

  /** The pairs, and each row that had no matching partner up to its last one in this block: places from .. to-1. */
  #withUnmet(firstPlace: number, lastPlace: number, pairCount: number): number {
    const leftRows = this.#leftRows;
    let isLeftMet = this.#leftMet;
    let joinedCount = 0;
    let candidateIndex = 0;
    for (let leftRow = firstPlace; leftRow <= lastPlace; leftRow++) {
      for (; candidateIndex < pairCount && leftRows[candidateIndex] === leftRow; candidateIndex++) {
        if (this.#atMostOne && isLeftMet) throw secondRow();
        this.#lefts[joinedCount] = leftRow;
        this.#rights[joinedCount++] = this.#candidates[candidateIndex]!;
        isLeftMet = true;
      }
      if (leftRow === lastPlace) break;
      if (!isLeftMet) {
        this.#lefts[joinedCount] = leftRow;
        this.#rights[joinedCount++] = -1;
      }
      isLeftMet = false;
    }
    this.#leftMet = isLeftMet;
    return joinedCount;
  }

  #copy(pairCount: number): number {
    for (let n = 0; n < pairCount; n++) {
      this.#lefts[n] = this.#leftRows[n]!;
      this.#rights[n] = this.#candidates[n]!;
    }
    return pairCount;
  }

  #meet(partnerRows: Int32Array, count: number): void {
    const metPartners = this.#met;
    if (metPartners === null) return;
    for (let n = 0; n < count; n++) if (partnerRows[n]! >= 0) metPartners[partnerRows[n]!] = 1;
  }

  #fetch(gatherer: Gatherer, column: number, batch: Batch, leftFetch: Fetch, partnerFetch: Fetch): Vector {
    if (column < this.#leftCount) return gatherer.fetch(batch.columns[column]!, leftFetch);
    return gatherer.fetch(this.#partners.columns[column - this.#leftCount]!, partnerFetch);
  }
}
