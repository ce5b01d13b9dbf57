/**
 * A route: its request and reply schemas, its access, and its handler. Registration, /openapi.json, leak probes and the suites
 * that ask every route read the lists in `routes/all.ts`, so a route is one entry of a list and its test.
 */
import type { RouteShorthandOptions } from 'fastify';
import type { z } from 'zod';
import type { Action, Invocation } from '../../governance/gate-contract.ts';
import type { BodyReader, FastifyReply, FastifyRequest, HttpContext, RateBucket, RouteAccess } from './context.ts';

/** A request as its schemas read it. */
export interface ParsedRequest<P = unknown, Q = unknown, B = unknown> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly request: FastifyRequest;
  readonly context: HttpContext;
}

/** A valid request. Names of things in a store, such as `a job`, stand for their ids: `test/doors/http/every-route.ts`. */
export interface RouteExample {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  /** A text is sent as it is, anything else as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export type RouteMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

interface RouteDefinition<P, Q, B> {
  readonly method: RouteMethod;
  /** Names of its parameters begin with a colon. */
  readonly path: string;
  readonly access: RouteAccess;
  /** The invocation and the record of a refused request state it; null: a probe has neither. */
  readonly action: Action | null;
  /** Absent on the admin listener, and for probes. */
  readonly bucket?: RateBucket;
  /** It may stand in a transaction, which X-Service-Transaction names. Absent: a request that names one is refused. */
  readonly inTransaction?: true;
  /** A browser that brings no credential is answered too: the page asks for one. */
  readonly page?: true;
  /** Absent: /openapi.json does not describe the route. */
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly consumes?: readonly string[];
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  /** Keyed by status. Every route but a probe has problems as well. */
  readonly replies?: Readonly<Record<string | number, z.ZodType>>;
  /** Longer bodies are refused; the door's own limit holds anyhow. */
  readonly bodyBytesMax?: number;
  /** Absent: the body is JSON. */
  readonly reads?: BodyReader;
  readonly framework?: Pick<RouteShorthandOptions, 'attachValidation' | 'exposeHeadRoute' | 'validatorCompiler'>;
  /** Absent: the route with the names of its parameters left as they are, and without a body. */
  readonly example?: RouteExample;
}

interface RouteRuns<P, Q, B> {
  /** The reply of status 200, or `answered(…)`. The one invocation of the request is made around it. */
  run(invocation: Invocation, parsedRequest: ParsedRequest<P, Q, B>): Promise<unknown>;
  /** The part of the request that may state its purpose, beside the header. */
  readonly purposeIn?: 'query' | 'body';
  readonly whileSuspended?: true;
  readonly handle?: never;
}

interface RouteHandles<P, Q, B> {
  /** Enters the gate by itself: replies that are no JSON, streams, several shapes of one request. */
  handle(parsedRequest: ParsedRequest<P, Q, B> & { readonly reply: FastifyReply }): unknown;
  readonly run?: never;
}

type SchemaOutput<S> = S extends z.ZodType ? z.output<S> : unknown;

type HandledRoute<P, Q, B> = RouteDefinition<P, Q, B> &
  (
    | RouteRuns<SchemaOutput<P>, SchemaOutput<Q>, SchemaOutput<B>>
    | RouteHandles<SchemaOutput<P>, SchemaOutput<Q>, SchemaOutput<B>>
  );

export type Route = HandledRoute<z.ZodType, z.ZodType, z.ZodType>;

/** Keeps the types of params, query and body together while a route is written. */
export function route<P extends z.ZodType = z.ZodType, Q extends z.ZodType = z.ZodType, B extends z.ZodType = z.ZodType>(
  definition: HandledRoute<P, Q, B>,
): Route {
  return definition as unknown as Route;
}

/** A reply of another status than 200, or with headers of its own. */
export class Answered {
  readonly status: number;
  readonly value: unknown;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, value: unknown, headers: Readonly<Record<string, string>>) {
    this.status = status;
    this.value = value;
    this.headers = headers;
  }
}

export function reply(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Answered {
  return new Answered(status, value, headers);
}
