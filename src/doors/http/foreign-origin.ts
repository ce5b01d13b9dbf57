/**
 * Requests that a foreign web page made a browser on this machine send: under a name that is not this machine's (DNS rebinding),
 * from another origin, or as a content type that needs no preflight. Where no credential is asked for, nothing else tells them
 * from a developer's own. Source: Model Context Protocol, "Streamable HTTP", security warning; Fetch standard, CORS-safelisted types.
 */
import { ServiceError } from '../../errors.ts';

type OriginHeaders = Readonly<Record<string, string | string[] | undefined>>;

const preflightlessTypes: ReadonlySet<string> = new Set([
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data',
]);

/** Throws REL_ACL. `listenerBind`: to loopback alone, or to any address, where the names of this machine are not known. */
export function refuseForeign(
  { host: hostHeader, origin: originHeader, 'content-type': contentType }: OriginHeaders,
  listenerBind: 'loopback' | 'any',
): void {
  const hostName = urlHostname(`http://${String(hostHeader)}`);
  if (listenerBind === 'loopback' && !isLoopbackHost(hostName))
    throw originRefusal('the Host header names another host than localhost');
  if (originHeader !== undefined) {
    const originHost = urlHostname(String(originHeader));
    const isOwnOrigin = isLoopbackHost(originHost) || (listenerBind === 'any' && originHost !== null && originHost === hostName);
    if (!isOwnOrigin) throw originRefusal('the Origin header names another site');
  }
  const mediaType = String(contentType ?? '')
    .split(';', 1)[0]!
    .trim()
    .toLowerCase();
  if (preflightlessTypes.has(mediaType))
    throw originRefusal(`a page of any site could send ${mediaType}: send content-type: application/json`);
}

const originRefusal = (refusalReason: string): ServiceError => new ServiceError('REL_ACL', refusalReason);

function urlHostname(originUrl: string): string | null {
  try {
    return new URL(originUrl).hostname;
  } catch {
    return null;
  }
}

function isLoopbackHost(hostName: string | null): boolean {
  return hostName !== null && /^(?:localhost|[^.]+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostName);
}
