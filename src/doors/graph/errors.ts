/** Neo4j's names of errors, on both graph doors. */
import type { ServiceError } from '../../errors.ts';
import { errorCodesOf } from '../error-codes.ts';

export function boltCodeOf({ code: errorCode, facts: errorFacts }: ServiceError): string {
  if (errorFacts.reason === 'no-such-branch') return 'Neo.ClientError.Database.DatabaseNotFound';
  return errorCodesOf(errorCode, errorFacts.stale).bolt;
}
