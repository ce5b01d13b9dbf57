/**
 * Organisation paths: `tenant/unit/…`, compared segment by segment and byte by byte as sent. No percent-decoding, no case
 * folding, no Unicode normalisation: two spellings are two organisations, so no caller reaches a neighbour by respelling.
 */
import { ServiceError } from '../../errors.ts';
import { checkText } from '../../log/values/value.ts';
import { covers } from '../caller.ts';

const organizationBytesMax = 512;

/**
 * The path that an organisation header names; null when there is no header. Node joins a header that was sent twice
 * with a comma, so a comma is refused: which of the two a proxy checked is anybody's guess.
 */
export function parseOrganization(organizationHeader: string | readonly string[] | undefined): string | null {
  if (organizationHeader === undefined) return null;
  if (typeof organizationHeader !== 'string') throw malformedPathError('was sent more than once');
  checkOrganization(organizationHeader);
  return organizationHeader;
}

/** Throws REL_INVALID unless `organizationPath` can name an organisation. */
export function checkOrganization(organizationPath: string): void {
  checkText(organizationPath, 'the organisation path');
  if (Buffer.byteLength(organizationPath) > organizationBytesMax)
    throw malformedPathError(`is longer than ${organizationBytesMax} bytes`);
  for (let i = 0; i < organizationPath.length; i++) {
    const codeUnit = organizationPath.charCodeAt(i);
    if (codeUnit < 0x20 || codeUnit === 0x7f) throw malformedPathError('holds a control character');
    if (codeUnit === 0x2c) throw malformedPathError('holds a comma, or was sent more than once');
  }
  for (const pathSegment of organizationPath.split('/')) {
    if (pathSegment.trim() !== pathSegment || pathSegment === '') throw malformedPathError('has an empty or padded segment');
  }
}

/**
 * The path in force for a credential and a header. A credential bound to a tenant stays inside it whatever the header
 * says; an unbound one goes where the header points, and without a header sees rows without a tenant only.
 */
export function pathInForce(
  credential: { readonly tenant: string | null; readonly organization: string | null },
  organizationHeader: string | null,
): string | null {
  const { tenant, organization } = credential;
  if (tenant === null) return organizationHeader ?? organization;
  if (organizationHeader === null) return organization ?? tenant;
  if (!covers(tenant, organizationHeader)) {
    throw foreignOrganization();
  }
  return organizationHeader;
}

export function foreignOrganization(): ServiceError {
  return new ServiceError('REL_XORG', 'tenant mismatch: the organisation header names a path outside the tenant of the token');
}

const malformedPathError = (why: string): ServiceError => new ServiceError('REL_INVALID', `the organisation path ${why}`);
