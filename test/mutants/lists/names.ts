/** Mistakes about names of tenants: whose a name is, and what it reads where several tenants have it. */
import type { Mutant } from '../mutant.ts';

const types = ['test/projections/tenant-types.test.ts'];
const overHttp = ['test/doors/http/tenant-types.test.ts'];
const branches = ['test/projections/tenant-branches.test.ts'];
const branchTypes = 'src/projections/catalog/branch-types.ts';
const visibleTypes = 'src/governance/visible-types.ts';
const visibleRows = 'src/governance/visible-rows.ts';

export const mutants: readonly Mutant[] = [
  {
    name: 'names: the list of types shows the inherited definition in place of one’s own',
    file: branchTypes,
    find: 'seen.set(name, type);',
    replace: 'if (!seen.has(name)) seen.set(name, type);',
    killedBy: types,
  },
  {
    name: 'names: what a fork defines its source has too',
    file: branchTypes,
    in: 'BranchTypes.fork',
    find: 'scope.shared = true;',
    replace: '',
    killedBy: types,
  },
  {
    name: 'names: rows of all tenants lie in one table',
    file: 'src/projections/rows/layer.ts',
    in: 'Layer.append',
    find: 'const tenant = tenantOf(entry.context.path);',
    replace: 'const tenant = null;',
    killedBy: types,
  },
  {
    name: 'names: branches of all tenants are of one space of names',
    file: 'src/log/tenant-names.ts',
    find: "`${tenant ?? ''}\\u0000${name}`",
    replace: 'name',
    killedBy: branches,
  },
  {
    name: 'names: a view of one tenant takes a name from all',
    file: 'src/projections/views/commands.ts',
    in: 'refuseNameOfView',
    find: ' && tenantOf(view.owner) === tenant',
    replace: '',
    killedBy: overHttp,
  },
  {
    name: 'names: rows make a type of the name of a view',
    file: 'src/projections/decide.ts',
    find: 'if (type === undefined && command.createType) made.push(command.type);',
    replace: '',
    killedBy: overHttp,
  },
  {
    name: 'names: a migration makes a type of the name of a view',
    file: 'src/projections/decide.ts',
    find: "if (kind === 'register-type') refuseNameOfView(name, ...viewsOf(state, context));",
    replace: '',
    killedBy: overHttp,
  },
  {
    name: 'names: an inherited type comes before a view',
    file: 'src/governance/governed-snapshot.ts',
    find: 'this.#views.some((view) => view.name === name) && !this.#catalog.isOwn(name)',
    replace: 'false',
    killedBy: overHttp,
  },
  {
    name: 'names: whoever defines types takes back what guards them',
    file: 'src/governance/authorization/policy.ts',
    in: 'administers',
    find: 'roles.includes(tenant === null ? platformAdmin : tenantAdmin)',
    replace: 'roles.length >= 0',
    killedBy: overHttp,
  },
  {
    name: 'names: the administrator of a tenant is one of the store',
    file: 'src/governance/authorization/policy.ts',
    in: 'administers',
    find: 'tenant === null ? platformAdmin : tenantAdmin',
    replace: 'tenantAdmin',
    killedBy: overHttp,
  },
  {
    name: 'names: the administrator of a path below takes back what guards the tenant',
    file: 'src/governance/authorization/policy.ts',
    in: 'administers',
    find: " && tenant?.includes('/') !== true",
    replace: '',
    killedBy: overHttp,
  },
  {
    name: 'names: a shared column of another type is read by one’s own',
    file: visibleTypes,
    in: 'isAlike',
    find: 'columnTypeOf(definition, column) === columnTypeOf(of, column)',
    replace: 'columnTypeOf(of, column) !== undefined',
    killedBy: overHttp,
  },
  {
    name: 'names: shared rows that are guarded are read with one’s own',
    file: visibleTypes,
    in: 'openSources',
    find: 'i === 0 || !isClosed(guards, declared.name, columns)',
    replace: 'true',
    killedBy: overHttp,
  },
  {
    name: 'names: a shared type takes the place of one’s own',
    file: visibleTypes,
    in: 'VisibleTypes.#find',
    find: '[...own, ...this.#shared(name)]',
    replace: '[...this.#shared(name), ...own]',
    killedBy: overHttp,
  },
  {
    name: 'names: rows of several tenants come newest first',
    file: visibleRows,
    in: 'MergedBlocks.next',
    find: 'if (least === null || time < least.time) {',
    replace: 'if (least === null || time > least.time) {',
    killedBy: overHttp,
  },
  {
    name: 'names: a block of one tenant is not cut where another’s rows come between',
    file: visibleRows,
    in: 'MergedBlocks.next',
    find: '(bound === null || timeAt(head, head.taken) < bound)',
    replace: 'true',
    killedBy: overHttp,
  },
];
