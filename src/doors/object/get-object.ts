/** GetObject and HeadObject: an object as it stands, or as one version of it stood. */
import { contentRange, isKnown, byteRangeOf } from './preconditions.ts';
import type { S3Exchange } from './exchange.ts';
import { ObjectReader, bodyColumns, bodyOf, hexHash, instantMs, objectKey, quotedTag } from './object-rows.ts';
import { factsOfRow, headersOf, writtenHeaders } from './object-metadata.ts';
import { s3Refusals } from './errors.ts';
import { type S3Reply, type StreamedBody, xmlReply } from './reply.ts';
import { xmlDocument } from './xml.ts';

const overrides: Readonly<Record<string, string>> = {
  'response-cache-control': 'cache-control',
  'response-content-disposition': 'content-disposition',
  'response-content-encoding': 'content-encoding',
  'response-content-language': 'content-language',
  'response-content-type': 'content-type',
  'response-expires': 'expires',
};

export function getObject(exchange: S3Exchange): Promise<S3Reply> {
  const { request } = exchange;
  const { bucket, key, query } = request;
  const isHead = request.method === 'HEAD';
  const part = query.get('partNumber');
  if (part !== undefined && part !== '1') throw s3Refusals.notImplemented('reading by part numbers: ranges do the same');
  return exchange.invoke('query', async (invocation) => {
    const objectReader = new ObjectReader(exchange, invocation, isHead ? 'HeadObject' : 'GetObject');
    const row = await objectReader.object(`${bodyColumns}, content_type, metadata, headers`, bucket, key, query.get('versionId'));
    if (row === null) {
      await objectReader.bucket();
      throw s3Refusals.noSuchKey();
    }
    invocation.describe({ rowCount: 1 });
    const shownBody = bodyOf(objectReader, row, objectKey(bucket, key));
    const size = shownBody.stored?.size ?? shownBody.content!.length;
    const hash = shownBody.stored?.sha256 ?? hexHash(shownBody.content!);
    const facts = factsOfRow(row);
    const stated = headersOf(facts, hash);
    const headers: Record<string, string> = {
      etag: quotedTag(hash),
      'last-modified': new Date(instantMs(row)).toUTCString(),
      'accept-ranges': 'bytes',
      ...writtenHeaders(row['system_from'] as bigint),
      'content-type': facts.contentType ?? 'binary/octet-stream',
      ...stated.headers,
      ...metadataHeaders(facts.metadata),
    };
    const known = isKnown(request, { hash, modifiedMs: instantMs(row) });
    if (known) return { status: 304, headers };
    for (const [name, header] of Object.entries(overrides)) {
      const value = query.get(name);
      if (value !== undefined) headers[header] = headerSafe(value);
    }
    const asked = byteRangeOf(request, { hash, modifiedMs: instantMs(row) }, size);
    const span = asked ?? { from: 0, to: size };
    if (asked !== null) headers['content-range'] = contentRange(asked, size);
    const isWhole = span.from === 0 && span.to === size;
    if (isWhole && request.header('x-amz-checksum-mode')?.toUpperCase() === 'ENABLED') Object.assign(headers, stated.checksums);
    const status = asked === null ? 200 : 206;
    const { overtaken } = objectReader;
    const length = span.to - span.from;
    if (isHead) return { status, headers: { ...headers, 'content-length': String(length) }, overtaken };
    if (shownBody.content) return { status, headers, body: shownBody.content.subarray(span.from, span.to), overtaken };
    const reader = await invocation.bodies().open(shownBody.stored);
    const body: StreamedBody = { length, read: () => reader.read(span.from, span.to), close: () => reader.close() };
    return { status, headers, body, overtaken };
  });
}

/** GetObjectTagging: objects have no tags. */
export function getObjectTagging(exchange: S3Exchange): Promise<S3Reply> {
  const { bucket, key, query } = exchange.request;
  return exchange.invoke('query', async (invocation) => {
    const objectReader = new ObjectReader(exchange, invocation, 'GetObjectTagging');
    const row = await objectReader.object('key', bucket, key, query.get('versionId'));
    if (row === null) {
      await objectReader.bucket();
      throw s3Refusals.noSuchKey();
    }
    invocation.describe({ rowCount: 1 });
    return xmlReply(xmlDocument('Tagging', [['TagSet', null]]), { 'x-amz-version-id': String(row['system_from']) });
  });
}

/** Values that a header can't carry as they are get encoded by RFC 2047, as in S3. */
export function metadataHeaders(metadata: Readonly<Record<string, string>>): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(metadata)) {
    if (!/^[a-z0-9!#$%&'*+.^_`|~-]+$/i.test(name)) continue;
    headers[`x-amz-meta-${name}`] = /^[\x20-\x7e\t]*$/.test(value)
      ? value
      : `=?UTF-8?B?${Buffer.from(value).toString('base64')}?=`;
  }
  return headers;
}

function headerSafe(value: string): string {
  if (!/^[\x20-\x7e\t]*$/.test(value)) throw s3Refusals.invalidArgument('a header of the answer has printable ASCII only');
  return value;
}
