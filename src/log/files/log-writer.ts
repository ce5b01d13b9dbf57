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
  readonly #disk: Disk;
  readonly #directory: string;
  readonly #limits: WriterLimits;
  #manifest: Manifest;
  #open: OpenLogFile;
  /** Root of the tree over the first leaves. */
  readonly #root: (leaves: number) => Uint8Array;
  #leaves: number;
  #position: number;
  #durableLeaves: number;
  #sealedBytes: number;
  /** A next file may lie there that the list does not name, because there was no room. */
  #nextBegun = false;
  readonly #frames: FrameIndex;
  #frame = Buffer.alloc(0);
  #lastFrame: FrameSpan | null;

  constructor(disk: Disk, directory: string, end: LogEnd, limits: WriterLimits, root: (leaves: number) => Uint8Array) {
    this.#disk = disk;
    this.#directory = directory;
    this.#limits = limits;
    this.#manifest = end.manifest;
    this.#open = new OpenLogFile(end.file, end.offset);
    this.#root = root;
    this.#leaves = end.tree.size;
    this.#position = end.position;
    this.#frames = end.frames;
    this.#lastFrame = end.lastFrame;
    this.#durableLeaves = end.tree.size;
    this.#sealedBytes = end.manifest.files.reduce((sum, file) => sum + (file.state === 'sealed' ? file.length : 0), 0);
  }

  get manifest(): Manifest {
    return this.#manifest;
  }

  get files(): readonly LogFileRecord[] {
    return this.#manifest.files;
  }

  /** Bytes of the open file that hold frames. */
  get offset(): number {
    return this.#open.offset;
  }

  /** Bytes left in the open file; a larger frame starts a new file. */
  get room(): number {
    return Math.max(0, this.#limits.fileBytesMax - this.offset);
  }

  get bytes(): number {
    return this.#sealedBytes + this.offset;
  }

  get frames(): FrameIndex {
    return this.#frames;
  }

  /** The last frame that was written; null before the first. */
  get lastFrame(): FrameSpan | null {
    return this.#lastFrame;
  }

  /** Leaves written, fsynced or not. */
  get leaves(): number {
    return this.#leaves;
  }

  get durableLeaves(): number {
    return this.#durableLeaves;
  }

  /** Writes the entries as one frame. */
  async write(entries: readonly EncodedEntry[]): Promise<void> {
    assert(entries[0]!.entry.leaf === this.leaves, 'frames hold what comes next');
    const size = frameBytes(entries);
    if (this.offset + size > this.#limits.fileBytesMax && this.offset > FILE_HEADER_BYTES) await this.#beginNextFile();
    const { offset } = this;
    const file = this.#current().number;
    const zeros = this.#open.zerosAfter(size, this.#limits);
    const header = { file, offset, durableThrough: this.#durableLeaves };
    const frame = encodeFrame(header, entries, zeros, (bytes) => this.#frameBuffer(bytes));
    await this.#open.write(frame);
    // Index, end, leaves and positions change in one turn: a reader takes them at any time.
    this.#frames.note({ file, offset, firstLeaf: this.leaves, firstPosition: this.#position });
    this.#open.advance(size, frame.length);
    this.#lastFrame = { file, offset, end: this.offset };
    this.#leaves += entries.length;
    const last = entries[entries.length - 1]!.entry;
    this.#position = last.position + last.positions;
  }

  /** `inTurn`: see `DiskFile.sync`. */
  async sync(inTurn = false): Promise<void> {
    const written = this.leaves;
    if (this.#durableLeaves === written) return;
    await this.#open.sync(inTurn);
    this.#durableLeaves = written;
  }

  /** Starts a new file, so that everything written lies in sealed ones. Call it between groups. */
  async roll(): Promise<void> {
    if (this.offset > FILE_HEADER_BYTES) await this.#beginNextFile();
  }

  /** A sealed file was written anew: from here on the list names the other generation. Call it between groups. */
  async replaceFile({ record, frameStarts, lastFrame }: ReplacedFile): Promise<void> {
    const files = this.#manifest.files.map((file) => (file.number === record.number ? record : file));
    const before = this.#manifest.files[record.number]!;
    assert(before.state === 'sealed', 'what grows is not replaced');
    const manifest = { logId: this.#manifest.logId, files };
    await writeManifest(this.#disk, this.#directory, manifest);
    // List, index and offsets of the last frame change in one turn: a reader takes them at any time.
    this.#manifest = manifest;
    this.#sealedBytes += record.length - before.length;
    this.#frames.replace(record.number, frameStarts);
    if (this.#lastFrame?.file === record.number) this.#lastFrame = lastFrame;
  }

  /** Cuts the file to size; call it with nothing in flight. */
  async close(): Promise<void> {
    await this.#cutToSize();
    await this.#open.close();
  }

  /** Closes the file as it is: after an error nothing more may be asked of it. */
  async abandon(): Promise<void> {
    await this.#open.abandon();
  }

  /** Frames are written one after the other and not read afterwards: large ones share their memory. */
  #frameBuffer(bytes: number): Buffer {
    if (bytes > REUSED_FRAME_BYTES_MAX) return Buffer.allocUnsafe(bytes);
    if (bytes > this.#frame.length) this.#frame = Buffer.allocUnsafeSlow(Math.min(REUSED_FRAME_BYTES_MAX, bytes * 2));
    return this.#frame.subarray(0, bytes);
  }

  #current(): LogFileRecord {
    return this.#manifest.files[this.#manifest.files.length - 1]!;
  }

  async #cutToSize(): Promise<void> {
    await this.#open.cutToSize();
    this.#durableLeaves = this.leaves;
  }

  async #beginNextFile(): Promise<void> {
    await this.#cutToSize();
    const current = this.#current();
    const record = { number: current.number + 1, firstLeaf: this.leaves, firstPosition: this.#position };
    const path = `${this.#directory}/${logFileName(record)}`;
    if (this.#nextBegun && (await this.#disk.size(path)) !== undefined) await this.#disk.unlink(path);
    this.#nextBegun = true;
    const file = await createLogFile(this.#disk, this.#directory, this.#manifest.logId, record);
    const sealed: LogFileRecord = {
      state: 'sealed',
      number: current.number,
      firstLeaf: current.firstLeaf,
      firstPosition: current.firstPosition,
      length: this.offset,
      leaves: this.leaves - current.firstLeaf,
      root: hexOf(this.#root(this.leaves)),
    };
    const files = [...this.#manifest.files.slice(0, -1), sealed, { state: 'open', ...record } as const];
    const manifest = { logId: this.#manifest.logId, files };
    try {
      await writeManifest(this.#disk, this.#directory, manifest);
    } catch (error) {
      await file.close().catch(() => undefined);
      throw error;
    }
    this.#nextBegun = false;
    await this.#open.close();
    // Files and offset change in one turn: a reader takes both at any time.
    this.#manifest = manifest;
    this.#sealedBytes += this.offset;
    this.#open = new OpenLogFile(file, FILE_HEADER_BYTES);
  }
}

/** A log file that holds its header and is durable, name included. Not yet in the manifest. */
export async function createLogFile(
  disk: Disk,
  directory: string,
  logId: string,
  record: { readonly number: number; readonly firstLeaf: number; readonly firstPosition: number },
): Promise<DiskFile> {
  const file = await disk.open(`${directory}/${logFileName(record)}`, 'create');
  const header = { file: record.number, firstLeaf: record.firstLeaf, firstPosition: record.firstPosition, logId };
  try {
    await writeFully(file, encodeFileHeader(header), 0);
    await file.sync();
    await disk.syncDirectory(directory);
    return file;
  } catch (error) {
    await file.close().catch(() => undefined);
    throw error;
  }
}
