/** Cuts an answer's batches into slices small enough to encode one column at a time without blocking other requests. */
import type { Vector } from '../../log/values/columns.ts';
import type { OutputBatch } from '../planner-contract.ts';

export interface SliceLimits {
  /** Bytes of text of one column in one slice; a single cell may be larger. */
  readonly textBytes: number;
  /** Numbers of the vectors of one column in one slice. */
  readonly floats: number;
  /** Bytes of all columns of one slice. */
  readonly bytes?: number;
}

/** All rows in order; no slice is empty. */
export function* slicesOf(batches: readonly OutputBatch[], limits: SliceLimits): Generator<OutputBatch, void> {
  for (const batch of batches) yield* cut(batch, limits, 1);
}

/** `most`: how many times a limit a slice may be. */
function* cut(batch: OutputBatch, limits: SliceLimits, most: number): Generator<OutputBatch, void> {
  const share = shareOf(batch, limits);
  if (share <= most || batch.count === 1) return yield batch;
  const rows = Math.max(1, Math.floor(batch.count / share));
  for (let from = 0; from < batch.count; from += rows) {
    const count = Math.min(rows, batch.count - from);
    const selection = batch.selection?.subarray(from, from + count) ?? null;
    // Long cells may lie side by side.
    yield* cut({ columns: batch.columns, selection, first: batch.first + from, count }, limits, unevenly);
  }
}

const unevenly = 2;

/** How many slices the batch would need. */
function shareOf(batch: OutputBatch, limits: SliceLimits): number {
  const { textBytes, floats, bytes = Number.POSITIVE_INFINITY } = limits;
  let share = 0;
  let sum = 0;
  for (const vector of batch.columns) {
    const size = bytesOf(vector, batch);
    sum += size;
    if (vector.kind === 'vec') share = Math.max(share, size / 4 / floats);
    else if (vector.kind === 'text' || vector.kind === 'dict') share = Math.max(share, size / textBytes);
  }
  return Math.max(share, sum / bytes);
}

function bytesOf(vector: Vector, batch: OutputBatch): number {
  if (vector.kind === 'vec') return batch.count * vector.dims * 4;
  if (vector.kind === 'text') return textBytes(vector.offsets, batch);
  if (vector.kind !== 'dict') return batch.count * 8;
  // A dictionary does not tell how long its texts are: a few of the batch's are looked at.
  let sampled = 0;
  for (let n = 0; n < rowsSampled; n++) {
    const row = rowAt(batch, Math.floor((n * batch.count) / rowsSampled));
    if (vector.nulls?.[row] !== 1) sampled += vector.dictionary.text(vector.values[row]!).length;
  }
  return (sampled * batch.count) / rowsSampled;
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
