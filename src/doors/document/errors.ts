/** Errors by the numbers and names that drivers branch on. */
import { type ErrorCode, ServiceError } from '../../errors.ts';
import type { StoredObject } from '../../planner/documents/values.ts';
import { errorCodesOf } from '../error-codes.ts';

const names = {
  2: 'BadValue',
  8: 'UnknownError',
  9: 'FailedToParse',
  13: 'Unauthorized',
  14: 'TypeMismatch',
  15: 'Overflow',
  18: 'AuthenticationFailed',
  20: 'IllegalOperation',
  26: 'NamespaceNotFound',
  40: 'ConflictingUpdateOperators',
  43: 'CursorNotFound',
  50: 'MaxTimeMSExpired',
  52: 'DollarPrefixedFieldName',
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
  40_324: 'Location40324',
  40_415: 'Location40415',
} as const;

export type DocumentCode = keyof typeof names;

/** An error that has a number of its own. */
export class DocumentRefusal extends ServiceError {
  readonly number: DocumentCode;

  constructor(number: DocumentCode, detail: string, code: ErrorCode = 'REL_INVALID') {
    super(code, detail);
    this.number = number;
  }
}

export function numberOfError(error: ServiceError): number {
  return error instanceof DocumentRefusal ? error.number : errorCodesOf(error.code, error.facts.stale).document;
}

export function errorDocument(error: ServiceError): StoredObject {
  const code = numberOfError(error);
  const detail = error instanceof DocumentRefusal ? error.message : `${error.message} (${error.code})`;
  return { ok: { $numberDouble: '0.0' }, errmsg: detail, code, codeName: names[code as DocumentCode] ?? `Location${code}` };
}

export const refusals = {
  unknownField: (command: string, field: string) =>
    new DocumentRefusal(40_415, `BSON field '${command}.${field}' is an unknown field.`),
  wrongType: (field: string, wanted: string) =>
    new DocumentRefusal(14, `BSON field '${field}' is the wrong type, expected ${wanted}`),
  notFound: (command: string) => new DocumentRefusal(59, `no such command: '${command}'`, 'REL_NOT_IMPLEMENTED'),
  notSupported: (what: string) => new DocumentRefusal(115, `${what} is not supported`, 'REL_NOT_IMPLEMENTED'),
  readOnly: (database: string) =>
    new DocumentRefusal(166, `${database} is read-only: rows of types are written by other doors`, 'REL_READ_ONLY'),
} as const;
