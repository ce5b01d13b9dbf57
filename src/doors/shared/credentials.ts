/** Parses user names, passwords and the organisation in them, as clients of all doors send them. */
import { ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';

/** The user of a connection, as doors that have no other way to say it name an organisation: `name@acme/eu`. */
export function organizationOf(connectionUser: string): string | null {
  const organizationMark = connectionUser.lastIndexOf('@');
  return organizationMark < 0 ? null : connectionUser.slice(organizationMark + 1);
}

/** User and password out of a header of basic authentication; null where it is of another scheme, or absent. Without a colon there is no password. */
export function basicCredential(
  authorizationHeader: string | null,
): { readonly user: string; readonly password: string | null } | null {
  const encodedCredential = /^basic +([A-Za-z0-9+/=]+) *$/i.exec(authorizationHeader ?? '')?.[1];
  if (encodedCredential === undefined) return null;
  const credentialText = Buffer.from(encodedCredential, 'base64').toString();
  const passwordColon = credentialText.indexOf(':');
  return passwordColon < 0
    ? { user: credentialText, password: null }
    : { user: credentialText.slice(0, passwordColon), password: credentialText.slice(passwordColon + 1) };
}

/** Throws REL_UNAUTHENTICATED where callers are of organisations and this one names none; `loginAdvice` says how it would. */
export function checkOrganization(
  { organizationRequired }: { readonly organizationRequired: boolean },
  { path: callerPath }: Pick<Caller, 'path'>,
  loginAdvice = 'connect as name@organisation',
): void {
  if (organizationRequired && callerPath === null)
    throw new ServiceError('REL_UNAUTHENTICATED', `the caller names no organisation: ${loginAdvice}`, {
      reason: 'no-organisation',
    });
}
