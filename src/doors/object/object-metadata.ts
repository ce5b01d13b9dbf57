/** The metadata of an object beside its body: in headers of a request, in cells of its row, in headers of an answer. */
import { type VerbRow, textOf } from '../verbs/verb-rows.ts';
import { ObjectRefusal } from './errors.ts';
import type { ObjectRequest } from './request-path.ts';

/** The bucket that shows rows of all types. */
export const typesBucket = 'types';

const metadataBytesMax = 8_192;
const storedObjectHeaders = ['cache-control', 'content-disposition', 'content-encoding', 'content-language', 'expires'];

export interface ObjectMetadata {
  readonly contentType: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
}

export function factsOf({ raw: httpRequest, header: requestHeader }: ObjectRequest): ObjectMetadata {
  const amzMetadata: Record<string, string> = {};
  let metadataBytes = 0;
  for (const headerName of Object.keys(httpRequest.headers).sort()) {
    if (!headerName.startsWith('x-amz-meta-')) continue;
    const headerValue = metadataText(httpRequest.headers[headerName] as string);
    amzMetadata[headerName.slice('x-amz-meta-'.length)] = headerValue;
    metadataBytes += headerName.length + Buffer.byteLength(headerValue);
  }
  if (metadataBytes > metadataBytesMax)
    throw new ObjectRefusal('MetadataTooLarge', 400, 'REL_TOO_LARGE', `metadata has at most ${metadataBytesMax} bytes`);
  const objectHeaders: Record<string, string> = {};
  for (const name of storedObjectHeaders) {
    const headerValue = requestHeader(name)
      ?.replace(/(^|,)\s*aws-chunked\s*(,|$)/i, '')
      .trim();
    if (headerValue) objectHeaders[name] = headerValue;
  }
  return { contentType: requestHeader('content-type'), metadata: amzMetadata, headers: objectHeaders };
}

const isChecksumHeader = (headerName: string): boolean => headerName.startsWith('x-amz-checksum-');

/** The same object with checksums of its body, by header: they rest beside the headers that the client stated. */
export function withChecksums(objectMetadata: ObjectMetadata, objectChecksums: ReadonlyMap<string, string>): ObjectMetadata {
  const statedHeaders = Object.entries(objectMetadata.headers).filter(([headerName]) => !isChecksumHeader(headerName));
  return { ...objectMetadata, headers: Object.fromEntries([...statedHeaders, ...objectChecksums]) };
}

/** Checksums of a body, by header; composite checksums of an upload in parts don't hold for a copy, which has one part. */
export function withoutComposite(objectHeaders: ObjectMetadata['headers']): ReadonlyMap<string, string> {
  return objectHeaders[checksumType] === 'COMPOSITE'
    ? new Map()
    : new Map(Object.entries(objectHeaders).filter(([headerName]) => isChecksumHeader(headerName)));
}

export const checksumType = 'x-amz-checksum-type';

/** Checksums over all of a body, and what says so. */
export const ofWhole = (objectChecksums: ReadonlyMap<string, string>): ReadonlyMap<string, string> =>
  objectChecksums.size === 0 ? objectChecksums : new Map([...objectChecksums, [checksumType, 'FULL_OBJECT']]);

/** Headers of an answer, and those of the body's checksum: the one that was put, else its SHA-256. */
export function headersOf(
  objectMetadata: ObjectMetadata,
  sha256: string,
): Readonly<Record<'headers' | 'checksums', Record<string, string>>> {
  const headerEntries = Object.entries(objectMetadata.headers);
  const putChecksums = headerEntries.filter(([headerName]) => isChecksumHeader(headerName));
  const ownChecksum = ['x-amz-checksum-sha256', Buffer.from(sha256, 'hex').toString('base64')] as const;
  const shownChecksums = putChecksums.length > 0 ? putChecksums : [ownChecksum, [checksumType, 'FULL_OBJECT'] as const];
  return {
    headers: Object.fromEntries(headerEntries.filter(([headerName]) => !isChecksumHeader(headerName))),
    checksums: Object.fromEntries(shownChecksums),
  };
}

const utf8Decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** UTF-8 or, as some clients send it, Latin-1. */
function metadataText(latin1Header: string): string {
  try {
    return utf8Decoder.decode(Buffer.from(latin1Header, 'latin1'));
  } catch {
    return latin1Header;
  }
}

export function factsOfRow(objectRow: VerbRow): ObjectMetadata {
  return {
    contentType: textOf(objectRow['content_type']),
    metadata: textMembersOf(objectRow['metadata']),
    headers: textMembersOf(objectRow['headers']),
  };
}

/** Text members of a JSON cell; none of a masked or malformed one. */
function textMembersOf(metadataCell: VerbRow[string] | undefined): Record<string, string> {
  if (typeof metadataCell !== 'string') return {};
  try {
    const metadataValue: unknown = JSON.parse(metadataCell);
    if (typeof metadataValue !== 'object' || metadataValue === null || Array.isArray(metadataValue)) return {};
    return Object.fromEntries(
      Object.entries(metadataValue).filter(
        (metadataEntry): metadataEntry is [string, string] => typeof metadataEntry[1] === 'string',
      ),
    );
  } catch {
    return {};
  }
}

/** Bodies rest sealed, and clients that compare the ETag with an MD5 otherwise take this for a reason not to. */
export const sealedHeader = { 'x-amz-server-side-encryption': 'aws:kms' } as const;

export const writtenHeaders = (objectVersion: bigint): Record<string, string> => ({
  'x-amz-version-id': String(objectVersion),
  ...sealedHeader,
});
