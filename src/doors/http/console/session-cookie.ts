/** Cookies of the console's sessions, and the check that a request comes from the console's own page. */
import { isLoopback } from '../../../config.ts';
import { ServiceError } from '../../../errors.ts';
import type { FastifyRequest, HttpContext } from '../context.ts';
import { refuseForeign } from '../foreign-origin.ts';

export const secretHeader = 'x-annals-session';

/** Throws REL_ACL. `Host` keeps a foreign name that leads here out, `Origin` and `Sec-Fetch-Site` other ports of this machine. */
export function refuseOtherPages({ headers: pageHeaders }: FastifyRequest, listenerBind: 'loopback' | 'any'): void {
  refuseForeign(pageHeaders, listenerBind);
  const { host: hostHeader, origin: originHeader } = pageHeaders;
  if (originHeader !== undefined && originHost(originHeader) !== hostHeader)
    throw new ServiceError('REL_ACL', 'the Origin header names another page');
  const fetchSite = pageHeaders['sec-fetch-site'];
  if (fetchSite !== undefined && fetchSite !== 'same-origin')
    throw new ServiceError('REL_ACL', 'the request comes from another page');
}

export function boundOf({ settings: httpSettings }: HttpContext, consolePath: string): 'loopback' | 'any' {
  return consolePath === consoleMount || isLoopback(httpSettings.SERVICE_HTTP_BIND) ? 'loopback' : 'any';
}

export const consoleMount = '/admin/console';
export const workbenchMount = '/workbench';

/** Cookies of two servers on one machine would overwrite each other without the port in the name. */
export function cookieName(cookieRequest: FastifyRequest, cookieMount: string): string {
  return `annals-${cookieMount.slice(cookieMount.lastIndexOf('/') + 1)}-${cookieRequest.socket.localPort ?? 0}`;
}

export function cookieOf(cookieRequest: FastifyRequest, cookieMount: string): string | undefined {
  const cookiePrefix = `${cookieName(cookieRequest, cookieMount)}=`;
  const cookiePairs = (cookieRequest.headers.cookie ?? '').split(/; */);
  return cookiePairs.find((cookiePair) => cookiePair.startsWith(cookiePrefix))?.slice(cookiePrefix.length);
}

/** null: the browser forgets it. */
export function setCookie(
  cookieRequest: FastifyRequest,
  cookieMount: string,
  cookieValue: string | null,
  isSecureCookie: boolean,
): string {
  const cookieAttributes = `Path=${cookieMount}; HttpOnly; SameSite=Strict${isSecureCookie ? '; Secure' : ''}${cookieValue === null ? '; Max-Age=0' : ''}`;
  return `${cookieName(cookieRequest, cookieMount)}=${cookieValue ?? ''}; ${cookieAttributes}`;
}

function originHost(originHeader: string): string | null {
  try {
    return new URL(originHeader).host;
  } catch {
    return null;
  }
}
