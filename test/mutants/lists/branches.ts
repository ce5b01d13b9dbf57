/** Mistakes by which a branch would show what is not its own, or lose what is. */
import type { Mutant } from '../mutant.ts';

const projections = ['test/projections/branches.test.ts', 'test/projections/branch-types.test.ts'];
const gate = ['test/governance/branches.test.ts'];
const http = ['test/doors/http/branches.test.ts'];
const contract = ['test/projections/contract.test.ts'];

const named = ['test/projections/tenant-branches.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'branches: a tenant’s own branch gives way to the store’s of its name',
    file: 'src/log/tenant-names.ts',
    find: 'return own ?? this.#named.get(keyOf(name, null));',
    replace: 'return this.#named.get(keyOf(name, null)) ?? own;',
    killedBy: named,
  },
  {
    name: 'branches: what a tenant forks is everybody’s',
    file: 'src/projections/branches/commands.ts',
    find: 'tenant === null ? body : { ...body, own: true }',
    replace: 'body',
    killedBy: named,
  },
  {
    name: 'branches: a saved tree forgets whose a name is',
    file: 'src/log/branches.ts',
    find: '        name,\n        tenant,\n',
    replace: '        name,\n',
    killedBy: named,
  },
  {
    name: 'branches: every branch is listed for every tenant',
    file: 'src/projections/branches/projection.ts',
    find: 'this.#branches.get(branch.name, tenant) === branch',
    replace: 'tenant !== branch.name',
    killedBy: named,
  },
  {
    name: 'branches: types of then are looked for among the store’s branches alone',
    file: 'src/projections/catalog/history.ts',
    find: '(tenant === null ? undefined : this.#own(name, tenant, position)) ??',
    replace: '',
    killedBy: named,
  },
  {
    name: 'branches: a branch sees what its source wrote after the fork',
    file: 'src/projections/rows/scan.ts',
    find: 'visibilityOf(request, Math.min(basis, inherited.end), timeline)',
    replace: 'visibilityOf(request, basis, timeline)',
    killedBy: projections,
  },
  {
    name: 'branches: a child sees what its parent closed after the child was forked',
    file: 'src/projections/rows/overlay.ts',
    find: 'if (closing < end && closing < least) least = closing;',
    replace: 'if (closing < least) least = closing;',
    killedBy: projections,
  },
  {
    name: 'branches: a closing in an overlay counts at any instant',
    file: 'src/projections/rows/scan.ts',
    find: 'openAt: openOnly ? bound : null',
    replace: 'openAt: openOnly ? basis : null',
    killedBy: projections,
  },
  {
    name: 'branches: system_to does not know of overlays',
    file: 'src/projections/rows/block-columns.ts',
    find: 'closing = onBranch < this.#basis ? onBranch : Infinity;',
    replace: 'closing = Infinity;',
    killedBy: projections,
  },
  {
    name: 'branches: changes of the branches in between are passed over',
    file: 'src/projections/rows/layer.ts',
    find: '...this.lower.slice(index + 1), ',
    replace: '',
    killedBy: projections,
  },
  {
    name: 'branches: the open chain of now is taken for that of the fork',
    file: 'src/projections/rows/branch-table.ts',
    find: 'own.positionOf(own.newest(path, heap, start, end)) < inherited.end)',
    replace: 'true)',
    killedBy: projections,
  },
  {
    name: 'branches: a source that widens a column widens it for its branches',
    file: 'src/projections/rows/segment-columns.ts',
    find: 'if (keepFormer) pushTo(',
    replace: 'if (!keepFormer) pushTo(',
    killedBy: projections,
  },
  {
    name: 'branches: a deleted branch keeps its tables',
    file: 'src/projections/rows/projection.ts',
    find: 'for (const { id } of released) this.#release(id);',
    replace: '',
    killedBy: projections,
  },
  {
    name: 'branches: deleting a branch takes its rows from its children',
    file: 'src/log/branches.ts',
    find: 'for (const stretch of lineageOf(branch)) read.add(stretch.branch);',
    replace: 'read.add(branch);',
    killedBy: [...projections, ...contract],
  },
  {
    name: 'branches: a fork and its source share one table of types',
    file: 'src/projections/catalog/branch-types.ts',
    find: 'scope.shared = true;',
    replace: '',
    killedBy: projections,
  },
  {
    name: 'branches: a checkpoint forgets what branches changed',
    file: 'src/projections/rows/table-checkpoint.ts',
    find: 'layer.adoptOverlay(table, Overlay.restored(entries));',
    replace: 'void [table, entries];',
    killedBy: projections,
  },
  {
    name: 'branches: tokens are minted on the branch of their holder',
    file: 'src/projections/decide.ts',
    find: 'branch: mainBranch }',
    replace: '}',
    killedBy: projections,
  },
  {
    name: 'branches: a plan of a deleted branch serves its successor',
    file: 'src/governance/governed-snapshot.ts',
    find: '${paths.branchId}',
    replace: '',
    killedBy: [...gate, ...http],
  },
  {
    name: 'branches: an invocation goes on upon another branch of the name',
    file: 'src/governance/admission/admission.ts',
    find: 'id === undefined || id !== (this.#branch ?? id)',
    replace: 'id === undefined',
    killedBy: gate,
  },
  {
    name: 'branches: whoever knows a branch may delete it',
    file: 'src/governance/authorization/policy.ts',
    find: 'branch !== undefined &&\n      !administrators',
    replace: 'branch === undefined &&\n      !administrators',
    killedBy: [...gate, ...http],
  },
  {
    name: 'branches: two ways of naming a branch may differ',
    file: 'src/doors/http/headers.ts',
    find: 'others.some((other) => other !== first)',
    replace: 'others.length > 9',
    killedBy: ['test/doors/http/query.test.ts'],
  },
  {
    name: 'branches: the field of a body is not heeded',
    file: 'src/doors/http/headers.ts',
    find: "Object.hasOwn(body, 'branch')",
    replace: "Object.hasOwn(body, '')",
    killedBy: ['test/doors/http/query.test.ts'],
  },
];
