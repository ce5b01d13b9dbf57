/**
 * Cuts blocks of expensive rows into shares that fit one turn. The size follows from the cost per row of the columns and
 * functions involved, and from the lengths of the texts.
 */
import type { Vector } from '../../log/values/columns.ts';
import { type Cost, turnMost } from '../expressions/expression-cost.ts';
import type { Batch } from './operator.ts';

/** Rows that cost no more are few nanoseconds apart: their blocks stay whole. */
const quickRow = 1_600;
const rowsMin = 4;
/** The cost of a new distinct value. All tables of values grow at about the same row. */
export const keyCost: Cost = { call: 200, character: 3 };

/** Work on a column; null: on rows. */
export interface ColumnWork {
  readonly column: number | null;
  readonly cost: Cost;
}

export class Turns {
  readonly #rows: number;
  readonly #texts: readonly (ColumnWork & { readonly column: number })[];
  #batch: Batch | null = null;
  #from = 0;

  constructor(works: readonly ColumnWork[]) {
    const row = works.reduce((sum, { cost }) => sum + cost.call, 0);
    this.#rows = row <= quickRow ? Number.POSITIVE_INFINITY : Math.max(rowsMin, Math.floor(turnMost / row));
    this.#texts = works.flatMap(({ column, cost }) => (column === null || cost.character === 0 ? [] : [{ column, cost }]));
  }

  /** The next share; a new block is asked for once the one before it is through. null when there is none. */
  next(input: () => Batch | null): Batch | null {
    const batch = this.#batch ?? input();
    if (batch === null || batch.count === 0) return batch;
    const from = this.#from;
    const count = this.#share(batch, from);
    if (from === 0 && count === batch.count) return batch;
    this.#from = from + count;
    this.#batch = this.#from < batch.count ? batch : null;
    if (this.#batch === null) this.#from = 0;
    const { columns, selection, first } = batch;
    if (selection === null) return { columns, selection, first: first + from, count };
    return { columns, selection: selection.subarray(from, from + count), first, count };
  }

  /** At least one row, however long its texts are. */
  #share(batch: Batch, from: number): number {
    let rows = Math.min(this.#rows, batch.count - from);
    for (const { column, cost } of this.#texts) {
      const vector = batch.columns[column]!;
      if (vector.kind !== 'text' && vector.kind !== 'dict') continue;
      const most = turnMost / cost.character;
      if (vector.kind === 'text' && batch.selection === null) {
        const start = batch.first + from;
        if (vector.offsets[start + rows]! - vector.offsets[start]! <= most) continue;
      }
      let bytes = 0;
      for (let j = 0; j < rows; j++) {
        const row = batch.selection === null ? batch.first + from + j : batch.selection[from + j]!;
        bytes += bytesAt(vector, row);
        if (bytes <= most) continue;
        rows = Math.max(1, j);
        break;
      }
    }
    return rows;
  }
}

function bytesAt(vector: Extract<Vector, { kind: 'text' | 'dict' }>, row: number): number {
  if (vector.nulls?.[row] === 1) return 0;
  if (vector.kind === 'text') return vector.offsets[row + 1]! - vector.offsets[row]!;
  const code = vector.values[row]!;
  const offsets = vector.dictionary.utf8?.offsets;
  return offsets === undefined ? 0 : offsets[code + 1]! - offsets[code]!;
}
