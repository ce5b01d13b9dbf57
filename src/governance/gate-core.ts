/** State that all invocations of one gate share: its arguments, and objects that it makes of them once. */
import type { Clock, Ids } from '../clock.ts';
import type { Settings } from '../config.ts';
import type { CommittedEntry, EntryContext } from '../log/entries/entry.ts';
import type { Basis, LogStore, NextPosition } from '../log/log-store.ts';
import type { Timeline } from '../log/values/timeline.ts';
import type { AccessPaths } from '../projections/access-paths.ts';
import type { AuditProjection } from '../projections/audit/projection.ts';
import type { Branches } from '../projections/branches/projection.ts';
import type { Catalog } from '../projections/catalog/projection.ts';
import type { Command, DeleteRows, PutRows } from '../projections/command.ts';
import type { Decision, RowCheck, WriteChecks } from '../projections/decision.ts';
import type { Tokens } from '../projections/tokens/projection.ts';
import type { Exhibits } from '../projections/exhibits/projection.ts';
import type { TransactionBranch } from '../projections/transaction-branch.ts';
import type { Policies } from '../projections/policies/projection.ts';
import type { HeldRow } from '../projections/retention/holds.ts';
import type { RetentionRule, Retention } from '../projections/retention/projection.ts';
import type { Tenants } from '../projections/tenants/projection.ts';
import type { IngestBacklog } from './admission/ingest-backlog.ts';
import type { QuerySlots } from './admission/query-slots.ts';
import type { Quota } from './admission/quota.ts';
import type { TenantStorage } from './admission/tenant-storage.ts';
import type { LiteralDigest } from './access-records/access-record-writer.ts';
import type { TokenRegistry } from './authentication/token-registry.ts';
import type { Grants } from './authorization/grants.ts';
import type { Judge } from './authorization/judge.ts';
import type { PurposeRules } from './authorization/purpose.ts';
import type { Committer } from './writing/committer.ts';
import type { ConflictRetry } from './transactions/conflict-retry.ts';
import type { KeyedTextSeals } from './erasure/text-seals.ts';
import type { Reading } from './reading/lane-blocks.ts';
import type { LargeBodiesDependencies } from './writing/large-bodies.ts';
import type { Licence, LicenceTerm, StorageCap } from './tenancy/licence.ts';
import type { TransactionsBounds } from './transactions/transactions.ts';
import type { WriteNotices } from './writing/write-notices.ts';

/** The part of the projections that the gate uses. */
export interface GovernedState {
  /**
   * All projections at one branch and basis as a tenant means their names, ungoverned. Throws REL_NOT_FOUND for a name that
   * means no branch to the tenant.
   */
  snapshot(basis: Basis, branch: string, tenant: string | null): AccessPaths;
  /** The same as of an instant that some snapshot had, under the column types of then. */
  snapshotOf(instant: bigint, branch: string, tenant: string | null): AccessPaths;
  /** Null where keys of a tenant's type are found within a turn; else what brings them within reach, a slice a `turn`. */
  keysWithin(tenant: string | null, type: string, turn: () => Promise<void>): Promise<void> | null;
  /** A private fork of a branch that never reaches the log. Throws REL_NOT_FOUND as `snapshot` does. */
  privately(basis: Basis, branch: string, tenant: string | null): TransactionBranch;
  /** Rises when rows of a path or below it are removed for good. */
  removals(path: string | null): number;
  /** Pure: nothing changes until the drafts are appended and applied. Throws what refuses the command. */
  decide(command: Command, context: EntryContext, next: NextPosition, checks?: WriteChecks, keys?: readonly string[]): Decision;
  writtenSince(
    branch: string,
    tenant: string | null,
    position: number,
  ): (type: string, path: string | null, key: string) => boolean;
  /** The same in steps: it holds where nothing was written and nothing ruled between them. */
  decideInSteps(
    command: PutRows | DeleteRows,
    context: EntryContext,
    next: NextPosition,
    checks: WriteChecks,
  ): Generator<undefined, Decision>;
  /** Feeds every projection, the audit projection included. */
  apply(entry: CommittedEntry): void;
  /** Schedules and holds on the row of a key; undefined where there is no such row. */
  keptOf(branch: string, type: string, path: string | null, key: string): readonly RetentionRule[] | undefined;
  /** Holds on rows of a type, at the path and below it. */
  heldRows(
    type: string,
    at: { readonly branch: string; readonly path: string | null },
    refused: { readonly check: RowCheck | undefined; readonly versions: 'open' | 'all'; readonly at: NextPosition },
  ): readonly HeldRow[];
  readonly directory: Pick<Tokens, 'token' | 'tokens' | 'size'>;
  readonly branches: Pick<Branches, 'branch' | 'idOf' | 'list' | 'listFor'>;
  /** Types by the fork of their branch. */
  readonly catalog: Pick<Catalog, 'catalogOn' | 'protection' | 'definitions'>;
  readonly timeline: Pick<Timeline, 'positionAfter' | 'positionAt' | 'timeOf'>;
  readonly exhibits: Pick<Exhibits, 'exhibit' | 'removals'>;
  readonly policies: Pick<Policies, 'current' | 'setAt'>;
  readonly retention: Pick<Retention, 'find'>;
  readonly tenants: Pick<
    Tenants,
    'epoch' | 'tenant' | 'tenants' | 'liveCount' | 'purging' | 'agreement' | 'agreements' | 'agreementsOf' | 'sharedWith'
  >;
}

export type GateSettings = Pick<
  Settings,
  | 'SERVICE_PURPOSE_MODE'
  | 'SERVICE_PURPOSES'
  | 'SERVICE_QUERY_QUOTA'
  | 'SERVICE_QUERY_QUOTA_PERIOD_SECS'
  | 'SERVICE_MAX_INFLIGHT_QUERIES'
  | 'SERVICE_MAX_RUNNING_QUERIES'
  | 'SERVICE_QUERY_QUEUE_MAX'
  | 'SERVICE_QUERY_TIMEOUT_SECS'
  | 'SERVICE_INGEST_QUEUE_MB'
  | 'SERVICE_DURABILITY'
  | 'SERVICE_WAL_SYNC'
  | 'SERVICE_TENANCY_MODE'
>;

export interface GateDependencies {
  readonly log: LogStore;
  readonly projections: GovernedState;
  readonly audit: AuditProjection;
  readonly clock: Clock;
  /** Names of transactions. */
  readonly ids: Pick<Ids, 'next'>;
  readonly settings: GateSettings;
  readonly licence: Licence;
  /** 32 bytes: keys the digests of statement literals. */
  readonly digestKey: Uint8Array;
  /** Seals recipes and notes of exhibits, and definitions. */
  readonly textSeals: Pick<KeyedTextSeals, 'seal' | 'open' | 'sealFor' | 'hasKey'>;
  /** Bodies that are too large for rows; absent: there is nowhere to keep them. */
  readonly bodies?: LargeBodiesDependencies;
  /** Bounds of transactions that are not those of every store. */
  readonly transactions?: Partial<TransactionsBounds>;
  /** One line for the operator: the storage warning. */
  readonly warn: (line: string) => void;
  /** Called where a caller asks for something: not for work that nobody waits for. */
  readonly onRequest?: () => void;
  /** Runs a task once the work of this turn is done; `setImmediate` unless a simulation schedules. */
  readonly defer?: (task: () => void) => void;
}

export interface Core {
  readonly parts: GateDependencies;
  readonly committer: Committer;
  /** Resolves in the next round of the event loop. */
  readonly turn: () => Promise<void>;
  readonly writes: WriteNotices;
  readonly reading: Reading;
  readonly digest: LiteralDigest;
  readonly storage: StorageCap;
  readonly tenantStorage: TenantStorage;
  readonly term: LicenceTerm;
  readonly quota: Quota;
  readonly slots: QuerySlots;
  readonly backlog: IngestBacklog;
  readonly contention: ConflictRetry;
  readonly tokens: TokenRegistry;
  readonly purposes: PurposeRules;
  readonly judge: Judge;
  readonly grants: Grants;
}
