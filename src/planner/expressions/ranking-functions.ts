/** Functions of numbers that ranking is made of. NULL in, NULL out, but for `greatest` and `known`; infinity is an overflow. */
import { ServiceError } from '../../errors.ts';
import { Direction } from './cosine.ts';

export type ScalarFunction = 'exp' | 'abs' | 'elapsed' | 'nanoseconds' | 'greatest' | 'known' | 'distance' | 'cosine';

/** Nanoseconds from an instant to now, 0 for one that is still to come. */
export function elapsedNs(now: bigint, instant: bigint): number {
  return instant >= now ? 0 : Number(now - instant);
}

export function nanoseconds(seconds: number): number {
  return seconds * 1e9;
}

/** Between the vector at `vectorStart` and a point. */
export function distance(vectorNumbers: Float32Array, vectorStart: number, dims: number, queryPoint: readonly number[]): number {
  if (queryPoint.length !== dims) {
    throw new ServiceError('REL_INVALID', `DIST has ${queryPoint.length} coordinates, the vectors have ${dims}`);
  }
  let squareSum = 0;
  for (let k = 0; k < dims; k++) {
    const coordinateGap = vectorNumbers[vectorStart + k]! - queryPoint[k]!;
    squareSum += coordinateGap * coordinateGap;
  }
  return Math.sqrt(squareSum);
}

/** A vector of the statement as rows are compared with it: of 32-bit floats, as theirs are. */
export function direction(directionPoint: readonly number[]): Direction {
  const directionNumbers = Float32Array.from(directionPoint);
  if (!directionNumbers.every(Number.isFinite)) throw new ServiceError('REL_INVALID', 'a vector is of finite 32-bit floats');
  if (directionNumbers.every((component) => component === 0)) {
    throw new ServiceError('REL_INVALID', 'a vector of zeros has no direction: no row is like it');
  }
  return new Direction(directionNumbers);
}

/** Between the vector at `vectorStart` and a direction. */
export function cosine(vectorNumbers: Float32Array, vectorStart: number, dims: number, queryDirection: Direction): number {
  if (queryDirection.dims !== dims)
    throw new ServiceError('REL_INVALID', `SIMILAR is given ${queryDirection.dims} numbers, the vectors have ${dims}`);
  return queryDirection.cosine(vectorNumbers, vectorStart);
}

/** Text without its case, for comparisons that ignore it. */
export function foldCase(unfoldedText: string): string {
  return unfoldedText.toLowerCase();
}
