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
export function recordDraft(recordBody: TenantBody | AgreementBody, context: EntryContext): EntryDraft {
  const tenantRecordText = recordText(recordBody);
  if (tenantRecordText.length > recordTextMax) {
    throw new ServiceError('REL_TOO_LARGE', `a ${recordBody.kind} is over ${recordTextMax} characters as JSON`);
  }
  return { context, body: recordOf(recordBody.kind, tenantRecordText) };
}

/** The tenant that a path belongs to: its first segment. */
export function tenantOfPath(path: string): string {
  return path.split('/', 1)[0]!;
}

/** True when `innerPath` is `parentPath` or lies below it, segment by segment. */
export function covers(parentPath: string, innerPath: string): boolean {
  return innerPath === parentPath || innerPath.startsWith(`${parentPath}/`);
}

/** Throws REL_INVALID unless an organisation may be called this. */
export function checkPath(path: string, pathRole: string): void {
  for (const pathSegment of path.split('/')) checkTenantId(pathSegment, pathRole);
}

export function checkTenantId(tenantId: string, pathRole: string): void {
  checkIdentifier(tenantId, pathRole);
  if (tenantId.trim() !== tenantId || tenantId.includes('/') || tenantId.includes(',')) {
    throw new ServiceError('REL_INVALID', `${pathRole} is not an organisation path: it is padded, or holds a slash or a comma`);
  }
}
