/** The metadata of an object beside its body: in headers of a request, in cells of its row, in headers of an answer. */
import { type VerbRow, textOf } from '../verbs/verb-rows.ts';
import { ObjectRefusal } from './errors.ts';
import type { ObjectRequest } from './request-path.ts';

/** The bucket that shows rows of all types. */
export const typesBucket = 'types';

const metadataBytesMax = 8_192;
const storedHeaders = ['cache-control', 'content-disposition', 'content-encoding', 'content-language', 'expires'];

export interface ObjectMetadata {
  readonly contentType: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
}

export function factsOf({ raw, header }: ObjectRequest): ObjectMetadata {
  const metadata: Record<string, string> = {};
  let bytes = 0;
  for (const name of Object.keys(raw.headers).sort()) {
    if (!name.startsWith('x-amz-meta-')) continue;
    const value = metadataText(raw.headers[name] as string);
    metadata[name.slice('x-amz-meta-'.length)] = value;
    bytes += name.length + Buffer.byteLength(value);
  }
  if (bytes > metadataBytesMax)
    throw new ObjectRefusal('MetadataTooLarge', 400, 'REL_TOO_LARGE', `metadata has at most ${metadataBytesMax} bytes`);
  const headers: Record<string, string> = {};
  for (const name of storedHeaders) {
    const value = header(name)
      ?.replace(/(^|,)\s*aws-chunked\s*(,|$)/i, '')
      .trim();
    if (value) headers[name] = value;
  }
  return { contentType: header('content-type'), metadata, headers };
}

const isChecksum = (header: string): boolean => header.startsWith('x-amz-checksum-');

/** The same object with checksums of its body, by header: they rest beside the headers that the client stated. */
export function withChecksums(facts: ObjectMetadata, checksums: ReadonlyMap<string, string>): ObjectMetadata {
  const stated = Object.entries(facts.headers).filter(([name]) => !isChecksum(name));
  return { ...facts, headers: Object.fromEntries([...stated, ...checksums]) };
}

/** Checksums of a body, by header; composite checksums of an upload in parts don't hold for a copy, which has one part. */
export function withoutComposite(headers: ObjectMetadata['headers']): ReadonlyMap<string, string> {
  return headers[checksumType] === 'COMPOSITE'
    ? new Map()
    : new Map(Object.entries(headers).filter(([name]) => isChecksum(name)));
}

export const checksumType = 'x-amz-checksum-type';

/** Checksums over all of a body, and what says so. */
export const ofWhole = (checksums: ReadonlyMap<string, string>): ReadonlyMap<string, string> =>
  checksums.size === 0 ? checksums : new Map([...checksums, [checksumType, 'FULL_OBJECT']]);

/** Headers of an answer, and those of the body's checksum: the one that was put, else its SHA-256. */
export function headersOf(
  facts: ObjectMetadata,
  sha256: string,
): Readonly<Record<'headers' | 'checksums', Record<string, string>>> {
  const entries = Object.entries(facts.headers);
  const put = entries.filter(([name]) => isChecksum(name));
  const own = ['x-amz-checksum-sha256', Buffer.from(sha256, 'hex').toString('base64')] as const;
  const checksums = put.length > 0 ? put : [own, [checksumType, 'FULL_OBJECT'] as const];
  return { headers: Object.fromEntries(entries.filter(([name]) => !isChecksum(name))), checksums: Object.fromEntries(checksums) };
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** UTF-8 or, as some clients send it, Latin-1. */
function metadataText(latin1: string): string {
  try {
    return utf8.decode(Buffer.from(latin1, 'latin1'));
  } catch {
    return latin1;
  }
}

export function factsOfRow(row: VerbRow): ObjectMetadata {
  return { contentType: textOf(row['content_type']), metadata: texts(row['metadata']), headers: texts(row['headers']) };
}

/** Text members of a JSON cell; none of a masked or malformed one. */
function texts(cell: VerbRow[string] | undefined): Record<string, string> {
  if (typeof cell !== 'string') return {};
  try {
    const value: unknown = JSON.parse(cell);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return {};
    return Object.fromEntries(Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
  } catch {
    return {};
  }
}

/** Bodies rest sealed, and clients that compare the ETag with an MD5 otherwise take this for a reason not to. */
export const sealedHeader = { 'x-amz-server-side-encryption': 'aws:kms' } as const;

export const writtenHeaders = (version: bigint): Record<string, string> => ({
  'x-amz-version-id': String(version),
  ...sealedHeader,
});
