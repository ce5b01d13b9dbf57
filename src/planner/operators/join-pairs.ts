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

const pairsPerBlock = 4_096;
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

const unread: Vector = { kind: 'null' };

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
  readonly #leftRows = new Int32Array(pairsPerBlock);
  readonly #candidates = new Int32Array(pairsPerBlock);
  #lefts = new Int32Array(2 * pairsPerBlock);
  #rights = new Int32Array(2 * pairsPerBlock);
  /** Place of the left row at work, its next partner + 1, and whether it came out before. */
  #leftRow = 0;
  #chain = 0;
  #leftMet = false;

  constructor(node: JoinNode, partners: Partners, residual: Predicate | null) {
    this.#partners = partners;
    this.#keepsLeft = node.type === 'left' || node.type === 'full' || node.type === 'single';
    this.#atMostOne = node.type === 'single';
    this.#leftCount = node.left.columns.length;
    const read = node.read && new Set(node.read);
    this.#gatherers = node.columns.map((_, c) => (!read || read.has(c) ? new Gatherer() : null));
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
  *match(batch: Batch, heads: Int32Array): Generator<Batch, void, void> {
    if (this.#passesLeft) {
      yield this.#single(batch, heads);
      return;
    }
    this.#leftRow = -1;
    this.#chain = 0;
    this.#leftMet = false;
    while (this.#leftRow + (this.#chain === 0 ? 1 : 0) < batch.count) yield yield* this.#block(batch, heads);
  }

  /** Right rows that never came out; the left side is NULL. */
  *unmet(): Generator<Batch, void, void> {
    const met = this.#met;
    if (met === null) return;
    const { columns, rows } = this.#partners;
    const leftNulls: Vector[] = Array.from({ length: this.#leftCount }, () => ({ kind: 'null' }));
    for (let row = 0; row < rows; ) {
      const selection = new Int32Array(pairsPerBlock);
      const end = Math.min(rows, row + rowsPerStep);
      let count = 0;
      for (; row < end && count < pairsPerBlock; row++) if (met[row] === 0) selection[count++] = row;
      yield { columns: [...leftNulls, ...columns], selection, first: 0, count };
    }
  }

  /** At most one partner a row: left columns pass as they are, those of the right are fetched to the same row numbers. */
  #single(batch: Batch, heads: Int32Array): Batch {
    const { selection, first, count } = batch;
    if (this.#lefts.length < count) {
      this.#lefts = new Int32Array(count);
      this.#rights = new Int32Array(count);
    }
    const lefts = this.#lefts;
    const rights = this.#rights;
    const keepsLeft = this.#keepsLeft;
    let n = 0;
    let length = 0;
    let signs = 0;
    for (let j = 0; j < count; j++) {
      const right = heads[j]! - 1;
      if (right < 0 && !keepsLeft) continue;
      const i = selection === null ? first + j : selection[j]!;
      lefts[n] = i;
      rights[n++] = right;
      signs |= right;
      if (i >= length) length = i + 1;
    }
    if (n === 0) return emptyBatch;
    this.#meet(rights, n);
    const wanted: Fetch = { rows: rights, count: n, targetRows: lefts, length, absent: signs < 0 };
    const columns = batch.columns.slice();
    this.#partners.columns.forEach((source, c) =>
      columns.push(this.#gatherers[this.#leftCount + c]?.fetch(source, wanted) ?? unread),
    );
    return n === count ? { columns, selection, first, count } : { columns, selection: lefts, first: 0, count: n };
  }

  *#block(batch: Batch, heads: Int32Array): Generator<Batch, Batch> {
    const from = this.#chain === 0 ? this.#leftRow + 1 : this.#leftRow;
    let pairCount = this.#fill(batch.count, heads);
    if (this.#residual !== null && pairCount > 0) pairCount = yield* this.#test(batch, this.#residual, pairCount);
    const to = this.#chain === 0 ? this.#leftRow + 1 : this.#leftRow;
    const count = this.#keepsLeft ? this.#withUnmet(from, to, pairCount) : this.#copy(pairCount);
    if (count === 0) return emptyBatch;
    const { selection, first } = batch;
    const lefts = this.#lefts;
    for (let n = 0; n < count; n++) lefts[n] = selection === null ? first + lefts[n]! : selection[lefts[n]!]!;
    this.#meet(this.#rights, count);
    const left: Fetch = { rows: lefts, count, targetRows: null, length: count, absent: false };
    const right: Fetch = { rows: this.#rights, count, targetRows: null, length: count, absent: this.#keepsLeft };
    const columns = this.#gatherers.map((gatherer, c) => (gatherer ? this.#fetch(gatherer, c, batch, left, right) : unread));
    return { columns, selection: null, first: 0, count };
  }

  /** Pairs of the next rows, as places and right rows; returns how many. Rows without partners count as work too. */
  #fill(count: number, heads: Int32Array): number {
    const { following } = this.#partners;
    const leftRows = this.#leftRows;
    const candidates = this.#candidates;
    let leftRow = this.#leftRow;
    let chain = this.#chain;
    const placesMax = Math.min(count, leftRow + pairsPerBlock);
    let pairCount = 0;
    while (pairCount < pairsPerBlock) {
      if (chain !== 0) {
        leftRows[pairCount] = leftRow;
        candidates[pairCount++] = chain - 1;
        chain = following[chain - 1]!;
      } else if (leftRow + 1 < placesMax) chain = heads[++leftRow]!;
      else break;
    }
    this.#leftRow = leftRow;
    this.#chain = chain;
    return pairCount;
  }

  /** Drops the pairs for which the residual is not true; returns how many stay. */
  *#test(batch: Batch, { predicate, columns: tested, gatherers }: Residual, pairCount: number): Generator<Batch, number> {
    const { selection, first } = batch;
    const leftRows = this.#leftRows;
    const lefts = this.#lefts;
    for (let n = 0; n < pairCount; n++) lefts[n] = selection === null ? first + leftRows[n]! : selection[leftRows[n]!]!;
    const left: Fetch = { rows: lefts, count: pairCount, targetRows: null, length: pairCount, absent: false };
    const right: Fetch = { rows: this.#candidates, count: pairCount, targetRows: null, length: pairCount, absent: false };
    const columns: Vector[] = this.#gatherers.map(() => unread);
    tested.forEach((c, t) => {
      columns[c] = this.#fetch(gatherers[t]!, c, batch, left, right);
    });
    const stay = yield* predicate.inTurns({ columns, selection: null, first: 0, count: pairCount });
    const { passing } = predicate;
    for (let n = 0; n < stay; n++) {
      leftRows[n] = leftRows[passing[n]!]!;
      this.#candidates[n] = this.#candidates[passing[n]!]!;
    }
    return stay;
  }

  /** The pairs, and each row that had no matching partner up to its last one in this block: places from .. to-1. */
  #withUnmet(from: number, to: number, pairCount: number): number {
    const leftRows = this.#leftRows;
    let met = this.#leftMet;
    let count = 0;
    let n = 0;
    for (let leftRow = from; leftRow <= to; leftRow++) {
      for (; n < pairCount && leftRows[n] === leftRow; n++) {
        if (this.#atMostOne && met) throw secondRow();
        this.#lefts[count] = leftRow;
        this.#rights[count++] = this.#candidates[n]!;
        met = true;
      }
      if (leftRow === to) break;
      if (!met) {
        this.#lefts[count] = leftRow;
        this.#rights[count++] = -1;
      }
      met = false;
    }
    this.#leftMet = met;
    return count;
  }

  #copy(pairCount: number): number {
    for (let n = 0; n < pairCount; n++) {
      this.#lefts[n] = this.#leftRows[n]!;
      this.#rights[n] = this.#candidates[n]!;
    }
    return pairCount;
  }

  #meet(rights: Int32Array, count: number): void {
    const met = this.#met;
    if (met === null) return;
    for (let n = 0; n < count; n++) if (rights[n]! >= 0) met[rights[n]!] = 1;
  }

  #fetch(gatherer: Gatherer, column: number, batch: Batch, left: Fetch, right: Fetch): Vector {
    if (column < this.#leftCount) return gatherer.fetch(batch.columns[column]!, left);
    return gatherer.fetch(this.#partners.columns[column - this.#leftCount]!, right);
  }
}
