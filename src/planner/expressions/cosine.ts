/** How alike two vectors are, as every answer says it: sums of doubles in the order of components, so the bits are the same anywhere. */

export function squareOf(values: Float32Array, start: number, dims: number): number {
  let sum = 0;
  for (let k = 0; k < dims; k++) {
    const x = values[start + k]!;
    sum += x * x;
  }
  return sum;
}

/** A direction that rows are compared with. */
export class Direction {
  readonly values: Float32Array;
  readonly #square: number;

  /** Not all zeros. */
  constructor(values: Float32Array) {
    this.values = values;
    this.#square = squareOf(values, 0, values.length);
  }

  get dims(): number {
    return this.values.length;
  }

  get length(): number {
    return Math.sqrt(this.#square);
  }

  /** The vector at length 1, as far as 32 bits hold it. */
  unit(): Float32Array {
    const { length } = this;
    return this.values.map((value) => value / length);
  }

  /** Cosine of the angle to the vector at `start`, from -1 to 1; a vector of zeros has no direction and counts as at a right angle. */
  cosine(values: Float32Array, start: number): number {
    const { values: own } = this;
    let dot = 0;
    let square = 0;
    for (let k = 0; k < own.length; k++) {
      const x = values[start + k]!;
      dot += own[k]! * x;
      square += x * x;
    }
    if (square === 0) return 0;
    return Math.max(-1, Math.min(1, dot / Math.sqrt(this.#square * square)));
  }
}

/**
 * Most by which an estimate in 32 bits may differ from the cosine: the rounding of a product, of the sums in sixteen lanes and of
 * the rest, of two square roots and of the direction's own length, counted generously.
 */
export function estimateError(dims: number): number {
  return (dims / 4 + 32) * 2 ** -23;
}
