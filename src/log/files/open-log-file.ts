/**
 * The log file that still grows. Its frames end at `offset`; zeros may follow them, written ahead so that the file's length
 * rarely changes. Invariant: the file is not cut to size while an fsync of it runs.
 */
import { assert } from '../../errors.ts';
import { type DiskFile, writeFully } from '../disk/disk.ts';

/** Frames beyond this are bulk: the cost of growing the file is lost in theirs. */
const SMALL_FRAME_BYTES = 32 << 10;

export class OpenLogFile {
  readonly #openLogFile: DiskFile;
  #writeOffset: number;
  /** Physical length: the offset, or further where zeros were written ahead. */
  #allocatedOffset: number;
  #isSyncing = false;
  #isAbandoned = false;

  constructor(file: DiskFile, offset: number) {
    this.#openLogFile = file;
    this.#writeOffset = offset;
    this.#allocatedOffset = offset;
  }

  /** Bytes that hold frames. */
  get offset(): number {
    return this.#writeOffset;
  }

  /** Zeros to write after a frame of `frameSize` bytes, where the file would grow for it. */
  zerosAfter(frameSize: number, { preallocateBytes, fileBytesMax }: { preallocateBytes: number; fileBytesMax: number }): number {
    const frameEnd = this.#writeOffset + frameSize;
    if (frameSize > SMALL_FRAME_BYTES || frameEnd <= this.#allocatedOffset || preallocateBytes === 0) return 0;
    return Math.max(0, Math.min(preallocateBytes, fileBytesMax - frameEnd));
  }

  /** Writes a frame and the zeros after it. The file's own end moves with `advance`, in the turn of the caller's other changes. */
  write(frame: Uint8Array): Promise<void> {
    return writeFully(this.#openLogFile, frame, this.#writeOffset);
  }

  advance(frameSize: number, writtenBytes: number): void {
    this.#allocatedOffset = Math.max(this.#allocatedOffset, this.#writeOffset + writtenBytes);
    this.#writeOffset += frameSize;
  }

  /** `inTurn`: see `DiskFile.sync`. */
  async sync(inTurn: boolean): Promise<void> {
    this.#isSyncing = true;
    await this.#openLogFile.sync(inTurn);
    this.#isSyncing = false;
  }

  /** Drops the zeros and makes the rest durable. */
  async cutToSize(): Promise<void> {
    assert(!this.#isSyncing, 'a file is not ended under its fsync');
    if (this.#allocatedOffset > this.#writeOffset) {
      await this.#openLogFile.truncate(this.#writeOffset);
      this.#allocatedOffset = this.#writeOffset;
    }
    await this.#openLogFile.sync();
  }

  async close(): Promise<void> {
    await this.#openLogFile.close();
  }

  /** Closes the file as it is: after an error nothing more may be asked of it. */
  async abandon(): Promise<void> {
    if (this.#isAbandoned) return;
    this.#isAbandoned = true;
    await this.#openLogFile.close();
  }
}
