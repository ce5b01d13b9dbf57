/**
 * Organisation paths: `tenant/unit/…`, compared segment by segment and byte by byte as sent. No percent-decoding, no case
 * folding, no Unicode normalisation: two spellings are two organisations, so no caller reaches a neighbour by respelling.
 */
import { ServiceError } from '../../errors.ts';
import { checkText } from '../../log/values/value.ts';
import { covers } from '../caller.ts';

const pathBytesMax = 512;

/**
 * The path that an organisation header names; null when there is no header. Node joins a header that was sent twice
 * with a comma, so a comma is refused: which of the two a proxy checked is anybody's guess.
 */
export function parseOrganization(header: string | readonly string[] | undefined): string | null {
  if (header === undefined) return null;
  if (typeof header !== 'string') throw malformedError('was sent more than once');
  checkOrganization(header);
  return header;
}

/** Throws REL_INVALID unless `path` can name an organisation. */
export function checkOrganization(path: string): void {
  checkText(path, 'the organisation path');
  if (Buffer.byteLength(path) > pathBytesMax) throw malformedError(`is longer than ${pathBytesMax} bytes`);
  for (let i = 0; i < path.length; i++) {
    const unit = path.charCodeAt(i);
    if (unit < 0x20 || unit === 0x7f) throw malformedError('holds a control character');
    if (unit === 0x2c) throw malformedError('holds a comma, or was sent more than once');
  }
  for (const segment of path.split('/')) {
    if (segment.trim() !== segment || segment === '') throw malformedError('has an empty or padded segment');
  }
}

/**
 * The path in force for a credential and a header. A credential bound to a tenant stays inside it whatever the header
 * says; an unbound one goes where the header points, and without a header sees rows without a tenant only.
 */
export function pathInForce(
  credential: { readonly tenant: string | null; readonly organization: string | null },
  header: string | null,
): string | null {
  const { tenant, organization } = credential;
  if (tenant === null) return header ?? organization;
  if (header === null) return organization ?? tenant;
  if (!covers(tenant, header)) {
    throw foreignOrganization();
  }
  return header;
}

export function foreignOrganization(): ServiceError {
  return new ServiceError('REL_XORG', 'tenant mismatch: the organisation header names a path outside the tenant of the token');
}

const malformedError = (why: string): ServiceError => new ServiceError('REL_INVALID', `the organisation path ${why}`);
