/** Mistakes in joins, set operations, windows, facets, groups and the codes of sounds. */
import type { Mutant } from '../mutant.ts';

export const mutants: readonly Mutant[] = [
  {
    name: 'operators: of no rows, an ordered answer counts no matches',
    file: 'src/planner/operators/limit.ts',
    find: '&& !this.#letsInputCount',
    replace: '',
    killedBy: ['test/planner/operators/limits.test.ts'],
  },
];
