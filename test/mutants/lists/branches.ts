/** Mistakes by which a branch would show what is not its own, or lose what is. */
import type { Mutant } from '../mutant.ts';

const projections = ['test/projections/rows/tables/branches.test.ts', 'test/projections/catalog/branch-types.test.ts'];
const gate = ['test/governance/branches.test.ts'];
const contract = ['test/projections/contract.test.ts'];

const named = ['test/projections/tenant-branches.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'branches: what a tenant forks is everybody’s',
    file: 'src/projections/branches/commands.ts',
    find: 'tenant === null ? branchBody : { ...branchBody, own: true }',
    replace: 'branchBody',
    killedBy: named,
  },
  {
    name: 'branches: a branch sees what its source wrote after the fork',
    file: 'src/projections/rows/scan/scan.ts',
    find: 'visibilityOf(request, Math.min(basis, inherited.end), timeline)',
    replace: 'visibilityOf(request, basis, timeline)',
    killedBy: projections,
  },
  {
    name: 'branches: a child sees what its parent closed after the child was forked',
    file: 'src/projections/rows/tables/branch-overlay.ts',
    find: 'if (overlayClosing < end && overlayClosing < leastClosing) leastClosing = overlayClosing;',
    replace: 'if (overlayClosing < leastClosing) leastClosing = overlayClosing;',
    killedBy: projections,
  },
  {
    name: 'branches: a closing in an overlay counts at any instant',
    file: 'src/projections/rows/scan/scan.ts',
    find: 'openAt: openOnly ? bound : null',
    replace: 'openAt: openOnly ? basis : null',
    killedBy: projections,
  },
  {
    name: 'branches: a source that widens a column widens it for its branches',
    file: 'src/projections/rows/segments/segment-columns.ts',
    find: 'if (keepFormer) pushToList(',
    replace: 'if (!keepFormer) pushToList(',
    killedBy: projections,
  },
  {
    name: 'branches: deleting a branch takes its rows from its children',
    file: 'src/log/entries/branches.ts',
    find: 'for (const range of lineageOf(openBranch)) readBranches.add(range.branch);',
    replace: 'readBranches.add(openBranch);',
    killedBy: [...projections, ...contract],
  },
  {
    name: 'branches: tokens are minted on the branch of their holder',
    file: 'src/projections/decide.ts',
    find: 'branch: mainBranch }',
    replace: '}',
    killedBy: projections,
  },
  {
    name: 'branches: an invocation goes on upon another branch of the name',
    file: 'src/governance/admission/admission.ts',
    find: 'branchId === undefined || branchId !== (this.#branch ?? branchId)',
    replace: 'branchId === undefined',
    killedBy: gate,
  },
];
