/**
 * Tenants, members and agreements as far as a caller may see them, and the caller's commands about them. The manager of one
 * tenant gets the same answer for every other: that there is none. Changes go through `submit`, where the same rules are checked
 * again.
 */
import { ServiceError } from '../../errors.ts';
import type { AgreementRecord, AgreementState, AgreementTerms, TypeDefinition } from '../../log/entries/entry.ts';
import { tenantOf } from '../../log/values/value.ts';
import type { AgreementSide, ChangeAgreement, MoveAgreement, ProposeAgreement } from '../../projections/command.ts';
import { mayMove, stateAt } from '../../projections/tenants/agreements.ts';
import type { KnownAgreement, RegisteredTenant, Tenants } from '../../projections/tenants/projection.ts';
import type { RegistryPart } from '../authorization/access-rules.ts';
import type { Caller } from '../caller.ts';
import type { AgreementView, LicenceView, OwnTenant, TenantDeskContract, TenantUsage, TenantView } from '../desk-contract.ts';
import { checkAgreementTerms } from '../tenancy/agreement-terms.ts';
import type { Licence } from '../tenancy/licence.ts';
import { usageOf, type Period, type UsageDependencies } from '../tenancy/tenant-usage.ts';

export interface TenantDeskDependencies {
  readonly caller: Caller;
  readonly tenants: Pick<Tenants, 'tenant' | 'tenants' | 'liveCount' | 'agreement' | 'agreementsOf'>;
  /** Whether the rules let the caller look after this part of the registry. */
  readonly may: (part: RegistryPart) => boolean;
  readonly usage: UsageDependencies;
  readonly licence: Licence;
  /** The catalog of main, which agreements are about. */
  /** A type as the organisation of a path means it. */
  readonly typeOf: (path: string, name: string) => TypeDefinition | undefined;
  /** Nanoseconds: of the invocation. */
  readonly now: bigint;
  /** The default period of usage reports. */
  readonly periodNs: bigint;
}

export class TenantDesk implements TenantDeskContract {
  readonly #tenantDeskParts: TenantDeskDependencies;

  constructor(parts: TenantDeskDependencies) {
    this.#tenantDeskParts = parts;
  }

  all(): readonly TenantView[] {
    this.checkRunsStore();
    return this.#tenantDeskParts.tenants.tenants().map(tenantViewOf);
  }

  liveTenants(): readonly TenantView[] {
    return this.all().filter(({ manner }) => manner === null);
  }

  tenantRecord(id: string): TenantView {
    this.checkRunsStore();
    const tenant = this.#tenantDeskParts.tenants.tenant(id);
    if (tenant === undefined) throw unknownTenant();
    return tenantViewOf(tenant);
  }

  tenant(id: string): TenantView {
    this.reach(id);
    const tenant = this.#tenantDeskParts.tenants.tenant(id);
    if (tenant === undefined || tenant.manner !== null) throw unknownTenant();
    return tenantViewOf(tenant);
  }

  own(): OwnTenant {
    const { caller, may, tenants } = this.#tenantDeskParts;
    const ownTenantId = tenantOf(caller.tenant);
    if (ownTenantId === null) return { tenant: this.tenant(this.#ownTenantId()), looksAfter: true };
    const ownTenant = tenants.tenant(ownTenantId);
    if (ownTenant === undefined || ownTenant.manner !== null) throw unknownTenant();
    return { tenant: tenantViewOf(ownTenant), looksAfter: may({ tenant: ownTenantId, own: true }) };
  }

  #ownTenantId(): string {
    const { caller } = this.#tenantDeskParts;
    const id = caller.tenant ?? tenantOf(caller.path);
    if (id === null) {
      this.checkRunsStore();
      throw new ServiceError('REL_NOT_FOUND', 'the credential belongs to no tenant');
    }
    return id;
  }

  checkRunsStore(): void {
    if (!this.#tenantDeskParts.may({ tenant: null, own: false })) {
      throw new ServiceError('REL_ACL', 'only the operator of the store may use the tenant registry');
    }
  }

  reach(id: string): void {
    const { may, caller } = this.#tenantDeskParts;
    if (may({ tenant: id, own: true })) return;
    // The manager of another tenant learns nothing about this one, not even whether it exists.
    if (caller.tenant !== null && may({ tenant: caller.tenant, own: true })) throw unknownTenant();
    throw new ServiceError('REL_ACL', 'only its own administrators and the operator of the store may manage a tenant');
  }

  agreements(tenant: string): readonly AgreementView[] {
    this.reach(tenant);
    return this.#tenantDeskParts.tenants
      .agreementsOf(tenant)
      .map(({ id }) => this.#agreementView(this.#tenantDeskParts.tenants.agreement(id)!, tenant));
  }

  agreement(tenant: string, id: string): AgreementView {
    return this.#agreementView(this.#requireAgreement(tenant, id), tenant);
  }

  proposal(tenant: string, id: string, terms: AgreementTerms): ProposeAgreement {
    this.reach(tenant);
    checkAgreementTerms(tenant, terms, (name) => this.#tenantDeskParts.typeOf(terms.assigner, name));
    return { kind: 'propose-agreement', id, terms };
  }

  amendment(tenant: string, id: string, terms: AgreementTerms): ChangeAgreement {
    const { record } = this.#requireAgreement(tenant, id);
    if (tenantOf(record.assigner) !== tenant)
      throw new ServiceError('REL_ACL', 'only the assigner may set the terms of an agreement');
    checkAgreementTerms(tenant, terms, (name) => this.#tenantDeskParts.typeOf(terms.assigner, name));
    return { kind: 'change-agreement', id, terms };
  }

  move(tenant: string, id: string, to: AgreementState): MoveAgreement | null {
    const { record } = this.#requireAgreement(tenant, id);
    if (to === 'expired') throw new ServiceError('REL_INVALID', 'an agreement expires by itself');
    if (stateAt(record, this.#tenantDeskParts.now) === to) return null;
    return { kind: 'move-agreement', id, to, side: this.#sideOf(tenant, record, to) };
  }

  async usage(tenant: string, period: Partial<Period>): Promise<TenantUsage> {
    this.reach(tenant);
    const usageTenant = this.#tenantDeskParts.tenants.tenant(tenant);
    // One's own needs no registration; anybody else's must be there.
    if ((usageTenant === undefined || usageTenant.manner !== null) && this.#tenantDeskParts.caller.tenant !== tenant)
      throw unknownTenant();
    const usageSubject = { tenant, since: usageTenant?.since?.time ?? null };
    const [usage] = await usageOf(this.#tenantDeskParts.usage, [usageSubject], this.periodOf(period));
    return usage!;
  }

  async usages(period: Partial<Period>): Promise<readonly TenantUsage[]> {
    const usageSubjects = this.liveTenants().map(({ id }) => ({
      tenant: id,
      since: this.#tenantDeskParts.tenants.tenant(id)!.since?.time ?? null,
    }));
    return usageOf(this.#tenantDeskParts.usage, usageSubjects, this.periodOf(period));
  }

  periodOf({ since, until }: Partial<Period>): Period {
    const { now, periodNs } = this.#tenantDeskParts;
    const periodEnd = until ?? now;
    const usagePeriod = { since: since ?? periodEnd - periodNs, until: periodEnd };
    if (usagePeriod.since >= usagePeriod.until) throw new ServiceError('REL_INVALID', 'the period must end after it begins');
    return usagePeriod;
  }

  licence(): LicenceView {
    this.checkRunsStore();
    const { licence, tenants } = this.#tenantDeskParts;
    const { graceEndsAt: _, ...licenceFacts } = licence;
    return { ...licenceFacts, tenants: tenants.liveCount };
  }

  /** REL_NOT_FOUND for an agreement of others as for none, and for one that an earlier tenant of this id made. */
  #requireAgreement(tenant: string, id: string): KnownAgreement {
    this.reach(tenant);
    const { tenants } = this.#tenantDeskParts;
    if (!tenants.agreementsOf(tenant).some((agreement) => agreement.id === id)) {
      throw new ServiceError('REL_NOT_FOUND', 'no such agreement');
    }
    return tenants.agreement(id)!;
  }

  #agreementView({ record, events }: KnownAgreement, tenant: string): AgreementView {
    const agreementSides = (['assigner', 'assignee'] as const).filter((side) => tenantOf(record[side]) === tenant);
    return { ...record, state: stateAt(record, this.#tenantDeskParts.now), sides: agreementSides, events };
  }

  /** The operator of the store never consents for a side. Within one tenant either side may be the one to consent. */
  #sideOf(tenant: string, record: AgreementRecord, to: AgreementState): AgreementSide {
    if (this.#tenantDeskParts.may({ tenant: null, own: false })) return 'administrator';
    const agreementSides = (['assigner', 'assignee'] as const).filter((side) => tenantOf(record[side]) === tenant);
    return agreementSides.find((side) => mayMove(record, to, side)) ?? agreementSides[0]!;
  }
}

function tenantViewOf({ record, manner, purged }: RegisteredTenant): TenantView {
  return { ...record, manner, purged };
}

function unknownTenant(): ServiceError {
  return new ServiceError('REL_NOT_FOUND', 'no such tenant');
}
