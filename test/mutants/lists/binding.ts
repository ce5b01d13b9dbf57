/** Mistakes in questions over several tables: names, joins, sets, recursion, and the passes over trees. */
import type { Mutant } from '../mutant.ts';

export const mutants: readonly Mutant[] = [
  {
    name: 'binding: a query without a row is what its expression makes of NULLs',
    file: 'src/planner/passes/decorrelate.ts',
    find: "apply.type === 'single' || apply.type === 'left' ? withoutRowNull(lifted) : lifted",
    replace: 'lifted',
    killedBy: ['test/planner/queries.test.ts', 'test/planner/sql-wide-differential.test.ts'],
  },
  {
    name: 'binding: an aggregate of columns around adds up one row of each of these',
    file: 'src/planner/binding/aggregate-binder.ts',
    find: "if (!readsKind('outer') || readsKind('column')) return;",
    replace: 'return;',
    killedBy: ['test/planner/queries.test.ts'],
  },
  {
    name: 'binding: an aggregate without keys has no row where it has nothing to add up, for what lies over it',
    file: 'src/planner/passes/decorrelate.ts',
    find: 'if (!liftedInput || liftedInput.isBare || liftedInput.outputs.some',
    replace: 'if (!liftedInput || liftedInput.outputs.some',
    killedBy: ['test/planner/queries.test.ts'],
  },
];
