/** MongoDB's error codes and code names, on which drivers branch. */
import { type ErrorCode, ServiceError } from '../../errors.ts';
import { FilterError } from '../../planner/expressions/documents/document-filter.ts';
import { doubleValue } from '../../planner/expressions/documents/document-numbers.ts';
import type { Stored, StoredObject } from '../../planner/expressions/documents/document-values.ts';
import { errorCodesOf } from '../error-codes.ts';

const names: Readonly<Record<number, string>> = {
  2: 'BadValue',
  8: 'UnknownError',
  9: 'FailedToParse',
  13: 'Unauthorized',
  14: 'TypeMismatch',
  15: 'Overflow',
  18: 'AuthenticationFailed',
  20: 'IllegalOperation',
  22: 'InvalidBSON',
  26: 'NamespaceNotFound',
  28: 'PathNotViable',
  40: 'ConflictingUpdateOperators',
  43: 'CursorNotFound',
  50: 'MaxTimeMSExpired',
  52: 'DollarPrefixedFieldName',
  53: 'InvalidIdField',
  54: 'NotSingleValueField',
  56: 'EmptyFieldName',
  59: 'CommandNotFound',
  66: 'ImmutableField',
  73: 'InvalidNamespace',
  91: 'ShutdownInProgress',
  112: 'WriteConflict',
  115: 'CommandNotSupported',
  166: 'CommandNotSupportedOnView',
  263: 'OperationNotSupportedInTransaction',
  292: 'QueryExceededMemoryLimitNoDiskUseAllowed',
  334: 'MechanismUnavailable',
  462: 'IngressRequestRateLimitExceeded',
  10_334: 'BSONObjectTooLarge',
  11_000: 'DuplicateKey',
  11_601: 'Interrupted',
  14_031: 'OutOfDiskSpace',
};

/** An error that has a number of its own. */
export class DocumentRefusal extends ServiceError {
  readonly number: number;
  /** Members that its reply has beside number and text. */
  readonly members: Readonly<Record<string, StoredObject>>;

  constructor(
    number: number,
    detail: string,
    code: ErrorCode = 'REL_INVALID',
    members: Readonly<Record<string, StoredObject>> = {},
  ) {
    super(code, detail);
    this.number = number;
    this.members = members;
  }
}

export function numberOfError(error: ServiceError): number {
  return error instanceof DocumentRefusal || error instanceof FilterError
    ? error.number
    : errorCodesOf(error.code, error.facts.stale).document;
}

export function errorDocument(error: ServiceError): Readonly<Record<string, Stored>> {
  const code = numberOfError(error);
  const detail =
    error instanceof DocumentRefusal || error instanceof FilterError ? error.message : `${error.message} (${error.code})`;
  const members = error instanceof DocumentRefusal ? error.members : {};
  return { ok: doubleValue(0), errmsg: detail, code, codeName: names[code] ?? `Location${code}`, ...members };
}

export const mongoRefusals = {
  missing: (field: string) => new DocumentRefusal(40_414, `BSON field '${field}' is missing but a required field`),
  unknownField: (command: string, field: string) =>
    new DocumentRefusal(40_415, `BSON field '${command}.${field}' is an unknown field.`),
  wrongType: (field: string, wanted: string) =>
    new DocumentRefusal(14, `BSON field '${field}' is the wrong type, expected ${wanted}`),
  notFound: (command: string) => new DocumentRefusal(59, `no such command: '${command}'`, 'REL_NOT_IMPLEMENTED'),
  notSupported: (what: string) => new DocumentRefusal(115, `${what} is not supported`, 'REL_NOT_IMPLEMENTED'),
  readOnly: (database: string) =>
    new DocumentRefusal(166, `${database} is read-only: rows of types are written by other doors`, 'REL_READ_ONLY'),
} as const;
