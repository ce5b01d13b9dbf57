/** A job for tests of the worker seam, in a file that a thread can load by itself. */
import { ServiceError } from '../../src/errors.ts';
import type { Progress, SteppedJob } from '../../src/log/threads/stepping-job.ts';
import type { Job } from '../../src/log/threads/workers.ts';

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

/** Counts to a number, a step each. */
export const countingJob: SteppedJob<{ readonly to: number; readonly into?: SharedArrayBuffer }, string> = {
  module: import.meta.url,
  name: 'countingJob',
  *steps({ to, into }): Generator<Progress, string> {
    if (to < 0) throw new ServiceError('REL_INVALID', 'a count goes up');
    for (let done = 1; done <= to; done++) {
      if (into) Atomics.store(new Int32Array(into), 0, done);
      yield { done, of: to };
    }
    return `counted ${to}`;
  },
};
