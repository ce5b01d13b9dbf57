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
 * A disk without room fails nothing: what is placed is kept until it can be written (`full-disk.ts`), and no append is taken.
 */
import type { Clock, Random } from '../clock.ts';
import { assert, ServiceError } from '../errors.ts';
import { lastInstantOf } from './files/hash-chain.ts';
import { type BulkOptions, BulkSealer } from './entries/bulk-sealer.ts';
import type { Disk } from './disk/disk.ts';
import { EntrySealer, type PlacedEntry } from './entries/entry-codec.ts';
import type { BackgroundOpening } from './files/frame-opener.ts';
import type { CommittedEntry, EntryBody, EntryContext, EntryDraft } from './entries/entry.ts';
import { ChainLinker } from './append/chain-linker.ts';
import { GroupCommit } from './append/group-commit.ts';
import type { Keyring } from './keys/keys.ts';
import { ENTRY_HEADER_BYTES, FRAME_BYTES_MAX, FRAME_HEADER_BYTES } from './files/log-file.ts';
import { LocalProofs } from './proofs/log-proofs.ts';
import { LogState } from './append/log-state.ts';
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
  NextPosition,
  WalSync,
} from './log-store.ts';
import { defaultWriterLimits, LogWriter, type WriterLimits } from './files/log-writer.ts';
import type { TreeHead } from './tree/merkle-tree.ts';
import { type LogFileRecord, logFileName } from './files/manifest.ts';
import { PositionAssigner } from './append/position-assigner.ts';
import { type Ascending, firstFrom, redactFile, type Redacted } from './files/file-redaction.ts';
import { type Recovered, recover } from './recovery.ts';
import { SignedHeads } from './append/signed-heads.ts';
import { type ResumeOptions, type SavedLog, savedLog } from './files/saved-log.ts';
import { FOREVER } from './values/timestamp.ts';
import type { TreeStore } from './tree/tree-store.ts';

export interface LocalLogOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  /** The data directory; the caller holds its lock. */
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
  readonly openBeside?: BackgroundOpening;
  /** The state saved by an earlier process: only later entries are read and replayed. */
  readonly resume?: ResumeOptions;
  /** Gets every entry that is there, in order, before `open` returns; with `resume` those that the saved state does not stand for. */
  readonly replay: (entry: CommittedEntry, leafHash: Uint8Array) => void;
  /** Called between frames of a replay: the receiver may need time to store the entries. */
  readonly breathe?: () => Promise<void> | undefined;
  /** One line for the operator: the disk has no room, or has it again; the log has failed. */
  readonly say?: (line: string) => void;
  /** Gets entries that the log writes by itself (`seal`), in the turn in which they are placed. */
  readonly onEntry?: (entry: CommittedEntry) => void;
}

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
  readonly #recovery: LogStatus['recovery'];
  readonly #nodes: TreeStore;
  readonly #writer: LogWriter;
  readonly #state: LogState;
  readonly #commits: GroupCommit;
  readonly #bulk: BulkSealer | null;
  readonly #sealer: EntrySealer;
  readonly #placement: PositionAssigner;
  readonly #linker: ChainLinker;
  readonly #heads: SignedHeads;
  readonly proofs: LogProofs;
  #redacting: Promise<unknown> = Promise.resolve();

  /** Recovers what is there, or begins a log. Throws REL_STORAGE rather than open a log that lost something durable. */
  static async open(options: LocalLogOptions): Promise<LocalLog> {
    const logDirectory = `${options.directory}/log`;
    const recovered = await recover({ ...options, logDirectory });
    const log = new LocalLog(options, logDirectory, recovered);
    try {
      if (log.#placement.leaves === 0) await log.#begin();
      await log.#heads.open(recovered.checkpointSize);
    } catch (error) {
      // Waiting for room begins only once there is a log.
      log.#state.drain();
      await log.#commits.idle();
      await log.#writer.abandon();
      throw error;
    }
    return log;
  }

  private constructor(options: LocalLogOptions, logDirectory: string, { end, chain, nodes, report }: Recovered) {
    const { disk, clock, random, keyring, bulk, say = () => undefined } = options;
    const root = (leaves: number): Uint8Array => nodes.root(leaves);
    this.#options = options;
    this.#logDirectory = logDirectory;
    this.#recovery = report;
    this.#nodes = nodes;
    this.#writer = new LogWriter(disk, logDirectory, end, { ...defaultWriterLimits, ...options.limits }, root);
    this.#placement = new PositionAssigner(clock, chain);
    this.#linker = new ChainLinker(chain, () => this.#commits.onLinked());
    this.#state = new LogState({ disk, clock, directory: logDirectory, say });
    this.#commits = new GroupCommit(this.#writer, options.walSync, clock, this.#state.room, {
      keysDurable: () => keyring.subjects.durable(),
      onWritten: (sealing) => this.#bulk!.release(sealing),
      onCommitted: ({ entry }) => this.#placement.makeVisible(entry),
      onFailed: (cause) => this.#state.fail(cause),
    });
    const onSealed = (): void => this.#linker.linkReady();
    this.#bulk = bulk ? new BulkSealer(bulk, onSealed, (cause) => this.#commits.fail(cause)) : null;
    this.#sealer = new EntrySealer(keyring, random, this.#bulk);
    this.#heads = new SignedHeads(
      {
        ...options,
        logDirectory,
        state: this.#state,
        linker: this.#linker,
        writer: this.#writer,
        commits: this.#commits,
        leaves: () => this.#placement.leaves,
        root,
        append: (body) => this.#placeOwn(body),
      },
      chain,
    );
    this.proofs = new LocalProofs({
      nodes,
      origin: options.origin,
      keyring,
      durable: () => this.#writer.durableLeaves,
      linkNow: () => this.#linker.linkNow(),
      head: (leaves) => this.#heads.headOver(leaves),
      sign: (head) => this.#heads.sign(head),
      read: (locator) => readStoredEntries(this.#readable(), this.#writer.frames, locator),
    });
  }

  status(): LogStatus {
    return {
      state: this.#state.at,
      logId: this.#writer.manifest.logId,
      origin: this.#options.origin,
      leaves: this.#placement.leaves,
      positions: this.#placement.position,
      durableLeaves: this.#writer.durableLeaves,
      bytes: this.#writer.bytes,
      files: this.#writer.files.length,
      recovery: this.#recovery,
      failure: this.#state.failure,
    };
  }

  next(): NextPosition {
    return this.#placement.next();
  }

  claim(claimed: NextPosition): boolean {
    return this.#placement.claim(claimed);
  }

  basis(): Basis {
    return this.#placement.basis();
  }

  append(drafts: readonly EntryDraft[], options: AppendOptions = {}): Appended {
    if (this.#state.at !== 'open') throw this.#state.refusal();
    return this.#placeDrafts(drafts, options);
  }

  get acknowledged(): Promise<Durability> {
    return this.#commits.acknowledged;
  }

  read(fromLeaf: number): AsyncIterable<CommittedEntry> {
    const range = { ...this.#readable(), keyring: this.#options.keyring, fromLeaf };
    return readEntries(range, this.#writer.frames, this.#options.clock);
  }

  onVisible(listener: (basis: Basis) => void): void {
    this.#placement.onVisible(listener);
  }

  head(): TreeHead {
    return this.#linker.head();
  }

  seal(): Promise<void> {
    return this.#heads.seal();
  }

  savedState(): SavedLog {
    const { manifest, leaves: written, lastFrame, files, frames } = this.#writer;
    assert(lastFrame, 'an open log has a first entry');
    const { logId } = manifest;
    const state = { logId, leaves: this.#placement.leaves, written, lastFrame, ...this.#heads.sealsWithin(written) };
    return savedLog(state, files, frames, this.#nodes);
  }

  async durable(leaves: number): Promise<void> {
    assert(leaves <= this.#placement.leaves, 'what was placed can become durable');
    if (this.#writer.durableLeaves < leaves) await this.seal();
  }

  /** The files and the head for a backup to copy. Rejects with REL_UNAVAILABLE when the log failed first. */
  async capture(): Promise<LogCapture> {
    const { manifest, offset: openLength, leaves } = this.#writer;
    return { manifest, openLength, head: await this.proofs.headAt(leaves) };
  }

  async redact(positions: Ascending, yieldTurn: () => Promise<void>, through?: number): Promise<Redacted> {
    const before = this.#redacting;
    const redacting = before.then(async () => {
      const counts = await this.#redact(positions, yieldTurn);
      if (through === undefined) return counts;
      if (!this.#state.isOpen) throw this.#state.refusal();
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
    if (!this.#state.isOpen) throw this.#state.refusal();
    assert(last < this.#placement.position, 'what is dropped was placed');
    if (last >= this.#writer.files.at(-1)!.firstPosition) await this.#commits.runExclusively(() => this.#writer.roll());
    const { disk, random, keyring } = this.#options;
    const options = { disk, random, keyring, logDirectory: this.#logDirectory, logId: this.#writer.manifest.logId, yieldTurn };
    for (const { number } of this.#writer.files.slice(0, -1)) {
      const [record, next] = this.#writer.files.slice(number, number + 2);
      assert(record?.state === 'sealed' && next, 'another file follows a sealed one');
      const own = positions.slice(firstFrom(positions, record.firstPosition), firstFrom(positions, next.firstPosition));
      if (own.length === 0) continue;
      const replaced = await redactFile(options, record, own, counts, positions);
      if (!replaced) continue;
      await this.#commits.runExclusively(() => this.#writer.replaceFile(replaced));
      // A reader that was about to open this file takes its listed replacement.
      await disk.unlink(`${this.#logDirectory}/${logFileName(record)}`);
      await disk.syncDirectory(this.#logDirectory);
    }
    return counts;
  }

  async close(): Promise<void> {
    if (this.#state.at === 'closed' || this.#state.at === 'draining') return;
    const { isOpen } = this.#state;
    this.#state.drain();
    if (isOpen) {
      await this.#redacting;
      await this.#commits.idle();
    }
    if (!this.#state.hasFailed) await this.seal().catch(() => undefined);
    await this.#bulk?.end();
    if (this.#state.hasFailed) return this.#writer.abandon();
    await this.#writer.close();
    this.#state.close();
  }

  /** Hash of the newest entry that was placed: after `close` it stands for the whole log. */
  get lastLeafHash(): Uint8Array {
    return this.#linker.lastLeafHash;
  }

  /** The files and lengths written by now. */
  #readable(): Pick<ReadRange, 'disk' | 'logDirectory' | 'files' | 'openLength' | 'current'> {
    const { files, offset } = this.#writer;
    const current = (number: number): LogFileRecord => this.#writer.files[number]!;
    return { disk: this.#options.disk, logDirectory: this.#logDirectory, files, openLength: offset, current };
  }

  async #begin(): Promise<void> {
    const { origin, engineVersion, replay } = this.#options;
    const { entries, acknowledged } = this.#placeDrafts(
      [{ context: ownContext, body: { kind: 'genesis', logId: this.#writer.manifest.logId, origin, engineVersion } }],
      { sync: true },
    );
    await acknowledged;
    for (const entry of entries) replay(entry, this.lastLeafHash);
  }

  #placeOwn(body: EntryBody): Appended {
    if (this.#state.isFull) throw this.#state.refusal();
    const appended = this.#placeDrafts([{ context: ownContext, body }], { sync: true });
    if (this.#options.onEntry) appended.entries.forEach(this.#options.onEntry);
    return appended;
  }

  /** Encodes everything before it changes anything: a draft that can't be encoded leaves no trace. */
  #placeDrafts(drafts: readonly EntryDraft[], { at, sync = false }: AppendOptions): Appended {
    assert(drafts.length > 0, 'an append holds an entry');
    const firstPosition = at ?? this.next();
    assert(this.#placement.isFree(firstPosition), 'decide and append belong in one turn: the log has moved on');
    let { position, time } = firstPosition;
    const placed: PlacedEntry[] = [];
    try {
      let bytes = FRAME_HEADER_BYTES;
      for (const draft of drafts) {
        const next = this.#sealer.placeDraft(draft, { leaf: this.#placement.leaves + placed.length, position, time });
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
    this.#placement.advance(placed.length, firstPosition, { position, time });
    for (const entry of placed) {
      if (entry.sealing) this.#bulk!.start(entry.sealing);
      this.#linker.add(entry);
    }
    this.#linker.linkReady();
    const appended = this.#commits.add(placed, { sync, access: drafts.every(isAccess) });
    this.#heads.onAppended(appended);
    return appended;
  }
}

const isAccess = ({ body }: EntryDraft): boolean => body.kind === 'access';
