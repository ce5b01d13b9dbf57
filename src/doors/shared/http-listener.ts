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
const host = '127.0.0.1';
const connectionsMax = 10_000;
const headersBytesMax = 16_384;

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

export function createHttpListener(options: HttpListenerOptions, open: (room: HttpRoom) => HttpProtocol): Door {
  return new HttpListener(options, open);
}

class HttpListener implements Door {
  readonly name: string;
  readonly #options: HttpListenerOptions;
  readonly #bodies: RequestBodies;
  readonly #draining: Drain;
  readonly #protocol: HttpProtocol;
  readonly #turns = new Turns();
  readonly #server: Server;
  readonly #stopping = new AbortController();
  #stopped: Promise<void> | null = null;

  constructor(options: HttpListenerOptions, open: (room: HttpRoom) => HttpProtocol) {
    const { name, clock, yieldTurn, tls } = options;
    this.name = name;
    this.#options = options;
    this.#bodies = new RequestBodies(clock, options.bodyBytesMax, yieldTurn);
    this.#draining = new Drain(clock, options.drainMs);
    const connections = new HttpConnections(clock);
    this.#protocol = open({ bodies: this.#bodies, draining: this.#draining, connections });
    this.#server = createHttpServer(tls, (raw, response) => void this.#answer(raw, response, false));
    this.#server.on('checkContinue', (raw: IncomingMessage, response: ServerResponse) => void this.#answer(raw, response, true));
    connections.watch(this.#server);
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : this.#options.port;
  }

  async start(): Promise<void> {
    const { setting, port } = this.#options;
    void this.#bodies.sweep();
    this.#protocol.start?.(this.#stopping.signal);
    await listenOn({ setting, host, port }, () => this.#listen(port));
  }

  #listen(port: number): Promise<void> {
    const server = this.#server;
    return new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port }, () => {
        server.off('error', reject);
        resolve();
      });
    });
  }

  async #answer(raw: IncomingMessage, response: ServerResponse, waits: boolean): Promise<void> {
    try {
      await this.#turns.next(raw.socket, response);
      if (raw.socket.destroyed) return;
      if (this.#draining.hasBegun && isShort(raw)) response.shouldKeepAlive = false;
      await this.#protocol.answer(raw, response, waits);
    } catch (error) {
      this.#options.reportFailure(error);
      response.destroy();
    }
  }

  /** Running requests are answered; those that exceed the drain time are cut off. */
  drain(): void {
    this.#draining.begin();
    this.#server.closeIdleConnections();
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#close();
    return this.#stopped;
  }

  async #close(): Promise<void> {
    this.drain();
    const closed = new AbortController();
    this.#bodies.stopDiscarding();
    const closing = new Promise<void>((resolve) => void this.#server.close(() => resolve())).finally(() => closed.abort());
    await this.#draining.end(closed.signal);
    if (!closed.signal.aborted) this.#server.closeAllConnections();
    await closing;
    this.#bodies.close();
    this.#stopping.abort();
    await this.#protocol.stop?.();
  }
}

function createHttpServer(tls: HttpListenerOptions['tls'], listener: RequestListener): Server {
  const http = {
    headersTimeout: timeouts.headersMs,
    connectionsCheckingInterval: timeouts.checkMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    // A body may take hours; `http-request-bodies.ts` bounds how slowly it may come.
    requestTimeout: 0,
    maxHeaderSize: headersBytesMax,
  };
  const server: Server = tls
    ? createSecureServer({ ...http, ...tls, minVersion: 'TLSv1.2' }, listener)
    : createServer(http, listener);
  server.maxConnections = connectionsMax;
  server.maxHeadersCount = 0;
  return server;
}

/** Requests of one connection are worked on one after the other: for a client that does not read, one answer waits. */
class Turns {
  readonly #last = new WeakMap<Socket, Promise<unknown>>();

  async next(socket: Socket, response: ServerResponse): Promise<void> {
    const before = this.#last.get(socket);
    this.#last.set(socket, new Promise((resolve) => response.once('close', resolve)));
    await before;
  }
}
