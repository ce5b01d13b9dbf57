/** Mistakes about what a grant hides: masked columns in plans, and what outlives its statement. */
import type { Mutant } from '../mutant.ts';

const scope = 'src/planner/binding/scope.ts';
const groups = 'src/planner/binding/group-binder.ts';
const order = 'src/planner/binding/sort-order.ts';
const sets = 'src/planner/binding/set-operations.ts';
const access = 'src/planner/passes/choose-access-paths.ts';
const views = 'src/planner/continuous/views/materialized-views.ts';

const byMasks = ['test/planner/masks.test.ts'];
const byGenerated = ['test/planner/masks-generated.test.ts'];
const byGoverned = ['test/planner/masks-governed.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'masks: nothing is refused',
    file: scope,
    find: 'if (column)\n',
    replace: 'if (column && use === "")\n',
    killedBy: byMasks,
  },
  {
    name: 'masks: groups by what is masked',
    file: groups,
    find: "scope.refuseMasked(groupBound, 'GROUP BY', expression.location);",
    replace: '',
    killedBy: byMasks,
  },
  {
    name: 'masks: orders by what is masked',
    file: order,
    find: "if (moreKeys) scope.refuseMasked(bound, 'ORDER BY', item.expression.location);",
    replace: '',
    killedBy: byMasks,
  },
  {
    name: 'masks: UNION compares how cells are shown',
    file: sets,
    find: "const shownColumns = op === 'union all' ?",
    replace: "const shownColumns = op !== 'except' ?",
    killedBy: [...byMasks, ...byGenerated],
  },
  {
    name: 'masks: zones of a masked column say which rows are read',
    file: access,
    find: 'if ([...columnsIn(conjunct)].some((index) => scan.masked.has(scan.columns[index]!.name))) continue;',
    replace: '',
    killedBy: [...byMasks, ...byGenerated],
  },
  {
    name: 'masks: plans are shared by grants',
    file: 'src/planner/plans/plan-names.ts',
    find: 'return maskedColumns.size === 0 ? typeKey : `${typeKey}.${this.#maskNumber(maskedColumns)}`;',
    replace: 'return typeKey;',
    killedBy: byMasks,
  },
  {
    name: 'masks: a view made under one grant serves another',
    file: views,
    find: 'const viewEntryKey = `${servedView.position}\\u0000${snapshot.grantKey}`;',
    replace: 'const viewEntryKey = `${servedView.position}`;',
    killedBy: byGoverned,
  },
];
