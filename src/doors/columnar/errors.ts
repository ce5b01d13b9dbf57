/** Errors as clients of ClickHouse read them: a number, its name, and a text that begins with both. */
import { type ErrorReason, ServiceError } from '../../errors.ts';
import { errorCodesOf } from '../error-codes.ts';
import { serverVersion } from './column-types.ts';
import { withoutTrailing } from '../../log/values/trim-end.ts';

/** Names of the numbers that are sent, as clients compare them. Source: ClickHouse's ErrorCodes. */
const exceptionNames: Readonly<Record<number, string>> = {
  36: 'BAD_ARGUMENTS',
  46: 'UNKNOWN_FUNCTION',
  47: 'UNKNOWN_IDENTIFIER',
  48: 'NOT_IMPLEMENTED',
  53: 'TYPE_MISMATCH',
  57: 'TABLE_ALREADY_EXISTS',
  60: 'UNKNOWN_TABLE',
  62: 'SYNTAX_ERROR',
  73: 'UNKNOWN_FORMAT',
  74: 'CANNOT_READ_FROM_FILE_DESCRIPTOR',
  81: 'UNKNOWN_DATABASE',
  115: 'UNKNOWN_SETTING',
  117: 'INCORRECT_DATA',
  159: 'TIMEOUT_EXCEEDED',
  164: 'READONLY',
  202: 'TOO_MANY_SIMULTANEOUS_QUERIES',
  216: 'QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING',
  243: 'NOT_ENOUGH_SPACE',
  279: 'ALL_CONNECTION_TRIES_FAILED',
  307: 'TOO_MANY_BYTES',
  372: 'SESSION_NOT_FOUND',
  394: 'QUERY_WAS_CANCELLED',
  396: 'TOO_MANY_ROWS_OR_BYTES',
  456: 'UNKNOWN_QUERY_PARAMETER',
  457: 'BAD_QUERY_PARAMETER',
  497: 'ACCESS_DENIED',
  516: 'AUTHENTICATION_FAILED',
  1002: 'UNKNOWN_EXCEPTION',
};

/** Numbers of errors that only this protocol distinguishes. */
const exceptionNumbers = {
  syntax: 62,
  empty: 62,
  several: 62,
  format: 73,
  database: 81,
  setting: 115,
  data: 117,
  rows: 396,
  'same-id': 216,
  session: 372,
  parameter: 456,
  'parameter-value': 457,
} as const;

/** An error of the door's own that has a number which its code does not have. */
class ColumnarRefusal extends ServiceError {
  readonly number: number;

  constructor(exceptionNumber: number, { code, message, facts }: ServiceError) {
    super(code, message, facts);
    this.number = exceptionNumber;
  }
}

export function refusedAs(refusalKind: keyof typeof exceptionNumbers, refusedError: ServiceError): ServiceError {
  return new ColumnarRefusal(exceptionNumbers[refusalKind], refusedError);
}

/** Numbers for reasons on which clients branch. */
const numberByReason: { readonly [reason in ErrorReason]?: number } = {
  syntax: 62,
  'no-such-function': 46,
  'no-such-type': 36,
  'types-differ': 53,
  'can-not-cast': 53,
  'no-such-table-here': 60,
  'no-such-branch': 81,
  'no-such-parameter': 456,
  'not-implemented': 48,
};

export interface ColumnarError {
  readonly number: number;
  readonly name: string;
  readonly status: number;
  /** The text as ClickHouse's HTTP door writes it. */
  readonly text: string;
}

export function columnarError(serviceError: ServiceError): ColumnarError {
  const { http, columnar } = errorCodesOf(serviceError.code);
  const { reason: errorReason } = serviceError.facts;
  const exceptionNumber =
    serviceError instanceof ColumnarRefusal
      ? serviceError.number
      : ((errorReason === undefined ? undefined : numberByReason[errorReason]) ?? columnar);
  const exceptionName = exceptionNames[exceptionNumber] ?? 'UNKNOWN_EXCEPTION';
  const exceptionMessage = withoutTrailing(serviceError.message, '.\n');
  return {
    number: exceptionNumber,
    name: exceptionName,
    status: http,
    text: `Code: ${exceptionNumber}. DB::Exception: ${exceptionMessage}. (${exceptionName}) (version ${serverVersion})`,
  };
}
