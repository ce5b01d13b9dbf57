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
import { failsChecksum, type FileWindow, type FrameAtOffset, frameAt } from './verify-frames.ts';

/** Batches that the worker has before the calling thread takes one itself. */
const OPENER_REQUESTS_MAX = 2;
/** Batches that are read and not yet walked, at most: bounds the memory. */
const FRAME_BATCHES_AHEAD_MAX = 8;

/** Opens bodies in two threads. */
export class BodyChecker {
  readonly #bodyKeys: BodyKeys;
  readonly #frameOpener: FrameOpener;
  readonly #poisonsMemory: boolean;
  /** Buffers for bodies that are not in use; null where bodies are only checked. */
  readonly #freeBodies: SharedArrayBuffer[] | null;

  constructor({ startWorker, poison: poisonsMemory = false }: BackgroundOpening, bodyKeys: BodyKeys, keepsBodies: boolean) {
    this.#bodyKeys = bodyKeys;
    this.#frameOpener = new FrameOpener(startWorker, bodyKeys, true);
    this.#poisonsMemory = poisonsMemory;
    this.#freeBodies = keepsBodies ? [] : null;
  }

  /** The worker has less to do than it may have. */
  get wants(): boolean {
    return this.#frameOpener.requestCount < OPENER_REQUESTS_MAX;
  }

  /** The reply, or the promise of one. */
  check(batchFrames: readonly FrameAtOffset[]): OpenReply | Promise<OpenReply | null> {
    const bodiesMemory = this.#freeBodies && (this.#freeBodies.pop() ?? new SharedArrayBuffer(0));
    if (this.wants) return this.#frameOpener.open(batchFrames, bodiesMemory).catch(() => null);
    return openFrames({ ...requestFor(batchFrames, true), bodies: bodiesMemory }, this.#bodyKeys);
  }

  /** Returns the bodies of a reply, which are not read any more. */
  release({ bodies }: OpenReply): void {
    if (!bodies) return;
    this.spoil(bodies);
    this.#freeBodies?.push(bodies);
  }

  /** Overwrites bodies that are no longer valid, so that tests notice a late reader. */
  spoil(poisonedMemory: ArrayBufferLike): void {
    if (this.#poisonsMemory) new Uint8Array(poisonedMemory).fill(0xdd);
  }

  end(): Promise<void> {
    return this.#frameOpener.end();
  }
}

interface FrameBatch {
  readonly frames: readonly FrameAtOffset[];
  reply: OpenReply | null | 'under way';
  readonly replied: Promise<void>;
}

export interface WalkedFrame {
  readonly frame: FrameAtOffset;
  /** Entry `i` has been opened and is what its leaf says, rows root included. */
  isVouched(i: number): boolean;
  /** Erased rows of entry i, whose content is vouched for. */
  erasedRows(i: number): number;
  /** Its body, where bodies are handed back. Valid until the next frame is asked for. */
  body(i: number): Uint8Array;
}

/** Frames from an offset up to the first that is none. */
export class FrameRun {
  readonly #fileWindow: FileWindow;
  readonly #fileNumber: number;
  readonly #fileLength: number;
  readonly #bodyChecker: BodyChecker | null;
  readonly #batchesAhead: FrameBatch[] = [];
  #frameOffset: number;
  /** Why the frames end; null at the end of the file. */
  #runEnd: string | null | undefined;
  #firstOfNextBatch: FrameAtOffset | null = null;
  #frameBatch: FrameBatch | null = null;
  #frameInBatch = 0;
  #entryInBatch = 0;

  constructor(
    fileWindow: FileWindow,
    fileNumber: number,
    firstOffset: number,
    fileLength: number,
    bodyChecker: BodyChecker | null,
  ) {
    this.#fileWindow = fileWindow;
    this.#fileNumber = fileNumber;
    this.#fileLength = fileLength;
    this.#bodyChecker = bodyChecker;
    this.#frameOffset = firstOffset;
  }

  /** A frame; or why there is none, null at the end of the file. */
  async next(): Promise<WalkedFrame | string | null> {
    while (!this.#frameBatch || this.#frameInBatch === this.#frameBatch.frames.length) {
      if (this.#frameBatch) this.#releaseBatch(this.#frameBatch);
      await this.#readAhead();
      this.#frameBatch = this.#batchesAhead.shift() ?? null;
      if (!this.#frameBatch) return this.#runEnd ?? null;
      await this.#frameBatch.replied;
      this.#frameInBatch = this.#entryInBatch = 0;
    }
    const { frames: batchFrames, reply: batchReply } = this.#frameBatch;
    const walkedFrame = batchFrames[this.#frameInBatch++]!;
    const firstEntry = this.#entryInBatch;
    this.#entryInBatch += walkedFrame.header.entries;
    const openReply = batchReply === 'under way' ? null : batchReply;
    const isVouched = (i: number): boolean => vouches(openReply, firstEntry + i);
    // One entry that is vouched for is enough: the checksum was looked at before.
    if (this.#bodyChecker && !isVouched(0) && !frameIsWhole(walkedFrame.bytes)) return failsChecksum;
    return {
      frame: walkedFrame,
      isVouched,
      erasedRows: (i) => erasedRows(openReply!, firstEntry + i),
      body: (i) => bodyAt(openReply!, firstEntry + i),
    };
  }

  #releaseBatch({ frames, reply }: FrameBatch): void {
    if (reply && reply !== 'under way') this.#bodyChecker?.release(reply);
    const batchMemory = frames[0]!.bytes.buffer;
    if (this.#fileWindow.release(batchMemory)) this.#bodyChecker?.spoil(batchMemory);
  }

  /** Goes on while the next batch is still in the worker's hands, or there is none, and while the worker has little to do. */
  async #readAhead(): Promise<void> {
    const batchesMax = this.#bodyChecker ? FRAME_BATCHES_AHEAD_MAX : 1;
    const isFirstBatchPending = (): boolean => (this.#batchesAhead[0]?.reply ?? 'under way') === 'under way';
    // Replies that came during the last batch are taken in, or the worker would seem to be at it still.
    if (this.#bodyChecker) await new Promise((resolve) => setImmediate(resolve));
    while (
      this.#runEnd === undefined &&
      this.#batchesAhead.length < batchesMax &&
      (isFirstBatchPending() || this.#bodyChecker?.wants)
    ) {
      const batchFrames = await this.#readBatchFrames();
      if (batchFrames.length > 0) this.#batchesAhead.push(this.#beginBatch(batchFrames));
    }
  }

  #beginBatch(batchFrames: readonly FrameAtOffset[]): FrameBatch {
    const checkedBodies = this.#bodyChecker?.check(batchFrames) ?? null;
    if (!(checkedBodies instanceof Promise)) return { frames: batchFrames, reply: checkedBodies, replied: Promise.resolve() };
    const replied = checkedBodies.then((reply) => void (frameBatch.reply = reply));
    const frameBatch: FrameBatch = { frames: batchFrames, reply: 'under way', replied };
    return frameBatch;
  }

  /** Frames up to the end of what the window holds. */
  async #readBatchFrames(): Promise<FrameAtOffset[]> {
    const batchFrames = this.#firstOfNextBatch ? [this.#firstOfNextBatch] : [];
    this.#firstOfNextBatch = null;
    while (this.#frameOffset < this.#fileLength) {
      const frameFound = await frameAt(
        this.#fileWindow,
        this.#fileNumber,
        this.#frameOffset,
        this.#fileLength,
        this.#bodyChecker === null,
      );
      if (typeof frameFound === 'string') {
        this.#runEnd = frameFound;
        return batchFrames;
      }
      this.#frameOffset += frameFound.bytes.length;
      if (batchFrames.length > 0 && batchFrames[0]!.bytes.buffer !== frameFound.bytes.buffer) {
        this.#firstOfNextBatch = frameFound;
        return batchFrames;
      }
      batchFrames.push(frameFound);
    }
    this.#runEnd = null;
    return batchFrames;
  }
}
