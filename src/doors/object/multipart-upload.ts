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

const partsMax = 10_000;
const partBytesMin = 5 << 20;
const partBytesMax = 5 * 2 ** 30;
const documentBytesMax = 4 << 20;
const listedMax = 1_000;

export async function createUpload(exchange: S3Exchange): Promise<S3Reply> {
  const { request, parts, sync } = exchange;
  const { bucket, key } = request;
  refuseEncryption(request);
  const facts = factsOf(request);
  const checksum = checksumStated(request);
  const upload = await exchange.invoke('ingest', async (invocation) => {
    const objectReader = new ObjectReader(exchange, invocation, 'CreateMultipartUpload');
    await objectReader.bucketOfObject();
    await rehearsePut(objectReader, { facts, when: null, sync, method: 'CreateMultipartUpload' }, null);
    return parts.uploads.begin(exchange.caller, { bucket, key, facts, checksum });
  });
  const document = xmlDocument('InitiateMultipartUploadResult', [
    ['Bucket', bucket],
    ['Key', key],
    ['UploadId', upload.id],
  ]);
  const stated = checksum && {
    'x-amz-checksum-algorithm': checksum.algorithm.toUpperCase(),
    [checksumType]: checksum.type,
  };
  return xmlReply(document, stated ?? {});
}

/** Throws InvalidRequest for what S3 combines neither. */
export function checksumStated({ header }: ObjectRequest): UploadChecksum | null {
  const algorithm = header('x-amz-checksum-algorithm');
  const type = header(checksumType)?.toUpperCase() ?? null;
  if (algorithm === null) {
    if (type !== null) throw s3Refusals.invalidRequest(`${checksumType} goes with x-amz-checksum-algorithm`);
    return null;
  }
  const named = checksumNamed(algorithm) ?? unknownChecksum(algorithm);
  const isNvme = named === 'crc64nvme';
  const stated = type ?? (isNvme ? 'FULL_OBJECT' : 'COMPOSITE');
  const isCyclic = named.startsWith('crc');
  if ((stated === 'COMPOSITE' && !isNvme) || (stated === 'FULL_OBJECT' && isCyclic)) return { algorithm: named, type: stated };
  throw s3Refusals.invalidRequest(`a checksum ${algorithm} over parts is not of the type ${type}`);
}

function uploadOf(exchange: S3Exchange): Upload {
  const { bucket, key, query } = exchange.request;
  return exchange.parts.uploads.get(exchange.caller, query.get('uploadId')!, bucket, key);
}

function partNumberOf({ query }: ObjectRequest): number {
  const said = query.get('partNumber') ?? '';
  const number = /^\d{1,5}$/.test(said) ? Number(said) : 0;
  if (number < 1 || number > partsMax) throw s3Refusals.invalidArgument(`partNumber is a number from 1 to ${partsMax}`);
  return number;
}

export async function uploadPart(exchange: S3Exchange): Promise<S3Reply> {
  const { request, parts, sync } = exchange;
  const number = partNumberOf(request);
  const checksum = uploadOf(exchange).checksum?.algorithm ?? null;
  const incoming = exchange.incoming({ checksum });
  if (incoming.length > partBytesMax) throw tooLarge();
  await exchange.invoke('ingest', async (invocation) => {
    invocation.describe({ objectType, rowCount: 0 });
    const upload = uploadOf(exchange);
    const objectReader = new ObjectReader(exchange, invocation, 'UploadPart');
    await rehearsePut(objectReader, { facts: upload.facts, when: null, sync, method: 'UploadPart' }, null);
    const arrived = parts.uploads.expect(upload, number, incoming.length);
    try {
      const part = await writeAll(await invocation.bodies().part(objectType, incoming.length), incoming.read());
      const { sha256, checksums } = incoming;
      await parts.uploads.put(upload, number, { part, sha256, checksums, atMs: nowMs(exchange) });
    } finally {
      arrived();
    }
  });
  return {
    status: 200,
    headers: { etag: quotedTag(incoming.sha256), ...sealedHeader, ...Object.fromEntries(incoming.checksums) },
  };
}

const nowMs = ({ parts }: S3Exchange): number => Number(parts.clock.now() / 1_000_000n);

/** UploadPartCopy: a part that is an object, or a range of one. */
export async function copyPart(exchange: S3Exchange): Promise<S3Reply> {
  const { request, parts, sync } = exchange;
  const number = partNumberOf(request);
  const source = sourceOf(request);
  const copied = await exchange.invoke('ingest', async (invocation) => {
    const upload = uploadOf(exchange);
    const objectReader = new ObjectReader(exchange, invocation, 'UploadPartCopy');
    await objectReader.bucketOfObject();
    const row = await objectReader.object(bodyColumns, source.bucket, source.key, source.versionId);
    if (row === null) throw s3Refusals.noSuchKey();
    checkSource(request, row);
    const shownParts = bodyOf(objectReader, row, objectKey(source.bucket, source.key));
    const { from, to } = copiedRange(request, shownParts.stored?.size ?? shownParts.content!.length);
    const computedFrom = ['body', 'body_as'];
    await rehearsePut(objectReader, { facts: upload.facts, when: null, sync, method: 'UploadPartCopy', computedFrom }, null);
    const arrived = parts.uploads.expect(upload, number, to - from);
    const reader = shownParts.stored && (await invocation.bodies().open(shownParts.stored));
    try {
      const hash = createHash('sha256');
      const checksum = upload.checksum && checksumOf(upload.checksum.algorithm);
      const content = async function* (): AsyncGenerator<Uint8Array, void> {
        for await (const piece of reader?.read(from, to) ?? [shownParts.content!.subarray(from, to)]) {
          hash.update(piece);
          checksum?.update(piece);
          yield piece;
          await parts.yieldTurn();
        }
      };
      const part = await writeAll(await invocation.bodies().part(objectType, to - from), content());
      upload.isCopied = true;
      const checksums = new Map(upload.checksum ? [[checksumHeader(upload.checksum.algorithm), checksum!.value()]] : []);
      const uploaded = { part, sha256: hash.digest('hex'), checksums, atMs: nowMs(exchange) };
      await parts.uploads.put(upload, number, uploaded);
      return uploaded;
    } finally {
      arrived();
      await reader?.close();
    }
  });
  const document = xmlDocument('CopyPartResult', [
    ['LastModified', new Date(copied.atMs).toISOString()],
    ['ETag', quotedTag(copied.sha256)],
    ...checksumNodes(copied.checksums),
  ]);
  return xmlReply(document, sealedHeader);
}

export function copiedRange({ header }: ObjectRequest, size: number): { readonly from: number; readonly to: number } {
  const said = header('x-amz-copy-source-range');
  if (said === null) return { from: 0, to: size };
  const match = /^bytes=(\d{1,15})-(\d{1,15})$/.exec(said.trim());
  const [from, last] = match === null ? [1, 0] : [Number(match[1]), Number(match[2])];
  if (from > last || last >= size)
    throw s3Refusals.invalidArgument(`x-amz-copy-source-range is bytes=<first>-<last> within the ${size} bytes of the source`);
  return { from, to: last + 1 };
}

/** `<ChecksumCRC32>` and its like. */
function checksumNodes(checksums: ReadonlyMap<string, string>): (readonly [string, Node])[] {
  return [...checksums].map(([header, value]) => [elementOf(header), value] as const);
}

const elementOf = (header: string): string =>
  header === checksumType ? 'ChecksumType' : `Checksum${header.slice('x-amz-checksum-'.length).toUpperCase()}`;

export async function completeUpload(exchange: S3Exchange): Promise<S3Reply> {
  const { request, parts } = exchange;
  const { bucket, key, query } = request;
  const document = (await exchange.incoming({ statesOwn: false }).collect(documentBytesMax)).toString('utf8');
  const named = namedParts(document);
  const names = JSON.stringify(named.map(({ number, tag }) => [number, tag]));
  const complete = (): Promise<Completion> =>
    exchange.invoke('ingest', async (invocation) => {
      const objectReader = new ObjectReader(exchange, invocation, 'CompleteMultipartUpload');
      await objectReader.bucketOfObject();
      const before = await parts.uploads.findCompletion(exchange.caller, query.get('uploadId')!, bucket, key);
      if (before === null) {
        const upload = uploadOf(exchange);
        return parts.uploads.complete(upload, names, () => completeParts(exchange, objectReader, upload, named));
      }
      if (before.named !== names) throw s3Refusals.invalidPart('the upload was completed with other parts');
      return before;
    });
  const { version, sha256, checksums } = await parts.traffic.writing(exchange.caller, bucket, complete);
  const result = xmlDocument('CompleteMultipartUploadResult', [
    ['Location', `/${bucket}/${encodeURIComponent(key).replaceAll('%2F', '/')}`],
    ['Bucket', bucket],
    ['Key', key],
    ['ETag', quotedTag(sha256)],
    ...checksumNodes(checksums),
  ]);
  return xmlReply(result, writtenHeaders(version));
}

async function completeParts(
  exchange: S3Exchange,
  objectReader: ObjectReader,
  upload: Upload,
  named: readonly NamedPart[],
): Promise<Omit<Completion, 'named'>> {
  const { request, sync } = exchange;
  const chosen = chosenParts(upload, named);
  const size = chosen.reduce((sum, { part }) => sum + part.size, 0);
  const said = request.header('x-amz-mp-object-size');
  if (said !== null && said !== String(size)) throw s3Refusals.invalidRequest(`x-amz-mp-object-size is not ${size}`);
  const when = await conditionOf(exchange, objectReader);
  const row: Omit<PutRow, 'cells'> = {
    facts: upload.facts,
    when,
    sync,
    method: 'CompleteMultipartUpload',
    ...(upload.isCopied && { computedFrom: ['body', 'body_as'] }),
  };
  await rehearsePut(objectReader, row, size);
  try {
    const whole = upload.checksum?.type === 'FULL_OBJECT' ? checksumOf(upload.checksum.algorithm) : null;
    const content = readAll(chosen, (piece) => whole?.update(piece));
    const pk = objectKey(request.bucket, request.key);
    const isInline = size < inlineMax(exchange);
    const cells = isInline ? await inMemory(content) : await streamToBlob(objectReader.invocation, size, content, pk, 'parts');
    const checksums = checksumsOf(exchange, upload, chosen, whole?.value() ?? null);
    const version = await putRow(objectReader, { ...row, facts: withChecksums(upload.facts, checksums), cells });
    return { version, sha256: cells.sha256, checksums };
  } catch (error) {
    for (const { part } of chosen) part.count(true);
    throw error;
  }
}

/** The checksum that the upload was begun with. Throws BadDigest where the client states another. */
function checksumsOf(
  { request }: S3Exchange,
  { checksum }: Upload,
  chosen: readonly UploadedPart[],
  whole: string | null,
): ReadonlyMap<string, string> {
  if (checksum === null) return new Map();
  const header = checksumHeader(checksum.algorithm);
  const said = request.header(header);
  let value = whole;
  if (value === null) {
    const composite = checksumOf(checksum.algorithm);
    for (const { checksums } of chosen) composite.update(Buffer.from(checksums.get(header)!, 'base64'));
    value = `${composite.value()}-${chosen.length}`;
  }
  if (said !== null && said !== value) throw s3Refusals.badDigest(header);
  return new Map([
    [header, value],
    [checksumType, checksum.type],
  ]);
}

/** A part that was read is counted with the body that is made of it, and no more by itself. */
async function* readAll(parts: readonly UploadedPart[], onPiece: (piece: Uint8Array) => void): AsyncGenerator<Uint8Array, void> {
  for (const { part } of parts) {
    part.count(false);
    for await (const piece of part.read()) {
      onPiece(piece);
      yield piece;
    }
  }
}

async function inMemory(content: AsyncIterable<Uint8Array>): Promise<ReturnType<typeof cellsOf>> {
  const hash = createHash('sha256');
  const pieces: Buffer[] = [];
  for await (const piece of content) {
    hash.update(piece);
    pieces.push(Buffer.from(piece));
  }
  return cellsOf(Buffer.concat(pieces), hash.digest('hex'));
}

interface NamedPart {
  readonly number: number;
  readonly tag: string;
  readonly members: Readonly<Record<string, unknown>>;
}

/** Parts as a document names them, in rising order. */
export function namedParts(document: string): NamedPart[] {
  const otherwise = `1 to ${partsMax} parts are named`;
  const members = xmlMembers(document, 'CompleteMultipartUpload', { element: 'Part', most: partsMax, otherwise });
  const listed = (members['Part'] ?? []) as readonly unknown[];
  if (listed.length === 0 || listed.length > partsMax) throw s3Refusals.malformedXml(otherwise);
  let last = 0;
  return listed.map((each) => {
    if (typeof each !== 'object' || each === null) throw s3Refusals.malformedXml('<Part> names a <PartNumber> and an <ETag>');
    const named = each as Readonly<Record<string, unknown>>;
    const said = memberText(named, 'PartNumber')?.trim() ?? '';
    const number = /^\d{1,5}$/.test(said) ? Number(said) : 0;
    if (number <= last) throw new ObjectRefusal('InvalidPartOrder', 400, 'REL_INVALID', 'parts are named in rising order');
    last = number;
    return { number, tag: (memberText(named, 'ETag') ?? '').trim().replaceAll('"', ''), members: named };
  });
}

/** Each as it was uploaded. */
function chosenParts(upload: Upload, named: readonly NamedPart[]): UploadedPart[] {
  return named.map(({ number, tag, members }, i) => {
    const part = upload.parts.get(number);
    if (part === undefined || part.sha256 !== tag) throw s3Refusals.invalidPart(`part ${number} does not match an uploaded part`);
    for (const [header, value] of part.checksums) {
      const stated = memberText(members, elementOf(header));
      if (stated !== null && stated.trim() !== value)
        throw s3Refusals.invalidPart(`the checksum of part ${number} does not match`);
    }
    if (part.part.size < partBytesMin && i < named.length - 1)
      throw new ObjectRefusal('EntityTooSmall', 400, 'REL_INVALID', `every part but the last has at least ${partBytesMin} bytes`);
    return part;
  });
}

export async function abortUpload(exchange: S3Exchange): Promise<S3Reply> {
  await exchange.invoke('ingest', async (invocation) => {
    new ObjectReader(exchange, invocation, 'AbortMultipartUpload').look();
    invocation.describe({ objectType, rowCount: 0 });
    await exchange.parts.uploads.end(uploadOf(exchange));
  });
  return { status: 204, headers: {} };
}

export function listParts(exchange: S3Exchange): Promise<S3Reply> {
  const { bucket, key, query } = exchange.request;
  const after = countOf(exchange.request, 'part-number-marker', 0);
  const max = Math.min(listedMax, countOf(exchange.request, 'max-parts', listedMax));
  return exchange.invoke('query', async (invocation) => {
    new ObjectReader(exchange, invocation, 'ListParts').look();
    const upload = exchange.parts.uploads.get(exchange.caller, query.get('uploadId')!, bucket, key);
    invocation.describe({ objectType, rowCount: 0, costUnits: 0 });
    const all = [...upload.parts].filter(([number]) => number > after).sort(([a], [b]) => a - b);
    const shownParts = all.slice(0, max);
    const document = xmlDocument('ListPartsResult', [
      ['Bucket', bucket],
      ['Key', key],
      ['UploadId', upload.id],
      ['PartNumberMarker', after],
      ['NextPartNumberMarker', shownParts.at(-1)?.[0] ?? after],
      ['MaxParts', max],
      ['IsTruncated', shownParts.length < all.length],
      ...checksumOfUpload(upload),
      ...shownParts.map(
        ([number, { part, sha256, checksums, atMs }]) =>
          [
            'Part',
            [
              ['PartNumber', number],
              ['LastModified', new Date(atMs).toISOString()],
              ['ETag', quotedTag(sha256)],
              ['Size', part.size],
              ...checksumNodes(checksums),
            ],
          ] as const,
      ),
    ]);
    return xmlReply(document);
  });
}

function countOf({ query }: ObjectRequest, name: string, otherwise: number): number {
  const said = query.get(name) ?? String(otherwise);
  if (!/^\d{1,9}$/.test(said)) throw s3Refusals.invalidArgument(`${name} is a number`);
  return Number(said);
}

const checksumOfUpload = ({ checksum }: Upload): (readonly [string, Node])[] =>
  checksum === null
    ? []
    : [
        ['ChecksumAlgorithm', checksum.algorithm.toUpperCase()],
        ['ChecksumType', checksum.type],
      ];

/** ListMultipartUploads: the caller's own that go on, by key, those of one key in the order in which they were begun. */
export function listUploads(exchange: S3Exchange): Promise<S3Reply> {
  const { request, parts } = exchange;
  const { bucket, query } = request;
  const [prefix, delimiter] = [query.get('prefix') ?? '', query.get('delimiter') ?? ''];
  const [afterKey, afterId] = [query.get('key-marker') ?? '', query.get('upload-id-marker') ?? ''];
  const max = Math.min(listedMax, countOf(request, 'max-uploads', listedMax));
  const coded = codedBy(request);
  return exchange.invoke('query', async (invocation: Invocation) => {
    await new ObjectReader(exchange, invocation, 'ListMultipartUploads').bucket();
    const all = parts.uploads
      .list(exchange.caller, bucket)
      .filter(({ key }) => key.startsWith(prefix))
      .sort((a, b) => (a.key === b.key ? a.begunMs - b.begunMs : a.key < b.key ? -1 : 1));
    const begin = all.findIndex(({ key, id }) => key === afterKey && id === afterId);
    const left = all.filter(({ key }, i) => key > afterKey || (key === afterKey && begin >= 0 && i > begin));
    const shownParts: Upload[] = [];
    const prefixes = new Set<string>();
    let last: Upload | null = null;
    let isTruncated = false;
    for (const upload of left) {
      const at = delimiter === '' ? -1 : upload.key.indexOf(delimiter, prefix.length);
      const common = at < 0 ? null : upload.key.slice(0, at + delimiter.length);
      if (common !== null && (prefixes.has(common) || afterKey.startsWith(common))) continue;
      isTruncated = shownParts.length + prefixes.size >= max;
      if (isTruncated) break;
      last = upload;
      if (common === null) shownParts.push(upload);
      else prefixes.add(common);
    }
    invocation.describe({ objectType, rowCount: 0 });
    const owner: readonly (readonly [string, Node])[] = [
      ['ID', invocation.caller.path ?? ''],
      ['DisplayName', invocation.caller.principal],
    ];
    const document = xmlDocument('ListMultipartUploadsResult', [
      ['Bucket', bucket],
      ['KeyMarker', coded(afterKey)],
      ['UploadIdMarker', afterId],
      ...(isTruncated && last !== null
        ? ([
            ['NextKeyMarker', coded(last.key)],
            ['NextUploadIdMarker', last.id],
          ] as const)
        : []),
      ['Prefix', coded(prefix)],
      ...optional('Delimiter', delimiter === '' ? undefined : coded(delimiter)),
      ...optional('EncodingType', query.get('encoding-type')),
      ['MaxUploads', max],
      ['IsTruncated', isTruncated],
      ...shownParts.map(
        (upload) =>
          [
            'Upload',
            [
              ['Key', coded(upload.key)],
              ['UploadId', upload.id],
              ['Initiator', owner],
              ['Owner', owner],
              ['StorageClass', 'STANDARD'],
              ['Initiated', new Date(upload.begunMs).toISOString()],
              ...checksumOfUpload(upload),
            ],
          ] as const,
      ),
      ...[...prefixes].map((common) => ['CommonPrefixes', [['Prefix', coded(common)]]] as const),
    ]);
    return xmlReply(document);
  });
}
