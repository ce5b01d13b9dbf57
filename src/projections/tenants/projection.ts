/**
 * Tenants that were registered, their members, and the agreements under which organisations share rows. Main's alone, like
 * tokens: no fork keeps an agreement alive. Organisation paths need no registration; of one that has none nothing is here.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import type {
  AgreementBody,
  AgreementRecord,
  CommittedEntry,
  DeletionManner,
  TenantBody,
  TenantRecord,
} from '../../log/entries/entry.ts';
import { canonicalJson } from '../../log/values/canonical-json.ts';
import { recordOf, recordText } from '../../log/entries/record-codec.ts';
import { compareText } from '../../log/values/value.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';
import { tenantOfPath } from './tenant-drafts.ts';
import { noSearchConfig, type SearchConfig, searchConfigOf } from './search-config.ts';

export interface RegisteredTenant {
  readonly record: TenantRecord;
  /** How it was deleted; null while it stands. */
  readonly manner: DeletionManner | null;
  /** No row of it is left on any branch: its id may be registered again. */
  readonly purged: boolean;
  /**
   * Where the id was registered before: position and nanosecond from which on it is this tenant's. Older records under its path
   * (views, exhibits, agreements, access records) were another's, and are not shown. null: the first.
   */
  readonly since: { readonly position: number; readonly time: bigint } | null;
}

/** One move of an agreement, for the audit views of both sides. */
export interface AgreementEvent {
  readonly change: AgreementBody['change'];
  readonly principal: string;
  readonly position: number;
  readonly time: bigint;
}

export interface KnownAgreement {
  readonly record: AgreementRecord;
  /** In order. */
  readonly events: readonly AgreementEvent[];
}

export class Tenants implements Projection {
  readonly name = 'tenants';
  readonly formatVersion = 2;
  readonly #tenantsById = new Map<string, RegisteredTenant>();
  /** Search defaults of a tenant, by the nanosecond from which they applied, rising. */
  readonly #searchesByTenant = new Map<string, SearchSince[]>();
  readonly #agreementsById = new Map<string, KnownAgreement>();
  /** Ids of the agreements of a tenant, on either side. */
  readonly #agreementsByTenant = new Map<string, Set<string>>();
  #liveCount = 0;
  #tenantsEpoch = 0;

  /** Rises with every change: data derived from tenants and agreements holds while it stays. */
  get epoch(): number {
    return this.#tenantsEpoch;
  }

  /** Deleted ones included. */
  tenant(tenantId: string): RegisteredTenant | undefined {
    return this.#tenantsById.get(tenantId);
  }

  /** From when on the id has been this tenant's; null where no other had it. */
  sinceOf(tenant: string | null): RegisteredTenant['since'] {
    return tenant === null ? null : (this.#tenantsById.get(tenant)?.since ?? null);
  }

  /** All tenants that were ever registered, by id in codepoint order. */
  tenants(): readonly RegisteredTenant[] {
    return [...this.#tenantsById.values()].sort((a, b) => compareText(a.record.id, b.record.id));
  }

  /** Tenants that count toward the cap: active and suspended ones. */
  get liveCount(): number {
    return this.#liveCount;
  }

  /** Deleted ones of which rows may be left, by id. */
  purging(): readonly string[] {
    return this.tenants()
      .filter(({ manner, purged }) => manner === 'purge' && !purged)
      .map(({ record }) => record.id);
  }

  /** Search defaults of a tenant for reads of what was believed at this instant. */
  searchAt(tenantId: string | null, instant: bigint): SearchConfig {
    const searchConfig =
      tenantId === null ? undefined : this.#searchesByTenant.get(tenantId)?.findLast(({ time }) => time <= instant);
    // Records of an earlier tenant of the id are not this one's.
    if (searchConfig === undefined || searchConfig.time < (this.sinceOf(tenantId)?.time ?? 0n)) return noSearchConfig;
    return (searchConfig.config ??= searchConfigOf(searchConfig.search));
  }

  agreement(agreementId: string): KnownAgreement | undefined {
    return this.#agreementsById.get(agreementId);
  }

  /** By id, in codepoint order. */
  agreements(): readonly AgreementRecord[] {
    return [...this.#agreementsById.values()].map(({ record }) => record).sort((a, b) => compareText(a.id, b.id));
  }

  /** Agreements with a path of this tenant on either side, by id; without those of an earlier tenant of its id. */
  agreementsOf(tenant: string): readonly AgreementRecord[] {
    const tenantSince = this.#tenantsById.get(tenant)?.since?.time ?? null;
    return [...(this.#agreementsByTenant.get(tenant) ?? [])]
      .map((agreementId) => this.#agreementsById.get(agreementId)!.record)
      .filter(({ createdAt }) => tenantSince === null || createdAt >= tenantSince)
      .sort((a, b) => compareText(a.id, b.id));
  }

  /** Active agreements that share rows with paths of this tenant, by id. The reader's clock decides whether they are in force. */
  sharedWith(tenant: string): readonly AgreementRecord[] {
    return this.agreementsOf(tenant).filter(({ state, assignee }) => state === 'active' && tenantOfPath(assignee) === tenant);
  }

  apply(tenantEntry: CommittedEntry): void {
    const { body } = tenantEntry;
    if (body.kind === 'tenant') this.#applyTenantChange(tenantEntry, body);
    else if (body.kind === 'agreement') this.#applyAgreementChange(tenantEntry, body);
  }

  async checkpoint(tenantCheckpoint: CheckpointWriter): Promise<void> {
    const savedTenants = [...this.#tenantsById.values()].map(
      ({ record, ...registeredRest }) => [tenantRecordText(record), registeredRest] as const,
    );
    const savedAgreements = [...this.#agreementsById.values()].map(
      ({ record, events }) => [agreementRecordText(record), events] as const,
    );
    const savedSearches = [...this.#searchesByTenant].map(
      ([tenantId, tenantSearches]) => [tenantId, tenantSearches.map(({ time, search }) => ({ time, search }))] as const,
    );
    tenantCheckpoint.section(
      'tenants',
      serialize({
        tenants: savedTenants,
        agreements: savedAgreements,
        searches: savedSearches,
        epoch: this.#tenantsEpoch,
      } satisfies SavedTenants),
    );
  }

  async restore(tenantCheckpoint: CheckpointReader): Promise<void> {
    const tenantBytes = tenantCheckpoint.section('tenants');
    assert(tenantBytes, 'a checkpoint of tenants has them');
    this.reset();
    const { tenants, agreements, searches, epoch } = deserialize(tenantBytes) as SavedTenants;
    for (const [tenantId, tenantSearches] of searches) this.#searchesByTenant.set(tenantId, [...tenantSearches]);
    for (const [savedRecordText, registeredRest] of tenants) {
      const savedRecordBody = recordOf('tenant', savedRecordText);
      assert(savedRecordBody.kind === 'tenant', 'a saved tenant is one');
      this.#setRegisteredTenant({ record: savedRecordBody.tenant, ...registeredRest });
    }
    for (const [text, events] of agreements) {
      const savedRecordBody = recordOf('agreement', text);
      assert(savedRecordBody.kind === 'agreement', 'a saved agreement is one');
      this.#setKnownAgreement({ record: savedRecordBody.agreement, events });
    }
    this.#tenantsEpoch = epoch;
  }

  reset(): void {
    this.#tenantsById.clear();
    this.#searchesByTenant.clear();
    this.#agreementsById.clear();
    this.#agreementsByTenant.clear();
    this.#liveCount = 0;
    this.#tenantsEpoch = 0;
  }

  digest(): string {
    const tenantsHash = new CanonicalHash();
    tenantsHash.value(this.tenants());
    for (const { record } of this.tenants()) {
      tenantsHash.value((this.#searchesByTenant.get(record.id) ?? []).map(({ time, search }) => [time, canonicalJson(search)]));
    }
    for (const { id: agreementId } of this.agreements()) tenantsHash.value(this.#agreementsById.get(agreementId));
    tenantsHash.number(this.#tenantsEpoch);
    return tenantsHash.hex();
  }

  #applyTenantChange({ position, time }: CommittedEntry, { change, manner, tenant: record }: TenantBody): void {
    const tenantBefore = this.#tenantsById.get(record.id);
    this.#tenantsEpoch++;
    const tenantSearches = this.#searchesByTenant.get(record.id) ?? [];
    if (canonicalJson(record.search) !== canonicalJson(tenantSearches.at(-1)?.search ?? {})) {
      this.#searchesByTenant.set(record.id, [...tenantSearches, { time, search: record.search }]);
    }
    if (change === 'created') {
      this.#setRegisteredTenant({ record, manner: null, purged: false, since: tenantBefore ? { position, time } : null });
      return;
    }
    assert(tenantBefore, 'only a registered tenant changes');
    this.#setRegisteredTenant({
      ...tenantBefore,
      record,
      manner: manner ?? tenantBefore.manner,
      purged: tenantBefore.purged || change === 'purged',
    });
  }

  #applyAgreementChange({ context, position, time }: CommittedEntry, { change, agreement: record }: AgreementBody): void {
    this.#tenantsEpoch++;
    const agreementEvent = { change, principal: context.principal, position, time };
    this.#setKnownAgreement({ record, events: [...(this.#agreementsById.get(record.id)?.events ?? []), agreementEvent] });
  }

  #setRegisteredTenant(registeredTenant: RegisteredTenant): void {
    const { id: tenantId } = registeredTenant.record;
    const standingCountOf = (one: RegisteredTenant | undefined): number => (one && one.record.state !== 'deleted' ? 1 : 0);
    this.#liveCount += standingCountOf(registeredTenant) - standingCountOf(this.#tenantsById.get(tenantId));
    this.#tenantsById.set(tenantId, registeredTenant);
  }

  #setKnownAgreement(agreement: KnownAgreement): void {
    const { id: agreementId, assigner, assignee } = agreement.record;
    this.#agreementsById.set(agreementId, agreement);
    for (const agreementTenant of [tenantOfPath(assigner), tenantOfPath(assignee)]) {
      const agreementIds = this.#agreementsByTenant.get(agreementTenant);
      if (agreementIds) agreementIds.add(agreementId);
      else this.#agreementsByTenant.set(agreementTenant, new Set([agreementId]));
    }
  }
}

/** Records as they stand in entries: one form on disk. */
interface SavedTenants {
  readonly tenants: readonly (readonly [string, Omit<RegisteredTenant, 'record'>])[];
  readonly agreements: readonly (readonly [string, readonly AgreementEvent[]])[];
  readonly searches: readonly (readonly [string, readonly Omit<SearchSince, 'config'>[]])[];
  readonly epoch: number;
}

interface SearchSince {
  readonly time: bigint;
  readonly search: TenantRecord['search'];
  /** Made when it is asked for. */
  config?: SearchConfig;
}

const tenantRecordText = (tenant: TenantRecord): string =>
  recordText({ kind: 'tenant', change: 'changed', manner: null, tenant });

const agreementRecordText = (agreement: AgreementRecord): string =>
  recordText({ kind: 'agreement', change: 'changed', agreement });
