/**
 * Vectors of a sealed segment in one byte a component, for telling which rows can't be among the best: a quarter of the memory
 * that all of the vectors take is read. With u the vector at length 1, a row has whole numbers c, a scale s and a bound on the
 * length of u - s * c, so for any q of length 1 the cosine is s * (q . c), give or take the bound.
 */
import type { CoarseCells } from '../../../../log/values/columns.ts';
import type { Progress, SteppedJob } from '../../../../log/threads/stepping-job.ts';

/** Rises with every change of what the bytes are. */
export const COARSE_FORMAT = 1;
/** Greatest magnitude of a component. */
export const COARSE_MOST = 127;
/** A row has so many components, or a multiple of it: those behind its dimensions are zeros. */
const COMPONENTS_TOGETHER = 16;
/** Components between two steps. */
const COARSE_STEP_COMPONENTS = 1 << 18;

export interface VectorCells {
  readonly rows: number;
  readonly dims: number;
  readonly values: Float32Array;
  /** 1 where a row has no vector. */
  readonly absent: Uint8Array | null;
}

/** Scales, bounds and components, one behind the other, in one range of memory. */
export class CoarseVectors implements CoarseCells {
  readonly rows: number;
  readonly bytes: Uint8Array;
  readonly width: number;

  /** `bytes` are those that the job gave for so many rows. */
  constructor({ rows, dims }: Pick<VectorCells, 'rows' | 'dims'>, bytes: Uint8Array) {
    this.rows = rows;
    this.width = coarseWidthOf(dims);
    this.bytes = bytes;
  }

  get scales(): number {
    return this.bytes.byteOffset;
  }

  get bounds(): number {
    return this.scales + this.rows * 4;
  }

  get components(): number {
    return this.bytes.byteOffset + coarseComponentsAt(this.rows);
  }
}

export function coarseBytes({ rows, dims }: Pick<VectorCells, 'rows' | 'dims'>): number {
  return coarseComponentsAt(rows) + rows * coarseWidthOf(dims);
}

function coarseWidthOf(dims: number): number {
  return Math.ceil(dims / COMPONENTS_TOGETHER) * COMPONENTS_TOGETHER;
}

function coarseComponentsAt(rows: number): number {
  return Math.ceil((rows * 8) / COMPONENTS_TOGETHER) * COMPONENTS_TOGETHER;
}

export const coarseVectorsJob: SteppedJob<VectorCells, Uint8Array> = {
  module: import.meta.url,
  name: 'coarseVectorsJob',
  steps: coarseSteps,
};

function* coarseSteps(vectorCells: VectorCells): Generator<Progress, Uint8Array> {
  const { rows, dims, absent } = vectorCells;
  const coarseBuffer = new SharedArrayBuffer(coarseBytes(vectorCells));
  const coarseScales = new Float32Array(coarseBuffer, 0, rows);
  const coarseBounds = new Float32Array(coarseBuffer, rows * 4, rows);
  const coarseComponents = new Int8Array(coarseBuffer, coarseComponentsAt(rows));
  const coarseWidth = coarseWidthOf(dims);
  const rowsPerStep = Math.max(1, Math.floor(COARSE_STEP_COMPONENTS / dims));
  for (let row = 0; row < rows; row++) {
    if (absent?.[row] !== 1) {
      const { scale, bound } = coarseRow(vectorCells.values, row * dims, dims, coarseComponents, row * coarseWidth);
      coarseScales[row] = scale;
      coarseBounds[row] = bound;
    }
    if (row % rowsPerStep === rowsPerStep - 1) yield { done: row, of: rows };
  }
  return new Uint8Array(coarseBuffer);
}

/** A row without a direction has the cosine 0 with all; one of numbers without an end has a bound that rules out nothing. */
function coarseRow(
  vectorValues: Float32Array,
  vectorStart: number,
  dims: number,
  coarseComponents: Int8Array,
  coarseStart: number,
): { readonly scale: number; readonly bound: number } {
  let squareSum = 0;
  let mostComponent = 0;
  for (let k = 0; k < dims; k++) {
    const vectorComponent = vectorValues[vectorStart + k]!;
    squareSum += vectorComponent * vectorComponent;
    mostComponent = Math.max(mostComponent, Math.abs(vectorComponent));
  }
  if (squareSum === 0) return { scale: 0, bound: 0 };
  if (!Number.isFinite(squareSum)) return { scale: 0, bound: Number.POSITIVE_INFINITY };
  const vectorLength = Math.sqrt(squareSum);
  const scale = Math.fround(mostComponent / vectorLength / COARSE_MOST);
  let squaredError = 0;
  for (let k = 0; k < dims; k++) {
    const unitComponent = vectorValues[vectorStart + k]! / vectorLength;
    const coarseComponent = Math.max(-COARSE_MOST, Math.min(COARSE_MOST, Math.round(unitComponent / scale)));
    coarseComponents[coarseStart + k] = coarseComponent;
    squaredError += (unitComponent - scale * coarseComponent) ** 2;
  }
  // A little more, for what is lost where it is kept in 32 bits.
  return { scale, bound: Math.sqrt(squaredError) * (1 + 2 ** -20) };
}
