/** Mistakes about what a grant hides: masked columns in plans, and what outlives its statement. */
import type { Mutant } from '../mutant.ts';

const scope = 'src/planner/binding/scope.ts';
const select = 'src/planner/binding/select-binder.ts';
const queries = 'src/planner/binding/query-binder.ts';
const subselects = 'src/planner/binding/subselects.ts';
const sets = 'src/planner/binding/set-operations.ts';
const access = 'src/planner/passes/choose-access-paths.ts';
const sketches = 'src/planner/sketches.ts';
const explain = 'src/planner/explain.ts';
const views = 'src/planner/standing/materialized-views.ts';
const watch = 'src/planner/standing/watch.ts';
const changes = 'src/planner/standing/change-set.ts';
const subscription = 'src/planner/standing/subscription.ts';
const recipe = 'src/planner/exhibits/recipe.ts';
const replay = 'src/planner/exhibits/replay.ts';
const limit = 'src/planner/operators/limit.ts';
const scan = 'src/planner/operators/scan.ts';

const byMasks = ['test/planner/masks.test.ts'];
const byGenerated = ['test/planner/masks-generated.test.ts'];
const byGoverned = ['test/planner/masks-governed.test.ts'];
const byChanges = ['test/planner/standing/change-set.test.ts'];
const byShared = ['test/planner/shared-rows.test.ts'];
const byFigures = ['test/planner/governed-figures.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'masks: nothing is refused',
    file: scope,
    find: 'if (column) throw at(',
    replace: 'if (column && use === "") throw at(',
    killedBy: byMasks,
  },
  {
    name: 'masks: only a column by itself is one',
    file: scope,
    find: 'for (const index of columnsIn(bound)) {',
    replace: "for (const index of bound.kind === 'column' ? columnsIn(bound) : []) {",
    killedBy: byMasks,
  },
  {
    name: 'masks: a column under another name is no longer masked',
    file: select,
    find: 'masked: this.#scope.masked(bound)?.masked, shown: place',
    replace: 'shown: place',
    killedBy: byMasks,
  },
  {
    name: 'masks: groups by what is masked',
    file: select,
    find: "this.#scope.refuseMasked(bound, 'GROUP BY', expression.place);",
    replace: '',
    killedBy: byMasks,
  },
  {
    name: 'masks: orders by what is masked',
    file: select,
    find: "if (!grouped) this.#scope.refuseMasked(bound, 'ORDER BY', item.expression.place);",
    replace: '',
    killedBy: byMasks,
  },
  {
    name: 'masks: tells distinct values apart by how they are shown',
    file: select,
    find: "if (this.#select.distinct) this.#scope.refuseMasked(bound, 'DISTINCT', place);",
    replace: '',
    killedBy: byMasks,
  },
  {
    name: 'masks: windows over what is masked',
    file: select,
    find: 'this.#scope.refuseMasked(this.#scope.column(column), type.toUpperCase(), column.place);',
    replace: 'void [column, type];',
    killedBy: byMasks,
  },
  {
    name: 'masks: counts facets of what is masked',
    file: select,
    find: "this.#scope.refuseMasked(bound, 'FACETS', reference.place);",
    replace: '',
    killedBy: byMasks,
  },
  {
    name: 'masks: a score is made of what is masked',
    file: select,
    find: "this.#scope.refuseMasked(score, 'RANK BY', this.#select.rankBy[0]!.place);",
    replace: '',
    killedBy: byMasks,
  },
  {
    name: 'masks: a set operation orders by what is masked',
    file: queries,
    find: "scope.refuseMasked(key, 'ORDER BY', item.expression.place);",
    replace: '',
    killedBy: byMasks,
  },
  {
    name: 'masks: a subquery shows, and those around it reckon with that',
    file: select,
    find: 'if (this.#request.statement === null) return { columns, leaving: [...named, ...behind] };',
    replace: '',
    killedBy: [...byMasks, ...byGenerated],
  },
  {
    name: 'masks: UNION compares how cells are shown',
    file: sets,
    find: "const shown = op === 'union all' ?",
    replace: "const shown = op !== 'except' ?",
    killedBy: [...byMasks, ...byGenerated],
  },
  {
    name: 'masks: one arm of UNION ALL loses that it is masked',
    file: sets,
    find: 'masked: masked ?? otherMasked',
    replace: 'masked',
    killedBy: byMasks,
  },
  {
    name: 'masks: membership is tested among how cells are shown',
    file: subselects,
    find: 'throughColumns(node).slice(0, count)',
    replace: 'throughColumns(node).slice(1, count + 1)',
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
    name: 'masks: a masked key finds its row',
    file: access,
    find: "const found = scan.masked.has('_pk') ? null : keysOf(conjunct, scan);",
    replace: 'const found = keysOf(conjunct, scan);',
    killedBy: byMasks,
  },
  {
    name: 'masks: masked columns are sketched',
    file: sketches,
    find: 'if (node.masked.has(column)) continue;',
    replace: '',
    killedBy: byMasks,
  },
  {
    name: 'masks: EXPLAIN keeps silent about masks',
    file: explain,
    find: "if (masked.length > 0) parts.push(`masked ${masked.join(', ')}`);",
    replace: '',
    killedBy: byMasks,
  },
  {
    name: 'masks: plans are shared by grants',
    file: 'src/planner/plan-names.ts',
    find: 'return masked.size === 0 ? key : `${key}.${this.#maskOf(masked)}`;',
    replace: 'return key;',
    killedBy: byMasks,
  },
  {
    name: 'masks: what was made before a column was declared masked is used on',
    file: 'src/governance/governed-snapshot.ts',
    find: '${paths.branchId}.${paths.protectionEpoch}',
    replace: '${paths.branchId}',
    killedBy: byGoverned,
  },
  {
    name: 'masks: how cells are shown is cached with a view',
    file: views,
    find: 'return cached.rows > this.#parts.rowsMax || cached.readsMasked ? null : cached;',
    replace: 'return cached.rows > this.#parts.rowsMax ? null : cached;',
    killedBy: byGoverned,
  },
  {
    name: 'masks: a view made under one grant serves another',
    file: views,
    find: 'const key = `${view.position}\\u0000${snapshot.grantKey}`;',
    replace: 'const key = `${view.position}`;',
    killedBy: byGoverned,
  },
  {
    name: 'masks: a cached answer goes on by new versions where old ones stop being shared',
    file: views,
    find: "(!isOfView && snapshot.seenBy(request.type) === 'row')) readsEnds = true;",
    replace: 'isOfView) readsEnds = true;',
    killedBy: byShared,
  },
  {
    name: 'masks: nobody is woken by rows that others share',
    file: subscription,
    find: 'this.shows = (path) => snapshot.mayShow(this.statement.type, path);',
    replace: 'this.shows = (path) => path === this.caller.path && snapshot.mayShow(this.statement.type, path);',
    killedBy: byShared,
  },
  {
    name: 'masks: everybody is woken by every write',
    file: 'src/governance/governed-snapshot.ts',
    find: 'lane.agreement === null ? sees(caller.path, path) : lane.covers(path);',
    replace: 'lane.agreement !== null || sees(caller.path, path);',
    killedBy: byShared,
  },
  {
    name: 'masks: a stream goes on with the columns of another grant',
    file: watch,
    find: 'const isOther = snapshot.grantKey !== subscription.learntUnder;',
    replace: 'const isOther = false;',
    killedBy: byGoverned,
  },
  {
    name: 'masks: what a hidden version closes is not told',
    file: changes,
    find: "const hidesRows = snapshot.seenBy(type) === 'row';",
    replace: 'const hidesRows = false;',
    killedBy: byGoverned,
  },
  {
    name: 'masks: ends are looked for in one stretch',
    file: changes,
    find: 'if (byEnds) yield;',
    replace: '',
    killedBy: byChanges,
  },
  {
    name: 'masks: what ends later is told now',
    file: changes,
    find: 'else if (hidesRows && ended <= end) closed.set',
    replace: 'else if (hidesRows) closed.set',
    killedBy: byGoverned,
  },
  {
    name: 'masks: where keys are masked nothing is closed',
    file: changes,
    find: "const hidesKeys = snapshot.masked(type).has('_pk');",
    replace: 'const hidesKeys = false;',
    killedBy: byGoverned,
  },
  {
    name: 'masks: a recipe is derived again under the policies of now',
    file: 'src/governance/granted-snapshot.ts',
    find: 'const set = judge.policies.at(paths.position);',
    replace: 'const set = judge.policies.current;',
    killedBy: byGoverned,
  },
  {
    name: 'masks: a recipe may name any policy set',
    file: 'src/governance/granted-snapshot.ts',
    find: "if ((set?.digest ?? '') !== pinned.policyDigest) {",
    replace: "if (pinned.policyDigest === 'x') {",
    killedBy: byGoverned,
  },
  {
    name: 'masks: a recipe forgets what was asked beside it',
    file: recipe,
    find: "door: textOf(member(asked, 'door')) ?? '',",
    replace: "door: '',",
    killedBy: byGoverned,
  },
  {
    name: 'masks: a recipe forgets what was declared masked',
    file: recipe,
    find: "masked: (recipe['masked'] ?? {}) as PinnedGrant['masked'],",
    replace: 'masked: {},',
    killedBy: byGoverned,
  },
  {
    name: 'masks: whoever may replay anything may replay everything',
    file: replay,
    find: 'desk.checkReplay(typesOf(sql, snapshot));',
    replace: '',
    killedBy: byGoverned,
  },
  {
    name: 'masks: a total tells where batches end',
    file: limit,
    find: 'counters.hits = Math.max(counters.hits, Math.min(counters.hits + rows, this.#hitsMax));',
    replace: 'counters.hits += rows;',
    killedBy: byFigures,
  },
  {
    name: 'masks: counting ends with a batch',
    file: scan,
    find: 'const count = Math.min(block.count, this.#left);',
    replace: 'const count = block.count;',
    killedBy: byFigures,
  },
];
