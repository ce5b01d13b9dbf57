/** Parses user names, passwords and the organisation in them, as clients of all doors send them. */
import { ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';

/** The user of a connection, as doors that have no other way to say it name an organisation: `name@acme/eu`. */
export function organizationOf(user: string): string | null {
  const at = user.lastIndexOf('@');
  return at < 0 ? null : user.slice(at + 1);
}

/** User and password out of a header of basic authentication; null where it is of another scheme, or absent. Without a colon there is no password. */
export function basicCredential(header: string | null): { readonly user: string; readonly password: string | null } | null {
  const encoded = /^basic +([A-Za-z0-9+/=]+) *$/i.exec(header ?? '')?.[1];
  if (encoded === undefined) return null;
  const text = Buffer.from(encoded, 'base64').toString();
  const colon = text.indexOf(':');
  return colon < 0 ? { user: text, password: null } : { user: text.slice(0, colon), password: text.slice(colon + 1) };
}

/** Throws REL_UNAUTHENTICATED where callers are of organisations and this one names none; `advice` says how it would. */
export function checkOrganization(
  { organizationRequired }: { readonly organizationRequired: boolean },
  { path }: Pick<Caller, 'path'>,
  advice = 'connect as name@organisation',
): void {
  if (organizationRequired && path === null)
    throw new ServiceError('REL_UNAUTHENTICATED', `the caller names no organisation: ${advice}`, { reason: 'no-organisation' });
}
