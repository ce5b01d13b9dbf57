/** A job for tests of the worker seam, in a file that a thread can load by itself. */
import type { Job } from '../../src/log/workers.ts';

/** Adds up what it is asked; refuses to go down, and dies of a zero. */
export const sums: Job<{ readonly shared: Int32Array; readonly from: number }, number, number> = {
  module: import.meta.url,
  name: 'sums',
  begin({ shared, from }) {
    let sum = from;
    return (by) => {
      if (by < 0) throw new RangeError('sums only rise');
      if (by === 0) process.exit(3);
      sum += by;
      Atomics.store(shared, 0, sum);
      return sum;
    };
  },
};
