/**
 * Everything that can happen in a log: the closed union of entry kinds. An entry records effects (concrete keys and
 * values), never queries or clocks, so replay is deterministic and total. `log.ts` orders entries and never looks inside.
 */
import type { Json } from '../values/canonical-json.ts';
import type { RowBatch, Vector } from '../values/columns.ts';
import { type ColumnType, tenantOf } from '../values/value.ts';

/** Everything an entry says. Bodies are sealed at rest; the leaf holds only what `EntryContext` and hashes say. */
export type EntryBody =
  | GenesisBody
  | SealBody
  | RowsBody
  | RowPartsBody
  | RemovalBody
  | TypeBody
  | TokenBody
  | AccessBody
  | BranchBody
  | ExhibitBody
  | ViewBody
  | ReceiptBody
  | PolicyBody
  | TenantBody
  | AgreementBody
  | ErasureBody
  | RetentionBody
  | RedactionBody
  | OpenBody;

/** As leaves say it: rows are rows, in one part or in several. */
export type EntryKind = Exclude<EntryBody['kind'], 'parts'>;

export function kindOf(entryBody: EntryBody): EntryKind {
  return entryBody.kind === 'parts' ? 'rows' : entryBody.kind;
}

/** First entry of every log. Takes one position. */
export interface GenesisBody {
  readonly kind: 'genesis';
  readonly logId: string;
  readonly origin: string;
  readonly engineVersion: string;
}

/** A signed head over all leaves before this one: written on idle and on close. Takes no position. */
export interface SealBody {
  readonly kind: 'seal';
  readonly treeSize: number;
  /** C2SP signed note of the tree head. */
  readonly checkpoint: string;
}

/** The kind of a row version: asserted by a caller, left over from an overlapped one, or the end of a key. */
export const rowOp = { put: 0, remainder: 1, delete: 2 } as const;

/** Versions of rows of one type in one organisation path. Row i takes position `entry.position + i`. */
export interface RowsBody {
  readonly kind: 'rows';
  readonly type: string;
  /** One of `rowOp` for each row. */
  readonly ops: Uint8Array;
  /** `_pk`, valid_from and valid_to of each row, in this order of columns. valid_from of rows that were given none is their own system_from. */
  readonly keys: RowBatch;
  /** Positions that row i closes: closes[closeOffsets[i] .. closeOffsets[i+1]]. */
  readonly closeOffsets: Uint32Array;
  readonly closes: Float64Array;
  readonly cells: RowBatch;
  /** Shared by the rows of the entry; per-row lineage goes by `derivedFrom` in `cells` later. */
  readonly provenance: Provenance;
  /** Rows, ascending, of which only the leaf hash is left: their keys and cells here are NULL. Absent when all are whole. */
  readonly dropped?: readonly number[];
  /**
   * Subject of each row, a text vector; NULL: none. Rows of a subject are sealed under its key. Absent when written: no row has a
   * subject; when read: not loaded.
   */
  readonly subjects?: Vector;
}

/**
 * Rows of several writes that were committed together: two or more parts, each with a type and a provenance of its own. Rows are
 * numbered on from part to part, take one range of positions and have one root.
 */
export interface RowPartsBody {
  readonly kind: 'parts';
  readonly parts: readonly RowsBody[];
}

/** Source: specification, "Provenance entry". */
export interface Provenance {
  readonly source: string;
  readonly method: string;
  readonly confidence: number;
  /** Hex reference of the row this one was derived from, or null for genesis. */
  readonly derivedFrom: string | null;
}

/** Hard delete: these versions are gone for every reader at every basis. Takes one position. */
export interface RemovalBody {
  readonly kind: 'removal';
  readonly type: string;
  /** Removed keys, for subscribers of the type. Keys of a subject's versions are missing: they are written only in their rows. */
  readonly keys: readonly string[];
  /** Positions of every version of the removed keys, ascending. */
  readonly positions: Float64Array;
  /**
   * The chain of sources from a removed row's subject to the rows made from it: one text for each row that had a subject or was
   * made from one, encoded by `sealed-text.ts` under the key that sealed the row. Absent: there are none.
   */
  readonly sources?: readonly string[];
}

export interface PropertyDefinition {
  readonly type: ColumnType;
  readonly required: boolean;
  readonly masked: boolean;
  readonly indexed: boolean;
  readonly subject: boolean;
  /** Length of the vectors of a vector column; 0 elsewhere. */
  readonly dims: number;
  /** Type whose rows the cells name; absent: none. A column that names rows of a protected type is as protected. */
  readonly references?: string;
}

export interface GraphTrigger {
  readonly linkType: string;
  readonly sourceField: string;
  readonly targetField: string;
}

/** The tenant whose name an entry gives to a type or a branch; null: everybody inherits it. */
export function scopeOfName({ context }: EntryDraft, { own }: TypeBody | BranchBody): string | null {
  return own === true ? tenantOf(context.path) : null;
}

/** A type as it stands after this entry. Takes one position. */
export interface TypeBody {
  readonly kind: 'type';
  readonly definition: TypeDefinition;
  /** The name belongs to the tenant of the entry. Absent: it is everybody's, as all names were in logs of earlier releases. */
  readonly own?: true;
}

export interface TypeDefinition {
  readonly name: string;
  /** In order of declaration or first appearance. */
  readonly properties: Readonly<Record<string, PropertyDefinition>>;
  /** Open types take unseen properties and infer their column types on write; closed ones refuse them. */
  readonly open: boolean;
  /** The property that is `_pk`; null: `id`, else made by Annals. */
  readonly primaryKey: string | null;
  readonly graphTriggers: readonly GraphTrigger[];
  /** Ontology version at which this definition was made: rises with every `type` entry of the branch. */
  readonly ontologyVersion: number;
  /** Absent: readers state nothing beyond their purpose. */
  readonly guard?: TypeGuard;
  /** Rows are edges: the columns that name the two ends. */
  readonly edge?: EdgeColumns;
  /** The role by which functions find the type, such as `payment` or `sighting`. */
  readonly role?: string;
  /** Columns of the role that have another name in the type: by column of the role, the property. Never empty. */
  readonly roleColumns?: Readonly<Record<string, string>>;
  /** Properties whose cells are identifiers, such as phone numbers: by property, the kind. Never empty. */
  readonly identifierKinds?: Readonly<Record<string, string>>;
  /** Properties whose cells name the thing that a row is about, beside its key. Never empty. */
  readonly identifier?: readonly string[];
  /** Language of its texts: a BCP 47 tag. */
  readonly language?: string;
}

export interface EdgeColumns {
  readonly from: string;
  readonly to: string;
}

/** Statements that a caller must make before reading rows of a type. At least one of them holds. */
export interface TypeGuard {
  /** A reason (break-glass), and the role for it. */
  readonly protected: boolean;
  /** A reference to the scope that the reader was cleared for. */
  readonly accessScope: boolean;
}

/** The registry of tokens: the secret itself is never here, only its SHA-256. Takes one position. */
export interface TokenBody {
  readonly kind: 'token';
  readonly change: 'minted' | 'rotated' | 'revoked';
  readonly token: TokenRecord;
  /** The token that a rotation ended. */
  readonly replaces: string | null;
}

export interface TokenRecord {
  readonly id: string;
  /** Lower-case hex SHA-256 of the secret. */
  readonly secretHash: string;
  readonly principal: string;
  readonly tenant: string | null;
  readonly organization: string | null;
  readonly roles: readonly string[];
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  readonly purposes: readonly string[];
  /** Nanoseconds; FOREVER when it never expires. */
  readonly expiresAt: bigint;
}

/** Invocations: one record each, reads and writes, allowed and refused. Takes a leaf and no position. */
export interface AccessBody {
  readonly kind: 'access';
  readonly records: readonly AccessRecord[];
}

export interface AccessRecord {
  /** Nanoseconds at which the invocation was decided. */
  readonly time: bigint;
  readonly correlationId: string;
  readonly principal: string;
  readonly tenant: string | null;
  readonly path: string | null;
  readonly door: string;
  readonly action: string;
  readonly purpose: string | null;
  readonly objectType: string | null;
  readonly decision: 'allow' | 'deny' | 'error';
  /** Error code of a refusal or failure. */
  readonly code: string | null;
  /** Statement template: literals replaced by `?`. Never the literals themselves. */
  readonly template: string | null;
  /** Keyed digest (HMAC-SHA-256, hex) of the literals, in order. */
  readonly literalDigest: string | null;
  /** `as_of_system` of a read in nanoseconds; 0 when nothing was read. */
  readonly basis: bigint;
  readonly rowCount: number;
  readonly costUnits: number;
  readonly durationMs: number;
  /** Statements by which the caller opened a guarded type; absent: none. */
  readonly stated?: StatedOpening;
  /** Questions that the invocation asked, in their order, where they are not the record itself; absent: none. Never empty. */
  readonly statements?: readonly StatementRecord[];
  /** Memories that the answer recalled; absent: none that are counted. */
  readonly recalled?: Recalled;
}

/** One question of an invocation that asked several, or that did something of another name by asking. As in `AccessRecord`. */
export interface StatementRecord {
  readonly template: string | null;
  readonly literalDigest: string | null;
  readonly objectType: string | null;
  readonly rowCount: number;
}

/** Ids of what was recalled, in the order of the answer: they tell that two are of one thing, and not of which. */
export interface Recalled {
  /** Which salt they were made with: its name. Without that salt an id leads to nothing. */
  readonly salt: string;
  readonly ids: readonly string[];
}

/** At least one of them. */
export interface StatedOpening {
  /** The reason, of types that are protected. */
  readonly breakGlass: string | null;
  /** The access scope that the caller was cleared for. */
  readonly accessScopeRef: string | null;
}

/**
 * A branch forked or deleted. Takes one position, and that position is the fork: the branch reads what its source held
 * below it. The entry's own context names the branch it is about, so its leaf says so in the clear.
 */
export interface BranchBody {
  readonly kind: 'branch';
  readonly change: 'forked' | 'deleted';
  readonly name: string;
  /** The branch forked from; of a deletion, the one that the branch had been forked from. */
  readonly source: string;
  /** `ontology`: types only, no rows. */
  readonly shares: 'everything' | 'ontology';
  /** As in `TypeBody`. */
  readonly own?: true;
}

/**
 * One link of an exhibit: how an answer came about (`recipe`) and what it came to (`resultHash`). Takes one position.
 * Link 0 opens the exhibit and seals its title; links count from 1. All hashes are lower-case hex SHA-256.
 */
export interface ExhibitBody {
  readonly kind: 'exhibit';
  readonly exhibit: string;
  readonly link: number;
  /** The act recorded on the exhibit: `query`, `note`, … */
  readonly act: string;
  /** RFC 8785 JSON, or its sealed form under a key of its own. `seal` covers the plain text. */
  readonly recipe: string;
  readonly resultHash: string;
  readonly previousSeal: string;
  readonly seal: string;
}

/**
 * A materialized view: a name for a query, and how often what is cached of it is brought up to date; or the end of one. Takes one
 * position.
 */
export interface ViewBody {
  readonly kind: 'view';
  readonly name: string;
  /** The SELECT, as written, or its sealed form under a key of its own. */
  readonly sql: string;
  readonly refreshSecs: number;
  /** The view of this name and path ends here: it has no query, and nothing of it is brought up to date. */
  readonly dropped?: true;
}

/**
 * The outcome of one batch of an idempotent request, written with its effects in one append: the same request again gets
 * the same reply and has no further effect. Takes a leaf and no position.
 */
export interface ReceiptBody {
  readonly kind: 'receipt';
  /** Lower-case hex SHA-256 over the caller and the idempotency key. */
  readonly key: string;
  /** Number of the batch within the request, from 0. */
  readonly batch: number;
  /** Lower-case hex SHA-256 of what the batch asked for. */
  readonly request: string;
  /** The outcome, as JSON. */
  readonly outcome: string;
}

/** One policy of the set, as it stands after this entry. Takes one position; the set is main's. */
export interface PolicyBody {
  readonly kind: 'policy';
  readonly change: 'installed' | 'deleted';
  readonly id: string;
  /** Cedar; empty when deleted. */
  readonly text: string;
  /** Digest of the set after this entry: lower-case hex SHA-256 over the RFC 8785 JSON of {id: text}; empty when none is left. */
  readonly digest: string;
}

/** How a tenant went: out of use with its record kept, with all rows removed, or with nothing left but its name. */
export type DeletionManner = 'soft' | 'purge' | 'tombstone';

/** The registry of tenants. Takes one position. `purged`: of a deleted one no row is left on any branch. */
export interface TenantBody {
  readonly kind: 'tenant';
  readonly change: 'created' | 'changed' | 'suspended' | 'reactivated' | 'deleted' | 'purged';
  /** How a deletion was meant; null elsewhere. */
  readonly manner: DeletionManner | null;
  readonly tenant: TenantRecord;
}

/** As it stands after its entry. */
export interface TenantRecord {
  /** An organisation path of one segment. */
  readonly id: string;
  readonly name: string;
  readonly tier: string;
  readonly state: 'active' | 'suspended' | 'deleted';
  readonly quota: TenantQuota;
  /** Defaults of the tenant's searches. */
  readonly search: { readonly [name: string]: Json };
  /** By principal, in codepoint order. */
  readonly members: readonly TenantMember[];
  /** Nanoseconds, like `changedAt`. */
  readonly createdAt: bigint;
  readonly changedAt: bigint;
}

export const quotaNames = ['queryUnits', 'inFlight', 'storageBytes', 'subscriptions', 'requestsPerSecond'] as const;

/** null: the setting applies. */
export type TenantQuota = Readonly<Record<(typeof quotaNames)[number], number | null>>;

export interface TenantMember {
  readonly principal: string;
  readonly role: string;
}

/** Shares rows of one organisation with another. Takes one position, and is in both tenants' audit views. */
export interface AgreementBody {
  readonly kind: 'agreement';
  readonly change: 'proposed' | 'accepted' | 'activated' | 'suspended' | 'resumed' | 'revoked' | 'expired' | 'changed';
  readonly agreement: AgreementRecord;
}

/** From the least to the most that is shown of a cell; of two masks the first holds. `last4` and `year` show alike. */
export const maskKinds = ['redact', 'null', 'hash', 'bucket', 'last4', 'year'] as const;
export type MaskKind = (typeof maskKinds)[number];

export const agreementStates = ['proposed', 'accepted', 'active', 'suspended', 'revoked', 'expired'] as const;
export type AgreementState = (typeof agreementStates)[number];

/** The part of a row's history that is shared: from the activation on, all of it, or the current versions only. */
export const sharedHistories = ['from_start', 'full', 'current_only'] as const;

/** The terms that both sides consent to. */
export interface AgreementTerms {
  /** The organisation path that shares rows, with all paths below it. */
  readonly assigner: string;
  /** The organisation path that sees them, with all paths below it. */
  readonly assignee: string;
  readonly types: readonly string[];
  /** Cedar condition over `resource`; null: every row. */
  readonly where: string | null;
  /** null: every column. */
  readonly columns: readonly string[] | null;
  /** Names of the actions allowed on the rows. */
  readonly permission: readonly string[];
  /** Empty: any purpose. */
  readonly purposes: readonly string[];
  /** Nanoseconds: in force from `validFrom` to just before `validTo`. */
  readonly validFrom: bigint;
  readonly validTo: bigint;
  readonly history: (typeof sharedHistories)[number];
  readonly masking: Readonly<Record<string, MaskKind>>;
  readonly onwardSharing: boolean;
  /** Groups of fewer rows are not shown; null: of any size. */
  readonly aggregateMinGroup: number | null;
  /** Lower-case hex SHA-256 of a document that both sides signed elsewhere. */
  readonly termsDigest: string | null;
}

export interface AgreementRecord extends AgreementTerms {
  readonly id: string;
  readonly state: AgreementState;
  readonly createdAt: bigint;
  /** Time of the first activation; null before it. */
  readonly activatedAt: bigint | null;
}

/**
 * A subject made unreadable for good, on every branch and at every basis. `intended` removes the versions; `completed`, once the
 * subject's keys and all that was derived from the rows are gone, says what was found. Takes one position.
 */
export interface ErasureBody {
  readonly kind: 'erasure';
  readonly change: 'intended' | 'completed';
  /** The receipt has the same id. */
  readonly id: string;
  /** Lower-case hex HMAC-SHA-256 of the subject under a salt that only the requester gets. */
  readonly commitment: string;
  /** Without what names the subject. */
  readonly reason: string;
  /** Ids of the subject's keys. */
  readonly keys: readonly string[];
  /** Versions that an intent removes, by type in codepoint order; empty of a completion. */
  readonly versions: readonly ErasedVersions[];
  /**
   * Positions, ascending, of views, removals and open entries that repeat the subject in texts of their own. Projections wipe
   * their copies, and no caller sees them again. The intent lists them; empty of a completion.
   */
  readonly mentions: readonly number[];
  /** RFC 8785 JSON of what the receipt of a completion says; empty of an intent. */
  readonly statement: string;
}

export interface ErasedVersions {
  readonly type: string;
  /** Organisation paths that the versions lay in: null first, then in codepoint order. */
  readonly paths: readonly (string | null)[];
  /** Positions of all versions, on every branch, ascending. */
  readonly positions: readonly number[];
}

/** A subject is of one tenant, and so are all of its versions. */
export function tenantOfErased({ paths }: Pick<ErasedVersions, 'paths'>): string | null {
  return tenantOf(paths[0] ?? null);
}

/** How long the row of a version is kept. Takes one position. */
export interface RetentionBody {
  readonly kind: 'retention';
  readonly change: 'scheduled' | 'held' | 'released';
  readonly id: string;
  readonly type: string;
  /** Position of the newest version of the row: its key is not repeated here. */
  readonly position: number;
  /** Nanoseconds: the row is removed for good once they are over; FOREVER while it is held or was released. */
  readonly until: bigint;
}

/** Bytes were dropped from the log's files. Takes a leaf and no position. */
export interface RedactionBody {
  readonly kind: 'redaction';
  /** Entries up to this leaf left nothing but leaf hashes in the log of the rows that they removed for good. */
  readonly through: number;
  /** Rows that were dropped on that occasion. */
  readonly rows: number;
}

/**
 * Kinds that had a number before they had a design: `batch` (the parts of one append), `edge`, `embedding` (of versions, by a
 * model), `judgement` (whether two rows are of one thing), `identity` (a merge or a split), `model` (as trained), `rule`, `job`
 * (as scheduled), `run` (of a job), `quarantine` (rows hidden, and shown again), `search` (a configuration).
 */
export const openKindNumbers = {
  batch: 18,
  edge: 19,
  embedding: 20,
  judgement: 21,
  identity: 22,
  model: 23,
  rule: 24,
  job: 25,
  run: 26,
  quarantine: 27,
  search: 28,
} as const;
export type OpenKind = keyof typeof openKindNumbers;
export const openKinds = Object.keys(openKindNumbers) as readonly OpenKind[];

/**
 * An entry of an open kind. Its writers and readers agree on its content: no projection of this release applies it, except
 * vectors of a model, and an erasure searches it like any text. Takes one position.
 */
export interface OpenBody {
  readonly kind: OpenKind;
  /** RFC 8785 JSON as text, or bytes; of no bytes, it was dropped. Vectors: of the kind `embedding` alone. */
  readonly content: string | Uint8Array | Embedded;
}

/** Vectors of the texts of stored versions, as a model gave them: an effect, so that replay asks no model. */
export interface Embedded {
  readonly model: string;
  /** Lower-case hex SHA-256 of what else tells the model from others. */
  readonly digest: string;
  readonly type: string;
  /** Columns whose texts were embedded. */
  readonly columns: readonly string[];
  readonly dims: number;
  /** Positions of the versions. */
  readonly positions: Float64Array;
  /** `dims` numbers of each, one after the other. */
  readonly vectors: Float32Array;
  /** Rows of which nothing is left, because their versions were removed for good. */
  readonly dropped: number;
  /** Subject of each row, set only when written and only if some row has one. */
  readonly subjects?: readonly string[];
  /** Read from sections that are sealed by subject: rows of which the key is destroyed are missing. */
  readonly isSealed?: true;
}

const openKindNames: ReadonlySet<string> = new Set(openKinds);

export function isOpenKind(kind: EntryBody['kind']): kind is OpenKind {
  return openKindNames.has(kind);
}

export function isOpen(entryBody: EntryBody): entryBody is OpenBody {
  return isOpenKind(entryBody.kind);
}

/** The branch that always exists: it was never forked, and cannot be deleted. */
export const mainBranch = 'main';

/** Principal, channel and reason: the part of an entry that its leaf shows in the clear. */
export interface EntryContext {
  readonly branch: string;
  readonly tenant: string | null;
  /** Organisation path that the rows belong to; null = no tenant. */
  readonly path: string | null;
  readonly principal: string;
  readonly door: string;
  readonly purpose: string | null;
  readonly correlationId: string;
  /** Hex; empty until a policy set is installed. */
  readonly policyDigest: string;
}

export interface EntryDraft {
  readonly context: EntryContext;
  readonly body: EntryBody;
}

/** An entry with its position. Projections apply it, live and on replay alike. */
export interface CommittedEntry extends EntryDraft {
  /** Number of the leaf in the tree: dense from 0. */
  readonly leaf: number;
  /** First position that the entry covers, dense over entries; where the next one would start if it covers none. */
  readonly position: number;
  /** How many positions it covers: rows of a `rows` entry, 1 for control events, 0 for `access`, `seal`, `receipt` and `redaction`. */
  readonly positions: number;
  /** Nanoseconds; row i has system_from = time + i. Strictly above every earlier entry's last instant. */
  readonly time: bigint;
}

/** An entry whose body has no parts: what projections apply. */
export interface WholeEntry extends CommittedEntry {
  readonly body: Exclude<EntryBody, RowPartsBody>;
}

/** The parts of an entry one after the other, each as an entry at its own positions and times; an entry without parts is itself. */
export function* splitParts(partsEntry: CommittedEntry): Generator<WholeEntry> {
  if (isWhole(partsEntry)) return yield partsEntry;
  const { context, leaf } = partsEntry;
  let { position, time } = partsEntry;
  for (const partBody of rowBodiesOf(partsEntry.body)) {
    const partPositions = positionsOf(partBody);
    yield { context, body: partBody, leaf, position, positions: partPositions, time };
    position += partPositions;
    time += BigInt(partPositions);
  }
}

export function isWhole(entry: CommittedEntry): entry is WholeEntry {
  return entry.body.kind !== 'parts';
}

/** The rows of a body, part by part; none where it is of another kind. */
export function rowBodiesOf(entryBody: EntryBody): readonly RowsBody[] {
  if (entryBody.kind === 'parts') return entryBody.parts;
  return entryBody.kind === 'rows' ? [entryBody] : [];
}

/** Positions that a body covers. */
export function positionsOf(entryBody: EntryBody): number {
  if (isOpen(entryBody)) return 1;
  switch (entryBody.kind) {
    case 'rows':
      return entryBody.ops.length;
    case 'parts':
      return entryBody.parts.reduce((partPositions, { ops }) => partPositions + ops.length, 0);
    case 'access':
    case 'seal':
    case 'redaction':
    case 'receipt':
      return 0;
    case 'genesis':
    case 'removal':
    case 'type':
    case 'token':
    case 'branch':
    case 'exhibit':
    case 'view':
    case 'policy':
    case 'tenant':
    case 'agreement':
    case 'erasure':
    case 'retention':
      return 1;
  }
}
