/** The code of each kind of error on each protocol. A new kind does not compile until every protocol has a code for it. */
import { type ErrorCode, type ErrorReason, errorTable, type ErrorKind } from '../errors.ts';

export interface ProtocolCodes {
  readonly http: number;
  /** SQLSTATE of the relational door. */
  readonly sqlstate: string;
  /** google.rpc.Code of gRPC and Flight. */
  readonly grpc: number;
  /** Error code of the document door. */
  readonly document: number;
  /** First word of an error reply of the key-value door. */
  readonly resp: string;
  /** Status code of the binary graph door. */
  readonly bolt: string;
  /** `<Code>` of the object door. */
  readonly object: string;
  /** Exception code of the columnar doors. */
  readonly columnar: number;
}

/** Codes in the order of `ProtocolCodes`. */
type ProtocolCodeRow = readonly [
  http: number,
  sqlstate: string,
  grpc: number,
  document: number,
  resp: string,
  bolt: string,
  object: string,
  columnar: number,
];

const protocolCodes = (
  ...[httpStatus, sqlstateCode, grpcCode, documentCode, respPrefix, boltCode, objectCode, columnarCode]: ProtocolCodeRow
): ProtocolCodes => ({
  http: httpStatus,
  sqlstate: sqlstateCode,
  grpc: grpcCode,
  document: documentCode,
  resp: respPrefix,
  bolt: boltCode,
  object: objectCode,
  columnar: columnarCode,
});

export const errorCodes: Record<ErrorKind, ProtocolCodes> = {
  invalid: protocolCodes(400, '42000', 3, 2, 'ERR', 'Neo.ClientError.Statement.SyntaxError', 'InvalidArgument', 36),
  unauthenticated: protocolCodes(
    401,
    '28P01',
    16,
    18,
    'NOAUTH',
    'Neo.ClientError.Security.Unauthorized',
    'InvalidAccessKeyId',
    516,
  ),
  payment_required: protocolCodes(
    402,
    '53100',
    8,
    14031,
    'OOM',
    'Neo.TransientError.General.OutOfMemoryError',
    'QuotaExceeded',
    243,
  ),
  forbidden: protocolCodes(403, '42501', 7, 13, 'NOPERM', 'Neo.ClientError.Security.Forbidden', 'AccessDenied', 497),
  not_found: protocolCodes(404, '42P01', 5, 26, 'ERR', 'Neo.ClientError.Statement.EntityNotFound', 'NoSuchKey', 60),
  method_not_allowed: protocolCodes(405, '0A000', 12, 59, 'ERR', 'Neo.ClientError.Request.Invalid', 'MethodNotAllowed', 48),
  cap_exceeded: protocolCodes(406, '54000', 8, 292, 'ERR', 'Neo.ClientError.General.LimitExceeded', 'EntityTooLarge', 396),
  timeout: protocolCodes(408, '57014', 4, 50, 'ERR', 'Neo.ClientError.Transaction.TransactionTimedOut', 'RequestTimeout', 159),
  cancelled: protocolCodes(408, '57014', 1, 11601, 'ERR', 'Neo.ClientError.Transaction.Terminated', 'RequestTimeout', 394),
  conflict: protocolCodes(
    409,
    '23505',
    6,
    11000,
    'ERR',
    'Neo.ClientError.Schema.ConstraintValidationFailed',
    'OperationAborted',
    57,
  ),
  too_large: protocolCodes(413, '54000', 11, 10334, 'ERR', 'Neo.ClientError.Request.Invalid', 'EntityTooLarge', 307),
  unprocessable: protocolCodes(422, '22000', 9, 9, 'ERR', 'Neo.ClientError.Statement.ArgumentError', 'InvalidRequest', 36),
  too_many_requests: protocolCodes(
    429,
    '53300',
    8,
    462,
    'BUSY',
    'Neo.TransientError.Request.NoThreadsAvailable',
    'SlowDown',
    202,
  ),
  internal: protocolCodes(500, 'XX000', 13, 8, 'ERR', 'Neo.DatabaseError.General.UnknownError', 'InternalError', 1002),
  storage: protocolCodes(500, '58030', 15, 8, 'ERR', 'Neo.DatabaseError.General.StorageDamageDetected', 'InternalError', 74),
  unimplemented: protocolCodes(501, '0A000', 12, 115, 'ERR', 'Neo.ClientError.Request.Invalid', 'NotImplemented', 48),
  unavailable: protocolCodes(
    503,
    '57P03',
    14,
    91,
    'LOADING',
    'Neo.TransientError.General.DatabaseUnavailable',
    'ServiceUnavailable',
    279,
  ),
};

/** Codes for errors on which clients of a protocol branch. */
const codesByErrorCode: { readonly [code in ErrorCode]?: Partial<ProtocolCodes> } = {
  REL_PARSE: { sqlstate: '42601', columnar: 62 },
  REL_INVALID: { sqlstate: '22023' },
  REL_UNKNOWN_COLUMN: { sqlstate: '42703', columnar: 47 },
  REL_TYPE_MISMATCH: { sqlstate: '22P02', document: 14, columnar: 53 },
  REL_REQUIRED: { sqlstate: '23502' },
  REL_READ_ONLY: { sqlstate: '25006', columnar: 164, bolt: 'Neo.ClientError.Statement.AccessMode' },
  REL_MASKED_COLUMN: { sqlstate: '42501' },
  REL_NOT_FOUND: { sqlstate: '42704' },
  REL_UNPROCESSABLE: { sqlstate: '22003' },
};

/** SQLSTATE of what Postgres tells apart within one code. */
export const sqlstateOfReason: Record<ErrorReason, string> = {
  syntax: '42601',
  'not-implemented': '0A000',
  'text-form': '22P02',
  'escape-form': '22025',
  'vector-dimensions': '22000',
  'out-of-range': '22003',
  'instant-form': '22007',
  'no-such-instant': '22008',
  'no-such-function': '42883',
  'no-such-type': '42704',
  'no-such-table-here': '42P01',
  'types-differ': '42804',
  'can-not-cast': '42846',
  'not-grouped': '42803',
  'no-organisation': '28000',
  'several-rows': '21000',
  'ambiguous-name': '42702',
  'ambiguous-type': '42725',
  'named-twice': '42701',
  'alias-twice': '42712',
  'several-keys': '42P16',
  'relation-exists': '42P07',
  'no-such-column-here': '42P10',
  'no-such-window': '42704',
  'parameter-count': '08P01',
  'no-such-parameter': '42P02',
  'no-conflict-key': '42P10',
  'window-misplaced': '42P20',
  'not-of-this-call': '42809',
  'recursion-misplaced': '42P19',
  pattern: '2201B',
  logarithm: '2201E',
  power: '2201F',
  bucket: '2201G',
  'tile-count': '22014',
  'nth-row': '22016',
  'null-value': '22004',
  'program-limit': '54000',
  'idle-transaction': '25P03',
  'transaction-full': '54000',
  deadlock: '40P01',
  'row-count': '2201W',
  'skip-count': '2201X',
  length: '22011',
  'no-such-schema': '3F000',
  'no-such-branch': '3D000',
  'copy-form': '22P04',
  'binary-form': '22P03',
  'not-utf8': '22021',
  'nested-too-deep': '54001',
};

/** The codes of this error; `isStale`: rows that it depends on were written since. */
export function errorCodesOf(errorCode: ErrorCode, isStale = false): ProtocolCodes {
  const codesOfKind = { ...errorCodes[errorTable[errorCode].kind], ...codesByErrorCode[errorCode] };
  return isStale
    ? { ...codesOfKind, sqlstate: '40001', document: 112, bolt: 'Neo.TransientError.Transaction.Outdated' }
    : codesOfKind;
}
