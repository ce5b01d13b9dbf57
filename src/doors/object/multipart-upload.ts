/** Uploads in parts: each is sealed into a file of its own, and all of them become one body when the upload is completed. */
import { createHash } from 'node:crypto';
import type { Invocation } from '../../governance/gate-contract.ts';
import { checksumHeader, checksumNamed, checksumOf } from './checksums.ts';
import type { S3Exchange } from './exchange.ts';
import { unknownChecksum } from './incoming-body.ts';
import { codedBy, optional } from './list-objects.ts';
import { ObjectReader, bodyOf, bodyColumns, cellsOf, objectKey, objectType, quotedTag } from './object-rows.ts';
import { checksumType, factsOf, sealedHeader, withChecksums, writtenHeaders } from './object-metadata.ts';
import { tooLarge } from './object-size.ts';
import {
  checkSource,
  conditionOf,
  inlineMax,
  type PutRow,
  putRow,
  refuseEncryption,
  rehearsePut,
  sourceOf,
  streamToBlob,
  writeAll,
} from './put-object.ts';
import { ObjectRefusal, s3Refusals } from './errors.ts';
import { type S3Reply, xmlReply } from './reply.ts';
import type { ObjectRequest } from './request-path.ts';
import type { Completion, Upload, UploadChecksum, UploadedPart } from './open-uploads.ts';
import { memberText, type Node, xmlDocument, xmlMembers } from './xml.ts';

const uploadPartsMax = 10_000;
const uploadPartBytesMin = 5 << 20;
const uploadPartBytesMax = 5 * 2 ** 30;
const completeXmlBytesMax = 4 << 20;
const listedUploadsMax = 1_000;

export async function createUpload(s3Exchange: S3Exchange): Promise<S3Reply> {
  const { request: uploadRequest, parts: objectParts, sync } = s3Exchange;
  const { bucket: bucketName, key: objectName } = uploadRequest;
  refuseEncryption(uploadRequest);
  const uploadMetadata = factsOf(uploadRequest);
  const uploadChecksum = checksumStated(uploadRequest);
  const createdUpload = await s3Exchange.invoke('ingest', async (invocation) => {
    const objectReader = new ObjectReader(s3Exchange, invocation, 'CreateMultipartUpload');
    await objectReader.bucketOfObject();
    await rehearsePut(objectReader, { facts: uploadMetadata, when: null, sync, method: 'CreateMultipartUpload' }, null);
    return objectParts.uploads.begin(s3Exchange.caller, {
      bucket: bucketName,
      key: objectName,
      facts: uploadMetadata,
      checksum: uploadChecksum,
    });
  });
  const uploadXml = xmlDocument('InitiateMultipartUploadResult', [
    ['Bucket', bucketName],
    ['Key', objectName],
    ['UploadId', createdUpload.id],
  ]);
  const checksumHeaders = uploadChecksum && {
    'x-amz-checksum-algorithm': uploadChecksum.algorithm.toUpperCase(),
    [checksumType]: uploadChecksum.type,
  };
  return xmlReply(uploadXml, checksumHeaders ?? {});
}

/** Throws InvalidRequest for what S3 combines neither. */
export function checksumStated({ header: requestHeader }: ObjectRequest): UploadChecksum | null {
  const statedAlgorithm = requestHeader('x-amz-checksum-algorithm');
  const statedType = requestHeader(checksumType)?.toUpperCase() ?? null;
  if (statedAlgorithm === null) {
    if (statedType !== null) throw s3Refusals.invalidRequest(`${checksumType} goes with x-amz-checksum-algorithm`);
    return null;
  }
  const namedChecksum = checksumNamed(statedAlgorithm) ?? unknownChecksum(statedAlgorithm);
  const isCrc64Nvme = namedChecksum === 'crc64nvme';
  const checksumKind = statedType ?? (isCrc64Nvme ? 'FULL_OBJECT' : 'COMPOSITE');
  const isCrc = namedChecksum.startsWith('crc');
  if ((checksumKind === 'COMPOSITE' && !isCrc64Nvme) || (checksumKind === 'FULL_OBJECT' && isCrc))
    return { algorithm: namedChecksum, type: checksumKind };
  throw s3Refusals.invalidRequest(`a checksum ${statedAlgorithm} over parts is not of the type ${statedType}`);
}

function uploadOf(s3Exchange: S3Exchange): Upload {
  const { bucket: bucketName, key: objectName, query: uploadQuery } = s3Exchange.request;
  return s3Exchange.parts.uploads.get(s3Exchange.caller, uploadQuery.get('uploadId')!, bucketName, objectName);
}

function partNumberOf({ query: partQuery }: ObjectRequest): number {
  const partNumberText = partQuery.get('partNumber') ?? '';
  const partNumber = /^\d{1,5}$/.test(partNumberText) ? Number(partNumberText) : 0;
  if (partNumber < 1 || partNumber > uploadPartsMax)
    throw s3Refusals.invalidArgument(`partNumber is a number from 1 to ${uploadPartsMax}`);
  return partNumber;
}

export async function uploadPart(s3Exchange: S3Exchange): Promise<S3Reply> {
  const { request: partRequest, parts: objectParts, sync } = s3Exchange;
  const partNumber = partNumberOf(partRequest);
  const partChecksum = uploadOf(s3Exchange).checksum?.algorithm ?? null;
  const incomingPart = s3Exchange.incoming({ checksum: partChecksum });
  if (incomingPart.length > uploadPartBytesMax) throw tooLarge();
  await s3Exchange.invoke('ingest', async (invocation) => {
    invocation.describe({ objectType, rowCount: 0 });
    const partUpload = uploadOf(s3Exchange);
    const objectReader = new ObjectReader(s3Exchange, invocation, 'UploadPart');
    await rehearsePut(objectReader, { facts: partUpload.facts, when: null, sync, method: 'UploadPart' }, null);
    const partArrived = objectParts.uploads.expect(partUpload, partNumber, incomingPart.length);
    try {
      const writtenPart = await writeAll(await invocation.bodies().part(objectType, incomingPart.length), incomingPart.read());
      const { sha256, checksums } = incomingPart;
      await objectParts.uploads.put(partUpload, partNumber, {
        part: writtenPart,
        sha256,
        checksums,
        atMs: exchangeNowMs(s3Exchange),
      });
    } finally {
      partArrived();
    }
  });
  return {
    status: 200,
    headers: { etag: quotedTag(incomingPart.sha256), ...sealedHeader, ...Object.fromEntries(incomingPart.checksums) },
  };
}

const exchangeNowMs = ({ parts: objectParts }: S3Exchange): number => Number(objectParts.clock.now() / 1_000_000n);

/** UploadPartCopy: a part that is an object, or a range of one. */
export async function copyPart(s3Exchange: S3Exchange): Promise<S3Reply> {
  const { request: partRequest, parts: objectParts, sync } = s3Exchange;
  const partNumber = partNumberOf(partRequest);
  const copySource = sourceOf(partRequest);
  const copiedPart = await s3Exchange.invoke('ingest', async (invocation) => {
    const partUpload = uploadOf(s3Exchange);
    const objectReader = new ObjectReader(s3Exchange, invocation, 'UploadPartCopy');
    await objectReader.bucketOfObject();
    const sourceRow = await objectReader.object(bodyColumns, copySource.bucket, copySource.key, copySource.versionId);
    if (sourceRow === null) throw s3Refusals.noSuchKey();
    checkSource(partRequest, sourceRow);
    const shownParts = bodyOf(objectReader, sourceRow, objectKey(copySource.bucket, copySource.key));
    const { from: rangeStart, to: rangeEnd } = copiedRange(partRequest, shownParts.stored?.size ?? shownParts.content!.length);
    const computedFrom = ['body', 'body_as'];
    await rehearsePut(objectReader, { facts: partUpload.facts, when: null, sync, method: 'UploadPartCopy', computedFrom }, null);
    const partArrived = objectParts.uploads.expect(partUpload, partNumber, rangeEnd - rangeStart);
    const sourceReader = shownParts.stored && (await invocation.bodies().open(shownParts.stored));
    try {
      const partHash = createHash('sha256');
      const partChecksum = partUpload.checksum && checksumOf(partUpload.checksum.algorithm);
      const partContent = async function* (): AsyncGenerator<Uint8Array, void> {
        for await (const piece of sourceReader?.read(rangeStart, rangeEnd) ?? [
          shownParts.content!.subarray(rangeStart, rangeEnd),
        ]) {
          partHash.update(piece);
          partChecksum?.update(piece);
          yield piece;
          await objectParts.yieldTurn();
        }
      };
      const writtenPart = await writeAll(await invocation.bodies().part(objectType, rangeEnd - rangeStart), partContent());
      partUpload.isCopied = true;
      const checksums = new Map(
        partUpload.checksum ? [[checksumHeader(partUpload.checksum.algorithm), partChecksum!.value()]] : [],
      );
      const uploadedPart = { part: writtenPart, sha256: partHash.digest('hex'), checksums, atMs: exchangeNowMs(s3Exchange) };
      await objectParts.uploads.put(partUpload, partNumber, uploadedPart);
      return uploadedPart;
    } finally {
      partArrived();
      await sourceReader?.close();
    }
  });
  const copyPartXml = xmlDocument('CopyPartResult', [
    ['LastModified', new Date(copiedPart.atMs).toISOString()],
    ['ETag', quotedTag(copiedPart.sha256)],
    ...checksumNodes(copiedPart.checksums),
  ]);
  return xmlReply(copyPartXml, sealedHeader);
}

export function copiedRange(
  { header: requestHeader }: ObjectRequest,
  sourceSize: number,
): { readonly from: number; readonly to: number } {
  const rangeText = requestHeader('x-amz-copy-source-range');
  if (rangeText === null) return { from: 0, to: sourceSize };
  const rangeMatch = /^bytes=(\d{1,15})-(\d{1,15})$/.exec(rangeText.trim());
  const [firstByte, lastByte] = rangeMatch === null ? [1, 0] : [Number(rangeMatch[1]), Number(rangeMatch[2])];
  if (firstByte > lastByte || lastByte >= sourceSize)
    throw s3Refusals.invalidArgument(
      `x-amz-copy-source-range is bytes=<first>-<last> within the ${sourceSize} bytes of the source`,
    );
  return { from: firstByte, to: lastByte + 1 };
}

/** `<ChecksumCRC32>` and its like. */
function checksumNodes(partChecksums: ReadonlyMap<string, string>): (readonly [string, Node])[] {
  return [...partChecksums].map(
    ([checksumHeaderName, checksumValue]) => [checksumElementOf(checksumHeaderName), checksumValue] as const,
  );
}

const checksumElementOf = (checksumHeaderName: string): string =>
  checksumHeaderName === checksumType
    ? 'ChecksumType'
    : `Checksum${checksumHeaderName.slice('x-amz-checksum-'.length).toUpperCase()}`;

export async function completeUpload(s3Exchange: S3Exchange): Promise<S3Reply> {
  const { request: completeRequest, parts: objectParts } = s3Exchange;
  const { bucket: bucketName, key: objectName, query: uploadQuery } = completeRequest;
  const completeXml = (await s3Exchange.incoming({ statesOwn: false }).collect(completeXmlBytesMax)).toString('utf8');
  const completedParts = namedParts(completeXml);
  const partsIdentity = JSON.stringify(completedParts.map(({ number: partNumber, tag: partTag }) => [partNumber, partTag]));
  const completeOnce = (): Promise<Completion> =>
    s3Exchange.invoke('ingest', async (invocation) => {
      const objectReader = new ObjectReader(s3Exchange, invocation, 'CompleteMultipartUpload');
      await objectReader.bucketOfObject();
      const before = await objectParts.uploads.findCompletion(
        s3Exchange.caller,
        uploadQuery.get('uploadId')!,
        bucketName,
        objectName,
      );
      if (before === null) {
        const upload = uploadOf(s3Exchange);
        return objectParts.uploads.complete(upload, partsIdentity, () =>
          completeParts(s3Exchange, objectReader, upload, completedParts),
        );
      }
      if (before.named !== partsIdentity) throw s3Refusals.invalidPart('the upload was completed with other parts');
      return before;
    });
  const { version, sha256, checksums } = await objectParts.traffic.writing(s3Exchange.caller, bucketName, completeOnce);
  const completeResultXml = xmlDocument('CompleteMultipartUploadResult', [
    ['Location', `/${bucketName}/${encodeURIComponent(objectName).replaceAll('%2F', '/')}`],
    ['Bucket', bucketName],
    ['Key', objectName],
    ['ETag', quotedTag(sha256)],
    ...checksumNodes(checksums),
  ]);
  return xmlReply(completeResultXml, writtenHeaders(version));
}

async function completeParts(
  s3Exchange: S3Exchange,
  objectReader: ObjectReader,
  completedUpload: Upload,
  completedParts: readonly CompletedPart[],
): Promise<Omit<Completion, 'named'>> {
  const { request: completeRequest, sync } = s3Exchange;
  const uploadedParts = chosenParts(completedUpload, completedParts);
  const objectSize = uploadedParts.reduce((sizeSum, { part: uploadedPart }) => sizeSum + uploadedPart.size, 0);
  const statedSize = completeRequest.header('x-amz-mp-object-size');
  if (statedSize !== null && statedSize !== String(objectSize))
    throw s3Refusals.invalidRequest(`x-amz-mp-object-size is not ${objectSize}`);
  const putCondition = await conditionOf(s3Exchange, objectReader);
  const completedPut: Omit<PutRow, 'cells'> = {
    facts: completedUpload.facts,
    when: putCondition,
    sync,
    method: 'CompleteMultipartUpload',
    ...(completedUpload.isCopied && { computedFrom: ['body', 'body_as'] }),
  };
  await rehearsePut(objectReader, completedPut, objectSize);
  try {
    const wholeChecksum =
      completedUpload.checksum?.type === 'FULL_OBJECT' ? checksumOf(completedUpload.checksum.algorithm) : null;
    const partsContent = readAllParts(uploadedParts, (partPiece) => wholeChecksum?.update(partPiece));
    const objectPk = objectKey(completeRequest.bucket, completeRequest.key);
    const isInlineObject = objectSize < inlineMax(s3Exchange);
    const bodyCells = isInlineObject
      ? await partsInMemory(partsContent)
      : await streamToBlob(objectReader.invocation, objectSize, partsContent, objectPk, 'parts');
    const checksums = uploadChecksums(s3Exchange, completedUpload, uploadedParts, wholeChecksum?.value() ?? null);
    const version = await putRow(objectReader, {
      ...completedPut,
      facts: withChecksums(completedUpload.facts, checksums),
      cells: bodyCells,
    });
    return { version, sha256: bodyCells.sha256, checksums };
  } catch (completeError) {
    for (const { part: uploadedPart } of uploadedParts) uploadedPart.count(true);
    throw completeError;
  }
}

/** The checksum that the upload was begun with. Throws BadDigest where the client states another. */
function uploadChecksums(
  { request: completeRequest }: S3Exchange,
  { checksum: uploadChecksum }: Upload,
  uploadedParts: readonly UploadedPart[],
  wholeChecksum: string | null,
): ReadonlyMap<string, string> {
  if (uploadChecksum === null) return new Map();
  const checksumHeaderName = checksumHeader(uploadChecksum.algorithm);
  const statedChecksum = completeRequest.header(checksumHeaderName);
  let checksumValue = wholeChecksum;
  if (checksumValue === null) {
    const compositeChecksum = checksumOf(uploadChecksum.algorithm);
    for (const { checksums } of uploadedParts)
      compositeChecksum.update(Buffer.from(checksums.get(checksumHeaderName)!, 'base64'));
    checksumValue = `${compositeChecksum.value()}-${uploadedParts.length}`;
  }
  if (statedChecksum !== null && statedChecksum !== checksumValue) throw s3Refusals.badDigest(checksumHeaderName);
  return new Map([
    [checksumHeaderName, checksumValue],
    [checksumType, uploadChecksum.type],
  ]);
}

/** A part that was read is counted with the body that is made of it, and no more by itself. */
async function* readAllParts(
  uploadedParts: readonly UploadedPart[],
  onPartPiece: (partPiece: Uint8Array) => void,
): AsyncGenerator<Uint8Array, void> {
  for (const { part: uploadedPart } of uploadedParts) {
    uploadedPart.count(false);
    for await (const partPiece of uploadedPart.read()) {
      onPartPiece(partPiece);
      yield partPiece;
    }
  }
}

async function partsInMemory(partsContent: AsyncIterable<Uint8Array>): Promise<ReturnType<typeof cellsOf>> {
  const objectHash = createHash('sha256');
  const objectPieces: Buffer[] = [];
  for await (const objectPiece of partsContent) {
    objectHash.update(objectPiece);
    objectPieces.push(Buffer.from(objectPiece));
  }
  return cellsOf(Buffer.concat(objectPieces), objectHash.digest('hex'));
}

interface CompletedPart {
  readonly number: number;
  readonly tag: string;
  readonly members: Readonly<Record<string, unknown>>;
}

/** Parts as a document names them, in rising order. */
export function namedParts(completeXml: string): CompletedPart[] {
  const partCountText = `1 to ${uploadPartsMax} parts are named`;
  const completeMembers = xmlMembers(completeXml, 'CompleteMultipartUpload', {
    element: 'Part',
    most: uploadPartsMax,
    otherwise: partCountText,
  });
  const listedParts = (completeMembers['Part'] ?? []) as readonly unknown[];
  if (listedParts.length === 0 || listedParts.length > uploadPartsMax) throw s3Refusals.malformedXml(partCountText);
  let lastPartNumber = 0;
  return listedParts.map((listedPart) => {
    if (typeof listedPart !== 'object' || listedPart === null)
      throw s3Refusals.malformedXml('<Part> names a <PartNumber> and an <ETag>');
    const partMembers = listedPart as Readonly<Record<string, unknown>>;
    const partNumberText = memberText(partMembers, 'PartNumber')?.trim() ?? '';
    const partNumber = /^\d{1,5}$/.test(partNumberText) ? Number(partNumberText) : 0;
    if (partNumber <= lastPartNumber)
      throw new ObjectRefusal('InvalidPartOrder', 400, 'REL_INVALID', 'parts are named in rising order');
    lastPartNumber = partNumber;
    return { number: partNumber, tag: (memberText(partMembers, 'ETag') ?? '').trim().replaceAll('"', ''), members: partMembers };
  });
}

/** Each as it was uploaded. */
function chosenParts(completedUpload: Upload, completedParts: readonly CompletedPart[]): UploadedPart[] {
  return completedParts.map(({ number: partNumber, tag: partTag, members: partMembers }, i) => {
    const uploadedPart = completedUpload.parts.get(partNumber);
    if (uploadedPart === undefined || uploadedPart.sha256 !== partTag)
      throw s3Refusals.invalidPart(`part ${partNumber} does not match an uploaded part`);
    for (const [checksumHeaderName, checksumValue] of uploadedPart.checksums) {
      const statedChecksum = memberText(partMembers, checksumElementOf(checksumHeaderName));
      if (statedChecksum !== null && statedChecksum.trim() !== checksumValue)
        throw s3Refusals.invalidPart(`the checksum of part ${partNumber} does not match`);
    }
    if (uploadedPart.part.size < uploadPartBytesMin && i < completedParts.length - 1)
      throw new ObjectRefusal(
        'EntityTooSmall',
        400,
        'REL_INVALID',
        `every part but the last has at least ${uploadPartBytesMin} bytes`,
      );
    return uploadedPart;
  });
}

export async function abortUpload(s3Exchange: S3Exchange): Promise<S3Reply> {
  await s3Exchange.invoke('ingest', async (invocation) => {
    new ObjectReader(s3Exchange, invocation, 'AbortMultipartUpload').look();
    invocation.describe({ objectType, rowCount: 0 });
    await s3Exchange.parts.uploads.end(uploadOf(s3Exchange));
  });
  return { status: 204, headers: {} };
}

export function listParts(s3Exchange: S3Exchange): Promise<S3Reply> {
  const { bucket: bucketName, key: objectName, query: uploadQuery } = s3Exchange.request;
  const afterPart = queryCountOf(s3Exchange.request, 'part-number-marker', 0);
  const partsListedMax = Math.min(listedUploadsMax, queryCountOf(s3Exchange.request, 'max-parts', listedUploadsMax));
  return s3Exchange.invoke('query', async (invocation) => {
    new ObjectReader(s3Exchange, invocation, 'ListParts').look();
    const listedUpload = s3Exchange.parts.uploads.get(s3Exchange.caller, uploadQuery.get('uploadId')!, bucketName, objectName);
    invocation.describe({ objectType, rowCount: 0, costUnits: 0 });
    const laterParts = [...listedUpload.parts].filter(([partNumber]) => partNumber > afterPart).sort(([a], [b]) => a - b);
    const shownParts = laterParts.slice(0, partsListedMax);
    const partsXml = xmlDocument('ListPartsResult', [
      ['Bucket', bucketName],
      ['Key', objectName],
      ['UploadId', listedUpload.id],
      ['PartNumberMarker', afterPart],
      ['NextPartNumberMarker', shownParts.at(-1)?.[0] ?? afterPart],
      ['MaxParts', partsListedMax],
      ['IsTruncated', shownParts.length < laterParts.length],
      ...uploadChecksumNodes(listedUpload),
      ...shownParts.map(
        ([partNumber, { part: uploadedPart, sha256, checksums, atMs }]) =>
          [
            'Part',
            [
              ['PartNumber', partNumber],
              ['LastModified', new Date(atMs).toISOString()],
              ['ETag', quotedTag(sha256)],
              ['Size', uploadedPart.size],
              ...checksumNodes(checksums),
            ],
          ] as const,
      ),
    ]);
    return xmlReply(partsXml);
  });
}

function queryCountOf({ query: s3Query }: ObjectRequest, countName: string, defaultCount: number): number {
  const countText = s3Query.get(countName) ?? String(defaultCount);
  if (!/^\d{1,9}$/.test(countText)) throw s3Refusals.invalidArgument(`${countName} is a number`);
  return Number(countText);
}

const uploadChecksumNodes = ({ checksum: uploadChecksum }: Upload): (readonly [string, Node])[] =>
  uploadChecksum === null
    ? []
    : [
        ['ChecksumAlgorithm', uploadChecksum.algorithm.toUpperCase()],
        ['ChecksumType', uploadChecksum.type],
      ];

/** ListMultipartUploads: the caller's own that go on, by key, those of one key in the order in which they were begun. */
export function listUploads(s3Exchange: S3Exchange): Promise<S3Reply> {
  const { request: uploadsRequest, parts: objectParts } = s3Exchange;
  const { bucket: bucketName, query: uploadsQuery } = uploadsRequest;
  const [listPrefix, listDelimiter] = [uploadsQuery.get('prefix') ?? '', uploadsQuery.get('delimiter') ?? ''];
  const [afterKey, afterId] = [uploadsQuery.get('key-marker') ?? '', uploadsQuery.get('upload-id-marker') ?? ''];
  const uploadsListedMax = Math.min(listedUploadsMax, queryCountOf(uploadsRequest, 'max-uploads', listedUploadsMax));
  const encodeKey = codedBy(uploadsRequest);
  return s3Exchange.invoke('query', async (invocation: Invocation) => {
    await new ObjectReader(s3Exchange, invocation, 'ListMultipartUploads').bucket();
    const bucketUploads = objectParts.uploads
      .list(s3Exchange.caller, bucketName)
      .filter(({ key: uploadKey }) => uploadKey.startsWith(listPrefix))
      .sort((a, b) => (a.key === b.key ? a.begunMs - b.begunMs : a.key < b.key ? -1 : 1));
    const markerIndex = bucketUploads.findIndex(
      ({ key: uploadKey, id: uploadId }) => uploadKey === afterKey && uploadId === afterId,
    );
    const laterUploads = bucketUploads.filter(
      ({ key: uploadKey }, i) => uploadKey > afterKey || (uploadKey === afterKey && markerIndex >= 0 && i > markerIndex),
    );
    const shownParts: Upload[] = [];
    const commonPrefixes = new Set<string>();
    let lastUpload: Upload | null = null;
    let isTruncated = false;
    for (const listedUpload of laterUploads) {
      const delimiterOffset = listDelimiter === '' ? -1 : listedUpload.key.indexOf(listDelimiter, listPrefix.length);
      const commonPrefix = delimiterOffset < 0 ? null : listedUpload.key.slice(0, delimiterOffset + listDelimiter.length);
      if (commonPrefix !== null && (commonPrefixes.has(commonPrefix) || afterKey.startsWith(commonPrefix))) continue;
      isTruncated = shownParts.length + commonPrefixes.size >= uploadsListedMax;
      if (isTruncated) break;
      lastUpload = listedUpload;
      if (commonPrefix === null) shownParts.push(listedUpload);
      else commonPrefixes.add(commonPrefix);
    }
    invocation.describe({ objectType, rowCount: 0 });
    const ownerNodes: readonly (readonly [string, Node])[] = [
      ['ID', invocation.caller.path ?? ''],
      ['DisplayName', invocation.caller.principal],
    ];
    const uploadsXml = xmlDocument('ListMultipartUploadsResult', [
      ['Bucket', bucketName],
      ['KeyMarker', encodeKey(afterKey)],
      ['UploadIdMarker', afterId],
      ...(isTruncated && lastUpload !== null
        ? ([
            ['NextKeyMarker', encodeKey(lastUpload.key)],
            ['NextUploadIdMarker', lastUpload.id],
          ] as const)
        : []),
      ['Prefix', encodeKey(listPrefix)],
      ...optional('Delimiter', listDelimiter === '' ? undefined : encodeKey(listDelimiter)),
      ...optional('EncodingType', uploadsQuery.get('encoding-type')),
      ['MaxUploads', uploadsListedMax],
      ['IsTruncated', isTruncated],
      ...shownParts.map(
        (upload) =>
          [
            'Upload',
            [
              ['Key', encodeKey(upload.key)],
              ['UploadId', upload.id],
              ['Initiator', ownerNodes],
              ['Owner', ownerNodes],
              ['StorageClass', 'STANDARD'],
              ['Initiated', new Date(upload.begunMs).toISOString()],
              ...uploadChecksumNodes(upload),
            ],
          ] as const,
      ),
      ...[...commonPrefixes].map((commonPrefix) => ['CommonPrefixes', [['Prefix', encodeKey(commonPrefix)]]] as const),
    ]);
    return xmlReply(uploadsXml);
  });
}
