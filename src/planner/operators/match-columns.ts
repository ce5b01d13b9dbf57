/** Columns that a search adds to rows: for each MATCH whether it holds, and the score. Their arrays are used again for every batch. */
import type { Vector } from '../../log/values/columns.ts';
import { type Batch, emptyBatch } from './operator.ts';

/** Memory that is asked for within a turn. */
const bytesInTurn = 1 << 20;

export class ResultColumns {
  readonly #matches: number;
  readonly #isScored: boolean;
  /** By match and row: 1 where it holds. */
  matched: readonly Uint8Array[] = [];
  /** By match and row: 1 where the row has no text, so that the MATCH is NULL. */
  absent: readonly Uint8Array[] = [];
  /** By row. */
  scores = new Float64Array(0);
  /** The column of a match that holds for every row. */
  #all = new Uint8Array(0);

  constructor(matches: number, isScored: boolean) {
    this.#matches = matches;
    this.#isScored = isScored;
  }

  /** Makes room for rows below `least`, at least doubling it. Works in steps, since each match has arrays of its own. */
  *reach(least: number): Generator<Batch, void> {
    if (this.#all.length >= least) return;
    const rows = Math.max(least, 2 * this.#all.length);
    const [matched, absent]: [Uint8Array[], Uint8Array[]] = [[], []];
    for (let i = 0, given = 0; i < this.#matches; i++, given += 2 * rows) {
      if (given > bytesInTurn) {
        given = 0;
        yield emptyBatch;
      }
      matched.push(new Uint8Array(rows));
      absent.push(new Uint8Array(rows));
    }
    this.matched = matched;
    this.absent = absent;
    this.scores = new Float64Array(this.#isScored ? rows : 0);
    this.#all = new Uint8Array(rows).fill(1);
  }

  /** Columns of rows that every MATCH holds of. */
  allMatching(): Vector[] {
    const own = Array.from({ length: this.#matches }, (): Vector => ({ kind: 'bool', values: this.#all, nulls: null }));
    return [...own, ...this.#scoreColumn()];
  }

  vectors(hasAbsent: boolean): Vector[] {
    const own = this.matched.map((values, i): Vector => ({ kind: 'bool', values, nulls: hasAbsent ? this.absent[i]! : null }));
    return [...own, ...this.#scoreColumn()];
  }

  #scoreColumn(): Vector[] {
    return this.#isScored ? [{ kind: 'f64', values: this.scores, nulls: null }] : [];
  }
}
