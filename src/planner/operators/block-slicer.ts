/**
 * Cuts blocks of expensive rows into shares that fit one turn. The size follows from the cost per row of the columns and
 * functions involved, and from the lengths of the texts.
 */
import type { Dictionary, Vector } from '../../log/values/columns.ts';
import { type Cost, turnMost } from '../expressions/expression-cost.ts';
import type { Batch } from './operator.ts';

/** Rows that cost no more are few nanoseconds apart: their blocks stay whole. */
const quickRowCost = 1_600;
const sliceRowsMin = 4;
/** The cost of a new distinct value. All tables of values grow at about the same row. */
export const keyCost: Cost = { call: 200, character: 3 };

/** Work on a column; null: on rows. */
export interface ColumnWork {
  readonly column: number | null;
  readonly cost: Cost;
}

export class Turns {
  readonly #sliceRowsMax: number;
  readonly #textColumnWork: readonly (ColumnWork & { readonly column: number })[];
  #slicedBatch: Batch | null = null;
  #sliceStart = 0;

  constructor(columnWorks: readonly ColumnWork[]) {
    const costPerRow = columnWorks.reduce((rowCost, { cost }) => rowCost + cost.call, 0);
    this.#sliceRowsMax =
      costPerRow <= quickRowCost ? Number.POSITIVE_INFINITY : Math.max(sliceRowsMin, Math.floor(turnMost / costPerRow));
    this.#textColumnWork = columnWorks.flatMap(({ column, cost }) =>
      column === null || cost.character === 0 ? [] : [{ column, cost }],
    );
  }

  /** The next share; a new block is asked for once the one before it is through. null when there is none. */
  next(input: () => Batch | null): Batch | null {
    const currentBatch = this.#slicedBatch ?? input();
    if (currentBatch === null || currentBatch.count === 0) return currentBatch;
    const sliceFrom = this.#sliceStart;
    const sliceCount = this.#sliceRowCount(currentBatch, sliceFrom);
    if (sliceFrom === 0 && sliceCount === currentBatch.count) return currentBatch;
    this.#sliceStart = sliceFrom + sliceCount;
    this.#slicedBatch = this.#sliceStart < currentBatch.count ? currentBatch : null;
    if (this.#slicedBatch === null) this.#sliceStart = 0;
    const { columns, selection, first } = currentBatch;
    if (selection === null) return { columns, selection, first: first + sliceFrom, count: sliceCount };
    return { columns, selection: selection.subarray(sliceFrom, sliceFrom + sliceCount), first, count: sliceCount };
  }

  /** At least one row, however long its texts are. */
  #sliceRowCount(batch: Batch, sliceFrom: number): number {
    let sliceRows = Math.min(this.#sliceRowsMax, batch.count - sliceFrom);
    for (const { column, cost } of this.#textColumnWork) {
      const textVector = batch.columns[column]!;
      if (textVector.kind !== 'text' && textVector.kind !== 'dict') continue;
      const sliceBytesMax = turnMost / cost.character;
      if (textVector.kind === 'text' && batch.selection === null) {
        const sliceStart = batch.first + sliceFrom;
        if (textVector.offsets[sliceStart + sliceRows]! - textVector.offsets[sliceStart]! <= sliceBytesMax) continue;
      }
      if (textVector.kind === 'dict' && longestTextBytes(textVector.dictionary, sliceRows) * sliceRows <= sliceBytesMax) continue;
      let sliceBytes = 0;
      for (let j = 0; j < sliceRows; j++) {
        const sliceRow = batch.selection === null ? batch.first + sliceFrom + j : batch.selection[sliceFrom + j]!;
        sliceBytes += textBytesAt(textVector, sliceRow);
        if (sliceBytes <= sliceBytesMax) continue;
        sliceRows = Math.max(1, j);
        break;
      }
    }
    return sliceRows;
  }
}

/** A look at each text of a dictionary that has fewer than there are rows, instead of one at each row; otherwise infinite. */
function longestTextBytes({ size, utf8 }: Dictionary, sliceRows: number): number {
  // Its texts have no bytes to count: `textBytesAt` counts none either.
  if (utf8 === undefined) return 0;
  if (size > sliceRows) return Number.POSITIVE_INFINITY;
  let longestBytes = 0;
  for (let code = 0; code < size; code++) longestBytes = Math.max(longestBytes, utf8.offsets[code + 1]! - utf8.offsets[code]!);
  return longestBytes;
}

function textBytesAt(vector: Extract<Vector, { kind: 'text' | 'dict' }>, vectorRow: number): number {
  if (vector.nulls?.[vectorRow] === 1) return 0;
  if (vector.kind === 'text') return vector.offsets[vectorRow + 1]! - vector.offsets[vectorRow]!;
  const textCode = vector.values[vectorRow]!;
  const dictionaryOffsets = vector.dictionary.utf8?.offsets;
  return dictionaryOffsets === undefined ? 0 : dictionaryOffsets[textCode + 1]! - dictionaryOffsets[textCode]!;
}
