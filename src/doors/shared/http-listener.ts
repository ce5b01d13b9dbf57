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
import { HttpStrangers } from './unauthenticated-connections.ts';
import { Bodies, isShort } from './http-request-bodies.ts';

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
  readonly bodies: Bodies;
  readonly draining: Drain;
  readonly unknown: HttpStrangers;
}

export interface HttpProtocol {
  /** Answers one request. `waits`: its client sends the body only after `100 Continue`. */
  answer(raw: IncomingMessage, response: ServerResponse, waits: boolean): Promise<void>;
  /** Starts the door's own background work; `stopping` aborts when the door has closed. */
  start?(stopping: AbortSignal): void;
  stop?(): Promise<void>;
}

export function createHttpListener(options: HttpListenerOptions, open: (room: HttpRoom) => HttpProtocol): Door {
  const { name, setting, tls, clock, yieldTurn } = options;
  const bodies = new Bodies(clock, options.bodyBytesMax, yieldTurn);
  const draining = new Drain(clock, options.drainMs);
  const unknown = new HttpStrangers(clock);
  const protocol = open({ bodies, draining, unknown });
  const turns = new Turns();
  const answer = async (raw: IncomingMessage, response: ServerResponse, waits: boolean): Promise<void> => {
    try {
      await turns.next(raw.socket, response);
      if (raw.socket.destroyed) return;
      if (draining.hasBegun && isShort(raw)) response.shouldKeepAlive = false;
      await protocol.answer(raw, response, waits);
    } catch (error) {
      options.reportFailure(error);
      response.destroy();
    }
  };
  const http = {
    headersTimeout: timeouts.headersMs,
    connectionsCheckingInterval: timeouts.checkMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    // A body may take hours; `http-request-bodies.ts` bounds how slowly it may come.
    requestTimeout: 0,
    maxHeaderSize: headersBytesMax,
  };
  const listener: RequestListener = (raw, response) => void answer(raw, response, false);
  const server: Server = tls
    ? createSecureServer({ ...http, ...tls, minVersion: 'TLSv1.2' }, listener)
    : createServer(http, listener);
  server.on('checkContinue', (raw: IncomingMessage, response: ServerResponse) => void answer(raw, response, true));
  unknown.watch(server);
  server.maxConnections = connectionsMax;
  server.maxHeadersCount = 0;
  let stopped: Promise<void> | null = null;
  const stopping = new AbortController();
  const port = (): number => {
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : options.port;
  };
  /** Running requests are answered; those that exceed the drain time are cut off. */
  const drain = (): void => {
    draining.begin();
    server.closeIdleConnections();
  };
  const stop = async (): Promise<void> => {
    drain();
    const closed = new AbortController();
    bodies.stopDiscarding();
    const closing = new Promise<void>((resolve) => void server.close(() => resolve())).finally(() => closed.abort());
    await draining.end(closed.signal);
    if (!closed.signal.aborted) server.closeAllConnections();
    await closing;
    bodies.close();
    stopping.abort();
    await protocol.stop?.();
  };
  return {
    name,
    get port() {
      return port();
    },
    async start() {
      void bodies.sweep();
      protocol.start?.(stopping.signal);
      await listenOn(
        { setting, host, port: options.port },
        () =>
          new Promise<void>((resolve, reject) => {
            server.once('error', reject);
            server.listen({ host, port: options.port }, () => {
              server.off('error', reject);
              resolve();
            });
          }),
      );
    },
    drain,
    stop() {
      stopped ??= stop();
      return stopped;
    },
  };
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
