/**
 * Request bodies: collected whole up to the body limit, or handed on chunk by chunk without one. Either way a client
 * has to keep some pace while we wait for it, so that a thousand slow senders can't hold a thousand bodies open;
 * time that we take ourselves never counts against it.
 */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';

/** The lag that a sender may have behind the pace; sending faster makes up for an earlier lag, not for a later one. */
export const pace = { graceMs: 30_000, bytesPerSecond: 2_048 } as const;
/** The lag allowed once the answer has been sent. */
const discardedGraceMs = 5_000;
const bodySweepMs = 1_000;
/** Longest stretch of work on chunks that are here already. */
const bodySliceMs = 2;
/** Size of the pieces of a body in memory, as large as one read of a socket. */
const bodyPieceBytes = 65_536;
/** Most bytes read of an unwanted body, so that the client finds its answer. */
const discardBytesMax = { known: 16 << 20, stranger: 1 << 20 } as const;

/** Shorter ones are put together at their end. */
const longBodyBytes = 1 << 20;

interface BodyReceipt {
  readonly source: Readable;
  readonly graceMs: number;
  bytes: number;
  lagMs: number;
  /** Null while the server, not the client, is busy. */
  waitingSinceMs: number | null;
}

export class RequestBodies {
  readonly #clock: Clock;
  readonly #limitBytes: number;
  readonly #yieldTurn: () => Promise<void>;
  readonly #open = new Set<BodyReceipt>();
  readonly #closing = new AbortController();

  constructor(bodyClock: Clock, bodyLimitBytes: number, yieldAfterSlice: () => Promise<void>) {
    this.#clock = bodyClock;
    this.#limitBytes = bodyLimitBytes;
    this.#yieldTurn = yieldAfterSlice;
  }

  /** Runs until `close`: cuts off senders that fell too far behind. */
  async sweep(): Promise<void> {
    const { signal: closingSignal } = this.#closing;
    for (;;) {
      await this.#clock.sleep(bodySweepMs, closingSignal);
      if (closingSignal.aborted) return;
      const nowMs = this.#clock.monotonicMs();
      for (const bodyReceipt of this.#open) {
        const waitedMs = bodyReceipt.waitingSinceMs === null ? 0 : nowMs - bodyReceipt.waitingSinceMs;
        if (bodyReceipt.lagMs + waitedMs > bodyReceipt.graceMs) {
          bodyReceipt.source.destroy(new ServiceError('REL_TIMEOUT', 'the body did not arrive in time'));
        }
      }
    }
  }

  close(): void {
    this.#closing.abort();
  }

  /** Cuts off senders whose answer has been sent: nothing is waited for at a stop but work. */
  stopDiscarding(): void {
    for (const bodyReceipt of this.#open) if (bodyReceipt.graceMs === discardedGraceMs) bodyReceipt.source.destroy();
  }

  /** The whole body. REL_TOO_LARGE as soon as it is known to be over the limit, that of the door or that of its route. */
  collect(
    bodySource: Readable,
    contentLength: string | undefined,
    onCollected: (error: Error | null, body?: Buffer) => void,
    routeBytesMax = this.#limitBytes,
  ): void {
    const limitBytes = Math.min(routeBytesMax, this.#limitBytes);
    const bodyTooLarge = (): ServiceError => bodyOverLimit(limitBytes < this.#limitBytes ? limitBytes : null);
    if (Number(contentLength) > limitBytes) return onCollected(bodyTooLarge());
    const bodyReceipt = this.#track(bodySource, pace.graceMs);
    const statedLength = Number(contentLength);
    const bodyChunks: Buffer[] = [];
    // A long body is put together as it comes: new memory of megabytes costs milliseconds. A length that is only claimed reserves none.
    let wholeBody: Buffer | null = null;
    const finishBody = (bodyError: Error | null): void => {
      if (!this.#open.delete(bodyReceipt)) return;
      bodySource.off('data', onBodyData).off('end', onBodyEnd).off('error', finishBody).off('close', onBodyClose);
      if (bodyError) {
        // A later error without a listener would end the process.
        bodySource.on('error', ignoreBodyError);
        return onCollected(bodyError);
      }
      if (wholeBody !== null) return onCollected(null, wholeBody.subarray(0, bodyReceipt.bytes));
      onCollected(null, bodyChunks.length === 1 ? bodyChunks[0] : Buffer.concat(bodyChunks, bodyReceipt.bytes));
    };
    const onBodyData = (bodyChunk: Buffer): void => {
      this.#recordChunk(bodyReceipt, bodyChunk);
      if (bodyReceipt.bytes > limitBytes) return finishBody(bodyTooLarge());
      if (wholeBody !== null) {
        bodyChunk.copy(wholeBody, bodyReceipt.bytes - bodyChunk.length);
        return;
      }
      bodyChunks.push(bodyChunk);
      if (!(statedLength >= longBodyBytes) || bodyReceipt.bytes < statedLength / 4) return;
      wholeBody = Buffer.allocUnsafeSlow(statedLength);
      let wholeOffset = 0;
      for (const earlierChunk of bodyChunks.splice(0)) wholeOffset += earlierChunk.copy(wholeBody, wholeOffset);
    };
    const onBodyEnd = (): void => finishBody(null);
    const onBodyClose = (): void => finishBody(bodyGoneError());
    bodySource.on('data', onBodyData).on('end', onBodyEnd).on('error', finishBody).on('close', onBodyClose);
  }

  /**
   * The body as it comes, one chunk at a time: the next is read from the socket only when asked for, and after some work
   * others have their turn first. A sender that is faster than we are would keep them waiting for megabytes otherwise.
   */
  async *stream(bodySource: Readable): AsyncGenerator<Uint8Array, void> {
    const bodyReceipt = this.#track(bodySource, pace.graceMs);
    const workSlice = this.#slice();
    try {
      // Destroying the stream would end the connection before the answer is on it.
      for await (const bodyChunk of bodySource.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        this.#recordChunk(bodyReceipt, bodyChunk);
        bodyReceipt.waitingSinceMs = null;
        workSlice.begin();
        yield bodyChunk;
        await workSlice.end();
        bodyReceipt.waitingSinceMs = this.#clock.monotonicMs();
      }
    } catch (bodyError) {
      throw bodyError instanceof ServiceError ? bodyError : bodyGoneError();
    } finally {
      this.#open.delete(bodyReceipt);
    }
  }

  /** A body that was collected before, in pieces, and with the same turns for others. */
  pieces(wholeBody: Uint8Array): AsyncGenerator<Uint8Array, void> {
    return this.inTurns(bodyPiecesOf(wholeBody));
  }

  /** Others have their turns between pieces that are here already, as of a body that unfolds to much more than was sent. */
  async *inTurns(pieceSource: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
    const workSlice = this.#slice();
    for await (const bodyPiece of pieceSource) {
      workSlice.begin();
      yield bodyPiece;
      await workSlice.end();
    }
  }

  /**
   * Reads the rest of an unwanted body, so that the client finds its answer instead of a reset connection and the rest is not
   * taken for the next request. One that goes on for too long is cut off after all.
   */
  discard(discardedBody: IncomingMessage, senderKind: keyof typeof discardBytesMax): void {
    if (discardedBody.complete || discardedBody.destroyed) return;
    const bodyReceipt = this.#track(discardedBody, discardedGraceMs);
    discardedBody.on('error', ignoreBodyError);
    discardedBody.on('data', (discardedChunk: Buffer) => {
      this.#recordChunk(bodyReceipt, discardedChunk);
      if (bodyReceipt.bytes > discardBytesMax[senderKind]) discardedBody.destroy();
    });
    discardedBody.once('close', () => this.#open.delete(bodyReceipt));
    // A stream that was read by an iterator before stays paused otherwise.
    discardedBody.resume();
  }

  /** Measures work on pieces, and lets others have their turn once it has been enough. */
  #slice(): { begin(): void; end(): Promise<void> } {
    let sliceBegunMs = 0;
    let sliceWorkedMs = 0;
    return {
      begin: () => {
        sliceBegunMs = this.#clock.monotonicMs();
      },
      end: async () => {
        sliceWorkedMs += this.#clock.monotonicMs() - sliceBegunMs;
        if (sliceWorkedMs <= bodySliceMs) return;
        await this.#yieldTurn();
        sliceWorkedMs = 0;
      },
    };
  }

  #track(bodySource: Readable, graceMs: number): BodyReceipt {
    const bodyReceipt = { source: bodySource, graceMs: graceMs, bytes: 0, lagMs: 0, waitingSinceMs: this.#clock.monotonicMs() };
    this.#open.add(bodyReceipt);
    return bodyReceipt;
  }

  #recordChunk(bodyReceipt: BodyReceipt, bodyChunk: Uint8Array): void {
    const nowMs = this.#clock.monotonicMs();
    const waitedMs = nowMs - (bodyReceipt.waitingSinceMs ?? nowMs);
    bodyReceipt.bytes += bodyChunk.length;
    bodyReceipt.lagMs = Math.max(0, bodyReceipt.lagMs + waitedMs - (bodyChunk.length / pace.bytesPerSecond) * 1000);
    bodyReceipt.waitingSinceMs = nowMs;
  }
}

function* bodyPiecesOf(wholeBody: Uint8Array): Generator<Uint8Array, void> {
  for (let pieceOffset = 0; pieceOffset < wholeBody.length; pieceOffset += bodyPieceBytes)
    yield wholeBody.subarray(pieceOffset, pieceOffset + bodyPieceBytes);
}

/** Its body is here, or will be at once: an answer that ends the connection is found by its sender. */
export function isShort({ headers: requestHeaders }: IncomingMessage): boolean {
  return requestHeaders['transfer-encoding'] === undefined && Number(requestHeaders['content-length'] ?? 0) <= bodyPieceBytes;
}

function bodyOverLimit(routeBytesMax: number | null): ServiceError {
  const limitText =
    routeBytesMax === null ? 'the body limit (SERVICE_BODY_LIMIT_MB)' : `the ${routeBytesMax} bytes that this route takes`;
  return new ServiceError('REL_TOO_LARGE', `the body is over ${limitText}`);
}

const bodyGoneError = (): ServiceError => new ServiceError('REL_CANCELLED', 'the connection ended before the body did');

const ignoreBodyError = (): void => undefined;
