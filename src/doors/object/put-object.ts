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
const inlineBytesMax = 16 << 20;

export async function putObject(exchange: S3Exchange): Promise<S3Reply> {
  const { request, parts, sync } = exchange;
  refuseEncryption(request);
  const incoming = exchange.incoming();
  if (incoming.length > objectBytesMax) throw tooLarge();
  const pk = objectKey(request.bucket, request.key);
  const facts = factsOf(request);
  const put = (): Promise<bigint> =>
    exchange.invoke('ingest', async (invocation) => {
      const objectReader = new ObjectReader(exchange, invocation, 'PutObject');
      await objectReader.bucketOfObject();
      const when = await conditionOf(exchange, objectReader);
      const row = { facts, when, sync, method: 'PutObject' };
      if (incoming.length >= inlineMax(exchange)) await rehearsePut(objectReader, row, incoming.length);
      const cells = await receive(exchange, invocation, incoming, pk);
      return putRow(objectReader, { ...row, facts: withChecksums(facts, ofWhole(incoming.checksums)), cells });
    });
  const version = await parts.traffic.writing(exchange.caller, request.bucket, put);
  return {
    status: 200,
    headers: { etag: quotedTag(incoming.sha256), ...writtenHeaders(version), ...Object.fromEntries(ofWhole(incoming.checksums)) },
  };
}

export const inlineMax = ({ parts: { settings } }: S3Exchange): number =>
  Math.min(settings.SERVICE_OBJECT_BLOB_THRESHOLD_MB << 20, inlineBytesMax);

/** Receives small bodies into memory, others into a blob. */
async function receive(
  exchange: S3Exchange,
  invocation: Invocation,
  incoming: ReturnType<S3Exchange['incoming']>,
  pk: string,
): Promise<BodyCells> {
  if (incoming.length < inlineMax(exchange)) {
    const content = await incoming.collect(inlineBytesMax);
    return cellsOf(content, incoming.sha256);
  }
  return streamToBlob(invocation, incoming.length, incoming.read(), pk);
}

export async function streamToBlob(
  invocation: Invocation,
  size: number,
  content: AsyncIterable<Uint8Array>,
  pk: string,
  madeOf?: 'parts',
): Promise<BodyCells> {
  return blobCells(invocation, await writeAll(await invocation.bodies().begin(objectType, size, madeOf), content), pk);
}

/** Writes all of the content; an aborted one leaves nothing. */
export async function writeAll<T>(
  writer: { write(piece: Uint8Array): Promise<void>; finish(): Promise<T>; abandon(): Promise<void> },
  content: AsyncIterable<Uint8Array>,
): Promise<T> {
  try {
    for await (const piece of content) await writer.write(piece);
    return await writer.finish();
  } catch (error) {
    await writer.abandon();
    throw error;
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

const ownColumns = new Set(Object.keys(builtinTypes.find(({ name }) => name === objectType)!.properties));

/** Throws what refuses the row, once its body is there. */
export async function putRow(objectReader: ObjectReader, row: PutRow): Promise<bigint> {
  const outcome = await objectReader.invocation.submit(commandOf(objectReader, row, row.cells), { sync: row.sync, waits: true });
  return acceptedPut(outcome, row.when);
}

/** Throws what refuses the row before its body is taken. `size`: null where that is not known yet either. */
export async function rehearsePut(objectReader: ObjectReader, row: Omit<PutRow, 'cells'>, size: number | null): Promise<void> {
  const command = commandOf(objectReader, row, { size: size ?? 0, sha256: '', body: '', as: 'blob' });
  const unknown = new Set(['body', 'body_as', 'content_hash', 'headers', ...(size === null ? ['size'] : [])]);
  acceptedPut({ systemFrom: 0n, ...(await objectReader.invocation.rehearse(command, unknown)) }, row.when);
}

function acceptedPut(outcome: Pick<Outcome, 'errors' | 'systemFrom'>, when: WriteCondition | null): bigint {
  if (outcome.errors[0]?.code === 'REL_CONFLICT' && when !== null)
    throw s3Refusals.preconditionFailed(when === 'absent' ? 'If-None-Match' : 'If-Match');
  return requireAccepted(outcome);
}

function commandOf(
  objectReader: ObjectReader,
  { facts, when, method, computedFrom }: Omit<PutRow, 'cells'>,
  cells: BodyCells,
): PutRows {
  const { snapshot } = objectReader;
  const { bucket, key } = objectReader.request;
  const named: Record<string, readonly ['string', string]> = {};
  // Metadata of a name that the type has a column for is in that column too: a subject, or what policies look at.
  for (const [name, property] of Object.entries(snapshot.catalog.type(objectType)?.properties ?? {})) {
    const value = Object.hasOwn(facts.metadata, name) ? facts.metadata[name] : undefined;
    if (value !== undefined && property.type === 'string' && !ownColumns.has(name)) named[name] = ['string', value];
  }
  const rows = oneRow({
    _pk: ['string', objectKey(bucket, key)],
    bucket: ['string', bucket],
    key: ['string', key],
    size: ['integer', BigInt(cells.size)],
    content_hash: ['string', cells.sha256],
    content_type: ['string', facts.contentType],
    metadata: ['json', Object.keys(facts.metadata).length > 0 ? JSON.stringify(facts.metadata) : null],
    headers: ['json', Object.keys(facts.headers).length > 0 ? JSON.stringify(facts.headers) : null],
    body: ['string', cells.body],
    body_as: ['string', cells.as],
    ...named,
  });
  return {
    kind: 'put-rows',
    type: objectType,
    rows,
    atomic: false,
    createType: false,
    provenance: provenance(method),
    ...(when !== null && { when }),
    ...(computedFrom && { computedFrom }),
  };
}

/** `If-None-Match: *` and `If-Match: "<etag>"`; null where the request states neither. */
export async function conditionOf({ request }: S3Exchange, objectReader: ObjectReader): Promise<WriteCondition | null> {
  const none = request.header('if-none-match');
  const match = request.header('if-match');
  if (none !== null && (none !== '*' || match !== null))
    throw s3Refusals.notImplemented('a write under another condition than If-None-Match: * or If-Match');
  if (none !== null) return 'absent';
  if (match === null) return null;
  if (match === '*') return 'present';
  const row = await objectReader.object('content_hash', request.bucket, request.key, undefined);
  const own = row?.['namespace_path'] === objectReader.invocation.caller.path;
  if (row === null || !own || !etagMatches(match, textOf(row['content_hash']))) throw s3Refusals.preconditionFailed('If-Match');
  return { unchangedSince: row['system_from'] as bigint };
}

export function refuseEncryption({ header }: ObjectRequest): void {
  if (header('x-amz-server-side-encryption-customer-algorithm') !== null) throw s3Refusals.notImplemented('a key of the client');
  const asked = header('x-amz-server-side-encryption');
  if (asked !== null && asked !== 'AES256' && asked !== 'aws:kms') throw s3Refusals.notImplemented(`encryption by ${asked}`);
}

export async function copyObject(exchange: S3Exchange): Promise<S3Reply> {
  const { request, parts, sync } = exchange;
  refuseEncryption(request);
  const source = sourceOf(request);
  const directive = request.header('x-amz-metadata-directive') ?? 'COPY';
  const pk = objectKey(request.bucket, request.key);
  const fromPk = objectKey(source.bucket, source.key);
  if (pk === fromPk && directive === 'COPY' && source.versionId === undefined)
    throw new ObjectRefusal('InvalidRequest', 400, 'REL_INVALID', 'copying an object onto itself needs new metadata');
  const copy = (): Promise<{ readonly version: bigint; readonly hash: string }> =>
    exchange.invoke('ingest', async (invocation) => {
      const objectReader = new ObjectReader(exchange, invocation, 'CopyObject');
      await objectReader.bucketOfObject();
      const columns = `${bodyColumns}, content_type, metadata, headers`;
      const row = await objectReader.object(columns, source.bucket, source.key, source.versionId);
      if (row === null) throw s3Refusals.noSuchKey();
      checkSource(request, row);
      const shown = bodyOf(objectReader, row, fromPk);
      const from = factsOfRow(row);
      const said = directive === 'REPLACE' ? factsOf(request) : from;
      const facts = withChecksums(said, withoutComposite(from.headers));
      const when = await conditionOf(exchange, objectReader);
      const computedFrom = ['body', 'body_as', ...(directive === 'REPLACE' ? [] : ['metadata', 'content_type', 'headers'])];
      const copied = { facts, when, sync, method: 'CopyObject', computedFrom };
      if (shown.stored) await rehearsePut(objectReader, copied, shown.stored.size);
      const cells = shown.stored ? await copiedBody(invocation, shown.stored, row, pk) : cellsOf(shown.content);
      const version = await putRow(objectReader, { ...copied, cells });
      return { version, hash: cells.sha256 };
    });
  const { version, hash } = await parts.traffic.writing(exchange.caller, request.bucket, copy);
  const document = xmlDocument('CopyObjectResult', [
    ['ETag', quotedTag(hash)],
    ['LastModified', new Date(Number(version / 1_000_000n)).toISOString()],
  ]);
  return xmlReply(document, writtenHeaders(version));
}

/** Within a tenant a blob is named once more; what another shares is copied byte by byte. */
async function copiedBody(
  invocation: Invocation,
  stored: Parameters<typeof blobCells>[1],
  row: VerbRow,
  pk: string,
): Promise<BodyCells> {
  const bodies = invocation.bodies();
  const reader = await bodies.open(stored);
  try {
    const isOwn = (tenantOf(textOf(row['namespace_path'])) ?? '') === (tenantOf(invocation.caller.path) ?? '');
    return isOwn
      ? blobCells(invocation, stored, pk)
      : await streamToBlob(invocation, stored.size, reader.read(0, stored.size), pk);
  } finally {
    await reader.close();
  }
}

export function sourceOf(request: ObjectRequest): {
  readonly bucket: string;
  readonly key: string;
  readonly versionId: string | undefined;
} {
  const [path = '', query = ''] = request.header('x-amz-copy-source')!.split('?');
  let decoded: string;
  try {
    decoded = decodeURIComponent(path);
  } catch {
    throw s3Refusals.invalidArgument('x-amz-copy-source is a bucket and a key in percent-encoded UTF-8');
  }
  const match = /^\/?([^/]+)\/(.+)$/s.exec(decoded);
  if (!match) throw s3Refusals.invalidArgument('x-amz-copy-source names a bucket and a key');
  if (match[1] === typesBucket) throw s3Refusals.notImplemented('copying rows out of the bucket types');
  const versionId = new Map(parametersOf(query)).get('versionId');
  return { bucket: match[1]!, key: match[2]!, versionId };
}

export function checkSource(request: ObjectRequest, row: VerbRow): void {
  const header = (name: string): string | null => request.header(`x-amz-copy-source-${name}`);
  const hash = textOf(row['content_hash']);
  const seconds = Math.floor(instantMs(row) / 1000) * 1000;
  const match = header('if-match');
  const none = header('if-none-match');
  const since = Date.parse(header('if-modified-since') ?? '');
  const until = Date.parse(header('if-unmodified-since') ?? '');
  const holds =
    (match === null || etagMatches(match, hash)) &&
    (none === null || !etagMatches(none, hash)) &&
    !(seconds <= since) &&
    !(seconds > until);
  if (!holds) throw s3Refusals.preconditionFailed('x-amz-copy-source-if-…');
}
