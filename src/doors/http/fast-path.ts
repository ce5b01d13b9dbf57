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
export type FastPathAnswer = { readonly contentType: string } & (
  | { readonly latin1: string }
  | WholePlainAnswer
  | PlainAnswerPieces
);

interface WholePlainAnswer extends Overtaken {
  readonly whole: ReplyBytes;
}

interface PlainAnswerPieces extends Overtaken {
  readonly pieces: Iterator<Uint8Array>;
}

/** Larger requests are rare, and their cost does not depend on the head. */
const plainRequestBytesMax = 64 * 1024;
const plainHeadBytesMax = 8 * 1024;
/** While more than this waits for a client, none of its next requests is looked at. */
const unsentReplyBytesMax = 64 * 1024;
const plainKeepAliveMs = 75_000;
/** A request that takes longer to arrive is not small, or not in a hurry: the framework has time-outs for both. */
const requestArrivalMs = 2_000;
const connectionSweepMs = 1_000;

export class FastPath {
  readonly context: HttpContext;
  readonly routes: readonly FastPathRoute[];
  readonly #server: Server;
  readonly #framework: (socket: Socket) => void;
  readonly #connections = new Set<FastPathConnection>();
  readonly #closing = new AbortController();
  #date = '';
  #dateUntilMs = Number.NEGATIVE_INFINITY;

  constructor(httpContext: HttpContext, httpServer: Server, plainRoutes: readonly FastPathRoute[]) {
    this.context = httpContext;
    this.routes = plainRoutes;
    this.#server = httpServer;
    const [frameworkListener, ...otherListeners] = httpServer.listeners('connection') as ((httpSocket: Socket) => void)[];
    assert(frameworkListener !== undefined && otherListeners.length === 0, 'the framework takes connections in one place');
    this.#framework = frameworkListener;
    httpServer.removeAllListeners('connection');
    httpServer.on('connection', (httpSocket: Socket) => {
      if (this.draining) this.toFramework(httpSocket, null);
      else this.#connections.add(new FastPathConnection(this, httpSocket));
    });
  }

  get draining(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Runs until `drain`: connections that are silent for long end, and requests that arrive slowly are the framework's. */
  async sweep(): Promise<void> {
    const { clock } = this.context;
    for (;;) {
      await clock.sleep(connectionSweepMs, this.#closing.signal);
      if (this.draining) return;
      const nowMs = clock.monotonicMs();
      for (const plainConnection of this.#connections) plainConnection.sweep(nowMs);
    }
  }

  /** Connections end with the answer that they wait for; idle ones end now. */
  drain(): void {
    this.#closing.abort();
    for (const plainConnection of this.#connections) plainConnection.drain();
  }

  cutOff(): void {
    for (const plainConnection of this.#connections) plainConnection.socket.destroy();
  }

  leave(plainConnection: FastPathConnection): void {
    this.#connections.delete(plainConnection);
  }

  toFramework(frameworkSocket: Socket, unparsedBytes: Buffer | null): void {
    frameworkSocket.pause();
    if (unparsedBytes !== null && unparsedBytes.length > 0) frameworkSocket.unshift(unparsedBytes);
    this.#framework.call(this.#server, frameworkSocket);
    this.context.connections.ration(frameworkSocket);
    // Listeners first, bytes after them.
    process.nextTick(() => frameworkSocket.resume());
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

  constructor(
    requestId: string,
    plainRoute: PlainRequest['routeOptions'],
    plainHead: PlainHead,
    plainBody: unknown,
    httpSocket: Socket,
    plainCaller: Caller,
  ) {
    this.id = requestId;
    this.routeOptions = plainRoute;
    this.headers = plainHead.headers;
    this.body = plainBody;
    this.raw = { url: plainHead.target, socket: httpSocket };
    this.caller = plainCaller;
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
  constructor(fastPath: FastPath, httpSocket: Socket) {
    this.#fastPath = fastPath;
    this.socket = httpSocket;
    this.#client = new FastPathClient(httpSocket);
    this.#waitingSinceMs = fastPath.context.clock.monotonicMs();
    httpSocket.on('data', this.#onData).on('end', this.#onEnd).on('error', this.#onError).on('close', this.#onClose);
  }

  sweep(nowMs: number): void {
    if (this.#busy && !this.#full) return;
    const silentMs = nowMs - this.#waitingSinceMs;
    if (this.socket.writableLength > 0) {
      if (silentMs > stalledMs) this.socket.destroy();
    } else if (this.#read !== null ? silentMs > requestArrivalMs : silentMs > plainKeepAliveMs) {
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

  readonly #onData = (requestBytes: Buffer): void => {
    this.#read = this.#read === null ? requestBytes : Buffer.concat([this.#read, requestBytes]);
    if (!this.#busy && !this.#isInLine) this.#wait();
    // The next request waits for the answer to this one, and so do the ones behind it.
    else if (this.#read.length > plainRequestBytesMax) this.socket.pause();
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
    const unparsedBefore = this.#read?.length ?? 0;
    this.#takeAll();
    return unparsedBefore - (this.#read?.length ?? 0);
  }

  #takeAll(): void {
    if (this.#read !== null && this.socket.isPaused()) this.socket.resume();
    while (!this.#busy && !this.#left && this.#read !== null) {
      const requestTaken = this.#take(this.#read);
      if (requestTaken === 'incomplete') return;
      if (requestTaken === 'not plain') return this.#leave();
    }
  }

  #take(unparsedBytes: Buffer): 'taken' | 'incomplete' | 'not plain' {
    const headEnd = unparsedBytes.indexOf(headEndBytes);
    // How long a head may be is the framework's to say.
    if (headEnd > plainHeadBytesMax) return 'not plain';
    if (headEnd < 0)
      return unparsedBytes.length < plainHeadBytesMax && startsWithPost(unparsedBytes) ? 'incomplete' : 'not plain';
    const plainHead = this.#client.readHead(unparsedBytes.toString('latin1', 0, headEnd));
    const plainRequestBytes = headEnd + headEndBytes.length + (plainHead?.contentLength ?? 0);
    const plainRoute =
      plainHead === null || plainRequestBytes > plainRequestBytesMax
        ? undefined
        : this.#fastPath.routes.find(({ takes }) => takes(plainHead.target));
    if (plainHead === null || plainRoute === undefined) return 'not plain';
    if (unparsedBytes.length < plainRequestBytes) return 'incomplete';
    const plainBody = plainRoute.bodyOf(unparsedBytes.subarray(headEnd + headEndBytes.length, plainRequestBytes));
    const plainCaller =
      plainBody === undefined ? null : this.#client.admit(plainHead, plainRoute.bucket, this.socket, this.#fastPath.context);
    if (plainCaller === null) return 'not plain';
    this.#read = unparsedBytes.length === plainRequestBytes ? null : unparsedBytes.subarray(plainRequestBytes);
    const plainRequest = new PlainRequest(
      this.#fastPath.context.ids.next(),
      plainRoute,
      plainHead,
      plainBody,
      this.socket,
      plainCaller,
    );
    this.#busy = true;
    void this.#answer(plainRoute, plainRequest);
    return 'taken';
  }

  async #answer(plainRoute: FastPathRoute, plainRequest: PlainRequest): Promise<void> {
    const { context } = this.#fastPath;
    const startedMs = context.clock.monotonicMs();
    let plainStatus = 200;
    try {
      const plainAnswer = await plainRoute.answer(plainRequest);
      if ('whole' in plainAnswer) this.#writeWhole(plainRoute, plainRequest, plainAnswer);
      else if ('latin1' in plainAnswer) this.#write(200, plainAnswer.contentType, '', plainAnswer.latin1);
      else await this.#stream(plainRoute, plainRequest, plainAnswer);
    } catch (error) {
      const plainDestination = { route: plainRoute.url, access: 'token', action: plainRoute.action } as const;
      const plainRefusal = await refusalOf(context, plainRequest, plainDestination, toServiceError(error));
      ({ status: plainStatus } = plainRefusal);
      const refusalHeaders = plainRefusal.headers
        .map(([headerName, headerValue]) => `${headerName}: ${headerValue}\r\n`)
        .join('');
      this.#write(plainStatus, problemType, refusalHeaders, Buffer.from(plainRefusal.text).toString('latin1'));
    }
    const nowMs = context.clock.monotonicMs();
    context.metrics.countRequest(plainRoute.url, 'POST', plainStatus, (nowMs - startedMs) / 1000);
    this.#waitingSinceMs = nowMs;
    if (this.#fastPath.draining) this.socket.destroySoon();
    else if (this.socket.writableLength > unsentReplyBytesMax) {
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

  #writeWhole(plainRoute: FastPathRoute, { id }: PlainRequest, wholeAnswer: FastPathAnswer & WholePlainAnswer): void {
    const { contentType, whole: replyBytes } = wholeAnswer;
    if (this.socket.destroyed || this.socket.writableEnded) return replyBytes.release();
    replyBytes.send(this.socket, this.#replyHead(200, contentType, '', replyBytes.bodyLength));
    const { socket } = this;
    // Nearly always: the client has taken it at once.
    if (socket.writableLength === 0) return;
    // Node counts pending bytes as written.
    const replyEnd = socket.bytesWritten;
    const unsentReplyBytes = (): number =>
      socket.destroyed ? 0 : Math.max(0, replyEnd - (socket.bytesWritten - socket.writableLength));
    const { context } = this.#fastPath;
    watchUnsent(context, wholeAnswer, unsentReplyBytes, (error) => {
      context.log({ event: 'answer cut off', correlationId: id, route: plainRoute.url, error });
      socket.destroy();
    });
  }

  /** Head and body in one write. */
  #write(replyStatus: number, contentType: string, replyHeaders: string, latin1Body: string): void {
    if (this.socket.destroyed || this.socket.writableEnded) return;
    this.socket.write(`${this.#replyHead(replyStatus, contentType, replyHeaders, latin1Body.length)}${latin1Body}`, 'latin1');
  }

  #replyHead(replyStatus: number, contentType: string, replyHeaders: string, replyLength: number): string {
    const connectionHeaders = this.#fastPath.draining ? 'connection: close\r\n' : keepAliveHeaders;
    return (
      `HTTP/1.1 ${replyStatus} ${STATUS_CODES[replyStatus]}\r\ncontent-type: ${contentType}\r\n${replyHeaders}` +
      `content-length: ${replyLength}\r\ndate: ${this.#fastPath.date()}\r\n${connectionHeaders}\r\n`
    );
  }

  /** Through Node's own response: chunks, and what becomes of them when the client goes away. */
  async #stream(
    plainRoute: FastPathRoute,
    plainRequest: PlainRequest,
    plainAnswer: FastPathAnswer & PlainAnswerPieces,
  ): Promise<void> {
    const { contentType, pieces: replyPieces, overtaken: isOvertaken } = plainAnswer;
    const incomingMessage = new IncomingMessage(this.socket);
    incomingMessage.method = 'POST';
    incomingMessage.httpVersionMajor = incomingMessage.httpVersionMinor = 1;
    const serverResponse = new ServerResponse(incomingMessage);
    serverResponse.shouldKeepAlive = !this.#fastPath.draining;
    serverResponse.assignSocket(this.socket);
    const responseOver = new Promise<void>((resolve) => serverResponse.once('finish', resolve).once('close', resolve));
    serverResponse.writeHead(200, { 'content-type': contentType });
    const answeredRequest = {
      id: plainRequest.id,
      route: plainRoute.url,
      caller: callerOf(plainRequest),
      overtaken: isOvertaken,
    };
    await new AnswerBody(this.#fastPath.context, answeredRequest, serverResponse).sendAll(replyPieces);
    await responseOver;
    serverResponse.detachSocket(this.socket);
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

const headEndBytes = Buffer.from('\r\n\r\n');
const postLineBytes = Buffer.from('POST /');
const keepAliveHeaders = `connection: keep-alive\r\nkeep-alive: timeout=${plainKeepAliveMs / 1000}\r\n`;

/** Whether the bytes so far begin a POST. */
function startsWithPost(unparsedBytes: Buffer): boolean {
  const comparedBytes = Math.min(unparsedBytes.length, postLineBytes.length);
  return unparsedBytes.compare(postLineBytes, 0, comparedBytes, 0, comparedBytes) === 0;
}
