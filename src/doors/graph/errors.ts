/** Neo4j's names of errors, on both graph doors. */
import type { ServiceError } from '../../errors.ts';
import { errorCodesOf } from '../error-codes.ts';

export function boltCodeOf({ code, facts }: ServiceError): string {
  if (facts.reason === 'no-such-branch') return 'Neo.ClientError.Database.DatabaseNotFound';
  return errorCodesOf(code, facts.stale).bolt;
}
