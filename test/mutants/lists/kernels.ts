/** Mistakes in kernels, in what is asked of them, and in what they are given. */
import type { Mutant } from '../mutant.ts';

export const mutants: readonly Mutant[] = [
  {
    name: 'kernels: generated code goes through a batch in one turn, whatever its rows cost',
    file: 'src/planner/expressions/kernel-writer.ts',
    find: 'if (work.done > turnMost) {',
    replace: 'if (false) {',
    killedBy: ['test/planner/executor/../operators/limits.test.ts'],
  },
  {
    name: 'kernels: rows that were left are not gone through again',
    file: 'src/planner/operators/predicate.ts',
    find: 'this.#unfilteredRows = lastRows(unfilteredRows, work.left);',
    replace: 'return this.#keptCount;',
    killedBy: ['test/planner/executor/../operators/limits.test.ts'],
  },
  {
    name: 'kernels: a row may cost whatever it likes',
    file: 'src/planner/expressions/expression-cost.ts',
    find: 'if (work.done > turnMost + rowMost) {',
    replace: 'if (false) {',
    killedBy: ['test/planner/expressions/functions.test.ts', 'test/planner/expressions/documents/document-filter.test.ts'],
  },
];
