/** The pages: the administrator's on the admin listener, the workbench on the data listener. They hold no data themselves. */
import { z } from 'zod';
import { consoleMount, setCookie, workbenchMount } from '../console/session-cookie.ts';
import { sessionRoutes } from '../console/session-routes.ts';
import type { FastifyReply, FastifyRequest, HttpContext } from '../context.ts';
import { invoke } from '../invoke.ts';
import { reply as answer, route, type Route } from '../route.ts';

const consoleAccess = { access: 'admin', action: 'administer' } as const;

export const adminConsoleRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: consoleMount,
    ...consoleAccess,
    bucket: 'read',
    page: true,
    handle: async ({ request: consoleRequest, reply: consoleReply, context: httpContext }) => {
      if (consoleRequest.caller === null) return sendConsolePage(httpContext, consoleReply, consoleMount);
      await invoke(httpContext, consoleRequest, 'inspect', undefined, async () => httpContext.console.page(consoleMount));
      const { token: consoleToken } = consoleRequest.query as { readonly token?: string };
      if (consoleToken === undefined) return sendConsolePage(httpContext, consoleReply, consoleMount);
      return beginSessionByUrl(httpContext, consoleRequest, consoleReply, `Bearer ${consoleToken}`);
    },
  }),
  route({
    method: 'GET',
    path: '/admin/dashboard',
    ...consoleAccess,
    bucket: 'read',
    page: true,
    handle: async ({ request: consoleRequest, reply: consoleReply, context: httpContext }) => {
      if (consoleRequest.caller !== null)
        await invoke(httpContext, consoleRequest, 'inspect', undefined, async () => httpContext.console.page(consoleMount));
      return sendConsolePage(httpContext, consoleReply, consoleMount);
    },
  }),
  route({
    method: 'POST',
    path: '/admin/console/codes',
    ...consoleAccess,
    summary: 'A one-time code that opens the console within a minute',
    tags: ['system'],
    replies: { 201: z.object({ code: z.string(), expires_in_secs: z.int() }) },
    run: async (_, { request, context: httpContext }) => {
      const { authorization: adminAuthorization } = request.headers;
      const consoleCode = httpContext.console.sessions.mintCode(
        adminAuthorization === undefined ? {} : { administrator: adminAuthorization },
      );
      return answer(201, { code: consoleCode, expires_in_secs: 60 }, { 'cache-control': 'no-store' });
    },
  }),
];

export const workbenchRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: workbenchMount,
    access: 'probe',
    action: null,
    handle: ({ reply: consoleReply, context: httpContext }) => sendConsolePage(httpContext, consoleReply, workbenchMount),
  }),
  ...sessionRoutes(workbenchMount),
];

export const consoleSessionRoutes = sessionRoutes(consoleMount);

function sendConsolePage({ console: consoleDesk }: HttpContext, pageReply: FastifyReply, pageMount: string): FastifyReply {
  const { html: pageHtml, headers: pageHeaders } = consoleDesk.page(pageMount);
  return pageReply.headers(pageHeaders).serializer(serializedHtml).send(pageHtml);
}

/** The credential leaves the address at once: it must stand in no history and in no log. */
function beginSessionByUrl(
  httpContext: HttpContext,
  consoleRequest: FastifyRequest,
  consoleReply: FastifyReply,
  adminAuthorization: string,
): FastifyReply {
  const { cookie: sessionCookie } = httpContext.console.sessions.begin({ administrator: adminAuthorization });
  return consoleReply
    .code(303)
    .headers({
      location: consoleMount,
      'set-cookie': setCookie(consoleRequest, consoleMount, sessionCookie, false),
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
    })
    .send();
}

const serializedHtml = (htmlPayload: unknown): string => htmlPayload as string;
