/**
 * Calls of the pages: to begin and end a session, to take a token, to act as a principal, and every route of the door by the
 * session. A call goes to the listener's own routes as if the holder of the registry token had sent it: same limits, same gate,
 * same record. The admin credential reads no data.
 */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import { draftToken, unauthenticatedError } from '../../../governance/authentication/bearer-tokens.ts';
import type { Caller } from '../../../governance/caller.ts';
import { formatInstant } from '../../../log/values/timestamp.ts';
import type { FastifyReply, FastifyRequest, HttpContext } from '../context.ts';
import { headerText } from '../request-headers.ts';
import { invoke, submitNamed } from '../invoke.ts';
import { route, type Route, type RouteMethod } from '../route.ts';
import { boundOf, consoleMount, cookieOf, refuseOtherPages, secretHeader, setCookie } from './session-cookie.ts';
import { fileHeaders, guardHeaders } from './pages.ts';
import type { Acting, BrowserSession } from './browser-sessions.ts';

const page = { access: 'page', action: 'inspect', bucket: 'read' } as const;
const secret = z.string().min(1).max(4_096);
const actSecs = 15 * 60;

const signIn = z.strictObject({
  admin: secret.optional().describe('the admin credential'),
  token: secret.optional().describe('a registry token'),
  code: secret.optional().describe('a one-time code'),
});

const actAs = z.strictObject({
  token_id: z.string().describe('the registry token whose principal, roles and tenant are taken'),
  reason: z.string().trim().min(3).max(500),
});

const methods: readonly RouteMethod[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Routes below the mount of a page: the administrator's on the admin listener, the workbench's on the data listener. */
export function sessionRoutes(mount: string): readonly Route[] {
  const isConsole = mount === consoleMount;
  return [
    route({
      method: 'GET',
      path: `${mount}/files/:name`,
      access: 'probe',
      action: null,
      params: z.object({ name: z.string() }),
      handle: ({ params, reply, context }) => reply.headers(fileHeaders).send(Buffer.from(context.console.file(params.name))),
    }),
    route({
      method: 'POST',
      path: `${mount}/session`,
      ...page,
      body: signIn,
      handle: ({ body, request, reply, context }) => {
        refuseOtherPages(request, boundOf(context, mount));
        if (request.headers.origin === undefined) throw new ServiceError('REL_ACL', 'a page of ours sends its Origin');
        const cookie = beginSession(context, request, body, isConsole) ?? cookieOf(request, mount);
        const { session, secret: given } = context.console.sessions.claim(cookie);
        guard(reply, context, request, mount, session.cookie);
        return { secret: given, ...describeSession(context, request, session, mount) };
      },
    }),
    route({
      method: 'GET',
      path: `${mount}/session`,
      ...page,
      handle: ({ request, reply, context }) => {
        const session = sessionOf(context, request, mount);
        guard(reply, context, request, mount, session.cookie);
        return describeSession(context, request, session, mount);
      },
    }),
    route({
      method: 'DELETE',
      path: `${mount}/session`,
      ...page,
      handle: async ({ request, reply, context }) => {
        const session = sessionOf(context, request, mount);
        await endActing(context, request, session);
        context.console.sessions.end(session);
        guard(reply, context, request, mount, null);
        return { ended: true };
      },
    }),
    route({
      method: 'PUT',
      path: `${mount}/session/token`,
      ...page,
      body: z.strictObject({ token: secret }),
      handle: ({ body, request, context }) => {
        const session = sessionOf(context, request, mount);
        callerOfToken(context, request, body.token);
        session.token = body.token;
        return describeSession(context, request, session, mount);
      },
    }),
    ...(isConsole ? actingRoutes(mount) : []),
    ...methods.map((method) =>
      route({
        method,
        path: `${mount}/api/*`,
        ...page,
        reads: 'stream',
        handle: ({ request, reply, context }) => {
          const session = sessionOf(context, request, mount);
          const token = tokenOf(context, session);
          if (token === null)
            throw new ServiceError('REL_ACL', 'this session holds no registry token: paste one, or act as a principal');
          forward(context.console.data!, `${mount}/api`, `Bearer ${token}`, request, reply);
        },
      }),
    ),
  ];
}

function actingRoutes(mount: string): readonly Route[] {
  return [
    route({
      method: 'POST',
      path: `${mount}/session/acting`,
      ...page,
      body: actAs,
      handle: async ({ body, request, context }) => {
        const session = sessionOf(context, request, mount);
        becomeAdministrator(context, request, session);
        if (tokenOf(context, session) !== session.token)
          throw new ServiceError('REL_CONFLICT', 'this session acts as somebody already: end that first');
        session.acting = await mintActing(context, request, body);
        return describeSession(context, request, session, mount);
      },
    }),
    route({
      method: 'DELETE',
      path: `${mount}/session/acting`,
      ...page,
      handle: async ({ request, context }) => {
        const session = sessionOf(context, request, mount);
        await endActing(context, request, session);
        return describeSession(context, request, session, mount);
      },
    }),
    ...methods.map((method) =>
      route({
        method,
        path: `${mount}/administer/*`,
        ...page,
        reads: 'stream',
        handle: ({ request, reply, context }) => {
          const { administrator } = sessionOf(context, request, mount);
          if (administrator === null) throw new ServiceError('REL_ACL', 'this session is not the administrator’s');
          forward(context.console.admin!, `${mount}/administer`, administrator, request, reply);
        },
      }),
    ),
  ];
}

/** The cookie of a new session; undefined where the body brings no credential, as that of a page that was redirected does. */
function beginSession(
  context: HttpContext,
  request: FastifyRequest,
  { admin, token, code }: z.output<typeof signIn>,
  isConsole: boolean,
): string | undefined {
  const { sessions } = context.console;
  if (code !== undefined) return sessions.begin(sessions.redeem(code)).cookie;
  if (token !== undefined) {
    callerOfToken(context, request, token);
    return sessions.begin({ token }).cookie;
  }
  if (admin === undefined || !isConsole) return undefined;
  const administrator = `Bearer ${admin}`;
  context.authenticator.adminCaller({ authorization: administrator, door: 'http-admin', clientIp: request.ip });
  return sessions.begin({ administrator }).cookie;
}

function sessionOf(context: HttpContext, request: FastifyRequest, mount: string): BrowserSession {
  refuseOtherPages(request, boundOf(context, mount));
  const consoleSession = context.console.sessions.find(cookieOf(request, mount), headerText(request, secretHeader) ?? undefined);
  context.connections.know(request.raw.socket);
  return consoleSession;
}

function callerOfToken({ authenticator }: HttpContext, request: FastifyRequest, token: string): Caller {
  return authenticator.dataCaller({ authorization: `Bearer ${token}`, door: 'http', clientIp: request.ip });
}

/** The token of the principal that the administrator acts as, else the session's own. */
function tokenOf({ clock }: HttpContext, session: BrowserSession): string | null {
  if (session.acting !== null && clock.now() >= session.acting.expiresAt) session.acting = null;
  return session.acting?.token ?? session.token;
}

/** Sends the request on to the routes of a listener, under the credential that the session stands for. */
function forward(
  routing: (request: FastifyRequest['raw'], response: FastifyReply['raw']) => void,
  prefix: string,
  authorization: string,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const { raw } = request;
  raw.url = raw.url!.slice(prefix.length);
  delete raw.headers.cookie;
  delete raw.headers[secretHeader];
  raw.headers.authorization = authorization;
  for (const [name, value] of Object.entries(guardHeaders)) reply.raw.setHeader(name, value);
  reply.hijack();
  routing(raw, reply.raw);
}

function guard(reply: FastifyReply, { tls }: HttpContext, request: FastifyRequest, mount: string, cookie: string | null): void {
  const isSecure = (tls ?? null) !== null && mount !== consoleMount;
  reply.headers({ ...guardHeaders, 'set-cookie': setCookie(request, mount, cookie, isSecure) });
}

/** The session as the page may know it: whom it stands for, never by which credential. */
function describeSession(context: HttpContext, request: FastifyRequest, session: BrowserSession, mount: string) {
  const { system } = context;
  const token = tokenOf(context, session);
  let caller: Caller | null = null;
  if (token !== null) {
    try {
      caller = callerOfToken(context, request, token);
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'REL_UNAUTHENTICATED') throw error;
      if (session.acting === null) session.token = null;
      session.acting = null;
    }
  }
  if (caller === null && session.token === null && session.administrator === null) {
    context.console.sessions.end(session);
    throw unauthenticatedError();
  }
  const { acting } = session;
  return {
    mount,
    version: system.version,
    profile: system.profile,
    demo: system.demo,
    administrator: session.administrator !== null,
    caller: caller && {
      principal: caller.principal,
      tenant: caller.tenant,
      organization: caller.path,
      roles: caller.roles,
      purposes: caller.purposes,
    },
    acting: acting && {
      principal: acting.principal,
      organization: acting.organization,
      reason: acting.reason,
      expires_at: formatInstant(acting.expiresAt),
    },
  };
}

function becomeAdministrator(context: HttpContext, request: FastifyRequest, { administrator }: BrowserSession): void {
  if (administrator === null) throw new ServiceError('REL_ACL', 'only the administrator acts as somebody else');
  request.caller = context.authenticator.adminCaller({ authorization: administrator, door: 'http-admin', clientIp: request.ip });
}

/** A token that ends by itself; the access record holds the reason. */
function mintActing(
  context: HttpContext,
  request: FastifyRequest,
  { token_id: id, reason }: z.output<typeof actAs>,
): Promise<Acting> {
  return invoke(context, request, 'administer', undefined, async (invocation) => {
    const like = invocation.tokens().find((token) => token.id === id);
    if (like === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such token');
    const { principal, tenant, organization, roles, attributes, purposes } = like;
    const drafted = draftToken(
      {
        principal,
        tenant: tenant ?? undefined,
        organization: organization ?? undefined,
        roles,
        attributes,
        purposes,
        expiresInSecs: actSecs,
      },
      context.ids,
      context.random,
      context.clock.now(),
    );
    invocation.describe({ template: `act as ${principal}`, breakGlass: reason });
    await invocation.submit({ kind: 'mint-token', token: drafted.record }, { sync: true });
    const { id: tokenId, expiresAt } = drafted.record;
    return { principal, organization, reason, tokenId, token: drafted.token, expiresAt };
  });
}

/** The minted token is revoked, unless it has ended by itself. */
async function endActing(context: HttpContext, request: FastifyRequest, session: BrowserSession): Promise<void> {
  const { acting } = session;
  if (acting === null) return;
  session.acting = null;
  if (context.clock.now() >= acting.expiresAt) return;
  becomeAdministrator(context, request, session);
  await invoke(context, request, 'administer', undefined, (invocation) =>
    submitNamed(invocation, { kind: 'revoke-token', id: acting.tokenId }),
  );
}
