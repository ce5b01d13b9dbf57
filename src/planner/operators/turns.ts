/**
 * Blocks of very many columns in shares of so many rows that taking one up keeps nobody waiting: new values cost the most,
 * and all tables of values grow at about the same row.
 */
import type { Batch } from './operator.ts';

/** So many columns are few: their blocks stay whole. */
const columnsMax = 8;
const cellsPerTurn = 8_192;
const rowsMin = 32;

export class Turns {
  readonly #rows: number;
  #batch: Batch | null = null;
  #from = 0;

  /** `columns` is how many are worked on. */
  constructor(columns: number) {
    this.#rows = columns <= columnsMax ? Number.POSITIVE_INFINITY : Math.max(rowsMin, Math.floor(cellsPerTurn / columns));
  }

  /** The next share; a new block is asked for once the one before it is through. null when there is none. */
  next(input: () => Batch | null): Batch | null {
    const batch = this.#batch ?? input();
    if (batch === null || batch.count <= this.#rows) return batch;
    const from = this.#from;
    const count = Math.min(this.#rows, batch.count - from);
    this.#from = from + count;
    this.#batch = this.#from < batch.count ? batch : null;
    if (this.#batch === null) this.#from = 0;
    const { columns, selection, first } = batch;
    if (selection === null) return { columns, selection, first: first + from, count };
    return { columns, selection: selection.subarray(from, from + count), first, count };
  }
}
