/** Mistakes about policies, tenants, agreements and guards that would show, keep or lose what they must not. */
import type { Mutant } from '../mutant.ts';

const tenants = ['test/projections/tenants/tenants.test.ts'];
const agreements = ['test/projections/tenants/agreements.test.ts'];
const purge = ['test/projections/tenants/purge.test.ts'];

const types = ['test/projections/catalog/tenant-types.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'tenancy: what a tenant defines, everybody inherits',
    file: 'src/projections/catalog/commands.ts',
    find: 'const ownScope = tenantOf(entry.path) === null ? {} : ({ own: true } as const);',
    replace: 'const ownScope = {};',
    killedBy: types,
  },
  {
    name: 'tenancy: a deleted id is given again while rows are left',
    file: 'src/projections/tenants/commands.ts',
    find: 'if (existingTenant && !existingTenant.purged) {',
    replace: "if (existingTenant && !existingTenant.purged && existingTenant.manner !== 'purge') {",
    killedBy: tenants,
  },
  {
    name: 'tenancy: a suspended agreement still shares',
    file: 'src/projections/tenants/projection.ts',
    find: "state === 'active' && tenantOfPath(assignee) === tenant",
    replace: "state !== 'revoked' && tenantOfPath(assignee) === tenant",
    killedBy: agreements,
  },
  {
    name: 'tenancy: a purge goes on behind what it did not remove',
    file: 'src/projections/tenants/purge.ts',
    find: 'k < purgeBlock.count && purgedKeyCount < keysMax; k++',
    replace: 'k < purgeBlock.count; k++, k === purgeBlock.count && (lastPurged += 9n)',
    killedBy: purge,
  },
];
