/** Errors that point into the statement's text, where it has one. */
import { type ErrorCode, type ErrorReason, ServiceError } from '../../errors.ts';
import type { Location } from './statement.ts';

/** The location of errors in statements without a text. */
export const nowhere: Location = { line: 0, column: 0 };

export function errorAt(code: ErrorCode, detail: string, place: Location, reason?: ErrorReason): ServiceError {
  const facts = reason === undefined ? {} : { reason };
  if (place.line === 0) return new ServiceError(code, detail, facts);
  const { line, column } = place;
  return new ServiceError(code, `${line}:${column}: ${detail}`, { ...facts, line, column });
}
