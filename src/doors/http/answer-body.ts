/**
 * Rows on their way to a client: pieces are encoded as fast as the client takes them, and no faster. What must hold:
 * nothing is encoded for a client that has gone, other work gets its turn every few milliseconds, and a body that could
 * not be finished ends the connection, so that nobody takes a part for the whole.
 */
import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest, HttpContext } from './context.ts';

/** Longest stretch of encoding without a turn for others. */
const sliceMs = 2;
/** What goes to the socket at once: a write for every small piece would cost more than the piece. */
const writeBytes = 128 * 1024;
/** A client that takes nothing for so long is cut off: it would hold its answer in memory for ever. */
const stalledMs = 120_000;

/** Takes the response out of the framework's hands; null when there is nobody to send a body to. */
export function openBody(
  context: HttpContext,
  request: FastifyRequest,
  reply: FastifyReply,
  headers: Readonly<Record<string, string>>,
): AnswerBody | null {
  reply.hijack();
  reply.raw.writeHead(200, headers);
  if (request.method !== 'HEAD') return new AnswerBody(context, request, reply.raw);
  reply.raw.end();
  return null;
}

export class AnswerBody {
  readonly #context: HttpContext;
  readonly #request: FastifyRequest;
  readonly #response: ServerResponse;

  constructor(context: HttpContext, request: FastifyRequest, response: ServerResponse) {
    this.#context = context;
    this.#request = request;
    this.#response = response;
  }

  get gone(): boolean {
    return this.#response.destroyed || this.#response.writableEnded;
  }

  /** Sends all pieces and ends the body. A piece may be empty: it only marks where others may have their turn. */
  async sendAll(pieces: Iterator<Uint8Array>): Promise<void> {
    if (await this.send(pieces)) this.#response.end();
  }

  /** False when the client went away or the rest could not be made: then the connection is over. */
  async send(pieces: Iterator<Uint8Array>): Promise<boolean> {
    try {
      return await this.#pump(pieces);
    } catch (error) {
      const { id, routeOptions } = this.#request;
      this.#context.log({ event: 'answer cut off', correlationId: id, route: routeOptions.url ?? 'unknown', error });
      this.#response.destroy();
      return false;
    } finally {
      pieces.return?.();
    }
  }

  async #pump(pieces: Iterator<Uint8Array>): Promise<boolean> {
    const { clock } = this.#context;
    const response = this.#response;
    let sliceStart = clock.monotonicMs();
    for (;;) {
      let bytes = 0;
      let ended = false;
      let taken = true;
      response.cork();
      while (bytes < writeBytes && !ended) {
        const { value, done } = pieces.next();
        ended = done === true;
        if (!ended && value.length > 0) {
          bytes += value.length;
          taken = response.write(value);
        }
        if (clock.monotonicMs() - sliceStart > sliceMs) break;
      }
      response.uncork();
      if (this.gone) return false;
      if (ended) return true;
      if (!taken && response.writableNeedDrain) await this.#drained();
      if (clock.monotonicMs() - sliceStart > sliceMs) {
        await new Promise((resolve) => setImmediate(resolve));
        sliceStart = clock.monotonicMs();
      }
      if (this.gone) return false;
    }
  }

  /** Resolves when the client has taken what was written, or is gone. */
  async #drained(): Promise<void> {
    const response = this.#response;
    const done = new AbortController();
    const finish = (): void => done.abort();
    response.once('drain', finish).once('close', finish);
    await this.#context.clock.sleep(stalledMs, done.signal);
    response.off('drain', finish).off('close', finish);
    if (!done.signal.aborted) response.destroy();
  }
}
