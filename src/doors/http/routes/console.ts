/** The pages: the administrator's on the admin listener, the workbench on the data listener. They hold no data themselves. */
import { z } from 'zod';
import { consoleMount, setCookie, workbenchMount } from '../console/session-cookie.ts';
import { sessionRoutes } from '../console/session-routes.ts';
import type { FastifyReply, FastifyRequest, HttpContext } from '../context.ts';
import { invoke } from '../invoke.ts';
import { reply as answer, route, type Route } from '../route.ts';

const administering = { access: 'admin', action: 'administer' } as const;

export const adminConsoleRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: consoleMount,
    ...administering,
    bucket: 'read',
    page: true,
    handle: async ({ request, reply, context }) => {
      if (request.caller === null) return sendPage(context, reply, consoleMount);
      await invoke(context, request, 'inspect', undefined, async () => context.console.page(consoleMount));
      const { token } = request.query as { readonly token?: string };
      if (token === undefined) return sendPage(context, reply, consoleMount);
      return beginByUrl(context, request, reply, `Bearer ${token}`);
    },
  }),
  route({
    method: 'GET',
    path: '/admin/dashboard',
    ...administering,
    bucket: 'read',
    page: true,
    handle: async ({ request, reply, context }) => {
      if (request.caller !== null)
        await invoke(context, request, 'inspect', undefined, async () => context.console.page(consoleMount));
      return sendPage(context, reply, consoleMount);
    },
  }),
  route({
    method: 'POST',
    path: '/admin/console/codes',
    ...administering,
    summary: 'A one-time code that opens the console within a minute',
    tags: ['system'],
    replies: { 201: z.object({ code: z.string(), expires_in_secs: z.int() }) },
    run: async (_, { request, context }) => {
      const { authorization } = request.headers;
      const code = context.console.sessions.mintCode(authorization === undefined ? {} : { administrator: authorization });
      return answer(201, { code, expires_in_secs: 60 }, { 'cache-control': 'no-store' });
    },
  }),
];

export const workbenchRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: workbenchMount,
    access: 'probe',
    action: null,
    handle: ({ reply, context }) => sendPage(context, reply, workbenchMount),
  }),
  ...sessionRoutes(workbenchMount),
];

export const consoleSessionRoutes = sessionRoutes(consoleMount);

function sendPage({ console }: HttpContext, reply: FastifyReply, mount: string): FastifyReply {
  const { html, headers } = console.page(mount);
  return reply.headers(headers).serializer(asText).send(html);
}

/** The credential leaves the address at once: it must stand in no history and in no log. */
function beginByUrl(context: HttpContext, request: FastifyRequest, reply: FastifyReply, administrator: string): FastifyReply {
  const { cookie } = context.console.sessions.begin({ administrator });
  return reply
    .code(303)
    .headers({
      location: consoleMount,
      'set-cookie': setCookie(request, consoleMount, cookie, false),
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
    })
    .send();
}

const asText = (payload: unknown): string => payload as string;
