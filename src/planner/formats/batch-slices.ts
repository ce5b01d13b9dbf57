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
export function* slicesOf(batches: readonly OutputBatch[], sliceLimits: SliceLimits): Generator<OutputBatch, void> {
  for (const slicedBatch of batches) yield* cutBatch(slicedBatch, sliceLimits, 1);
}

/** `shareMax`: how many times a limit a slice may be. */
function* cutBatch(slicedBatch: OutputBatch, sliceLimits: SliceLimits, shareMax: number): Generator<OutputBatch, void> {
  const limitShare = limitShareOf(slicedBatch, sliceLimits);
  if (limitShare <= shareMax || slicedBatch.count === 1) return yield slicedBatch;
  const sliceRows = Math.max(1, Math.floor(slicedBatch.count / limitShare));
  for (let sliceStart = 0; sliceStart < slicedBatch.count; sliceStart += sliceRows) {
    const sliceCount = Math.min(sliceRows, slicedBatch.count - sliceStart);
    const sliceSelection = slicedBatch.selection?.subarray(sliceStart, sliceStart + sliceCount) ?? null;
    // Long cells may lie side by side.
    yield* cutBatch(
      { columns: slicedBatch.columns, selection: sliceSelection, first: slicedBatch.first + sliceStart, count: sliceCount },
      sliceLimits,
      unevenShare,
    );
  }
}

const unevenShare = 2;

/** How many slices the batch would need. */
function limitShareOf(slicedBatch: OutputBatch, sliceLimits: SliceLimits): number {
  const { textBytes, floats, bytes = Number.POSITIVE_INFINITY } = sliceLimits;
  let largestShare = 0;
  let summedBytes = 0;
  for (const vector of slicedBatch.columns) {
    const vectorBytes = vectorBytesOf(vector, slicedBatch);
    summedBytes += vectorBytes;
    if (vector.kind === 'vec') largestShare = Math.max(largestShare, vectorBytes / 4 / floats);
    else if (vector.kind === 'text' || vector.kind === 'dict') largestShare = Math.max(largestShare, vectorBytes / textBytes);
  }
  return Math.max(largestShare, summedBytes / bytes);
}

function vectorBytesOf(vector: Vector, slicedBatch: OutputBatch): number {
  if (vector.kind === 'vec') return slicedBatch.count * vector.dims * 4;
  if (vector.kind === 'text') return sliceTextBytes(vector.offsets, slicedBatch);
  if (vector.kind !== 'dict') return slicedBatch.count * 8;
  // A dictionary does not tell how long its texts are: a few of the batch's are looked at.
  let sampledBytes = 0;
  for (let sampleOrdinal = 0; sampleOrdinal < textRowsSampled; sampleOrdinal++) {
    const sampledRow = sliceRowAt(slicedBatch, Math.floor((sampleOrdinal * slicedBatch.count) / textRowsSampled));
    if (vector.nulls?.[sampledRow] !== 1) sampledBytes += vector.dictionary.text(vector.values[sampledRow]!).length;
  }
  return (sampledBytes * slicedBatch.count) / textRowsSampled;
}

function sliceTextBytes(offsets: Uint32Array, slicedBatch: OutputBatch): number {
  const { selection, first, count } = slicedBatch;
  if (selection === null) return offsets[first + count]! - offsets[first]!;
  let selectedTextBytes = 0;
  for (let i = 0; i < count; i++) selectedTextBytes += offsets[selection[i]! + 1]! - offsets[selection[i]!]!;
  return selectedTextBytes;
}

function sliceRowAt({ selection, first }: OutputBatch, i: number): number {
  return selection === null ? first + i : selection[i]!;
}

const textRowsSampled = 16;
