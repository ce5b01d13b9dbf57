/**
 * The two secrets that come from settings: the bootstrap secret of the compatibility doors, and the admin credential.
 * Neither authenticates the HTTP data routes.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import { ServiceError } from '../../errors.ts';
import type { Settings } from '../../config.ts';
import { unauthenticatedError } from './bearer-tokens.ts';

type SecretSettings = Pick<Settings, 'SERVICE_PROFILE' | 'SERVICE_ADMIN_TOKEN' | 'SERVICE_BEARER_TOKEN'>;

/** Throws unless `presentedSecret` is the admin credential: REL_UNAUTHENTICATED, or REL_UNAVAILABLE where a server has none. */
export function verifyAdmin(settings: SecretSettings, presentedSecret: string | null): void {
  const adminSecret = adminSecretOf(settings);
  if (adminSecret === null && settings.SERVICE_PROFILE !== 'free') {
    throw new ServiceError('REL_UNAVAILABLE', 'the admin surface is closed: SERVICE_ADMIN_TOKEN is not set');
  }
  if (!sameSecret(adminSecret, presentedSecret)) throw unauthenticatedError();
}

/** For doors that carry no registry token. */
export function isSharedSecret(settings: SecretSettings, presentedSecret: string | null): boolean {
  return sameSecret(settings.SERVICE_BEARER_TOKEN, presentedSecret);
}

/** On `free` the bearer token stands in for an unset admin token; a server that forgot one must not open by accident. */
function adminSecretOf(settings: SecretSettings): string | null {
  return settings.SERVICE_ADMIN_TOKEN ?? (settings.SERVICE_PROFILE === 'free' ? settings.SERVICE_BEARER_TOKEN : null);
}

/** Digests are of equal length whatever was sent, which `timingSafeEqual` needs and which hides the secret's length. */
function sameSecret(expectedSecret: string | null, presentedSecret: string | null): boolean {
  if (expectedSecret === null || expectedSecret === '' || presentedSecret === null) return false;
  return timingSafeEqual(hash('sha256', expectedSecret, 'buffer'), hash('sha256', presentedSecret, 'buffer'));
}
