/** Mistakes in what lets rows and cells through: each would show somebody what is not theirs, or hide what is. */
import type { Mutant } from '../mutant.ts';

const blocks = 'src/governance/reading/lane-blocks.ts';
const rows = 'src/governance/reading/governed-rows.ts';
const grants = 'src/governance/authorization/grants.ts';
const lanes = ['test/governance/lanes.test.ts'];
const generated = ['test/governance/lanes-generated.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'lanes: rows of several lanes pass without a test',
    file: blocks,
    find: 'if (passed !== null && this.#hasPassed(passed, k) === 0) continue;',
    replace: '',
    killedBy: generated,
  },
  {
    name: 'lanes: rows of paths that no lane covers go with a block',
    file: blocks,
    find: 'return singleLane >= 0 && this.#isAllOfGroup(1) ?',
    replace: 'return singleLane >= 0 ?',
    killedBy: ['test/governance/lanes-storage.test.ts'],
  },
  {
    name: 'lanes: blocks of another’s path leave where nothing is masked',
    file: blocks,
    find: 'if (scope.groups[storedBlock.path] !== 1) continue;',
    replace: '',
    killedBy: ['test/governance/scope.test.ts'],
  },
  {
    name: 'lanes: columns that are asked for twice leave in another order',
    file: 'src/governance/reading/lane-plan.ts',
    find: 'open: grant === openGrant && sourceColumns.length === columns.length,',
    replace: 'open: grant === openGrant,',
    killedBy: ['test/governance/lanes-masks.test.ts'],
  },
  {
    name: 'lanes: a masked key is found by its value',
    file: blocks,
    find: 'const keyMask = byKey ? plan.keys[lane]! : null;',
    replace: 'const keyMask = byKey && lane < 0 ? plan.keys[lane]! : null;',
    killedBy: lanes,
  },
  {
    name: 'lanes: provenance names the hidden version before',
    file: rows,
    find: 'return isVisible ? storedProvenance : { ...storedProvenance, derivedFrom: null };',
    replace: 'return storedProvenance;',
    killedBy: lanes,
  },
  {
    name: 'lanes: what no policy permits is read',
    file: rows,
    find: 'if (grant.allowed) return;',
    replace: 'return;',
    killedBy: lanes,
  },
  {
    name: 'grants: an agreement is in force before it begins',
    file: grants,
    find: 'const inForce = shared.filter(({ agreement }) => isInForce(agreement, now));',
    replace: 'const inForce = shared;',
    killedBy: lanes,
  },
  {
    name: 'grants: forbids stop at the organisation’s border',
    file: grants,
    find: '[policy, ...forbidPolicies]',
    replace: '[policy, ...forbidPolicies.slice(0, 0)]',
    killedBy: lanes,
  },
  {
    name: 'grants: columns that are not shared are shown',
    file: grants,
    find: 'for (const column of withheldColumns(columns, type)) laneMasks.set(column,',
    replace: 'for (const column of withheldColumns(columns, type)) if (columns === null) laneMasks.set(column,',
    killedBy: lanes,
  },
  {
    name: 'lanes: kernels do not hear what conditions say',
    file: 'src/planner/kernels/row-mask.ts',
    find: 'if (sift?.visible)',
    replace: 'if (sift?.visible && maskWordCount < 0)',
    killedBy: ['test/governance/lanes-queries.test.ts'],
  },
];
