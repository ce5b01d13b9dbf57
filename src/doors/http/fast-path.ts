/**
 * A way past the framework for plain requests: a POST of one of a few routes, whole, small, and of a shape that leaves nothing to
 * interpretation (`fast-path-head.ts`). It costs a third of the framework's time. Invariants:
 *
 * - anything else, whatever it is, goes to the framework with all of its bytes, and its connection stays there;
 * - until a request is known to be plain, its caller known and its rate within bounds, nothing has happened: the framework
 *   may look at it as if nobody had before, and it is the framework that refuses;
 * - requests of one connection are answered one after the other, in their order;
 * - a request passes the gate, and is measured and refused, as one that the framework read.
 */
import { IncomingMessage, type Server, ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { assert } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import type { Action } from '../../governance/gate-contract.ts';
import { AnswerBody } from '../shared/http-answer-body.ts';
import type { HttpContext, GateRequest } from './context.ts';
import { callerOf } from './invoke.ts';
import { type Overtaken, stalledMs, watchUnsent } from '../shared/stream-lease.ts';
import type { PendingWork } from '../shared/request-turns.ts';
import { FastPathClient } from './fast-path-client.ts';
import type { PlainHead } from './fast-path-head.ts';
import { problemType, toServiceError } from './problem.ts';
import { refusalOf } from './error-reply.ts';
import type { ReplyBytes } from './fast-path-reply.ts';

export interface FastPathRoute {
  /** The route's path in the framework. */
  readonly url: string;
  readonly action: Action;
  readonly bucket: 'read' | 'write';
  readonly takes: (target: string) => boolean;
  /** Parses a body; undefined where it is not plain. */
  readonly bodyOf: (bytes: Buffer) => unknown;
  readonly answer: (request: GateRequest) => Promise<FastPathAnswer>;
}

/** A reply of status 200: a text of which each character is a byte, bytes, or pieces that leave at the client's pace. */
export type FastPathAnswer = { readonly contentType: string } & ({ readonly latin1: string } | Whole | Pieces);

interface Whole extends Overtaken {
  readonly whole: ReplyBytes;
}

interface Pieces extends Overtaken {
  readonly pieces: Iterator<Uint8Array>;
}

/** Larger requests are rare, and their cost does not depend on the head. */
const requestBytesMax = 64 * 1024;
const headBytesMax = 8 * 1024;
/** While more than this waits for a client, none of its next requests is looked at. */
const unsentBytesMax = 64 * 1024;
const keepAliveMs = 75_000;
/** A request that takes longer to arrive is not small, or not in a hurry: the framework has time-outs for both. */
const arrivalMs = 2_000;
const sweepMs = 1_000;

export class FastPath {
  readonly context: HttpContext;
  readonly routes: readonly FastPathRoute[];
  readonly #server: Server;
  readonly #framework: (socket: Socket) => void;
  readonly #connections = new Set<FastPathConnection>();
  readonly #closing = new AbortController();
  #date = '';
  #dateUntilMs = Number.NEGATIVE_INFINITY;

  constructor(context: HttpContext, server: Server, routes: readonly FastPathRoute[]) {
    this.context = context;
    this.routes = routes;
    this.#server = server;
    const [framework, ...others] = server.listeners('connection') as ((socket: Socket) => void)[];
    assert(framework !== undefined && others.length === 0, 'the framework takes connections in one place');
    this.#framework = framework;
    server.removeAllListeners('connection');
    server.on('connection', (socket: Socket) => {
      if (this.draining) this.toFramework(socket, null);
      else this.#connections.add(new FastPathConnection(this, socket));
    });
  }

  get draining(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Runs until `drain`: connections that are silent for long end, and requests that arrive slowly are the framework's. */
  async sweep(): Promise<void> {
    const { clock } = this.context;
    for (;;) {
      await clock.sleep(sweepMs, this.#closing.signal);
      if (this.draining) return;
      const nowMs = clock.monotonicMs();
      for (const connection of this.#connections) connection.sweep(nowMs);
    }
  }

  /** Connections end with the answer that they wait for; idle ones end now. */
  drain(): void {
    this.#closing.abort();
    for (const connection of this.#connections) connection.drain();
  }

  cutOff(): void {
    for (const connection of this.#connections) connection.socket.destroy();
  }

  leave(connection: FastPathConnection): void {
    this.#connections.delete(connection);
  }

  toFramework(socket: Socket, read: Buffer | null): void {
    socket.pause();
    if (read !== null && read.length > 0) socket.unshift(read);
    this.#framework.call(this.#server, socket);
    this.context.connections.ration(socket);
    // Listeners first, bytes after them.
    process.nextTick(() => socket.resume());
  }

  /** The date of this second, or the one before. */
  date(): string {
    const { clock } = this.context;
    const nowMs = clock.monotonicMs();
    if (nowMs >= this.#dateUntilMs) {
      this.#date = new Date(Number(clock.now() / 1_000_000n)).toUTCString();
      this.#dateUntilMs = nowMs + 1_000;
    }
    return this.#date;
  }
}

/** A plain request, with the properties that the framework would derive from the same bytes. */
class PlainRequest implements GateRequest {
  readonly id: string;
  readonly method = 'POST';
  readonly routeOptions: Pick<FastPathRoute, 'url' | 'bucket'>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
  readonly raw: { readonly url: string; readonly socket: Socket };
  caller: Caller | null;
  recorded = false;

  constructor(id: string, route: PlainRequest['routeOptions'], head: PlainHead, body: unknown, socket: Socket, caller: Caller) {
    this.id = id;
    this.routeOptions = route;
    this.headers = head.headers;
    this.body = body;
    this.raw = { url: head.target, socket };
    this.caller = caller;
  }
}

class FastPathConnection implements PendingWork {
  readonly socket: Socket;
  readonly #fastPath: FastPath;
  readonly #client: FastPathClient;
  #read: Buffer | null = null;
  /** A request is worked on, or its answer waits for the client. */
  #busy = false;
  #isInLine = false;
  #full = false;
  #left = false;
  /** Since when the client has the word. */
  #waitingSinceMs: number;
  constructor(fastPath: FastPath, socket: Socket) {
    this.#fastPath = fastPath;
    this.socket = socket;
    this.#client = new FastPathClient(socket);
    this.#waitingSinceMs = fastPath.context.clock.monotonicMs();
    socket.on('data', this.#onData).on('end', this.#onEnd).on('error', this.#onError).on('close', this.#onClose);
  }

  sweep(nowMs: number): void {
    if (this.#busy && !this.#full) return;
    const silentMs = nowMs - this.#waitingSinceMs;
    if (this.socket.writableLength > 0) {
      if (silentMs > stalledMs) this.socket.destroy();
    } else if (this.#read !== null ? silentMs > arrivalMs : silentMs > keepAliveMs) {
      if (this.#read !== null) this.#leave();
      else this.socket.destroy();
    }
  }

  drain(): void {
    if (this.#full) return this.socket.destroySoon();
    if (this.#busy) return;
    // With half a request pending, the framework handles the connection while it closes.
    if (this.#read !== null) this.#leave();
    else this.socket.destroy();
  }

  readonly #onData = (bytes: Buffer): void => {
    this.#read = this.#read === null ? bytes : Buffer.concat([this.#read, bytes]);
    if (!this.#busy && !this.#isInLine) this.#wait();
    // The next request waits for the answer to this one, and so do the ones behind it.
    else if (this.#read.length > requestBytesMax) this.socket.pause();
  };

  readonly #onEnd = (): void => void this.socket.end();

  readonly #onError = (): void => void this.socket.destroy();

  readonly #onClose = (): void => {
    this.#left = true;
    this.#fastPath.leave(this);
  };

  #wait(): void {
    this.#isInLine = true;
    this.#fastPath.context.connections.known.next(this);
  }

  /** Requests that are here already, until one is being worked on. */
  work(): number {
    this.#isInLine = false;
    const before = this.#read?.length ?? 0;
    this.#takeAll();
    return before - (this.#read?.length ?? 0);
  }

  #takeAll(): void {
    if (this.#read !== null && this.socket.isPaused()) this.socket.resume();
    while (!this.#busy && !this.#left && this.#read !== null) {
      const taken = this.#take(this.#read);
      if (taken === 'incomplete') return;
      if (taken === 'not plain') return this.#leave();
    }
  }

  #take(read: Buffer): 'taken' | 'incomplete' | 'not plain' {
    const headEnd = read.indexOf(emptyLine);
    // How long a head may be is the framework's to say.
    if (headEnd > headBytesMax) return 'not plain';
    if (headEnd < 0) return read.length < headBytesMax && isPost(read) ? 'incomplete' : 'not plain';
    const head = this.#client.readHead(read.toString('latin1', 0, headEnd));
    const size = headEnd + emptyLine.length + (head?.contentLength ?? 0);
    const route =
      head === null || size > requestBytesMax ? undefined : this.#fastPath.routes.find(({ takes }) => takes(head.target));
    if (head === null || route === undefined) return 'not plain';
    if (read.length < size) return 'incomplete';
    const body = route.bodyOf(read.subarray(headEnd + emptyLine.length, size));
    const caller = body === undefined ? null : this.#client.admit(head, route.bucket, this.socket, this.#fastPath.context);
    if (caller === null) return 'not plain';
    this.#read = read.length === size ? null : read.subarray(size);
    const request = new PlainRequest(this.#fastPath.context.ids.next(), route, head, body, this.socket, caller);
    this.#busy = true;
    void this.#answer(route, request);
    return 'taken';
  }

  async #answer(route: FastPathRoute, request: PlainRequest): Promise<void> {
    const { context } = this.#fastPath;
    const startedMs = context.clock.monotonicMs();
    let status = 200;
    try {
      const answer = await route.answer(request);
      if ('whole' in answer) this.#writeWhole(route, request, answer);
      else if ('latin1' in answer) this.#write(200, answer.contentType, '', answer.latin1);
      else await this.#stream(route, request, answer);
    } catch (error) {
      const destination = { route: route.url, access: 'token', action: route.action } as const;
      const refusal = await refusalOf(context, request, destination, toServiceError(error));
      ({ status } = refusal);
      const headers = refusal.headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
      this.#write(status, problemType, headers, Buffer.from(refusal.text).toString('latin1'));
    }
    const nowMs = context.clock.monotonicMs();
    context.metrics.countRequest(route.url, 'POST', status, (nowMs - startedMs) / 1000);
    this.#waitingSinceMs = nowMs;
    if (this.#fastPath.draining) this.socket.destroySoon();
    else if (this.socket.writableLength > unsentBytesMax) {
      this.#full = true;
      this.socket.once('drain', this.#goOn);
    } else this.#goOn();
  }

  /** Continues with the requests that came meanwhile. */
  readonly #goOn = (): void => {
    this.#full = this.#busy = false;
    this.#waitingSinceMs = this.#fastPath.context.clock.monotonicMs();
    if (this.#read !== null && !this.#isInLine) this.#wait();
  };

  #writeWhole(route: FastPathRoute, { id }: PlainRequest, answer: FastPathAnswer & Whole): void {
    const { contentType, whole } = answer;
    if (this.socket.destroyed || this.socket.writableEnded) return whole.release();
    whole.send(this.socket, this.#replyHead(200, contentType, '', whole.bodyLength));
    const { socket } = this;
    // Nearly always: the client has taken it at once.
    if (socket.writableLength === 0) return;
    // Node counts pending bytes as written.
    const end = socket.bytesWritten;
    const unsent = (): number => (socket.destroyed ? 0 : Math.max(0, end - (socket.bytesWritten - socket.writableLength)));
    const { context } = this.#fastPath;
    watchUnsent(context, answer, unsent, (error) => {
      context.log({ event: 'answer cut off', correlationId: id, route: route.url, error });
      socket.destroy();
    });
  }

  /** Head and body in one write. */
  #write(status: number, contentType: string, headers: string, latin1: string): void {
    if (this.socket.destroyed || this.socket.writableEnded) return;
    this.socket.write(`${this.#replyHead(status, contentType, headers, latin1.length)}${latin1}`, 'latin1');
  }

  #replyHead(status: number, contentType: string, headers: string, length: number): string {
    const connection = this.#fastPath.draining ? 'connection: close\r\n' : keptAlive;
    return (
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: ${contentType}\r\n${headers}` +
      `content-length: ${length}\r\ndate: ${this.#fastPath.date()}\r\n${connection}\r\n`
    );
  }

  /** Through Node's own response: chunks, and what becomes of them when the client goes away. */
  async #stream(route: FastPathRoute, request: PlainRequest, answer: FastPathAnswer & Pieces): Promise<void> {
    const { contentType, pieces, overtaken } = answer;
    const message = new IncomingMessage(this.socket);
    message.method = 'POST';
    message.httpVersionMajor = message.httpVersionMinor = 1;
    const response = new ServerResponse(message);
    response.shouldKeepAlive = !this.#fastPath.draining;
    response.assignSocket(this.socket);
    const over = new Promise<void>((resolve) => response.once('finish', resolve).once('close', resolve));
    response.writeHead(200, { 'content-type': contentType });
    const asked = { id: request.id, route: route.url, caller: callerOf(request), overtaken };
    await new AnswerBody(this.#fastPath.context, asked, response).sendAll(pieces);
    await over;
    response.detachSocket(this.socket);
  }

  #leave(): void {
    this.#left = true;
    this.#fastPath.leave(this);
    const { socket } = this;
    socket.off('data', this.#onData).off('end', this.#onEnd).off('error', this.#onError).off('close', this.#onClose);
    this.#fastPath.toFramework(socket, this.#read);
    this.#read = null;
  }
}

const emptyLine = Buffer.from('\r\n\r\n');
const postBytes = Buffer.from('POST /');
const keptAlive = `connection: keep-alive\r\nkeep-alive: timeout=${keepAliveMs / 1000}\r\n`;

/** Whether the bytes so far begin a POST. */
function isPost(read: Buffer): boolean {
  const length = Math.min(read.length, postBytes.length);
  return read.compare(postBytes, 0, length, 0, length) === 0;
}
