/** How alike two vectors are, as every answer says it: sums of doubles in the order of components, so the bits are the same anywhere. */

export function squareOf(vectorComponents: Float32Array, start: number, dims: number): number {
  let squareSum = 0;
  for (let k = 0; k < dims; k++) {
    const component = vectorComponents[start + k]!;
    squareSum += component * component;
  }
  return squareSum;
}

/** A direction that rows are compared with. */
export class Direction {
  readonly values: Float32Array;
  readonly #squaredLength: number;

  /** Not all zeros. */
  constructor(values: Float32Array) {
    this.values = values;
    this.#squaredLength = squareOf(values, 0, values.length);
  }

  get dims(): number {
    return this.values.length;
  }

  get length(): number {
    return Math.sqrt(this.#squaredLength);
  }

  /** The vector at length 1, as far as 32 bits hold it. */
  unit(): Float32Array {
    const { length: vectorLength } = this;
    return this.values.map((component) => component / vectorLength);
  }

  /** Cosine of the angle to the vector at `start`, from -1 to 1; a vector of zeros has no direction and counts as at a right angle. */
  cosine(values: Float32Array, start: number): number {
    const { values: directionComponents } = this;
    let dotProduct = 0;
    let rowSquare = 0;
    for (let k = 0; k < directionComponents.length; k++) {
      const rowComponent = values[start + k]!;
      dotProduct += directionComponents[k]! * rowComponent;
      rowSquare += rowComponent * rowComponent;
    }
    if (rowSquare === 0) return 0;
    return Math.max(-1, Math.min(1, dotProduct / Math.sqrt(this.#squaredLength * rowSquare)));
  }
}

/**
 * Most by which an estimate in 32 bits may differ from the cosine: the rounding of a product, of the sums in sixteen lanes and of
 * the rest, of two square roots and of the direction's own length, counted generously.
 */
export function estimateError(dims: number): number {
  return (dims / 4 + 32) * 2 ** -23;
}
