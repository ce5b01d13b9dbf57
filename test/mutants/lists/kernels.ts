/** Mistakes in kernels, in what is asked of them, and in what they are given. */
import type { Mutant } from '../mutant.ts';

const file = (name: string): string => `src/planner/kernels/${name}.ts`;
const killedBy = ['test/planner/kernels/kernel-answers.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'kernels: below a number is also the number itself',
    file: file('column-tests'),
    find: 'most: below(value) };',
    replace: 'most: value };',
    killedBy,
  },
  {
    name: 'kernels: an integer above a fraction begins at its floor',
    file: file('column-tests'),
    find: 'return clamped(up, i64Most);',
    replace: 'return clamped(down, i64Most);',
    killedBy: ['test/planner/kernels/column-tests.test.ts'],
  },
  {
    name: 'kernels: a column of integers under the type number is compared exactly',
    file: file('column-tests'),
    find: "return column.type === 'number' ? null : ",
    replace: 'return ',
    killedBy: ['test/planner/kernels/column-tests.test.ts'],
  },
  {
    name: 'kernels: a condition that holds for NULL is taken for one on texts',
    file: file('column-tests'),
    find: 'if ((table.ofNull & 1) === 1) return null;',
    replace: '',
    killedBy,
  },
  {
    name: 'kernels: NULL is what lies under it',
    file: file('row-mask'),
    find: 'if (marked !== null) kernels.keepUnmarked(marked, 0, to, words);',
    replace: '',
    killedBy,
  },
  {
    name: 'kernels: rows behind the last one asked for pass',
    file: file('row-mask'),
    find: 'if (end !== 0) mask[words - 1]! &= (1 << end) - 1;',
    replace: '',
    killedBy,
  },
  {
    name: 'kernels: rows before the first one asked for pass',
    file: file('row-mask'),
    find: 'mask[0]! &= -1 << (first & 31);',
    replace: '',
    killedBy,
  },
  {
    name: 'kernels: closed versions are visible',
    file: file('row-mask'),
    find: 'if (!sift?.closings) return;',
    replace: 'if (sift !== null) return;',
    killedBy,
  },
  {
    name: 'kernels: pairs of keys count their rows one group too far',
    file: file('group-kernels'),
    find: 'into, rows - 4] as const',
    replace: 'into, rows] as const',
    killedBy,
  },
  {
    name: 'kernels: sums made while groups are found begin at nothing in each block',
    file: file('group-kernels'),
    find: 'room.sums.set(this.#accumulators[sum]!.share(batch, known).doubles.subarray(0, known));',
    replace: 'room.sums.fill(0, 0, known);',
    killedBy,
  },
  {
    name: 'kernels: where they worked is never given back',
    file: 'src/planner/operators/kernel-filter.ts',
    find: 'this.#mask.release();',
    replace: '',
    killedBy,
  },
  {
    name: 'kernels: where groups were found is never given back',
    file: 'src/planner/operators/aggregate.ts',
    find: 'this.#kernels.release();',
    replace: '',
    killedBy,
  },
  {
    name: 'kernels: what generated code has to ask is not asked',
    file: 'src/planner/operators/kernel-filter.ts',
    find: 'if (found >= 0) return passing(this.#rest, this.#found(block, found));',
    replace: 'if (found >= 0) return this.#found(block, found);',
    killedBy,
  },
  {
    name: 'kernels: with no room to work in every version is visible',
    file: 'src/planner/operators/kernel-filter.ts',
    find: 'if (closings !== null && closings[row]! < closing) continue;',
    replace: '',
    killedBy,
  },
  {
    name: 'kernels: a segment of several paths leaves unsifted',
    file: 'src/projections/rows/scan.ts',
    find: 'if (segment.paths.constant === null || inherited?.touches(segment) || now.validFrom || now.validTo) return rest;',
    replace: 'if (inherited?.touches(segment) || now.validFrom || now.validTo) return rest;',
    killedBy: ['test/projections/unsifted-scan.test.ts'],
  },
  {
    name: 'kernels: what a branch closed of a segment is not looked at',
    file: 'src/projections/rows/scan.ts',
    find: 'inherited?.touches(segment) || now.validFrom',
    replace: 'now.validFrom',
    killedBy: ['test/projections/unsifted-scan.test.ts'],
  },
];
