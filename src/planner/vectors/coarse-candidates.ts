/**
 * Which rows may be among the best, by vectors of one byte a component (`coarse-vectors.ts`): a row is left out only where its
 * bound proves that its computed cosine would be below the wanted one.
 */
import { memoryOf, type Workspace, workspaceIn } from '../../log/values/column-memory.ts';
import type { CoarseCells } from '../../log/values/columns.ts';
import type { Batch } from '../operators/operator.ts';
import type { Direction } from '../expressions/cosine.ts';
import { kernelsIn } from './vector-kernels.ts';

/** Rows that are looked at in one call, so that their numbers have room. */
export const candidatesAtOnce = 8_192;
/** Most that rounding can do to an estimate, and to the cosine itself, counted generously. */
const rounding = 2 ** -18;
const mostShort = 32_767;
const mostSum = 2 ** 31 - 1;
const coarseMost = 127;

/** Candidates for one direction. Must be closed after the last use. */
export class Candidates {
  readonly #query: Int16Array;
  readonly #scale: number;
  /** Most that the direction in 16 bits makes of a difference, with what rounding does. */
  readonly #error: number;
  readonly #workspaces = new Map<WebAssembly.Memory, Workspace>();

  constructor(direction: Direction, width: number) {
    const { values, length } = direction;
    const most = values.reduce((greatest, value) => Math.max(greatest, Math.abs(value)), 0) / length;
    // Limits the magnitude so that the sum of products fits 32 bits for every row.
    const magnitude = Math.min(mostShort, Math.floor(mostSum / (coarseMost * width)));
    const scale = Math.fround(most / magnitude);
    let left = 0;
    this.#query = new Int16Array(width);
    for (const [k, value] of values.entries()) {
      const component = Math.max(-magnitude, Math.min(magnitude, Math.round(value / length / scale)));
      this.#query[k] = component;
      left += (value / length - scale * component) ** 2;
    }
    this.#scale = scale;
    // A row's bytes decode to a vector at most twice as long as the row at length 1.
    this.#error = 2 * Math.sqrt(left) + rounding;
  }

  /**
   * Places in the batch of rows whose cosine may be `least` or more, from `into[0]` on; gives their number. Rows without a vector
   * may be among them. null where memory has no room.
   */
  find(coarse: CoarseCells, { selection, first, count }: Batch, least: number, into: Int32Array): number | null {
    const memory = memoryOf(coarse.bytes);
    const workspace = memory && this.#workspace(memory);
    if (!workspace) return null;
    const { buffer } = workspace.memory;
    const query = workspace.bytes.byteOffset;
    const rows = query + this.#query.byteLength;
    const candidateBytes = rows + candidatesAtOnce * 4;
    const { components, width, scales, bounds } = coarse;
    const kernels = kernelsIn(workspace.memory);
    let candidateCount = 0;
    for (let from = 0; from < count; from += candidatesAtOnce) {
      const step = Math.min(count - from, candidatesAtOnce);
      if (selection) new Int32Array(buffer, rows, step).set(selection.subarray(from, from + step));
      const number = kernels.candidates(
        components,
        width,
        scales,
        bounds,
        query,
        this.#scale,
        least - this.#error,
        selection ? rows : 0,
        first + from,
        step,
        candidateBytes,
      );
      const candidateRows = new Int32Array(buffer, candidateBytes, number);
      for (let k = 0; k < number; k++) into[candidateCount++] = from + candidateRows[k]!;
    }
    return candidateCount;
  }

  close(): void {
    for (const workspace of this.#workspaces.values()) workspace.release();
    this.#workspaces.clear();
  }

  #workspace(memory: WebAssembly.Memory): Workspace | null {
    const known = this.#workspaces.get(memory);
    if (known) return known;
    const workspace = workspaceIn(memory, this.#query.byteLength + candidatesAtOnce * 8);
    if (workspace === null) return null;
    this.#workspaces.set(memory, workspace);
    new Int16Array(memory.buffer, workspace.bytes.byteOffset, this.#query.length).set(this.#query);
    return workspace;
  }
}
