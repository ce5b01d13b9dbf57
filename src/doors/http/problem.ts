/**
 * An error as application/problem+json. Source: specification, "Problem response". A detail comes from a ServiceError only;
 * anything else is a bug of ours, shown as REL_INTERNAL and found in the log by its correlation id.
 */
import { STATUS_CODES } from 'node:http';
import type { z } from 'zod';
import { type ErrorCode, errorTable, ServiceError } from '../../errors.ts';
import { check } from '../shared/schema-check.ts';
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

export function problemOf(serviceError: ServiceError, errorsBase: string, instance: string, correlationId: string): Problem {
  const errorRow = errorTable[serviceError.code];
  const problemStatus = errorCodes[errorRow.kind].http;
  return {
    type: `${errorsBase}/${serviceError.code}`,
    title: STATUS_CODES[problemStatus] ?? 'Error',
    status: problemStatus,
    detail:
      serviceError.code === 'REL_INTERNAL' ? 'internal error; the correlation id finds it in the log' : serviceError.message,
    instance,
    correlation_id: correlationId,
    ...(errorRow.kind === 'too_many_requests' ? { retryable: errorRow.retryable } : {}),
  };
}

/** The framework's validator for a part of a request. */
export function validator(partSchema: z.ZodType, httpPart = 'body') {
  return (sentBody: unknown): { readonly value: unknown } | { readonly error: Error } => {
    const schemaCheck = check(partSchema, sentBody);
    if (schemaCheck.success) return { value: schemaCheck.data };
    const validationIssues = schemaCheck.issues.map(({ path, message }) => ({ instancePath: `/${path.join('/')}`, message }));
    return {
      error: Object.assign(new Error('the request is malformed'), { validation: validationIssues, validationContext: httpPart }),
    };
  };
}

/** Errors that the HTTP framework raises before a handler runs, by its own codes; anything unknown is a bug of ours. */
export function toServiceError(thrownError: unknown): ServiceError {
  if (thrownError instanceof ServiceError) return thrownError;
  const {
    code: frameworkCode,
    statusCode,
    validation: validationIssues,
    message: frameworkMessage,
  } = thrownError as FrameworkError;
  if (validationIssues) return new ServiceError('REL_INVALID', validationDetail(thrownError as FrameworkError));
  const frameworkError = frameworkCode === undefined ? undefined : frameworkErrors[frameworkCode];
  if (frameworkError) return new ServiceError(frameworkError[0], frameworkError[1]);
  // Body parsers of the framework answer malformed JSON with a SyntaxError that carries a status.
  if (statusCode === 400 && thrownError instanceof SyntaxError)
    return new ServiceError('REL_INVALID', `the body is not JSON: ${frameworkMessage}`);
  return new ServiceError('REL_INTERNAL', 'internal error', { cause: thrownError });
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
function validationDetail(validationError: FrameworkError): string {
  const issueTexts = (validationError.validation ?? []).slice(0, 5).map((validationIssue) => {
    const issuePath = (validationIssue.instancePath ?? '').replace(/^\//, '').replaceAll('/', '.');
    return `${issuePath === '' ? (validationError.validationContext ?? 'body') : issuePath}: ${validationIssue.message ?? 'invalid'}`;
  });
  return issueTexts.length === 0 ? (validationError.message ?? 'the request is malformed') : issueTexts.join('; ');
}
