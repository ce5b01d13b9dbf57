/** Errors that point into the statement's text. */
import { type ErrorCode, ServiceError } from '../errors.ts';
import type { Place } from './statement.ts';

export function at(code: ErrorCode, detail: string, place: Place): ServiceError {
  return new ServiceError(code, `${place.line}:${place.column}: ${detail}`, { line: place.line, column: place.column });
}
