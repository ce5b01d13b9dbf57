/** ListObjectsV2, and the older ListObjects: keys in the order of their bytes, with common prefixes once. */
import type { VerbRow } from '../verbs/verb-rows.ts';
import type { S3Exchange } from './exchange.ts';
import { ObjectReader, instantMs, objectType, quotedTag } from './object-rows.ts';
import { s3Refusals } from './errors.ts';
import { type S3Reply, xmlReply } from './reply.ts';
import type { ObjectRequest } from './request-path.ts';
import { type Node, xmlDocument } from './xml.ts';

const listedKeysMax = 1_000;
/** A page of many prefixes with many keys each ends early. */
const listingQueriesMax = 200;

export interface ListRequest {
  readonly prefix: string;
  readonly delimiter: string;
  readonly max: number;
  /** Keys up to here were listed before, and those with this prefix where it ends with the delimiter. */
  readonly after: string;
  readonly isV2: boolean;
}

export interface ListedObject {
  readonly key: string;
  readonly size: number;
  readonly hash: string | null;
  readonly modifiedMs: number;
}

export interface Listing {
  readonly objects: readonly ListedObject[];
  readonly prefixes: readonly string[];
  /** The start of the next page; null: there is none. */
  readonly next: string | null;
}

export function listRequestOf({ query: listQuery }: ObjectRequest): ListRequest {
  const isV2 = listQuery.get('list-type') === '2';
  const maxKeysText = listQuery.get('max-keys') ?? String(listedKeysMax);
  if (!/^\d{1,9}$/.test(maxKeysText)) throw s3Refusals.invalidArgument('max-keys is a number');
  const continuationToken = listQuery.get('continuation-token');
  const startAfterKey = isV2
    ? continuationToken === undefined
      ? listQuery.get('start-after')
      : keyOfToken(continuationToken)
    : listQuery.get('marker');
  return {
    prefix: listQuery.get('prefix') ?? '',
    delimiter: listQuery.get('delimiter') ?? '',
    max: Math.min(listedKeysMax, Number(maxKeysText)),
    after: startAfterKey ?? '',
    isV2,
  };
}

export function listObjects(s3Exchange: S3Exchange): Promise<S3Reply> {
  const listRequest = listRequestOf(s3Exchange.request);
  return s3Exchange.invoke('query', async (invocation) => {
    const objectReader = new ObjectReader(s3Exchange, invocation, 'ListObjects');
    await objectReader.bucket();
    const objectListing = await listBucket(objectReader, s3Exchange.request.bucket, listRequest);
    invocation.describe({ rowCount: objectListing.objects.length + objectListing.prefixes.length });
    return { ...listReply(s3Exchange.request, listRequest, objectListing), overtaken: objectReader.overtaken };
  });
}

async function listBucket(objectReader: ObjectReader, bucketName: string, listRequest: ListRequest): Promise<Listing> {
  const listingCollector = new Collector(listRequest);
  const { path: callerPath } = objectReader.invocation.caller;
  let afterKey = listingCollector.startsAfter;
  for (let queryCount = 0; !listingCollector.isFull && queryCount < listingQueriesMax; queryCount++) {
    const rowsMax = listRequest.delimiter === '' ? listRequest.max + 1 : listedKeysMax;
    const listSql = `SELECT key, size, content_hash, system_from, namespace_path FROM ${objectType}
      WHERE bucket = $1 AND key >= $2 AND key > $3 AND STARTS_WITH(key, $2) ORDER BY key, namespace_path LIMIT ${rowsMax}`;
    const objectRows = await objectReader.ask(listSql, [bucketName, listRequest.prefix, afterKey]);
    const skippedPrefix = listingCollector.take(preferOwnObjects(objectRows, callerPath));
    if (objectRows.length < rowsMax) return listingCollector.listing(false);
    afterKey = skippedPrefix ?? (objectRows.at(-1)!['key'] as string);
  }
  return listingCollector.listing(true);
}

/** Each key once: where several organisations have it, by the caller's own row, else by the first. */
function preferOwnObjects(objectRows: readonly VerbRow[], callerPath: string | null): ListedObject[] {
  const rowByKey = new Map<string, VerbRow>();
  for (const objectRow of objectRows) {
    const objectName = objectRow['key'] as string;
    if (!rowByKey.has(objectName) || objectRow['namespace_path'] === callerPath) rowByKey.set(objectName, objectRow);
  }
  return [...rowByKey.values()].map((row) => ({
    key: row['key'] as string,
    size: Number(row['size'] ?? 0),
    hash: row['content_hash'] as string | null,
    modifiedMs: instantMs(row),
  }));
}

/** The greatest text with this prefix: it sorts behind all of its keys. */
export const lastOf = (commonPrefix: string): string => `${commonPrefix}\u{10ffff}`;

export class Collector {
  readonly #listRequest: ListRequest;
  readonly #listedObjects: ListedObject[] = [];
  readonly #commonPrefixes: string[] = [];
  #lastListed = '';
  #hasMore = false;

  constructor(listRequest: ListRequest) {
    this.#listRequest = listRequest;
  }

  /** Keys up to here are of no page that follows. */
  get startsAfter(): string {
    const { after: afterKey, delimiter: listDelimiter, prefix: listPrefix } = this.#listRequest;
    const isCommonPrefix = listDelimiter !== '' && afterKey.endsWith(listDelimiter) && afterKey.length > listPrefix.length;
    return isCommonPrefix ? lastOf(afterKey) : afterKey;
  }

  get isFull(): boolean {
    return this.#hasMore;
  }

  /** Takes keys in their order; where the last of them fell under a prefix, where the keys behind it begin. */
  take(listedObjects: Iterable<ListedObject>): string | null {
    const { prefix: listPrefix, delimiter: listDelimiter, max: maxKeys } = this.#listRequest;
    let skippedPrefix: string | null = null;
    for (const listedObject of listedObjects) {
      const delimiterOffset = listDelimiter === '' ? -1 : listedObject.key.indexOf(listDelimiter, listPrefix.length);
      const commonPrefix = delimiterOffset < 0 ? null : listedObject.key.slice(0, delimiterOffset + listDelimiter.length);
      skippedPrefix = commonPrefix && lastOf(commonPrefix);
      if (commonPrefix !== null && commonPrefix === this.#commonPrefixes.at(-1)) continue;
      if (this.#listedObjects.length + this.#commonPrefixes.length >= maxKeys) {
        this.#hasMore = true;
        return null;
      }
      this.#lastListed = commonPrefix ?? listedObject.key;
      if (commonPrefix === null) this.#listedObjects.push(listedObject);
      else this.#commonPrefixes.push(commonPrefix);
    }
    return skippedPrefix;
  }

  /** A page that ends early: all up to this key was looked at. */
  stopBehind(lastKey: string): void {
    this.#lastListed = lastKey;
    this.#hasMore = true;
  }

  listing(hasMoreRows: boolean): Listing {
    return {
      objects: this.#listedObjects,
      prefixes: this.#commonPrefixes,
      next: (hasMoreRows || this.#hasMore) && this.#lastListed !== '' ? this.#lastListed : null,
    };
  }
}

export function listReply(
  objectRequest: ObjectRequest,
  listRequest: ListRequest,
  { objects: listedObjects, prefixes: commonPrefixes, next: nextKey }: Listing,
): S3Reply {
  const { query: listQuery, bucket: bucketName } = objectRequest;
  const encodeKey = codedBy(objectRequest);
  const continuationToken = listQuery.get('continuation-token');
  const pagingMembers: (readonly [string, Node])[] = listRequest.isV2
    ? [
        ...optional('StartAfter', listQuery.has('start-after') ? encodeKey(listQuery.get('start-after')!) : undefined),
        ...optional('ContinuationToken', continuationToken),
        ...optional('NextContinuationToken', nextKey === null ? undefined : continuationTokenOf(nextKey)),
        ['KeyCount', listedObjects.length + commonPrefixes.length],
      ]
    : [['Marker', encodeKey(listRequest.after)], ...optional('NextMarker', nextKey === null ? undefined : encodeKey(nextKey))];
  const listingXml = xmlDocument('ListBucketResult', [
    ['Name', bucketName],
    ['Prefix', encodeKey(listRequest.prefix)],
    ...optional('Delimiter', listRequest.delimiter === '' ? undefined : encodeKey(listRequest.delimiter)),
    ['MaxKeys', listRequest.max],
    ...optional('EncodingType', listQuery.get('encoding-type')),
    ['IsTruncated', nextKey !== null],
    ...pagingMembers,
    ...listedObjects.map(
      ({ key: listedKey, size: objectSize, hash: objectHash, modifiedMs }) =>
        [
          'Contents',
          [
            ['Key', encodeKey(listedKey)],
            ['LastModified', new Date(modifiedMs).toISOString()],
            ['ETag', objectHash === null ? undefined : quotedTag(objectHash)],
            ['Size', objectSize],
            ['StorageClass', 'STANDARD'],
          ],
        ] as const,
    ),
    ...commonPrefixes.map((commonPrefix) => ['CommonPrefixes', [['Prefix', encodeKey(commonPrefix)]]] as const),
  ]);
  return xmlReply(listingXml);
}

/** How keys are written in a listing. */
export function codedBy({ query: listQuery }: ObjectRequest): (keyText: string) => string {
  const encodingType = listQuery.get('encoding-type');
  if (encodingType !== undefined && encodingType !== 'url')
    throw s3Refusals.invalidArgument('encoding-type knows one value: url');
  return (keyText) => (encodingType === undefined ? keyText : encodeURIComponent(keyText).replaceAll('%2F', '/'));
}

export const optional = (elementName: string, elementText: string | undefined): (readonly [string, Node])[] =>
  elementText === undefined ? [] : [[elementName, elementText]];

/** Opaque, as clients expect it: it says nothing that they did not list. */
const continuationTokenOf = (lastKey: string): string => Buffer.from(lastKey).toString('base64url');

function keyOfToken(continuationToken: string): string {
  if (!/^[A-Za-z0-9_-]+$/.test(continuationToken))
    throw s3Refusals.invalidArgument('the continuation token is not one that a listing gave');
  return Buffer.from(continuationToken, 'base64url').toString();
}
