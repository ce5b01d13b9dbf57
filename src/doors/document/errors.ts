/** MongoDB's error codes and code names, on which drivers branch. */
import { type ErrorCode, ServiceError } from '../../errors.ts';
import { FilterError } from '../../planner/expressions/documents/document-filter.ts';
import { doubleValue } from '../../planner/expressions/documents/document-numbers.ts';
import type { Stored, StoredObject } from '../../planner/expressions/documents/document-values.ts';
import { errorCodesOf } from '../error-codes.ts';

const codeNames: Readonly<Record<number, string>> = {
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
    errorNumber: number,
    errorDetail: string,
    errorCode: ErrorCode = 'REL_INVALID',
    errorMembers: Readonly<Record<string, StoredObject>> = {},
  ) {
    super(errorCode, errorDetail);
    this.number = errorNumber;
    this.members = errorMembers;
  }
}

export function numberOfError(commandError: ServiceError): number {
  return commandError instanceof DocumentRefusal || commandError instanceof FilterError
    ? commandError.number
    : errorCodesOf(commandError.code, commandError.facts.stale).document;
}

export function errorDocument(commandError: ServiceError): Readonly<Record<string, Stored>> {
  const errorNumber = numberOfError(commandError);
  const errmsgText =
    commandError instanceof DocumentRefusal || commandError instanceof FilterError
      ? commandError.message
      : `${commandError.message} (${commandError.code})`;
  const refusalMembers = commandError instanceof DocumentRefusal ? commandError.members : {};
  return {
    ok: doubleValue(0),
    errmsg: errmsgText,
    code: errorNumber,
    codeName: codeNames[errorNumber] ?? `Location${errorNumber}`,
    ...refusalMembers,
  };
}

export const mongoRefusals = {
  missing: (bsonField: string) => new DocumentRefusal(40_414, `BSON field '${bsonField}' is missing but a required field`),
  unknownField: (commandName: string, bsonField: string) =>
    new DocumentRefusal(40_415, `BSON field '${commandName}.${bsonField}' is an unknown field.`),
  wrongType: (bsonField: string, expectedType: string) =>
    new DocumentRefusal(14, `BSON field '${bsonField}' is the wrong type, expected ${expectedType}`),
  notFound: (commandName: string) => new DocumentRefusal(59, `no such command: '${commandName}'`, 'REL_NOT_IMPLEMENTED'),
  notSupported: (unsupportedFeature: string) =>
    new DocumentRefusal(115, `${unsupportedFeature} is not supported`, 'REL_NOT_IMPLEMENTED'),
  readOnly: (readOnlyDatabase: string) =>
    new DocumentRefusal(166, `${readOnlyDatabase} is read-only: rows of types are written by other doors`, 'REL_READ_ONLY'),
} as const;
