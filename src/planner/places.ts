/** Errors that point into the statement's text, where it has one. */
import { type ErrorCode, ServiceError } from '../errors.ts';
import type { Place } from './statement.ts';

/** Where a statement has no text: its errors point nowhere. */
export const nowhere: Place = { line: 0, column: 0 };

export function at(code: ErrorCode, detail: string, place: Place): ServiceError {
  if (place.line === 0) return new ServiceError(code, detail);
  return new ServiceError(code, `${place.line}:${place.column}: ${detail}`, { line: place.line, column: place.column });
}
