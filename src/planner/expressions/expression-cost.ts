/**
 * The work of expressions, in nanoseconds as functions state it. A kernel stops after the row that fills its turn. Its caller
 * resumes with the remaining rows after other requests had their turns; a deadline ends it between turns. Work on one row can't
 * be split: it is refused beforehand if it exceeds the limit.
 */
import { ServiceError } from '../../errors.ts';

/** The cost of a function in ns: per call, and per character that it takes or yields. */
export interface Cost {
  readonly call: number;
  readonly character: number;
}

/** Set by each kernel as it begins: one thread runs one kernel at a time. */
export const work = {
  done: 0,
  /** Rows that the kernel left. */
  left: 0,
};

export const turnMost = 2_000_000;
export const rowMost = 25_000_000;

/** Throws where a row would cost more than any may. */
export function spend(cost: number): void {
  work.done += cost;
  if (work.done > turnMost + rowMost) {
    throw new ServiceError(
      'REL_INVALID',
      'an expression is too much work for one row: its texts, or the patterns that it applies to them, are too long',
    );
  }
}
