/** Registers routes with the framework: access, limits, schemas, and the one invocation around a route's handler. */
import { assert } from '../../errors.ts';
import type { App, FastifyReply, FastifyRequest, HttpContext } from './context.ts';
import { invoke } from './invoke.ts';
import { Answered, type Route } from './route.ts';
import { problems } from './schemas.ts';

export function registerRoutes(app: App, httpContext: HttpContext, routes: readonly Route[]): void {
  for (const routeToRegister of routes) {
    const {
      method,
      path: routePath,
      access,
      action,
      bucket: rateBucket,
      reads: bodyReader,
      bodyBytesMax,
      framework: frameworkOptions,
      inTransaction,
      page: isPage,
    } = routeToRegister;
    app.route({
      method,
      url: routePath,
      config: {
        access,
        ...(action !== null && { action }),
        ...(rateBucket && { bucket: rateBucket }),
        ...(bodyReader && { reads: bodyReader }),
        ...(inTransaction && { inTransaction }),
        ...(isPage && { page: isPage }),
      },
      ...(bodyBytesMax !== undefined && { bodyLimit: bodyBytesMax }),
      ...frameworkOptions,
      schema: routeSchema(routeToRegister),
      handler: routeHandler(routeToRegister, httpContext),
    });
  }
}

function routeSchema({ access, summary, description, tags, consumes, params, query, body, replies = {} }: Route) {
  return {
    ...(summary === undefined ? { hide: true } : { summary }),
    ...(description !== undefined && { description }),
    ...(tags && { tags: [...tags] }),
    ...(consumes && { consumes: [...consumes] }),
    ...(params && { params }),
    ...(query && { querystring: query }),
    ...(body && { body }),
    // A route may answer with problems in a shape of its own.
    response: access === 'probe' ? replies : { ...replies, ...problems, ...replies },
  };
}

type RouteHandler = (request: FastifyRequest, reply: FastifyReply) => unknown;

function routeHandler(handledRoute: Route, httpContext: HttpContext): RouteHandler {
  if (handledRoute.handle) {
    return (request, reply) => {
      const { params, query, body } = request;
      return handledRoute.handle({ params, query, body, request, reply, context: httpContext });
    };
  }
  const { action, purposeIn, whileSuspended } = handledRoute;
  assert(action !== null, 'what a route runs in its invocation has an action');
  const invocationExtras = whileSuspended ? { whileSuspended } : {};
  return async (request, reply) => {
    const { params, query, body } = request;
    const statedPurpose =
      purposeIn === undefined ? undefined : (request[purposeIn] as { readonly purpose?: string } | undefined)?.purpose;
    const routeOutput = await invoke(
      httpContext,
      request,
      action,
      statedPurpose,
      (invocation) => handledRoute.run(invocation, { params, query, body, request, context: httpContext }),
      invocationExtras,
    );
    if (!(routeOutput instanceof Answered)) return routeOutput;
    return reply.code(routeOutput.status).headers(routeOutput.headers).send(routeOutput.value);
  };
}
