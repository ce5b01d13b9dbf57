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
  readonly #parts: TenantDeskDependencies;

  constructor(parts: TenantDeskDependencies) {
    this.#parts = parts;
  }

  all(): readonly TenantView[] {
    this.checkRunsStore();
    return this.#parts.tenants.tenants().map(viewOf);
  }

  liveTenants(): readonly TenantView[] {
    return this.all().filter(({ manner }) => manner === null);
  }

  tenantRecord(id: string): TenantView {
    this.checkRunsStore();
    const tenant = this.#parts.tenants.tenant(id);
    if (tenant === undefined) throw unknownTenant();
    return viewOf(tenant);
  }

  tenant(id: string): TenantView {
    this.reach(id);
    const tenant = this.#parts.tenants.tenant(id);
    if (tenant === undefined || tenant.manner !== null) throw unknownTenant();
    return viewOf(tenant);
  }

  own(): OwnTenant {
    const { caller, may, tenants } = this.#parts;
    const id = tenantOf(caller.tenant);
    if (id === null) return { tenant: this.tenant(this.#ownId()), looksAfter: true };
    const tenant = tenants.tenant(id);
    if (tenant === undefined || tenant.manner !== null) throw unknownTenant();
    return { tenant: viewOf(tenant), looksAfter: may({ tenant: id, own: true }) };
  }

  #ownId(): string {
    const { caller } = this.#parts;
    const id = caller.tenant ?? tenantOf(caller.path);
    if (id === null) {
      this.checkRunsStore();
      throw new ServiceError('REL_NOT_FOUND', 'the credential belongs to no tenant');
    }
    return id;
  }

  checkRunsStore(): void {
    if (!this.#parts.may({ tenant: null, own: false })) {
      throw new ServiceError('REL_ACL', 'only the operator of the store may use the tenant registry');
    }
  }

  reach(id: string): void {
    const { may, caller } = this.#parts;
    if (may({ tenant: id, own: true })) return;
    // The manager of another tenant learns nothing about this one, not even whether it exists.
    if (caller.tenant !== null && may({ tenant: caller.tenant, own: true })) throw unknownTenant();
    throw new ServiceError('REL_ACL', 'only its own administrators and the operator of the store may manage a tenant');
  }

  agreements(tenant: string): readonly AgreementView[] {
    this.reach(tenant);
    return this.#parts.tenants.agreementsOf(tenant).map(({ id }) => this.#view(this.#parts.tenants.agreement(id)!, tenant));
  }

  agreement(tenant: string, id: string): AgreementView {
    return this.#view(this.#requireAgreement(tenant, id), tenant);
  }

  proposal(tenant: string, id: string, terms: AgreementTerms): ProposeAgreement {
    this.reach(tenant);
    checkAgreementTerms(tenant, terms, (name) => this.#parts.typeOf(terms.assigner, name));
    return { kind: 'propose-agreement', id, terms };
  }

  amendment(tenant: string, id: string, terms: AgreementTerms): ChangeAgreement {
    const { record } = this.#requireAgreement(tenant, id);
    if (tenantOf(record.assigner) !== tenant)
      throw new ServiceError('REL_ACL', 'only the assigner may set the terms of an agreement');
    checkAgreementTerms(tenant, terms, (name) => this.#parts.typeOf(terms.assigner, name));
    return { kind: 'change-agreement', id, terms };
  }

  move(tenant: string, id: string, to: AgreementState): MoveAgreement | null {
    const { record } = this.#requireAgreement(tenant, id);
    if (to === 'expired') throw new ServiceError('REL_INVALID', 'an agreement expires by itself');
    if (stateAt(record, this.#parts.now) === to) return null;
    return { kind: 'move-agreement', id, to, side: this.#sideOf(tenant, record, to) };
  }

  async usage(tenant: string, period: Partial<Period>): Promise<TenantUsage> {
    this.reach(tenant);
    const known = this.#parts.tenants.tenant(tenant);
    // One's own needs no registration; anybody else's must be there.
    if ((known === undefined || known.manner !== null) && this.#parts.caller.tenant !== tenant) throw unknownTenant();
    const subject = { tenant, since: known?.since?.time ?? null };
    const [usage] = await usageOf(this.#parts.usage, [subject], this.periodOf(period));
    return usage!;
  }

  async usages(period: Partial<Period>): Promise<readonly TenantUsage[]> {
    const subjects = this.liveTenants().map(({ id }) => ({
      tenant: id,
      since: this.#parts.tenants.tenant(id)!.since?.time ?? null,
    }));
    return usageOf(this.#parts.usage, subjects, this.periodOf(period));
  }

  periodOf({ since, until }: Partial<Period>): Period {
    const { now, periodNs } = this.#parts;
    const end = until ?? now;
    const period = { since: since ?? end - periodNs, until: end };
    if (period.since >= period.until) throw new ServiceError('REL_INVALID', 'the period must end after it begins');
    return period;
  }

  licence(): LicenceView {
    this.checkRunsStore();
    const { licence, tenants } = this.#parts;
    const { graceEndsAt: _, ...shown } = licence;
    return { ...shown, tenants: tenants.liveCount };
  }

  /** REL_NOT_FOUND for an agreement of others as for none, and for one that an earlier tenant of this id made. */
  #requireAgreement(tenant: string, id: string): KnownAgreement {
    this.reach(tenant);
    const { tenants } = this.#parts;
    if (!tenants.agreementsOf(tenant).some((agreement) => agreement.id === id)) {
      throw new ServiceError('REL_NOT_FOUND', 'no such agreement');
    }
    return tenants.agreement(id)!;
  }

  #view({ record, events }: KnownAgreement, tenant: string): AgreementView {
    const sides = (['assigner', 'assignee'] as const).filter((side) => tenantOf(record[side]) === tenant);
    return { ...record, state: stateAt(record, this.#parts.now), sides, events };
  }

  /** The operator of the store never consents for a side. Within one tenant either side may be the one to consent. */
  #sideOf(tenant: string, record: AgreementRecord, to: AgreementState): AgreementSide {
    if (this.#parts.may({ tenant: null, own: false })) return 'administrator';
    const sides = (['assigner', 'assignee'] as const).filter((side) => tenantOf(record[side]) === tenant);
    return sides.find((side) => mayMove(record, to, side)) ?? sides[0]!;
  }
}

function viewOf({ record, manner, purged }: RegisteredTenant): TenantView {
  return { ...record, manner, purged };
}

function unknownTenant(): ServiceError {
  return new ServiceError('REL_NOT_FOUND', 'no such tenant');
}
