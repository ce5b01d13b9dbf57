/**
 * The saved state of an open log: a later open reads only the entries that follow. It is taken within a turn, and a projection
 * stores it in the same set as its own state. Taking it copies nothing; its bytes are made on request, from data that never
 * changes again. The storing side authenticates them; the log checks that they are its own and that it is still as they say.
 *
 * A state stands for `leaves` entries, those included that were placed and not yet written. It says where the last frame lay
 * that was written by then, and reading begins behind that frame: entries up to `leaves` are followed and not replayed.
 * Nothing may go by it before these leaves are durable (`LogStore.durable`).
 *
 *   +------------+------------+--------+--------------+-----------------+-------------+------------------+
 *   | "ANNSAVED" | format u32 | log id | leaves u64   | leaf hash [32]  | written u64 | manifest link    |
 *   +------------+------------+--------+--------------+-----------------+-------------+------------------+
 *   | of the last frame: file u32, offset u64, end u64 | sealed leaves u64, seals u64 | frames | tree nodes |
 *   +--------------------------------------------------+------------------------------+--------+------------+
 *
 * The chain itself is not in it: tree, previous hash, position and instant follow from the nodes and from the last frame.
 * It is a derived file: another form needs another format number and nothing else.
 */
import { ServiceError } from '../../errors.ts';
import { ByteReader, ByteWriter, malformedError } from '../bytes/byte-stream.ts';
import type { ChainStart } from './hash-chain.ts';
import { lastInstantOf } from './hash-chain.ts';
import type { Disk } from '../disk/disk.ts';
import { decodeLeaf, leafHashOf } from '../entries/entry-codec.ts';
import { FrameIndex } from './frame-index.ts';
import { type FrameEntry, FrameScanner, frameEntries } from './log-file.ts';
import { linkBefore, type LogFileRecord, logFileName, type Manifest } from './manifest.ts';
import type { TreeHead } from '../tree/merkle-tree.ts';
import { equalBytes, HASH_BYTES, hexOf } from '../bytes/sha256.ts';
import { type ReadBlob, type SavedBlob, TreeStore } from '../tree/tree-store.ts';

export interface SavedLog {
  readonly logId: string;
  /** Entries that had been placed; the first one to be replayed has this number. */
  readonly leaves: number;
  /** Hex hash of the last of them. This, and what follows, can be asked for once these leaves are durable. */
  readonly leafHash: string;
  /** At most some MB, made by the call: up to 2.2 MB of tree nodes, and 32 bytes for every 64 KiB of log. */
  readonly bytes: Uint8Array;
  /** One for every 65,536 leaves. To be kept beside `bytes`, each written once; those that a newer state leaves out may go. */
  readonly blobs: readonly SavedBlob[];
}

export interface ResumeOptions {
  readonly bytes: Uint8Array;
  /**
   * Reads a blob back, within the turn; throws when it can't. Asked at any time while the log is open: an old proof then
   * fails with REL_STORAGE.
   */
  readonly blob: ReadBlob;
  /** Called at most once, before anything is replayed: the state is of no use, and everything is replayed. */
  onRefused(reason: string): void;
}

/** Where a whole frame lies. */
export interface FrameSpan {
  readonly file: number;
  readonly offset: number;
  readonly end: number;
}

export interface SavedState {
  readonly logId: string;
  readonly leaves: number;
  /** Leaves up to the end of the last frame. */
  readonly written: number;
  readonly lastFrame: FrameSpan;
  /** Leaves that were written, up to and including the last seal, and the number of seals. */
  readonly sealed: number;
  readonly seals: number;
}

const savedLogMagic = Buffer.from('ANNSAVED', 'latin1');
const SAVED_LOG_FORMAT = 1;

/** `frames` and `nodes` keep growing; their part of the saved state does not change. */
export function savedLog(
  savedLogState: SavedState,
  files: readonly LogFileRecord[],
  frames: FrameIndex,
  nodes: TreeStore,
): SavedLog {
  const { logId, leaves, written } = savedLogState;
  const savedFrameCount = frames.count;
  const lastLeafHash = (): Uint8Array => nodes.node(0, leaves - 1);
  const encodeSavedLog = (): Uint8Array => {
    const savedLogWriter = new ByteWriter(1 << 16);
    savedLogWriter.raw(savedLogMagic);
    savedLogWriter.u32(SAVED_LOG_FORMAT);
    savedLogWriter.text(logId);
    savedLogWriter.u64(leaves);
    savedLogWriter.raw(lastLeafHash());
    savedLogWriter.u64(written);
    savedLogWriter.text(linkBefore({ logId, files }, savedLogState.lastFrame.file));
    savedLogWriter.u32(savedLogState.lastFrame.file);
    savedLogWriter.u64(savedLogState.lastFrame.offset);
    savedLogWriter.u64(savedLogState.lastFrame.end);
    savedLogWriter.u64(savedLogState.sealed);
    savedLogWriter.u64(savedLogState.seals);
    frames.save(savedFrameCount, savedLogWriter);
    nodes.save(written, savedLogWriter);
    return savedLogWriter.take();
  };
  return {
    logId,
    leaves,
    get leafHash() {
      return hexOf(lastLeafHash());
    },
    get bytes() {
      return encodeSavedLog();
    },
    get blobs() {
      return nodes.blobs(written);
    },
  };
}

/** Where a log is taken up again. */
export interface Start {
  readonly state: SavedState;
  readonly leafHash: Uint8Array;
  readonly chain: ChainStart;
  readonly frames: FrameIndex;
  readonly nodes: TreeStore;
}

/** Throws REL_STORAGE with what does not fit the log on disk. Reads one frame of it, and the sizes of its files. */
export async function startFrom(
  { bytes, blob }: ResumeOptions,
  recoveredLog: {
    readonly disk: Disk;
    readonly logDirectory: string;
    readonly manifest: Manifest;
    readonly checkpoint: TreeHead | null;
  },
): Promise<Start> {
  const { state, leafHash, link: manifestLink, frames, nodes } = decodeSavedLog(bytes, blob);
  const { manifest, checkpoint } = recoveredLog;
  const { lastFrame, written } = state;
  if (state.logId !== manifest.logId) throw malformedError(`it is of log ${state.logId}`);
  if (lastFrame.file >= manifest.files.length)
    throw malformedError(`it knows log file ${lastFrame.file}, which the manifest does not list`);
  if (manifestLink !== linkBefore(manifest, lastFrame.file))
    throw malformedError('the manifest lists other files than it did then');
  await checkSavedFiles(recoveredLog, lastFrame);
  const lastSavedEntry = await readLastSavedEntry(recoveredLog, lastFrame, written);
  const previousHash = leafHashOf(lastSavedEntry.leaf);
  if (!equalBytes(previousHash, nodes.node(0, written - 1))) throw malformedError(`the log has another leaf ${written - 1}`);
  if (state.leaves === written && !equalBytes(leafHash, previousHash)) throw malformedError('its last leaf has two hashes');
  if (checkpoint && checkpoint.size <= written && !equalBytes(nodes.root(checkpoint.size), checkpoint.root)) {
    throw malformedError(`the signed checkpoint of ${checkpoint.size} leaves has another root`);
  }
  const leafFields = decodeLeaf(lastSavedEntry.leaf);
  const chainStart: ChainStart = {
    tree: nodes.frontier(),
    position: leafFields.position + leafFields.positions,
    lastInstant: lastInstantOf(leafFields),
    previousHash,
    sealed: state.sealed,
    seals: state.seals,
  };
  return { state, leafHash, chain: chainStart, frames, nodes };
}

function decodeSavedLog(savedLogBytes: Uint8Array, blob: ReadBlob): Omit<Start, 'chain'> & { readonly link: string } {
  const savedLogReader = new ByteReader(savedLogBytes);
  if (!savedLogMagic.equals(savedLogReader.raw(savedLogMagic.length))) throw malformedError('it is no saved state of a log');
  const savedFormat = savedLogReader.u32();
  if (savedFormat !== SAVED_LOG_FORMAT)
    throw malformedError(`it has format ${savedFormat}; this version reads ${SAVED_LOG_FORMAT}`);
  const logId = savedLogReader.text();
  const savedLeaves = savedLogReader.u64();
  const leafHash = savedLogReader.raw(HASH_BYTES);
  const writtenLeaves = savedLogReader.u64();
  const manifestLink = savedLogReader.text();
  const lastFrame = { file: savedLogReader.u32(), offset: savedLogReader.u64(), end: savedLogReader.u64() };
  const sealedLeaves = savedLogReader.u64();
  const sealCount = savedLogReader.u64();
  const isConsistent =
    writtenLeaves > 0 &&
    writtenLeaves <= savedLeaves &&
    lastFrame.offset < lastFrame.end &&
    sealedLeaves <= writtenLeaves &&
    sealCount <= writtenLeaves;
  if (!isConsistent) throw malformedError('its numbers contradict each other');
  const frames = FrameIndex.restore(savedLogReader);
  const nodes = TreeStore.restore(savedLogReader, writtenLeaves, (blobName) => readSavedNodes(blob, blobName));
  savedLogReader.end();
  return {
    state: { logId, leaves: savedLeaves, written: writtenLeaves, lastFrame, sealed: sealedLeaves, seals: sealCount },
    leafHash,
    link: manifestLink,
    frames,
    nodes,
  };
}

/** Files before the place are not read again: they must be there, as long as they were sealed. */
async function checkSavedFiles(
  { disk, logDirectory, manifest }: { readonly disk: Disk; readonly logDirectory: string; readonly manifest: Manifest },
  lastFrame: FrameSpan,
): Promise<void> {
  for (const fileRecord of manifest.files.slice(0, lastFrame.file + 1)) {
    const savedFileName = logFileName(fileRecord);
    const savedFileSize = await disk.size(`${logDirectory}/${savedFileName}`);
    const expectedSize = fileRecord.state === 'sealed' ? fileRecord.length : lastFrame.end;
    if (savedFileSize === undefined) throw malformedError(`${savedFileName} is missing`);
    if (savedFileSize < expectedSize || (fileRecord.state === 'sealed' && savedFileSize > expectedSize))
      throw malformedError(`${savedFileName} has ${savedFileSize} bytes and not ${expectedSize}`);
    if (fileRecord.number === lastFrame.file && lastFrame.end > expectedSize)
      throw malformedError(`${savedFileName} was sealed before the place it knows`);
  }
}

/** The last entry of the frame that was the last one written: the chain that it ends is the one that was saved. */
async function readLastSavedEntry(
  { disk, logDirectory, manifest }: { readonly disk: Disk; readonly logDirectory: string; readonly manifest: Manifest },
  { file: fileNumber, offset, end: frameEnd }: FrameSpan,
  writtenLeaves: number,
): Promise<FrameEntry> {
  const lastFileName = logFileName(manifest.files[fileNumber]!);
  const lastLogFile = await disk.open(`${logDirectory}/${lastFileName}`, 'read');
  try {
    const frameScanner = new FrameScanner(lastLogFile, fileNumber, frameEnd, offset, { chunkBytes: frameEnd - offset });
    const scannedFrame = await frameScanner.next();
    if (scannedFrame.result !== 'frame' || frameScanner.offset !== frameEnd)
      throw malformedError(`${lastFileName} has no such frame at offset ${offset}`);
    const { header: frameHeader, bytes: frameBytes } = scannedFrame;
    if (frameHeader.firstLeaf + frameHeader.entries !== writtenLeaves)
      throw malformedError(`${lastFileName} has a frame of other leaves at offset ${offset}`);
    return frameEntries(frameBytes, frameHeader)[frameHeader.entries - 1]!;
  } finally {
    await lastLogFile.close();
  }
}

function readSavedNodes(blob: ReadBlob, blobName: string): Uint8Array {
  try {
    return blob(blobName);
  } catch (cause) {
    const causeText = cause instanceof Error ? cause.message : String(cause);
    throw new ServiceError('REL_STORAGE', `tree nodes can't be read back: ${blobName}: ${causeText}`, { cause });
  }
}
