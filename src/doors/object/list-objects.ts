/** ListObjectsV2, and the older ListObjects: keys in the order of their bytes, with common prefixes once. */
import type { VerbRow } from '../verbs/verb-rows.ts';
import type { S3Exchange } from './exchange.ts';
import { ObjectReader, instantMs, objectType, quotedTag } from './object-rows.ts';
import { s3Refusals } from './errors.ts';
import { type S3Reply, xmlReply } from './reply.ts';
import type { ObjectRequest } from './request-path.ts';
import { type Node, xmlDocument } from './xml.ts';

const keysMax = 1_000;
/** A page of many prefixes with many keys each ends early. */
const asksMax = 200;

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

export function listRequestOf({ query }: ObjectRequest): ListRequest {
  const isV2 = query.get('list-type') === '2';
  const said = query.get('max-keys') ?? String(keysMax);
  if (!/^\d{1,9}$/.test(said)) throw s3Refusals.invalidArgument('max-keys is a number');
  const token = query.get('continuation-token');
  const after = isV2 ? (token === undefined ? query.get('start-after') : openToken(token)) : query.get('marker');
  return {
    prefix: query.get('prefix') ?? '',
    delimiter: query.get('delimiter') ?? '',
    max: Math.min(keysMax, Number(said)),
    after: after ?? '',
    isV2,
  };
}

export function listObjects(exchange: S3Exchange): Promise<S3Reply> {
  const listRequest = listRequestOf(exchange.request);
  return exchange.invoke('query', async (invocation) => {
    const objectReader = new ObjectReader(exchange, invocation, 'ListObjects');
    await objectReader.bucket();
    const listing = await list(objectReader, exchange.request.bucket, listRequest);
    invocation.describe({ rowCount: listing.objects.length + listing.prefixes.length });
    return { ...listReply(exchange.request, listRequest, listing), overtaken: objectReader.overtaken };
  });
}

async function list(objectReader: ObjectReader, bucket: string, listRequest: ListRequest): Promise<Listing> {
  const collector = new Collector(listRequest);
  const { path } = objectReader.invocation.caller;
  let after = collector.startsAfter;
  for (let asks = 0; !collector.isFull && asks < asksMax; asks++) {
    const most = listRequest.delimiter === '' ? listRequest.max + 1 : keysMax;
    const sql = `SELECT key, size, content_hash, system_from, namespace_path FROM ${objectType}
      WHERE bucket = $1 AND key >= $2 AND key > $3 AND STARTS_WITH(key, $2) ORDER BY key, namespace_path LIMIT ${most}`;
    const rows = await objectReader.ask(sql, [bucket, listRequest.prefix, after]);
    const skipped = collector.take(preferOwn(rows, path));
    if (rows.length < most) return collector.listing(false);
    after = skipped ?? (rows.at(-1)!['key'] as string);
  }
  return collector.listing(true);
}

/** Each key once: where several organisations have it, by the caller's own row, else by the first. */
function preferOwn(rows: readonly VerbRow[], path: string | null): ListedObject[] {
  const byKey = new Map<string, VerbRow>();
  for (const row of rows) {
    const key = row['key'] as string;
    if (!byKey.has(key) || row['namespace_path'] === path) byKey.set(key, row);
  }
  return [...byKey.values()].map((row) => ({
    key: row['key'] as string,
    size: Number(row['size'] ?? 0),
    hash: row['content_hash'] as string | null,
    modifiedMs: instantMs(row),
  }));
}

/** The greatest text with this prefix: it sorts behind all of its keys. */
export const lastOf = (prefix: string): string => `${prefix}\u{10ffff}`;

export class Collector {
  readonly #listRequest: ListRequest;
  readonly #objects: ListedObject[] = [];
  readonly #prefixes: string[] = [];
  #last = '';
  #more = false;

  constructor(listRequest: ListRequest) {
    this.#listRequest = listRequest;
  }

  /** Keys up to here are of no page that follows. */
  get startsAfter(): string {
    const { after, delimiter, prefix } = this.#listRequest;
    const isPrefix = delimiter !== '' && after.endsWith(delimiter) && after.length > prefix.length;
    return isPrefix ? lastOf(after) : after;
  }

  get isFull(): boolean {
    return this.#more;
  }

  /** Takes keys in their order; where the last of them fell under a prefix, where the keys behind it begin. */
  take(objects: Iterable<ListedObject>): string | null {
    const { prefix, delimiter, max } = this.#listRequest;
    let skipped: string | null = null;
    for (const object of objects) {
      const at = delimiter === '' ? -1 : object.key.indexOf(delimiter, prefix.length);
      const common = at < 0 ? null : object.key.slice(0, at + delimiter.length);
      skipped = common && lastOf(common);
      if (common !== null && common === this.#prefixes.at(-1)) continue;
      if (this.#objects.length + this.#prefixes.length >= max) {
        this.#more = true;
        return null;
      }
      this.#last = common ?? object.key;
      if (common === null) this.#objects.push(object);
      else this.#prefixes.push(common);
    }
    return skipped;
  }

  /** A page that ends early: all up to this key was looked at. */
  stopBehind(key: string): void {
    this.#last = key;
    this.#more = true;
  }

  listing(more: boolean): Listing {
    return {
      objects: this.#objects,
      prefixes: this.#prefixes,
      next: (more || this.#more) && this.#last !== '' ? this.#last : null,
    };
  }
}

export function listReply(request: ObjectRequest, listRequest: ListRequest, { objects, prefixes, next }: Listing): S3Reply {
  const { query, bucket } = request;
  const coded = codedBy(request);
  const token = query.get('continuation-token');
  const pagingMembers: (readonly [string, Node])[] = listRequest.isV2
    ? [
        ...optional('StartAfter', query.has('start-after') ? coded(query.get('start-after')!) : undefined),
        ...optional('ContinuationToken', token),
        ...optional('NextContinuationToken', next === null ? undefined : sealedToken(next)),
        ['KeyCount', objects.length + prefixes.length],
      ]
    : [['Marker', coded(listRequest.after)], ...optional('NextMarker', next === null ? undefined : coded(next))];
  const document = xmlDocument('ListBucketResult', [
    ['Name', bucket],
    ['Prefix', coded(listRequest.prefix)],
    ...optional('Delimiter', listRequest.delimiter === '' ? undefined : coded(listRequest.delimiter)),
    ['MaxKeys', listRequest.max],
    ...optional('EncodingType', query.get('encoding-type')),
    ['IsTruncated', next !== null],
    ...pagingMembers,
    ...objects.map(
      ({ key, size, hash, modifiedMs }) =>
        [
          'Contents',
          [
            ['Key', coded(key)],
            ['LastModified', new Date(modifiedMs).toISOString()],
            ['ETag', hash === null ? undefined : quotedTag(hash)],
            ['Size', size],
            ['StorageClass', 'STANDARD'],
          ],
        ] as const,
    ),
    ...prefixes.map((prefix) => ['CommonPrefixes', [['Prefix', coded(prefix)]]] as const),
  ]);
  return xmlReply(document);
}

/** How keys are written in a listing. */
export function codedBy({ query }: ObjectRequest): (text: string) => string {
  const encoding = query.get('encoding-type');
  if (encoding !== undefined && encoding !== 'url') throw s3Refusals.invalidArgument('encoding-type knows one value: url');
  return (text) => (encoding === undefined ? text : encodeURIComponent(text).replaceAll('%2F', '/'));
}

export const optional = (name: string, value: string | undefined): (readonly [string, Node])[] =>
  value === undefined ? [] : [[name, value]];

/** Opaque, as clients expect it: it says nothing that they did not list. */
const sealedToken = (last: string): string => Buffer.from(last).toString('base64url');

function openToken(token: string): string {
  if (!/^[A-Za-z0-9_-]+$/.test(token)) throw s3Refusals.invalidArgument('the continuation token is not one that a listing gave');
  return Buffer.from(token, 'base64url').toString();
}
