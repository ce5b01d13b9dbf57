/**
 * Rows on their way to a client: pieces are encoded as fast as the client takes them, and no faster. Invariants: nothing is
 * encoded for a client that has gone, for a caller who is no longer admitted, or of rows that were erased since; other work gets
 * its turn every few milliseconds; a body that could not be finished ends the connection, so that a client can't take a part for
 * the whole.
 */
import type { ServerResponse } from 'node:http';
import type { Caller } from '../../governance/caller.ts';
import type { DoorDependencies } from './door-dependencies.ts';
import { checkCaller, checkErased, type Overtaken, stalledMs, watchStream, watchUnsent } from './stream-lease.ts';

/** Longest stretch of encoding without a turn for others. */
const answerSliceMs = 2;
/** Bytes of one write to the socket: a write for every small piece would cost more than the piece. */
const answerWriteBytes = 256 * 1024;
/** Bytes that may wait for the client while more are encoded: the socket is never idle, and a slow client costs no more. */
const answerAheadBytes = 256 * 1024;

export interface AnswerDependencies extends Pick<DoorDependencies, 'gate' | 'clock' | 'yieldTurn'> {
  readonly authenticator: Pick<DoorDependencies['authenticator'], 'renew'>;
  readonly log?: (line: { event: string; correlationId: string; route: string; error: unknown }) => void;
}

/** The caller of an answer, and whether it may still be sent. */
export interface AnswerTo extends Overtaken {
  /** The correlation id, for the log line of a cut-off answer. */
  readonly id: string;
  readonly route: string;
  readonly caller: Caller;
}

export class AnswerBody {
  readonly #answerParts: AnswerDependencies;
  readonly #answerTo: AnswerTo;
  readonly #httpResponse: ServerResponse;
  /** Bytes given to the response that the socket has not taken yet. */
  #bytesAhead = 0;
  /** Monotonic milliseconds; Infinity while the answer does not wait for the client. */
  #clientWaitSince = Infinity;
  /** Set once the pieces are watched. */
  #stallWatch: AbortSignal | null = null;
  /** Set once the lease of the pieces is looked at. */
  #callerWatch: AbortSignal | null = null;
  #wakeAnswer = (): void => undefined;

  constructor(answerParts: AnswerDependencies, answerTo: AnswerTo, httpResponse: ServerResponse) {
    this.#answerParts = answerParts;
    this.#answerTo = answerTo;
    this.#httpResponse = httpResponse;
  }

  get gone(): boolean {
    return this.#httpResponse.destroyed || this.#httpResponse.writableEnded;
  }

  /** Sends all pieces and ends the body. A piece may be empty: it only marks where others may have their turn. */
  async sendAll(answerPieces: Iterator<Uint8Array>): Promise<void> {
    if (!(await this.send(answerPieces))) return;
    const httpResponse = this.#httpResponse;
    httpResponse.end();
    // The last pieces may wait for the client still.
    watchUnsent(
      this.#answerParts,
      this.#answerTo,
      () => (httpResponse.destroyed ? 0 : httpResponse.writableLength),
      (answerError) => this.#cutOffAnswer(answerError),
    );
  }

  /** False when the client went away or the rest could not be made: then the connection is over. */
  async send(answerPieces: Iterator<Uint8Array>): Promise<boolean> {
    try {
      return await this.#pumpAnswer(answerPieces);
    } catch (answerError) {
      this.#cutOffAnswer(answerError);
      return false;
    } finally {
      answerPieces.return?.();
    }
  }

  #cutOffAnswer(answerError: unknown): void {
    const { id: answerId, route: answerRoute } = this.#answerTo;
    this.#answerParts.log?.({ event: 'answer cut off', correlationId: answerId, route: answerRoute, error: answerError });
    this.#httpResponse.destroy();
  }

  async #pumpAnswer(answerPieces: Iterator<Uint8Array>): Promise<boolean> {
    const { clock } = this.#answerParts;
    const httpResponse = this.#httpResponse;
    const answerOver = new AbortController();
    const finishAnswer = (): void => {
      answerOver.abort();
      this.#wakeAnswer();
    };
    httpResponse.once('close', finishAnswer);
    let answerSliceStart = clock.monotonicMs();
    try {
      for (;;) {
        let writtenBytes = 0;
        let hasEnded = false;
        checkErased(this.#answerTo);
        httpResponse.cork();
        while (writtenBytes < answerWriteBytes && !hasEnded) {
          const { value: answerPiece, done: isLastPiece } = answerPieces.next();
          hasEnded = isLastPiece === true;
          if (!hasEnded && answerPiece.length > 0) {
            writtenBytes += answerPiece.length;
            this.#writeAnswer(answerPiece);
          }
          if (clock.monotonicMs() - answerSliceStart > answerSliceMs) break;
        }
        httpResponse.uncork();
        if (this.gone) return false;
        if (hasEnded) return true;
        if (this.#callerWatch !== answerOver.signal) void this.#cutOffRevoked((this.#callerWatch = answerOver.signal));
        if (this.#bytesAhead > answerAheadBytes) await this.#clientCaughtUp(answerOver.signal);
        if (clock.monotonicMs() - answerSliceStart > answerSliceMs) {
          await this.#answerParts.yieldTurn();
          answerSliceStart = clock.monotonicMs();
        }
        if (this.gone) return false;
      }
    } finally {
      httpResponse.off('close', finishAnswer);
      answerOver.abort();
    }
  }

  #writeAnswer(answerPiece: Uint8Array): void {
    this.#bytesAhead += answerPiece.length;
    this.#httpResponse.write(answerPiece, () => {
      this.#bytesAhead -= answerPiece.length;
      if (this.#bytesAhead <= answerAheadBytes) this.#wakeAnswer();
      // A slow client has not stalled: each piece that it takes resets the time limit.
      else if (this.#clientWaitSince !== Infinity) this.#clientWaitSince = this.#answerParts.clock.monotonicMs();
    });
  }

  /** Resolves when the client has taken enough of the written bytes, or is gone. */
  async #clientCaughtUp(answerOver: AbortSignal): Promise<void> {
    this.#clientWaitSince = this.#answerParts.clock.monotonicMs();
    if (this.#stallWatch !== answerOver) void this.#cutOffStalled((this.#stallWatch = answerOver));
    await new Promise<void>((wakeAnswer) => (this.#wakeAnswer = wakeAnswer));
    this.#clientWaitSince = Infinity;
  }

  /** From the first piece that is not the last: what leaves at once is over before anything can change. */
  #cutOffRevoked(answerOver: AbortSignal): Promise<void> {
    const checkAnswerCaller = (): void => {
      checkCaller(this.#answerParts, this.#answerTo.caller);
      checkErased(this.#answerTo);
    };
    return watchStream(this.#answerParts, checkAnswerCaller, answerOver, (answerError) => this.#cutOffAnswer(answerError));
  }

  /** One timer for the whole body: a timer for every wait would cost as much as the waits. */
  async #cutOffStalled(answerOver: AbortSignal): Promise<void> {
    const { clock } = this.#answerParts;
    for (let stallRestMs = stalledMs; ; ) {
      await clock.sleep(stallRestMs, answerOver);
      if (answerOver.aborted) return;
      const clientWaitedMs = Math.max(0, clock.monotonicMs() - this.#clientWaitSince);
      if (clientWaitedMs >= stalledMs) return void this.#httpResponse.destroy();
      stallRestMs = stalledMs - clientWaitedMs;
    }
  }
}
