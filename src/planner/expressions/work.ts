/**
 * The work of expressions, in nanoseconds as functions state it. A kernel stops behind the row with which it has done what one turn
 * may hold; whoever runs it goes on with the other rows after others had their turns, and the deadline ends it there. One row may do
 * so much and no more: what can't be split is refused before it begins.
 */
import { ServiceError } from '../../errors.ts';

/** What a function costs: a call, and each character that it takes or yields. */
export interface Cost {
  readonly call: number;
  readonly character: number;
}

/** One thread runs one kernel at a time: whoever begins one sets these. */
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
