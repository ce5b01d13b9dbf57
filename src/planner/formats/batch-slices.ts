/** Cuts an answer's batches into slices small enough to encode one column at a time without blocking other requests. */
import type { Vector } from '../../log/values/columns.ts';
import type { OutputBatch } from '../planner-contract.ts';

export interface SliceLimits {
  /** Bytes of text of one column in one slice; a single cell may be larger. */
  readonly textBytes: number;
  /** Numbers of the vectors of one column in one slice. */
  readonly floats: number;
  /** Most rows of one slice. */
  readonly rows?: number;
}

/** All rows in order; no slice is empty. */
export function* slicesOf(batches: readonly OutputBatch[], limits: SliceLimits): Generator<OutputBatch, void> {
  for (const batch of batches) {
    const least = limits.rows === undefined ? 1 : Math.max(1, batch.count / limits.rows);
    const share = batch.columns.reduce((most, vector) => Math.max(most, shareOf(vector, batch, limits)), least);
    const rows = Math.max(1, Math.floor(batch.count / share));
    for (let from = 0; from < batch.count; from += rows) {
      const count = Math.min(rows, batch.count - from);
      const selection = batch.selection?.subarray(from, from + count) ?? null;
      yield { columns: batch.columns, selection, first: batch.first + from, count };
    }
  }
}

/** How many slices this column would need. */
function shareOf(vector: Vector, batch: OutputBatch, limits: SliceLimits): number {
  if (vector.kind === 'vec') return (batch.count * vector.dims) / limits.floats;
  if (vector.kind === 'text') return textBytes(vector.offsets, batch) / limits.textBytes;
  if (vector.kind !== 'dict') return 0;
  // A dictionary does not tell how long its texts are: a few of the batch's are looked at.
  let sampled = 0;
  for (let n = 0; n < rowsSampled; n++) {
    const row = rowAt(batch, Math.floor((n * batch.count) / rowsSampled));
    if (vector.nulls?.[row] !== 1) sampled += vector.dictionary.text(vector.values[row]!).length;
  }
  return (sampled * batch.count) / rowsSampled / limits.textBytes;
}

function textBytes(offsets: Uint32Array, batch: OutputBatch): number {
  const { selection, first, count } = batch;
  if (selection === null) return offsets[first + count]! - offsets[first]!;
  let bytes = 0;
  for (let i = 0; i < count; i++) bytes += offsets[selection[i]! + 1]! - offsets[selection[i]!]!;
  return bytes;
}

function rowAt({ selection, first }: OutputBatch, i: number): number {
  return selection === null ? first + i : selection[i]!;
}

const rowsSampled = 16;
