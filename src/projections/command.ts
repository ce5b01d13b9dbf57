/**
 * The writes that a caller may ask for. A command and the current state become entries in `commands.ts` of the
 * projection that owns it: pure, so testable without a log, a clock or a disk.
 */
import type { RowBatch } from '../log/values/columns.ts';
import type {
  AgreementState,
  AgreementTerms,
  DeletionManner,
  ErasedVersions,
  GraphTrigger,
  PropertyDefinition,
  Provenance,
  TenantMember,
  TenantQuota,
  TenantRecord,
  TokenRecord,
  TypeDefinition,
  TypeGuard,
} from '../log/entries/entry.ts';
import type { EmbeddingModel } from './access-paths.ts';
import type { JobDefinition, RunRecord } from './jobs/job.ts';
import type { RuleAuthor, RuleDefinition } from './rules/rule.ts';

export type Command =
  | PutRows
  | DeleteRows
  | Batch
  | RemoveRows
  | RegisterType
  | EvolveType
  | MigrateTypes
  | MintToken
  | RotateToken
  | RevokeToken
  | ForkBranch
  | DeleteBranch
  | CreateView
  | DropView
  | LinkExhibit
  | PutPolicy
  | DeletePolicy
  | CreateTenant
  | ChangeTenant
  | SuspendTenant
  | ReactivateTenant
  | DeleteTenant
  | PurgeTenant
  | ProposeAgreement
  | MoveAgreement
  | ChangeAgreement
  | ScheduleRetention
  | HoldRow
  | ReleaseRetention
  | ExpireRetention
  | IntendErasure
  | CompleteErasure
  | EmbedRows
  | JudgeIdentities
  | PutRule
  | EndRule
  | PutJob
  | ChangeJob
  | RecordRun;

export type CommandKind = Command['kind'];

/**
 * Upserts. `rows` holds properties and, where given, `_pk` or `id`, `valid_from`, `valid_to` (timestamp columns).
 * Rows that fail the type contract are rejected one by one; `atomic` makes the first one refuse the whole batch.
 */
export interface PutRows {
  readonly kind: 'put-rows';
  readonly type: string;
  readonly rows: RowBatch;
  readonly atomic: boolean;
  /** Registers the type, open, when it is unknown (`/ingest/auto`). */
  readonly createType: boolean;
  readonly provenance: Provenance;
  /** Keys that the outcome lists, at most; as many as an outcome may list by default. */
  readonly idsMax?: number;
  /** Under an idempotency key: a receipt is written with the rows, and a batch that has one already is not written again. */
  readonly receipt?: BatchReceipt;
  /**
   * Cells that a row did not send keep their stored value, wherever the row holds within its bounds; a row that holds nowhere
   * within them is put as it was sent. Not together with `replace`.
   */
  readonly patch?: SentCells | undefined;
  /** Rows of keys that stand otherwise are rejected with REL_CONFLICT. */
  readonly when?: WriteCondition | undefined;
  /** Rows that are there already are left as they are instead of being rejected. Together with `when: 'absent'`. */
  readonly keepsPresent?: true | undefined;
  /** No version of the key may follow the row: time that its bounds leave uncovered later on is closed and not asserted again. */
  readonly replace?: true;
  /** The outcome tells what became of each row. */
  readonly listsRows?: true | undefined;
  /** Columns of the type that the rows were worked out from or chosen by: REL_MASKED_COLUMN where the caller sees one masked. */
  readonly computedFrom?: readonly string[];
  /** The subject of the rows where their type has no subject column: they are sealed under its key. */
  readonly subject?: string;
}

/**
 * By column: 1 for each row that sent it, NULL or not. A column of the batch that is not listed was sent by all of its rows; one
 * that is listed may be missing in the batch, as every row that sent it sent NULL.
 */
export type SentCells = ReadonlyMap<string, Uint8Array>;

/**
 * How a key has to stand for its row to be written. A row is present where it holds at some instant within the bounds of the write,
 * from now on where it has none; unchanged, where it is present and no version of it was written after the instant (nanoseconds),
 * with `exceptOwn` but by rows before it in the same write.
 */
export type WriteCondition = 'absent' | 'present' | { readonly unchangedSince: bigint; readonly exceptOwn?: true };

/** One batch of a request under an idempotency key. Batches of a request are put in order, each once. */
export interface BatchReceipt {
  /** Lower-case hex SHA-256 over who asked and under which key. */
  readonly key: string;
  /** From 0. */
  readonly batch: number;
  /** Lower-case hex SHA-256 over all that was asked for up to the end of this batch. */
  readonly request: string;
  /** Nothing follows in the request. */
  readonly last: boolean;
  /** Index in the request of the batch's first row, and of each of its rows; null: firstIndex, firstIndex + 1, … */
  readonly firstIndex: number;
  readonly indexes: Float64Array | null;
  /** Rows of this part of the request that were refused before, by index in the request. */
  readonly refused: readonly RowRejection[];
}

/** Soft delete: the rows stop being true now and stay in the store. */
export interface DeleteRows {
  readonly kind: 'delete-rows';
  readonly type: string;
  readonly keys: readonly string[];
  /** Ends the rows only between these two instants (nanoseconds; null: no end); elsewhere they stay true. */
  readonly within?: { readonly from: bigint; readonly to: bigint | null };
  /** As in `PutRows`; a row that is not there is REL_NOT_FOUND without a condition, and REL_CONFLICT under one. */
  readonly when?: Exclude<WriteCondition, 'absent'> | undefined;
  readonly listsRows?: true | undefined;
  readonly computedFrom?: readonly string[];
}

/**
 * Rows of several types in one append: all of them or none, so the first row that is refused refuses the batch. Every step is decided
 * on what stood before the batch, and definitions that steps before it made; a key is written by one step only.
 */
export interface Batch {
  readonly kind: 'batch';
  /** Without receipts. `atomic` and `idsMax` of a step count for nothing. */
  readonly steps: readonly (PutRows | DeleteRows)[];
}

/** Most rows and keys of all steps of a batch: bounded by one turn of the event loop. */
export const batchRowsMax = 4_096;

/** Hard delete: every version is gone. Keys of rows that are held are rejected with REL_CONFLICT and the ids of the holds. */
export interface RemoveRows {
  readonly kind: 'remove-rows';
  readonly type: string;
  readonly keys: readonly string[];
}

/** Registering the same definition again is a no-op; a conflicting one is REL_CONFLICT. */
/** The meaning of a type's rows. */
export type TypeMeaning = Pick<TypeDefinition, 'edge' | 'role' | 'roleColumns' | 'identifier' | 'identifierKinds' | 'language'>;

/** Left out: it stays as it is. null: it says so no longer. */
export type GivenMeaning = { readonly [K in keyof TypeMeaning]?: TypeMeaning[K] | null };

export interface RegisterType {
  readonly kind: 'register-type';
  readonly name: string;
  /** null: an open type, its columns inferred on write. */
  readonly properties: Readonly<Record<string, PropertyDefinition>> | null;
  readonly primaryKey: string | null;
  readonly graphTriggers: readonly GraphTrigger[];
  /** Absent: none. */
  readonly guard?: TypeGuard;
  readonly meaning?: GivenMeaning;
}

/**
 * Adds columns and widens (integer to number, anything to json). Narrowing is REL_CONFLICT. A guard and what a property
 * references are added and stay: taking one away, or changing it, is REL_CONFLICT; leaving it out keeps it.
 */
export interface EvolveType {
  readonly kind: 'evolve-type';
  readonly name: string;
  readonly properties: Readonly<Record<string, PropertyDefinition>>;
  readonly guard?: Partial<TypeGuard>;
  readonly meaning?: GivenMeaning;
  /** Set by the gate: the caller administers the scope, and may take back its guards and masks. */
  readonly mayTakeBack?: boolean;
}

/** Several of both, in order, in one append: all of them or none. Later ones see what earlier ones made. */
export interface MigrateTypes {
  readonly kind: 'migrate-types';
  readonly steps: readonly (RegisterType | EvolveType)[];
}

export interface MintToken {
  readonly kind: 'mint-token';
  /** Made by the gate: id and secret hash included, so that deciding stays pure. */
  readonly token: TokenRecord;
}

export interface RotateToken {
  readonly kind: 'rotate-token';
  readonly id: string;
  readonly token: TokenRecord;
}

export interface RevokeToken {
  readonly kind: 'revoke-token';
  readonly id: string;
}

/** REL_NOT_FOUND without the source, REL_CONFLICT when the name is taken. */
export interface ForkBranch {
  readonly kind: 'fork-branch';
  readonly name: string;
  readonly source: string;
  readonly shares: 'everything' | 'ontology';
}

export interface DeleteBranch {
  readonly kind: 'delete-branch';
  readonly name: string;
}

/** The same definition again is a no-op; another one under the name, or a type of that name, is REL_CONFLICT. */
export interface CreateView {
  readonly kind: 'create-view';
  readonly name: string;
  readonly sql: string;
  /** For how long an answer may be kept; 0 of a plain view, whose query is asked each time. */
  readonly refreshSecs: number;
  /** A plain view of the name gives way. */
  readonly replaces?: true;
}

/** Drops a view of the caller's path: REL_NOT_FOUND where that path has no such view, even if another path has one. */
export interface DropView {
  readonly kind: 'drop-view';
  readonly name: string;
}

/** Puts the next link on an exhibit; link 0 opens it. Deciding numbers and seals it, so links of one turn follow each other. */
export interface LinkExhibit {
  readonly kind: 'link-exhibit';
  readonly exhibit: string;
  readonly open: boolean;
  readonly act: string;
  /** RFC 8785 JSON. */
  readonly recipe: string;
  /** The same as it rests in the log, filled in by governance; absent: as it is. */
  readonly stored?: string;
  /** Lower-case hex SHA-256. */
  readonly resultHash: string;
}

/** The same text under the id again is a no-op. */
export interface PutPolicy {
  readonly kind: 'put-policy';
  readonly id: string;
  /** Cedar that governance has read and can enforce. */
  readonly text: string;
}

export interface DeletePolicy {
  readonly kind: 'delete-policy';
  readonly id: string;
}

/** An id that stands is a no-op, whatever else is asked for; a new one over the cap is REL_TENANT_CAP. */
export interface CreateTenant extends Pick<TenantRecord, 'id' | 'name' | 'tier' | 'search'> {
  readonly kind: 'create-tenant';
  /** The settings apply to limits that are not named. */
  readonly quota: Partial<TenantQuota>;
  readonly members: readonly TenantMember[];
  /** Tenants that the licence allows, filled in by governance; 0: any number. */
  readonly tenantsMax: number;
}

/** Absent members stay unchanged. REL_NOT_FOUND for a tenant that does not exist, as in all commands below. */
export interface ChangeTenant {
  readonly kind: 'change-tenant';
  readonly id: string;
  readonly name?: string;
  readonly tier?: string;
  /** Limits that are not named stay unchanged. */
  readonly quota?: Partial<TenantQuota>;
  readonly search?: TenantRecord['search'];
  /** In order. */
  readonly members?: readonly MemberChange[];
}

/** Adding a member who has another role is REL_CONFLICT; changing or removing a missing one is REL_NOT_FOUND. */
export interface MemberChange extends TenantMember {
  readonly change: 'add' | 'change' | 'remove';
}

export interface SuspendTenant {
  readonly kind: 'suspend-tenant';
  readonly id: string;
}

export interface ReactivateTenant {
  readonly kind: 'reactivate-tenant';
  readonly id: string;
}

/** Ends its agreements and tokens. A deleted one may be deleted further: soft, then tombstone, then purge. */
export interface DeleteTenant {
  readonly kind: 'delete-tenant';
  readonly id: string;
  readonly manner: DeletionManner;
}

/** One step of a purge: again with the cursor of its outcome, until that has none. With null it starts anew. */
export interface PurgeTenant {
  readonly kind: 'purge-tenant';
  readonly id: string;
  readonly cursor: PurgeCursor | null;
  /** Keys removed in this step, at most. */
  readonly keysMax: number;
}

/** How far a purge has come. Governance's own, never a caller's. */
export interface PurgeCursor {
  readonly branch: string;
  readonly fork: number;
  readonly type: string;
  readonly after: bigint;
}

/** The side that moves an agreement. `clock`: a reader noticed that it has expired. */
export type AgreementSide = 'assigner' | 'assignee' | 'administrator' | 'clock';

export interface ProposeAgreement {
  readonly kind: 'propose-agreement';
  readonly id: string;
  readonly terms: AgreementTerms;
}

/** A move that does not exist is REL_CONFLICT, one that is not this side's to make REL_ACL. */
export interface MoveAgreement {
  readonly kind: 'move-agreement';
  readonly id: string;
  readonly to: AgreementState;
  readonly side: AgreementSide;
}

/** Changes an agreement that is still proposed. The sides stay. */
export interface ChangeAgreement {
  readonly kind: 'change-agreement';
  readonly id: string;
  readonly terms: AgreementTerms;
}

/**
 * The row of a key, as it stands on the branch and in the path, is removed for good once `until` is over: by `expire-retention`,
 * never by itself. The caller makes the id; a known one is REL_CONFLICT. REL_NOT_FOUND without such a row.
 */
export interface ScheduleRetention {
  readonly kind: 'schedule-retention';
  readonly id: string;
  readonly type: string;
  readonly key: string;
  /** Nanoseconds. */
  readonly until: bigint;
}

/** Legal hold: the row can be neither removed for good nor erased until the hold is released, whatever else is scheduled. */
export interface HoldRow {
  readonly kind: 'hold-row';
  readonly id: string;
  readonly type: string;
  readonly key: string;
}

/** Ends a schedule or a hold. REL_NOT_FOUND for an id that is not in force. */
export interface ReleaseRetention {
  readonly kind: 'release-retention';
  readonly id: string;
}

/** Removes the row of a schedule whose time is over, where it lies. REL_CONFLICT while it is not over, or the row is held. */
export interface ExpireRetention {
  readonly kind: 'expire-retention';
  readonly id: string;
}

/**
 * From the next turn on no caller sees these versions. `versions` and `mentions` must be the results of `Rows.versionsOf` and the
 * other projections in this very turn. REL_CONFLICT, with the ids of the holds, where one of the rows is held; the same id again
 * is REL_CONFLICT.
 */
export interface IntendErasure {
  readonly kind: 'intend-erasure';
  readonly id: string;
  readonly commitment: string;
  readonly reason: string;
  readonly keys: readonly string[];
  /** In any order. */
  readonly versions: readonly ErasedVersions[];
  readonly mentions: readonly number[];
  /** RFC 8785 JSON. */
  readonly statement: string;
}

/** REL_NOT_FOUND without an intent; one that was completed before is a no-op, and its first statement stays. */
export interface CompleteErasure {
  readonly kind: 'complete-erasure';
  readonly id: string;
  /** RFC 8785 JSON. */
  readonly statement: string;
}

/** Vectors that a model gave for stored versions of one organisation path. Rows that are gone by now are passed over. */
export interface EmbedRows {
  readonly kind: 'embed-rows';
  readonly type: string;
  readonly branch: string;
  readonly path: string | null;
  readonly model: EmbeddingModel;
  /** Columns whose texts were embedded. */
  readonly columns: readonly string[];
  readonly dims: number;
  readonly positions: readonly number[];
  /** `dims` numbers of each version, one after the other. */
  readonly vectors: Float32Array;
}

/**
 * Says that two rows are one thing, or that they are two. REL_NOT_FOUND without such rows in the caller's path or below it; REL_CONFLICT
 * where rows that were judged to be two are to be one.
 */
export interface JudgeIdentities {
  readonly kind: 'judge-identities';
  readonly a: { readonly type: string; readonly key: string };
  readonly b: { readonly type: string; readonly key: string };
  readonly judgement: 'positive' | 'negative';
  readonly reason: string | null;
}

/**
 * Registers a rule, or with `changes` makes a version of it. The same definition under the name is a no-op; another one is REL_CONFLICT,
 * and so is a name that another rule of the path has.
 */
export interface PutRule {
  readonly kind: 'put-rule';
  /** The id that a new rule gets. */
  readonly id: string;
  /** Its condition has been seen to be one that can be run. */
  readonly definition: RuleDefinition;
  /** The rule that gets a version. */
  readonly changes?: string;
  /** Set by the gate: the caller's credential. */
  readonly author: Omit<RuleAuthor, 'principal'>;
}

/** REL_NOT_FOUND where the caller's path has no such rule. */
export interface EndRule {
  readonly kind: 'end-rule';
  readonly id: string;
}

/** The same definition under a name is a no-op until that job has ended; another one is REL_CONFLICT. */
export interface PutJob {
  readonly kind: 'put-job';
  readonly id: string;
  readonly definition: JobDefinition;
  /** Set by the gate: the caller's credential. */
  readonly owner: Omit<RuleAuthor, 'principal'>;
  /** Ends the job of the same name, instead of REL_CONFLICT. */
  readonly replaces?: true;
}

/** The job of this id, wherever it is: whoever submits it has looked whether the caller may. */
export interface ChangeJob {
  readonly kind: 'change-job';
  readonly id: string;
  readonly change: 'paused' | 'resumed' | 'ended';
  readonly reason: string | null;
}

/** The store's own: a run, a step of one, or a round of rules, with the alerts that it raises or the rows that it writes. */
export interface RecordRun {
  readonly kind: 'record-run';
  readonly run: RunRecord;
  readonly alerts: PutRows | null;
  /** A round of rules: the instant up to which they had judged when it began. */
  readonly from?: bigint | undefined;
}

export interface RowRejection {
  readonly index: number;
  readonly code: string;
  readonly detail: string;
  /** The property that is missing. */
  readonly column?: string;
}

/** The outcome of one row, where the request asked for it. */
export interface RowOutcome {
  /** In the batch, or in the keys. */
  readonly index: number;
  /** Null of a row that was refused before it had one. */
  readonly key: string | null;
  readonly became: 'created' | 'updated' | 'deleted' | 'kept' | 'refused';
  /** system_from of the first version that was written for it; 0 where none was: a refused row has its reason among the errors. */
  readonly systemFrom: bigint;
}

/** The outcome of a submitted command. */
export interface Outcome {
  readonly kind: CommandKind;
  readonly accepted: number;
  readonly rejected: number;
  readonly errors: readonly RowRejection[];
  /** `_pk` of accepted rows, capped; `idsTruncated` says so. */
  readonly ids: readonly string[];
  readonly idsTruncated: boolean;
  /** system_from of the first and last row written; 0 when none was. */
  readonly systemFrom: bigint;
  readonly systemFromLast: bigint;
  /** False when the command changed nothing (a type registered again). */
  readonly changed: boolean;
  readonly durability: 'synced' | 'buffered';
  /** Where the next step of a purge goes on; absent when nothing is left. */
  readonly purge?: PurgeCursor;
  /** The outcome of an earlier command under the same receipt: this one wrote nothing. */
  readonly replayed?: true;
  /** In the order of the rows; where it was asked for. */
  readonly rows?: readonly RowOutcome[];
  /** The outcome of each step of a batch. */
  readonly steps?: readonly Omit<Outcome, 'durability' | 'steps'>[];
}
