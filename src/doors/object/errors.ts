/** Error documents of S3: the code and status that clients of the object door read. */
import { type ErrorCode, errorTable, ServiceError } from '../../errors.ts';
import { errorCodesOf } from '../error-codes.ts';

/** An error with a code of its own among S3's. */
export class ObjectRefusal extends ServiceError {
  readonly s3: string;
  readonly httpStatus: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    s3Code: string,
    httpStatus: number,
    errorCode: ErrorCode,
    refusalDetail: string,
    refusalHeaders: Readonly<Record<string, string>> = {},
  ) {
    super(errorCode, refusalDetail);
    this.headers = refusalHeaders;
    this.s3 = s3Code;
    this.httpStatus = httpStatus;
  }
}

export function wireError(serviceError: ServiceError): { readonly code: string; readonly status: number } {
  if (serviceError instanceof ObjectRefusal) return { code: serviceError.s3, status: serviceError.httpStatus };
  // S3 has no 401.
  const errorStatus = serviceError.code === 'REL_UNAUTHENTICATED' ? 403 : errorTable[serviceError.code].status;
  return { code: errorCodesOf(serviceError.code).object, status: errorStatus };
}

export const s3Refusals = {
  noSuchBucket: (bucketName: string) =>
    new ObjectRefusal('NoSuchBucket', 404, 'REL_NOT_FOUND', `there is no bucket ${JSON.stringify(bucketName)}`),
  noSuchKey: () => new ObjectRefusal('NoSuchKey', 404, 'REL_NOT_FOUND', 'there is no such key'),
  noSuchVersion: () => new ObjectRefusal('NoSuchVersion', 404, 'REL_NOT_FOUND', 'there is no such version'),
  noSuchUpload: () =>
    new ObjectRefusal('NoSuchUpload', 404, 'REL_NOT_FOUND', 'there is no such upload: it has ended, or the server was restarted'),
  bucketNotEmpty: () => new ObjectRefusal('BucketNotEmpty', 409, 'REL_CONFLICT', 'the bucket holds objects: delete them first'),
  bucketExists: () => new ObjectRefusal('BucketAlreadyOwnedByYou', 409, 'REL_CONFLICT', 'the bucket exists already'),
  preconditionFailed: (conditionHeader: string) =>
    new ObjectRefusal('PreconditionFailed', 412, 'REL_CONFLICT', `the condition ${conditionHeader} does not hold`),
  notImplemented: (s3Feature: string) =>
    new ObjectRefusal('NotImplemented', 501, 'REL_NOT_IMPLEMENTED', `${s3Feature} is not implemented`),
  invalidArgument: (detail: string) => new ObjectRefusal('InvalidArgument', 400, 'REL_INVALID', detail),
  invalidRequest: (detail: string) => new ObjectRefusal('InvalidRequest', 400, 'REL_INVALID', detail),
  malformedXml: (detail: string) => new ObjectRefusal('MalformedXML', 400, 'REL_INVALID', detail),
  badDigest: (digestName: string) => new ObjectRefusal('BadDigest', 400, 'REL_INVALID', `the body does not match ${digestName}`),
  incompleteBody: () => new ObjectRefusal('IncompleteBody', 400, 'REL_INVALID', 'the body is not as long as its header states'),
  invalidPart: (detail: string) => new ObjectRefusal('InvalidPart', 400, 'REL_INVALID', detail),
  readOnly: () => new ObjectRefusal('AccessDenied', 403, 'REL_ACL', 'the bucket types is read-only: it shows rows of any type'),
  accessDenied: (detail: string) => new ObjectRefusal('AccessDenied', 403, 'REL_ACL', detail),
} as const;
