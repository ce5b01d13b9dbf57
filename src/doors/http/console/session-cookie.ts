/** Cookies of the console's sessions, and the check that a request comes from the console's own page. */
import { isLoopback } from '../../../config.ts';
import { ServiceError } from '../../../errors.ts';
import type { FastifyRequest, HttpContext } from '../context.ts';
import { refuseForeign } from '../foreign-origin.ts';

export const secretHeader = 'x-annals-session';

/** Throws REL_ACL. `Host` keeps a foreign name that leads here out, `Origin` and `Sec-Fetch-Site` other ports of this machine. */
export function refuseOtherPages({ headers }: FastifyRequest, bound: 'loopback' | 'any'): void {
  refuseForeign(headers, bound);
  const { host, origin } = headers;
  if (origin !== undefined && hostOf(origin) !== host) throw new ServiceError('REL_ACL', 'the Origin header names another page');
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin') throw new ServiceError('REL_ACL', 'the request comes from another page');
}

export function boundOf({ settings }: HttpContext, mount: string): 'loopback' | 'any' {
  return mount === consoleMount || isLoopback(settings.SERVICE_HTTP_BIND) ? 'loopback' : 'any';
}

export const consoleMount = '/admin/console';
export const workbenchMount = '/workbench';

/** Cookies of two servers on one machine would overwrite each other without the port in the name. */
export function cookieName(request: FastifyRequest, mount: string): string {
  return `annals-${mount.slice(mount.lastIndexOf('/') + 1)}-${request.socket.localPort ?? 0}`;
}

export function cookieOf(request: FastifyRequest, mount: string): string | undefined {
  const name = `${cookieName(request, mount)}=`;
  const pairs = (request.headers.cookie ?? '').split(/; */);
  return pairs.find((pair) => pair.startsWith(name))?.slice(name.length);
}

/** null: the browser forgets it. */
export function setCookie(request: FastifyRequest, mount: string, value: string | null, isSecure: boolean): string {
  const attributes = `Path=${mount}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}${value === null ? '; Max-Age=0' : ''}`;
  return `${cookieName(request, mount)}=${value ?? ''}; ${attributes}`;
}

function hostOf(origin: string): string | null {
  try {
    return new URL(origin).host;
  } catch {
    return null;
  }
}
