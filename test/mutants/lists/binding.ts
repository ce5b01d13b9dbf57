/** Mistakes in questions over several tables: names, joins, sets, recursion, and the passes over trees. */
import type { Mutant } from '../mutant.ts';

const pushDown = 'src/planner/passes/push-down-filters.ts';
const keys = 'src/planner/passes/find-join-keys.ts';
const prune = 'src/planner/passes/prune-columns.ts';
const simplify = 'src/planner/passes/simplify-expressions.ts';
const scope = 'src/planner/binding/scope.ts';
const select = 'src/planner/binding/select-binder.ts';
const sets = 'src/planner/binding/set-operations.ts';
const recursive = 'src/planner/operators/recursive.ts';
const kept = 'src/planner/operators/kept-rows.ts';
const executor = 'src/planner/executor.ts';
const code = 'src/planner/expressions/kernel-code.ts';

const byPasses = ['test/planner/passes/passes.test.ts'];
const byQueries = ['test/planner/queries.test.ts'];
const byPlans = ['test/planner/plans.test.ts'];
const byTables = ['test/planner/sql-many-tables.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'binding: a condition on the unkept side of an outer join goes below it',
    file: pushDown,
    find: "if (side === 'left' && !keepsRight) toLeft.push(each);",
    replace: "if (side === 'left') toLeft.push(each);",
    killedBy: byPasses,
  },
  {
    name: 'binding: what ON says of the kept side drops its rows',
    file: pushDown,
    find: "if (side === 'left' && !keepsLeft) toLeft.push(each);",
    replace: "if (side === 'left') toLeft.push(each);",
    killedBy: byPasses,
  },
  {
    name: 'binding: the column of the right side is that of the left',
    file: pushDown,
    find: 'index: column.index - width }));',
    replace: 'index: Math.max(0, column.index - width - 1) }));',
    killedBy: byPasses,
  },
  {
    name: 'binding: an index alone decides between integers and numbers',
    file: keys,
    find: 'if (!pair || pair.left.type !== pair.right.type) residual.push(conjunct);',
    replace: 'if (!pair) residual.push(conjunct);',
    killedBy: [...byTables, ...byPlans],
  },
  {
    name: 'binding: an equality within one side becomes a key',
    file: keys,
    find: "if (sides[0] === 'left' && sides[1] === 'right') return { left, right };",
    replace: "if (sides[0] === 'left') return { left, right };",
    killedBy: byPasses,
  },
  {
    name: 'binding: a join drops the columns that only its condition reads',
    file: prune,
    find: 'const used = node.residual ? columnsIn(node.residual, new Set(asked)) : asked;',
    replace: 'const used = asked;',
    killedBy: byPasses,
  },
  {
    name: 'binding: AND of equalities becomes a list',
    file: simplify,
    find: "return bound.kind === 'or' ? withLists(operands) : { ...bound, operands };",
    replace: 'return withLists(operands);',
    killedBy: byQueries,
  },
  {
    name: 'binding: of two columns of one name the first is taken',
    file: scope,
    find: 'if (found && another) {',
    replace: 'if (found && another && qualifier !== null) {',
    killedBy: byQueries,
  },
  {
    name: 'binding: a recursion behind IN reads its own last round',
    file: select,
    find: 'names.map(outsideRecursion)',
    replace: 'names',
    killedBy: byQueries,
  },
  {
    name: 'binding: a union takes integers for numbers without a look',
    file: sets,
    find: "{ kind: 'to-number', operand: column, type: 'number' }",
    replace: "{ ...column, type: 'number' }",
    killedBy: [...byQueries, ...byTables],
  },
  {
    name: 'binding: NULL is unknown even in an empty set',
    file: code,
    find: "if (ok === '0') return { isTrue: '0', isFalse: empty };",
    replace: "if (ok === '0') return never;",
    killedBy: byQueries,
  },
  {
    name: 'binding: a NULL among the rows of a subquery is forgotten',
    file: code,
    find: '(${set}.hasNull ? 0 : 1)',
    replace: '1',
    killedBy: byQueries,
  },
  {
    name: 'binding: a recursion has no end',
    file: recursive,
    find: 'if (++this.#rounds > roundsMax) {',
    replace: 'if (++this.#rounds < 0) {',
    killedBy: byQueries,
  },
  {
    name: 'binding: the step of a recursion goes over all rows again',
    file: recursive,
    find: 'this.#added = this.#sink();\n    this.#current',
    replace: 'this.#current',
    killedBy: byQueries,
  },
  {
    name: 'binding: the last round of a recursion is kept for the next',
    file: executor,
    find: 'if (rounds && !readsWorking(node, rounds.table)) {',
    replace: 'if (rounds) {',
    killedBy: byQueries,
  },
  {
    name: 'binding: rows that are kept come once',
    file: kept,
    find: 'let first = 0;',
    replace: 'let first = rows;',
    killedBy: byQueries,
  },
  {
    name: 'binding: a subquery begins behind the cursor of its statement',
    file: executor,
    find: '? { ...execution, after: null } : execution;',
    replace: '? execution : execution;',
    killedBy: byTables,
  },
  {
    name: 'binding: a query without a row is what its expression makes of NULLs',
    file: 'src/planner/passes/decorrelate.ts',
    find: "apply.type === 'single' ? withoutRowNull(lifted) : lifted",
    replace: 'lifted',
    killedBy: ['test/planner/queries.test.ts'],
  },
  {
    name: 'binding: an aggregate of columns around adds up one row of each of these',
    file: 'src/planner/binding/select-binder.ts',
    find: "if (reads('outer') && !reads('column')) {",
    replace: 'if (false) {',
    killedBy: ['test/planner/queries.test.ts'],
  },
  {
    name: 'binding: an aggregate without keys has no row where it has nothing to add up, for what lies over it',
    file: 'src/planner/passes/decorrelate.ts',
    find: 'if (!input || input.isBare || input.outputs.some',
    replace: 'if (!input || input.outputs.some',
    killedBy: ['test/planner/queries.test.ts'],
  },
];
