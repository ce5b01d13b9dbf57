/**
 * Frames of one file, in order: checked in the caller's turn, or read and opened some windows ahead of the caller by a
 * `FrameOpener`. Both give the same frames, the same end and the same reason for a bad one, and leave the scanner where the
 * frames end.
 */
import { assert } from '../../errors.ts';
import { bodyAt, type FrameOpener, type OpenReply, vouches } from './frame-opener.ts';
import { failsChecksum, type FrameHeader, type FrameScanner, frameIsWhole, type Scanned } from './log-file.ts';

/** Windows that are read before they are asked for. */
const FRAME_WINDOWS_AHEAD = 4;

type ScannedFrame = Extract<Scanned, { readonly result: 'frame' }>;
type FeedEnd = Exclude<Scanned, ScannedFrame>;

export type Fed = FedFrame | FeedEnd;

export interface FedFrame {
  readonly result: 'frame';
  readonly offset: number;
  readonly header: FrameHeader;
  readonly bytes: Uint8Array;
  /**
   * Body of the frame's entry `i` where it was opened and found in order; null where it was not looked at. Valid until the next
   * frame is asked for.
   */
  bodyOf(i: number): Uint8Array | null;
}

interface FrameWindow {
  readonly frames: (ScannedFrame & { readonly offset: number })[];
  /** The end behind them, where no further frame follows. */
  readonly end: FeedEnd | null;
  readonly reply: Promise<OpenReply | null>;
}

export class FrameFeed {
  readonly #frameScanner: FrameScanner;
  readonly #frameOpener: FrameOpener | null;
  readonly #poisonsMemory: boolean;
  readonly #windowsAhead: FrameWindow[] = [];
  /** Buffers for bodies that are not in use. */
  readonly #freeBodies: SharedArrayBuffer[] = [];
  #hasReadAll = false;
  #firstOfNextWindow: (ScannedFrame & { readonly offset: number }) | null = null;
  #currentWindow: { readonly of: FrameWindow; readonly reply: OpenReply | null; frame: number; entry: number } | null = null;

  /** With an opener the scanner reads into shared memory. `poisonsMemory`: bodies are overwritten as soon as they are no longer valid. */
  constructor(frameScanner: FrameScanner, frameOpener: FrameOpener | null, poisonsMemory: boolean) {
    this.#frameScanner = frameScanner;
    this.#frameOpener = frameOpener;
    this.#poisonsMemory = poisonsMemory;
  }

  async next(): Promise<Fed> {
    if (!this.#frameOpener) {
      const { offset: frameOffset } = this.#frameScanner;
      const scannedFrame = await this.#frameScanner.next();
      return scannedFrame.result === 'frame' ? { ...scannedFrame, offset: frameOffset, bodyOf: () => null } : scannedFrame;
    }
    while (!this.#currentWindow || this.#currentWindow.frame === this.#currentWindow.of.frames.length) {
      const feedEnd = this.#currentWindow?.of.end;
      if (feedEnd) return feedEnd;
      await this.#nextWindow(this.#frameOpener);
    }
    const frameWindow = this.#currentWindow;
    const { header: frameHeader, bytes: frameBytes, offset } = frameWindow.of.frames[frameWindow.frame++]!;
    const firstEntry = frameWindow.entry;
    frameWindow.entry += frameHeader.entries;
    const isVouchedEntry = (i: number): boolean => vouches(frameWindow.reply, firstEntry + i);
    // One entry that was opened is enough: the checksum was looked at before.
    if (!isVouchedEntry(0) && !frameIsWhole(frameBytes)) {
      this.#frameScanner.offset = offset;
      return { result: 'bad', reason: failsChecksum };
    }
    const vouchedBody = (i: number): Uint8Array | null => {
      return isVouchedEntry(i) ? bodyAt(frameWindow.reply!, firstEntry + i) : null;
    };
    return { result: 'frame', offset, header: frameHeader, bytes: frameBytes, bodyOf: vouchedBody };
  }

  async #nextWindow(frameOpener: FrameOpener): Promise<void> {
    if (this.#currentWindow) this.#releaseWindow(this.#currentWindow);
    this.#currentWindow = null;
    while (!this.#hasReadAll && this.#windowsAhead.length < FRAME_WINDOWS_AHEAD)
      this.#windowsAhead.push(await this.#readWindow(frameOpener));
    const frameWindow = this.#windowsAhead.shift();
    assert(frameWindow, 'the last window says how the frames end');
    this.#currentWindow = { of: frameWindow, reply: await frameWindow.reply, frame: 0, entry: 0 };
  }

  #releaseWindow({ of: releasedWindow, reply }: { readonly of: FrameWindow; readonly reply: OpenReply | null }): void {
    const openedBodies = reply?.bodies;
    if (openedBodies) {
      this.#poisonMemory(openedBodies);
      this.#freeBodies.push(openedBodies);
    }
    const windowMemory = releasedWindow.frames[0]!.bytes.buffer;
    if (this.#frameScanner.release(windowMemory)) this.#poisonMemory(windowMemory);
  }

  #poisonMemory(poisonedMemory: ArrayBufferLike): void {
    if (this.#poisonsMemory) new Uint8Array(poisonedMemory).fill(0xdd);
  }

  /** Frames up to the end of what the scanner has in its buffer. */
  async #readWindow(frameOpener: FrameOpener): Promise<FrameWindow> {
    const windowFrames = this.#firstOfNextWindow ? [this.#firstOfNextWindow] : [];
    this.#firstOfNextWindow = null;
    for (;;) {
      const { offset } = this.#frameScanner;
      const scannedFrame = await this.#frameScanner.next(false);
      if (scannedFrame.result !== 'frame') {
        this.#hasReadAll = true;
        return this.#openWindow(frameOpener, windowFrames, scannedFrame);
      }
      const foundFrame = { ...scannedFrame, offset };
      if (windowFrames.length > 0 && windowFrames[0]!.bytes.buffer !== foundFrame.bytes.buffer) {
        this.#firstOfNextWindow = foundFrame;
        return this.#openWindow(frameOpener, windowFrames, null);
      }
      windowFrames.push(foundFrame);
    }
  }

  #openWindow(frameOpener: FrameOpener, windowFrames: FrameWindow['frames'], feedEnd: FeedEnd | null): FrameWindow {
    if (windowFrames.length === 0) return { frames: windowFrames, end: feedEnd, reply: Promise.resolve(null) };
    // A worker that has died has opened nothing: all is looked at in the caller's turn.
    const openReply = frameOpener.open(windowFrames, this.#freeBodies.pop() ?? new SharedArrayBuffer(0)).catch(() => null);
    return { frames: windowFrames, end: feedEnd, reply: openReply };
  }
}
