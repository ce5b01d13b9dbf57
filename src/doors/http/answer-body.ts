/**
 * Rows on their way to a client: pieces are encoded as fast as the client takes them, and no faster. What must hold:
 * nothing is encoded for a client that has gone, or whose caller is let in no longer, nor of rows that were erased since; other
 * work gets its turn every few milliseconds, and a body that could not be finished ends the connection, so that nobody takes a
 * part for the whole.
 */
import type { ServerResponse } from 'node:http';
import type { Caller } from '../../governance/caller.ts';
import type { FastifyReply, FastifyRequest, HttpContext } from './context.ts';
import { callerOf } from './invoke.ts';
import { checkCaller, checkErased, type Overtaken, stalledMs, watchStream, watchWhole } from '../frame/lease.ts';

/** Longest stretch of encoding without a turn for others. */
const sliceMs = 2;
/** What goes to the socket at once: a write for every small piece would cost more than the piece. */
const writeBytes = 256 * 1024;
/** What may wait for the client while more is encoded: the socket is never without work, and a slow client costs no more. */
const aheadBytes = 256 * 1024;

/** Takes the response out of the framework's hands; null when there is nobody to send a body to. */
export function openBody(
  context: HttpContext,
  request: FastifyRequest,
  reply: FastifyReply,
  headers: Readonly<Record<string, string>>,
  { overtaken }: Overtaken,
): AnswerBody | null {
  reply.hijack();
  reply.raw.writeHead(200, headers);
  if (request.method !== 'HEAD') {
    const asked = { id: request.id, route: request.routeOptions.url ?? 'unknown', caller: callerOf(request), overtaken };
    return new AnswerBody(context, asked, reply.raw);
  }
  reply.raw.end();
  return null;
}

/** Answers up to here leave in one piece, with their length. */
const bytesAtOnce = 1 << 19;

/** Sends what an answer is made of, once its access record is there: whole where it is short, else as fast as the client takes it. */
export async function sendPieces(
  context: HttpContext,
  request: FastifyRequest,
  reply: FastifyReply,
  headers: Readonly<Record<string, string>>,
  pieces: Iterator<Uint8Array, void>,
  answer: Overtaken,
): Promise<FastifyReply> {
  const begun: Uint8Array[] = [];
  let bytes = 0;
  let step = pieces.next();
  for (; step.done !== true && bytes < bytesAtOnce; step = pieces.next()) {
    begun.push(step.value);
    bytes += step.value.length;
  }
  const isWhole = step.done === true;
  const rest = step.done === true ? [] : [step.value];
  const told = { ...headers, ...(isWhole && { 'content-length': String(bytes) }) };
  const body = openBody(context, request, reply, told, answer);
  await body?.sendAll(isWhole ? [Buffer.concat(begun)].values() : after([...begun, ...rest], pieces));
  return reply;
}

function* after(begun: readonly Uint8Array[], rest: Iterator<Uint8Array, void>): Generator<Uint8Array, void> {
  yield* begun;
  for (let step = rest.next(); step.done !== true; step = rest.next()) yield step.value;
}

/** Whose answer it is, and whether it may be sent still. */
export interface Asked extends Overtaken {
  /** For the line that says that it was cut off. */
  readonly id: string;
  readonly route: string;
  readonly caller: Caller;
}

export class AnswerBody {
  readonly #context: HttpContext;
  readonly #asked: Asked;
  readonly #response: ServerResponse;
  /** Bytes given to the response that the socket has not taken yet. */
  #ahead = 0;
  /** Monotonic milliseconds; Infinity while nobody waits for the client. */
  #waitingSince = Infinity;
  /** Set once the pieces are watched. */
  #watched: AbortSignal | null = null;
  /** Set once the lease of the pieces is looked at. */
  #leased: AbortSignal | null = null;
  #wake = (): void => undefined;

  constructor(context: HttpContext, asked: Asked, response: ServerResponse) {
    this.#context = context;
    this.#asked = asked;
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
    watchWhole(
      this.#context,
      this.#asked,
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
    const { id, route } = this.#asked;
    this.#context.log({ event: 'answer cut off', correlationId: id, route, error });
    this.#response.destroy();
  }

  async #pump(pieces: Iterator<Uint8Array>): Promise<boolean> {
    const { clock } = this.#context;
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
        checkErased(this.#asked);
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
          await this.#context.yieldTurn();
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
      // Slow is not stalled: whoever takes a piece has all the time again for the next.
      else if (this.#waitingSince !== Infinity) this.#waitingSince = this.#context.clock.monotonicMs();
    });
  }

  /** Resolves when the client has taken enough of what was written, or is gone. */
  async #caughtUp(over: AbortSignal): Promise<void> {
    this.#waitingSince = this.#context.clock.monotonicMs();
    if (this.#watched !== over) void this.#cutOffStalled((this.#watched = over));
    await new Promise<void>((resolve) => (this.#wake = resolve));
    this.#waitingSince = Infinity;
  }

  /** From the first piece that is not the last: what leaves at once is over before anything can change. */
  #cutOffEnded(over: AbortSignal): Promise<void> {
    const check = (): void => {
      checkCaller(this.#context, this.#asked.caller);
      checkErased(this.#asked);
    };
    return watchStream(this.#context, check, over, (error) => this.#cutOff(error));
  }

  /** One watch for the whole body: a timer for every wait would cost as much as the waits. */
  async #cutOffStalled(over: AbortSignal): Promise<void> {
    const { clock } = this.#context;
    for (let rest = stalledMs; ; ) {
      await clock.sleep(rest, over);
      if (over.aborted) return;
      const waited = Math.max(0, clock.monotonicMs() - this.#waitingSince);
      if (waited >= stalledMs) return void this.#response.destroy();
      rest = stalledMs - waited;
    }
  }
}
