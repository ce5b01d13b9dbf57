/**
 * The log on local files: the order of everything that ever happened here.
 *
 * - Positions are dense and number row versions and control events; leaves are dense and number entries.
 * - System time rises strictly with position, whatever the clock does, and never reaches an instant that a reader holds.
 * - Every entry links to the hash of the one before it; the hash covers the sealed payload, so forgetting a key leaves
 *   the chain verifiable.
 * - Placing an entry is synchronous and can fail only as a whole; durability comes later, in groups.
 * - Acknowledged means that the chosen sync policy was met. Visible means acknowledged: what one reader has seen can't
 *   vanish for the next.
 * - The log never looks inside a body, save that it writes `genesis` and `seal` itself.
 *
 *   opening -> open -> draining -> closed
 *                \\________________/
 *                 `-> failed: a write or fsync failed; reads of what is durable go on, nothing is written again
 *
 * A disk without room fails nothing: what is placed is kept until it can be written (`disk-room.ts`), and no append is taken.
 */
import type { Clock, Random } from '../clock.ts';
import { assert, ServiceError } from '../errors.ts';
import { lastInstantOf } from './files/chain.ts';
import { type BulkOptions, BulkSealer } from './entries/bulk-sealer.ts';
import { signCheckpoint } from './tree/checkpoint-note.ts';
import type { Disk } from './disk/disk.ts';
import { DiskRoom, settled } from './disk-room.ts';
import { type EncodedEntry, EntrySealer, type PlacedEntry } from './entries/entry-codec.ts';
import type { OpenBeside } from './files/frame-opener.ts';
import type { CommittedEntry, EntryBody, EntryContext, EntryDraft } from './entries/entry.ts';
import { failureText, GroupCommit } from './group-commit.ts';
import type { Keyring } from './keys/keys.ts';
import { ENTRY_HEADER_BYTES, FRAME_BYTES_MAX, FRAME_HEADER_BYTES } from './files/log-file.ts';
import { LocalProofs } from './local-proofs.ts';
import { type ReadRange, readEntries, readStoredEntries } from './files/log-reader.ts';
import type {
  AppendOptions,
  Appended,
  Basis,
  Durability,
  LogCapture,
  LogProofs,
  LogStatus,
  LogStore,
  NextPlace,
  SignedHead,
  WalSync,
} from './log-store.ts';
import { defaultWriterLimits, LogWriter, type WriterLimits } from './files/log-writer.ts';
import type { Frontier, TreeHead } from './tree/merkle-tree.ts';
import { type LogFileRecord, logFileName } from './files/manifest.ts';
import { type Ascending, firstFrom, redactFile, type Redacted } from './redaction.ts';
import { checkpointPath, type Recovered, recover } from './recovery.ts';
import { type ResumeOptions, type SavedLog, savedLog } from './files/saved-log.ts';
import { FOREVER } from './values/timestamp.ts';
import type { TreeStore } from './tree/tree-store.ts';

export interface LocalLogOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  /** The data directory; whoever opens the log holds its lock. */
  readonly directory: string;
  readonly keyring: Keyring;
  /** Name of the log in its signed heads, e.g. `<host>/log/main`. */
  readonly origin: string;
  readonly engineVersion: string;
  readonly walSync: WalSync;
  /** A seal follows so long after the last write; 0: only on close. */
  readonly sealIdleMs: number;
  readonly limits?: Partial<WriterLimits>;
  /** How large bodies of rows are sealed beside the event loop; without it all are in the turn in which they are placed. */
  readonly bulk?: BulkOptions;
  /** Opens what is replayed beside the event loop; an entry is then whole within `replay` only. Absent: all in the turn. */
  readonly openBeside?: OpenBeside;
  /** What an earlier process saved: only what follows is read and replayed. */
  readonly resume?: ResumeOptions;
  /** Gets every entry that is there, in order, before `open` returns; with `resume` those that the saved state does not stand for. */
  readonly replay: (entry: CommittedEntry, leafHash: Uint8Array) => void;
  /** Asked between frames of a replay: whoever gets the entries may need time to put them away. */
  readonly breathe?: () => Promise<void> | undefined;
  /** One line for the operator: the disk has no room, or has it again; the log has failed. */
  readonly say?: (line: string) => void;
  /** Gets entries that the log writes by itself (`seal`), in the turn in which they are placed. */
  readonly onEntry?: (entry: CommittedEntry) => void;
}

type State = { at: 'open' } | { at: 'draining' } | { at: 'closed' } | { at: 'failed'; reason: string };

const ownContext: EntryContext = {
  branch: 'main',
  tenant: null,
  path: null,
  principal: 'annals',
  door: 'internal',
  purpose: null,
  correlationId: '',
  policyDigest: '',
};

export class LocalLog implements LogStore {
  readonly #options: LocalLogOptions;
  readonly #logDirectory: string;
  readonly #writer: LogWriter;
  readonly #room: DiskRoom;
  readonly #commits: GroupCommit;
  readonly #sealer: EntrySealer;
  readonly #bulk: BulkSealer | null;
  /** The tree over the linked entries. */
  readonly #tree: Frontier;
  readonly #nodes: TreeStore;
  readonly #logId: string;
  readonly #recovery: LogStatus['recovery'];
  readonly proofs: LogProofs;
  readonly #listeners: ((basis: Basis) => void)[] = [];
  readonly #closing = new AbortController();
  #state: State = { at: 'open' };
  /** Entries that are placed and not linked: the first one's body is not sealed yet. */
  #unlinked: PlacedEntry[] = [];
  /** Entries that are placed, linked or not. */
  #leaves: number;
  #lastAppended: Pick<Appended, 'written'> | null = null;
  #previousHash: Uint8Array;
  #position: number;
  #lastInstant: bigint;
  #visiblePosition: number;
  #visibleInstant: bigint;
  /** First instants of entries that are placed and not visible: a reader's instant stays below the first. */
  readonly #hidden: { readonly leaf: number; readonly time: bigint }[] = [];
  #handedOut: bigint;
  #promised: NextPlace | null = null;
  #sealedLeaves: number;
  /** The same before the last seal: that one may not be written yet. */
  #sealedBefore: number;
  #seals: number;
  /** Newest head in the checkpoint file. */
  #stored: SignedHead;
  #lastWriteMs = 0;
  #sealTimer = false;
  /** It has begun, and whoever comes is told when it finds no room. */
  #opened = false;
  #sealing: Promise<void> = Promise.resolve();
  #redacting: Promise<unknown> = Promise.resolve();

  /** Recovers what is there, or begins a log. Throws REL_STORAGE rather than open a log that lost something durable. */
  static async open(options: LocalLogOptions): Promise<LocalLog> {
    const logDirectory = `${options.directory}/log`;
    const recovered = await recover({ ...options, logDirectory });
    const log = new LocalLog(options, logDirectory, recovered);
    try {
      if (log.#tree.size === 0) await log.#begin();
      // All that was replayed is durable, and from here on the signed head says so.
      if (log.#tree.size > recovered.checkpointSize) await (log.#sealing = log.#store(log.#signed(log.head())));
    } catch (error) {
      // Nobody waits for room before there is a log.
      log.#state = { at: 'draining' };
      log.#closing.abort();
      await log.#commits.idle();
      await log.#writer.abandon();
      throw error;
    }
    log.#opened = true;
    if (log.#tree.size > log.#sealedLeaves) log.#sealWhenIdle();
    return log;
  }

  private constructor(options: LocalLogOptions, logDirectory: string, { end, chain, nodes, report }: Recovered) {
    this.#options = options;
    this.#logDirectory = logDirectory;
    const limits = { ...defaultWriterLimits, ...options.limits };
    this.#writer = new LogWriter(options.disk, logDirectory, end, limits, (leaves) => nodes.root(leaves));
    this.#bulk = options.bulk
      ? new BulkSealer(
          options.bulk,
          () => this.#link(),
          (cause) => this.#commits.fail(cause),
        )
      : null;
    this.#sealer = new EntrySealer(options.keyring, options.random, this.#bulk);
    this.#tree = chain.tree;
    this.#leaves = chain.tree.size;
    this.#nodes = nodes;
    this.#logId = end.manifest.logId;
    this.#recovery = report;
    this.#previousHash = chain.previousHash;
    this.#position = this.#visiblePosition = chain.position;
    this.#lastInstant = this.#visibleInstant = this.#handedOut = chain.lastInstant ?? 0n;
    this.#sealedLeaves = this.#sealedBefore = chain.sealed;
    this.#seals = chain.seals;
    this.#stored = this.#signed(this.head());
    this.proofs = new LocalProofs({
      nodes,
      origin: options.origin,
      keyring: options.keyring,
      durable: () => this.#writer.durableLeaves,
      linkNow: () => this.#linkNow(),
      head: (leaves) => this.#headOver(leaves),
      sign: (head) => this.#signed(head),
      read: (place) => readStoredEntries(this.#readable(), this.#writer.frames, place),
    });
    const { disk, clock, say = () => undefined } = options;
    this.#room = new DiskRoom({ disk, clock, directory: logDirectory, signal: this.#closing.signal, say });
    this.#commits = new GroupCommit(this.#writer, options.walSync, clock, this.#room, {
      keysDurable: () => options.keyring.subjects.durable(),
      written: (sealing) => this.#bulk!.release(sealing),
      committed: (last) => this.#makeVisible(last),
      failed: (cause) => this.#fail(cause),
    });
  }

  status(): LogStatus {
    return {
      state: this.#isFull() ? 'full' : this.#state.at,
      logId: this.#logId,
      origin: this.#options.origin,
      leaves: this.#leaves,
      positions: this.#position,
      durableLeaves: this.#writer.durableLeaves,
      bytes: this.#writer.bytes,
      files: this.#writer.files.length,
      recovery: this.#recovery,
      failure: this.#state.at === 'failed' ? this.#state.reason : this.#room.why,
    };
  }

  /** Kept until the end of the calling turn: a decision reads the place that its append will get. */
  next(): NextPlace {
    if (!this.#promised) {
      this.#promised = { position: this.#position, time: this.#nextTime() };
      queueMicrotask(() => {
        this.#promised = null;
      });
    }
    return this.#promised;
  }

  basis(): Basis {
    const now = this.#options.clock.now();
    const bound = this.#hidden[0]?.time ?? this.#promised?.time;
    const below = bound !== undefined && now >= bound ? bound - 1n : now;
    const instant = max(below, max(this.#visibleInstant, this.#handedOut));
    assert(bound === undefined || instant < bound, 'a reader never holds the instant of an entry that it may not see');
    this.#handedOut = instant;
    return { position: this.#visiblePosition, instant };
  }

  append(drafts: readonly EntryDraft[], options: AppendOptions = {}): Appended {
    if (this.#state.at !== 'open' || this.#isFull()) throw this.#refusal();
    return this.#place(drafts, options);
  }

  get acknowledged(): Promise<Durability> {
    return this.#commits.acknowledged;
  }

  read(fromLeaf: number): AsyncIterable<CommittedEntry> {
    const range = { ...this.#readable(), keyring: this.#options.keyring, fromLeaf };
    return readEntries(range, this.#writer.frames, this.#options.clock);
  }

  onVisible(listener: (basis: Basis) => void): void {
    this.#listeners.push(listener);
  }

  head(): TreeHead {
    this.#linkNow();
    return { size: this.#tree.size, root: this.#tree.root() };
  }

  async seal(): Promise<void> {
    if (this.#state.at !== 'open' && this.#state.at !== 'draining') throw this.#refusal();
    // One at a time: a seal's checkpoint is in place before the next seal is written.
    const before = this.#sealing;
    this.#sealing = before.then(() => this.#seal());
    const done = this.#sealing;
    this.#sealing = done.catch(() => undefined);
    await this.#room.unlessShort(done);
  }

  saved(): SavedLog {
    const { leaves: written, lastFrame, files, frames } = this.#writer;
    assert(lastFrame, 'an open log has a first entry');
    const sealWritten = this.#sealedLeaves <= written;
    const sealed = sealWritten ? this.#sealedLeaves : this.#sealedBefore;
    const seals = sealWritten ? this.#seals : this.#seals - 1;
    const state = { logId: this.#logId, leaves: this.#leaves, written, lastFrame, sealed, seals };
    return savedLog(state, files, frames, this.#nodes);
  }

  async durable(leaves: number): Promise<void> {
    assert(leaves <= this.#leaves, 'what was placed can become durable');
    if (this.#writer.durableLeaves < leaves) await this.seal();
  }

  /** What a backup copies. Rejects with REL_UNAVAILABLE when the log failed first. */
  async capture(): Promise<LogCapture> {
    const { manifest, offset: openLength, leaves } = this.#writer;
    return { manifest, openLength, head: await this.proofs.headAt(leaves) };
  }

  async redact(positions: Ascending, yieldTurn: () => Promise<void>, through?: number): Promise<Redacted> {
    const before = this.#redacting;
    const redacting = before.then(async () => {
      const counts = await this.#redact(positions, yieldTurn);
      if (through === undefined) return counts;
      if (this.#state.at !== 'open') throw this.#refusal();
      await this.#placeOwn({ kind: 'redaction', through, rows: counts.rows }).acknowledged;
      return counts;
    });
    this.#redacting = redacting.catch(() => undefined);
    return await redacting;
  }

  async #redact(positions: Ascending, yieldTurn: () => Promise<void>): Promise<Redacted> {
    const counts: Redacted = { rows: 0, texts: 0, kept: 0 };
    const last = positions.at(-1);
    if (last === undefined) return counts;
    if (this.#state.at !== 'open') throw this.#refusal();
    assert(last < this.#position, 'what is dropped was placed');
    if (last >= this.#writer.files.at(-1)!.firstPosition) await this.#commits.between(() => this.#writer.roll());
    const { disk, random, keyring } = this.#options;
    const options = { disk, random, keyring, logDirectory: this.#logDirectory, logId: this.#logId, yieldTurn };
    for (const { number } of this.#writer.files.slice(0, -1)) {
      const [record, next] = this.#writer.files.slice(number, number + 2);
      assert(record?.state === 'sealed' && next, 'another file follows a sealed one');
      const own = positions.slice(firstFrom(positions, record.firstPosition), firstFrom(positions, next.firstPosition));
      if (own.length === 0) continue;
      const replaced = await redactFile(options, record, own, counts, positions);
      if (!replaced) continue;
      await this.#commits.between(() => this.#writer.replaceFile(replaced));
      // Whoever was about to read it takes the one that is listed now.
      await disk.unlink(`${this.#logDirectory}/${logFileName(record)}`);
      await disk.syncDirectory(this.#logDirectory);
    }
    return counts;
  }

  async close(): Promise<void> {
    if (this.#state.at === 'closed' || this.#state.at === 'draining') return;
    this.#closing.abort();
    if (this.#state.at === 'open') {
      this.#state = { at: 'draining' };
      await this.#redacting;
      await this.#commits.idle();
    }
    if (!this.#hasFailed()) await this.seal().catch(() => undefined);
    await this.#bulk?.end();
    if (this.#hasFailed()) return this.#writer.abandon();
    await this.#writer.close();
    this.#state = { at: 'closed' };
  }

  /** Hash of the newest entry that was placed: after `close` it stands for the whole log. */
  get lastLeafHash(): Uint8Array {
    return this.#previousHash;
  }

  /** What had been written by now. */
  #readable(): Pick<ReadRange, 'disk' | 'logDirectory' | 'files' | 'openLength' | 'current'> {
    const { files, offset } = this.#writer;
    const current = (number: number): LogFileRecord => this.#writer.files[number]!;
    return { disk: this.#options.disk, logDirectory: this.#logDirectory, files, openLength: offset, current };
  }

  async #begin(): Promise<void> {
    const { origin, engineVersion, replay } = this.#options;
    const { entries, acknowledged } = this.#place(
      [{ context: ownContext, body: { kind: 'genesis', logId: this.#logId, origin, engineVersion } }],
      { sync: true },
    );
    await acknowledged;
    for (const entry of entries) replay(entry, this.lastLeafHash);
  }

  #placeOwn(body: EntryBody): Appended {
    if (this.#isFull()) throw this.#refusal();
    const appended = this.#place([{ context: ownContext, body }], { sync: true });
    if (this.#options.onEntry) appended.entries.forEach(this.#options.onEntry);
    return appended;
  }

  /** Encodes everything before it changes anything: a draft that can't be encoded leaves no trace. */
  #place(drafts: readonly EntryDraft[], { at, sync = false }: AppendOptions): Appended {
    assert(drafts.length > 0, 'an append holds an entry');
    const place = at ?? this.next();
    const free = place.position === this.#position && place.time > this.#lastInstant && place.time > this.#handedOut;
    assert(free, 'decide and append belong in one turn: the log has moved on');
    let { position, time } = place;
    const placed: PlacedEntry[] = [];
    try {
      let bytes = FRAME_HEADER_BYTES;
      for (const draft of drafts) {
        const next = this.#sealer.place(draft, { leaf: this.#leaves + placed.length, position, time });
        placed.push(next);
        position += next.entry.positions;
        time = lastInstantOf(next.entry) + 1n;
        bytes += ENTRY_HEADER_BYTES + next.bytesMax;
      }
      assert(time < FOREVER, 'the log has run out of time');
      if (bytes > FRAME_BYTES_MAX) throw new ServiceError('REL_TOO_LARGE', 'one append exceeds 2 GiB');
    } catch (error) {
      for (const { sealing } of placed) if (sealing) this.#bulk!.release(sealing);
      throw error;
    }
    this.#promised = null;
    this.#position = position;
    this.#lastInstant = time - 1n;
    this.#leaves += placed.length;
    for (const entry of placed) {
      if (entry.sealing) this.#bulk!.start(entry.sealing);
      this.#unlinked.push(entry);
    }
    this.#link();
    // Access records hide nothing from readers, and wait for an fsync that may be long in coming.
    if (position > place.position) this.#hidden.push({ leaf: this.#leaves - 1, time: place.time });
    const access = drafts.every(isAccess);
    const appended = this.#commits.add(placed, { sync, access });
    this.#lastAppended = appended;
    this.#sealWhenIdle();
    return appended;
  }

  /** Hashes into the chain what is ready, in order: an entry waits for those before it. */
  #link(): void {
    const unlinked = this.#unlinked;
    let count = 0;
    for (; count < unlinked.length && unlinked[count]!.ready; count++) this.#linkOne(unlinked[count]!);
    if (count === 0) return;
    if (count === unlinked.length) this.#unlinked = [];
    else unlinked.splice(0, count);
    this.#commits.linked();
  }

  /** All that is placed, in this turn: what is still being sealed is sealed here. */
  #linkNow(): void {
    if (this.#unlinked.length === 0) return;
    for (const entry of this.#unlinked) this.#linkOne(entry);
    this.#unlinked = [];
    this.#commits.linked();
  }

  #linkOne(entry: PlacedEntry): void {
    entry.link(this.#previousHash);
    this.#previousHash = entry.leafHash;
    this.#tree.append(entry.leafHash);
  }

  #nextTime(): bigint {
    return max(this.#options.clock.now(), max(this.#lastInstant, this.#handedOut) + 1n);
  }

  #makeVisible({ entry }: EncodedEntry): void {
    let count = 0;
    while (count < this.#hidden.length && this.#hidden[count]!.leaf <= entry.leaf) count++;
    this.#hidden.splice(0, count);
    this.#visibleInstant = lastInstantOf(entry);
    const position = entry.position + entry.positions;
    if (position === this.#visiblePosition) return;
    this.#visiblePosition = position;
    if (this.#listeners.length === 0) return;
    const basis = this.basis();
    for (const listener of this.#listeners) listener(basis);
  }

  /** One timer at a time: it looks again when something was written while it slept. */
  #sealWhenIdle(): void {
    const { clock, sealIdleMs } = this.#options;
    this.#lastWriteMs = clock.monotonicMs();
    if (this.#sealTimer || sealIdleMs === 0) return;
    this.#sealTimer = true;
    void this.#waitAndSeal(sealIdleMs).finally(() => {
      this.#sealTimer = false;
      // Something may have been written while the seal was: it needs one of its own.
      if (this.#state.at === 'open' && this.#leaves > this.#sealedLeaves) this.#sealWhenIdle();
    });
  }

  async #waitAndSeal(sealIdleMs: number): Promise<void> {
    const { clock } = this.#options;
    for (let wait = sealIdleMs; wait > 0; wait = sealIdleMs - (clock.monotonicMs() - this.#lastWriteMs)) {
      await clock.sleep(wait, this.#closing.signal);
      if (this.#closing.signal.aborted) return;
      this.#commits.syncSoon();
    }
    await this.#commits.idle();
    // A failure to seal has already failed the log: there is nobody else to tell.
    if (this.#state.at === 'open') await this.seal().catch(() => undefined);
  }

  async #seal(): Promise<void> {
    // What is on its way is waited for, so that only what comes meanwhile can hold up the turn.
    if (this.#unlinked.length > 0) await this.#lastAppended?.written.catch(() => undefined);
    if (this.#hasFailed() || this.#isFull()) throw this.#refusal();
    if (this.#leaves === this.#sealedLeaves) return;
    this.#linkNow();
    const appended = this.#placeOwn({
      kind: 'seal',
      treeSize: this.#tree.size,
      checkpoint: this.#signed(this.head()).note,
    });
    // The checkpoint beside the log covers the seal as well, so that no durable entry can be missed.
    const covering = this.#signed(this.head());
    this.#sealedBefore = this.#sealedLeaves;
    this.#sealedLeaves = this.#tree.size;
    this.#seals++;
    // The checkpoint is in place before the next seal is written, however long both wait for room.
    await settled(appended);
    await this.#store(covering);
  }

  /** A head that was handed out is in the checkpoint file first: no later recovery may cut what somebody holds it to. */
  async #headOver(leaves: number): Promise<SignedHead> {
    if (this.#stored.size >= leaves) return this.#stored;
    if (this.#isFull()) throw this.#refusal();
    assert(leaves <= this.#leaves, 'a head covers entries that are there');
    if (this.#writer.durableLeaves < leaves) await this.seal();
    const before = this.#sealing;
    const signing = before.then(async () => {
      const size = this.#writer.durableLeaves;
      if (this.#stored.size >= leaves) return;
      if (this.#state.at !== 'open' && this.#state.at !== 'draining') throw this.#refusal();
      await this.#store(this.#signed({ size, root: this.proofs.root(size) }));
    });
    this.#sealing = signing.catch(() => undefined);
    await this.#room.unlessShort(signing);
    return this.#stored;
  }

  #signed(head: TreeHead): SignedHead {
    return { ...head, note: signCheckpoint(this.#options.origin, head, this.#options.keyring.signer) };
  }

  async #store(head: SignedHead): Promise<void> {
    for (;;) {
      try {
        await this.#options.disk.replaceFile(checkpointPath(this.#logDirectory), Buffer.from(head.note));
        break;
      } catch (cause) {
        // No room: the one before is there still, and no seal follows until this one is in its place.
        if (!this.#opened || !(await this.#room.isShort('head', cause))) {
          this.#commits.fail(cause);
          throw this.#refusal();
        }
        await this.#room.wait();
      }
    }
    this.#room.found('head');
    this.#stored = head;
  }

  #fail(cause: unknown): void {
    this.#state = { at: 'failed', reason: cause instanceof Error ? cause.message : String(cause) };
    this.#options.say?.(`${this.#logDirectory}: ${failureText(cause)}`);
    this.#closing.abort();
  }

  #isFull(): boolean {
    return this.#state.at === 'open' && this.#room.why !== null;
  }

  #hasFailed(): boolean {
    return this.#state.at === 'failed';
  }

  #refusal(): ServiceError {
    const state = this.#state;
    if (this.#isFull()) return this.#room.refusal();
    const why = state.at === 'failed' ? `the log has failed (${state.reason}): restart the server` : `the log is ${state.at}`;
    return new ServiceError('REL_UNAVAILABLE', `${why}; it accepts no writes`);
  }
}

const isAccess = ({ body }: EntryDraft): boolean => body.kind === 'access';

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
