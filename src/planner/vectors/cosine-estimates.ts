/**
 * Estimates of cosines, by the loop of `kernels/vector-kernels.ts` over vectors where they rest. Vectors of a segment that still
 * grows rest in no memory that the loop can reach: they are copied into one, some at a time.
 */
import { memoryOf, type Workspace, workspaceIn } from '../../log/values/column-memory.ts';
import type { Batch } from '../operators/operator.ts';
import type { VectorColumn } from './vector-column.ts';
import { kernelsIn } from './vector-kernels.ts';

const pageBytes = 65_536;
/** Bytes of vectors that are copied at a time. */
const copiedBytes = 1 << 20;

/** Rows whose estimates are made in one call, so that their numbers have room beside the vectors. */
const rowsAtOnce = 8_192;

/** Estimates for one direction. Must be closed after the last use. */
export class Estimates {
  readonly #unit: Float32Array;
  readonly #workspaces = new Map<WebAssembly.Memory, Workspace>();
  #copies: WebAssembly.Memory | null = null;

  /** `unit` has the length 1. */
  constructor(unit: Float32Array) {
    this.#unit = unit;
  }

  /** By place in the batch; NaN where nothing is known. Rows without a vector have an arbitrary value. */
  estimate(column: VectorColumn, { selection, first, count }: Batch, into: Float32Array): void {
    const memory = memoryOf(column.values);
    const workspace = memory && this.#workspace(memory);
    for (let from = 0; from < count; from += rowsAtOnce) {
      const rows = selection === null ? null : selection.subarray(from, Math.min(count, from + rowsAtOnce));
      const rowCount = rows === null ? Math.min(count - from, rowsAtOnce) : rows.length;
      const target = into.subarray(from, from + rowCount);
      if (workspace) this.#estimateInMemory(column, workspace, rows, first + from, rowCount, target);
      else this.#estimateCopies(column, rows, first + from, rowCount, target);
    }
  }

  close(): void {
    for (const workspace of this.#workspaces.values()) workspace.release();
    this.#workspaces.clear();
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
    const selection = query + this.#unit.byteLength;
    const out = selection + rowsAtOnce * 4;
    if (rows) new Int32Array(memory.buffer, selection, count).set(rows);
    kernelsIn(memory).cosines(values.byteOffset, dims, query, rows ? selection : 0, first, count, out);
    into.set(new Float32Array(memory.buffer, out, count));
  }

  #estimateCopies(
    { values, dims }: VectorColumn,
    rows: Int32Array | null,
    first: number,
    count: number,
    into: Float32Array,
  ): void {
    const vectorBytes = dims * 4;
    const step = Math.max(1, Math.floor(copiedBytes / vectorBytes));
    const memory = (this.#copies ??= this.#newCopies(step * vectorBytes));
    const query = pageBytes;
    const out = query + this.#unit.byteLength;
    const at = out + step * 4;
    new Float32Array(memory.buffer, query, dims).set(this.#unit);
    for (let from = 0; from < count; from += step) {
      const rowCount = Math.min(step, count - from);
      const target = new Float32Array(memory.buffer, at, rowCount * dims);
      if (rows === null) target.set(values.subarray((first + from) * dims, (first + from + rowCount) * dims));
      else
        for (let k = 0; k < rowCount; k++) {
          const row = rows[from + k]!;
          target.set(values.subarray(row * dims, (row + 1) * dims), k * dims);
        }
      kernelsIn(memory).cosines(at, dims, query, 0, 0, rowCount, out);
      into.set(new Float32Array(memory.buffer, out, rowCount), from);
    }
  }

  #workspace(memory: WebAssembly.Memory): Workspace | null {
    const known = this.#workspaces.get(memory);
    if (known) return known;
    const workspace = workspaceIn(memory, this.#unit.byteLength + rowsAtOnce * 8);
    if (workspace === null) return null;
    this.#workspaces.set(memory, workspace);
    new Float32Array(memory.buffer, workspace.bytes.byteOffset, this.#unit.length).set(this.#unit);
    return workspace;
  }

  #newCopies(vectorBytes: number): WebAssembly.Memory {
    const pages = Math.ceil((vectorBytes * 2 + this.#unit.byteLength) / pageBytes) + 2;
    return new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  }
}
