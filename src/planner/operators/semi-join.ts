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

const pairsPerBlock = 4_096;
const unread: Vector = { kind: 'null' };

export class MarkMatches {
  readonly #type: JoinNode['type'];
  readonly #partners: Partners;
  readonly #residual: Predicate | null;
  readonly #leftCount: number;
  /** Columns that the residual reads. */
  readonly #tested: readonly number[];
  readonly #testers: readonly Gatherer[];
  readonly #width: number;
  #met = new Uint8Array(0);
  #rows = new Int32Array(0);
  readonly #lefts = new Int32Array(pairsPerBlock);
  readonly #leftRows = new Int32Array(pairsPerBlock);
  readonly #candidates = new Int32Array(pairsPerBlock);

  constructor(node: JoinNode, partners: Partners, residual: Predicate | null) {
    this.#type = node.type;
    this.#partners = partners;
    this.#residual = residual;
    this.#leftCount = node.left.columns.length;
    this.#width = this.#leftCount + node.right.columns.length;
    this.#tested = node.residual ? [...columnsIn(node.residual)] : [];
    this.#testers = this.#tested.map(() => new Gatherer());
  }

  readonly bytes = 0;

  /** Output for a batch of left rows; `heads[j]` is the first partner + 1 of the row at place j, 0 for none. */
  *match(batch: Batch, heads: Int32Array): Generator<Batch, void, void> {
    const { count } = batch;
    if (this.#met.length < count) {
      this.#met = new Uint8Array(count);
      this.#rows = new Int32Array(count);
    }
    const met = this.#met;
    if (this.#residual === null) for (let j = 0; j < count; j++) met[j] = heads[j] === 0 ? 0 : 1;
    else yield* this.#test(batch, heads, this.#residual);
    yield this.#output(batch);
  }

  /** No row of the right side comes out by itself. */
  *unmet(): Generator<Batch, void, void> {}

  #output({ columns, selection, first, count }: Batch): Batch {
    const met = this.#met;
    if (this.#type === 'mark') {
      let length = 0;
      for (let j = 0; j < count; j++) length = Math.max(length, (selection === null ? first + j : selection[j]!) + 1);
      const values = new Uint8Array(length);
      for (let j = 0; j < count; j++) values[selection === null ? first + j : selection[j]!] = met[j]!;
      return { columns: [...columns.slice(0, this.#leftCount), { kind: 'bool', values, nulls: null }], selection, first, count };
    }
    const wanted = this.#type === 'semi' ? 1 : 0;
    const rows = this.#rows;
    let markedCount = 0;
    for (let j = 0; j < count; j++) if (met[j] === wanted) rows[markedCount++] = selection === null ? first + j : selection[j]!;
    if (markedCount === 0) return emptyBatch;
    return { columns, selection: rows, first: 0, count: markedCount };
  }

  *#test(batch: Batch, heads: Int32Array, residual: Predicate): Generator<Batch, void, void> {
    const { selection, first, count } = batch;
    const { following } = this.#partners;
    const met = this.#met;
    const lefts = this.#lefts;
    const leftRows = this.#leftRows;
    const candidates = this.#candidates;
    met.fill(0, 0, count);
    // Each round takes the next few partners of each row that has met none yet.
    let open = 0;
    const chains = new Int32Array(count);
    const waiting = this.#rows;
    for (let j = 0; j < count; j++) {
      chains[j] = heads[j]!;
      if (heads[j] !== 0) waiting[open++] = j;
    }
    let perRow = 1;
    while (open > 0) {
      let pairCount = 0;
      let at = 0;
      for (; at < open && pairCount < pairsPerBlock; at++) {
        const j = waiting[at]!;
        for (let n = 0; n < perRow && chains[j] !== 0 && pairCount < pairsPerBlock; n++) {
          leftRows[pairCount] = j;
          lefts[pairCount] = selection === null ? first + j : selection[j]!;
          candidates[pairCount++] = chains[j]! - 1;
          chains[j] = following[chains[j]! - 1]!;
        }
      }
      const left: Fetch = { rows: lefts, count: pairCount, targetRows: null, length: pairCount, absent: false };
      const right: Fetch = { rows: candidates, count: pairCount, targetRows: null, length: pairCount, absent: false };
      const columns: Vector[] = Array.from({ length: this.#width }, () => unread);
      this.#tested.forEach((c, t) => {
        const gatherer = this.#testers[t]!;
        columns[c] =
          c < this.#leftCount
            ? gatherer.fetch(batch.columns[c]!, left)
            : gatherer.fetch(this.#partners.columns[c - this.#leftCount]!, right);
      });
      const stay = yield* residual.inTurns({ columns, selection: null, first: 0, count: pairCount });
      for (let n = 0; n < stay; n++) met[leftRows[residual.passing[n]!]!] = 1;
      let still = 0;
      for (let k = 0; k < open; k++) {
        const j = waiting[k]!;
        if (met[j] === 0 && chains[j] !== 0) waiting[still++] = j;
      }
      open = still;
      perRow = Math.min(pairsPerBlock, perRow * 4);
      yield emptyBatch;
    }
  }
}
