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
const coarseRounding = 2 ** -18;
const coarseShortMax = 32_767;
const coarseSumMax = 2 ** 31 - 1;
const coarseComponentMax = 127;

/** Candidates for one direction. Must be closed after the last use. */
export class Candidates {
  readonly #coarseQuery: Int16Array;
  readonly #coarseScale: number;
  /** Most that the direction in 16 bits makes of a difference, with what rounding does. */
  readonly #coarseError: number;
  readonly #coarseWorkspaces = new Map<WebAssembly.Memory, Workspace>();

  constructor(direction: Direction, width: number) {
    const { values: directionValues, length: directionLength } = direction;
    const largestComponent =
      directionValues.reduce((greatest, directionValue) => Math.max(greatest, Math.abs(directionValue)), 0) / directionLength;
    // Limits the magnitude so that the sum of products fits 32 bits for every row.
    const coarseMagnitude = Math.min(coarseShortMax, Math.floor(coarseSumMax / (coarseComponentMax * width)));
    const coarseScale = Math.fround(largestComponent / coarseMagnitude);
    let coarseResidual = 0;
    this.#coarseQuery = new Int16Array(width);
    for (const [k, value] of directionValues.entries()) {
      const coarseComponent = Math.max(
        -coarseMagnitude,
        Math.min(coarseMagnitude, Math.round(value / directionLength / coarseScale)),
      );
      this.#coarseQuery[k] = coarseComponent;
      coarseResidual += (value / directionLength - coarseScale * coarseComponent) ** 2;
    }
    this.#coarseScale = coarseScale;
    // A row's bytes decode to a vector at most twice as long as the row at length 1.
    this.#coarseError = 2 * Math.sqrt(coarseResidual) + coarseRounding;
  }

  /**
   * Places in the batch of rows whose cosine may be `leastCosine` or more, from `into[0]` on; gives their number. Rows without a vector
   * may be among them. null where memory has no room.
   */
  find(
    coarseCells: CoarseCells,
    { selection, first, count }: Batch,
    leastCosine: number,
    intoCandidates: Int32Array,
  ): number | null {
    const coarseMemory = memoryOf(coarseCells.bytes);
    const coarseWorkspace = coarseMemory && this.#coarseWorkspace(coarseMemory);
    if (!coarseWorkspace) return null;
    const { buffer } = coarseWorkspace.memory;
    const queryOffset = coarseWorkspace.bytes.byteOffset;
    const rowsOffset = queryOffset + this.#coarseQuery.byteLength;
    const candidateBytes = rowsOffset + candidatesAtOnce * 4;
    const { components, width, scales, bounds } = coarseCells;
    const vectorKernels = kernelsIn(coarseWorkspace.memory);
    let candidateCount = 0;
    for (let firstCandidate = 0; firstCandidate < count; firstCandidate += candidatesAtOnce) {
      const stepRows = Math.min(count - firstCandidate, candidatesAtOnce);
      if (selection)
        new Int32Array(buffer, rowsOffset, stepRows).set(selection.subarray(firstCandidate, firstCandidate + stepRows));
      const number = vectorKernels.candidates(
        components,
        width,
        scales,
        bounds,
        queryOffset,
        this.#coarseScale,
        leastCosine - this.#coarseError,
        selection ? rowsOffset : 0,
        first + firstCandidate,
        stepRows,
        candidateBytes,
      );
      const candidateRows = new Int32Array(buffer, candidateBytes, number);
      for (let k = 0; k < number; k++) intoCandidates[candidateCount++] = firstCandidate + candidateRows[k]!;
    }
    return candidateCount;
  }

  close(): void {
    for (const coarseWorkspace of this.#coarseWorkspaces.values()) coarseWorkspace.release();
    this.#coarseWorkspaces.clear();
  }

  #coarseWorkspace(memory: WebAssembly.Memory): Workspace | null {
    const knownWorkspace = this.#coarseWorkspaces.get(memory);
    if (knownWorkspace) return knownWorkspace;
    const workspace = workspaceIn(memory, this.#coarseQuery.byteLength + candidatesAtOnce * 8);
    if (workspace === null) return null;
    this.#coarseWorkspaces.set(memory, workspace);
    new Int16Array(memory.buffer, workspace.bytes.byteOffset, this.#coarseQuery.length).set(this.#coarseQuery);
    return workspace;
  }
}
