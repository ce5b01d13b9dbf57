/** A request of the object door: bucket and key from the path, the operation from method and query. */
import type { IncomingMessage } from 'node:http';
import { ServiceError } from '../../errors.ts';
import { parametersOf, type SignedRequest } from '../../governance/authentication/sigv4.ts';
import { limits } from '../../log/values/value.ts';
import { headerText } from '../http/request-headers.ts';
import { ObjectRefusal, s3Refusals } from './errors.ts';

export interface ObjectRequest {
  readonly raw: IncomingMessage;
  readonly method: string;
  /** Empty: the service itself. */
  readonly bucket: string;
  /** Empty: the bucket itself. */
  readonly key: string;
  readonly query: ReadonlyMap<string, string>;
  /** The request as it was signed. */
  readonly signed: SignedRequest;
  /** A header as text; null where it was not sent. */
  header(name: string): string | null;
}

/** Headers that may come once: a repeated one is a way to make a proxy and a server disagree. */
const singleHeaders: ReadonlySet<string> = new Set([
  'authorization',
  'host',
  'content-length',
  'content-type',
  'if-match',
  'if-none-match',
]);
const singleHeaderPrefix = /^x-(amz|service|organization)-/;

/** Throws InvalidURI, InvalidArgument or KeyTooLongError for a path that can't name an object. */
export function requestOf(httpRequest: IncomingMessage): ObjectRequest {
  const requestUrl = httpRequest.url ?? '/';
  const queryMark = requestUrl.indexOf('?');
  const requestPath = queryMark < 0 ? requestUrl : requestUrl.slice(0, queryMark);
  const queryText = queryMark < 0 ? '' : requestUrl.slice(queryMark + 1);
  if (!requestPath.startsWith('/')) throw invalidObjectUri();
  const bucketSlash = requestPath.indexOf('/', 1);
  const bucketName = decodeObjectPath(bucketSlash < 0 ? requestPath.slice(1) : requestPath.slice(1, bucketSlash));
  const objectName = bucketSlash < 0 ? '' : decodeObjectPath(requestPath.slice(bucketSlash + 1));
  const signedHeaders = lowerCaseHeaders(httpRequest);
  const queryParameters = new Map<string, string>();
  for (const [parameterName, parameterValue] of parametersOf(queryText)) {
    if (queryParameters.has(parameterName))
      throw s3Refusals.invalidArgument(`${JSON.stringify(parameterName)} is in the query twice`);
    queryParameters.set(parameterName, parameterValue);
  }
  if (Buffer.byteLength(bucketName) + 1 + Buffer.byteLength(objectName) > limits.keyBytes)
    throw new ObjectRefusal(
      'KeyTooLongError',
      400,
      'REL_INVALID',
      `bucket and key have at most ${limits.keyBytes - 1} bytes together`,
    );
  return {
    raw: httpRequest,
    method: httpRequest.method ?? '',
    bucket: bucketName,
    key: objectName,
    query: queryParameters,
    signed: { method: httpRequest.method ?? '', path: requestPath, query: queryText, headers: signedHeaders },
    header: (headerName) => headerText({ headers: httpRequest.headers } as Parameters<typeof headerText>[0], headerName),
  };
}

/** Headers as they were sent, by name; several of a name are joined, as a signature has them. */
function lowerCaseHeaders({ rawHeaders }: IncomingMessage): Record<string, string> {
  const headersByName: Record<string, string> = Object.create(null);
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const headerName = rawHeaders[i]!.toLowerCase();
    const headerValue = rawHeaders[i + 1]!;
    const headerBefore = headersByName[headerName];
    if (headerBefore !== undefined && (singleHeaders.has(headerName) || singleHeaderPrefix.test(headerName)))
      throw new ServiceError('REL_INVALID', `the header ${headerName} was sent more than once`);
    headersByName[headerName] = headerBefore === undefined ? headerValue : `${headerBefore},${headerValue}`;
  }
  return headersByName;
}

function decodeObjectPath(encodedPath: string): string {
  try {
    return decodeURIComponent(encodedPath);
  } catch {
    throw invalidObjectUri();
  }
}

const invalidObjectUri = (): ObjectRefusal =>
  new ObjectRefusal('InvalidURI', 400, 'REL_INVALID', 'the path is not a bucket and key in percent-encoded UTF-8');
