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
const discardGraceMs = 5_000;
const sweepMs = 1_000;
/** Longest stretch of work on chunks that are here already. */
const sliceMs = 2;
/** Size of the pieces of a body in memory, as large as one read of a socket. */
const pieceBytes = 65_536;
/** Most bytes read of an unwanted body, so that the client finds its answer. */
const discardBytesMax = { known: 16 << 20, stranger: 1 << 20 } as const;

/** Shorter ones are put together at their end. */
const longBodyBytes = 1 << 20;

interface Receipt {
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
  readonly #open = new Set<Receipt>();
  readonly #closing = new AbortController();

  constructor(clock: Clock, limitBytes: number, yieldTurn: () => Promise<void>) {
    this.#clock = clock;
    this.#limitBytes = limitBytes;
    this.#yieldTurn = yieldTurn;
  }

  /** Runs until `close`: cuts off senders that fell too far behind. */
  async sweep(): Promise<void> {
    const { signal } = this.#closing;
    for (;;) {
      await this.#clock.sleep(sweepMs, signal);
      if (signal.aborted) return;
      const nowMs = this.#clock.monotonicMs();
      for (const receipt of this.#open) {
        const waitedMs = receipt.waitingSinceMs === null ? 0 : nowMs - receipt.waitingSinceMs;
        if (receipt.lagMs + waitedMs > receipt.graceMs) {
          receipt.source.destroy(new ServiceError('REL_TIMEOUT', 'the body did not arrive in time'));
        }
      }
    }
  }

  close(): void {
    this.#closing.abort();
  }

  /** Cuts off senders whose answer has been sent: nothing is waited for at a stop but work. */
  stopDiscarding(): void {
    for (const receipt of this.#open) if (receipt.graceMs === discardGraceMs) receipt.source.destroy();
  }

  /** The whole body. REL_TOO_LARGE as soon as it is known to be over the limit, that of the door or that of its route. */
  collect(
    source: Readable,
    contentLength: string | undefined,
    done: (error: Error | null, body?: Buffer) => void,
    routeBytesMax = this.#limitBytes,
  ): void {
    const limitBytes = Math.min(routeBytesMax, this.#limitBytes);
    const tooLarge = (): ServiceError => overLimit(limitBytes < this.#limitBytes ? limitBytes : null);
    if (Number(contentLength) > limitBytes) return done(tooLarge());
    const receipt = this.#track(source, pace.graceMs);
    const length = Number(contentLength);
    const chunks: Buffer[] = [];
    // A long body is put together as it comes: new memory of megabytes costs milliseconds. A length that is only claimed reserves none.
    let whole: Buffer | null = null;
    const finish = (error: Error | null): void => {
      if (!this.#open.delete(receipt)) return;
      source.off('data', onData).off('end', onEnd).off('error', finish).off('close', onClose);
      if (error) {
        // A later error without a listener would end the process.
        source.on('error', ignore);
        return done(error);
      }
      if (whole !== null) return done(null, whole.subarray(0, receipt.bytes));
      done(null, chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, receipt.bytes));
    };
    const onData = (chunk: Buffer): void => {
      this.#recordChunk(receipt, chunk);
      if (receipt.bytes > limitBytes) return finish(tooLarge());
      if (whole !== null) {
        chunk.copy(whole, receipt.bytes - chunk.length);
        return;
      }
      chunks.push(chunk);
      if (!(length >= longBodyBytes) || receipt.bytes < length / 4) return;
      whole = Buffer.allocUnsafeSlow(length);
      let at = 0;
      for (const one of chunks.splice(0)) at += one.copy(whole, at);
    };
    const onEnd = (): void => finish(null);
    const onClose = (): void => finish(goneError());
    source.on('data', onData).on('end', onEnd).on('error', finish).on('close', onClose);
  }

  /**
   * The body as it comes, one chunk at a time: the next is read from the socket only when asked for, and after some work
   * others have their turn first. A sender that is faster than we are would keep them waiting for megabytes otherwise.
   */
  async *stream(source: Readable): AsyncGenerator<Uint8Array, void> {
    const receipt = this.#track(source, pace.graceMs);
    const slice = this.#slice();
    try {
      // Destroying the stream would end the connection before the answer is on it.
      for await (const chunk of source.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        this.#recordChunk(receipt, chunk);
        receipt.waitingSinceMs = null;
        slice.begin();
        yield chunk;
        await slice.end();
        receipt.waitingSinceMs = this.#clock.monotonicMs();
      }
    } catch (error) {
      throw error instanceof ServiceError ? error : goneError();
    } finally {
      this.#open.delete(receipt);
    }
  }

  /** A body that was collected before, in pieces, and with the same turns for others. */
  pieces(body: Uint8Array): AsyncGenerator<Uint8Array, void> {
    return this.inTurns(piecesOf(body));
  }

  /** Others have their turns between pieces that are here already, as of a body that unfolds to much more than was sent. */
  async *inTurns(source: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
    const slice = this.#slice();
    for await (const piece of source) {
      slice.begin();
      yield piece;
      await slice.end();
    }
  }

  /**
   * Reads the rest of an unwanted body, so that the client finds its answer instead of a reset connection and the rest is not
   * taken for the next request. One that goes on for too long is cut off after all.
   */
  discard(source: IncomingMessage, whose: keyof typeof discardBytesMax): void {
    if (source.complete || source.destroyed) return;
    const receipt = this.#track(source, discardGraceMs);
    source.on('error', ignore);
    source.on('data', (chunk: Buffer) => {
      this.#recordChunk(receipt, chunk);
      if (receipt.bytes > discardBytesMax[whose]) source.destroy();
    });
    source.once('close', () => this.#open.delete(receipt));
    // A stream that was read by an iterator before stays paused otherwise.
    source.resume();
  }

  /** Measures work on pieces, and lets others have their turn once it has been enough. */
  #slice(): { begin(): void; end(): Promise<void> } {
    let begunMs = 0;
    let workedMs = 0;
    return {
      begin: () => {
        begunMs = this.#clock.monotonicMs();
      },
      end: async () => {
        workedMs += this.#clock.monotonicMs() - begunMs;
        if (workedMs <= sliceMs) return;
        await this.#yieldTurn();
        workedMs = 0;
      },
    };
  }

  #track(source: Readable, allowedMs: number): Receipt {
    const receipt = { source, graceMs: allowedMs, bytes: 0, lagMs: 0, waitingSinceMs: this.#clock.monotonicMs() };
    this.#open.add(receipt);
    return receipt;
  }

  #recordChunk(receipt: Receipt, chunk: Uint8Array): void {
    const nowMs = this.#clock.monotonicMs();
    const waitedMs = nowMs - (receipt.waitingSinceMs ?? nowMs);
    receipt.bytes += chunk.length;
    receipt.lagMs = Math.max(0, receipt.lagMs + waitedMs - (chunk.length / pace.bytesPerSecond) * 1000);
    receipt.waitingSinceMs = nowMs;
  }
}

function* piecesOf(body: Uint8Array): Generator<Uint8Array, void> {
  for (let at = 0; at < body.length; at += pieceBytes) yield body.subarray(at, at + pieceBytes);
}

/** Its body is here, or will be at once: an answer that ends the connection is found by its sender. */
export function isShort({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) <= pieceBytes;
}

function overLimit(routeBytes: number | null): ServiceError {
  const limit = routeBytes === null ? 'the body limit (SERVICE_BODY_LIMIT_MB)' : `the ${routeBytes} bytes that this route takes`;
  return new ServiceError('REL_TOO_LARGE', `the body is over ${limit}`);
}

const goneError = (): ServiceError => new ServiceError('REL_CANCELLED', 'the connection ended before the body did');

const ignore = (): void => undefined;
