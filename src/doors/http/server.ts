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
import { boundlessIn } from '../schemas/schema-check.ts';
import type { Door } from '../door.ts';
import { IngestTasks } from '../ingest/ingest-tasks.ts';
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

const connectionsMax = 10_000;
const pathSegmentMax = 4_096;

export interface HttpDoor extends Door {
  readonly adminPort: number;
  /** Addresses as clients would write them. */
  readonly dataUrl: string;
  readonly adminUrl: string;
  /** An address that opens the console once, within a minute. */
  consoleLink(grant: Grant): string;
}

export async function createHttpDoor(options: HttpDoorOptions): Promise<HttpDoor> {
  const bodyLimitBytes = options.settings.SERVICE_BODY_LIMIT_MB * 1024 * 1024;
  const context: HttpContext = {
    ...options,
    metrics: new HttpMetrics(options.system, options.gate),
    bodies: new RequestBodies(options.clock, bodyLimitBytes, options.yieldTurn),
    tasks: new IngestTasks(options.gate, options.jobs),
    startedMs: options.clock.monotonicMs(),
    refusalRecordLimit: new RateLimiter(refusalRecordsPerSecond),
    bodyLimitBytes,
    connections: new HttpConnections(options.clock),
    console: new WebConsole(options.clock, options.random, options.consoleFiles ?? (() => null)),
    draining: new Drain(options.clock, options.settings.SERVICE_DRAIN_TIMEOUT_SECS * 1000),
  };
  options.erasures?.reach(context.tasks);
  options.serveTools?.((step) => callStep(context, step));
  const { settings, tls } = options;
  const data = createListener(context, tls ?? null);
  await describeRoutes(data, context);
  registerRoutes(data, context, dataRoutes);
  if (settings.SERVICE_WORKBENCH_ENABLE) registerRoutes(data, context, workbenchRoutes);
  const plain = tls ? null : new FastPath(context, data.server as Server, [plainQuery(context), plainIngest(context)]);

  const admin = createListener(context, null);
  registerRoutes(admin, context, adminRoutes);
  registerRoutes(admin, context, consoleSessionRoutes);
  context.console.data = data.routing;
  context.console.admin = admin.routing;

  for (const app of [data, admin]) context.connections.watch(app.server as Server);
  const listeners = listenersOf(settings);
  let stopped: Promise<void> | null = null;
  const door: HttpDoor = {
    name: 'http',
    get port() {
      return portOf(data, settings.SERVICE_PORT);
    },
    get adminPort() {
      return portOf(admin, listeners.admin.port);
    },
    get dataUrl() {
      return `${tls ? 'https' : 'http'}://${hostOf(settings.SERVICE_HTTP_BIND)}:${door.port}`;
    },
    get adminUrl() {
      return `http://${hostOf(listeners.admin.host)}:${door.adminPort}`;
    },
    consoleLink(grant) {
      return `${door.adminUrl}${consoleMount}#code=${context.console.sessions.mintCode(grant)}`;
    },
    async start() {
      void context.bodies.sweep();
      void plain?.sweep();
      await listenOn(listeners.admin, () => admin.listen({ host: listeners.admin.host, port: listeners.admin.port }));
      try {
        await listenOn(listeners.data, () => data.listen({ host: listeners.data.host, port: listeners.data.port }));
      } catch (error) {
        await admin.close();
        throw error;
      }
    },
    drain() {
      drain(context, [data, admin], plain);
    },
    stop() {
      stopped ??= closeListeners(context, [data, admin], plain);
      return stopped;
    },
  };
  return door;
}

/** Running requests continue; new ones are refused, except those for the server's health. */
function drain(context: HttpContext, listeners: readonly App[], plain: FastPath | null): void {
  if (context.draining.hasBegun) return;
  context.draining.begin();
  // Streams have no end of their own.
  context.watch.close();
  plain?.drain();
  for (const app of listeners) (app.server as Server).closeIdleConnections();
}

/** Running requests are answered; those that exceed the drain time are cut off. */
async function closeListeners(context: HttpContext, listeners: readonly App[], plain: FastPath | null): Promise<void> {
  drain(context, listeners, plain);
  const closed = new AbortController();
  context.bodies.stopDiscarding();
  const closing = Promise.all(listeners.map((app) => app.close())).finally(() => closed.abort());
  await context.draining.end(closed.signal);
  if (!closed.signal.aborted) {
    plain?.cutOff();
    for (const app of listeners) (app.server as Server).closeAllConnections();
  }
  await closing;
  context.bodies.close();
}

function createListener(context: HttpContext, tls: { readonly cert: string; readonly key: string } | null): App {
  const app = fastify({
    ...(tls ? { https: { cert: tls.cert, key: tls.key, minVersion: 'TLSv1.2', headersTimeout: timeouts.headersMs } } : {}),
    ...(tls
      ? {}
      : { http: { headersTimeout: timeouts.headersMs, connectionsCheckingInterval: timeouts.checkMs, maxHeaderSize: 16_384 } }),
    bodyLimit: Math.min(context.bodyLimitBytes, jsonBytesMax),
    keepAliveTimeout: timeouts.keepAliveMs,
    // A streamed ingest may take hours; `http-request-bodies.ts` bounds how slowly a body may come instead.
    requestTimeout: 0,
    genReqId: () => context.ids.next(),
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: pathSegmentMax },
    frameworkErrors: (error, request, reply) =>
      void sendProblem(context, request as FastifyRequest, reply as FastifyReply, error),
    clientErrorHandler: (error, socket) => refuseConnection(context, error, socket as Socket),
  }) as unknown as App;
  app.server.maxConnections = connectionsMax;
  // Node drops headers after the 2,000th without a word; what all of them may take is bounded above.
  (app.server as Server).maxHeadersCount = 0;
  readBodies(app, context);
  app.setValidatorCompiler(({ schema, httpPart }) => validator(schema as z.ZodType, httpPart));
  app.setSerializerCompiler(() => exactJson);
  app.decorateRequest('caller', null);
  app.decorateRequest('recorded', false);
  const table = new RouteTable(app);
  app.addHook('onRoute', ({ url, config, schema }) => {
    for (const part of [schema?.body, schema?.querystring]) {
      const boundless = boundlessIn(part);
      assert(boundless === null, `the route ${url} says how much it takes of ${boundless}`);
    }
    // A route that forgot to say it would be open to everybody.
    assert(config?.access !== undefined, `the route ${url} says who may use it`);
  });

  app.addHook('onRequest', inTurn(context));
  app.addHook('onRequest', (request, reply, done) => {
    try {
      admit(context, request, reply);
      if (request.caller === null) context.connections.noteRequest(request.raw.socket);
      else context.connections.know(request.raw.socket);
      done();
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'REL_UNAUTHENTICATED')
        context.connections.refuse(request.raw.socket, reply.raw);
      done(error as Error);
    }
  });
  app.addHook('onSend', (request, reply, _payload, done) => {
    if (context.draining.hasBegun && isShort(request.raw)) reply.header('connection', 'close');
    done();
  });
  app.addHook('onResponse', (request, reply, done) => {
    context.bodies.discard(request.raw, request.caller === null ? 'stranger' : 'known');
    context.metrics.countRequest(
      request.routeOptions.url ?? 'unknown',
      request.method,
      reply.statusCode,
      reply.elapsedTime / 1000,
    );
    done();
  });
  app.setErrorHandler((error, request, reply) => sendProblem(context, request, reply, error));
  app.setNotFoundHandler((request, reply) => {
    const path = pathOf(request);
    const allowed = table.verbsOf(path);
    if (allowed.length === 0) {
      return sendProblem(context, request, reply, new ServiceError('REL_NOT_FOUND', `no such route${table.guess(path)}`));
    }
    reply.header('allow', allowed.join(', '));
    const error = new ServiceError('REL_METHOD', `this route answers ${allowed.join(', ')}`);
    return sendProblem(context, request, reply, error);
  });
  return app;
}

/**
 * Requests of one connection are worked on one after the other: for a client that does not read, one answer waits. A response
 * gets the socket when the one before it has left.
 */
function inTurn({ connections: unknown }: HttpContext): (request: FastifyRequest, reply: FastifyReply, done: () => void) => void {
  return (_, { raw }, done) => {
    if (raw.socket !== null) return done();
    const work = (): number => {
      done();
      return 0;
    };
    raw.once('socket', () => unknown.known.next({ work }));
  };
}

/** Duplicate headers, rate limit, credential: checks before the body is read. */
function admit(context: HttpContext, request: FastifyRequest, reply: FastifyReply): void {
  const { access, bucket, inTransaction, page } = request.routeOptions.config;
  if (access === undefined) return;
  refuseRepeatedHeaders(request.raw.rawHeaders);
  if (access === 'probe') return;
  if (context.draining.hasBegun) throw shuttingDown();
  if (access === 'token' || access === 'page') {
    const limiter = bucket === 'write' ? context.writeLimit : bucket === 'memory' ? context.memoryLimit : context.readLimit;
    const verdict = limiter.take(request.ip, context.clock.monotonicMs());
    if (!verdict.allowed) throw rateLimited(context, reply, limiter, verdict);
  }
  if (access === 'page' || (page && opensInBrowser(request))) return;
  const credentials = {
    authorization: request.headers.authorization ?? consoleCredential(request),
    organization: headerText(request, 'x-organization-id') ?? undefined,
    door: access === 'admin' ? 'http-admin' : 'http',
    clientIp: request.ip,
  };
  const { authenticator } = context;
  if (access === 'admin') {
    request.caller = authenticator.adminCaller(credentials);
    // Let in without a credential: local development.
    if (credentials.authorization === undefined) refuseForeign(request.headers, 'loopback');
    return;
  }
  try {
    request.caller = authenticator.dataCaller(credentials);
  } catch (error) {
    // The credential is good, the organisation is not its own: the refusal is on record under who it was.
    if (error instanceof ServiceError && error.code === 'REL_XORG') {
      request.caller = authenticator.dataCaller({ ...credentials, organization: undefined });
    }
    throw error;
  }
  if (request.headers[transactionHeader] !== undefined && !inTransaction)
    throw new ServiceError('REL_INVALID', 'this route cannot run in a transaction: leave out X-Service-Transaction');
  if (request.caller.credential === 'none') refuseForeign(request.headers, 'loopback');
  else if (request.routeOptions.url === '/mcp')
    refuseForeign(request.headers, isLoopback(context.settings.SERVICE_HTTP_BIND) ? 'loopback' : 'any');
}

/** A person's browser, which has no credential to send before the page has asked for one. */
function opensInBrowser({ headers, query }: FastifyRequest): boolean {
  if (headers.authorization !== undefined || Object.hasOwn(query as object, 'token')) return false;
  return /\btext\/html\b/.test(headers.accept ?? '');
}

/** A browser that opens the console can't send a header. Source: specification, "Authentication" 4. */
function consoleCredential(request: FastifyRequest): string | undefined {
  if (request.routeOptions.url !== consoleMount) return undefined;
  const { token } = request.query as { readonly token?: unknown };
  return typeof token === 'string' ? `Bearer ${token}` : undefined;
}

function rateLimited(context: HttpContext, reply: FastifyReply, limiter: RateLimiter, verdict: RateVerdict): ServiceError {
  const nextAt = context.clock.now() / 1_000_000n + BigInt(Math.ceil(verdict.nextInMs));
  reply.header('x-ratelimit-limit', String(verdict.limit));
  reply.header('x-ratelimit-remaining', '0');
  reply.header('x-ratelimit-reset', String((nextAt + 999n) / 1000n));
  return rateRefusal(limiter, verdict);
}

async function sendProblem(context: HttpContext, request: FastifyRequest, reply: FastifyReply, raw: unknown): Promise<void> {
  const { access, action } = request.routeOptions?.config ?? {};
  const route = request.routeOptions?.url ?? pathOf(request);
  const { status, headers, text } = await refusalOf(context, request, { route, access, action }, raw);
  for (const [name, value] of headers) reply.header(name, value);
  // The framework would close the connection under a client that is still sending.
  if (reply.hasHeader('connection')) reply.removeHeader('connection');
  void reply.code(status).header('content-type', problemType).serializer(asIs).send(text);
}

/** Bytes that are not HTTP: answered once, in the clear, and the connection ends. */
function refuseConnection(context: HttpContext, error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const [code, detail] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? (['REL_TOO_LARGE', 'the request headers are over 16 KiB'] as const)
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? (['REL_TIMEOUT', 'the request did not arrive in time'] as const)
        : (['REL_INVALID', 'the request is not well-formed HTTP/1.1'] as const);
  const problem = problemOf(new ServiceError(code, detail), context.settings.SERVICE_ERRORS_BASE, '', context.ids.next());
  const body = exactJson(problem);
  socket.end(
    `HTTP/1.1 ${problem.status} ${problem.title}\r\ncontent-type: ${problemType}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n` +
      `connection: close\r\n\r\n${body}`,
  );
}

const refusalRecordsPerSecond = 50;

const asIs = (payload: unknown): string => payload as string;

function pathOf(request: { readonly raw: IncomingMessage }): string {
  const url = request.raw.url ?? '';
  const end = url.search(/[?#]/);
  return (end === -1 ? url : url.slice(0, end)).slice(0, 256);
}

function portOf(app: App, asked: number): number {
  const address = app.server.address();
  return typeof address === 'object' && address !== null ? address.port : asked;
}

function hostOf(bind: string): string {
  const host = bind.replace(/^\[|\]$/g, '');
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}
