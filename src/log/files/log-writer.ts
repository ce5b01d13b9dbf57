/**
 * The open log file: where the next frame goes, when a new file begins.
 *
 * - One write and at most one fsync a group; a group never spans files. A frame may be written while an fsync is under way,
 *   which does not cover it; a file is not ended under its fsync.
 * - A file is begun durably (header, directory, manifest) before a frame lands in it, and the file before it is cut to
 *   size and fsynced before the manifest calls it sealed.
 * - Small frames are followed by zeros in the same write, so that most of them overwrite allocated blocks: an fsync then
 *   has no metadata to write.
 * - After a call that found no room (`noRoomIn`) the same may be asked for again: a frame goes to the same place, over what
 *   is there of it, and a file that was begun and not listed is made anew. After any other error the writer is never used again.
 */
import { assert } from '../../errors.ts';
import { type Disk, type DiskFile, writeFully } from '../disk/disk.ts';
import type { EncodedEntry } from '../entries/entry-codec.ts';
import type { FrameIndex, FrameStart } from './frame-index.ts';
import { encodeFileHeader, encodeFrame, FILE_HEADER_BYTES, frameBytes } from './log-file.ts';
import { OpenLogFile } from './open-log-file.ts';
import { type LogFileRecord, logFileName, type Manifest, type SealedFileRecord, writeManifest } from './manifest.ts';
import type { Frontier } from '../tree/merkle-tree.ts';
import type { FrameSpan } from './saved-log.ts';
import { hexOf } from '../bytes/sha256.ts';

export interface WriterLimits {
  /** A file that would grow beyond this is sealed and the next one begun. */
  readonly fileBytesMax: number;
  /** Step by which the file grows ahead of small frames; 0 for never. */
  readonly preallocateBytes: number;
}

export const defaultWriterLimits: WriterLimits = { fileBytesMax: 64 << 20, preallocateBytes: 256 << 10 };

/** The largest buffer that a writer keeps for its next frame. */
const REUSED_FRAME_BYTES_MAX = 4 << 20;

/** Another generation of a sealed file, durable under its name and not yet listed. */
export interface ReplacedFile {
  readonly record: SealedFileRecord;
  readonly frameStarts: readonly FrameStart[];
  readonly lastFrame: FrameSpan;
}

/** Where the log ends, as recovery found it. */
export interface LogEnd {
  readonly manifest: Manifest;
  readonly file: DiskFile;
  readonly offset: number;
  readonly tree: Frontier;
  readonly position: number;
  /** Knows the frames so far; the writer adds its own. */
  readonly frames: FrameIndex;
  /** Null in a log without a frame. */
  readonly lastFrame: FrameSpan | null;
}

export class LogWriter {
  readonly #logDisk: Disk;
  readonly #logDirectory: string;
  readonly #writerLimits: WriterLimits;
  #logManifest: Manifest;
  #openLogFile: OpenLogFile;
  /** Root of the tree over the first leaves. */
  readonly #rootOfLeaves: (leaves: number) => Uint8Array;
  #writtenLeaves: number;
  #writtenPosition: number;
  #durableLeafCount: number;
  #sealedFileBytes: number;
  /** A next file may lie there that the list does not name, because there was no room. */
  #hasBegunNextFile = false;
  readonly #frameIndex: FrameIndex;
  #reusedFrame = Buffer.alloc(0);
  #lastFrameSpan: FrameSpan | null;

  constructor(disk: Disk, directory: string, logEnd: LogEnd, limits: WriterLimits, root: (leaves: number) => Uint8Array) {
    this.#logDisk = disk;
    this.#logDirectory = directory;
    this.#writerLimits = limits;
    this.#logManifest = logEnd.manifest;
    this.#openLogFile = new OpenLogFile(logEnd.file, logEnd.offset);
    this.#rootOfLeaves = root;
    this.#writtenLeaves = logEnd.tree.size;
    this.#writtenPosition = logEnd.position;
    this.#frameIndex = logEnd.frames;
    this.#lastFrameSpan = logEnd.lastFrame;
    this.#durableLeafCount = logEnd.tree.size;
    this.#sealedFileBytes = logEnd.manifest.files.reduce(
      (sum, manifestFile) => sum + (manifestFile.state === 'sealed' ? manifestFile.length : 0),
      0,
    );
  }

  get manifest(): Manifest {
    return this.#logManifest;
  }

  get files(): readonly LogFileRecord[] {
    return this.#logManifest.files;
  }

  /** Bytes of the open file that hold frames. */
  get offset(): number {
    return this.#openLogFile.offset;
  }

  /** Bytes left in the open file; a larger frame starts a new file. */
  get room(): number {
    return Math.max(0, this.#writerLimits.fileBytesMax - this.offset);
  }

  get bytes(): number {
    return this.#sealedFileBytes + this.offset;
  }

  get frames(): FrameIndex {
    return this.#frameIndex;
  }

  /** The last frame that was written; null before the first. */
  get lastFrame(): FrameSpan | null {
    return this.#lastFrameSpan;
  }

  /** Leaves written, fsynced or not. */
  get leaves(): number {
    return this.#writtenLeaves;
  }

  get durableLeaves(): number {
    return this.#durableLeafCount;
  }

  /** Writes the entries as one frame. */
  async write(encodedEntries: readonly EncodedEntry[]): Promise<void> {
    assert(encodedEntries[0]!.entry.leaf === this.leaves, 'frames hold what comes next');
    const frameSize = frameBytes(encodedEntries);
    if (this.offset + frameSize > this.#writerLimits.fileBytesMax && this.offset > FILE_HEADER_BYTES) await this.#beginNextFile();
    const { offset } = this;
    const file = this.#openFileRecord().number;
    const zeroBytes = this.#openLogFile.zerosAfter(frameSize, this.#writerLimits);
    const frameHeader = { file, offset, durableThrough: this.#durableLeafCount };
    const encodedFrame = encodeFrame(frameHeader, encodedEntries, zeroBytes, (bytes) => this.#frameBuffer(bytes));
    await this.#openLogFile.write(encodedFrame);
    // Index, end, leaves and positions change in one turn: a reader takes them at any time.
    this.#frameIndex.note({ file, offset, firstLeaf: this.leaves, firstPosition: this.#writtenPosition });
    this.#openLogFile.advance(frameSize, encodedFrame.length);
    this.#lastFrameSpan = { file, offset, end: this.offset };
    this.#writtenLeaves += encodedEntries.length;
    const lastEntry = encodedEntries[encodedEntries.length - 1]!.entry;
    this.#writtenPosition = lastEntry.position + lastEntry.positions;
  }

  /** `inTurn`: see `DiskFile.sync`. */
  async sync(inTurn = false): Promise<void> {
    const leavesToSync = this.leaves;
    if (this.#durableLeafCount === leavesToSync) return;
    await this.#openLogFile.sync(inTurn);
    this.#durableLeafCount = leavesToSync;
  }

  /** Starts a new file, so that everything written lies in sealed ones. Call it between groups. */
  async roll(): Promise<void> {
    if (this.offset > FILE_HEADER_BYTES) await this.#beginNextFile();
  }

  /** A sealed file was written anew: from here on the list names the other generation. Call it between groups. */
  async replaceFile({ record: replacedRecord, frameStarts, lastFrame }: ReplacedFile): Promise<void> {
    const manifestFiles = this.#logManifest.files.map((manifestFile) =>
      manifestFile.number === replacedRecord.number ? replacedRecord : manifestFile,
    );
    const previousRecord = this.#logManifest.files[replacedRecord.number]!;
    assert(previousRecord.state === 'sealed', 'what grows is not replaced');
    const nextManifest = { logId: this.#logManifest.logId, files: manifestFiles };
    await writeManifest(this.#logDisk, this.#logDirectory, nextManifest);
    // List, index and offsets of the last frame change in one turn: a reader takes them at any time.
    this.#logManifest = nextManifest;
    this.#sealedFileBytes += replacedRecord.length - previousRecord.length;
    this.#frameIndex.replace(replacedRecord.number, frameStarts);
    if (this.#lastFrameSpan?.file === replacedRecord.number) this.#lastFrameSpan = lastFrame;
  }

  /** Cuts the file to size; call it with nothing in flight. */
  async close(): Promise<void> {
    await this.#cutOpenFile();
    await this.#openLogFile.close();
  }

  /** Closes the file as it is: after an error nothing more may be asked of it. */
  async abandon(): Promise<void> {
    await this.#openLogFile.abandon();
  }

  /** Frames are written one after the other and not read afterwards: large ones share their memory. */
  #frameBuffer(frameSize: number): Buffer {
    if (frameSize > REUSED_FRAME_BYTES_MAX) return Buffer.allocUnsafe(frameSize);
    if (frameSize > this.#reusedFrame.length)
      this.#reusedFrame = Buffer.allocUnsafeSlow(Math.min(REUSED_FRAME_BYTES_MAX, frameSize * 2));
    return this.#reusedFrame.subarray(0, frameSize);
  }

  #openFileRecord(): LogFileRecord {
    return this.#logManifest.files[this.#logManifest.files.length - 1]!;
  }

  async #cutOpenFile(): Promise<void> {
    await this.#openLogFile.cutToSize();
    this.#durableLeafCount = this.leaves;
  }

  async #beginNextFile(): Promise<void> {
    await this.#cutOpenFile();
    const openRecord = this.#openFileRecord();
    const nextFileRecord = { number: openRecord.number + 1, firstLeaf: this.leaves, firstPosition: this.#writtenPosition };
    const nextFilePath = `${this.#logDirectory}/${logFileName(nextFileRecord)}`;
    if (this.#hasBegunNextFile && (await this.#logDisk.size(nextFilePath)) !== undefined)
      await this.#logDisk.unlink(nextFilePath);
    this.#hasBegunNextFile = true;
    const nextLogFile = await createLogFile(this.#logDisk, this.#logDirectory, this.#logManifest.logId, nextFileRecord);
    const sealedRecord: LogFileRecord = {
      state: 'sealed',
      number: openRecord.number,
      firstLeaf: openRecord.firstLeaf,
      firstPosition: openRecord.firstPosition,
      length: this.offset,
      leaves: this.leaves - openRecord.firstLeaf,
      root: hexOf(this.#rootOfLeaves(this.leaves)),
    };
    const manifestFiles = [...this.#logManifest.files.slice(0, -1), sealedRecord, { state: 'open', ...nextFileRecord } as const];
    const nextManifest = { logId: this.#logManifest.logId, files: manifestFiles };
    try {
      await writeManifest(this.#logDisk, this.#logDirectory, nextManifest);
    } catch (error) {
      await nextLogFile.close().catch(() => undefined);
      throw error;
    }
    this.#hasBegunNextFile = false;
    await this.#openLogFile.close();
    // Files and offset change in one turn: a reader takes both at any time.
    this.#logManifest = nextManifest;
    this.#sealedFileBytes += this.offset;
    this.#openLogFile = new OpenLogFile(nextLogFile, FILE_HEADER_BYTES);
  }
}

/** A log file that holds its header and is durable, name included. Not yet in the manifest. */
export async function createLogFile(
  disk: Disk,
  directory: string,
  logId: string,
  newFileRecord: { readonly number: number; readonly firstLeaf: number; readonly firstPosition: number },
): Promise<DiskFile> {
  const newLogFile = await disk.open(`${directory}/${logFileName(newFileRecord)}`, 'create');
  const fileHeader = {
    file: newFileRecord.number,
    firstLeaf: newFileRecord.firstLeaf,
    firstPosition: newFileRecord.firstPosition,
    logId,
  };
  try {
    await writeFully(newLogFile, encodeFileHeader(fileHeader), 0);
    await newLogFile.sync();
    await disk.syncDirectory(directory);
    return newLogFile;
  } catch (error) {
    await newLogFile.close().catch(() => undefined);
    throw error;
  }
}
