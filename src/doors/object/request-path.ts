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
const single: ReadonlySet<string> = new Set([
  'authorization',
  'host',
  'content-length',
  'content-type',
  'if-match',
  'if-none-match',
]);
const singlePrefix = /^x-(amz|service|organization)-/;

/** Throws InvalidURI, InvalidArgument or KeyTooLongError for a path that can't name an object. */
export function requestOf(raw: IncomingMessage): ObjectRequest {
  const url = raw.url ?? '/';
  const mark = url.indexOf('?');
  const path = mark < 0 ? url : url.slice(0, mark);
  const search = mark < 0 ? '' : url.slice(mark + 1);
  if (!path.startsWith('/')) throw invalidUri();
  const slash = path.indexOf('/', 1);
  const bucket = decodePath(slash < 0 ? path.slice(1) : path.slice(1, slash));
  const key = slash < 0 ? '' : decodePath(path.slice(slash + 1));
  const headers = headersOf(raw);
  const query = new Map<string, string>();
  for (const [name, value] of parametersOf(search)) {
    if (query.has(name)) throw s3Refusals.invalidArgument(`${JSON.stringify(name)} is in the query twice`);
    query.set(name, value);
  }
  if (Buffer.byteLength(bucket) + 1 + Buffer.byteLength(key) > limits.keyBytes)
    throw new ObjectRefusal(
      'KeyTooLongError',
      400,
      'REL_INVALID',
      `bucket and key have at most ${limits.keyBytes - 1} bytes together`,
    );
  return {
    raw,
    method: raw.method ?? '',
    bucket,
    key,
    query,
    signed: { method: raw.method ?? '', path, query: search, headers },
    header: (name) => headerText({ headers: raw.headers } as Parameters<typeof headerText>[0], name),
  };
}

/** Headers as they were sent, by name; several of a name are joined, as a signature has them. */
function headersOf({ rawHeaders }: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = Object.create(null);
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    const value = rawHeaders[i + 1]!;
    const before = headers[name];
    if (before !== undefined && (single.has(name) || singlePrefix.test(name)))
      throw new ServiceError('REL_INVALID', `the header ${name} was sent more than once`);
    headers[name] = before === undefined ? value : `${before},${value}`;
  }
  return headers;
}

function decodePath(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalidUri();
  }
}

const invalidUri = (): ObjectRefusal =>
  new ObjectRefusal('InvalidURI', 400, 'REL_INVALID', 'the path is not a bucket and key in percent-encoded UTF-8');
