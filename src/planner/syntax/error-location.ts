/** Errors that point into the statement's text, where it has one. */
import { type ErrorCode, type ErrorReason, ServiceError } from '../../errors.ts';
import type { Location } from './statement.ts';

/** The location of errors in statements without a text. */
export const nowhere: Location = { line: 0, column: 0 };

export function errorAt(code: ErrorCode, detail: string, location: Location, reason?: ErrorReason): ServiceError {
  const errorFacts = reason === undefined ? {} : { reason };
  if (location.line === 0) return new ServiceError(code, detail, errorFacts);
  const { line, column } = location;
  return new ServiceError(code, `${line}:${column}: ${detail}`, { ...errorFacts, line, column });
}
