/** Drafts of records, and the paths that they are about. Pure. */
import { ServiceError } from '../../errors.ts';
import type { AgreementBody, EntryContext, EntryDraft, TenantBody } from '../../log/entries/entry.ts';
import { recordOf, recordText } from '../../log/entries/record-codec.ts';
import { checkIdentifier } from '../../log/values/value.ts';

const recordTextMax = 1 << 20;

/**
 * The body is as it will be read back from the log, so that what was decided is what a replay finds, order of members
 * included. Throws REL_INVALID for text that can't be written.
 */
export function recordDraft(body: TenantBody | AgreementBody, context: EntryContext): EntryDraft {
  const text = recordText(body);
  if (text.length > recordTextMax) {
    throw new ServiceError('REL_TOO_LARGE', `a ${body.kind} is over ${recordTextMax} characters as JSON`);
  }
  return { context, body: recordOf(body.kind, text) };
}

/** The tenant that a path belongs to: its first segment. */
export function tenantOfPath(path: string): string {
  return path.split('/', 1)[0]!;
}

/** True when `path` is `parent` or lies below it, segment by segment. */
export function covers(parent: string, path: string): boolean {
  return path === parent || path.startsWith(`${parent}/`);
}

/** Throws REL_INVALID unless an organisation may be called this. */
export function checkPath(path: string, what: string): void {
  for (const segment of path.split('/')) checkTenantId(segment, what);
}

export function checkTenantId(id: string, what: string): void {
  checkIdentifier(id, what);
  if (id.trim() !== id || id.includes('/') || id.includes(',')) {
    throw new ServiceError('REL_INVALID', `${what} is not an organisation path: it is padded, or holds a slash or a comma`);
  }
}
