/**
 * Frames of one file for `verify.ts`, in order. Where there is a worker, their bodies are opened and recomputed some batches
 * ahead, by it and by the calling thread at once: whoever is free takes the next batch. What neither vouches for is left to
 * the caller to look at, so no finding is made here.
 */
import { erasedRows, FrameOpener, type OpenReply, openFrames, requestFor, vouches } from './frame-opener.ts';
import type { Keyring } from './keys.ts';
import { type FileWindow, type FoundFrame, frameAt } from './verify-frames.ts';
import type { StartWorker } from './workers.ts';

/** Batches that the worker has before the calling thread takes one itself. */
const ASKED_MAX = 2;
/** Batches that are read and not yet walked: what bounds the memory. */
const AHEAD_MAX = 8;

/** Opens bodies in two threads. */
export class BodyChecker {
  readonly #keyring: Keyring;
  readonly #opener: FrameOpener;

  constructor(startWorker: StartWorker, keyring: Keyring) {
    this.#keyring = keyring;
    this.#opener = new FrameOpener(startWorker, keyring, true);
  }

  /** The reply, or the promise of one. */
  check(frames: readonly FoundFrame[]): OpenReply | Promise<OpenReply | null> {
    if (this.#opener.asked < ASKED_MAX) return this.#opener.open(frames, null).catch(() => null);
    return openFrames(requestFor(frames, true), this.#keyring);
  }

  end(): Promise<void> {
    return this.#opener.end();
  }
}

interface Batch {
  readonly frames: readonly FoundFrame[];
  reply: OpenReply | null | 'under way';
  readonly replied: Promise<void>;
}

export interface WalkedFrame {
  readonly frame: FoundFrame;
  /** Entry `i` has been opened and is what its leaf says, rows root included. */
  vouched(i: number): boolean;
  /** Of an entry that is vouched for: how many of its rows are erased. */
  erased(i: number): number;
}

/** Frames from an offset up to the first that is none. */
export class FrameRun {
  readonly #window: FileWindow;
  readonly #file: number;
  readonly #length: number;
  readonly #checker: BodyChecker | null;
  readonly #ahead: Batch[] = [];
  #at: number;
  /** What stands where the frames end: null for the end of the file. */
  #end: string | null | undefined;
  #started: FoundFrame | null = null;
  #batch: Batch | null = null;
  #frame = 0;
  #entry = 0;

  constructor(window: FileWindow, file: number, from: number, length: number, checker: BodyChecker | null) {
    this.#window = window;
    this.#file = file;
    this.#length = length;
    this.#checker = checker;
    this.#at = from;
  }

  /** A frame; or why there is none, null at the end of the file. */
  async next(): Promise<WalkedFrame | string | null> {
    while (!this.#batch || this.#frame === this.#batch.frames.length) {
      await this.#readAhead();
      this.#batch = this.#ahead.shift() ?? null;
      if (!this.#batch) return this.#end ?? null;
      await this.#batch.replied;
      this.#frame = this.#entry = 0;
    }
    const { frames, reply } = this.#batch;
    const frame = frames[this.#frame++]!;
    const first = this.#entry;
    this.#entry += frame.header.entries;
    const known = reply === 'under way' ? null : reply;
    return {
      frame,
      vouched: (i) => vouches(known, first + i),
      erased: (i) => erasedRows(known!, first + i),
    };
  }

  /** Goes on while the next batch is still in the worker's hands, or there is none. */
  async #readAhead(): Promise<void> {
    const most = this.#checker ? AHEAD_MAX : 1;
    while (this.#end === undefined && this.#ahead.length < most && (this.#ahead[0]?.reply ?? 'under way') === 'under way') {
      const frames = await this.#read();
      if (frames.length > 0) this.#ahead.push(this.#begun(frames));
    }
  }

  #begun(frames: readonly FoundFrame[]): Batch {
    const checked = this.#checker?.check(frames) ?? null;
    if (!(checked instanceof Promise)) return { frames, reply: checked, replied: Promise.resolve() };
    const replied = checked.then((reply) => void (batch.reply = reply));
    const batch: Batch = { frames, reply: 'under way', replied };
    return batch;
  }

  /** Frames up to the end of what the window holds. */
  async #read(): Promise<FoundFrame[]> {
    const frames = this.#started ? [this.#started] : [];
    this.#started = null;
    while (this.#at < this.#length) {
      const frame = await frameAt(this.#window, this.#file, this.#at, this.#length);
      if (typeof frame === 'string') {
        this.#end = frame;
        return frames;
      }
      this.#at += frame.bytes.length;
      if (frames.length > 0 && frames[0]!.bytes.buffer !== frame.bytes.buffer) {
        this.#started = frame;
        return frames;
      }
      frames.push(frame);
    }
    this.#end = null;
    return frames;
  }
}
