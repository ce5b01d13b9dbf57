/** The object door: S3's protocol over HTTP/1.1. Source: specification, "Compatibility doors" and "Door details". */
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { Socket } from 'node:net';
import { onceAMinute } from '../../governance/once-a-minute.ts';
import type { Door } from '../door.ts';
import { Drain } from '../frame/drain.ts';
import { listenOn } from '../frame/listen.ts';
import { HttpStrangers } from '../frame/strangers.ts';
import { Bodies, isShort } from '../http/bodies.ts';
import { timeouts } from '../http/server.ts';
import { BucketTraffic } from './bucket-traffic.ts';
import { doorName, HttpExchange } from './http-exchange.ts';
import { operationOf } from './operations.ts';
import type { ObjectDoorOptions, ObjectParts } from './exchange.ts';
import { Uploads } from './uploads.ts';

/** Compatibility doors listen on this machine only. */
const host = '127.0.0.1';
const connectionsMax = 10_000;
const headersBytesMax = 16_384;
/** Documents that clients send: lists of keys and of parts. */
const documentBytesMax = 4 << 20;

export function createObjectDoor(options: ObjectDoorOptions): Door {
  const { settings, tls, clock, random } = options;
  const bodies = new Bodies(clock, documentBytesMax, options.yieldTurn);
  const uploads = new Uploads({ clock, random });
  const draining = new Drain(clock, settings.SERVICE_DRAIN_TIMEOUT_SECS * 1000);
  const unknown = new HttpStrangers(options.yieldTurn);
  const parts: ObjectParts = { ...options, draining, unknown, bodies, uploads, traffic: new BucketTraffic() };
  const turns = new Turns();
  const answer = async (raw: IncomingMessage, response: ServerResponse, waits: boolean): Promise<void> => {
    try {
      await turns.next(raw.socket, response);
      if (raw.socket.destroyed) return;
      if (draining.hasBegun && isShort(raw)) response.shouldKeepAlive = false;
      await new HttpExchange(parts, raw, response, waits).run(operationOf);
    } catch (error) {
      options.failed(error);
      response.destroy();
    }
  };
  const http = {
    headersTimeout: timeouts.headersMs,
    connectionsCheckingInterval: timeouts.checkMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    // A body may take hours; `bodies.ts` bounds how slowly it may come.
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
    return typeof address === 'object' && address !== null ? address.port : settings.SERVICE_OBJECT_PORT;
  };
  /** Requests in hand are answered; what is not done when the drain time is over is cut off. */
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
    await uploads.close();
  };
  return {
    name: doorName,
    get port() {
      return port();
    },
    async start() {
      void bodies.sweep();
      onceAMinute(clock, stopping.signal, () => uploads.endIdle()).catch(options.failed);
      const listening = { setting: 'SERVICE_OBJECT_PORT', host, port: settings.SERVICE_OBJECT_PORT } as const;
      await listenOn(
        listening,
        () =>
          new Promise<void>((resolve, reject) => {
            server.once('error', reject);
            server.listen({ host, port: listening.port }, () => {
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

/** Requests that one connection sends ahead of its answers; a client that sends more is cut off. */
const aheadMax = 100;

/** Requests of one connection are worked on one after the other: for a client that does not read, one answer waits. */
class Turns {
  readonly #waiting = new WeakMap<Socket, { last: Promise<unknown>; count: number }>();

  async next(socket: Socket, response: ServerResponse): Promise<void> {
    const line = this.#waiting.get(socket) ?? { last: Promise.resolve(), count: 0 };
    this.#waiting.set(socket, line);
    const before = line.last;
    line.last = new Promise((resolve) => response.once('close', resolve));
    if (++line.count > aheadMax) socket.destroy();
    await before;
    line.count--;
  }
}
