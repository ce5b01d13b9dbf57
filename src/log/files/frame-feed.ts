/**
 * Frames of one file, in order: checked in the caller's turn, or read and opened some windows ahead of the caller by a
 * `FrameOpener`. Both give the same frames, the same end and the same reason for a bad one, and leave the scanner where the
 * frames end.
 */
import { assert } from '../../errors.ts';
import { bodyAt, type FrameOpener, type OpenReply, vouches } from './frame-opener.ts';
import { failsChecksum, type FrameHeader, type FrameScanner, frameIsWhole, type Scanned } from './log-file.ts';

/** Windows that are read before they are asked for. */
const WINDOWS_AHEAD = 4;

type FoundFrame = Extract<Scanned, { readonly result: 'frame' }>;
type End = Exclude<Scanned, FoundFrame>;

export type Fed = FedFrame | End;

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

interface Window {
  readonly frames: (FoundFrame & { readonly offset: number })[];
  /** The end behind them, where no further frame follows. */
  readonly end: End | null;
  readonly reply: Promise<OpenReply | null>;
}

export class FrameFeed {
  readonly #scanner: FrameScanner;
  readonly #opener: FrameOpener | null;
  readonly #poison: boolean;
  readonly #ahead: Window[] = [];
  /** Buffers for bodies that are not in use. */
  readonly #free: SharedArrayBuffer[] = [];
  #readAll = false;
  #started: (FoundFrame & { readonly offset: number }) | null = null;
  #window: { readonly of: Window; readonly reply: OpenReply | null; frame: number; entry: number } | null = null;

  /** With an opener the scanner reads into shared memory. `poison`: bodies are overwritten as soon as they are no longer valid. */
  constructor(scanner: FrameScanner, opener: FrameOpener | null, poison: boolean) {
    this.#scanner = scanner;
    this.#opener = opener;
    this.#poison = poison;
  }

  async next(): Promise<Fed> {
    if (!this.#opener) {
      const { offset } = this.#scanner;
      const scanned = await this.#scanner.next();
      return scanned.result === 'frame' ? { ...scanned, offset, bodyOf: () => null } : scanned;
    }
    while (!this.#window || this.#window.frame === this.#window.of.frames.length) {
      const ended = this.#window?.of.end;
      if (ended) return ended;
      await this.#nextWindow(this.#opener);
    }
    const window = this.#window;
    const { header, bytes, offset } = window.of.frames[window.frame++]!;
    const first = window.entry;
    window.entry += header.entries;
    const isVouched = (i: number): boolean => vouches(window.reply, first + i);
    // One entry that was opened is enough: the checksum was looked at before.
    if (!isVouched(0) && !frameIsWhole(bytes)) {
      this.#scanner.offset = offset;
      return { result: 'bad', reason: failsChecksum };
    }
    const openedBody = (i: number): Uint8Array | null => {
      return isVouched(i) ? bodyAt(window.reply!, first + i) : null;
    };
    return { result: 'frame', offset, header, bytes, bodyOf: openedBody };
  }

  async #nextWindow(opener: FrameOpener): Promise<void> {
    if (this.#window) this.#release(this.#window);
    this.#window = null;
    while (!this.#readAll && this.#ahead.length < WINDOWS_AHEAD) this.#ahead.push(await this.#read(opener));
    const window = this.#ahead.shift();
    assert(window, 'the last window says how the frames end');
    this.#window = { of: window, reply: await window.reply, frame: 0, entry: 0 };
  }

  #release({ of, reply }: { readonly of: Window; readonly reply: OpenReply | null }): void {
    const bodies = reply?.bodies;
    if (bodies) {
      this.#spoil(bodies);
      this.#free.push(bodies);
    }
    const memory = of.frames[0]!.bytes.buffer;
    if (this.#scanner.release(memory)) this.#spoil(memory);
  }

  #spoil(memory: ArrayBufferLike): void {
    if (this.#poison) new Uint8Array(memory).fill(0xdd);
  }

  /** Frames up to the end of what the scanner has in its buffer. */
  async #read(opener: FrameOpener): Promise<Window> {
    const frames = this.#started ? [this.#started] : [];
    this.#started = null;
    for (;;) {
      const { offset } = this.#scanner;
      const scanned = await this.#scanner.next(false);
      if (scanned.result !== 'frame') {
        this.#readAll = true;
        return this.#openWindow(opener, frames, scanned);
      }
      const frame = { ...scanned, offset };
      if (frames.length > 0 && frames[0]!.bytes.buffer !== frame.bytes.buffer) {
        this.#started = frame;
        return this.#openWindow(opener, frames, null);
      }
      frames.push(frame);
    }
  }

  #openWindow(opener: FrameOpener, frames: Window['frames'], end: End | null): Window {
    if (frames.length === 0) return { frames, end, reply: Promise.resolve(null) };
    // A worker that has died has opened nothing: all is looked at in the caller's turn.
    const reply = opener.open(frames, this.#free.pop() ?? new SharedArrayBuffer(0)).catch(() => null);
    return { frames, end, reply };
  }
}
