/**
 * Opens the files that a dead process left. Order matters: everything is fsynced before it is read (bytes that were read once
 * must not vanish in a later power cut), every entry is followed down the chain, the tail is judged, and only then are files
 * changed. A crash anywhere inside leaves a state that opens the same way; a second recovery changes nothing.
 *
 * With a saved state only later entries are read. A state is refused before an entry is replayed, and then the log is opened as
 * without one: damage behind the offset that it knows gets the same verdict either way, damage before it is for `verify` to find.
 *
 * Cut: bytes after the last whole frame of the last file which no later frame and no signed checkpoint claims as
 * durable; a log file that the manifest does not list yet and that holds no frame; other generations of files that it lists.
 * Anything else that does not read
 * back halts the open with file, offset and leaf.
 */
import type { Clock, Random } from '../clock.ts';
import { ServiceError } from '../errors.ts';
import { malformedError } from './bytes/byte-stream.ts';
import { HashChain } from './files/hash-chain.ts';
import { openCheckpoint } from './tree/checkpoint-note.ts';
import { type Disk, type DiskFile, writeFully } from './disk/disk.ts';
import type { CommittedEntry } from './entries/entry.ts';
import { FrameFeed } from './files/frame-feed.ts';
import { FrameIndex } from './files/frame-index.ts';
import { FrameOpener, type BackgroundOpening } from './files/frame-opener.ts';
import type { Keyring } from './keys/keys.ts';
import {
  decodeFileHeader,
  FILE_HEADER_BYTES,
  type FrameHeader,
  FrameScanner,
  frameEntries,
  judgeTail,
  readFully,
} from './files/log-file.ts';
import type { LogStatus } from './log-store.ts';
import type { TreeHead } from './tree/merkle-tree.ts';
import { createLogFile, type LogEnd } from './files/log-writer.ts';
import { type LogFileRecord, logFileName, type Manifest, placeOfName, readManifest, writeManifest } from './files/manifest.ts';
import { type FrameSpan, type ResumeOptions, type Start, startFrom } from './files/saved-log.ts';
import { equalBytes, hexOf } from './bytes/sha256.ts';
import { TreeStore } from './tree/tree-store.ts';

export interface RecoveryOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  /** `<data>/log`. */
  readonly logDirectory: string;
  readonly keyring: Keyring;
  readonly origin: string;
  readonly resume?: ResumeOptions;
  readonly openBeside?: BackgroundOpening;
  readonly replay: (entry: CommittedEntry, leafHash: Uint8Array) => void;
  readonly breathe?: () => Promise<void> | undefined;
}

export interface Recovered {
  readonly end: LogEnd;
  readonly chain: HashChain;
  /** All complete nodes of the chain's tree, those of later leaves included. */
  readonly nodes: TreeStore;
  /** Size that the checkpoint file covers; 0 without one. */
  readonly checkpointSize: number;
  readonly report: LogStatus['recovery'];
}

const WINDOW_BYTES = 2 << 20;

/** How long entries may be replayed before other work gets its turn. */
const SLICE_MS = 4;

const REWRITE_BYTES = 1 << 20;

export function checkpointPath(logDirectory: string): string {
  return `${logDirectory}/checkpoint`;
}

export async function recover(options: RecoveryOptions): Promise<Recovered> {
  const { disk, logDirectory } = options;
  await disk.makeDirectory(logDirectory);
  await disk.syncDirectory(logDirectory);
  const manifest = (await readManifest(disk, logDirectory)) ?? (await begin(options));
  const unlisted = await findUnlisted(options, manifest);
  const known = { manifest, checkpoint: await readCheckpoint(options), nextFileLeaf: unlisted?.firstLeaf ?? null };
  const recovered = (await resume(options, known)) ?? (await follow(options, known, null));
  if (unlisted) await drop(disk, logDirectory, unlisted.name);
  for (const name of await findOutdated(options, manifest)) await drop(disk, logDirectory, name);
  return recovered;
}

interface Known {
  readonly manifest: Manifest;
  readonly checkpoint: TreeHead | null;
  /** Leaves before a file that was begun and not listed: the open file was fsynced before that. */
  readonly nextFileLeaf: number | null;
}

/** Null without a saved state, and where it was refused. */
async function resume(options: RecoveryOptions, known: Known): Promise<Recovered | null> {
  const saved = options.resume;
  if (!saved) return null;
  let replaying = false;
  const replay: RecoveryOptions['replay'] = (entry, leafHash) => {
    replaying = true;
    options.replay(entry, leafHash);
  };
  try {
    const start = await startFrom(saved, { ...options, ...known });
    return await follow({ ...options, replay }, known, start);
  } catch (cause) {
    if (replaying || !(cause instanceof ServiceError)) throw cause;
    saved.onRefused(cause.message);
    return null;
  }
}

async function follow(options: RecoveryOptions, known: Known, start: Start | null): Promise<Recovered> {
  const recovery = new Recovery(options, known, start);
  try {
    return await recovery.run();
  } finally {
    await recovery.end();
  }
}

class Recovery {
  readonly #options: RecoveryOptions;
  readonly #known: Known;
  readonly #start: Start | null;
  readonly #nodes: TreeStore;
  readonly #frames: FrameIndex;
  readonly #chain: HashChain;
  /** Entries from this one on are replayed. */
  readonly #replayFrom: number;
  #lastFrame: FrameSpan | null;
  #opener: FrameOpener | null = null;
  /** Leaves that some frame says were durable. */
  #claimed = 0;
  #doubtful: FrameHeader[] = [];
  /** Where in `#doubtful` the frames in doubt begin. */
  #doubtFrom = 0;
  #sliceStart: number;

  constructor(options: RecoveryOptions, known: Known, start: Start | null) {
    const { keyring, origin } = options;
    this.#options = options;
    this.#known = known;
    this.#start = start;
    this.#nodes = start?.nodes ?? new TreeStore();
    this.#frames = start?.frames ?? new FrameIndex();
    this.#chain = new HashChain({ keyring, origin, rows: false, nodes: this.#nodes, ...(start ? { start: start.chain } : {}) });
    this.#replayFrom = start?.state.leaves ?? 0;
    this.#lastFrame = start?.state.lastFrame ?? null;
    // A state goes by nothing that was not durable.
    this.#claimed = this.#replayFrom;
    this.#sliceStart = options.clock.monotonicMs();
  }

  async run(): Promise<Recovered> {
    const { manifest, checkpoint } = this.#known;
    this.#checkHead();
    const open = manifest.files[manifest.files.length - 1]!;
    for (const record of manifest.files.slice(this.#start?.state.lastFrame.file ?? 0, -1)) {
      const { file, end } = await this.#readFile(record, () => undefined);
      await file.close();
      this.#checkSealed(record, end);
    }
    const { file, end, physical } = await this.#readFile(open, () => {
      this.#checkCheckpoint();
      if (this.#chain.leaves < this.#replayFrom)
        throw malformedError(`it stands for ${this.#replayFrom} leaves; the log has ${this.#chain.leaves}`);
    });
    const cutBytes = end.dataEnd - end.offset;
    await this.#rewriteDoubtful(file, end.offset);
    if (physical > end.offset) {
      await file.truncate(end.offset);
      await file.sync();
    }
    const cutFrom = cutBytes > 0 ? `${logFileName(open)} offset ${end.offset} (leaf ${this.#chain.leaves})` : null;
    return {
      end: {
        manifest,
        file,
        offset: end.offset,
        tree: this.#chain.tree.copy(),
        position: this.#chain.position,
        frames: this.#frames,
        lastFrame: this.#lastFrame,
      },
      chain: this.#chain,
      nodes: this.#nodes,
      checkpointSize: checkpoint?.size ?? 0,
      report: { cutBytes, cutFrom, replayedLeaves: this.#chain.leaves - this.#replayFrom },
    };
  }

  async end(): Promise<void> {
    await this.#opener?.end();
  }

  /**
   * Where an fsync has failed, the system shows pages that it dropped and will never write, and the next fsync says that
   * all is well. Frames that nothing claims as durable are written once more, so that this process's fsync is about them.
   */
  async #rewriteDoubtful(file: DiskFile, end: number): Promise<void> {
    const durable = Math.max(this.#claimed, this.#known.checkpoint?.size ?? 0);
    if (this.#chain.leaves <= durable) return;
    const from = this.#doubtful.findLast(({ firstLeaf }) => firstLeaf <= durable)?.offset ?? end;
    for (let at = from; at < end; at += REWRITE_BYTES) {
      const bytes = new Uint8Array(Math.min(REWRITE_BYTES, end - at));
      await readFully(file, bytes, at);
      await writeFully(file, bytes, at);
    }
    await file.sync();
  }

  /** Replays one file, and `check`s what it came to. The handle stays open. */
  async #readFile(record: LogFileRecord, check: () => void): Promise<{ file: DiskFile; end: FileEnd; physical: number }> {
    const { disk, logDirectory } = this.#options;
    const name = logFileName(record);
    const path = `${logDirectory}/${name}`;
    if ((await disk.size(path)) === undefined) throw this.#corrupt(record.number, 0, 'the manifest lists a file that is missing');
    const file = await disk.open(path, 'write');
    await file.sync();
    try {
      const { end, physical } = await this.#replayFile(file, record);
      check();
      return { file, end, physical };
    } catch (cause) {
      await file.close().catch(() => undefined);
      throw cause;
    }
  }

  async #replayFile(file: DiskFile, record: LogFileRecord): Promise<{ end: FileEnd; physical: number }> {
    const { manifest, nextFileLeaf, checkpoint } = this.#known;
    const physical = await file.size();
    const length = record.state === 'sealed' ? record.length : physical;
    if (physical < length || (record.state === 'sealed' && physical > length)) {
      throw this.#corrupt(record.number, Math.min(physical, length), `${physical} bytes where the manifest says ${length}`);
    }
    await this.#checkFileHeader(file, manifest.logId, record, physical);
    const resumed = this.#resumedAt(record);
    const from = resumed ?? FILE_HEADER_BYTES;
    const opener = this.#openerOf(length - from);
    const { windowBytes = WINDOW_BYTES, poison = false } = this.#options.openBeside ?? {};
    const ahead = opener ? { chunkBytes: windowBytes, shared: true } : {};
    const scanner = new FrameScanner(file, record.number, length, from, ahead);
    const bad = await this.#replayFrames(new FrameFeed(scanner, opener, poison), record.number);
    const verdict = judgeTail({
      leaves: this.#chain.leaves,
      bad,
      sealed: record.state === 'sealed',
      laterClaim: bad === null ? null : await lastClaim(scanner),
      nextFileLeaf: record.state === 'open' ? nextFileLeaf : null,
      checkpointSize: record.state === 'open' ? (checkpoint?.size ?? 0) : 0,
    });
    if (verdict.tail === 'corrupt') throw this.#corrupt(record.number, scanner.offset, verdict.reason);
    const dataEnd = verdict.tail === 'torn' ? await scanner.dataEnd() : scanner.offset;
    return { end: { offset: scanner.offset, dataEnd }, physical };
  }

  /** Follows frame after frame; returns what stands where they end, null when that is the end of the data. */
  async #replayFrames(feed: FrameFeed, number: number): Promise<string | null> {
    for (;;) {
      const fed = await feed.next();
      if (fed.result === 'end') return null;
      if (fed.result === 'bad') return fed.reason;
      const { header, bytes, offset } = fed;
      try {
        this.#checkClaims(header);
        this.#noteDoubt(header);
        this.#frames.note({ file: number, offset, firstLeaf: this.#chain.leaves, firstPosition: this.#chain.position });
        for (const [i, stored] of frameEntries(bytes, header).entries()) {
          const entry = this.#chain.follow(stored, fed.bodyOf(i));
          this.#checkHead();
          if (entry.leaf >= this.#replayFrom) this.#options.replay(entry, this.#chain.previousHash);
          else this.#checkSavedLeaf();
        }
        this.#lastFrame = { file: number, offset, end: offset + bytes.length };
      } catch (cause) {
        if (cause instanceof ServiceError) throw this.#corrupt(number, offset, cause.message, cause);
        throw cause;
      }
      await this.#yield();
      await this.#options.breathe?.();
    }
  }

  /** The worker that opens frames ahead; none for a stretch that is read sooner than a worker is there. */
  #openerOf(bytes: number): FrameOpener | null {
    const { openBeside, keyring } = this.#options;
    if (!openBeside || bytes < openBeside.bytesMin) return null;
    return (this.#opener ??= new FrameOpener(openBeside.startWorker, keyring, false));
  }

  /** Where reading begins within the file that a saved state ends in. */
  #resumedAt(record: LogFileRecord): number | null {
    const { file, end } = this.#start?.state.lastFrame ?? { file: -1, end: 0 };
    return record.number === file ? end : null;
  }

  /** An entry that was placed but not yet written when the state was saved must be the one that the log has. */
  #checkSavedLeaf(): void {
    if (this.#chain.leaves === this.#replayFrom && !equalBytes(this.#start!.leafHash, this.#chain.previousHash))
      throw malformedError('a saved state of a log that went another way');
  }

  #checkClaims(header: FrameHeader): void {
    if (header.firstLeaf !== this.#chain.leaves) {
      throw malformedError(`a frame from leaf ${header.firstLeaf} where ${this.#chain.leaves} belongs`);
    }
    if (header.durableThrough > header.firstLeaf)
      throw malformedError('a frame that claims itself as durable before it was written');
  }

  /** Keeps the frames from the one on that holds the first leaf which no frame so far says was durable. */
  #noteDoubt(header: FrameHeader): void {
    this.#claimed = Math.max(this.#claimed, header.durableThrough);
    if (header.file !== this.#doubtful[0]?.file) {
      this.#doubtful = [];
      this.#doubtFrom = 0;
    }
    this.#doubtful.push(header);
    // From the front, so that a log without a single claim costs no search per frame.
    while (this.#doubtFrom + 1 < this.#doubtful.length && this.#doubtful[this.#doubtFrom + 1]!.firstLeaf <= this.#claimed)
      this.#doubtFrom++;
    if (this.#doubtFrom > 1024) this.#dropUndoubted();
  }

  #dropUndoubted(): void {
    this.#doubtful.splice(0, this.#doubtFrom);
    this.#doubtFrom = 0;
  }

  /** The signed head must be one that this very log once had. */
  #checkHead(): void {
    const { checkpoint } = this.#known;
    if (checkpoint?.size === this.#chain.leaves && !equalBytes(checkpoint.root, this.#chain.tree.root())) {
      throw malformedError(`the signed checkpoint of ${checkpoint.size} leaves has another root than the log`);
    }
  }

  #checkSealed(record: LogFileRecord, end: FileEnd): void {
    if (record.state !== 'sealed') return;
    const leaves = this.#chain.leaves - record.firstLeaf;
    const root = hexOf(this.#chain.tree.root());
    if (end.offset !== record.length)
      throw this.#corrupt(record.number, end.offset, `a sealed file of ${record.length} bytes ends early`);
    if (leaves !== record.leaves || root !== record.root) {
      throw this.#corrupt(record.number, end.offset, 'a sealed file with other leaves than the manifest says');
    }
  }

  /** Seal and checkpoint file are written one after the other, so at most one seal can be without its checkpoint. */
  #checkCheckpoint(): void {
    if (this.#known.checkpoint === null && this.#chain.seals > 1) {
      throw new ServiceError(
        'REL_STORAGE',
        `${checkpointPath(this.#options.logDirectory)} is missing from a log that was sealed`,
      );
    }
  }

  async #checkFileHeader(file: DiskFile, logId: string, record: LogFileRecord, physical: number): Promise<void> {
    const bytes = new Uint8Array(Math.min(FILE_HEADER_BYTES, physical));
    await readFully(file, bytes, 0);
    let same = false;
    try {
      const header = decodeFileHeader(bytes);
      same =
        header.logId === logId &&
        header.file === record.number &&
        header.firstLeaf === record.firstLeaf &&
        header.firstPosition === record.firstPosition;
    } catch (cause) {
      throw this.#corrupt(record.number, 0, cause instanceof Error ? cause.message : String(cause), cause);
    }
    const inPlace = record.firstLeaf === this.#chain.leaves && record.firstPosition === this.#chain.position;
    if (!same || (!inPlace && this.#resumedAt(record) === null)) {
      throw this.#corrupt(record.number, 0, 'a file header that does not fit its place in the manifest');
    }
  }

  #corrupt(number: number, offset: number, reason: string, cause?: unknown): ServiceError {
    const frameLocation = `${this.#options.logDirectory}/${logFileName(this.#known.manifest.files[number]!)} offset ${offset} (leaf ${this.#chain.leaves})`;
    return new ServiceError('REL_STORAGE', `the log is damaged at ${frameLocation}: ${reason}`, { cause });
  }

  async #yield(): Promise<void> {
    const { clock } = this.#options;
    if (clock.monotonicMs() - this.#sliceStart < SLICE_MS) return;
    await new Promise((resolve) => setImmediate(resolve));
    this.#sliceStart = clock.monotonicMs();
  }
}

interface FileEnd {
  /** Where the last whole frame ends. */
  readonly offset: number;
  /** Where the last byte that is not zero ends. */
  readonly dataEnd: number;
}

async function lastClaim(scanner: FrameScanner): Promise<number | null> {
  let claim: number | null = null;
  for await (const header of scanner.later()) claim = Math.max(claim ?? 0, header.durableThrough);
  return claim;
}

async function readCheckpoint({ disk, logDirectory, origin, keyring }: RecoveryOptions): Promise<TreeHead | null> {
  const bytes = await disk.readFile(checkpointPath(logDirectory));
  if (!bytes) return null;
  try {
    return openCheckpoint(Buffer.from(bytes).toString('utf8'), origin, keyring.publicKeys);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ServiceError('REL_STORAGE', `${checkpointPath(logDirectory)} is not a checkpoint of this log: ${reason}`, {
      cause,
    });
  }
}

/** A log of no entries: file 0, then the manifest that names it. */
async function begin(options: RecoveryOptions): Promise<Manifest> {
  const { disk, random, logDirectory } = options;
  const logId = hexOf(random.fill(new Uint8Array(16)));
  const unlisted = await findUnlisted(options, { logId, files: [] });
  if ((await disk.size(checkpointPath(logDirectory))) !== undefined) {
    throw new ServiceError('REL_STORAGE', `${logDirectory}/manifest is missing from a log that was sealed`);
  }
  if (unlisted) await drop(disk, logDirectory, unlisted.name);
  const record = { number: 0, firstLeaf: 0, firstPosition: 0 };
  const file = await createLogFile(disk, logDirectory, logId, record);
  await file.close();
  const manifest: Manifest = { logId, files: [{ state: 'open', ...record }] };
  await writeManifest(disk, logDirectory, manifest);
  return manifest;
}

/**
 * The file after the last listed one may be there, begun and not yet listed: then it holds no frame, and is made anew
 * when its turn comes. Any other stranger halts the open.
 */
async function findUnlisted(
  { disk, logDirectory }: RecoveryOptions,
  manifest: Manifest,
): Promise<{ readonly name: string; readonly firstLeaf: number | null } | null> {
  const names = await disk.list(logDirectory);
  const strangers = names.filter((name) => (placeOfName(name)?.number ?? -1) >= manifest.files.length);
  const name = strangers[0];
  if (name === undefined) return null;
  const path = `${logDirectory}/${name}`;
  const { number, generation } = placeOfName(name)!;
  const file = await disk.open(path, 'read');
  const length = await file.size();
  const scanner = new FrameScanner(file, number, length, 0);
  let frames = 0;
  for await (const _ of scanner.later()) frames++;
  const header = new Uint8Array(Math.min(FILE_HEADER_BYTES, length));
  await readFully(file, header, 0);
  await file.close();
  if (frames > 0 || strangers.length > 1 || number > manifest.files.length || generation > 0) {
    throw new ServiceError('REL_STORAGE', `${path} is not listed in the manifest beside it and holds ${frames} frames`);
  }
  return { name, firstLeaf: firstLeafOf(header) };
}

/** Finds old generations of files, left by a redaction, and replacements that it did not finish. */
async function findOutdated({ disk, logDirectory }: RecoveryOptions, { files }: Manifest): Promise<string[]> {
  return (await disk.list(logDirectory)).filter((name) => {
    const listed = files[placeOfName(name)?.number ?? -1];
    return listed !== undefined && logFileName(listed) !== name;
  });
}

/** Null when the header itself was cut short by the crash. */
function firstLeafOf(header: Uint8Array): number | null {
  try {
    return decodeFileHeader(header).firstLeaf;
  } catch {
    return null;
  }
}

async function drop(disk: Disk, logDirectory: string, name: string): Promise<void> {
  await disk.unlink(`${logDirectory}/${name}`);
  await disk.syncDirectory(logDirectory);
}
