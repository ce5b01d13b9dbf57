/**
 * Rules that SERVICE_TENANCY_MODE=multi adds: rows are reachable only inside a registered, active tenant. Tokens are minted for
 * such a tenant; a token without a tenant manages the registry and sees no rows, whatever path it names. No organisation header
 * is needed: the token's own tenant is the path in force.
 */
import { ServiceError } from '../../errors.ts';
import type { TokenRecord } from '../../log/entries/entry.ts';
import { tenantOf } from '../../log/values/value.ts';
import type { Tenants } from '../../projections/tenants/projection.ts';
import type { Caller } from '../caller.ts';
import { platformAdmin, type Rule } from '../authorization/access-rules.ts';

/** Credentials of callers within tenants; the others run the store. */
const tenantCredentials: ReadonlySet<Caller['credential']> = new Set(['token', 'shared-secret', 'none']);

export function multiTenancyRules(tenants: Pick<Tenants, 'tenant'>): readonly Rule[] {
  return [
    {
      id: 'forbid-outside-tenants',
      effect: 'forbid',
      says: 'rows are reached inside a registered tenant only',
      matches: ({ caller, action }) => {
        if (!tenantCredentials.has(caller.credential) || action === 'administer') return false;
        // A shared secret carries its organisation with each connection; a token's is the one it was minted for.
        const tenantPath = caller.credential === 'token' ? caller.tenant : caller.path;
        if (tenantPath !== null) return !isStandingTenant(tenants, tenantPath);
        return action !== 'inspect' || caller.path !== null;
      },
    },
  ];
}

/** Throws REL_INVALID or REL_NOT_FOUND for a token that could reach nothing. */
export function checkMinted(token: Pick<TokenRecord, 'tenant' | 'roles'>, tenants: Pick<Tenants, 'tenant'>): void {
  if (token.tenant === null) {
    if (token.roles.includes(platformAdmin)) return;
    throw new ServiceError(
      'REL_INVALID',
      `tenant_id is required in multi-tenant mode, unless the token has the role ${platformAdmin}`,
    );
  }
  if (!isStandingTenant(tenants, token.tenant)) throw new ServiceError('REL_NOT_FOUND', 'no such tenant');
}

/** Suspended tenants count: `checkStanding` refuses them. */
function isStandingTenant(tenants: Pick<Tenants, 'tenant'>, path: string): boolean {
  return tenants.tenant(tenantOf(path)!)?.manner === null;
}
