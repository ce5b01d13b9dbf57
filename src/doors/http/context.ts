/** The dependencies of the HTTP door's routes, passed as arguments, and the door's additions to a request. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  FastifyTypeProvider,
  RawServerBase,
} from 'fastify';
import type { z } from 'zod';
import type { Clock, Ids, Random } from '../../clock.ts';
import type { Settings } from '../../config.ts';
import type { RateLimiter } from '../../governance/admission/rate-limit.ts';
import type { Authenticator } from '../../governance/authentication/authenticator.ts';
import type { Caller } from '../../governance/caller.ts';
import type { SubjectErasure } from '../../governance/erasure/subject-erasure.ts';
import type { Action, GateContract } from '../../governance/gate-contract.ts';
import type { JobDesk } from '../../governance/desks/job-desk.ts';
import type { JobRunner } from '../../governance/jobs/job-runner.ts';
import type { WorkflowDesk } from '../../governance/desks/workflow-desk.ts';
import type { Embedder } from '../../governance/embedding/embedder.ts';
import type { PlannerDoor } from '../../planner/planner-contract.ts';
import type { LookupTables } from '../../planner/continuous/views/lookup-tables.ts';
import type { StandingQueries } from '../../planner/continuous/watch/watch.ts';
import type { Translator } from '../../planner/languages/question-translator.ts';
import type { ReadDocuments } from '../rich-text/rich-text.ts';
import type { Drain } from '../shared/drain.ts';
import type { HttpConnections } from '../shared/http-connections.ts';
import type { IngestTasks } from './ingest-tasks.ts';
import type { WorkflowDependencies } from '../workflows/run-workflow.ts';
import type { RequestBodies } from '../shared/http-request-bodies.ts';
import type { WebConsole } from './console/console.ts';
import type { ConsoleFiles } from './console/pages.ts';
import type { HttpMetrics } from './metrics.ts';
import type { SystemContract } from './system-contract.ts';

export type HttpSettings = Pick<
  Settings,
  | 'SERVICE_PROFILE'
  | 'SERVICE_HTTP_BIND'
  | 'SERVICE_PORT'
  | 'SERVICE_ADMIN_BIND'
  | 'SERVICE_ERRORS_BASE'
  | 'SERVICE_BODY_LIMIT_MB'
  | 'SERVICE_DRAIN_TIMEOUT_SECS'
  | 'SERVICE_PINNED_NAMESPACES'
  | 'SERVICE_MAX_RESULT_ROWS'
  | 'SERVICE_WORKBENCH_ENABLE'
>;

export interface LogLine {
  readonly event: string;
  readonly correlationId: string;
  readonly route: string;
  readonly error: unknown;
}

/** The rooms below that routes call. */
export interface HttpRooms {
  readonly gate: GateContract;
  readonly planner: Pick<PlannerDoor, 'query' | 'querySeries' | 'readSigma' | 'turns'>;
  readonly watch: StandingQueries;
  readonly lookups: LookupTables;
  /** Extends an erasure to the replies kept of rows; absent: nothing is erased here. */
  readonly erasures?: Pick<SubjectErasure, 'reach'>;
  readonly jobs: JobRunner;
  readonly schedule: JobDesk;
  readonly workflows: WorkflowDesk;
  readonly authenticator: Pick<Authenticator, 'dataCaller' | 'renew' | 'adminCaller' | 'absentCaller'>;
  readonly system: SystemContract;
}

/** Models, and readers of rich text, that routes and tools ask. */
export interface HttpModels {
  /** The model that makes vectors of texts; null: vectors are hashed. */
  readonly embedder: Embedder | null;
  /** Turns questions into statements; null: by their forms alone. */
  readonly translator: Translator | null;
  readonly readDocuments: ReadDocuments;
}

/** Requests that one address may send in a second. */
export interface HttpRateLimits {
  readonly readLimit: RateLimiter;
  readonly writeLimit: RateLimiter;
  readonly memoryLimit: RateLimiter;
}

export interface HttpDoorOptions extends HttpRooms, HttpModels, HttpRateLimits {
  readonly settings: HttpSettings;
  /** Takes the way in which steps of workflows call tools; absent: nothing runs them here. */
  readonly serveTools?: (call: WorkflowDependencies['callTool']) => void;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly random: Random;
  /** Lets others have their turn. */
  readonly yieldTurn: () => Promise<void>;
  /** Whether queries wait for a turn. */
  readonly isCrowded: () => boolean;
  readonly log: (line: LogLine) => void;
  /** The built pages; null, or absent, where this build has none. */
  readonly consoleFiles?: () => ConsoleFiles | null;
  /** PEM texts; TLS 1.2 or later is served when given. */
  readonly tls?: { readonly cert: string; readonly key: string } | null;
}

/** Options plus the door's own services. */
export interface HttpContext extends HttpDoorOptions {
  readonly metrics: HttpMetrics;
  readonly bodies: RequestBodies;
  /** Bodies that were answered with 202. */
  readonly tasks: IngestTasks;
  readonly startedMs: number;
  /** Bounds how many refused strangers are recorded. */
  readonly refusalRecordLimit: RateLimiter;
  readonly bodyLimitBytes: number;
  readonly draining: Drain;
  readonly console: WebConsole;
  /** Connections that brought no good credential yet. */
  readonly connections: HttpConnections;
}

/** Requests have the types of their schemas. Replies don't: instants are bigints, which no schema of JSON has. */
interface HttpTypeProvider extends FastifyTypeProvider {
  readonly validator: this['schema'] extends z.ZodType ? z.output<this['schema']> : unknown;
  readonly serializer: unknown;
}

export type App = FastifyInstance<RawServerBase, IncomingMessage, ServerResponse, FastifyBaseLogger, HttpTypeProvider>;

/** The parts of a request that the way into the gate reads, independent of how it was parsed. */
export interface GateRequest {
  readonly id: string;
  readonly method: string;
  /** Its route, with names in place of values in the path. */
  readonly routeOptions: {
    readonly url?: string | undefined;
    readonly bucket?: RateBucket | undefined;
    readonly config?: { readonly bucket?: RateBucket | undefined };
  };
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
  readonly raw: { readonly url?: string | undefined; readonly socket: Socket };
  caller: Caller | null;
  recorded: boolean;
}

/**
 * Access to a route: `probe` needs no credential; `admin` exists on the admin listener only; `page` looks for a session of the pages by
 * itself, or opens one.
 */
export type RouteAccess = 'probe' | 'page' | 'token' | 'admin';

export type RateBucket = 'read' | 'write' | 'memory';

/** The reader of a route's body; its errors refuse the request. `stream`: the route takes the body as it comes. */
export type BodyReader = 'stream' | ((body: Buffer, request: FastifyRequest, yieldTurn: () => Promise<void>) => unknown);

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before any handler of a `token` or `admin` route runs. */
    caller: Caller | null;
    /** True once the gate has taken the request: it writes the access record from there on. */
    recorded: boolean;
  }
  interface FastifyContextConfig {
    access?: RouteAccess;
    action?: Action;
    /** Rate-limit bucket: reads, writes and memory calls have their own. */
    bucket?: RateBucket;
    inTransaction?: true;
    /** A browser that brings no credential is shown the page, which holds no data. */
    page?: true;
    /** Absent: as JSON. */
    reads?: BodyReader;
  }
}

export type { FastifyReply, FastifyRequest };
