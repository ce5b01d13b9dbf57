/**
 * The gate as doors and planner see it. Two verbs inside one invocation: `snapshot` to read, `submit` to write;
 * the invocation itself guarantees that exactly one access record is written on every way out.
 */
import type { Vector } from '../log/values/columns.ts';
import type { BranchBody, ExhibitBody, MaskKind, Recalled, TokenRecord, TypeDefinition } from '../log/entries/entry.ts';
import type { Basis, SignedHead } from '../log/log-store.ts';
import type { RowProof } from '../log/proofs/row-proof.ts';
import type {
  AccessPaths,
  AuditReader,
  EmbeddingModel,
  EmbeddingReader,
  ExhibitLink,
  ExhibitView,
  RowReader,
} from '../projections/access-paths.ts';
import type { Command, Outcome, PutRows } from '../projections/command.ts';
import type { RowCheck } from '../projections/decision.ts';
import type { HeldRow } from '../projections/retention/holds.ts';
import type { RetentionRule } from '../projections/retention/projection.ts';
import type { Caller } from './caller.ts';
import type { PolicyDeskContract, TenantDeskContract } from './desk-contract.ts';
import type { BodyDesk } from './writing/large-bodies.ts';
import type { GovernedBlock } from './text-search/visible-texts.ts';

/** An access path that has passed the gate: rows outside the caller's scope can't come out of it. */
export interface GovernedSnapshot extends Omit<AccessPaths, 'embeddings' | 'erasures' | 'pathsOf' | 'recalls' | 'rows'> {
  readonly governed: true;
  readonly rows: RowReader<GovernedBlock>;
  readonly caller: Caller;
  readonly purpose: string | null;
  /** As the caller stated them; null when not. */
  readonly breakGlass: string | null;
  readonly accessScopeRef: string | null;
  /** Changes with anything that could change a decision or a plan: part of every plan-cache key. */
  readonly grantKey: string;
  /** Columns of a type whose cells are hidden in some rows at least: they read as NULL, and as `shownColumn` has them. */
  masksOf(type: string): ReadonlyMap<string, MaskKind>;
  /** Whether a column is masked in every row of the type that may be seen. */
  hides(type: string, column: string): boolean;
  /** Notices for an answer that reads these columns of a type: which parts of rows shared by others are missing. */
  notices(type: string, columns: readonly string[]): readonly string[];
  /** Whether error messages may suggest names of the type and its columns: the caller may read rows of it. */
  offers(type: string): boolean;
  /**
   * Whether the organisation path alone decides that a row of a type is visible, or also its cells, its past or an agreement's
   * terms.
   */
  seenBy(type: string): 'path' | 'row';
  /** Whether rows of other tenants are among those of a type that may be seen. */
  shares(type: string): boolean;
  /** Whether any row of a type that is of this path may be seen. */
  mayShow(type: string, path: string | null): boolean;
  /** Tells whether rows of one of these types that may be seen were erased after this call. */
  erasing(types: Iterable<string>): () => boolean;
  /**
   * Vectors of the type's rows that were on record at an instant, each of texts of these columns alone; null where the caller reads rows
   * that others share, which have none for it. A vector of a text that is masked in any row of the type counts as not there: it says what
   * the text says.
   */
  embeddingsOf(type: string, model: EmbeddingModel, instant: bigint, texts: readonly string[]): EmbeddingReader | null;
  /** How often rows were recalled, as far as that was done at or below the caller's own path; by an instant, at most that of the snapshot. */
  recallsOf(type: string, rows: readonly RecalledRow[], instant: bigint): readonly RecalledTimes[];
  /** Such rows as the access record of a recall names them. */
  recalledAs(type: string, rows: readonly RecalledRow[]): Recalled;
  /** The rows themselves, for guesses, also where `rows` was replaced by some of them or by an answer that stands for them. */
  readonly stored: RowReader;
  /** At an instant that a recipe names: answers come from the log, never from what was cached of it. */
  readonly pinned?: true;
}

export interface RecalledRow {
  readonly key: string;
  /** Organisation path that it is of. */
  readonly path: string | null;
}

export interface RecalledTimes {
  readonly count: number;
  /** Nanoseconds; null: never. */
  readonly last: bigint | null;
}

export type Action =
  | 'query'
  | 'search'
  | 'export'
  | 'watch'
  | 'replay'
  | 'ingest'
  | 'delete'
  | 'remove'
  | 'erase'
  | 'schema'
  | 'fork'
  | 'administer'
  | 'audit'
  | 'inspect';

export interface InvocationRequest {
  readonly action: Action;
  /** Purpose as given by the caller; null when none was. */
  readonly purpose: string | null;
  readonly correlationId: string;
  /** Why what a guard protects is to be opened, as the caller says; it stands in the access record. */
  readonly breakGlass?: string | null;
  /** The scope that the caller was cleared for, as the caller says; it stands in the access record. */
  readonly accessScopeRef?: string | null;
  /** Answered while the caller's tenant is suspended, as reading one's own tokens is. */
  readonly whileSuspended?: boolean;
  /** Set by doors whose every call needs a purpose. */
  readonly purposeRequired?: boolean;
  /**
   * Goes on with what an earlier invocation was admitted and charged for, as each delivery of a standing query does: checked
   * and recorded as any other, but it takes no units and no place among the running queries.
   */
  readonly continues?: boolean;
  /**
   * Reads rows by so many keys, and nothing else: it begins with a hundredth of a unit for each, and counts as no running query;
   * further work is charged when it is known.
   */
  readonly keysRead?: number;
  /** Hears what it cost, in units, when it is over. */
  readonly onCost?: (costUnits: number) => void;
  /** Aborts when the caller is gone, or cancels: then nothing is left waiting for a slot, nor written after several turns. */
  readonly gone?: AbortSignal;
  /** It was refused before it came here, and only leaves its record. */
  readonly recordOnly?: boolean;
  /** It reads and writes in this transaction, which is its caller's. */
  readonly transaction?: Transaction | undefined;
  /** The write that it is, whatever it reads first. */
  readonly act?: Act;
  /** The protocol's own words for what is asked, recorded where nothing more exact is described. */
  readonly template?: string;
}

/** The uncommitted writes of a caller, shared by the invocations of one transaction. */
export interface Transaction {
  /** The id by which its caller finds it again. */
  readonly id: string;
  readonly caller: Caller;
  /** The basis of its reads; null before its first statement. */
  readonly basis: Basis | null;
  /**
   * Before its first statement: waits for others that write rows in which its client met a conflict; null: nothing to wait for.
   */
  waits(gone: AbortSignal | undefined): Promise<void> | null;
  /** From now on it reads what stands now, as its first statement would have it. REL_NOT_FOUND where the branch is not there. */
  fix(): Basis;
  /** On the monotonic clock, in milliseconds: when it was begun, and when it was used last. */
  readonly openedMs: number;
  readonly usedMs: number;
  /** Milliseconds without a statement after which it is over. */
  readonly idleMs: number;
  /** No writes wait for its commit. */
  readonly isEmpty: boolean;
  readonly rows: number;
  /** Once it holds so many, it takes no more. */
  readonly rowsMax: number;
  readonly bytes: number;
  /** Memory that goes when it ends. */
  readonly pinnedBytes: number;
  /** Rows of these keys and this path must stand at the commit as they were read in it. */
  lock(type: string, path: string | null, keys: Iterable<string>): void;
  savepoint(name: string): void;
  /** False where no savepoint has the name. Later writes stay. */
  release(name: string): boolean;
  /** False where there is none of the name. All is as it was there, and the savepoint stays. */
  rollbackTo(name: string): boolean;
  /** Drops all of it. */
  end(): void;
}

/** A write as its access record names it: reads that it needs do not rename it, and a refusal before it is submitted is a refusal of it. */
export interface Act {
  readonly action: Action;
  /** Instead of the template and literals of what it reads. */
  readonly template?: string;
  readonly literals?: readonly string[];
}

/** A call of a tool or verb, recorded beside what it did. */
export interface CallRecord {
  /** Type of the row that the call leaves. */
  readonly objectType: string;
  readonly template: string;
  readonly literals: readonly string[];
}

/** Facts about an invocation for its access record, known once it is understood. Later calls override earlier ones. */
export interface InvocationDetails {
  /** The actual action: a control statement comes in as a query. From here on it is decided as this. */
  readonly action?: Action;
  /** As in the request, where that could not know it. */
  readonly act?: Act;
  /** The call that this invocation serves: it leaves an access record of its own. */
  readonly call?: CallRecord;
  readonly objectType?: string;
  readonly template?: string | undefined;
  /** Literals of the statement, in order: only their keyed digest is kept. */
  readonly literals?: readonly string[] | undefined;
  /** The questions of an invocation that asks several, or does something of another name by asking; in the order in which they were asked. */
  readonly statements?: readonly StatementDetails[];
  /** Memories that an answer recalled: ids under a salt, never their content. */
  readonly recalled?: Recalled;
  readonly purpose?: string;
  readonly breakGlass?: string | null;
  readonly accessScopeRef?: string | null;
  readonly rowCount?: number;
  readonly costUnits?: number;
}

/** One question of an invocation that asks several. */
export type StatementDetails = Pick<InvocationDetails, 'template' | 'literals' | 'objectType' | 'rowCount' | 'costUnits'>;

export interface SubmitOptions {
  /** Fsynced before it is acknowledged, whatever the settings say. */
  readonly sync?: boolean;
  /** Rows wait while too much is on its way to the disk, in the order of their submission, instead of being refused. */
  readonly waits?: boolean;
  /**
   * Checks the rows that a command is about to store, in the turn that stores them: it must not wait, and an error of it refuses
   * the command.
   */
  readonly before?: (outcome: Omit<Outcome, 'durability' | 'replayed'>, written: () => readonly WrittenRows[]) => void;
}

/** Versions of one type, one after the other in system time, as they are about to be stored. */
export interface WrittenRows {
  readonly definition: TypeDefinition;
  readonly length: number;
  /** When the first of them begins. */
  readonly systemFrom: bigint;
  /** As a reader will find it; a column of which the caller sees some cells masked reads as NULL. */
  column(name: string): Vector;
}

export interface Invocation {
  readonly caller: Caller;
  readonly correlationId: string;
  /** The transaction that it is in. */
  readonly transaction: Transaction | null;
  describe(facts: InvocationDetails): void;
  /**
   * Checks purpose, quota and policy for reading, then pins branch, position and instant. To `describe` a statement reads no row and
   * ends within its turn: it counts as no running query.
   */
  snapshot(use?: 'read' | 'describe'): GovernedSnapshot;
  /** Checks purpose, quota, policy and storage cap, decides, appends, applies; resolves when acknowledged. */
  submit(command: Command, options?: SubmitOptions): Promise<Outcome>;
  /**
   * Writes what its transaction holds, all of it or nothing, and ends it; null where it holds nothing. REL_CONFLICT (`stale`) where a row
   * of it was written by another since it began: the transaction may be run again.
   */
  commit(options?: Pick<SubmitOptions, 'sync'>): Promise<Outcome | null>;
  /**
   * Reads and writes by `attempt`, again where a row that it read was written meanwhile (REL_CONFLICT, `stale`): at most sixteen
   * times, and one after the other with all attempts that met a conflict about the same key or type of the caller's path.
   */
  retryConflicts<T>(about: string, attempt: () => Promise<T>): Promise<T>;
  /**
   * Throws the refusals that `submit` would give now, and writes nothing: before a body is taken that the row is to name.
   * Conditions of
   * policies on columns that are not known yet are left to `submit`.
   */
  rehearse(command: PutRows, unknown: ReadonlySet<string>): Promise<Pick<Outcome, 'errors'>>;
  /** Access records of the caller's own scope; everybody's for the administrator. */
  audit(): AuditReader;
  /** Proofs of entries and rows of the caller's own scope; of everybody's for the administrator. */
  proofs(): ProofReader;
  /** Bodies that are too large for rows. */
  bodies(): BodyDesk;
  /** Exhibits that the caller may know of, and the data that re-deriving their links needs. */
  exhibits(): ExhibitDesk;
  /** Live branches by name, the tenant's own and the store's; without main, which was never forked. */
  branches(): readonly BranchView[];
  /** Registered tokens that the caller may know of, by id, without their hashes. */
  tokens(): readonly TokenView[];
  /** Tenants, members and agreements. */
  tenants(): TenantDeskContract;
  /** The installed policies, for the administrator. */
  policies(): PolicyDeskContract;
  /** Schedules and holds on a row of the caller's own path. REL_NOT_FOUND where there is none that it may remove. */
  retentionOf(type: string, key: string): readonly RetentionRule[];
  /**
   * Holds on rows of the type, at the caller's path and below it, that the caller may delete or remove. Throws REL_ACL where it may do so
   * to no row of the type.
   */
  heldRows(type: string, action: 'delete' | 'remove'): readonly HeldRow[];
  /** The same snapshot of nothing but rows that the caller may delete; of what agreements share, none. Throws REL_ACL where it may delete no row of the type. */
  deletable(type: string): GovernedSnapshot;
  /** Throws REL_ACL unless the caller may look at what the catalogue tells, beside the rows that are asked for. */
  checkInspects(): void;
  /**
   * The policies' check on the rows of each type, undefined while none is installed. Throws unless the caller may erase at all.
   */
  erasing(): RowCheck | undefined;
  /**
   * The live decision about reading a type, and its reasons; or as policies and types stood below a position, or at an instant in
   * nanoseconds, without shared rows. REL_INVALID for a position that lies ahead; refuses nothing else.
   */
  explainPolicy(objectType: string | null, at?: number | bigint): PolicyExplanation;
}

/** Which entry is to be proven: by a position that it covers, by its leaf, or the one that forked a branch. */
export interface ProofRequest {
  readonly position?: number;
  /** Instead: the instant of that position in nanoseconds, as `system_from` of a row has it. */
  readonly systemFrom?: bigint;
  readonly leaf?: number;
  readonly branch?: string;
  /** Leaves of the tree that it is proven in; the newest signed one by default. */
  readonly treeSize?: number;
  /** Size of an earlier tree that is to be proven a prefix of this one. */
  readonly from?: number;
  /** `_pk` of a row of the entry. */
  readonly row?: string;
}

/** Everything that a verifier needs besides the log's public key. Hashes are SHA-256, trees those of RFC 9162. */
export interface EntryProof {
  readonly origin: string;
  /** As asked for, or the row's own; null for an entry that covers none. */
  readonly position: number | null;
  readonly leafIndex: number;
  readonly leafHash: Uint8Array;
  readonly leaf: Uint8Array;
  readonly head: SignedHead;
  readonly path: readonly Uint8Array[];
  readonly consistency: PrefixProof | null;
  readonly row: RowProof | null;
  readonly branch: {
    readonly name: string;
    readonly source: string;
    readonly shares: string;
    /** The statement that the leaf commits to, beside the sealed body. */
    readonly statement: string;
    readonly position: number;
    /** The log as it was before the branch. */
    readonly fork: PrefixProof;
  } | null;
}

export interface PrefixProof {
  readonly first: number;
  readonly second: number;
  readonly firstRoot: Uint8Array;
  readonly path: readonly Uint8Array[];
}

export interface ProofReader {
  readonly origin: string;
  /** The log's key, as verifiers take it. */
  readonly key: string;
  /** Leaves that are durable by now: no head covers more. */
  readonly treeSize: number;
  leafHash(leaf: number): Uint8Array;
  /** The newest signed head. */
  head(): Promise<SignedHead>;
  /** Throws the same REL_NOT_FOUND for entries that do not exist and for entries that the caller may not see. */
  entry(request: ProofRequest): Promise<EntryProof>;
  /** `width` node hashes of C2SP tile (level, index). */
  tile(level: number, index: number, width: number): Promise<Uint8Array>;
}

/** The grant that a recipe ran under: the scope of then at the instant of then. */
export interface PinnedGrant {
  readonly branch: string;
  readonly path: string | null;
  readonly principal: string;
  readonly roles: readonly string[];
  readonly attributes: Caller['attributes'];
  readonly purpose: string | null;
  readonly door: string;
  readonly clientIp: string | null;
  readonly breakGlass: string | null;
  readonly accessScopeRef: string | null;
  /** `as_of_system` of the snapshot that the recipe was run on. */
  readonly instant: bigint;
  /** Digest of the policy set at its basis. */
  readonly policyDigest: string;
  /** By type: properties that were declared masked. */
  readonly masked: Readonly<Record<string, readonly string[]>>;
}

/** A link without the stored result. */
export interface LinkEntry extends Omit<ExhibitBody, 'resultHash' | 'recipe'> {
  /** null: it named an erased subject. */
  readonly recipe: string | null;
}

export interface ExhibitDesk {
  /** REL_NOT_FOUND for exhibits that do not exist and for those that the caller's path does not cover. */
  exhibit(id: string): ExhibitView;
  /** True when the caller may be shown the link's recipe, and re-derive it. */
  mayReplay(link: ExhibitLink): boolean;
  /** The link as the log holds it, without the stored result. REL_ACL without the right to replay it. */
  entry(exhibit: ExhibitView, link: ExhibitLink): Promise<LinkEntry>;
  /** Throws REL_ACL where the caller may not derive again what rows of one of these types came to. */
  checkReplay(types: Iterable<string>): void;
  /** Digest of the policy set as it stood at the basis of a snapshot; empty while none was installed. */
  policyDigest(snapshot: GovernedSnapshot): string;
  /**
   * A snapshot at the instant and under the scope of a recipe, by the policies of then: its rows leave as seals only. Rows that
   * agreements share are left out, for they end with the agreement. REL_ACL unless the caller's path covers that scope,
   * REL_UNPROCESSABLE where the log had another policy set then.
   */
  pin(grant: PinnedGrant, action?: 'query' | 'search'): GovernedSnapshot;
  /** True when rows of these types that a pinned snapshot saw were removed for good since. */
  rowsErasedSince(snapshot: GovernedSnapshot, types: ReadonlySet<string>): boolean;
  /** A signed head that covers the link: never over what is not durable. */
  head(link: ExhibitLink): Promise<SignedHead>;
}

/** A branch as every caller sees it who can name it: without its maker. */
export interface BranchView {
  readonly name: string;
  /** The tenant that owns the name; null: the store. A tenant sees its own and the store's, the operator sees all of them. */
  readonly tenant: string | null;
  readonly source: string;
  /** Position of the fork: the branch reads what its source held below it. Audit and admin surfaces only. */
  readonly fork: number;
  /** Leaf of the entry that forked it; audit and admin surfaces only. */
  readonly leaf: number;
  /** Nanosecond of the fork. */
  readonly instant: bigint;
  readonly shares: BranchBody['shares'];
  /** True when this caller may delete it. */
  readonly own: boolean;
}

export type TokenView = Omit<TokenRecord, 'secretHash'>;

export interface PolicyExplanation {
  /** `by row`: some rows may be read, as the residual says, or what is shared. */
  readonly decision: 'allow' | 'deny' | 'by row';
  /** One line a rule: `permit-own-tenant: whoever is known may …`. */
  readonly because: readonly string[];
  /** The rows that the caller's scope lets through, in words. */
  readonly scope: string;
  /** Policies that decide, or that may, with what is left of each in Cedar's words; rules while none is installed. */
  readonly determining: readonly { readonly id: string; readonly effect: 'permit' | 'forbid'; readonly left: string }[];
  /** The condition on rows of the caller's own organisation; null where all of them, or none, are visible. */
  readonly residual: string | null;
  readonly masks: readonly {
    readonly column: string;
    readonly kind: MaskKind;
    /** null: in every row. */
    readonly when: string | null;
    readonly because: string;
  }[];
  /** Digest of the policy set that decided; empty while none was installed. */
  readonly policyDigest: string;
  /** Entries below it were decided by. Audit and admin surfaces only. */
  readonly position: number;
  /** Rules, policies and agreements that let something through, each by its name. */
  readonly satisfiedPath: readonly string[];
}

export interface PolicyDraft {
  readonly id: string;
  /** Cedar; null: as if the text of this id were deleted. */
  readonly text: string | null;
}

export interface GateContract {
  /**
   * Runs one invocation. The access record is appended before the returned promise settles, whatever happens; if it
   * can't be, the promise rejects with REL_UNAVAILABLE and no data leaves.
   */
  invoke<T>(caller: Caller, request: InvocationRequest, run: (invocation: Invocation) => Promise<T>): Promise<T>;
  /**
   * The gate as it would be with the text of this policy: questions are answered, recorded and charged as by `invoke`, and judged by
   * the set that would be in force. REL_READ_ONLY for whatever writes.
   */
  rehearsal(draft: PolicyDraft): Pick<GateContract, 'invoke'>;
  /**
   * A transaction of this caller, for the invocations that are in it. REL_QUEUE_FULL where the tenant has as many as it may.
   * `after`: the previous transaction of its client, or its id, which affects no other client's turn; where that met a conflict,
   * the first invocation waits a while for others that write the same rows.
   */
  begin(caller: Caller, after?: Transaction | string | null): Transaction;
  /** The one of this id that the caller began, on whatever branch, and has not ended. REL_NOT_FOUND where there is none. */
  transaction(id: string, caller: Caller): Transaction;
  /** Transactions that are open: those that a caller began, and of whom it looks after; without one, all of them. */
  transactions(caller?: Caller): readonly Transaction[];
  /**
   * Throws the error with which the tenant's state would refuse the caller's next request: it ends a stream that makes no further
   * requests.
   */
  checkStanding(caller: Caller): void;
  /**
   * Calls back, in a turn of its own, once rows of the type that a caller of this path may see were written or removed and
   * are visible; several writes may be one call. Returns what ends the listening.
   */
  onVisible(scope: WriteScope, listener: () => void): () => void;
}

export interface WriteScope {
  /** The branch that this name means to the tenant, each time that something is written. */
  readonly branch: string;
  readonly tenant: string | null;
  readonly type: string;
  /** Whether the caller who listens may see a row of this path. */
  readonly shows: (path: string | null) => boolean;
}
