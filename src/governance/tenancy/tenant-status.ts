/**
 * Whether the tenant that a caller acts in may be used: a suspended one pays first, a deleted one is gone. Organisations that
 * were never registered cannot be suspended. The operator of the store is not stopped: only the operator can end it.
 */
import { tenantOf } from '../../log/values/value.ts';
import { ServiceError } from '../../errors.ts';
import type { Tenants } from '../../projections/tenants/projection.ts';
import type { Caller } from '../caller.ts';

/** Throws REL_TENANT_SUSPENDED or REL_ACL. */
export function checkTenantStatus(
  tenants: Pick<Tenants, 'tenant'>,
  { path, credential }: Pick<Caller, 'path' | 'credential'>,
): void {
  if (path === null || credential === 'admin') return;
  const tenantState = tenants.tenant(tenantOf(path)!)?.record.state ?? 'active';
  if (tenantState === 'active') return;
  if (tenantState === 'suspended') throw new ServiceError('REL_TENANT_SUSPENDED', 'the tenant is suspended');
  throw new ServiceError('REL_ACL', 'the tenant is deleted');
}
