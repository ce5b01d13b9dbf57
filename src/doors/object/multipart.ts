/** Uploads in parts: each is sealed into a file of its own, and all of them become one body when the upload is completed. */
import { createHash } from 'node:crypto';
import type { Exchange } from './exchange.ts';
import { Asking, cellsOf, objectKey, objectType, quotedTag } from './object-rows.ts';
import { factsOf, sealedHeader, writtenHeaders } from './object-facts.ts';
import { conditionOf, inlineMax, putRow, refuseEncryption, streamed, tooLarge } from './put-object.ts';
import { ObjectRefusal, refusals } from './refusal.ts';
import { type Reply, xmlReply } from './reply.ts';
import type { Upload, UploadedPart } from './uploads.ts';
import { memberText, xmlDocument, xmlMembers } from './xml.ts';

const partsMax = 10_000;
const partBytesMin = 5 << 20;
const partBytesMax = 5 * 2 ** 30;
const documentBytesMax = 4 << 20;
const listedMax = 1_000;

export async function createUpload(exchange: Exchange): Promise<Reply> {
  const { request, parts } = exchange;
  const { bucket, key } = request;
  void exchange.sync;
  refuseEncryption(request);
  const facts = factsOf(request);
  const upload = await exchange.invoke('ingest', async (invocation) => {
    await new Asking(exchange, invocation, 'CreateMultipartUpload').bucket(true);
    return parts.uploads.begin(exchange.caller, bucket, key, facts);
  });
  const document = xmlDocument('InitiateMultipartUploadResult', [
    ['Bucket', bucket],
    ['Key', key],
    ['UploadId', upload.id],
  ]);
  const algorithm = request.header('x-amz-checksum-algorithm');
  return xmlReply(document, algorithm === null ? {} : { 'x-amz-checksum-algorithm': algorithm });
}

function uploadOf(exchange: Exchange): Upload {
  const { bucket, key, query } = exchange.request;
  return exchange.parts.uploads.find(exchange.caller, query.get('uploadId')!, bucket, key);
}

export async function uploadPart(exchange: Exchange): Promise<Reply> {
  const { request, parts } = exchange;
  const said = request.query.get('partNumber') ?? '';
  const number = /^\d{1,5}$/.test(said) ? Number(said) : 0;
  if (number < 1 || number > partsMax) throw refusals.invalidArgument(`partNumber is a number from 1 to ${partsMax}`);
  const incoming = exchange.incoming();
  if (incoming.length > partBytesMax) throw tooLarge();
  await exchange.invoke('ingest', async (invocation) => {
    invocation.describe({ objectType, rowCount: 0 });
    const upload = uploadOf(exchange);
    const writer = await invocation.bodies().part(objectType, incoming.length);
    try {
      for await (const piece of incoming.read()) await writer.write(piece);
    } catch (error) {
      await writer.abandon();
      throw error;
    }
    const part = await writer.finish();
    const { sha256, checksums } = incoming;
    const atMs = Number(parts.clock.now() / 1_000_000n);
    await parts.uploads.put(upload, number, { part, sha256, checksums, atMs });
  });
  return {
    status: 200,
    headers: { etag: quotedTag(incoming.sha256), ...sealedHeader, ...Object.fromEntries(incoming.checksums) },
  };
}

export async function completeUpload(exchange: Exchange): Promise<Reply> {
  const { request, parts, sync } = exchange;
  const { bucket, key } = request;
  const document = (await exchange.incoming().collect(documentBytesMax)).toString('utf8');
  const pk = objectKey(bucket, key);
  const complete = (): Promise<{ readonly version: bigint; readonly sha256: string }> =>
    exchange.invoke('ingest', async (invocation) => {
      const upload = uploadOf(exchange);
      const chosen = chosenParts(upload, document);
      upload.closed = true;
      try {
        const asking = new Asking(exchange, invocation, 'CompleteMultipartUpload');
        await asking.bucket(true);
        const when = await conditionOf(exchange, asking);
        const size = chosen.reduce((sum, { part }) => sum + part.size, 0);
        const content = readAll(chosen);
        const cells = size < inlineMax(exchange) ? await inMemory(content) : await streamed(invocation, size, content, pk);
        const version = await putRow(asking, { facts: upload.facts, cells, when, sync, method: 'CompleteMultipartUpload' });
        await parts.uploads.end(upload);
        return { version, sha256: cells.sha256 };
      } catch (error) {
        // It can be completed again, or aborted.
        upload.closed = false;
        throw error;
      }
    });
  const { version, sha256 } = await parts.traffic.writing(exchange.caller, bucket, complete);
  const result = xmlDocument('CompleteMultipartUploadResult', [
    ['Location', `/${bucket}/${encodeURIComponent(key).replaceAll('%2F', '/')}`],
    ['Bucket', bucket],
    ['Key', key],
    ['ETag', quotedTag(sha256)],
  ]);
  return xmlReply(result, writtenHeaders(version));
}

async function* readAll(parts: readonly UploadedPart[]): AsyncGenerator<Uint8Array, void> {
  for (const { part } of parts) yield* part.read();
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

/** Those that the document names, in rising order, each as it was uploaded. */
function chosenParts(upload: Upload, document: string): UploadedPart[] {
  const otherwise = `1 to ${partsMax} parts are named`;
  const members = xmlMembers(document, 'CompleteMultipartUpload', { element: 'Part', most: partsMax, otherwise });
  const listed = (members['Part'] ?? []) as readonly unknown[];
  if (listed.length === 0 || listed.length > partsMax) throw refusals.malformedXml(otherwise);
  let last = 0;
  return listed.map((each, i) => {
    if (typeof each !== 'object' || each === null) throw refusals.malformedXml('<Part> names a <PartNumber> and an <ETag>');
    const named = each as Readonly<Record<string, unknown>>;
    const said = memberText(named, 'PartNumber')?.trim() ?? '';
    const number = /^\d{1,5}$/.test(said) ? Number(said) : 0;
    if (number <= last) throw new ObjectRefusal('InvalidPartOrder', 400, 'REL_INVALID', 'parts are named in rising order');
    last = number;
    const part = upload.parts.get(number);
    const tag = (memberText(named, 'ETag') ?? '').trim().replaceAll('"', '');
    if (part === undefined || part.sha256 !== tag) throw refusals.invalidPart(`part ${number} was not uploaded as it is named`);
    for (const [header, value] of part.checksums) {
      const stated = memberText(named, `Checksum${header.slice('x-amz-checksum-'.length).toUpperCase()}`);
      if (stated !== null && stated.trim() !== value) throw refusals.invalidPart(`the checksum of part ${number} is another`);
    }
    if (part.part.size < partBytesMin && i < listed.length - 1)
      throw new ObjectRefusal('EntityTooSmall', 400, 'REL_INVALID', `every part but the last has at least ${partBytesMin} bytes`);
    return part;
  });
}

export async function abortUpload(exchange: Exchange): Promise<Reply> {
  await exchange.invoke('ingest', async (invocation) => {
    invocation.describe({ objectType, rowCount: 0 });
    await exchange.parts.uploads.end(uploadOf(exchange));
  });
  return { status: 204, headers: {} };
}

export function listParts(exchange: Exchange): Promise<Reply> {
  const { bucket, key, query } = exchange.request;
  const after = Number(query.get('part-number-marker') ?? 0) || 0;
  const max = Math.min(listedMax, Number(query.get('max-parts') ?? listedMax) || 0);
  return exchange.invoke('query', async (invocation) => {
    const upload = uploadOf(exchange);
    invocation.describe({ objectType, rowCount: 0, costUnits: 0 });
    const all = [...upload.parts].filter(([number]) => number > after).sort(([a], [b]) => a - b);
    const shown = all.slice(0, max);
    const document = xmlDocument('ListPartsResult', [
      ['Bucket', bucket],
      ['Key', key],
      ['UploadId', upload.id],
      ['PartNumberMarker', after],
      ['NextPartNumberMarker', shown.at(-1)?.[0] ?? after],
      ['MaxParts', max],
      ['IsTruncated', shown.length < all.length],
      ...shown.map(
        ([number, { part, sha256, atMs }]) =>
          [
            'Part',
            [
              ['PartNumber', number],
              ['LastModified', new Date(atMs).toISOString()],
              ['ETag', quotedTag(sha256)],
              ['Size', part.size],
            ],
          ] as const,
      ),
    ]);
    return xmlReply(document);
  });
}
