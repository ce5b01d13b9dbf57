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
  readonly #tenants = new Map<string, RegisteredTenant>();
  /** Search defaults of a tenant, by the nanosecond from which they applied, rising. */
  readonly #searches = new Map<string, SearchSince[]>();
  readonly #agreements = new Map<string, KnownAgreement>();
  /** Ids of the agreements of a tenant, on either side. */
  readonly #ofTenant = new Map<string, Set<string>>();
  #liveCount = 0;
  #epoch = 0;

  /** Rises with every change: data derived from tenants and agreements holds while it stays. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Deleted ones included. */
  tenant(id: string): RegisteredTenant | undefined {
    return this.#tenants.get(id);
  }

  /** From when on the id has been this tenant's; null where no other had it. */
  sinceOf(tenant: string | null): RegisteredTenant['since'] {
    return tenant === null ? null : (this.#tenants.get(tenant)?.since ?? null);
  }

  /** All tenants that were ever registered, by id in codepoint order. */
  tenants(): readonly RegisteredTenant[] {
    return [...this.#tenants.values()].sort((a, b) => compareText(a.record.id, b.record.id));
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
  searchAt(id: string | null, instant: bigint): SearchConfig {
    const searchConfig = id === null ? undefined : this.#searches.get(id)?.findLast(({ time }) => time <= instant);
    // Records of an earlier tenant of the id are not this one's.
    if (searchConfig === undefined || searchConfig.time < (this.sinceOf(id)?.time ?? 0n)) return noSearchConfig;
    return (searchConfig.config ??= searchConfigOf(searchConfig.search));
  }

  agreement(id: string): KnownAgreement | undefined {
    return this.#agreements.get(id);
  }

  /** By id, in codepoint order. */
  agreements(): readonly AgreementRecord[] {
    return [...this.#agreements.values()].map(({ record }) => record).sort((a, b) => compareText(a.id, b.id));
  }

  /** Agreements with a path of this tenant on either side, by id; without those of an earlier tenant of its id. */
  agreementsOf(tenant: string): readonly AgreementRecord[] {
    const since = this.#tenants.get(tenant)?.since?.time ?? null;
    return [...(this.#ofTenant.get(tenant) ?? [])]
      .map((id) => this.#agreements.get(id)!.record)
      .filter(({ createdAt }) => since === null || createdAt >= since)
      .sort((a, b) => compareText(a.id, b.id));
  }

  /** Active agreements that share rows with paths of this tenant, by id. The reader's clock decides whether they are in force. */
  sharedWith(tenant: string): readonly AgreementRecord[] {
    return this.agreementsOf(tenant).filter(({ state, assignee }) => state === 'active' && tenantOfPath(assignee) === tenant);
  }

  apply(entry: CommittedEntry): void {
    const { body } = entry;
    if (body.kind === 'tenant') this.#applyTenant(entry, body);
    else if (body.kind === 'agreement') this.#applyAgreement(entry, body);
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    const tenants = [...this.#tenants.values()].map(({ record, ...rest }) => [tenantText(record), rest] as const);
    const agreements = [...this.#agreements.values()].map(({ record, events }) => [agreementText(record), events] as const);
    const searches = [...this.#searches].map(([id, each]) => [id, each.map(({ time, search }) => ({ time, search }))] as const);
    target.section('tenants', serialize({ tenants, agreements, searches, epoch: this.#epoch } satisfies Saved));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('tenants');
    assert(bytes, 'a checkpoint of tenants has them');
    this.reset();
    const { tenants, agreements, searches, epoch } = deserialize(bytes) as Saved;
    for (const [id, each] of searches) this.#searches.set(id, [...each]);
    for (const [text, rest] of tenants) {
      const body = recordOf('tenant', text);
      assert(body.kind === 'tenant', 'a saved tenant is one');
      this.#setTenant({ record: body.tenant, ...rest });
    }
    for (const [text, events] of agreements) {
      const body = recordOf('agreement', text);
      assert(body.kind === 'agreement', 'a saved agreement is one');
      this.#setAgreement({ record: body.agreement, events });
    }
    this.#epoch = epoch;
  }

  reset(): void {
    this.#tenants.clear();
    this.#searches.clear();
    this.#agreements.clear();
    this.#ofTenant.clear();
    this.#liveCount = 0;
    this.#epoch = 0;
  }

  digest(): string {
    const hash = new CanonicalHash();
    hash.value(this.tenants());
    for (const { record } of this.tenants()) {
      hash.value((this.#searches.get(record.id) ?? []).map(({ time, search }) => [time, canonicalJson(search)]));
    }
    for (const { id } of this.agreements()) hash.value(this.#agreements.get(id));
    hash.number(this.#epoch);
    return hash.hex();
  }

  #applyTenant({ position, time }: CommittedEntry, { change, manner, tenant: record }: TenantBody): void {
    const before = this.#tenants.get(record.id);
    this.#epoch++;
    const searches = this.#searches.get(record.id) ?? [];
    if (canonicalJson(record.search) !== canonicalJson(searches.at(-1)?.search ?? {})) {
      this.#searches.set(record.id, [...searches, { time, search: record.search }]);
    }
    if (change === 'created') {
      this.#setTenant({ record, manner: null, purged: false, since: before ? { position, time } : null });
      return;
    }
    assert(before, 'only a registered tenant changes');
    this.#setTenant({ ...before, record, manner: manner ?? before.manner, purged: before.purged || change === 'purged' });
  }

  #applyAgreement({ context, position, time }: CommittedEntry, { change, agreement: record }: AgreementBody): void {
    this.#epoch++;
    const event = { change, principal: context.principal, position, time };
    this.#setAgreement({ record, events: [...(this.#agreements.get(record.id)?.events ?? []), event] });
  }

  #setTenant(tenant: RegisteredTenant): void {
    const { id } = tenant.record;
    const countOf = (one: RegisteredTenant | undefined): number => (one && one.record.state !== 'deleted' ? 1 : 0);
    this.#liveCount += countOf(tenant) - countOf(this.#tenants.get(id));
    this.#tenants.set(id, tenant);
  }

  #setAgreement(agreement: KnownAgreement): void {
    const { id, assigner, assignee } = agreement.record;
    this.#agreements.set(id, agreement);
    for (const tenant of [tenantOfPath(assigner), tenantOfPath(assignee)]) {
      const ids = this.#ofTenant.get(tenant);
      if (ids) ids.add(id);
      else this.#ofTenant.set(tenant, new Set([id]));
    }
  }
}

/** Records as they stand in entries: one form on disk. */
interface Saved {
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

const tenantText = (tenant: TenantRecord): string => recordText({ kind: 'tenant', change: 'changed', manner: null, tenant });

const agreementText = (agreement: AgreementRecord): string => recordText({ kind: 'agreement', change: 'changed', agreement });
