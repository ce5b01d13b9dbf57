/** Mistakes in standing queries, lookup tables and materialized views. */
import type { Mutant } from '../mutant.ts';

const changes = 'src/planner/standing/change-set.ts';
const events = 'src/planner/standing/watch-events.ts';
const hub = 'src/planner/standing/watch.ts';
const statement = 'src/planner/standing/watch-statement.ts';
const views = 'src/planner/standing/materialized-views.ts';
const lookups = 'src/planner/standing/lookup-tables.ts';
const files = 'src/cli/lookup-files.ts';
const writes = 'src/governance/visible-writes.ts';
const columns = 'src/projections/rows/block-columns.ts';

const byWatch = ['test/doors/http/watch.test.ts'];
const byViews = ['test/doors/http/views.test.ts'];
const byLookups = ['test/doors/http/lookup.test.ts'];
const byWrites = ['test/governance/visible-writes.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'standing: a DELETE counts as a row that matches',
    file: changes,
    find: '    if (ops[row] === deleteOp) continue;\n',
    replace: '',
    killedBy: byWatch,
  },
  {
    name: 'standing: what a version closed within the same change set is not looked at',
    file: changes,
    find: 'for (const captured of [before, came]) {',
    replace: 'for (const captured of [before]) {',
    killedBy: byWatch,
  },
  {
    name: 'standing: a version is told with the end that it got later',
    file: changes,
    find: "    if (name === 'system_to') return openEnded(this.length);\n",
    replace: '',
    killedBy: byWatch,
  },
  {
    name: 'standing: the rows at the beginning are those of now',
    file: changes,
    find: 'time: { system: instant, valid: request.time.valid },',
    replace: 'time: { system: 9223372036854775806n, valid: request.time.valid },',
    killedBy: byWatch,
  },
  {
    name: 'standing: every event of a version carries its id',
    file: events,
    find: 'this.#events.push(`event:',
    replace: 'this.#events.push(`id: ${systemFrom}\\nevent:',
    killedBy: byWatch,
  },
  {
    name: 'standing: removed keys are not told',
    file: events,
    find: '  removedBefore(null);\n',
    replace: '',
    killedBy: byWatch,
  },
  {
    name: 'standing: a stream is not resumed where it was left',
    file: hub,
    find: 'cursor: options.resumeAfter ?? subscription.basis,',
    replace: 'cursor: subscription.basis,',
    killedBy: byWatch,
  },
  {
    name: 'standing: nobody looks whether a token still stands',
    file: hub,
    find: '          this.#parts.gate.checkStanding(stream.client.renew());\n',
    replace: '',
    killedBy: byWatch,
  },
  {
    name: 'standing: the cap counts every tenant',
    file: hub,
    find: 'if (tenantOf(each.caller.path) === tenant) held++;',
    replace: 'held++;',
    killedBy: byWatch,
  },
  {
    name: 'standing: another caller may follow a registration',
    file: hub,
    find: 'owner.tokenId === caller.tokenId && owner.path === caller.path;',
    replace: 'owner.tokenId === caller.tokenId;',
    killedBy: byWatch,
  },
  {
    name: 'standing: now() is watched',
    file: statement,
    find: "  ['now', 'now(), which changes without a commit'],\n",
    replace: '',
    killedBy: byWatch,
  },
  {
    name: 'standing: ops of few rows are read by the wrong numbers',
    file: columns,
    find: 'return spread(chosen.segment.ops, chosen, compact);',
    replace: 'return spread(chosen.segment.ops, chosen, false);',
    killedBy: byWatch,
  },
  {
    name: 'standing: writes of every path are told to everybody',
    file: writes,
    find: '=== written && shows(context.path));',
    replace: '=== written);',
    killedBy: byWrites,
  },
  {
    name: 'standing: a write is told to whoever has a branch of that name',
    file: writes,
    find: 'this.#idOf(branch, tenant) === written &&',
    replace: 'branch === context.branch &&',
    killedBy: byWrites,
  },
  {
    name: 'standing: visible is told before it is durable',
    file: writes,
    find: '    settled(appended).then(',
    replace: '    Promise.resolve().then(',
    killedBy: byWrites,
  },
  {
    name: 'views: a removal leaves cached answers as they are',
    file: views,
    find: 'snapshot.removals.removedAfter(type, cached.basis).length > 0) return false;',
    replace: 'snapshot.removals.removedAfter(type, cached.basis).length < 0) return false;',
    killedBy: byViews,
  },
  {
    name: 'views: one grant’s answer is another’s',
    file: views,
    find: 'const key = `${view.position}\\u0000${snapshot.grantKey}`;',
    replace: 'const key = `${view.position}`;',
    killedBy: byViews,
  },
  {
    name: 'views: a cached answer claims to be of now',
    file: views,
    find: '        instant: cached.basis,\n',
    replace: '',
    killedBy: byViews,
  },
  {
    name: 'views: later ends of known versions are not seen',
    file: views,
    find: "if (request.columns.includes('system_to') || (!isOfView",
    replace: 'if ((!isOfView',
    killedBy: byViews,
  },
  {
    name: 'views: the answer of a view is made before the question that asks for it',
    file: views,
    find: 'await this.#parts.yieldTurn();',
    replace: '',
    killedBy: ['test/planner/standing/materialized-views.test.ts'],
  },
  {
    name: 'lookups: a table is seen from above',
    file: lookups,
    find: 'owner === path : covers(owner, path);',
    replace: 'owner === path : covers(path, owner);',
    killedBy: byLookups,
  },
  {
    name: 'lookups: a hard link out of the root is read',
    file: files,
    find: '!opened.isFile() || opened.nlink !== 1',
    replace: '!opened.isFile()',
    killedBy: byLookups,
  },
  {
    name: 'lookups: the later of two rows of a key counts',
    file: lookups,
    find: "      if (rows.has(at)) throw refused(rows.size + 1, 'has the key of an earlier one');\n",
    replace: '',
    killedBy: byLookups,
  },
];
