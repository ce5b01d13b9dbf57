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

/** Between the vector at `start` and a point. */
export function distance(values: Float32Array, start: number, dims: number, point: readonly number[]): number {
  if (point.length !== dims) {
    throw new ServiceError('REL_INVALID', `DIST has ${point.length} coordinates, the vectors have ${dims}`);
  }
  let sum = 0;
  for (let k = 0; k < dims; k++) {
    const difference = values[start + k]! - point[k]!;
    sum += difference * difference;
  }
  return Math.sqrt(sum);
}

/** A vector of the statement as rows are compared with it: of 32-bit floats, as theirs are. */
export function direction(point: readonly number[]): Direction {
  const values = Float32Array.from(point);
  if (!values.every(Number.isFinite)) throw new ServiceError('REL_INVALID', 'a vector is of finite 32-bit floats');
  if (values.every((value) => value === 0)) {
    throw new ServiceError('REL_INVALID', 'a vector of zeros has no direction: no row is like it');
  }
  return new Direction(values);
}

/** Between the vector at `start` and a direction. */
export function cosine(values: Float32Array, start: number, dims: number, to: Direction): number {
  if (to.dims !== dims) throw new ServiceError('REL_INVALID', `SIMILAR is given ${to.dims} numbers, the vectors have ${dims}`);
  return to.cosine(values, start);
}

/** Text without its case, for comparisons that ignore it. */
export function foldCase(text: string): string {
  return text.toLowerCase();
}
