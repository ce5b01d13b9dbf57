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
const sliceMs = 2;
/** Bytes of one write to the socket: a write for every small piece would cost more than the piece. */
const writeBytes = 256 * 1024;
/** Bytes that may wait for the client while more are encoded: the socket is never idle, and a slow client costs no more. */
const aheadBytes = 256 * 1024;

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
  readonly #parts: AnswerDependencies;
  readonly #answerTo: AnswerTo;
  readonly #response: ServerResponse;
  /** Bytes given to the response that the socket has not taken yet. */
  #ahead = 0;
  /** Monotonic milliseconds; Infinity while the answer does not wait for the client. */
  #waitingSince = Infinity;
  /** Set once the pieces are watched. */
  #watched: AbortSignal | null = null;
  /** Set once the lease of the pieces is looked at. */
  #leased: AbortSignal | null = null;
  #wake = (): void => undefined;

  constructor(parts: AnswerDependencies, answerTo: AnswerTo, response: ServerResponse) {
    this.#parts = parts;
    this.#answerTo = answerTo;
    this.#response = response;
  }

  get gone(): boolean {
    return this.#response.destroyed || this.#response.writableEnded;
  }

  /** Sends all pieces and ends the body. A piece may be empty: it only marks where others may have their turn. */
  async sendAll(pieces: Iterator<Uint8Array>): Promise<void> {
    if (!(await this.send(pieces))) return;
    const response = this.#response;
    response.end();
    // The last pieces may wait for the client still.
    watchUnsent(
      this.#parts,
      this.#answerTo,
      () => (response.destroyed ? 0 : response.writableLength),
      (error) => this.#cutOff(error),
    );
  }

  /** False when the client went away or the rest could not be made: then the connection is over. */
  async send(pieces: Iterator<Uint8Array>): Promise<boolean> {
    try {
      return await this.#pump(pieces);
    } catch (error) {
      this.#cutOff(error);
      return false;
    } finally {
      pieces.return?.();
    }
  }

  #cutOff(error: unknown): void {
    const { id, route } = this.#answerTo;
    this.#parts.log?.({ event: 'answer cut off', correlationId: id, route, error });
    this.#response.destroy();
  }

  async #pump(pieces: Iterator<Uint8Array>): Promise<boolean> {
    const { clock } = this.#parts;
    const response = this.#response;
    const over = new AbortController();
    const finish = (): void => {
      over.abort();
      this.#wake();
    };
    response.once('close', finish);
    let sliceStart = clock.monotonicMs();
    try {
      for (;;) {
        let bytes = 0;
        let ended = false;
        checkErased(this.#answerTo);
        response.cork();
        while (bytes < writeBytes && !ended) {
          const { value, done } = pieces.next();
          ended = done === true;
          if (!ended && value.length > 0) {
            bytes += value.length;
            this.#write(value);
          }
          if (clock.monotonicMs() - sliceStart > sliceMs) break;
        }
        response.uncork();
        if (this.gone) return false;
        if (ended) return true;
        if (this.#leased !== over.signal) void this.#cutOffEnded((this.#leased = over.signal));
        if (this.#ahead > aheadBytes) await this.#caughtUp(over.signal);
        if (clock.monotonicMs() - sliceStart > sliceMs) {
          await this.#parts.yieldTurn();
          sliceStart = clock.monotonicMs();
        }
        if (this.gone) return false;
      }
    } finally {
      response.off('close', finish);
      over.abort();
    }
  }

  #write(piece: Uint8Array): void {
    this.#ahead += piece.length;
    this.#response.write(piece, () => {
      this.#ahead -= piece.length;
      if (this.#ahead <= aheadBytes) this.#wake();
      // A slow client has not stalled: each piece that it takes resets the time limit.
      else if (this.#waitingSince !== Infinity) this.#waitingSince = this.#parts.clock.monotonicMs();
    });
  }

  /** Resolves when the client has taken enough of the written bytes, or is gone. */
  async #caughtUp(over: AbortSignal): Promise<void> {
    this.#waitingSince = this.#parts.clock.monotonicMs();
    if (this.#watched !== over) void this.#cutOffStalled((this.#watched = over));
    await new Promise<void>((resolve) => (this.#wake = resolve));
    this.#waitingSince = Infinity;
  }

  /** From the first piece that is not the last: what leaves at once is over before anything can change. */
  #cutOffEnded(over: AbortSignal): Promise<void> {
    const check = (): void => {
      checkCaller(this.#parts, this.#answerTo.caller);
      checkErased(this.#answerTo);
    };
    return watchStream(this.#parts, check, over, (error) => this.#cutOff(error));
  }

  /** One timer for the whole body: a timer for every wait would cost as much as the waits. */
  async #cutOffStalled(over: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    for (let rest = stalledMs; ; ) {
      await clock.sleep(rest, over);
      if (over.aborted) return;
      const waited = Math.max(0, clock.monotonicMs() - this.#waitingSince);
      if (waited >= stalledMs) return void this.#response.destroy();
      rest = stalledMs - waited;
    }
  }
}
