/**
 * A door over HTTP/1.1 that is not the framework's: it listens on this machine, reads strangers in portions, works on the
 * requests of one connection one after the other, and drains. The protocol gives requests their meaning.
 */
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Clock } from '../../clock.ts';
import type { SettingName } from '../../config.ts';
import type { Door } from '../door.ts';
import { Drain } from './drain.ts';
import { listenOn } from './listening-ports.ts';
import { HttpConnections } from './http-connections.ts';
import { RequestBodies, isShort } from './http-request-bodies.ts';

/** How long a client may take: slow ones are cut off, slow queries are the planner's business. */
export const timeouts = { headersMs: 10_000, keepAliveMs: 75_000, checkMs: 1_000 } as const;

/** Compatibility doors listen on this machine only. */
const httpHost = '127.0.0.1';
const httpConnectionsMax = 10_000;
const httpHeadersBytesMax = 16_384;

export interface HttpListenerOptions {
  readonly name: string;
  /** Names the port. */
  readonly setting: SettingName;
  readonly port: number;
  readonly drainMs: number;
  /** A body that is collected has at most so many bytes. */
  readonly bodyBytesMax: number;
  /** PEM texts: clients speak TLS 1.2 or later. */
  readonly tls: { readonly cert: string; readonly key: string } | null;
  readonly clock: Clock;
  /** Gives other work a turn. */
  readonly yieldTurn: () => Promise<void>;
  readonly reportFailure: (error: unknown) => void;
}

/** Services that the listener makes for the requests of its door. */
export interface HttpRoom {
  readonly bodies: RequestBodies;
  readonly draining: Drain;
  readonly connections: HttpConnections;
}

export interface HttpProtocol {
  /** Answers one request. `waits`: its client sends the body only after `100 Continue`. */
  answer(raw: IncomingMessage, response: ServerResponse, waits: boolean): Promise<void>;
  /** Starts the door's own background work; `stopping` aborts when the door has closed. */
  start?(stopping: AbortSignal): void;
  stop?(): Promise<void>;
}

export function createHttpListener(listenerOptions: HttpListenerOptions, openProtocol: (room: HttpRoom) => HttpProtocol): Door {
  return new HttpListener(listenerOptions, openProtocol);
}

class HttpListener implements Door {
  readonly name: string;
  readonly #listenerOptions: HttpListenerOptions;
  readonly #requestBodies: RequestBodies;
  readonly #httpDraining: Drain;
  readonly #httpProtocol: HttpProtocol;
  readonly #socketTurns = new SocketTurns();
  readonly #httpServer: Server;
  readonly #listenerStopping = new AbortController();
  #listenerStopped: Promise<void> | null = null;

  constructor(listenerOptions: HttpListenerOptions, openProtocol: (room: HttpRoom) => HttpProtocol) {
    const { name: listenerName, clock: listenerClock, yieldTurn, tls } = listenerOptions;
    this.name = listenerName;
    this.#listenerOptions = listenerOptions;
    this.#requestBodies = new RequestBodies(listenerClock, listenerOptions.bodyBytesMax, yieldTurn);
    this.#httpDraining = new Drain(listenerClock, listenerOptions.drainMs);
    const httpConnections = new HttpConnections(listenerClock);
    this.#httpProtocol = openProtocol({
      bodies: this.#requestBodies,
      draining: this.#httpDraining,
      connections: httpConnections,
    });
    this.#httpServer = createHttpServer(
      tls,
      (httpRequest, httpResponse) => void this.#answerRequest(httpRequest, httpResponse, false),
    );
    this.#httpServer.on(
      'checkContinue',
      (httpRequest: IncomingMessage, httpResponse: ServerResponse) => void this.#answerRequest(httpRequest, httpResponse, true),
    );
    httpConnections.watch(this.#httpServer);
  }

  get port(): number {
    const boundAddress = this.#httpServer.address();
    return typeof boundAddress === 'object' && boundAddress !== null ? boundAddress.port : this.#listenerOptions.port;
  }

  async start(): Promise<void> {
    const { setting, port } = this.#listenerOptions;
    void this.#requestBodies.sweep();
    this.#httpProtocol.start?.(this.#listenerStopping.signal);
    await listenOn({ setting, host: httpHost, port }, () => this.#listenOnPort(port));
  }

  #listenOnPort(httpPort: number): Promise<void> {
    const httpServer = this.#httpServer;
    return new Promise<void>((onListening, onListenError) => {
      httpServer.once('error', onListenError);
      httpServer.listen({ host: httpHost, port: httpPort }, () => {
        httpServer.off('error', onListenError);
        onListening();
      });
    });
  }

  async #answerRequest(httpRequest: IncomingMessage, httpResponse: ServerResponse, waitsForContinue: boolean): Promise<void> {
    try {
      await this.#socketTurns.next(httpRequest.socket, httpResponse);
      if (httpRequest.socket.destroyed) return;
      if (this.#httpDraining.hasBegun && isShort(httpRequest)) httpResponse.shouldKeepAlive = false;
      await this.#httpProtocol.answer(httpRequest, httpResponse, waitsForContinue);
    } catch (answerError) {
      this.#listenerOptions.reportFailure(answerError);
      httpResponse.destroy();
    }
  }

  /** Running requests are answered; those that exceed the drain time are cut off. */
  drain(): void {
    this.#httpDraining.begin();
    this.#httpServer.closeIdleConnections();
  }

  stop(): Promise<void> {
    this.#listenerStopped ??= this.#closeListener();
    return this.#listenerStopped;
  }

  async #closeListener(): Promise<void> {
    this.drain();
    const serverClosed = new AbortController();
    this.#requestBodies.stopDiscarding();
    const serverClosing = new Promise<void>((onClosed) => void this.#httpServer.close(() => onClosed())).finally(() =>
      serverClosed.abort(),
    );
    await this.#httpDraining.end(serverClosed.signal);
    if (!serverClosed.signal.aborted) this.#httpServer.closeAllConnections();
    await serverClosing;
    this.#requestBodies.close();
    this.#listenerStopping.abort();
    await this.#httpProtocol.stop?.();
  }
}

function createHttpServer(serverTls: HttpListenerOptions['tls'], requestListener: RequestListener): Server {
  const httpOptions = {
    headersTimeout: timeouts.headersMs,
    connectionsCheckingInterval: timeouts.checkMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    // A body may take hours; `http-request-bodies.ts` bounds how slowly it may come.
    requestTimeout: 0,
    maxHeaderSize: httpHeadersBytesMax,
  };
  const httpServer: Server = serverTls
    ? createSecureServer({ ...httpOptions, ...serverTls, minVersion: 'TLSv1.2' }, requestListener)
    : createServer(httpOptions, requestListener);
  httpServer.maxConnections = httpConnectionsMax;
  httpServer.maxHeadersCount = 0;
  return httpServer;
}

/** Requests of one connection are worked on one after the other: for a client that does not read, one answer waits. */
class SocketTurns {
  readonly #lastAnswerBySocket = new WeakMap<Socket, Promise<unknown>>();

  async next(requestSocket: Socket, httpResponse: ServerResponse): Promise<void> {
    const previousAnswer = this.#lastAnswerBySocket.get(requestSocket);
    this.#lastAnswerBySocket.set(requestSocket, new Promise((onAnswered) => httpResponse.once('close', onAnswered)));
    await previousAnswer;
  }
}
