/**
 * Purposes of requests. They form a hierarchy by colon: registering `fraud` admits `fraud:aml`, never `fraudulent`.
 * Strict mode admits registered purposes only; open mode, for development, any that is well formed.
 */
import { ServiceError } from '../../errors.ts';
import { checkIdentifier } from '../../log/values/value.ts';

export interface PurposeRules {
  readonly mode: 'strict' | 'open';
  readonly registered: readonly string[];
}

/** True when `purpose` is `coveringPurpose` or lies below it, segment by segment. */
export function purposeCovers(coveringPurpose: string, purpose: string): boolean {
  return (
    purpose === coveringPurpose ||
    (purpose.length > coveringPurpose.length &&
      purpose.startsWith(coveringPurpose) &&
      purpose.charCodeAt(coveringPurpose.length) === 0x3a)
  );
}

/** Decides about one purpose. `restrictedTo` are the purposes that the credential is limited to; empty: any registered one. */
export function checkPurpose(
  purposeRules: PurposeRules,
  purpose: string | null,
  restrictedTo: readonly string[],
  required: boolean,
): void {
  if (purpose === null || purpose === '') {
    if (required) throw new ServiceError('REL_PURPOSE', 'a purpose is required and none was given');
    return;
  }
  checkIdentifier(purpose, 'the purpose');
  if (purpose.split(':').some((segment) => segment.trim() === '')) {
    throw new ServiceError('REL_PURPOSE_UNKNOWN', `the purpose ${JSON.stringify(purpose)} has an empty segment`);
  }
  if (
    purposeRules.mode === 'strict' &&
    !purposeRules.registered.some((coveringPurpose) => purposeCovers(coveringPurpose, purpose))
  ) {
    throw new ServiceError('REL_PURPOSE_UNKNOWN', `the purpose ${JSON.stringify(purpose)} is not registered`);
  }
  if (restrictedTo.length > 0 && !restrictedTo.some((coveringPurpose) => purposeCovers(coveringPurpose, purpose))) {
    throw new ServiceError('REL_ACL', `the credential is not granted the purpose ${JSON.stringify(purpose)}`);
  }
}
