/**
 * The HTTP door: one listener for data, one on loopback for administration. The order of a request's life is fixed:
 *
 *   headers -> duplicate headers -> rate limit -> credential -> body -> gate -> answer
 *
 * and on every way out of it there is either an answer or one problem record. A request that failed before its route
 * reached the gate is recorded here, so that refused and malformed ones are in the audit trail too.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import fastify from 'fastify';
import type { z } from 'zod';
import { isLoopback } from '../../config.ts';
import { assert, ServiceError } from '../../errors.ts';
import { rateRefusal, RateLimiter, type RateVerdict } from '../../governance/admission/rate-limit.ts';
import { boundlessIn } from '../shared/schema-check.ts';
import type { Door } from '../door.ts';
import { IngestTasks } from './ingest-tasks.ts';
import { RequestBodies, isShort } from '../shared/http-request-bodies.ts';
import { timeouts } from '../shared/http-listener.ts';
import type { App, FastifyReply, FastifyRequest, HttpContext, HttpDoorOptions } from './context.ts';
import { WebConsole } from './console/console.ts';
import { consoleMount } from './console/session-cookie.ts';
import type { Grant } from './console/browser-sessions.ts';
import { exactJson } from '../shared/write-exact-json.ts';
import { refuseForeign } from './foreign-origin.ts';
import { headerText, refuseRepeatedHeaders, transactionHeader } from './request-headers.ts';
import { readBodies } from './body-parsing.ts';
import { jsonBytesMax } from './json-body.ts';
import { Drain, shuttingDown } from '../shared/drain.ts';
import { listenersOf, listenOn } from '../shared/listening-ports.ts';
import { HttpConnections } from '../shared/http-connections.ts';
import { HttpMetrics } from './metrics.ts';
import { describeRoutes } from './openapi.ts';
import { FastPath } from './fast-path.ts';
import { problemOf, problemType, validator } from './problem.ts';
import { refusalOf } from './error-reply.ts';
import { registerRoutes } from './register-routes.ts';
import { RouteTable } from './route-table.ts';
import { adminRoutes, dataRoutes } from './routes/all.ts';
import { consoleSessionRoutes, workbenchRoutes } from './routes/console.ts';
import { plainIngest } from './routes/ingest.ts';
import { callStep } from '../workflows/step-tools.ts';
import { plainQuery } from './routes/query.ts';

const httpConnectionsMax = 10_000;
const pathSegmentLengthMax = 4_096;

export interface HttpDoor extends Door {
  readonly adminPort: number;
  /** Addresses as clients would write them. */
  readonly dataUrl: string;
  readonly adminUrl: string;
  /** An address that opens the console once, within a minute. */
  consoleLink(grant: Grant): string;
}

export async function createHttpDoor(doorOptions: HttpDoorOptions): Promise<HttpDoor> {
  const bodyLimitBytes = doorOptions.settings.SERVICE_BODY_LIMIT_MB * 1024 * 1024;
  const httpContext: HttpContext = {
    ...doorOptions,
    metrics: new HttpMetrics(doorOptions.system, doorOptions.gate),
    bodies: new RequestBodies(doorOptions.clock, bodyLimitBytes, doorOptions.yieldTurn),
    tasks: new IngestTasks(doorOptions.gate, doorOptions.jobs),
    startedMs: doorOptions.clock.monotonicMs(),
    refusalRecordLimit: new RateLimiter(refusalRecordsPerSecond),
    bodyLimitBytes,
    connections: new HttpConnections(doorOptions.clock),
    console: new WebConsole(doorOptions.clock, doorOptions.random, doorOptions.consoleFiles ?? (() => null)),
    draining: new Drain(doorOptions.clock, doorOptions.settings.SERVICE_DRAIN_TIMEOUT_SECS * 1000),
  };
  doorOptions.erasures?.reach(httpContext.tasks);
  doorOptions.serveTools?.((workflowStep) => callStep(httpContext, workflowStep));
  const { settings, tls } = doorOptions;
  const dataListener = createListener(httpContext, tls ?? null);
  await describeRoutes(dataListener, httpContext);
  registerRoutes(dataListener, httpContext, dataRoutes);
  if (settings.SERVICE_WORKBENCH_ENABLE) registerRoutes(dataListener, httpContext, workbenchRoutes);
  const plainLane = tls
    ? null
    : new FastPath(httpContext, dataListener.server as Server, [plainQuery(httpContext), plainIngest(httpContext)]);

  const adminListener = createListener(httpContext, null);
  registerRoutes(adminListener, httpContext, adminRoutes);
  registerRoutes(adminListener, httpContext, consoleSessionRoutes);
  httpContext.console.data = dataListener.routing;
  httpContext.console.admin = adminListener.routing;

  for (const httpListener of [dataListener, adminListener]) httpContext.connections.watch(httpListener.server as Server);
  const listenAddresses = listenersOf(settings);
  let listenersClosed: Promise<void> | null = null;
  const httpDoor: HttpDoor = {
    name: 'http',
    get port() {
      return listenerPort(dataListener, settings.SERVICE_PORT);
    },
    get adminPort() {
      return listenerPort(adminListener, listenAddresses.admin.port);
    },
    get dataUrl() {
      return `${tls ? 'https' : 'http'}://${urlHost(settings.SERVICE_HTTP_BIND)}:${httpDoor.port}`;
    },
    get adminUrl() {
      return `http://${urlHost(listenAddresses.admin.host)}:${httpDoor.adminPort}`;
    },
    consoleLink(consoleGrant) {
      return `${httpDoor.adminUrl}${consoleMount}#code=${httpContext.console.sessions.mintCode(consoleGrant)}`;
    },
    async start() {
      void httpContext.bodies.sweep();
      void plainLane?.sweep();
      await listenOn(listenAddresses.admin, () =>
        adminListener.listen({ host: listenAddresses.admin.host, port: listenAddresses.admin.port }),
      );
      try {
        await listenOn(listenAddresses.data, () =>
          dataListener.listen({ host: listenAddresses.data.host, port: listenAddresses.data.port }),
        );
      } catch (error) {
        await adminListener.close();
        throw error;
      }
    },
    drain() {
      drainListeners(httpContext, [dataListener, adminListener], plainLane);
    },
    stop() {
      listenersClosed ??= closeListeners(httpContext, [dataListener, adminListener], plainLane);
      return listenersClosed;
    },
  };
  return httpDoor;
}

/** Running requests continue; new ones are refused, except those for the server's health. */
function drainListeners(httpContext: HttpContext, httpListeners: readonly App[], plainLane: FastPath | null): void {
  if (httpContext.draining.hasBegun) return;
  httpContext.draining.begin();
  // Streams have no end of their own.
  httpContext.watch.close();
  plainLane?.drain();
  for (const httpListener of httpListeners) (httpListener.server as Server).closeIdleConnections();
}

/** Running requests are answered; those that exceed the drain time are cut off. */
async function closeListeners(
  httpContext: HttpContext,
  httpListeners: readonly App[],
  plainLane: FastPath | null,
): Promise<void> {
  drainListeners(httpContext, httpListeners, plainLane);
  const listenersClosed = new AbortController();
  httpContext.bodies.stopDiscarding();
  const listenersClosing = Promise.all(httpListeners.map((httpListener) => httpListener.close())).finally(() =>
    listenersClosed.abort(),
  );
  await httpContext.draining.end(listenersClosed.signal);
  if (!listenersClosed.signal.aborted) {
    plainLane?.cutOff();
    for (const httpListener of httpListeners) (httpListener.server as Server).closeAllConnections();
  }
  await listenersClosing;
  httpContext.bodies.close();
}

function createListener(httpContext: HttpContext, tls: { readonly cert: string; readonly key: string } | null): App {
  const app = fastify({
    ...(tls ? { https: { cert: tls.cert, key: tls.key, minVersion: 'TLSv1.2', headersTimeout: timeouts.headersMs } } : {}),
    ...(tls
      ? {}
      : { http: { headersTimeout: timeouts.headersMs, connectionsCheckingInterval: timeouts.checkMs, maxHeaderSize: 16_384 } }),
    bodyLimit: Math.min(httpContext.bodyLimitBytes, jsonBytesMax),
    keepAliveTimeout: timeouts.keepAliveMs,
    // A streamed ingest may take hours; `http-request-bodies.ts` bounds how slowly a body may come instead.
    requestTimeout: 0,
    genReqId: () => httpContext.ids.next(),
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: pathSegmentLengthMax },
    frameworkErrors: (error, request, reply) =>
      void sendProblem(httpContext, request as FastifyRequest, reply as FastifyReply, error),
    clientErrorHandler: (error, socket) => refuseConnection(httpContext, error, socket as Socket),
  }) as unknown as App;
  app.server.maxConnections = httpConnectionsMax;
  // Node drops headers after the 2,000th without a word; what all of them may take is bounded above.
  (app.server as Server).maxHeadersCount = 0;
  readBodies(app, httpContext);
  app.setValidatorCompiler(({ schema: routeSchema, httpPart }) => validator(routeSchema as z.ZodType, httpPart));
  app.setSerializerCompiler(() => exactJson);
  app.decorateRequest('caller', null);
  app.decorateRequest('recorded', false);
  const routeTable = new RouteTable(app);
  app.addHook('onRoute', ({ url, config, schema: routeSchema }) => {
    for (const requestPart of [routeSchema?.body, routeSchema?.querystring]) {
      const boundlessPart = boundlessIn(requestPart);
      assert(boundlessPart === null, `the route ${url} says how much it takes of ${boundlessPart}`);
    }
    // A route that forgot to say it would be open to everybody.
    assert(config?.access !== undefined, `the route ${url} says who may use it`);
  });

  app.addHook('onRequest', takeRequestsInTurn(httpContext));
  app.addHook('onRequest', (request, reply, hookDone) => {
    try {
      admitRequest(httpContext, request, reply);
      if (request.caller === null) httpContext.connections.noteRequest(request.raw.socket);
      else httpContext.connections.know(request.raw.socket);
      hookDone();
    } catch (routeError) {
      if (routeError instanceof ServiceError && routeError.code === 'REL_UNAUTHENTICATED')
        httpContext.connections.refuse(request.raw.socket, reply.raw);
      hookDone(routeError as Error);
    }
  });
  app.addHook('onSend', (request, reply, _payload, hookDone) => {
    if (httpContext.draining.hasBegun && isShort(request.raw)) reply.header('connection', 'close');
    hookDone();
  });
  app.addHook('onResponse', (request, reply, hookDone) => {
    httpContext.bodies.discard(request.raw, request.caller === null ? 'stranger' : 'known');
    httpContext.metrics.countRequest(
      request.routeOptions.url ?? 'unknown',
      request.method,
      reply.statusCode,
      reply.elapsedTime / 1000,
    );
    hookDone();
  });
  app.setErrorHandler((routeError, request, reply) => sendProblem(httpContext, request, reply, routeError));
  app.setNotFoundHandler((request, reply) => {
    const requestPath = requestUrlPath(request);
    const allowedVerbs = routeTable.verbsOf(requestPath);
    if (allowedVerbs.length === 0) {
      return sendProblem(
        httpContext,
        request,
        reply,
        new ServiceError('REL_NOT_FOUND', `no such route${routeTable.guess(requestPath)}`),
      );
    }
    reply.header('allow', allowedVerbs.join(', '));
    const routeError = new ServiceError('REL_METHOD', `this route answers ${allowedVerbs.join(', ')}`);
    return sendProblem(httpContext, request, reply, routeError);
  });
  return app;
}

/**
 * Requests of one connection are worked on one after the other: for a client that does not read, one answer waits. A response
 * gets the socket when the one before it has left.
 */
function takeRequestsInTurn({
  connections: httpConnections,
}: HttpContext): (request: FastifyRequest, reply: FastifyReply, hookDone: () => void) => void {
  return (_, { raw: rawReply }, hookDone) => {
    if (rawReply.socket !== null) return hookDone();
    const startRequest = (): number => {
      hookDone();
      return 0;
    };
    rawReply.once('socket', () => httpConnections.known.next({ work: startRequest }));
  };
}

/** Duplicate headers, rate limit, credential: checks before the body is read. */
function admitRequest(httpContext: HttpContext, httpRequest: FastifyRequest, httpReply: FastifyReply): void {
  const { access: routeAccess, bucket: rateBucket, inTransaction, page: isPage } = httpRequest.routeOptions.config;
  if (routeAccess === undefined) return;
  refuseRepeatedHeaders(httpRequest.raw.rawHeaders);
  if (routeAccess === 'probe') return;
  if (httpContext.draining.hasBegun) throw shuttingDown();
  if (routeAccess === 'token' || routeAccess === 'page') {
    const rateLimiter =
      rateBucket === 'write' ? httpContext.writeLimit : rateBucket === 'memory' ? httpContext.memoryLimit : httpContext.readLimit;
    const rateVerdict = rateLimiter.take(httpRequest.ip, httpContext.clock.monotonicMs());
    if (!rateVerdict.allowed) throw rateLimitRefusal(httpContext, httpReply, rateLimiter, rateVerdict);
  }
  if (routeAccess === 'page' || (isPage && isOpenedInBrowser(httpRequest))) return;
  const httpCredentials = {
    authorization: httpRequest.headers.authorization ?? consoleCredential(httpRequest),
    organization: headerText(httpRequest, 'x-organization-id') ?? undefined,
    door: routeAccess === 'admin' ? 'http-admin' : 'http',
    clientIp: httpRequest.ip,
  };
  const { authenticator } = httpContext;
  if (routeAccess === 'admin') {
    httpRequest.caller = authenticator.adminCaller(httpCredentials);
    // Let in without a credential: local development.
    if (httpCredentials.authorization === undefined) refuseForeign(httpRequest.headers, 'loopback');
    return;
  }
  try {
    httpRequest.caller = authenticator.dataCaller(httpCredentials);
  } catch (credentialError) {
    // The credential is good, the organisation is not its own: the refusal is on record under who it was.
    if (credentialError instanceof ServiceError && credentialError.code === 'REL_XORG') {
      httpRequest.caller = authenticator.dataCaller({ ...httpCredentials, organization: undefined });
    }
    throw credentialError;
  }
  if (httpRequest.headers[transactionHeader] !== undefined && !inTransaction)
    throw new ServiceError('REL_INVALID', 'this route cannot run in a transaction: leave out X-Service-Transaction');
  if (httpRequest.caller.credential === 'none') refuseForeign(httpRequest.headers, 'loopback');
  else if (httpRequest.routeOptions.url === '/mcp')
    refuseForeign(httpRequest.headers, isLoopback(httpContext.settings.SERVICE_HTTP_BIND) ? 'loopback' : 'any');
}

/** A person's browser, which has no credential to send before the page has asked for one. */
function isOpenedInBrowser({ headers: pageHeaders, query: pageQuery }: FastifyRequest): boolean {
  if (pageHeaders.authorization !== undefined || Object.hasOwn(pageQuery as object, 'token')) return false;
  return /\btext\/html\b/.test(pageHeaders.accept ?? '');
}

/** A browser that opens the console can't send a header. Source: specification, "Authentication" 4. */
function consoleCredential(request: FastifyRequest): string | undefined {
  if (request.routeOptions.url !== consoleMount) return undefined;
  const { token: consoleToken } = request.query as { readonly token?: unknown };
  return typeof consoleToken === 'string' ? `Bearer ${consoleToken}` : undefined;
}

function rateLimitRefusal(
  httpContext: HttpContext,
  httpReply: FastifyReply,
  rateLimiter: RateLimiter,
  rateVerdict: RateVerdict,
): ServiceError {
  const nextAllowedMs = httpContext.clock.now() / 1_000_000n + BigInt(Math.ceil(rateVerdict.nextInMs));
  httpReply.header('x-ratelimit-limit', String(rateVerdict.limit));
  httpReply.header('x-ratelimit-remaining', '0');
  httpReply.header('x-ratelimit-reset', String((nextAllowedMs + 999n) / 1000n));
  return rateRefusal(rateLimiter, rateVerdict);
}

async function sendProblem(
  httpContext: HttpContext,
  httpRequest: FastifyRequest,
  httpReply: FastifyReply,
  thrownError: unknown,
): Promise<void> {
  const { access: routeAccess, action } = httpRequest.routeOptions?.config ?? {};
  const routeUrl = httpRequest.routeOptions?.url ?? requestUrlPath(httpRequest);
  const {
    status: problemStatus,
    headers: problemHeaders,
    text: problemText,
  } = await refusalOf(httpContext, httpRequest, { route: routeUrl, access: routeAccess, action }, thrownError);
  for (const [headerName, headerValue] of problemHeaders) httpReply.header(headerName, headerValue);
  // The framework would close the connection under a client that is still sending.
  if (httpReply.hasHeader('connection')) httpReply.removeHeader('connection');
  void httpReply.code(problemStatus).header('content-type', problemType).serializer(serializedAlready).send(problemText);
}

/** Bytes that are not HTTP: answered once, in the clear, and the connection ends. */
function refuseConnection(httpContext: HttpContext, parserError: Error & { code?: string }, refusedSocket: Socket): void {
  if (parserError.code === 'ECONNRESET' || !refusedSocket.writable) return void refusedSocket.destroy();
  const [problemCode, problemDetail] =
    parserError.code === 'HPE_HEADER_OVERFLOW'
      ? (['REL_TOO_LARGE', 'the request headers are over 16 KiB'] as const)
      : parserError.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? (['REL_TIMEOUT', 'the request did not arrive in time'] as const)
        : (['REL_INVALID', 'the request is not well-formed HTTP/1.1'] as const);
  const connectionProblem = problemOf(
    new ServiceError(problemCode, problemDetail),
    httpContext.settings.SERVICE_ERRORS_BASE,
    '',
    httpContext.ids.next(),
  );
  const problemBody = exactJson(connectionProblem);
  refusedSocket.end(
    `HTTP/1.1 ${connectionProblem.status} ${connectionProblem.title}\r\ncontent-type: ${problemType}\r\ncontent-length: ${Buffer.byteLength(problemBody)}\r\n` +
      `connection: close\r\n\r\n${problemBody}`,
  );
}

const refusalRecordsPerSecond = 50;

const serializedAlready = (serializedPayload: unknown): string => serializedPayload as string;

function requestUrlPath(request: { readonly raw: IncomingMessage }): string {
  const requestUrl = request.raw.url ?? '';
  const pathEnd = requestUrl.search(/[?#]/);
  return (pathEnd === -1 ? requestUrl : requestUrl.slice(0, pathEnd)).slice(0, 256);
}

function listenerPort(httpListener: App, configuredPort: number): number {
  const listenerAddress = httpListener.server.address();
  return typeof listenerAddress === 'object' && listenerAddress !== null ? listenerAddress.port : configuredPort;
}

function urlHost(listenerBind: string): string {
  const bindHost = listenerBind.replace(/^\[|\]$/g, '');
  if (bindHost === '0.0.0.0' || bindHost === '::') return 'localhost';
  return bindHost.includes(':') ? `[${bindHost}]` : bindHost;
}
