/**
 * The log file that still grows. Its frames end at `offset`; zeros may follow them, written ahead so that the file's length
 * rarely changes. Invariant: the file is not cut to size while an fsync of it runs.
 */
import { assert } from '../../errors.ts';
import { type DiskFile, writeFully } from '../disk/disk.ts';

/** Frames beyond this are bulk: the cost of growing the file is lost in theirs. */
const SMALL_FRAME_BYTES = 32 << 10;

export class OpenLogFile {
  readonly #file: DiskFile;
  #offset: number;
  /** Physical length: the offset, or further where zeros were written ahead. */
  #allocated: number;
  #syncing = false;
  #abandoned = false;

  constructor(file: DiskFile, offset: number) {
    this.#file = file;
    this.#offset = offset;
    this.#allocated = offset;
  }

  /** Bytes that hold frames. */
  get offset(): number {
    return this.#offset;
  }

  /** Zeros to write after a frame of `size` bytes, where the file would grow for it. */
  zerosAfter(size: number, { preallocateBytes, fileBytesMax }: { preallocateBytes: number; fileBytesMax: number }): number {
    const end = this.#offset + size;
    if (size > SMALL_FRAME_BYTES || end <= this.#allocated || preallocateBytes === 0) return 0;
    return Math.max(0, Math.min(preallocateBytes, fileBytesMax - end));
  }

  /** Writes a frame and the zeros after it. The file's own end moves with `advance`, in the turn of the caller's other changes. */
  write(frame: Uint8Array): Promise<void> {
    return writeFully(this.#file, frame, this.#offset);
  }

  advance(size: number, written: number): void {
    this.#allocated = Math.max(this.#allocated, this.#offset + written);
    this.#offset += size;
  }

  /** `inTurn`: see `DiskFile.sync`. */
  async sync(inTurn: boolean): Promise<void> {
    this.#syncing = true;
    await this.#file.sync(inTurn);
    this.#syncing = false;
  }

  /** Drops the zeros and makes the rest durable. */
  async cutToSize(): Promise<void> {
    assert(!this.#syncing, 'a file is not ended under its fsync');
    if (this.#allocated > this.#offset) {
      await this.#file.truncate(this.#offset);
      this.#allocated = this.#offset;
    }
    await this.#file.sync();
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  /** Closes the file as it is: after an error nothing more may be asked of it. */
  async abandon(): Promise<void> {
    if (this.#abandoned) return;
    this.#abandoned = true;
    await this.#file.close();
  }
}
