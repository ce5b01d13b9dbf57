/** PutObject and CopyObject: one row, put as a whole, once its body is there. */
import { parametersOf } from '../../governance/authentication/sigv4.ts';
import type { Invocation } from '../../governance/gate-contract.ts';
import { tenantOf } from '../../log/values/value.ts';
import type { Outcome, PutRows, WriteCondition } from '../../projections/command.ts';
import { builtinTypes } from '../../projections/catalog/builtin-types.ts';
import type { VerbRow } from '../verbs/verb-rows.ts';
import { textOf } from '../verbs/verb-rows.ts';
import { etagMatches } from './preconditions.ts';
import {
  factsOf,
  factsOfRow,
  type ObjectMetadata,
  ofWhole,
  typesBucket,
  withChecksums,
  withoutComposite,
  writtenHeaders,
} from './object-metadata.ts';
import type { S3Exchange } from './exchange.ts';
import {
  requireAccepted,
  ObjectReader,
  blobCells,
  bodyColumns,
  type BodyCells,
  bodyOf,
  cellsOf,
  instantMs,
  objectKey,
  objectType,
  oneRow,
  provenance,
  quotedTag,
} from './object-rows.ts';
import { objectBytesMax, tooLarge } from './object-size.ts';
import { ObjectRefusal, s3Refusals } from './errors.ts';
import { type S3Reply, xmlReply } from './reply.ts';
import type { ObjectRequest } from './request-path.ts';
import { xmlDocument } from './xml.ts';

/** A row of more would be a turn of its own. */
const inlineObjectBytesMax = 16 << 20;

export async function putObject(s3Exchange: S3Exchange): Promise<S3Reply> {
  const { request: putRequest, parts: objectParts, sync } = s3Exchange;
  refuseEncryption(putRequest);
  const incomingBody = s3Exchange.incoming();
  if (incomingBody.length > objectBytesMax) throw tooLarge();
  const objectPk = objectKey(putRequest.bucket, putRequest.key);
  const objectMetadata = factsOf(putRequest);
  const putOnce = (): Promise<bigint> =>
    s3Exchange.invoke('ingest', async (invocation) => {
      const objectReader = new ObjectReader(s3Exchange, invocation, 'PutObject');
      await objectReader.bucketOfObject();
      const when = await conditionOf(s3Exchange, objectReader);
      const row = { facts: objectMetadata, when, sync, method: 'PutObject' };
      if (incomingBody.length >= inlineMax(s3Exchange)) await rehearsePut(objectReader, row, incomingBody.length);
      const cells = await receiveObject(s3Exchange, invocation, incomingBody, objectPk);
      return putRow(objectReader, { ...row, facts: withChecksums(objectMetadata, ofWhole(incomingBody.checksums)), cells });
    });
  const objectVersion = await objectParts.traffic.writing(s3Exchange.caller, putRequest.bucket, putOnce);
  return {
    status: 200,
    headers: {
      etag: quotedTag(incomingBody.sha256),
      ...writtenHeaders(objectVersion),
      ...Object.fromEntries(ofWhole(incomingBody.checksums)),
    },
  };
}

export const inlineMax = ({ parts: { settings: doorSettings } }: S3Exchange): number =>
  Math.min(doorSettings.SERVICE_OBJECT_BLOB_THRESHOLD_MB << 20, inlineObjectBytesMax);

/** Receives small bodies into memory, others into a blob. */
async function receiveObject(
  s3Exchange: S3Exchange,
  invocation: Invocation,
  incomingBody: ReturnType<S3Exchange['incoming']>,
  objectPk: string,
): Promise<BodyCells> {
  if (incomingBody.length < inlineMax(s3Exchange)) {
    const inlineContent = await incomingBody.collect(inlineObjectBytesMax);
    return cellsOf(inlineContent, incomingBody.sha256);
  }
  return streamToBlob(invocation, incomingBody.length, incomingBody.read(), objectPk);
}

export async function streamToBlob(
  invocation: Invocation,
  objectSize: number,
  objectContent: AsyncIterable<Uint8Array>,
  objectPk: string,
  madeOf?: 'parts',
): Promise<BodyCells> {
  return blobCells(
    invocation,
    await writeAll(await invocation.bodies().begin(objectType, objectSize, madeOf), objectContent),
    objectPk,
  );
}

/** Writes all of the content; an aborted one leaves nothing. */
export async function writeAll<T>(
  bodyWriter: { write(bodyPiece: Uint8Array): Promise<void>; finish(): Promise<T>; abandon(): Promise<void> },
  bodyContent: AsyncIterable<Uint8Array>,
): Promise<T> {
  try {
    for await (const bodyPiece of bodyContent) await bodyWriter.write(bodyPiece);
    return await bodyWriter.finish();
  } catch (writeError) {
    await bodyWriter.abandon();
    throw writeError;
  }
}

export interface PutRow {
  readonly facts: ObjectMetadata;
  readonly cells: BodyCells;
  readonly when: WriteCondition | null;
  readonly sync: boolean;
  readonly method: string;
  readonly computedFrom?: readonly string[];
}

const objectOwnColumns = new Set(Object.keys(builtinTypes.find(({ name }) => name === objectType)!.properties));

/** Throws what refuses the row, once its body is there. */
export async function putRow(objectReader: ObjectReader, objectPut: PutRow): Promise<bigint> {
  const putOutcome = await objectReader.invocation.submit(putObjectCommand(objectReader, objectPut, objectPut.cells), {
    sync: objectPut.sync,
    waits: true,
  });
  return acceptedPutVersion(putOutcome, objectPut.when);
}

/** Throws what refuses the row before its body is taken. `objectSize`: null where that is not known yet either. */
export async function rehearsePut(
  objectReader: ObjectReader,
  objectPut: Omit<PutRow, 'cells'>,
  objectSize: number | null,
): Promise<void> {
  const rehearsedCommand = putObjectCommand(objectReader, objectPut, { size: objectSize ?? 0, sha256: '', body: '', as: 'blob' });
  const unknownColumns = new Set(['body', 'body_as', 'content_hash', 'headers', ...(objectSize === null ? ['size'] : [])]);
  acceptedPutVersion(
    { systemFrom: 0n, ...(await objectReader.invocation.rehearse(rehearsedCommand, unknownColumns)) },
    objectPut.when,
  );
}

function acceptedPutVersion(putOutcome: Pick<Outcome, 'errors' | 'systemFrom'>, putCondition: WriteCondition | null): bigint {
  if (putOutcome.errors[0]?.code === 'REL_CONFLICT' && putCondition !== null)
    throw s3Refusals.preconditionFailed(putCondition === 'absent' ? 'If-None-Match' : 'If-Match');
  return requireAccepted(putOutcome);
}

function putObjectCommand(
  objectReader: ObjectReader,
  { facts: objectMetadata, when: putCondition, method: s3Method, computedFrom }: Omit<PutRow, 'cells'>,
  bodyCells: BodyCells,
): PutRows {
  const { snapshot } = objectReader;
  const { bucket: bucketName, key: objectName } = objectReader.request;
  const metadataColumns: Record<string, readonly ['string', string]> = {};
  // Metadata of a name that the type has a column for is in that column too: a subject, or what policies look at.
  for (const [propertyName, typeProperty] of Object.entries(snapshot.catalog.type(objectType)?.properties ?? {})) {
    const metadataValue = Object.hasOwn(objectMetadata.metadata, propertyName)
      ? objectMetadata.metadata[propertyName]
      : undefined;
    if (metadataValue !== undefined && typeProperty.type === 'string' && !objectOwnColumns.has(propertyName))
      metadataColumns[propertyName] = ['string', metadataValue];
  }
  const objectRow = oneRow({
    _pk: ['string', objectKey(bucketName, objectName)],
    bucket: ['string', bucketName],
    key: ['string', objectName],
    size: ['integer', BigInt(bodyCells.size)],
    content_hash: ['string', bodyCells.sha256],
    content_type: ['string', objectMetadata.contentType],
    metadata: ['json', Object.keys(objectMetadata.metadata).length > 0 ? JSON.stringify(objectMetadata.metadata) : null],
    headers: ['json', Object.keys(objectMetadata.headers).length > 0 ? JSON.stringify(objectMetadata.headers) : null],
    body: ['string', bodyCells.body],
    body_as: ['string', bodyCells.as],
    ...metadataColumns,
  });
  return {
    kind: 'put-rows',
    type: objectType,
    rows: objectRow,
    atomic: false,
    createType: false,
    provenance: provenance(s3Method),
    ...(putCondition !== null && { when: putCondition }),
    ...(computedFrom && { computedFrom }),
  };
}

/** `If-None-Match: *` and `If-Match: "<etag>"`; null where the request states neither. */
export async function conditionOf(
  { request: putRequest }: S3Exchange,
  objectReader: ObjectReader,
): Promise<WriteCondition | null> {
  const ifNoneMatch = putRequest.header('if-none-match');
  const ifMatch = putRequest.header('if-match');
  if (ifNoneMatch !== null && (ifNoneMatch !== '*' || ifMatch !== null))
    throw s3Refusals.notImplemented('a write under another condition than If-None-Match: * or If-Match');
  if (ifNoneMatch !== null) return 'absent';
  if (ifMatch === null) return null;
  if (ifMatch === '*') return 'present';
  const objectRow = await objectReader.object('content_hash', putRequest.bucket, putRequest.key, undefined);
  const isOwnObject = objectRow?.['namespace_path'] === objectReader.invocation.caller.path;
  if (objectRow === null || !isOwnObject || !etagMatches(ifMatch, textOf(objectRow['content_hash'])))
    throw s3Refusals.preconditionFailed('If-Match');
  return { unchangedSince: objectRow['system_from'] as bigint };
}

export function refuseEncryption({ header: requestHeader }: ObjectRequest): void {
  if (requestHeader('x-amz-server-side-encryption-customer-algorithm') !== null)
    throw s3Refusals.notImplemented('a key of the client');
  const askedEncryption = requestHeader('x-amz-server-side-encryption');
  if (askedEncryption !== null && askedEncryption !== 'AES256' && askedEncryption !== 'aws:kms')
    throw s3Refusals.notImplemented(`encryption by ${askedEncryption}`);
}

export async function copyObject(s3Exchange: S3Exchange): Promise<S3Reply> {
  const { request: copyRequest, parts: objectParts, sync } = s3Exchange;
  refuseEncryption(copyRequest);
  const copySource = sourceOf(copyRequest);
  const metadataDirective = copyRequest.header('x-amz-metadata-directive') ?? 'COPY';
  const targetPk = objectKey(copyRequest.bucket, copyRequest.key);
  const sourcePk = objectKey(copySource.bucket, copySource.key);
  if (targetPk === sourcePk && metadataDirective === 'COPY' && copySource.versionId === undefined)
    throw new ObjectRefusal('InvalidRequest', 400, 'REL_INVALID', 'copying an object onto itself needs new metadata');
  const copyOnce = (): Promise<{ readonly version: bigint; readonly hash: string }> =>
    s3Exchange.invoke('ingest', async (invocation) => {
      const objectReader = new ObjectReader(s3Exchange, invocation, 'CopyObject');
      await objectReader.bucketOfObject();
      const columns = `${bodyColumns}, content_type, metadata, headers`;
      const row = await objectReader.object(columns, copySource.bucket, copySource.key, copySource.versionId);
      if (row === null) throw s3Refusals.noSuchKey();
      checkSource(copyRequest, row);
      const shown = bodyOf(objectReader, row, sourcePk);
      const from = factsOfRow(row);
      const said = metadataDirective === 'REPLACE' ? factsOf(copyRequest) : from;
      const facts = withChecksums(said, withoutComposite(from.headers));
      const when = await conditionOf(s3Exchange, objectReader);
      const computedFrom = [
        'body',
        'body_as',
        ...(metadataDirective === 'REPLACE' ? [] : ['metadata', 'content_type', 'headers']),
      ];
      const copied = { facts, when, sync, method: 'CopyObject', computedFrom };
      if (shown.stored) await rehearsePut(objectReader, copied, shown.stored.size);
      const cells = shown.stored ? await copiedBodyCells(invocation, shown.stored, row, targetPk) : cellsOf(shown.content);
      const version = await putRow(objectReader, { ...copied, cells });
      return { version, hash: cells.sha256 };
    });
  const { version: objectVersion, hash: objectHash } = await objectParts.traffic.writing(
    s3Exchange.caller,
    copyRequest.bucket,
    copyOnce,
  );
  const copyXml = xmlDocument('CopyObjectResult', [
    ['ETag', quotedTag(objectHash)],
    ['LastModified', new Date(Number(objectVersion / 1_000_000n)).toISOString()],
  ]);
  return xmlReply(copyXml, writtenHeaders(objectVersion));
}

/** Within a tenant a blob is named once more; what another shares is copied byte by byte. */
async function copiedBodyCells(
  invocation: Invocation,
  storedBody: Parameters<typeof blobCells>[1],
  sourceRow: VerbRow,
  targetPk: string,
): Promise<BodyCells> {
  const objectBodies = invocation.bodies();
  const sourceReader = await objectBodies.open(storedBody);
  try {
    const isOwnTenant = (tenantOf(textOf(sourceRow['namespace_path'])) ?? '') === (tenantOf(invocation.caller.path) ?? '');
    return isOwnTenant
      ? blobCells(invocation, storedBody, targetPk)
      : await streamToBlob(invocation, storedBody.size, sourceReader.read(0, storedBody.size), targetPk);
  } finally {
    await sourceReader.close();
  }
}

export function sourceOf(copyRequest: ObjectRequest): {
  readonly bucket: string;
  readonly key: string;
  readonly versionId: string | undefined;
} {
  const [sourcePath = '', sourceQuery = ''] = copyRequest.header('x-amz-copy-source')!.split('?');
  let decodedSource: string;
  try {
    decodedSource = decodeURIComponent(sourcePath);
  } catch {
    throw s3Refusals.invalidArgument('x-amz-copy-source is a bucket and a key in percent-encoded UTF-8');
  }
  const sourceMatch = /^\/?([^/]+)\/(.+)$/s.exec(decodedSource);
  if (!sourceMatch) throw s3Refusals.invalidArgument('x-amz-copy-source names a bucket and a key');
  if (sourceMatch[1] === typesBucket) throw s3Refusals.notImplemented('copying rows out of the bucket types');
  const versionId = new Map(parametersOf(sourceQuery)).get('versionId');
  return { bucket: sourceMatch[1]!, key: sourceMatch[2]!, versionId };
}

export function checkSource(copyRequest: ObjectRequest, sourceRow: VerbRow): void {
  const sourceHeader = (conditionName: string): string | null => copyRequest.header(`x-amz-copy-source-${conditionName}`);
  const sourceHash = textOf(sourceRow['content_hash']);
  const modifiedSecondMs = Math.floor(instantMs(sourceRow) / 1000) * 1000;
  const ifMatch = sourceHeader('if-match');
  const ifNoneMatch = sourceHeader('if-none-match');
  const modifiedSinceMs = Date.parse(sourceHeader('if-modified-since') ?? '');
  const unmodifiedSinceMs = Date.parse(sourceHeader('if-unmodified-since') ?? '');
  const isSourceFit =
    (ifMatch === null || etagMatches(ifMatch, sourceHash)) &&
    (ifNoneMatch === null || !etagMatches(ifNoneMatch, sourceHash)) &&
    !(modifiedSecondMs <= modifiedSinceMs) &&
    !(modifiedSecondMs > unmodifiedSinceMs);
  if (!isSourceFit) throw s3Refusals.preconditionFailed('x-amz-copy-source-if-…');
}
