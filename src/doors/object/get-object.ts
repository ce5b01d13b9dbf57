/** GetObject and HeadObject: an object as it stands, or as one version of it stood. */
import { contentRange, isKnown, byteRangeOf } from './preconditions.ts';
import type { S3Exchange } from './exchange.ts';
import { ObjectReader, bodyColumns, bodyOf, hexHash, instantMs, objectKey, quotedTag } from './object-rows.ts';
import { factsOfRow, headersOf, writtenHeaders } from './object-metadata.ts';
import { s3Refusals } from './errors.ts';
import { type S3Reply, type StreamedBody, xmlReply } from './reply.ts';
import { xmlDocument } from './xml.ts';

const headerOverrides: Readonly<Record<string, string>> = {
  'response-cache-control': 'cache-control',
  'response-content-disposition': 'content-disposition',
  'response-content-encoding': 'content-encoding',
  'response-content-language': 'content-language',
  'response-content-type': 'content-type',
  'response-expires': 'expires',
};

export function getObject(s3Exchange: S3Exchange): Promise<S3Reply> {
  const { request: objectRequest } = s3Exchange;
  const { bucket: bucketName, key: objectName, query: objectQuery } = objectRequest;
  const isHeadObject = objectRequest.method === 'HEAD';
  const partNumber = objectQuery.get('partNumber');
  if (partNumber !== undefined && partNumber !== '1')
    throw s3Refusals.notImplemented('reading by part numbers: ranges do the same');
  return s3Exchange.invoke('query', async (invocation) => {
    const objectReader = new ObjectReader(s3Exchange, invocation, isHeadObject ? 'HeadObject' : 'GetObject');
    const objectRow = await objectReader.object(
      `${bodyColumns}, content_type, metadata, headers`,
      bucketName,
      objectName,
      objectQuery.get('versionId'),
    );
    if (objectRow === null) {
      await objectReader.bucket();
      throw s3Refusals.noSuchKey();
    }
    invocation.describe({ rowCount: 1 });
    const shownBody = bodyOf(objectReader, objectRow, objectKey(bucketName, objectName));
    const objectSize = shownBody.stored?.size ?? shownBody.content!.length;
    const objectHash = shownBody.stored?.sha256 ?? hexHash(shownBody.content!);
    const objectMetadata = factsOfRow(objectRow);
    const statedHeaders = headersOf(objectMetadata, objectHash);
    const objectHeaders: Record<string, string> = {
      etag: quotedTag(objectHash),
      'last-modified': new Date(instantMs(objectRow)).toUTCString(),
      'accept-ranges': 'bytes',
      ...writtenHeaders(objectRow['system_from'] as bigint),
      'content-type': objectMetadata.contentType ?? 'binary/octet-stream',
      ...statedHeaders.headers,
      ...metadataHeaders(objectMetadata.metadata),
    };
    const isNotModified = isKnown(objectRequest, { hash: objectHash, modifiedMs: instantMs(objectRow) });
    if (isNotModified) return { status: 304, headers: objectHeaders };
    for (const [overrideName, overriddenHeader] of Object.entries(headerOverrides)) {
      const overrideValue = objectQuery.get(overrideName);
      if (overrideValue !== undefined) objectHeaders[overriddenHeader] = safeHeaderValue(overrideValue);
    }
    const askedRange = byteRangeOf(objectRequest, { hash: objectHash, modifiedMs: instantMs(objectRow) }, objectSize);
    const objectRange = askedRange ?? { from: 0, to: objectSize };
    if (askedRange !== null) objectHeaders['content-range'] = contentRange(askedRange, objectSize);
    const isWholeObject = objectRange.from === 0 && objectRange.to === objectSize;
    if (isWholeObject && objectRequest.header('x-amz-checksum-mode')?.toUpperCase() === 'ENABLED')
      Object.assign(objectHeaders, statedHeaders.checksums);
    const objectStatus = askedRange === null ? 200 : 206;
    const { overtaken } = objectReader;
    const rangeLength = objectRange.to - objectRange.from;
    if (isHeadObject)
      return { status: objectStatus, headers: { ...objectHeaders, 'content-length': String(rangeLength) }, overtaken };
    if (shownBody.content)
      return {
        status: objectStatus,
        headers: objectHeaders,
        body: shownBody.content.subarray(objectRange.from, objectRange.to),
        overtaken,
      };
    const bodyReader = await invocation.bodies().open(shownBody.stored);
    const streamedBody: StreamedBody = {
      length: rangeLength,
      read: () => bodyReader.read(objectRange.from, objectRange.to),
      close: () => bodyReader.close(),
    };
    return { status: objectStatus, headers: objectHeaders, body: streamedBody, overtaken };
  });
}

/** GetObjectTagging: objects have no tags. */
export function getObjectTagging(s3Exchange: S3Exchange): Promise<S3Reply> {
  const { bucket: bucketName, key: objectName, query: objectQuery } = s3Exchange.request;
  return s3Exchange.invoke('query', async (invocation) => {
    const objectReader = new ObjectReader(s3Exchange, invocation, 'GetObjectTagging');
    const objectRow = await objectReader.object('key', bucketName, objectName, objectQuery.get('versionId'));
    if (objectRow === null) {
      await objectReader.bucket();
      throw s3Refusals.noSuchKey();
    }
    invocation.describe({ rowCount: 1 });
    return xmlReply(xmlDocument('Tagging', [['TagSet', null]]), { 'x-amz-version-id': String(objectRow['system_from']) });
  });
}

/** Values that a header can't carry as they are get encoded by RFC 2047, as in S3. */
export function metadataHeaders(objectMetadata: Readonly<Record<string, string>>): Record<string, string> {
  const s3MetaHeaders: Record<string, string> = {};
  for (const [metadataName, metadataValue] of Object.entries(objectMetadata)) {
    if (!/^[a-z0-9!#$%&'*+.^_`|~-]+$/i.test(metadataName)) continue;
    s3MetaHeaders[`x-amz-meta-${metadataName}`] = /^[\x20-\x7e\t]*$/.test(metadataValue)
      ? metadataValue
      : `=?UTF-8?B?${Buffer.from(metadataValue).toString('base64')}?=`;
  }
  return s3MetaHeaders;
}

function safeHeaderValue(headerValue: string): string {
  if (!/^[\x20-\x7e\t]*$/.test(headerValue)) throw s3Refusals.invalidArgument('a header of the answer has printable ASCII only');
  return headerValue;
}
