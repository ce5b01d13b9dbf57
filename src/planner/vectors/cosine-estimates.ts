/**
 * Estimates of cosines, by the loop of `kernels/vector-kernels.ts` over vectors where they rest. Vectors of a segment that still
 * grows rest in no memory that the loop can reach: they are copied into one, some at a time.
 */
import { memoryOf, type Workspace, workspaceIn } from '../../log/values/column-memory.ts';
import type { Batch } from '../operators/operator.ts';
import type { VectorColumn } from './vector-column.ts';
import { kernelsIn } from './vector-kernels.ts';

const wasmPageBytes = 65_536;
/** Bytes of vectors that are copied at a time. */
const copiedVectorBytes = 1 << 20;

/** Rows whose estimates are made in one call, so that their numbers have room beside the vectors. */
const estimatedRowsAtOnce = 8_192;

/** Estimates for one direction. Must be closed after the last use. */
export class Estimates {
  readonly #unitQuery: Float32Array;
  readonly #estimateWorkspaces = new Map<WebAssembly.Memory, Workspace>();
  #vectorCopies: WebAssembly.Memory | null = null;

  /** `unitQuery` has the length 1. */
  constructor(unitQuery: Float32Array) {
    this.#unitQuery = unitQuery;
  }

  /** By place in the batch; NaN where nothing is known. Rows without a vector have an arbitrary value. */
  estimate(vectorColumn: VectorColumn, { selection, first, count }: Batch, cosinesInto: Float32Array): void {
    const vectorMemory = memoryOf(vectorColumn.values);
    const estimateWorkspace = vectorMemory && this.#estimateWorkspace(vectorMemory);
    for (let firstEstimated = 0; firstEstimated < count; firstEstimated += estimatedRowsAtOnce) {
      const estimatedRows =
        selection === null ? null : selection.subarray(firstEstimated, Math.min(count, firstEstimated + estimatedRowsAtOnce));
      const rowCount = estimatedRows === null ? Math.min(count - firstEstimated, estimatedRowsAtOnce) : estimatedRows.length;
      const estimatesInto = cosinesInto.subarray(firstEstimated, firstEstimated + rowCount);
      if (estimateWorkspace)
        this.#estimateInMemory(vectorColumn, estimateWorkspace, estimatedRows, first + firstEstimated, rowCount, estimatesInto);
      else this.#estimateCopies(vectorColumn, estimatedRows, first + firstEstimated, rowCount, estimatesInto);
    }
  }

  close(): void {
    for (const estimateWorkspace of this.#estimateWorkspaces.values()) estimateWorkspace.release();
    this.#estimateWorkspaces.clear();
  }

  #estimateInMemory(
    { values, dims }: VectorColumn,
    { memory, bytes }: Workspace,
    rows: Int32Array | null,
    first: number,
    count: number,
    into: Float32Array,
  ): void {
    const query = bytes.byteOffset;
    const selection = query + this.#unitQuery.byteLength;
    const out = selection + estimatedRowsAtOnce * 4;
    if (rows) new Int32Array(memory.buffer, selection, count).set(rows);
    kernelsIn(memory).cosines(values.byteOffset, dims, query, rows ? selection : 0, first, count, out);
    into.set(new Float32Array(memory.buffer, out, count));
  }

  #estimateCopies(
    { values, dims }: VectorColumn,
    estimatedRows: Int32Array | null,
    first: number,
    count: number,
    cosinesInto: Float32Array,
  ): void {
    const vectorBytes = dims * 4;
    const copiedRows = Math.max(1, Math.floor(copiedVectorBytes / vectorBytes));
    const copyMemory = (this.#vectorCopies ??= this.#newVectorCopies(copiedRows * vectorBytes));
    const queryOffset = wasmPageBytes;
    const cosinesOffset = queryOffset + this.#unitQuery.byteLength;
    const copiesOffset = cosinesOffset + copiedRows * 4;
    new Float32Array(copyMemory.buffer, queryOffset, dims).set(this.#unitQuery);
    for (let firstCopied = 0; firstCopied < count; firstCopied += copiedRows) {
      const rowCount = Math.min(copiedRows, count - firstCopied);
      const copiedVectors = new Float32Array(copyMemory.buffer, copiesOffset, rowCount * dims);
      if (estimatedRows === null)
        copiedVectors.set(values.subarray((first + firstCopied) * dims, (first + firstCopied + rowCount) * dims));
      else
        for (let k = 0; k < rowCount; k++) {
          const copiedRow = estimatedRows[firstCopied + k]!;
          copiedVectors.set(values.subarray(copiedRow * dims, (copiedRow + 1) * dims), k * dims);
        }
      kernelsIn(copyMemory).cosines(copiesOffset, dims, queryOffset, 0, 0, rowCount, cosinesOffset);
      cosinesInto.set(new Float32Array(copyMemory.buffer, cosinesOffset, rowCount), firstCopied);
    }
  }

  #estimateWorkspace(memory: WebAssembly.Memory): Workspace | null {
    const knownWorkspace = this.#estimateWorkspaces.get(memory);
    if (knownWorkspace) return knownWorkspace;
    const workspace = workspaceIn(memory, this.#unitQuery.byteLength + estimatedRowsAtOnce * 8);
    if (workspace === null) return null;
    this.#estimateWorkspaces.set(memory, workspace);
    new Float32Array(memory.buffer, workspace.bytes.byteOffset, this.#unitQuery.length).set(this.#unitQuery);
    return workspace;
  }

  #newVectorCopies(vectorBytes: number): WebAssembly.Memory {
    const wasmPages = Math.ceil((vectorBytes * 2 + this.#unitQuery.byteLength) / wasmPageBytes) + 2;
    return new WebAssembly.Memory({ initial: wasmPages, maximum: wasmPages, shared: true });
  }
}
