/** Frames as `verify.ts` finds them in a file: a second reading of the drawing in `log-file.ts`. */
import { ServiceError } from '../../errors.ts';
import type { DiskFile } from '../disk/disk.ts';
import { decodeFrameHeader, FRAME_HEADER_BYTES, type FrameHeader, frameIsWhole } from '../files/log-file.ts';

const verifyWindowBytes = 4 << 20;
const frameMagicBytes = Buffer.from('ANLF', 'latin1');

export interface FrameAtOffset {
  readonly at: number;
  readonly header: FrameHeader;
  readonly bytes: Uint8Array;
}

/** Why a frame that reads otherwise is none. */
export const failsChecksum = 'a frame that fails its checksum';

/** The frame at an offset, or why there is none. Unless it is `checksFrame`ed, the caller must check that it is whole. */
export async function frameAt(
  fileWindow: FileWindow,
  fileNumber: number,
  frameOffset: number,
  fileLength: number,
  checksFrame = true,
): Promise<FrameAtOffset | string> {
  const frameHeader = decodeFrameHeader(
    await fileWindow.view(frameOffset, Math.min(FRAME_HEADER_BYTES, fileLength - frameOffset)),
    fileNumber,
    frameOffset,
  );
  if (!frameHeader) return 'no frame header';
  const frameSize = FRAME_HEADER_BYTES + frameHeader.size;
  if (frameOffset + frameSize > fileLength) return 'a frame longer than the file';
  const frameBytes = await fileWindow.view(frameOffset, frameSize);
  return !checksFrame || frameIsWhole(frameBytes) ? { at: frameOffset, header: frameHeader, bytes: frameBytes } : failsChecksum;
}

/** The first whole frame at or after an offset. */
export async function nextFrame(
  fileWindow: FileWindow,
  fileNumber: number,
  searchStart: number,
  fileLength: number,
): Promise<FrameAtOffset | null> {
  for (let searchOffset = searchStart; searchOffset + FRAME_HEADER_BYTES <= fileLength; ) {
    const searchView = await fileWindow.view(searchOffset, Math.min(verifyWindowBytes, fileLength - searchOffset));
    const magicIndex = Buffer.from(searchView.buffer, searchView.byteOffset, searchView.length).indexOf(frameMagicBytes);
    if (magicIndex < 0) {
      searchOffset += Math.max(1, searchView.length - frameMagicBytes.length + 1);
      continue;
    }
    const intactFrame = await frameAt(fileWindow, fileNumber, searchOffset + magicIndex, fileLength);
    if (typeof intactFrame !== 'string') return intactFrame;
    searchOffset += magicIndex + 1;
  }
  return null;
}

export async function onlyZeros(fileWindow: FileWindow, zerosStart: number, fileLength: number): Promise<boolean> {
  for (let zerosOffset = zerosStart; zerosOffset < fileLength; zerosOffset += verifyWindowBytes) {
    const zerosView = await fileWindow.view(zerosOffset, Math.min(verifyWindowBytes, fileLength - zerosOffset));
    for (let i = 0; i < zerosView.length; i++) if (zerosView[i] !== 0) return false;
  }
  return true;
}

/** A window of a file in memory, refilled when a view lies outside of it. The next window is read while this one is checked. */
export class FileWindow {
  readonly #verifiedFile: DiskFile;
  readonly #fileLength: number;
  readonly #sharesMemory: boolean;
  readonly #fileWindowBytes: number;
  #windowView: Uint8Array = new Uint8Array(0);
  #windowOffset = 0;
  /** The window behind `#windowView`, with room before it for a frame that begins in `#windowView`. */
  #nextWindow: { readonly memory: Uint8Array; readonly span: number; readonly read: Promise<boolean> } | null = null;
  readonly #freeMemories: ArrayBufferLike[] = [];

  /** `sharesMemory`: in memory that other threads can read; `verifyWindowBytes` is how much is read at a time. */
  constructor(
    verifiedFile: DiskFile,
    fileLength: number,
    {
      shared: sharesMemory = false,
      windowBytes: fileWindowBytes = verifyWindowBytes,
    }: { readonly shared?: boolean; readonly windowBytes?: number } = {},
  ) {
    this.#verifiedFile = verifiedFile;
    this.#fileLength = fileLength;
    this.#sharesMemory = sharesMemory;
    this.#fileWindowBytes = fileWindowBytes;
  }

  /** `viewSize` bytes at `viewOffset`, all inside the file. Later views leave this one as it is. */
  async view(viewOffset: number, viewSize: number): Promise<Uint8Array> {
    if (viewOffset < this.#windowOffset || viewOffset + viewSize > this.#windowOffset + this.#windowView.length) {
      this.#windowView = (await this.#takeNextWindow(viewOffset, viewSize)) ?? (await this.#readWindow(viewOffset, viewSize));
      this.#windowOffset = viewOffset;
      this.#beginNextWindow();
    }
    return this.#windowView.subarray(viewOffset - this.#windowOffset, viewOffset - this.#windowOffset + viewSize);
  }

  /** Returns memory whose views are not in use: later reads may fill it. False while the window itself uses it. */
  release(freedMemory: ArrayBufferLike): boolean {
    if (freedMemory === this.#windowView.buffer || freedMemory === this.#nextWindow?.memory.buffer) return false;
    this.#freeMemories.push(freedMemory);
    return true;
  }

  /** Nothing is being read when it resolves: the file can be closed. */
  async settle(): Promise<void> {
    await this.#nextWindow?.read;
    this.#nextWindow = null;
  }

  async #readWindow(windowStart: number, windowSize: number): Promise<Uint8Array> {
    const windowBytesRead = this.#windowMemory(
      Math.min(Math.max(windowSize, this.#fileWindowBytes), this.#fileLength - windowStart),
    );
    await readAll(this.#verifiedFile, windowBytesRead, windowStart);
    return windowBytesRead;
  }

  #beginNextWindow(): void {
    const nextOffset = this.#windowOffset + this.#windowView.length;
    const nextSpan = Math.min(this.#fileWindowBytes, this.#fileLength - nextOffset);
    if (nextSpan === 0) return;
    const nextMemory = this.#windowMemory(this.#carryBytes + nextSpan);
    // A reading that fails is tried again by who needs it, and fails there.
    const nextRead = readAll(this.#verifiedFile, nextMemory.subarray(this.#carryBytes), nextOffset).then(
      () => true,
      () => false,
    );
    this.#nextWindow = { memory: nextMemory, span: nextSpan, read: nextRead };
  }

  /** The view where it begins in this window and ends in the next. */
  async #takeNextWindow(viewOffset: number, viewSize: number): Promise<Uint8Array | null> {
    const nextWindow = this.#nextWindow;
    if (!nextWindow) return null;
    this.#nextWindow = null;
    const windowEnd = this.#windowOffset + this.#windowView.length;
    const carriedBytes = windowEnd - viewOffset;
    const isInNextWindow =
      carriedBytes >= 0 &&
      carriedBytes <= Math.min(this.#carryBytes, this.#windowView.length) &&
      viewSize <= carriedBytes + nextWindow.span;
    if (!(await nextWindow.read) || !isInNextWindow) return null;
    const nextWindowBytes = nextWindow.memory.subarray(this.#carryBytes - carriedBytes);
    nextWindowBytes.set(this.#windowView.subarray(this.#windowView.length - carriedBytes));
    return nextWindowBytes;
  }

  get #carryBytes(): number {
    return this.#fileWindowBytes >> 2;
  }

  /** To touch fresh memory for the first time takes longer than to read into it. */
  #windowMemory(memoryBytes: number): Uint8Array {
    const freedMemory = this.#freeMemories.pop();
    if (freedMemory && freedMemory.byteLength >= memoryBytes) return new Uint8Array(freedMemory, 0, memoryBytes);
    return new Uint8Array(this.#sharesMemory ? new SharedArrayBuffer(memoryBytes) : new ArrayBuffer(memoryBytes));
  }
}

export async function readAll(verifiedFile: DiskFile, readBuffer: Uint8Array, fileOffset: number): Promise<void> {
  for (let filledBytes = 0; filledBytes < readBuffer.length; ) {
    const readCount = await verifiedFile.read(readBuffer.subarray(filledBytes), fileOffset + filledBytes);
    if (readCount === 0) throw new ServiceError('REL_STORAGE', `${verifiedFile.path} ended early`);
    filledBytes += readCount;
  }
}
