/** The object door: S3's protocol over HTTP/1.1. Source: specification, "Compatibility doors" and "Door details". */
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { Door } from '../door.ts';
import { listenOn } from '../frame/listen.ts';
import { Bodies } from '../http/bodies.ts';
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
  const parts: ObjectParts = { ...options, bodies, uploads, traffic: new BucketTraffic() };
  const answer = (raw: IncomingMessage, response: ServerResponse, waits: boolean): void =>
    void new HttpExchange(parts, raw, response, waits).run(operationOf).catch((error: unknown) => {
      options.failed(error);
      response.destroy();
    });
  const http = {
    headersTimeout: timeouts.headersMs,
    connectionsCheckingInterval: timeouts.checkMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    // A body may take hours; `bodies.ts` bounds how slowly it may come.
    requestTimeout: 0,
    maxHeaderSize: headersBytesMax,
  };
  const listener: RequestListener = (raw, response) => answer(raw, response, false);
  const server: Server = tls
    ? createSecureServer({ ...http, ...tls, minVersion: 'TLSv1.2' }, listener)
    : createServer(http, listener);
  server.on('checkContinue', (raw: IncomingMessage, response: ServerResponse) => answer(raw, response, true));
  server.maxConnections = connectionsMax;
  server.maxHeadersCount = 0;
  let stopped: Promise<void> | null = null;
  const port = (): number => {
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : settings.SERVICE_OBJECT_PORT;
  };
  /** Requests in hand are answered; what is not done when the drain time is over is cut off. */
  const drain = async (): Promise<void> => {
    const closed = new AbortController();
    bodies.stopDiscarding();
    const closing = new Promise<void>((resolve) => void server.close(() => resolve())).finally(() => closed.abort());
    server.closeIdleConnections();
    await clock.sleep(settings.SERVICE_DRAIN_TIMEOUT_SECS * 1000, closed.signal);
    if (!closed.signal.aborted) server.closeAllConnections();
    await closing;
    bodies.close();
    await uploads.close();
  };
  return {
    name: doorName,
    get port() {
      return port();
    },
    async start() {
      void bodies.sweep();
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
    stop() {
      stopped ??= drain();
      return stopped;
    },
  };
}
