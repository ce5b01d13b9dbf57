/**
 * Frames of one file for `verify.ts`, in order. Where there is a worker, it and the calling thread open and recompute bodies some
 * batches ahead: the one that is free takes the next batch. The caller checks the bodies that neither vouches for, so no finding
 * is made here.
 */
import type { BodyKeys } from '../entries/entry-codec.ts';
import {
  bodyAt,
  erasedRows,
  FrameOpener,
  type BackgroundOpening,
  type OpenReply,
  openFrames,
  requestFor,
  vouches,
} from '../files/frame-opener.ts';
import { frameIsWhole } from '../files/log-file.ts';
import { failsChecksum, type FileWindow, type FoundFrame, frameAt } from './verify-frames.ts';

/** Batches that the worker has before the calling thread takes one itself. */
const ASKED_MAX = 2;
/** Batches that are read and not yet walked, at most: bounds the memory. */
const AHEAD_MAX = 8;

/** Opens bodies in two threads. */
export class BodyChecker {
  readonly #keyring: BodyKeys;
  readonly #opener: FrameOpener;
  readonly #poison: boolean;
  /** Buffers for bodies that are not in use; null where bodies are only checked. */
  readonly #free: SharedArrayBuffer[] | null;

  constructor({ startWorker, poison = false }: BackgroundOpening, keyring: BodyKeys, bodies: boolean) {
    this.#keyring = keyring;
    this.#opener = new FrameOpener(startWorker, keyring, true);
    this.#poison = poison;
    this.#free = bodies ? [] : null;
  }

  /** The worker has less to do than it may have. */
  get wants(): boolean {
    return this.#opener.asked < ASKED_MAX;
  }

  /** The reply, or the promise of one. */
  check(frames: readonly FoundFrame[]): OpenReply | Promise<OpenReply | null> {
    const bodies = this.#free && (this.#free.pop() ?? new SharedArrayBuffer(0));
    if (this.wants) return this.#opener.open(frames, bodies).catch(() => null);
    return openFrames({ ...requestFor(frames, true), bodies }, this.#keyring);
  }

  /** Returns the bodies of a reply, which are not read any more. */
  release({ bodies }: OpenReply): void {
    if (!bodies) return;
    this.spoil(bodies);
    this.#free?.push(bodies);
  }

  /** Overwrites bodies that are no longer valid, so that tests notice a late reader. */
  spoil(memory: ArrayBufferLike): void {
    if (this.#poison) new Uint8Array(memory).fill(0xdd);
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
  isVouched(i: number): boolean;
  /** Erased rows of entry i, whose content is vouched for. */
  erasedRows(i: number): number;
  /** Its body, where bodies are handed back. Valid until the next frame is asked for. */
  body(i: number): Uint8Array;
}

/** Frames from an offset up to the first that is none. */
export class FrameRun {
  readonly #window: FileWindow;
  readonly #file: number;
  readonly #length: number;
  readonly #checker: BodyChecker | null;
  readonly #ahead: Batch[] = [];
  #at: number;
  /** Why the frames end; null at the end of the file. */
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
      if (this.#batch) this.#release(this.#batch);
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
    const isVouched = (i: number): boolean => vouches(known, first + i);
    // One entry that is vouched for is enough: the checksum was looked at before.
    if (this.#checker && !isVouched(0) && !frameIsWhole(frame.bytes)) return failsChecksum;
    return {
      frame,
      isVouched,
      erasedRows: (i) => erasedRows(known!, first + i),
      body: (i) => bodyAt(known!, first + i),
    };
  }

  #release({ frames, reply }: Batch): void {
    if (reply && reply !== 'under way') this.#checker?.release(reply);
    const memory = frames[0]!.bytes.buffer;
    if (this.#window.release(memory)) this.#checker?.spoil(memory);
  }

  /** Goes on while the next batch is still in the worker's hands, or there is none, and while the worker has little to do. */
  async #readAhead(): Promise<void> {
    const most = this.#checker ? AHEAD_MAX : 1;
    const waits = (): boolean => (this.#ahead[0]?.reply ?? 'under way') === 'under way';
    // Replies that came during the last batch are taken in, or the worker would seem to be at it still.
    if (this.#checker) await new Promise((resolve) => setImmediate(resolve));
    while (this.#end === undefined && this.#ahead.length < most && (waits() || this.#checker?.wants)) {
      const frames = await this.#read();
      if (frames.length > 0) this.#ahead.push(this.#begin(frames));
    }
  }

  #begin(frames: readonly FoundFrame[]): Batch {
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
      const frame = await frameAt(this.#window, this.#file, this.#at, this.#length, this.#checker === null);
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
