/**
 * The two secrets that come from settings: the bootstrap secret of the compatibility doors, and the admin credential.
 * Neither authenticates the HTTP data routes.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import { ServiceError } from '../../errors.ts';
import type { Settings } from '../../config.ts';
import { unauthenticatedError } from './bearer-tokens.ts';

type SecretSettings = Pick<Settings, 'SERVICE_PROFILE' | 'SERVICE_ADMIN_TOKEN' | 'SERVICE_BEARER_TOKEN'>;

/** Throws unless `presented` is the admin credential: REL_UNAUTHENTICATED, or REL_UNAVAILABLE where a server has none. */
export function verifyAdmin(settings: SecretSettings, presented: string | null): void {
  const expected = adminCredential(settings);
  if (expected === null && settings.SERVICE_PROFILE !== 'free') {
    throw new ServiceError('REL_UNAVAILABLE', 'the admin surface is closed: SERVICE_ADMIN_TOKEN is not set');
  }
  if (!sameSecret(expected, presented)) throw unauthenticatedError();
}

/** For doors that carry no registry token. */
export function isSharedSecret(settings: SecretSettings, presented: string | null): boolean {
  return sameSecret(settings.SERVICE_BEARER_TOKEN, presented);
}

/** On `free` the bearer token stands in for an unset admin token; a server that forgot one must not open by accident. */
function adminCredential(settings: SecretSettings): string | null {
  return settings.SERVICE_ADMIN_TOKEN ?? (settings.SERVICE_PROFILE === 'free' ? settings.SERVICE_BEARER_TOKEN : null);
}

/** Digests are of equal length whatever was sent, which `timingSafeEqual` needs and which hides the secret's length. */
function sameSecret(expected: string | null, presented: string | null): boolean {
  if (expected === null || expected === '' || presented === null) return false;
  return timingSafeEqual(hash('sha256', expected, 'buffer'), hash('sha256', presented, 'buffer'));
}
