/** The tenant registry and the installed policies as doors see them, inside an invocation. */
import type { AgreementRecord, AgreementState, AgreementTerms, DeletionManner, TenantRecord } from '../log/entries/entry.ts';
import type { ChangeAgreement, MoveAgreement, ProposeAgreement } from '../projections/command.ts';
import type { Licence } from './tenancy/licence.ts';

export interface TenantView extends TenantRecord {
  /** How it was deleted; null while it stands. */
  readonly manner: DeletionManner | null;
  /** No row of it is left. */
  readonly purged: boolean;
}

export interface AgreementView extends AgreementRecord {
  /** The sides of the queried tenant. */
  readonly sides: readonly ('assigner' | 'assignee')[];
  /** Every move that it made, in order. */
  readonly events: readonly { readonly change: string; readonly principal: string; readonly time: bigint }[];
}

export interface TenantUsage {
  readonly tenant: string;
  /** Nanoseconds: from, and just before. */
  readonly since: bigint;
  readonly until: bigint;
  readonly invocations: number;
  readonly queries: number;
  readonly costUnits: number;
  readonly rowsWritten: number;
  /** Versions now, on every branch, and bytes of them. */
  readonly rowsStored: number;
  readonly storedBytes: number;
}

export interface UsagePeriod {
  readonly since?: bigint;
  readonly until?: bigint;
}

export interface LicenceView extends Omit<Licence, 'graceEndsAt'> {
  /** Tenants that are registered and stand. */
  readonly tenants: number;
}

export interface OwnTenant {
  readonly tenant: TenantView;
  /** False: the caller gets nothing of others in it. */
  readonly looksAfter: boolean;
}

/**
 * REL_ACL for callers that manage no tenant; for a tenant's manager, REL_NOT_FOUND for every other tenant, whether it exists or
 * not. Only the operator of the store sees all of them.
 */
export interface TenantDeskContract {
  /** By id, deleted ones included. */
  all(): readonly TenantView[];
  liveTenants(): readonly TenantView[];
  /** Deleted ones included. */
  tenantRecord(id: string): TenantView;
  tenant(id: string): TenantView;
  /** The tenant that the caller speaks for. */
  own(): OwnTenant;
  /** Throws unless the caller runs the store, and so looks after every tenant. */
  checkRunsStore(): void;
  /** Throws unless the caller may look after this tenant; it need not be registered. */
  reach(id: string): void;
  agreements(tenant: string): readonly AgreementView[];
  agreement(tenant: string, id: string): AgreementView;
  /** Terms that can be kept, as a command to submit; throws what refuses them. */
  proposal(tenant: string, id: string, terms: AgreementTerms): ProposeAgreement;
  amendment(tenant: string, id: string, terms: AgreementTerms): ChangeAgreement;
  /** null when it is in that state. */
  move(tenant: string, id: string, to: AgreementState): MoveAgreement | null;
  usage(tenant: string, period: UsagePeriod): Promise<TenantUsage>;
  /** Usage of every active tenant. */
  usages(period: UsagePeriod): Promise<readonly TenantUsage[]>;
  /** The last quota period where none is given. */
  periodOf(period: UsagePeriod): Required<UsagePeriod>;
  licence(): LicenceView;
}

/** A policy as it was installed. */
export interface PolicyView {
  readonly id: string;
  /** Cedar. */
  readonly text: string;
  /** Nanosecond of its installation. */
  readonly time: bigint;
}

/** For the administrator. */
export interface PolicyDeskContract {
  /** Rises with every change. */
  readonly epoch: number;
  /** Digest of the whole set; empty while no policy is installed. */
  readonly digest: string;
  /** By id. */
  policies(): readonly PolicyView[];
  policy(id: string): PolicyView;
  /** Says what can hardly be meant. Throws REL_INVALID with line and column for a text that can't be installed. */
  checkText(id: string, text: string): readonly string[];
  /** Throws REL_CONFLICT unless the set's digest is one of these. */
  checkUnchanged(digests: readonly string[]): void;
}
