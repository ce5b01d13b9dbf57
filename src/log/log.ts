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

const storeContext: EntryContext = {
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
  readonly #logOptions: LocalLogOptions;
  readonly #logDirectory: string;
  readonly #recoveryReport: LogStatus['recovery'];
  readonly #treeNodes: TreeStore;
  readonly #logWriter: LogWriter;
  readonly #logState: LogState;
  readonly #groupCommit: GroupCommit;
  readonly #bulkSealer: BulkSealer | null;
  readonly #entrySealer: EntrySealer;
  readonly #positionAssigner: PositionAssigner;
  readonly #chainLinker: ChainLinker;
  readonly #signedHeads: SignedHeads;
  readonly proofs: LogProofs;
  #logRedaction: Promise<unknown> = Promise.resolve();

  /** Recovers what is there, or begins a log. Throws REL_STORAGE rather than open a log that lost something durable. */
  static async open(logOptions: LocalLogOptions): Promise<LocalLog> {
    const logDirectory = `${logOptions.directory}/log`;
    const recoveredLog = await recover({ ...logOptions, logDirectory });
    const localLog = new LocalLog(logOptions, logDirectory, recoveredLog);
    try {
      if (localLog.#positionAssigner.leaves === 0) await localLog.#appendGenesis();
      await localLog.#signedHeads.open(recoveredLog.checkpointSize);
    } catch (error) {
      // Waiting for room begins only once there is a log.
      localLog.#logState.drain();
      await localLog.#groupCommit.idle();
      await localLog.#logWriter.abandon();
      throw error;
    }
    return localLog;
  }

  private constructor(
    logOptions: LocalLogOptions,
    logDirectory: string,
    { end: logEnd, chain: hashChain, nodes: treeNodes, report: recoveryReport }: Recovered,
  ) {
    const { disk, clock, random, keyring, bulk, say = () => undefined } = logOptions;
    const rootOfLeaves = (leaves: number): Uint8Array => treeNodes.root(leaves);
    this.#logOptions = logOptions;
    this.#logDirectory = logDirectory;
    this.#recoveryReport = recoveryReport;
    this.#treeNodes = treeNodes;
    this.#logWriter = new LogWriter(disk, logDirectory, logEnd, { ...defaultWriterLimits, ...logOptions.limits }, rootOfLeaves);
    this.#positionAssigner = new PositionAssigner(clock, hashChain);
    this.#chainLinker = new ChainLinker(hashChain, () => this.#groupCommit.onLinked());
    this.#logState = new LogState({ disk, clock, directory: logDirectory, say });
    this.#groupCommit = new GroupCommit(this.#logWriter, logOptions.walSync, clock, this.#logState.room, {
      keysDurable: () => keyring.subjects.durable(),
      onWritten: (sealing) => this.#bulkSealer!.release(sealing),
      onCommitted: ({ entry }) => this.#positionAssigner.makeVisible(entry),
      onFailed: (cause) => this.#logState.fail(cause),
    });
    const onSealed = (): void => this.#chainLinker.linkReady();
    this.#bulkSealer = bulk ? new BulkSealer(bulk, onSealed, (cause) => this.#groupCommit.fail(cause)) : null;
    this.#entrySealer = new EntrySealer(keyring, random, this.#bulkSealer);
    this.#signedHeads = new SignedHeads(
      {
        ...logOptions,
        logDirectory,
        state: this.#logState,
        linker: this.#chainLinker,
        writer: this.#logWriter,
        commits: this.#groupCommit,
        leaves: () => this.#positionAssigner.leaves,
        root: rootOfLeaves,
        append: (body) => this.#placeOwnEntry(body),
      },
      hashChain,
    );
    this.proofs = new LocalProofs({
      nodes: treeNodes,
      origin: logOptions.origin,
      keyring,
      durable: () => this.#logWriter.durableLeaves,
      linkNow: () => this.#chainLinker.linkNow(),
      head: (leaves) => this.#signedHeads.headOver(leaves),
      sign: (head) => this.#signedHeads.sign(head),
      read: (locator) => readStoredEntries(this.#readableFiles(), this.#logWriter.frames, locator),
    });
  }

  status(): LogStatus {
    return {
      state: this.#logState.at,
      logId: this.#logWriter.manifest.logId,
      origin: this.#logOptions.origin,
      leaves: this.#positionAssigner.leaves,
      positions: this.#positionAssigner.position,
      durableLeaves: this.#logWriter.durableLeaves,
      bytes: this.#logWriter.bytes,
      files: this.#logWriter.files.length,
      recovery: this.#recoveryReport,
      failure: this.#logState.failure,
    };
  }

  next(): NextPosition {
    return this.#positionAssigner.next();
  }

  claim(claimed: NextPosition): boolean {
    return this.#positionAssigner.claim(claimed);
  }

  basis(): Basis {
    return this.#positionAssigner.basis();
  }

  append(entryDrafts: readonly EntryDraft[], appendOptions: AppendOptions = {}): Appended {
    if (this.#logState.at !== 'open') throw this.#logState.refusal();
    return this.#placeDrafts(entryDrafts, appendOptions);
  }

  get acknowledged(): Promise<Durability> {
    return this.#groupCommit.acknowledged;
  }

  read(fromLeaf: number): AsyncIterable<CommittedEntry> {
    const readRange = { ...this.#readableFiles(), keyring: this.#logOptions.keyring, fromLeaf };
    return readEntries(readRange, this.#logWriter.frames, this.#logOptions.clock);
  }

  onVisible(listener: (basis: Basis) => void): void {
    this.#positionAssigner.onVisible(listener);
  }

  head(): TreeHead {
    return this.#chainLinker.head();
  }

  seal(): Promise<void> {
    return this.#signedHeads.seal();
  }

  savedState(): SavedLog {
    const { manifest, leaves: written, lastFrame, files, frames } = this.#logWriter;
    assert(lastFrame, 'an open log has a first entry');
    const { logId } = manifest;
    const savedLogState = {
      logId,
      leaves: this.#positionAssigner.leaves,
      written,
      lastFrame,
      ...this.#signedHeads.sealsWithin(written),
    };
    return savedLog(savedLogState, files, frames, this.#treeNodes);
  }

  async durable(leaves: number): Promise<void> {
    assert(leaves <= this.#positionAssigner.leaves, 'what was placed can become durable');
    if (this.#logWriter.durableLeaves < leaves) await this.seal();
  }

  /** The files and the head for a backup to copy. Rejects with REL_UNAVAILABLE when the log failed first. */
  async capture(): Promise<LogCapture> {
    const { manifest, offset: openLength, leaves } = this.#logWriter;
    return { manifest, openLength, head: await this.proofs.headAt(leaves) };
  }

  async redact(erasedPositions: Ascending, yieldTurn: () => Promise<void>, erasurePosition?: number): Promise<Redacted> {
    const earlierRedaction = this.#logRedaction;
    const logRedaction = earlierRedaction.then(async () => {
      const redactedCounts = await this.#redactFiles(erasedPositions, yieldTurn);
      if (erasurePosition === undefined) return redactedCounts;
      if (!this.#logState.isOpen) throw this.#logState.refusal();
      await this.#placeOwnEntry({ kind: 'redaction', through: erasurePosition, rows: redactedCounts.rows }).acknowledged;
      return redactedCounts;
    });
    this.#logRedaction = logRedaction.catch(() => undefined);
    return await logRedaction;
  }

  async #redactFiles(erasedPositions: Ascending, yieldTurn: () => Promise<void>): Promise<Redacted> {
    const redactedCounts: Redacted = { rows: 0, texts: 0, kept: 0 };
    const lastPosition = erasedPositions.at(-1);
    if (lastPosition === undefined) return redactedCounts;
    if (!this.#logState.isOpen) throw this.#logState.refusal();
    assert(lastPosition < this.#positionAssigner.position, 'what is dropped was placed');
    if (lastPosition >= this.#logWriter.files.at(-1)!.firstPosition)
      await this.#groupCommit.runExclusively(() => this.#logWriter.roll());
    const { disk, random, keyring } = this.#logOptions;
    const redactionOptions = {
      disk,
      random,
      keyring,
      logDirectory: this.#logDirectory,
      logId: this.#logWriter.manifest.logId,
      yieldTurn,
    };
    for (const { number: fileNumber } of this.#logWriter.files.slice(0, -1)) {
      const [sealedFile, followingFile] = this.#logWriter.files.slice(fileNumber, fileNumber + 2);
      assert(sealedFile?.state === 'sealed' && followingFile, 'another file follows a sealed one');
      const filePositions = erasedPositions.slice(
        firstFrom(erasedPositions, sealedFile.firstPosition),
        firstFrom(erasedPositions, followingFile.firstPosition),
      );
      if (filePositions.length === 0) continue;
      const redactedFile = await redactFile(redactionOptions, sealedFile, filePositions, redactedCounts, erasedPositions);
      if (!redactedFile) continue;
      await this.#groupCommit.runExclusively(() => this.#logWriter.replaceFile(redactedFile));
      // A reader that was about to open this file takes its listed replacement.
      await disk.unlink(`${this.#logDirectory}/${logFileName(sealedFile)}`);
      await disk.syncDirectory(this.#logDirectory);
    }
    return redactedCounts;
  }

  async close(): Promise<void> {
    if (this.#logState.at === 'closed' || this.#logState.at === 'draining') return;
    const { isOpen } = this.#logState;
    this.#logState.drain();
    if (isOpen) {
      await this.#logRedaction;
      await this.#groupCommit.idle();
    }
    if (!this.#logState.hasFailed) await this.seal().catch(() => undefined);
    await this.#bulkSealer?.end();
    if (this.#logState.hasFailed) return this.#logWriter.abandon();
    await this.#logWriter.close();
    this.#logState.close();
  }

  /** Hash of the newest entry that was placed: after `close` it stands for the whole log. */
  get lastLeafHash(): Uint8Array {
    return this.#chainLinker.lastLeafHash;
  }

  /** The files and lengths written by now. */
  #readableFiles(): Pick<ReadRange, 'disk' | 'logDirectory' | 'files' | 'openLength' | 'current'> {
    const { files, offset } = this.#logWriter;
    const currentFile = (number: number): LogFileRecord => this.#logWriter.files[number]!;
    return { disk: this.#logOptions.disk, logDirectory: this.#logDirectory, files, openLength: offset, current: currentFile };
  }

  async #appendGenesis(): Promise<void> {
    const { origin, engineVersion, replay } = this.#logOptions;
    const { entries: genesisEntries, acknowledged } = this.#placeDrafts(
      [{ context: storeContext, body: { kind: 'genesis', logId: this.#logWriter.manifest.logId, origin, engineVersion } }],
      { sync: true },
    );
    await acknowledged;
    for (const entry of genesisEntries) replay(entry, this.lastLeafHash);
  }

  #placeOwnEntry(body: EntryBody): Appended {
    if (this.#logState.isFull) throw this.#logState.refusal();
    const appended = this.#placeDrafts([{ context: storeContext, body }], { sync: true });
    if (this.#logOptions.onEntry) appended.entries.forEach(this.#logOptions.onEntry);
    return appended;
  }

  /** Encodes everything before it changes anything: a draft that can't be encoded leaves no trace. */
  #placeDrafts(drafts: readonly EntryDraft[], { at, sync = false }: AppendOptions): Appended {
    assert(drafts.length > 0, 'an append holds an entry');
    const firstPosition = at ?? this.next();
    assert(this.#positionAssigner.isFree(firstPosition), 'decide and append belong in one turn: the log has moved on');
    let { position, time } = firstPosition;
    const placed: PlacedEntry[] = [];
    try {
      let bytes = FRAME_HEADER_BYTES;
      for (const draft of drafts) {
        const next = this.#entrySealer.placeDraft(draft, { leaf: this.#positionAssigner.leaves + placed.length, position, time });
        placed.push(next);
        position += next.entry.positions;
        time = lastInstantOf(next.entry) + 1n;
        bytes += ENTRY_HEADER_BYTES + next.bytesMax;
      }
      assert(time < FOREVER, 'the log has run out of time');
      if (bytes > FRAME_BYTES_MAX) throw new ServiceError('REL_TOO_LARGE', 'one append exceeds 2 GiB');
    } catch (error) {
      for (const { sealing } of placed) if (sealing) this.#bulkSealer!.release(sealing);
      throw error;
    }
    this.#positionAssigner.advance(placed.length, firstPosition, { position, time });
    for (const entry of placed) {
      if (entry.sealing) this.#bulkSealer!.start(entry.sealing);
      this.#chainLinker.add(entry);
    }
    this.#chainLinker.linkReady();
    const appended = this.#groupCommit.add(placed, { sync, access: drafts.every(isAccessDraft) });
    this.#signedHeads.onAppended(appended);
    return appended;
  }
}

const isAccessDraft = ({ body }: EntryDraft): boolean => body.kind === 'access';
