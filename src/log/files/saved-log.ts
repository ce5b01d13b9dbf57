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

const magic = Buffer.from('ANNSAVED', 'latin1');
const FORMAT = 1;

/** `frames` and `nodes` keep growing; their part of the saved state does not change. */
export function savedLog(state: SavedState, files: readonly LogFileRecord[], frames: FrameIndex, nodes: TreeStore): SavedLog {
  const { logId, leaves, written } = state;
  const framesThen = frames.count;
  const leafHash = (): Uint8Array => nodes.node(0, leaves - 1);
  const encode = (): Uint8Array => {
    const target = new ByteWriter(1 << 16);
    target.raw(magic);
    target.u32(FORMAT);
    target.text(logId);
    target.u64(leaves);
    target.raw(leafHash());
    target.u64(written);
    target.text(linkBefore({ logId, files }, state.lastFrame.file));
    target.u32(state.lastFrame.file);
    target.u64(state.lastFrame.offset);
    target.u64(state.lastFrame.end);
    target.u64(state.sealed);
    target.u64(state.seals);
    frames.save(framesThen, target);
    nodes.save(written, target);
    return target.take();
  };
  return {
    logId,
    leaves,
    get leafHash() {
      return hexOf(leafHash());
    },
    get bytes() {
      return encode();
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
  log: {
    readonly disk: Disk;
    readonly logDirectory: string;
    readonly manifest: Manifest;
    readonly checkpoint: TreeHead | null;
  },
): Promise<Start> {
  const { state, leafHash, link, frames, nodes } = decode(bytes, blob);
  const { manifest, checkpoint } = log;
  const { lastFrame, written } = state;
  if (state.logId !== manifest.logId) throw malformedError(`it is of log ${state.logId}`);
  if (lastFrame.file >= manifest.files.length)
    throw malformedError(`it knows log file ${lastFrame.file}, which the manifest does not list`);
  if (link !== linkBefore(manifest, lastFrame.file)) throw malformedError('the manifest lists other files than it did then');
  await checkFiles(log, lastFrame);
  const last = await lastEntry(log, lastFrame, written);
  const previousHash = leafHashOf(last.leaf);
  if (!equalBytes(previousHash, nodes.node(0, written - 1))) throw malformedError(`the log has another leaf ${written - 1}`);
  if (state.leaves === written && !equalBytes(leafHash, previousHash)) throw malformedError('its last leaf has two hashes');
  if (checkpoint && checkpoint.size <= written && !equalBytes(nodes.root(checkpoint.size), checkpoint.root)) {
    throw malformedError(`the signed checkpoint of ${checkpoint.size} leaves has another root`);
  }
  const facts = decodeLeaf(last.leaf);
  const chain: ChainStart = {
    tree: nodes.frontier(),
    position: facts.position + facts.positions,
    lastInstant: lastInstantOf(facts),
    previousHash,
    sealed: state.sealed,
    seals: state.seals,
  };
  return { state, leafHash, chain, frames, nodes };
}

function decode(bytes: Uint8Array, blob: ReadBlob): Omit<Start, 'chain'> & { readonly link: string } {
  const source = new ByteReader(bytes);
  if (!magic.equals(source.raw(magic.length))) throw malformedError('it is no saved state of a log');
  const format = source.u32();
  if (format !== FORMAT) throw malformedError(`it has format ${format}; this version reads ${FORMAT}`);
  const logId = source.text();
  const leaves = source.u64();
  const leafHash = source.raw(HASH_BYTES);
  const written = source.u64();
  const link = source.text();
  const lastFrame = { file: source.u32(), offset: source.u64(), end: source.u64() };
  const sealed = source.u64();
  const seals = source.u64();
  const inOrder = written > 0 && written <= leaves && lastFrame.offset < lastFrame.end && sealed <= written && seals <= written;
  if (!inOrder) throw malformedError('its numbers contradict each other');
  const frames = FrameIndex.restore(source);
  const nodes = TreeStore.restore(source, written, (name) => readBlob(blob, name));
  source.end();
  return { state: { logId, leaves, written, lastFrame, sealed, seals }, leafHash, link, frames, nodes };
}

/** Files before the place are not read again: they must be there, as long as they were sealed. */
async function checkFiles(
  { disk, logDirectory, manifest }: { readonly disk: Disk; readonly logDirectory: string; readonly manifest: Manifest },
  lastFrame: FrameSpan,
): Promise<void> {
  for (const record of manifest.files.slice(0, lastFrame.file + 1)) {
    const name = logFileName(record);
    const size = await disk.size(`${logDirectory}/${name}`);
    const wanted = record.state === 'sealed' ? record.length : lastFrame.end;
    if (size === undefined) throw malformedError(`${name} is missing`);
    if (size < wanted || (record.state === 'sealed' && size > wanted))
      throw malformedError(`${name} has ${size} bytes and not ${wanted}`);
    if (record.number === lastFrame.file && lastFrame.end > wanted)
      throw malformedError(`${name} was sealed before the place it knows`);
  }
}

/** The last entry of the frame that was the last one written: the chain that it ends is the one that was saved. */
async function lastEntry(
  { disk, logDirectory, manifest }: { readonly disk: Disk; readonly logDirectory: string; readonly manifest: Manifest },
  { file: number, offset, end }: FrameSpan,
  written: number,
): Promise<FrameEntry> {
  const name = logFileName(manifest.files[number]!);
  const file = await disk.open(`${logDirectory}/${name}`, 'read');
  try {
    const scanner = new FrameScanner(file, number, end, offset, { chunkBytes: end - offset });
    const scanned = await scanner.next();
    if (scanned.result !== 'frame' || scanner.offset !== end)
      throw malformedError(`${name} has no such frame at offset ${offset}`);
    const { header, bytes } = scanned;
    if (header.firstLeaf + header.entries !== written)
      throw malformedError(`${name} has a frame of other leaves at offset ${offset}`);
    return frameEntries(bytes, header)[header.entries - 1]!;
  } finally {
    await file.close();
  }
}

function readBlob(blob: ReadBlob, name: string): Uint8Array {
  try {
    return blob(name);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ServiceError('REL_STORAGE', `tree nodes can't be read back: ${name}: ${reason}`, { cause });
  }
}
