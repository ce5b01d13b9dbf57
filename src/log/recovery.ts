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
import { type LogFileRecord, logFileName, type Manifest, parseFileName, readManifest, writeManifest } from './files/manifest.ts';
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

const RECOVERY_WINDOW_BYTES = 2 << 20;

/** How long entries may be replayed before other work gets its turn. */
const RECOVERY_SLICE_MS = 4;

const TAIL_REWRITE_BYTES = 1 << 20;

export function checkpointPath(logDirectory: string): string {
  return `${logDirectory}/checkpoint`;
}

export async function recover(recoveryOptions: RecoveryOptions): Promise<Recovered> {
  const { disk, logDirectory } = recoveryOptions;
  await disk.makeDirectory(logDirectory);
  await disk.syncDirectory(logDirectory);
  const manifest = (await readManifest(disk, logDirectory)) ?? (await beginLog(recoveryOptions));
  const unlistedFile = await findUnlistedFile(recoveryOptions, manifest);
  const knownLog = { manifest, checkpoint: await readCheckpoint(recoveryOptions), nextFileLeaf: unlistedFile?.firstLeaf ?? null };
  const recoveredLog = (await resumeFromSaved(recoveryOptions, knownLog)) ?? (await replayLog(recoveryOptions, knownLog, null));
  if (unlistedFile) await dropLogFile(disk, logDirectory, unlistedFile.name);
  for (const outdatedFile of await findOutdatedFiles(recoveryOptions, manifest))
    await dropLogFile(disk, logDirectory, outdatedFile);
  return recoveredLog;
}

interface KnownLog {
  readonly manifest: Manifest;
  readonly checkpoint: TreeHead | null;
  /** Leaves before a file that was begun and not listed: the open file was fsynced before that. */
  readonly nextFileLeaf: number | null;
}

/** Null without a saved state, and where it was refused. */
async function resumeFromSaved(recoveryOptions: RecoveryOptions, knownLog: KnownLog): Promise<Recovered | null> {
  const savedState = recoveryOptions.resume;
  if (!savedState) return null;
  let hasReplayed = false;
  const replay: RecoveryOptions['replay'] = (entry, leafHash) => {
    hasReplayed = true;
    recoveryOptions.replay(entry, leafHash);
  };
  try {
    const recoveryStart = await startFrom(savedState, { ...recoveryOptions, ...knownLog });
    return await replayLog({ ...recoveryOptions, replay }, knownLog, recoveryStart);
  } catch (resumeFailure) {
    if (hasReplayed || !(resumeFailure instanceof ServiceError)) throw resumeFailure;
    savedState.onRefused(resumeFailure.message);
    return null;
  }
}

async function replayLog(recoveryOptions: RecoveryOptions, knownLog: KnownLog, recoveryStart: Start | null): Promise<Recovered> {
  const logRecovery = new Recovery(recoveryOptions, knownLog, recoveryStart);
  try {
    return await logRecovery.run();
  } finally {
    await logRecovery.end();
  }
}

class Recovery {
  readonly #recoveryOptions: RecoveryOptions;
  readonly #knownLog: KnownLog;
  readonly #recoveryStart: Start | null;
  readonly #treeNodes: TreeStore;
  readonly #frameIndex: FrameIndex;
  readonly #replayedChain: HashChain;
  /** Entries from this one on are replayed. */
  readonly #replayFrom: number;
  #lastFrame: FrameSpan | null;
  #frameOpener: FrameOpener | null = null;
  /** Leaves that some frame says were durable. */
  #claimedLeaves = 0;
  #doubtfulFrames: FrameHeader[] = [];
  /** Where in `#doubtfulFrames` the frames in doubt begin. */
  #firstDoubtful = 0;
  #sliceBeganMs: number;

  constructor(recoveryOptions: RecoveryOptions, knownLog: KnownLog, recoveryStart: Start | null) {
    const { keyring, origin } = recoveryOptions;
    this.#recoveryOptions = recoveryOptions;
    this.#knownLog = knownLog;
    this.#recoveryStart = recoveryStart;
    this.#treeNodes = recoveryStart?.nodes ?? new TreeStore();
    this.#frameIndex = recoveryStart?.frames ?? new FrameIndex();
    this.#replayedChain = new HashChain({
      keyring,
      origin,
      rows: false,
      nodes: this.#treeNodes,
      ...(recoveryStart ? { start: recoveryStart.chain } : {}),
    });
    this.#replayFrom = recoveryStart?.state.leaves ?? 0;
    this.#lastFrame = recoveryStart?.state.lastFrame ?? null;
    // A state goes by nothing that was not durable.
    this.#claimedLeaves = this.#replayFrom;
    this.#sliceBeganMs = recoveryOptions.clock.monotonicMs();
  }

  async run(): Promise<Recovered> {
    const { manifest, checkpoint } = this.#knownLog;
    this.#checkHead();
    const openLogFile = manifest.files[manifest.files.length - 1]!;
    for (const sealedFile of manifest.files.slice(this.#recoveryStart?.state.lastFrame.file ?? 0, -1)) {
      const { file, end: fileEnd } = await this.#recoverFile(sealedFile, () => undefined);
      await file.close();
      this.#checkSealed(sealedFile, fileEnd);
    }
    const {
      file,
      end,
      physical: physicalBytes,
    } = await this.#recoverFile(openLogFile, () => {
      this.#checkCheckpoint();
      if (this.#replayedChain.leaves < this.#replayFrom)
        throw malformedError(`it stands for ${this.#replayFrom} leaves; the log has ${this.#replayedChain.leaves}`);
    });
    const tailCutBytes = end.dataEnd - end.offset;
    await this.#rewriteDoubtful(file, end.offset);
    if (physicalBytes > end.offset) {
      await file.truncate(end.offset);
      await file.sync();
    }
    const cutFrom =
      tailCutBytes > 0 ? `${logFileName(openLogFile)} offset ${end.offset} (leaf ${this.#replayedChain.leaves})` : null;
    return {
      end: {
        manifest,
        file,
        offset: end.offset,
        tree: this.#replayedChain.tree.copy(),
        position: this.#replayedChain.position,
        frames: this.#frameIndex,
        lastFrame: this.#lastFrame,
      },
      chain: this.#replayedChain,
      nodes: this.#treeNodes,
      checkpointSize: checkpoint?.size ?? 0,
      report: { cutBytes: tailCutBytes, cutFrom, replayedLeaves: this.#replayedChain.leaves - this.#replayFrom },
    };
  }

  async end(): Promise<void> {
    await this.#frameOpener?.end();
  }

  /**
   * Where an fsync has failed, the system shows pages that it dropped and will never write, and the next fsync says that
   * all is well. Frames that nothing claims as durable are written once more, so that this process's fsync is about them.
   */
  async #rewriteDoubtful(openLogFile: DiskFile, tailEnd: number): Promise<void> {
    const durableLeaves = Math.max(this.#claimedLeaves, this.#knownLog.checkpoint?.size ?? 0);
    if (this.#replayedChain.leaves <= durableLeaves) return;
    const doubtfulOffset = this.#doubtfulFrames.findLast(({ firstLeaf }) => firstLeaf <= durableLeaves)?.offset ?? tailEnd;
    for (let rewriteOffset = doubtfulOffset; rewriteOffset < tailEnd; rewriteOffset += TAIL_REWRITE_BYTES) {
      const rewrittenBytes = new Uint8Array(Math.min(TAIL_REWRITE_BYTES, tailEnd - rewriteOffset));
      await readFully(openLogFile, rewrittenBytes, rewriteOffset);
      await writeFully(openLogFile, rewrittenBytes, rewriteOffset);
    }
    await openLogFile.sync();
  }

  /** Replays one file, and `checkReplayed`s what it came to. The handle stays open. */
  async #recoverFile(
    fileRecord: LogFileRecord,
    checkReplayed: () => void,
  ): Promise<{ file: DiskFile; end: LogFileEnd; physical: number }> {
    const { disk, logDirectory } = this.#recoveryOptions;
    const recoveredFileName = logFileName(fileRecord);
    const recoveredFilePath = `${logDirectory}/${recoveredFileName}`;
    if ((await disk.size(recoveredFilePath)) === undefined)
      throw this.#damagedLogError(fileRecord.number, 0, 'the manifest lists a file that is missing');
    const recoveredFile = await disk.open(recoveredFilePath, 'write');
    await recoveredFile.sync();
    try {
      const { end: fileEnd, physical: physicalBytes } = await this.#replayFile(recoveredFile, fileRecord);
      checkReplayed();
      return { file: recoveredFile, end: fileEnd, physical: physicalBytes };
    } catch (readFailure) {
      await recoveredFile.close().catch(() => undefined);
      throw readFailure;
    }
  }

  async #replayFile(recoveredFile: DiskFile, fileRecord: LogFileRecord): Promise<{ end: LogFileEnd; physical: number }> {
    const { manifest, nextFileLeaf, checkpoint } = this.#knownLog;
    const physicalBytes = await recoveredFile.size();
    const listedLength = fileRecord.state === 'sealed' ? fileRecord.length : physicalBytes;
    if (physicalBytes < listedLength || (fileRecord.state === 'sealed' && physicalBytes > listedLength)) {
      throw this.#damagedLogError(
        fileRecord.number,
        Math.min(physicalBytes, listedLength),
        `${physicalBytes} bytes where the manifest says ${listedLength}`,
      );
    }
    await this.#checkFileHeader(recoveredFile, manifest.logId, fileRecord, physicalBytes);
    const resumedOffset = this.#resumedOffset(fileRecord);
    const replayOffset = resumedOffset ?? FILE_HEADER_BYTES;
    const frameOpener = this.#openerForFile(listedLength - replayOffset);
    const { windowBytes = RECOVERY_WINDOW_BYTES, poison = false } = this.#recoveryOptions.openBeside ?? {};
    const readAheadOptions = frameOpener ? { chunkBytes: windowBytes, shared: true } : {};
    const frameScanner = new FrameScanner(recoveredFile, fileRecord.number, listedLength, replayOffset, readAheadOptions);
    const badFrameReason = await this.#replayFrames(new FrameFeed(frameScanner, frameOpener, poison), fileRecord.number);
    const tailVerdict = judgeTail({
      leaves: this.#replayedChain.leaves,
      bad: badFrameReason,
      sealed: fileRecord.state === 'sealed',
      laterClaim: badFrameReason === null ? null : await lastDurableClaim(frameScanner),
      nextFileLeaf: fileRecord.state === 'open' ? nextFileLeaf : null,
      checkpointSize: fileRecord.state === 'open' ? (checkpoint?.size ?? 0) : 0,
    });
    if (tailVerdict.tail === 'corrupt') throw this.#damagedLogError(fileRecord.number, frameScanner.offset, tailVerdict.reason);
    const dataEnd = tailVerdict.tail === 'torn' ? await frameScanner.dataEnd() : frameScanner.offset;
    return { end: { offset: frameScanner.offset, dataEnd }, physical: physicalBytes };
  }

  /** Follows frame after frame; returns what stands where they end, null when that is the end of the data. */
  async #replayFrames(frameFeed: FrameFeed, fileNumber: number): Promise<string | null> {
    for (;;) {
      const fedFrame = await frameFeed.next();
      if (fedFrame.result === 'end') return null;
      if (fedFrame.result === 'bad') return fedFrame.reason;
      const { header: frameHeader, bytes: frameBytes, offset: frameOffset } = fedFrame;
      try {
        this.#checkClaims(frameHeader);
        this.#noteDoubtfulFrame(frameHeader);
        this.#frameIndex.note({
          file: fileNumber,
          offset: frameOffset,
          firstLeaf: this.#replayedChain.leaves,
          firstPosition: this.#replayedChain.position,
        });
        for (const [i, storedEntry] of frameEntries(frameBytes, frameHeader).entries()) {
          const replayedEntry = this.#replayedChain.follow(storedEntry, fedFrame.bodyOf(i));
          this.#checkHead();
          if (replayedEntry.leaf >= this.#replayFrom)
            this.#recoveryOptions.replay(replayedEntry, this.#replayedChain.previousHash);
          else this.#checkSavedLeaf();
        }
        this.#lastFrame = { file: fileNumber, offset: frameOffset, end: frameOffset + frameBytes.length };
      } catch (frameFailure) {
        if (frameFailure instanceof ServiceError)
          throw this.#damagedLogError(fileNumber, frameOffset, frameFailure.message, frameFailure);
        throw frameFailure;
      }
      await this.#yieldRecovery();
      await this.#recoveryOptions.breathe?.();
    }
  }

  /** The worker that opens frames ahead; none for a range that is read sooner than a worker is there. */
  #openerForFile(replayBytes: number): FrameOpener | null {
    const { openBeside, keyring } = this.#recoveryOptions;
    if (!openBeside || replayBytes < openBeside.bytesMin) return null;
    return (this.#frameOpener ??= new FrameOpener(openBeside.startWorker, keyring, false));
  }

  /** Where reading begins within the file that a saved state ends in. */
  #resumedOffset(fileRecord: LogFileRecord): number | null {
    const { file, end } = this.#recoveryStart?.state.lastFrame ?? { file: -1, end: 0 };
    return fileRecord.number === file ? end : null;
  }

  /** An entry that was placed but not yet written when the state was saved must be the one that the log has. */
  #checkSavedLeaf(): void {
    if (
      this.#replayedChain.leaves === this.#replayFrom &&
      !equalBytes(this.#recoveryStart!.leafHash, this.#replayedChain.previousHash)
    )
      throw malformedError('a saved state of a log that went another way');
  }

  #checkClaims(frameHeader: FrameHeader): void {
    if (frameHeader.firstLeaf !== this.#replayedChain.leaves) {
      throw malformedError(`a frame from leaf ${frameHeader.firstLeaf} where ${this.#replayedChain.leaves} belongs`);
    }
    if (frameHeader.durableThrough > frameHeader.firstLeaf)
      throw malformedError('a frame that claims itself as durable before it was written');
  }

  /** Keeps the frames from the one on that holds the first leaf which no frame so far says was durable. */
  #noteDoubtfulFrame(frameHeader: FrameHeader): void {
    this.#claimedLeaves = Math.max(this.#claimedLeaves, frameHeader.durableThrough);
    if (frameHeader.file !== this.#doubtfulFrames[0]?.file) {
      this.#doubtfulFrames = [];
      this.#firstDoubtful = 0;
    }
    this.#doubtfulFrames.push(frameHeader);
    // From the front, so that a log without a single claim costs no search per frame.
    while (
      this.#firstDoubtful + 1 < this.#doubtfulFrames.length &&
      this.#doubtfulFrames[this.#firstDoubtful + 1]!.firstLeaf <= this.#claimedLeaves
    )
      this.#firstDoubtful++;
    if (this.#firstDoubtful > 1024) this.#dropDurableFrames();
  }

  #dropDurableFrames(): void {
    this.#doubtfulFrames.splice(0, this.#firstDoubtful);
    this.#firstDoubtful = 0;
  }

  /** The signed head must be one that this very log once had. */
  #checkHead(): void {
    const { checkpoint } = this.#knownLog;
    if (checkpoint?.size === this.#replayedChain.leaves && !equalBytes(checkpoint.root, this.#replayedChain.tree.root())) {
      throw malformedError(`the signed checkpoint of ${checkpoint.size} leaves has another root than the log`);
    }
  }

  #checkSealed(sealedFile: LogFileRecord, fileEnd: LogFileEnd): void {
    if (sealedFile.state !== 'sealed') return;
    const fileLeaves = this.#replayedChain.leaves - sealedFile.firstLeaf;
    const replayedRoot = hexOf(this.#replayedChain.tree.root());
    if (fileEnd.offset !== sealedFile.length)
      throw this.#damagedLogError(sealedFile.number, fileEnd.offset, `a sealed file of ${sealedFile.length} bytes ends early`);
    if (fileLeaves !== sealedFile.leaves || replayedRoot !== sealedFile.root) {
      throw this.#damagedLogError(sealedFile.number, fileEnd.offset, 'a sealed file with other leaves than the manifest says');
    }
  }

  /** Seal and checkpoint file are written one after the other, so at most one seal can be without its checkpoint. */
  #checkCheckpoint(): void {
    if (this.#knownLog.checkpoint === null && this.#replayedChain.seals > 1) {
      throw new ServiceError(
        'REL_STORAGE',
        `${checkpointPath(this.#recoveryOptions.logDirectory)} is missing from a log that was sealed`,
      );
    }
  }

  async #checkFileHeader(file: DiskFile, logId: string, fileRecord: LogFileRecord, physicalBytes: number): Promise<void> {
    const headerBytes = new Uint8Array(Math.min(FILE_HEADER_BYTES, physicalBytes));
    await readFully(file, headerBytes, 0);
    let isSameFile = false;
    try {
      const fileHeader = decodeFileHeader(headerBytes);
      isSameFile =
        fileHeader.logId === logId &&
        fileHeader.file === fileRecord.number &&
        fileHeader.firstLeaf === fileRecord.firstLeaf &&
        fileHeader.firstPosition === fileRecord.firstPosition;
    } catch (cause) {
      throw this.#damagedLogError(fileRecord.number, 0, cause instanceof Error ? cause.message : String(cause), cause);
    }
    const isInSequence =
      fileRecord.firstLeaf === this.#replayedChain.leaves && fileRecord.firstPosition === this.#replayedChain.position;
    if (!isSameFile || (!isInSequence && this.#resumedOffset(fileRecord) === null)) {
      throw this.#damagedLogError(fileRecord.number, 0, 'a file header that does not fit its place in the manifest');
    }
  }

  #damagedLogError(fileNumber: number, damageOffset: number, damageReason: string, cause?: unknown): ServiceError {
    const frameLocation = `${this.#recoveryOptions.logDirectory}/${logFileName(this.#knownLog.manifest.files[fileNumber]!)} offset ${damageOffset} (leaf ${this.#replayedChain.leaves})`;
    return new ServiceError('REL_STORAGE', `the log is damaged at ${frameLocation}: ${damageReason}`, { cause });
  }

  async #yieldRecovery(): Promise<void> {
    const { clock } = this.#recoveryOptions;
    if (clock.monotonicMs() - this.#sliceBeganMs < RECOVERY_SLICE_MS) return;
    await new Promise((resolve) => setImmediate(resolve));
    this.#sliceBeganMs = clock.monotonicMs();
  }
}

interface LogFileEnd {
  /** Where the last whole frame ends. */
  readonly offset: number;
  /** Where the last byte that is not zero ends. */
  readonly dataEnd: number;
}

async function lastDurableClaim(frameScanner: FrameScanner): Promise<number | null> {
  let durableClaim: number | null = null;
  for await (const laterFrame of frameScanner.later()) durableClaim = Math.max(durableClaim ?? 0, laterFrame.durableThrough);
  return durableClaim;
}

async function readCheckpoint({ disk, logDirectory, origin, keyring }: RecoveryOptions): Promise<TreeHead | null> {
  const checkpointBytes = await disk.readFile(checkpointPath(logDirectory));
  if (!checkpointBytes) return null;
  try {
    return openCheckpoint(Buffer.from(checkpointBytes).toString('utf8'), origin, keyring.publicKeys);
  } catch (cause) {
    const causeText = cause instanceof Error ? cause.message : String(cause);
    throw new ServiceError('REL_STORAGE', `${checkpointPath(logDirectory)} is not a checkpoint of this log: ${causeText}`, {
      cause,
    });
  }
}

/** A log of no entries: file 0, then the manifest that names it. */
async function beginLog(recoveryOptions: RecoveryOptions): Promise<Manifest> {
  const { disk, random, logDirectory } = recoveryOptions;
  const logId = hexOf(random.fill(new Uint8Array(16)));
  const unlistedFile = await findUnlistedFile(recoveryOptions, { logId, files: [] });
  if ((await disk.size(checkpointPath(logDirectory))) !== undefined) {
    throw new ServiceError('REL_STORAGE', `${logDirectory}/manifest is missing from a log that was sealed`);
  }
  if (unlistedFile) await dropLogFile(disk, logDirectory, unlistedFile.name);
  const firstFile = { number: 0, firstLeaf: 0, firstPosition: 0 };
  const firstLogFile = await createLogFile(disk, logDirectory, logId, firstFile);
  await firstLogFile.close();
  const newManifest: Manifest = { logId, files: [{ state: 'open', ...firstFile }] };
  await writeManifest(disk, logDirectory, newManifest);
  return newManifest;
}

/**
 * The file after the last listed one may be there, begun and not yet listed: then it holds no frame, and is made anew
 * when its turn comes. Any other stranger halts the open.
 */
async function findUnlistedFile(
  { disk, logDirectory }: RecoveryOptions,
  manifest: Manifest,
): Promise<{ readonly name: string; readonly firstLeaf: number | null } | null> {
  const logFileNames = await disk.list(logDirectory);
  const unlistedNames = logFileNames.filter(
    (unlistedName) => (parseFileName(unlistedName)?.number ?? -1) >= manifest.files.length,
  );
  const name = unlistedNames[0];
  if (name === undefined) return null;
  const unlistedPath = `${logDirectory}/${name}`;
  const { number, generation } = parseFileName(name)!;
  const unlistedFile = await disk.open(unlistedPath, 'read');
  const unlistedLength = await unlistedFile.size();
  const frameScanner = new FrameScanner(unlistedFile, number, unlistedLength, 0);
  let frameCount = 0;
  for await (const _ of frameScanner.later()) frameCount++;
  const fileHeader = new Uint8Array(Math.min(FILE_HEADER_BYTES, unlistedLength));
  await readFully(unlistedFile, fileHeader, 0);
  await unlistedFile.close();
  if (frameCount > 0 || unlistedNames.length > 1 || number > manifest.files.length || generation > 0) {
    throw new ServiceError(
      'REL_STORAGE',
      `${unlistedPath} is not listed in the manifest beside it and holds ${frameCount} frames`,
    );
  }
  return { name, firstLeaf: headerFirstLeaf(fileHeader) };
}

/** Finds old generations of files, left by a redaction, and replacements that it did not finish. */
async function findOutdatedFiles({ disk, logDirectory }: RecoveryOptions, { files }: Manifest): Promise<string[]> {
  return (await disk.list(logDirectory)).filter((name) => {
    const listedFile = files[parseFileName(name)?.number ?? -1];
    return listedFile !== undefined && logFileName(listedFile) !== name;
  });
}

/** Null when the header itself was cut short by the crash. */
function headerFirstLeaf(fileHeader: Uint8Array): number | null {
  try {
    return decodeFileHeader(fileHeader).firstLeaf;
  } catch {
    return null;
  }
}

async function dropLogFile(disk: Disk, logDirectory: string, logFile: string): Promise<void> {
  await disk.unlink(`${logDirectory}/${logFile}`);
  await disk.syncDirectory(logDirectory);
}
