/** Registers routes with the framework: access, limits, schemas, and the one invocation around a route's handler. */
import { assert } from '../../errors.ts';
import type { App, FastifyReply, FastifyRequest, HttpContext } from './context.ts';
import { invoke } from './invoke.ts';
import { Answered, type Route } from './route.ts';
import { problems } from './schemas.ts';

export function registerRoutes(app: App, context: HttpContext, routes: readonly Route[]): void {
  for (const route of routes) {
    const { method, path, access, action, bucket, reads, bodyBytesMax, framework, inTransaction, page } = route;
    app.route({
      method,
      url: path,
      config: {
        access,
        ...(action !== null && { action }),
        ...(bucket && { bucket }),
        ...(reads && { reads }),
        ...(inTransaction && { inTransaction }),
        ...(page && { page }),
      },
      ...(bodyBytesMax !== undefined && { bodyLimit: bodyBytesMax }),
      ...framework,
      schema: schemaOf(route),
      handler: handlerOf(route, context),
    });
  }
}

function schemaOf({ access, summary, description, tags, consumes, params, query, body, replies = {} }: Route) {
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

type Handler = (request: FastifyRequest, reply: FastifyReply) => unknown;

function handlerOf(route: Route, context: HttpContext): Handler {
  if (route.handle) {
    return (request, reply) => {
      const { params, query, body } = request;
      return route.handle({ params, query, body, request, reply, context });
    };
  }
  const { action, purposeIn, whileSuspended } = route;
  assert(action !== null, 'what a route runs in its invocation has an action');
  const more = whileSuspended ? { whileSuspended } : {};
  return async (request, reply) => {
    const { params, query, body } = request;
    const purpose =
      purposeIn === undefined ? undefined : (request[purposeIn] as { readonly purpose?: string } | undefined)?.purpose;
    const reached = await invoke(
      context,
      request,
      action,
      purpose,
      (invocation) => route.run(invocation, { params, query, body, request, context }),
      more,
    );
    if (!(reached instanceof Answered)) return reached;
    return reply.code(reached.status).headers(reached.headers).send(reached.value);
  };
}
