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

const sessionRouteAccess = { access: 'page', action: 'inspect', bucket: 'read' } as const;
const sessionSecretField = z.string().min(1).max(4_096);
const actingSecs = 15 * 60;

const signInBody = z.strictObject({
  admin: sessionSecretField.optional().describe('the admin credential'),
  token: sessionSecretField.optional().describe('a registry token'),
  code: sessionSecretField.optional().describe('a one-time code'),
});

const actingBody = z.strictObject({
  token_id: z.string().describe('the registry token whose principal, roles and tenant are taken'),
  reason: z.string().trim().min(3).max(500),
});

const forwardedMethods: readonly RouteMethod[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Routes below the mount of a page: the administrator's on the admin listener, the workbench's on the data listener. */
export function sessionRoutes(sessionMount: string): readonly Route[] {
  const isConsoleMount = sessionMount === consoleMount;
  return [
    route({
      method: 'GET',
      path: `${sessionMount}/files/:name`,
      access: 'probe',
      action: null,
      params: z.object({ name: z.string() }),
      handle: ({ params: fileParams, reply: sessionReply, context: httpContext }) =>
        sessionReply.headers(fileHeaders).send(Buffer.from(httpContext.console.file(fileParams.name))),
    }),
    route({
      method: 'POST',
      path: `${sessionMount}/session`,
      ...sessionRouteAccess,
      body: signInBody,
      handle: ({ body: sessionBody, request: sessionRequest, reply: sessionReply, context: httpContext }) => {
        refuseOtherPages(sessionRequest, boundOf(httpContext, sessionMount));
        if (sessionRequest.headers.origin === undefined) throw new ServiceError('REL_ACL', 'a page of ours sends its Origin');
        const sessionCookie =
          beginSession(httpContext, sessionRequest, sessionBody, isConsoleMount) ?? cookieOf(sessionRequest, sessionMount);
        const { session: browserSession, secret: claimedSecret } = httpContext.console.sessions.claim(sessionCookie);
        guardSessionReply(sessionReply, httpContext, sessionRequest, sessionMount, browserSession.cookie);
        return { secret: claimedSecret, ...describeSession(httpContext, sessionRequest, browserSession, sessionMount) };
      },
    }),
    route({
      method: 'GET',
      path: `${sessionMount}/session`,
      ...sessionRouteAccess,
      handle: ({ request: sessionRequest, reply: sessionReply, context: httpContext }) => {
        const browserSession = browserSessionOf(httpContext, sessionRequest, sessionMount);
        guardSessionReply(sessionReply, httpContext, sessionRequest, sessionMount, browserSession.cookie);
        return describeSession(httpContext, sessionRequest, browserSession, sessionMount);
      },
    }),
    route({
      method: 'DELETE',
      path: `${sessionMount}/session`,
      ...sessionRouteAccess,
      handle: async ({ request: sessionRequest, reply: sessionReply, context: httpContext }) => {
        const browserSession = browserSessionOf(httpContext, sessionRequest, sessionMount);
        await endActing(httpContext, sessionRequest, browserSession);
        httpContext.console.sessions.end(browserSession);
        guardSessionReply(sessionReply, httpContext, sessionRequest, sessionMount, null);
        return { ended: true };
      },
    }),
    route({
      method: 'PUT',
      path: `${sessionMount}/session/token`,
      ...sessionRouteAccess,
      body: z.strictObject({ token: sessionSecretField }),
      handle: ({ body: sessionBody, request: sessionRequest, context: httpContext }) => {
        const browserSession = browserSessionOf(httpContext, sessionRequest, sessionMount);
        callerOfToken(httpContext, sessionRequest, sessionBody.token);
        browserSession.token = sessionBody.token;
        return describeSession(httpContext, sessionRequest, browserSession, sessionMount);
      },
    }),
    ...(isConsoleMount ? consoleActingRoutes(sessionMount) : []),
    ...forwardedMethods.map((forwardedMethod) =>
      route({
        method: forwardedMethod,
        path: `${sessionMount}/api/*`,
        ...sessionRouteAccess,
        reads: 'stream',
        handle: ({ request: sessionRequest, reply: sessionReply, context: httpContext }) => {
          const browserSession = browserSessionOf(httpContext, sessionRequest, sessionMount);
          const registryToken = sessionToken(httpContext, browserSession);
          if (registryToken === null)
            throw new ServiceError('REL_ACL', 'this session holds no registry token: paste one, or act as a principal');
          forwardToListener(
            httpContext.console.data!,
            `${sessionMount}/api`,
            `Bearer ${registryToken}`,
            sessionRequest,
            sessionReply,
          );
        },
      }),
    ),
  ];
}

function consoleActingRoutes(actingMount: string): readonly Route[] {
  return [
    route({
      method: 'POST',
      path: `${actingMount}/session/acting`,
      ...sessionRouteAccess,
      body: actingBody,
      handle: async ({ body: actingFields, request: sessionRequest, context: httpContext }) => {
        const actingSession = browserSessionOf(httpContext, sessionRequest, actingMount);
        requireAdministrator(httpContext, sessionRequest, actingSession);
        if (sessionToken(httpContext, actingSession) !== actingSession.token)
          throw new ServiceError('REL_CONFLICT', 'this session acts as somebody already: end that first');
        actingSession.acting = await mintActing(httpContext, sessionRequest, actingFields);
        return describeSession(httpContext, sessionRequest, actingSession, actingMount);
      },
    }),
    route({
      method: 'DELETE',
      path: `${actingMount}/session/acting`,
      ...sessionRouteAccess,
      handle: async ({ request: sessionRequest, context: httpContext }) => {
        const actingSession = browserSessionOf(httpContext, sessionRequest, actingMount);
        await endActing(httpContext, sessionRequest, actingSession);
        return describeSession(httpContext, sessionRequest, actingSession, actingMount);
      },
    }),
    ...forwardedMethods.map((forwardedMethod) =>
      route({
        method: forwardedMethod,
        path: `${actingMount}/administer/*`,
        ...sessionRouteAccess,
        reads: 'stream',
        handle: ({ request: sessionRequest, reply: sessionReply, context: httpContext }) => {
          const { administrator } = browserSessionOf(httpContext, sessionRequest, actingMount);
          if (administrator === null) throw new ServiceError('REL_ACL', 'this session is not the administrator’s');
          forwardToListener(httpContext.console.admin!, `${actingMount}/administer`, administrator, sessionRequest, sessionReply);
        },
      }),
    ),
  ];
}

/** The cookie of a new session; undefined where the body brings no credential, as that of a page that was redirected does. */
function beginSession(
  httpContext: HttpContext,
  sessionRequest: FastifyRequest,
  { admin: adminCredential, token: registryToken, code: oneTimeCode }: z.output<typeof signInBody>,
  isConsoleMount: boolean,
): string | undefined {
  const { sessions: browserSessions } = httpContext.console;
  if (oneTimeCode !== undefined) return browserSessions.begin(browserSessions.redeem(oneTimeCode)).cookie;
  if (registryToken !== undefined) {
    callerOfToken(httpContext, sessionRequest, registryToken);
    return browserSessions.begin({ token: registryToken }).cookie;
  }
  if (adminCredential === undefined || !isConsoleMount) return undefined;
  const adminAuthorization = `Bearer ${adminCredential}`;
  httpContext.authenticator.adminCaller({ authorization: adminAuthorization, door: 'http-admin', clientIp: sessionRequest.ip });
  return browserSessions.begin({ administrator: adminAuthorization }).cookie;
}

function browserSessionOf(httpContext: HttpContext, sessionRequest: FastifyRequest, sessionMount: string): BrowserSession {
  refuseOtherPages(sessionRequest, boundOf(httpContext, sessionMount));
  const consoleSession = httpContext.console.sessions.find(
    cookieOf(sessionRequest, sessionMount),
    headerText(sessionRequest, secretHeader) ?? undefined,
  );
  httpContext.connections.know(sessionRequest.raw.socket);
  return consoleSession;
}

function callerOfToken({ authenticator }: HttpContext, sessionRequest: FastifyRequest, registryToken: string): Caller {
  return authenticator.dataCaller({ authorization: `Bearer ${registryToken}`, door: 'http', clientIp: sessionRequest.ip });
}

/** The token of the principal that the administrator acts as, else the session's own. */
function sessionToken({ clock }: HttpContext, browserSession: BrowserSession): string | null {
  if (browserSession.acting !== null && clock.now() >= browserSession.acting.expiresAt) browserSession.acting = null;
  return browserSession.acting?.token ?? browserSession.token;
}

/** Sends the request on to the routes of a listener, under the credential that the session stands for. */
function forwardToListener(
  listenerRouting: (sessionRequest: FastifyRequest['raw'], response: FastifyReply['raw']) => void,
  forwardedPrefix: string,
  sessionAuthorization: string,
  request: FastifyRequest,
  forwardedReply: FastifyReply,
): void {
  const { raw: forwardedRequest } = request;
  forwardedRequest.url = forwardedRequest.url!.slice(forwardedPrefix.length);
  delete forwardedRequest.headers.cookie;
  delete forwardedRequest.headers[secretHeader];
  forwardedRequest.headers.authorization = sessionAuthorization;
  for (const [guardName, guardValue] of Object.entries(guardHeaders)) forwardedReply.raw.setHeader(guardName, guardValue);
  forwardedReply.hijack();
  listenerRouting(forwardedRequest, forwardedReply.raw);
}

function guardSessionReply(
  sessionReply: FastifyReply,
  { tls }: HttpContext,
  sessionRequest: FastifyRequest,
  sessionMount: string,
  sessionCookie: string | null,
): void {
  const isSecureCookie = (tls ?? null) !== null && sessionMount !== consoleMount;
  sessionReply.headers({ ...guardHeaders, 'set-cookie': setCookie(sessionRequest, sessionMount, sessionCookie, isSecureCookie) });
}

/** The session as the page may know it: whom it stands for, never by which credential. */
function describeSession(
  httpContext: HttpContext,
  sessionRequest: FastifyRequest,
  browserSession: BrowserSession,
  sessionMount: string,
) {
  const { system: systemDesk } = httpContext;
  const registryToken = sessionToken(httpContext, browserSession);
  let sessionCaller: Caller | null = null;
  if (registryToken !== null) {
    try {
      sessionCaller = callerOfToken(httpContext, sessionRequest, registryToken);
    } catch (tokenError) {
      if (!(tokenError instanceof ServiceError) || tokenError.code !== 'REL_UNAUTHENTICATED') throw tokenError;
      if (browserSession.acting === null) browserSession.token = null;
      browserSession.acting = null;
    }
  }
  if (sessionCaller === null && browserSession.token === null && browserSession.administrator === null) {
    httpContext.console.sessions.end(browserSession);
    throw unauthenticatedError();
  }
  const { acting: sessionActing } = browserSession;
  return {
    mount: sessionMount,
    version: systemDesk.version,
    profile: systemDesk.profile,
    demo: systemDesk.demo,
    administrator: browserSession.administrator !== null,
    caller: sessionCaller && {
      principal: sessionCaller.principal,
      tenant: sessionCaller.tenant,
      organization: sessionCaller.path,
      roles: sessionCaller.roles,
      purposes: sessionCaller.purposes,
    },
    acting: sessionActing && {
      principal: sessionActing.principal,
      organization: sessionActing.organization,
      reason: sessionActing.reason,
      expires_at: formatInstant(sessionActing.expiresAt),
    },
  };
}

function requireAdministrator(
  httpContext: HttpContext,
  sessionRequest: FastifyRequest,
  { administrator: adminAuthorization }: BrowserSession,
): void {
  if (adminAuthorization === null) throw new ServiceError('REL_ACL', 'only the administrator acts as somebody else');
  sessionRequest.caller = httpContext.authenticator.adminCaller({
    authorization: adminAuthorization,
    door: 'http-admin',
    clientIp: sessionRequest.ip,
  });
}

/** A token that ends by itself; the access record holds the reason. */
function mintActing(
  httpContext: HttpContext,
  sessionRequest: FastifyRequest,
  { token_id: actedTokenId, reason: actingReason }: z.output<typeof actingBody>,
): Promise<Acting> {
  return invoke(httpContext, sessionRequest, 'administer', undefined, async (mintInvocation) => {
    const actedToken = mintInvocation.tokens().find((registryToken) => registryToken.id === actedTokenId);
    if (actedToken === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such token');
    const {
      principal: actedPrincipal,
      tenant: actedTenant,
      organization: actedOrganization,
      roles,
      attributes,
      purposes,
    } = actedToken;
    const actingDraft = draftToken(
      {
        principal: actedPrincipal,
        tenant: actedTenant ?? undefined,
        organization: actedOrganization ?? undefined,
        roles,
        attributes,
        purposes,
        expiresInSecs: actingSecs,
      },
      httpContext.ids,
      httpContext.random,
      httpContext.clock.now(),
    );
    mintInvocation.describe({ template: `act as ${actedPrincipal}`, breakGlass: actingReason });
    await mintInvocation.submit({ kind: 'mint-token', token: actingDraft.record }, { sync: true });
    const { id: tokenId, expiresAt } = actingDraft.record;
    return {
      principal: actedPrincipal,
      organization: actedOrganization,
      reason: actingReason,
      tokenId,
      token: actingDraft.token,
      expiresAt,
    };
  });
}

/** The minted token is revoked, unless it has ended by itself. */
async function endActing(httpContext: HttpContext, sessionRequest: FastifyRequest, actingSession: BrowserSession): Promise<void> {
  const { acting: endedActing } = actingSession;
  if (endedActing === null) return;
  actingSession.acting = null;
  if (httpContext.clock.now() >= endedActing.expiresAt) return;
  requireAdministrator(httpContext, sessionRequest, actingSession);
  await invoke(httpContext, sessionRequest, 'administer', undefined, (revokeInvocation) =>
    submitNamed(revokeInvocation, { kind: 'revoke-token', id: endedActing.tokenId }),
  );
}
