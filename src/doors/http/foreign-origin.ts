/**
 * Requests that a foreign web page made a browser on this machine send: under a name that is not this machine's (DNS rebinding),
 * from another origin, or as a content type that needs no preflight. Where no credential is asked for, nothing else tells them
 * from a developer's own. Source: Model Context Protocol, "Streamable HTTP", security warning; Fetch standard, CORS-safelisted types.
 */
import { ServiceError } from '../../errors.ts';

type Headers = Readonly<Record<string, string | string[] | undefined>>;

const withoutPreflight: ReadonlySet<string> = new Set(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']);

/** Throws REL_ACL. `bound`: to loopback alone, or to any address, where the names of this machine are not known. */
export function refuseForeign({ host, origin, 'content-type': type }: Headers, bound: 'loopback' | 'any'): void {
  const name = hostname(`http://${String(host)}`);
  if (bound === 'loopback' && !isLoopbackName(name)) throw refusal('the Host header names another host than localhost');
  if (origin !== undefined) {
    const from = hostname(String(origin));
    const isOwn = isLoopbackName(from) || (bound === 'any' && from !== null && from === name);
    if (!isOwn) throw refusal('the Origin header names another site');
  }
  const media = String(type ?? '')
    .split(';', 1)[0]!
    .trim()
    .toLowerCase();
  if (withoutPreflight.has(media)) throw refusal(`a page of any site could send ${media}: send content-type: application/json`);
}

const refusal = (why: string): ServiceError => new ServiceError('REL_ACL', why);

function hostname(url: string): string | null {
  try {
    return new URL(url).hostname;
  } catch {
    return null;
  }
}

function isLoopbackName(name: string | null): boolean {
  return name !== null && /^(?:localhost|[^.]+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(name);
}
