/**
 * An error as application/problem+json. Source: specification, "Problem response". A detail comes from a ServiceError only;
 * anything else is a bug of ours, shown as REL_INTERNAL and found in the log by its correlation id.
 */
import { STATUS_CODES } from 'node:http';
import type { z } from 'zod';
import { type ErrorCode, errorTable, ServiceError } from '../../errors.ts';
import { check } from '../schemas/schema-check.ts';
import { errorCodes } from '../error-codes.ts';

export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly instance: string;
  readonly correlation_id: string;
  readonly retryable?: boolean;
}

export const problemType = 'application/problem+json';

export function problemOf(error: ServiceError, errorsBase: string, instance: string, correlationId: string): Problem {
  const row = errorTable[error.code];
  const status = errorCodes[row.kind].http;
  return {
    type: `${errorsBase}/${error.code}`,
    title: STATUS_CODES[status] ?? 'Error',
    status,
    detail: error.code === 'REL_INTERNAL' ? 'internal error; the correlation id finds it in the log' : error.message,
    instance,
    correlation_id: correlationId,
    ...(row.kind === 'too_many_requests' ? { retryable: row.retryable } : {}),
  };
}

/** The framework's validator for a part of a request. */
export function validator(schema: z.ZodType, part = 'body') {
  return (sentBody: unknown): { readonly value: unknown } | { readonly error: Error } => {
    const read = check(schema, sentBody);
    if (read.success) return { value: read.data };
    const validation = read.issues.map(({ path, message }) => ({ instancePath: `/${path.join('/')}`, message }));
    return { error: Object.assign(new Error('the request is malformed'), { validation, validationContext: part }) };
  };
}

/** Errors that the HTTP framework raises before a handler runs, by its own codes; anything unknown is a bug of ours. */
export function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const { code, statusCode, validation, message } = error as FrameworkError;
  if (validation) return new ServiceError('REL_INVALID', validationDetail(error as FrameworkError));
  const known = code === undefined ? undefined : frameworkErrors[code];
  if (known) return new ServiceError(known[0], known[1]);
  // Body parsers of the framework answer malformed JSON with a SyntaxError that carries a status.
  if (statusCode === 400 && error instanceof SyntaxError)
    return new ServiceError('REL_INVALID', `the body is not JSON: ${message}`);
  return new ServiceError('REL_INTERNAL', 'internal error', { cause: error });
}

interface FrameworkError {
  readonly code?: string;
  readonly statusCode?: number;
  readonly message?: string;
  readonly validationContext?: string;
  readonly validation?: readonly { readonly instancePath?: string; readonly message?: string }[];
}

const frameworkErrors: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: ['REL_TOO_LARGE', 'the body is over the body limit (SERVICE_BODY_LIMIT_MB)'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['REL_INVALID', 'the Content-Type header is malformed'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['REL_INVALID', 'the body is not as long as Content-Length says'],
  FST_ERR_CTP_EMPTY_JSON_BODY: ['REL_INVALID', 'the body is empty; JSON is expected'],
  FST_ERR_CTP_INVALID_JSON_BODY: ['REL_INVALID', 'the body is not JSON'],
  FST_ERR_BAD_URL: ['REL_INVALID', 'the path is not a valid URL'],
  FST_ERR_MAX_PARAM_LENGTH: ['REL_INVALID', 'a path segment is too long'],
  ECONNRESET: ['REL_CANCELLED', 'the connection ended before the body did'],
  ERR_STREAM_PREMATURE_CLOSE: ['REL_CANCELLED', 'the connection ended before the body did'],
};

/** Names the field and its error, never the value that was sent. */
function validationDetail(error: FrameworkError): string {
  const issues = (error.validation ?? []).slice(0, 5).map((issue) => {
    const path = (issue.instancePath ?? '').replace(/^\//, '').replaceAll('/', '.');
    return `${path === '' ? (error.validationContext ?? 'body') : path}: ${issue.message ?? 'invalid'}`;
  });
  return issues.length === 0 ? (error.message ?? 'the request is malformed') : issues.join('; ');
}
