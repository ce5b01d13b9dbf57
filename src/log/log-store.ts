/**
 * The log as the rooms above see it: an order of entries that is durable, hashed and provable. The embedded default
 * is `LocalLog` in `log.ts`; a replicated log can stand behind the same interface.
 */
import type { RowKeys } from './entries/section-opener.ts';
import type { Ascending, Redacted } from './files/file-redaction.ts';
import type { CommittedEntry, EntryDraft } from './entries/entry.ts';
import type { LeafFields, OpenedEntry } from './entries/entry-codec.ts';
import type { EntryLocator } from './files/log-reader.ts';
import type { Manifest } from './files/manifest.ts';
import type { TreeHead } from './tree/merkle-tree.ts';
import type { SavedLog } from './files/saved-log.ts';

/** Where the next append will land, and at which nanosecond: position p has time `time + (p - position)`. */
export interface NextPosition {
  readonly position: number;
  readonly time: bigint;
}

/** The readable part of the log: whole durable entries only. */
export interface Basis {
  /** Positions below this one are visible. */
  readonly position: number;
  /**
   * The clock instant of a snapshot taken now. Not below any visible entry's last instant, below every entry that is
   * not visible yet and every later one: the log never gives out a time at or below an instant it has handed to a reader.
   */
  readonly instant: bigint;
}

export type WalSync = 'always' | 'interval' | 'off';

/** How an acknowledgement was earned. `buffered` is only ever said by `off`: such rows may be lost with the machine. */
export type Durability = 'synced' | 'buffered';

export interface Appended {
  /** Assigned in the calling turn; contiguous positions and times, in the order of the drafts. */
  readonly entries: readonly CommittedEntry[];
  /**
   * Resolves when the group holding these entries met the sync policy (`always`, `interval`: fsynced; `off`: written) and they
   * are visible. Rejects with REL_UNAVAILABLE when the log failed first, or found no room: the outcome is then unknown. Reading
   * the promise again after a lack of room gives the final outcome.
   */
  readonly acknowledged: Promise<Durability>;
  /**
   * Resolves when the bytes were handed to the operating system, before their fsync: what an access record waits for.
   * Both promises are made when they are asked for, and neither counts as an unhandled rejection.
   */
  readonly written: Promise<void>;
}

export interface AppendOptions {
  /** Fails an assertion when the log has moved on since `next()`, as `claim` tells: decide and append belong in one turn. */
  readonly at?: NextPosition;
  /** Per-write `X-Service-Durability: sync`: this group is fsynced before the acknowledgement even under `off`. */
  readonly sync?: boolean;
}

/** A head as a C2SP signed note. */
export interface SignedHead extends TreeHead {
  readonly note: string;
}

/** An entry as it is stored: its hashed leaf, and access to the sealed body. */
export interface StoredEntry {
  readonly facts: LeafFields;
  readonly leaf: Uint8Array;
  /** Opens the body. Throws REL_STORAGE when it is not what the leaf commits to. */
  open(): OpenedEntry;
  /** Which keys its rows lie under, whether they are there or not; null where none is sealed by subject. */
  rowKeys(): RowKeys | null;
}

/** Material for proofs over the log. The tree also has hashes of entries that are not yet durable: a head says which count. */
export interface LogProofs {
  /** Verifier key of the log in the form of C2SP signed notes: `<origin>+<key hash>+<key>`. */
  readonly key: string;
  /** Leaves that a head can be signed over by now. */
  readonly durable: number;
  /** Root and path of RFC 9162 over the first `size` leaves. */
  root(size: number): Uint8Array;
  leafHash(leaf: number): Uint8Array;
  inclusion(leaf: number, size: number): readonly Uint8Array[];
  consistency(first: number, second: number): readonly Uint8Array[];
  /** `width` node hashes of a C2SP tile; null unless a tree of `size` leaves has them all. */
  tile(level: number, index: number, width: number, size: number): Uint8Array | null;
  /**
   * The newest signed head that is stored; where it covers fewer than `leaves`, one is made: over what is durable, after
   * an fsync where that is needed. Throws REL_UNAVAILABLE when the log has failed before it could be.
   */
  head(leaves: number): Promise<SignedHead>;
  /** A head of an earlier size, which a stored one covers. */
  headAt(size: number): Promise<SignedHead>;
  /** Undefined when no entry that was written has this leaf, or covers this position. */
  entry(locator: EntryLocator): Promise<StoredEntry | undefined>;
  /** Entries that cover positions of an ascending list, each once, in order; neighbours in the log are read together. */
  entries(positions: readonly number[]): AsyncGenerator<StoredEntry>;
}

/** A log as it can be copied while it is written: up to here no byte of it changes any more. */
export interface LogCapture {
  /** All files of then; the last is the open one. */
  readonly manifest: Manifest;
  /** Bytes of the last file that hold frames. */
  readonly openLength: number;
  /** Over exactly the leaves that these bytes hold, and covered by a head that is stored. */
  readonly head: SignedHead;
}

export interface LogStatus {
  /** `full`: open, and nothing is written until the disk has room. */
  readonly state: 'open' | 'full' | 'failed' | 'draining' | 'closed';
  readonly logId: string;
  readonly origin: string;
  readonly leaves: number;
  readonly positions: number;
  /** Leaves known fsynced. */
  readonly durableLeaves: number;
  readonly bytes: number;
  readonly files: number;
  /** The bytes that recovery cut from the tail at open; zero after a clean close. Shown until the next clean close. */
  readonly recovery: { readonly cutBytes: number; readonly cutFrom: string | null; readonly replayedLeaves: number };
  /** Why the log accepts no writes: for now where it is full, until a restart where it has failed. */
  readonly failure: string | null;
}

export interface LogStore {
  status(): LogStatus;
  next(): NextPosition;
  /** Whether an append may still be given a place that was meant to come later than `next()`: it is kept for this turn then. */
  claim(claimed: NextPosition): boolean;
  basis(): Basis;
  /** Synchronous placement, asynchronous durability. Throws REL_UNAVAILABLE at once when the log is full, failed or closed. */
  append(drafts: readonly EntryDraft[], options?: AppendOptions): Appended;
  /** Resolves once all that was appended so far, but for access records, is acknowledged. */
  readonly acknowledged: Promise<Durability>;
  /** Committed entries from a leaf on, up to what was written when the call was made. Verifies frames as it reads. */
  read(fromLeaf: number): AsyncIterable<CommittedEntry>;
  /**
   * Drops the versions and texts at these positions, ascending, from every file of the log: of rows their leaf hashes are left,
   * of exhibits, views and removals all but their texts. No hash changes. Durable when it resolves. Rows that are sealed by
   * subject stay: their keys are destroyed instead. `through`: these are all positions that entries up to that leaf removed,
   * which a `redaction` then records. Rejects when the log fails meanwhile; a repetition continues.
   */
  redact(positions: Ascending, yieldTurn: () => Promise<void>, through?: number): Promise<Redacted>;
  /** Calls back, in order and in the turn in which it becomes true, whenever more positions are visible. */
  onVisible(listener: (basis: Basis) => void): void;
  head(): TreeHead;
  readonly proofs: LogProofs;
  /** Appends and fsyncs a signed head if anything was written since the last one. */
  seal(): Promise<void>;
  /** The state from which a later open resumes: everything placed by now. Useless until it is `durable`. */
  savedState(): SavedLog;
  /** Resolves when the first `leaves` are fsynced, which it asks for. Rejects with REL_UNAVAILABLE when the log failed first. */
  durable(leaves: number): Promise<void>;
  /** Drains, seals, closes. No append succeeds afterwards. */
  close(): Promise<void>;
}
