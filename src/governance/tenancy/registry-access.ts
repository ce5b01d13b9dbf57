/**
 * The part of the tenant registry that a command is about: its tenant, and whether that tenant's own administrator may run it.
 * Only the operator of the store registers, suspends and ends tenants, and sets their tiers and quotas.
 */
import { tenantOf } from '../../log/values/value.ts';
import type { AgreementSide, Command } from '../../projections/command.ts';
import type { Tenants } from '../../projections/tenants/projection.ts';
import type { RegistryPart } from '../authorization/access-rules.ts';

const storeRegistryPart: RegistryPart = { tenant: null, own: false };

/** undefined for commands that are not about the registry. */
export function registryPart(command: Command, tenants: Pick<Tenants, 'agreement'>): RegistryPart | undefined {
  switch (command.kind) {
    case 'create-tenant':
    case 'suspend-tenant':
    case 'reactivate-tenant':
    case 'delete-tenant':
    case 'purge-tenant':
      return storeRegistryPart;
    case 'change-tenant':
      return { tenant: command.id, own: command.tier === undefined && command.quota === undefined };
    case 'propose-agreement':
      return { tenant: tenantOf(command.terms.assigner), own: true };
    case 'change-agreement':
    case 'move-agreement': {
      const agreementRecord = tenants.agreement(command.id)?.record;
      const agreementSide: AgreementSide = command.kind === 'change-agreement' ? 'assigner' : command.side;
      if (agreementRecord === undefined || agreementSide === 'administrator' || agreementSide === 'clock')
        return storeRegistryPart;
      return { tenant: tenantOf(agreementRecord[agreementSide]), own: true };
    }
    default:
      return undefined;
  }
}
