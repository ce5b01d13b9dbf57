/** The object door by Amazon's own client: one store, one server, requests that are signed and checked. */
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetBucketLocationCommand,
  GetBucketTaggingCommand,
  GetBucketVersioningCommand,
  GetObjectCommand,
  GetObjectTaggingCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListBucketsCommand,
  ListObjectsCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  ListPartsCommand,
  PutObjectCommand,
  PutObjectTaggingCommand,
  type S3Client,
  UploadPartCommand,
  UploadPartCopyCommand,
} from '@aws-sdk/client-s3';
import { createHash } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { checksumOf } from '../../../src/doors/object/checksums.ts';
import { keyPairOf } from '../../../src/governance/authentication/access-keys.ts';
import { keyIdOf } from '../../../src/governance/authentication/sigv4.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { StoreWorld } from '../http/store-world.ts';
import {
  bearer,
  clientOf,
  codeOf,
  forPath,
  megabytes,
  objectPort,
  objectSecret,
  objectToken,
  objectWorld,
  origin,
  putInto,
  sentAhead,
  sha256,
  textOf,
} from './object-client.ts';

const disk = new MemoryDisk();
let world: StoreWorld;
let s3: S3Client;
/** Signs URLs. */
let signer: S3Client;
/** A store whose door checks no signatures. */
let bearers: StoreWorld;
beforeAll(async () => {
  world = await objectWorld(disk);
  s3 = clientOf(world);
  signer = clientOf(world, { credentials: { accessKeyId: keyIdOf(objectToken), secretAccessKey: objectSecret } });
  bearers = await StoreWorld.open({ SERVICE_BEARER_TOKEN: objectToken });
  expect((await fetch(`${origin(bearers)}/docs`, { method: 'PUT', headers: bearer })).status).toBe(200);
  await s3.send(new CreateBucketCommand({ Bucket: 'docs' }));
});
afterAll(async () => {
  s3.destroy();
  signer.destroy();
  await Promise.all([world.close(), bearers.close()]);
});

const put = (key: string, body: string | Uint8Array, more: object = {}) => putInto(s3, key, body, more);
const get = (key: string, more: object = {}, client = s3): Promise<string> => textOf(client, key, more);

test('an object is put, read, listed, headed and deleted', async () => {
  const { ETag, VersionId } = await put('a/b.txt', 'hällo', {
    ContentType: 'text/plain',
    Metadata: { who: 'me' },
    CacheControl: 'no-store',
  });
  expect(ETag).toBe(`"${sha256('hällo')}"`);
  expect(await get('a/b.txt')).toBe('hällo');
  const head = await s3.send(new HeadObjectCommand({ Bucket: 'docs', Key: 'a/b.txt' }));
  expect(head).toMatchObject({
    ETag,
    VersionId,
    ContentLength: 6,
    ContentType: 'text/plain',
    Metadata: { who: 'me' },
    CacheControl: 'no-store',
    ServerSideEncryption: 'aws:kms',
  });
  const { Contents, KeyCount } = await s3.send(new ListObjectsV2Command({ Bucket: 'docs' }));
  expect([KeyCount, Contents!.map(({ Key, Size }) => [Key, Size])]).toEqual([1, [['a/b.txt', 6]]]);
  const sql = "SELECT key, size, content_hash, body, body_as FROM ObjectStoreObject WHERE bucket = 'docs'";
  expect(await world.rows(sql)).toEqual([
    { key: 'a/b.txt', size: 6, content_hash: sha256('hällo'), body: 'hällo', body_as: 'text' },
  ]);
  await s3.send(new DeleteObjectCommand({ Bucket: 'docs', Key: 'a/b.txt' }));
  await s3.send(new DeleteObjectCommand({ Bucket: 'docs', Key: 'a/b.txt' }));
  expect(await codeOf(get('a/b.txt'))).toBe('NoSuchKey 404');
  expect(await codeOf(s3.send(new HeadObjectCommand({ Bucket: 'docs', Key: 'a/b.txt' })))).toBe('NotFound 404');
  // What it was, it was.
  expect(await get('a/b.txt', { VersionId })).toBe('hällo');
  expect(await codeOf(get('a/b.txt', { VersionId: '17' }))).toBe('NoSuchVersion 404');
  expect((await s3.send(new ListObjectsV2Command({ Bucket: 'docs' }))).Contents).toBeUndefined();
});

test('buckets are made once, named as S3 names them, and deleted when they are empty', async () => {
  const named = (Bucket: string) => s3.send(new CreateBucketCommand({ Bucket }));
  const at = Date.now();
  await named('second');
  expect(await codeOf(named('second'))).toBe('BucketAlreadyOwnedByYou 409');
  expect(await codeOf(named('No'))).toBe('InvalidBucketName 400');
  expect(await codeOf(named('types'))).toBe('AccessDenied 403');
  const { Buckets } = await s3.send(new ListBucketsCommand({}));
  expect(Buckets!.map(({ Name }) => Name)).toEqual(['docs', 'second', 'types']);
  expect(Math.abs(Buckets![1]!.CreationDate!.getTime() - at)).toBeLessThan(60_000);
  expect((await s3.send(new GetBucketLocationCommand({ Bucket: 'second' }))).LocationConstraint).toBeUndefined();
  await s3.send(new HeadBucketCommand({ Bucket: 'second' }));
  await s3.send(new PutObjectCommand({ Bucket: 'second', Key: 'k', Body: 'v' }));
  const remove = () => s3.send(new DeleteBucketCommand({ Bucket: 'second' }));
  expect(await codeOf(remove())).toBe('BucketNotEmpty 409');
  await s3.send(new DeleteObjectCommand({ Bucket: 'second', Key: 'k' }));
  await remove();
  expect(await codeOf(remove())).toBe('NoSuchBucket 404');
  expect(await codeOf(s3.send(new HeadBucketCommand({ Bucket: 'second' })))).toBe('NotFound 404');
  expect(await codeOf(s3.send(new PutObjectCommand({ Bucket: 'second', Key: 'k', Body: 'v' })))).toBe('NoSuchBucket 404');
  expect(await codeOf(s3.send(new DeleteObjectCommand({ Bucket: 'second', Key: 'k' })))).toBe('NoSuchBucket 404');
  expect(await codeOf(s3.send(new ListObjectsV2Command({ Bucket: 'second' })))).toBe('NoSuchBucket 404');
});

test('listings page, group by a delimiter and say any key', async () => {
  const Bucket = 'listed';
  await s3.send(new CreateBucketCommand({ Bucket }));
  const keys = ['a', 'a/1', 'a/2', 'a/b/3', 'b+c d', 'z\u0001\u{1f600}', 'ü/x'];
  for (const Key of keys) await s3.send(new PutObjectCommand({ Bucket, Key, Body: Key }));
  const pages = async (more: object): Promise<unknown[]> => {
    const found: unknown[] = [];
    for (let ContinuationToken: string | undefined; ; ) {
      const page = await s3.send(new ListObjectsV2Command({ Bucket, ...more, ContinuationToken }));
      found.push([
        ...(page.Contents ?? []).map(({ Key }) => Key),
        ...(page.CommonPrefixes ?? []).map(({ Prefix }) => `${Prefix}*`),
      ]);
      if (page.IsTruncated !== true) return found;
      ContinuationToken = page.NextContinuationToken!;
    }
  };
  // What XML can't say is asked for encoded.
  const encoded = (text: string): string => encodeURIComponent(text).replaceAll('%2F', '/');
  expect(await pages({ EncodingType: 'url' })).toEqual([keys.map(encoded)]);
  expect(await pages({ Delimiter: '/', Prefix: 'a' })).toEqual([['a', 'a/*']]);
  expect(await pages({ Delimiter: '/', MaxKeys: 1, EncodingType: 'url' })).toEqual([
    ['a'],
    ['a/*'],
    [encoded('b+c d')],
    [encoded('z\u0001\u{1f600}')],
    [`${encoded('ü/')}*`],
  ]);
  expect(await pages({ Delimiter: '/', Prefix: 'a/' })).toEqual([['a/1', 'a/2', 'a/b/*']]);
  expect(await pages({ MaxKeys: 3, Prefix: 'a' })).toEqual([['a', 'a/1', 'a/2'], ['a/b/3']]);
  expect(await pages({ StartAfter: 'a/2', Prefix: 'a/' })).toEqual([['a/b/3']]);
  expect(await pages({ MaxKeys: 0 })).toEqual([[]]);
  const v1 = await s3.send(new ListObjectsCommand({ Bucket, Delimiter: '/', MaxKeys: 2 }));
  expect([v1.NextMarker, v1.IsTruncated]).toEqual(['a/', true]);
  const rest = await s3.send(new ListObjectsCommand({ Bucket, Delimiter: '/', Marker: 'a/', MaxKeys: 2 }));
  expect([rest.Contents!.map(({ Key }) => Key), rest.CommonPrefixes]).toEqual([['b+c d', 'z\ufffd\u{1f600}'], undefined]);
  const { Deleted, Errors } = await s3.send(
    new DeleteObjectsCommand({ Bucket, Delete: { Objects: [...keys.slice(0, 5), 'nothing'].map((Key) => ({ Key })) } }),
  );
  expect([Deleted!.map(({ Key }) => Key), Errors]).toEqual([[...keys.slice(0, 5), 'nothing'], undefined]);
  expect(await pages({ EncodingType: 'url' })).toEqual([keys.slice(5).map(encoded)]);
});

test('bodies come back byte by byte, whatever they are', async () => {
  const texts = ['', '\ufeffa', 'a\0b', '\u{10ffff}\ufffe', 'body:1:x'].map((text) => Buffer.from(text));
  const others = [Buffer.from([0xc3]), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from([0xff, 0xfe, 0])];
  for (const body of [...texts, ...others]) {
    await put('bytes', body);
    const { Body, ContentLength } = await s3.send(new GetObjectCommand({ Bucket: 'docs', Key: 'bytes' }));
    expect([ContentLength, Buffer.from(await Body!.transformToByteArray())]).toEqual([body.length, body]);
  }
});

test('conditions and ranges', async () => {
  const first = await put('c', '0123456789', { IfNoneMatch: '*' });
  expect(await codeOf(put('c', 'x', { IfNoneMatch: '*' }))).toBe('PreconditionFailed 412');
  expect(await codeOf(put('c', 'x', { IfMatch: '"other"' }))).toBe('PreconditionFailed 412');
  expect(await codeOf(put('new', 'x', { IfMatch: first.ETag }))).toBe('PreconditionFailed 412');
  await put('c', '9876543210', { IfMatch: first.ETag });
  expect(await codeOf(put('c', 'x', { IfMatch: first.ETag }))).toBe('PreconditionFailed 412');
  const range = (Range: string) => get('c', { Range });
  expect(await Promise.all(['bytes=0-0', 'bytes=2-4', 'bytes=7-', 'bytes=-2', 'bytes=5-99', 'bytes=1-2,4-5'].map(range))).toEqual(
    ['9', '765', '210', '10', '43210', '9876543210'],
  );
  const ranged = await s3.send(new GetObjectCommand({ Bucket: 'docs', Key: 'c', Range: 'bytes=2-4' }));
  expect([ranged.ContentRange, ranged.ContentLength]).toEqual(['bytes 2-4/10', 3]);
  await ranged.Body!.transformToString();
  expect(await codeOf(range('bytes=10-'))).toBe('InvalidRange 416');
  const asked = async (Range: string, more: Record<string, string> = {}, method = 'GET') => {
    const url = await getSignedUrl(
      signer,
      new (method === 'GET' ? GetObjectCommand : HeadObjectCommand)({ Bucket: 'docs', Key: 'c' }),
    );
    const reply = await fetch(url, { method, headers: { range: Range, ...more } });
    return [reply.status, reply.headers.get('content-range'), await reply.text().then((text) => text.replace(/<.*/s, ''))];
  };
  const { ETag: tag, LastModified: changed } = await s3.send(new HeadObjectCommand({ Bucket: 'docs', Key: 'c' }));
  const whole = [200, null, '9876543210'];
  for (const [said, ...told] of [
    ['bytes=0-', 206, 'bytes 0-9/10', '9876543210'],
    ['bytes=0-9', 206, 'bytes 0-9/10', '9876543210'],
    ['bytes=0-99', 206, 'bytes 0-9/10', '9876543210'],
    ['bytes=-99', 206, 'bytes 0-9/10', '9876543210'],
    ['bytes=9-9', 206, 'bytes 9-9/10', '0'],
    ['bytes=-1', 206, 'bytes 9-9/10', '0'],
    ['BYTES=8-', 206, 'bytes 8-9/10', '10'],
    ['bytes=-0', 416, 'bytes */10', ''],
    ['bytes=10-', 416, 'bytes */10', ''],
    ['bytes=0-1,3-4', ...whole],
    ['bytes=5-2', ...whole],
    ['lines=0-1', ...whole],
    ['bytes=', ...whole],
  ] as const)
    expect(
      (await asked(said)).map((each, i) => (i === 2 && told[0] === 416 ? '' : each)),
      said,
    ).toEqual(told);
  expect(await asked('bytes=0-', {}, 'HEAD')).toEqual([206, 'bytes 0-9/10', '']);
  expect((await asked('bytes=0-1', { 'if-range': tag! }))[0]).toBe(206);
  expect((await asked('bytes=0-1', { 'if-range': changed!.toUTCString() }))[0]).toBe(206);
  for (const stale of ['"other"', `W/${tag}`, new Date(0).toUTCString()])
    expect(await asked('bytes=0-1', { 'if-range': stale })).toEqual(whole);
  await put('empty', '');
  expect(await codeOf(get('empty', { Range: 'bytes=0-' }))).toBe('InvalidRange 416');
  const { ETag, LastModified } = await s3.send(new HeadObjectCommand({ Bucket: 'docs', Key: 'c' }));
  expect(await codeOf(get('c', { IfNoneMatch: ETag }))).toContain('304');
  expect(await codeOf(get('c', { IfMatch: '"other"' }))).toBe('PreconditionFailed 412');
  expect(await codeOf(get('c', { IfModifiedSince: LastModified }))).toContain('304');
  expect(await codeOf(get('c', { IfUnmodifiedSince: new Date(0) }))).toBe('PreconditionFailed 412');
  expect(await get('c', { IfMatch: ETag, IfUnmodifiedSince: new Date(0) })).toBe('9876543210');
  expect(await codeOf(s3.send(new DeleteObjectCommand({ Bucket: 'docs', Key: 'c', IfMatch: '"other"' })))).toBe(
    'PreconditionFailed 412',
  );
});

test('copies keep or replace what is said of an object', async () => {
  await put('from +ü', Buffer.from([0, 255, 1]), { Metadata: { a: '1' }, ContentType: 'image/x' });
  const copy = (more: object) =>
    s3.send(new CopyObjectCommand({ Bucket: 'docs', Key: 'to', CopySource: `docs/${encodeURIComponent('from +ü')}`, ...more }));
  const { CopyObjectResult } = await copy({});
  expect(CopyObjectResult!.ETag).toBe(`"${sha256(Buffer.from([0, 255, 1]))}"`);
  const head = () => s3.send(new HeadObjectCommand({ Bucket: 'docs', Key: 'to' }));
  expect(await head()).toMatchObject({ Metadata: { a: '1' }, ContentType: 'image/x', ContentLength: 3 });
  await copy({ MetadataDirective: 'REPLACE', Metadata: { b: 'grün' } });
  expect((await head()).Metadata).toEqual({ b: '=?UTF-8?B?Z3LDvG4=?=' });
  expect(await codeOf(copy({ CopySource: 'docs/nothing' }))).toBe('NoSuchKey 404');
  expect(await codeOf(copy({ Key: 'from +ü' }))).toBe('InvalidRequest 400');
  expect(await codeOf(copy({ CopySourceIfMatch: '"other"' }))).toBe('PreconditionFailed 412');
});

test('organisations have buckets and objects of their own', async () => {
  const [eu, acme, us] = ['acme/eu', 'acme', 'acme/us'].map((path) => forPath(world, path)) as [S3Client, S3Client, S3Client];
  await eu.send(new CreateBucketCommand({ Bucket: 'own' }));
  await eu.send(new PutObjectCommand({ Bucket: 'own', Key: 'k', Body: 'of eu' }));
  const read = async (client: S3Client): Promise<string> =>
    codeOf(client.send(new GetObjectCommand({ Bucket: 'own', Key: 'k' })).then(({ Body }) => Body!.transformToString()));
  expect([await read(eu), await read(acme), await read(us), await read(s3)]).toEqual([
    'answered',
    'answered',
    'NoSuchBucket 404',
    'NoSuchBucket 404',
  ]);
  // What lies below is read, and written by nobody above it.
  expect(await codeOf(acme.send(new PutObjectCommand({ Bucket: 'own', Key: 'k', Body: 'x' })))).toBe('NoSuchBucket 404');
  await acme.send(new CreateBucketCommand({ Bucket: 'own' }));
  await acme.send(new PutObjectCommand({ Bucket: 'own', Key: 'k', Body: 'of acme' }));
  const { Body } = await acme.send(new GetObjectCommand({ Bucket: 'own', Key: 'k' }));
  expect(await Body!.transformToString()).toBe('of acme');
  const { Contents } = await acme.send(new ListObjectsV2Command({ Bucket: 'own' }));
  expect(Contents!.map(({ Key, Size }) => [Key, Size])).toEqual([['k', 7]]);
  await acme.send(new DeleteObjectCommand({ Bucket: 'own', Key: 'k' }));
  await acme.send(new DeleteBucketCommand({ Bucket: 'own' }));
  expect(await read(eu)).toBe('answered');
  for (const client of [eu, acme, us]) client.destroy();
});

test('branches and instants are stated in headers', async () => {
  expect((await world.call('POST', '/v1/namespaces/draft/branch', { branch_from: 'main' })).status).toBe(201);
  const draft = clientOf(world, {}, { 'x-service-branch': 'draft' });
  await put('d', 'before');
  const instant = /"as_of_system":(\d+)/.exec((await world.query('SELECT 1 FROM ObjectStoreObject')).text)![1]!;
  await put('d', 'after');
  expect(await codeOf(draft.send(new GetObjectCommand({ Bucket: 'docs', Key: 'd' })))).toBe('NoSuchKey 404');
  await draft.send(new PutObjectCommand({ Bucket: 'docs', Key: 'd', Body: 'on the draft' }));
  expect(await get('d', {}, draft)).toBe('on the draft');
  expect(await get('d')).toBe('after');
  for (const header of ['x-service-as-of', 'x-service-as-of-system']) {
    const past = clientOf(world, {}, { [header]: instant });
    const was = await get('d', {}, past).catch((error: Error) => error.name);
    // What was true then, as it is believed now, is nothing: an object that is put again was never the one before.
    expect(was).toBe(header === 'x-service-as-of' ? 'NoSuchKey' : 'before');
    expect(await codeOf(past.send(new PutObjectCommand({ Bucket: 'docs', Key: 'd', Body: 'x' })))).toBe('InvalidArgument 400');
    past.destroy();
  }
  draft.destroy();
});

test('the bucket types shows rows of any type and takes none', async () => {
  await world.call('POST', '/types', { name: 'Item', properties: { id: 'string', n: 'integer', j: 'json' }, primary_key: 'id' });
  await world.call('POST', '/ingest?object_type=Item', '{"id":"a/b ü","n":1,"j":{"x":[9007199254740993]}}');
  const list = async (more: object) => {
    const page = await s3.send(new ListObjectsV2Command({ Bucket: 'types', ...more }));
    return [...(page.Contents ?? []).map(({ Key }) => Key), ...(page.CommonPrefixes ?? []).map(({ Prefix }) => Prefix)];
  };
  expect(await list({ Prefix: 'Item/' })).toEqual([`Item/${encodeURIComponent('a/b ü')}.json`]);
  expect(await list({ Delimiter: '/' })).toContain('Item/');
  const { Body, ContentType } = await s3.send(
    new GetObjectCommand({ Bucket: 'types', Key: `Item/${encodeURIComponent('a/b ü')}.json` }),
  );
  expect(ContentType).toBe('application/json');
  expect(await Body!.transformToString()).toMatch(/^\{"_pk":"a\/b ü".*"n":1.*"j":\{"x":\[9007199254740993\]\}/);
  const at = { Bucket: 'types', Key: 'Item/x.json' };
  expect(await codeOf(s3.send(new GetObjectCommand(at)))).toBe('NoSuchKey 404');
  expect(await codeOf(s3.send(new PutObjectCommand({ ...at, Body: '{}' })))).toBe('AccessDenied 403');
  expect(await codeOf(s3.send(new DeleteObjectCommand(at)))).toBe('AccessDenied 403');
  expect(await codeOf(s3.send(new GetObjectCommand({ ...at, Key: 'SigintIntercept/x.json' })))).toBe('AccessDenied 403');
});

test('an upload in parts becomes one object', async () => {
  const at = { Bucket: 'docs', Key: 'parts' };
  const begin = () => s3.send(new CreateMultipartUploadCommand({ ...at, ContentType: 'video/x', Metadata: { m: '1' } }));
  const { UploadId } = await begin();
  const upload = { ...at, UploadId };
  const pieces = [megabytes(5, 1), megabytes(5, 2), Buffer.from('the end')];
  const tags: string[] = [];
  for (const [i, Body] of pieces.entries()) {
    const { ETag } = await s3.send(new UploadPartCommand({ ...upload, PartNumber: i + 1, Body }));
    expect(ETag).toBe(`"${sha256(Body)}"`);
    tags.push(ETag!);
  }
  const { Parts } = await s3.send(new ListPartsCommand(upload));
  expect(Parts!.map(({ PartNumber, Size, ETag }) => [PartNumber, Size, ETag])).toEqual(
    pieces.map((piece, i) => [i + 1, piece.length, tags[i]]),
  );
  const complete = (numbers: readonly number[], tagOf = (n: number) => tags[n - 1]) =>
    s3.send(
      new CompleteMultipartUploadCommand({
        ...upload,
        MultipartUpload: { Parts: numbers.map((PartNumber) => ({ PartNumber, ETag: tagOf(PartNumber) })) },
      }),
    );
  expect(await codeOf(complete([2, 1]))).toBe('InvalidPartOrder 400');
  expect(await codeOf(complete([1, 2], () => tags[0]))).toBe('InvalidPart 400');
  expect(await codeOf(complete([1, 4]))).toBe('InvalidPart 400');
  const other = forPath(world, 'acme/eu');
  expect(await codeOf(other.send(new ListPartsCommand(upload)))).toBe('NoSuchUpload 404');
  other.destroy();
  const whole = Buffer.concat(pieces);
  const { ETag } = await complete([1, 2, 3]);
  expect(ETag).toBe(`"${sha256(whole)}"`);
  const { Body, Metadata, ContentType } = await s3.send(new GetObjectCommand(at));
  expect([Metadata, ContentType]).toEqual([{ m: '1' }, 'video/x']);
  expect(sha256(await Body!.transformToByteArray())).toBe(sha256(whole));
  // A client that missed the answer asks again, at once too, and is told the same.
  const again = await Promise.all([complete([1, 2, 3]), complete([1, 2, 3])]);
  expect(again.map((each) => each.ETag)).toEqual([ETag, ETag]);
  expect(await codeOf(complete([1, 2]))).toBe('InvalidPart 400');
  const second = await begin();
  const aborted = { ...at, UploadId: second.UploadId };
  await s3.send(new UploadPartCommand({ ...aborted, PartNumber: 1, Body: 'x' }));
  await s3.send(new AbortMultipartUploadCommand(aborted));
  expect(await codeOf(s3.send(new UploadPartCommand({ ...aborted, PartNumber: 2, Body: 'x' })))).toBe('NoSuchUpload 404');
  expect(await disk.list(`${world.service.settings.SERVICE_DATA_DIR}/blobs/incoming`)).toEqual([]);
});

test('bodies of a stream come in chunks with a checksum behind them', async () => {
  for (const ChecksumAlgorithm of ['CRC32', 'CRC32C', 'CRC64NVME', 'SHA1', 'SHA256'] as const) {
    const sent = await put('streamed', Readable.from([Buffer.from('abc'), Buffer.from('def')]) as unknown as Uint8Array, {
      ContentLength: 6,
      ChecksumAlgorithm,
    });
    expect(Object.keys(sent)).toContain(`Checksum${ChecksumAlgorithm}`);
    expect(await get('streamed')).toBe('abcdef');
  }
  const wrong = { ChecksumCRC32: Buffer.alloc(4).toString('base64') };
  expect(await codeOf(put('streamed', 'wrong', wrong))).toBe('BadDigest 400');
  expect(await codeOf(put('streamed', 'wrong', { ContentMD5: Buffer.alloc(16).toString('base64') }))).toBe('BadDigest 400');
  const { ChecksumSHA256 } = await s3.send(new GetObjectCommand({ Bucket: 'docs', Key: 'streamed', ChecksumMode: 'ENABLED' }));
  expect(ChecksumSHA256).toBe(Buffer.from(sha256('abcdef'), 'hex').toString('base64'));
});

/** Of `123456789`, which is what checks of the algorithms are published for. */
const published = {
  CRC32: Buffer.from('cbf43926', 'hex').toString('base64'),
  CRC32C: Buffer.from('e3069283', 'hex').toString('base64'),
  CRC64NVME: Buffer.from('ae8b14860a799888', 'hex').toString('base64'),
  SHA1: createHash('sha1').update('123456789').digest('base64'),
  SHA256: createHash('sha256').update('123456789').digest('base64'),
} as const;

test('the checksum that was put is verified, and told by whoever asks for it', async () => {
  const told = async (Key: string): Promise<object> => {
    const { Body, ...found } = await s3.send(new GetObjectCommand({ Bucket: 'docs', Key, ChecksumMode: 'ENABLED' }));
    await Body!.transformToString();
    const head = await s3.send(new HeadObjectCommand({ Bucket: 'docs', Key, ChecksumMode: 'ENABLED' }));
    const of = (reply: object): object =>
      Object.fromEntries(Object.entries(reply).filter(([name]) => name.startsWith('Checksum')));
    expect(of(head)).toEqual(of(found));
    return of(found);
  };
  for (const [name, value] of Object.entries(published)) {
    const sent = await put('summed', '123456789', { [`Checksum${name}`]: value });
    expect(sent).toMatchObject({ [`Checksum${name}`]: value, ChecksumType: 'FULL_OBJECT' });
    expect(await told('summed')).toEqual({ [`Checksum${name}`]: value, ChecksumType: 'FULL_OBJECT' });
    await s3.send(new CopyObjectCommand({ Bucket: 'docs', Key: 'summed too', CopySource: 'docs/summed' }));
    expect(await told('summed too')).toEqual(await told('summed'));
    expect(await codeOf(put('summed', '12345678', { [`Checksum${name}`]: value }))).toBe('BadDigest 400');
    expect(await codeOf(put('summed', '123456789', { [`Checksum${name}`]: 'AAAA' }))).toBe('InvalidRequest 400');
    const stream = Readable.from([Buffer.from('12345'), Buffer.from('6789')]) as unknown as Uint8Array;
    await put('behind', stream, { ContentLength: 9, ChecksumAlgorithm: name });
    expect(await told('behind')).toEqual({ [`Checksum${name}`]: value, ChecksumType: 'FULL_OBJECT' });
  }
  // The object stands as it was put last, and who does not ask is told nothing.
  const plain = await fetch(await getSignedUrl(signer, new HeadObjectCommand({ Bucket: 'docs', Key: 'summed' })), {
    method: 'HEAD',
  });
  expect([...plain.headers.keys()].filter((name) => name.includes('checksum'))).toEqual([]);
  const { Body, ...ranged } = await s3.send(
    new GetObjectCommand({ Bucket: 'docs', Key: 'summed', Range: 'bytes=1-2', ChecksumMode: 'ENABLED' }),
  );
  expect([await Body!.transformToString(), ranged.ChecksumSHA256]).toEqual(['23', undefined]);
  const two = { ChecksumCRC32: published.CRC32, ChecksumSHA1: published.SHA1 };
  expect(await codeOf(put('summed', '123456789', two))).toBe('InvalidRequest 400');
  const named = async (headers: Record<string, string>): Promise<string> => {
    const reply = await fetch(`${origin(bearers)}/docs/summed`, { method: 'PUT', body: 'x', headers: { ...bearer, ...headers } });
    return `${/<Code>(.*)<\/Code>/.exec(await reply.text())?.[1]} ${reply.status}`;
  };
  expect(await named({ 'x-amz-sdk-checksum-algorithm': 'CRC32' })).toBe('InvalidRequest 400');
  expect(await named({ 'x-amz-sdk-checksum-algorithm': 'MD4' })).toBe('InvalidRequest 400');
  expect(await named({ 'x-amz-trailer': 'x-amz-checksum-md4' })).toBe('InvalidRequest 400');
});

test('checksums of uploads in parts are composite, or of the whole object', async () => {
  const pieces = [megabytes(5, 6), Buffer.from('123456789')];
  for (const [ChecksumAlgorithm, ChecksumType] of [
    ['CRC32', undefined],
    ['SHA256', 'COMPOSITE'],
    ['CRC32C', 'FULL_OBJECT'],
    ['CRC64NVME', undefined],
  ] as const) {
    const at = { Bucket: 'docs', Key: 'of parts' };
    const begun = await s3.send(new CreateMultipartUploadCommand({ ...at, ChecksumAlgorithm, ChecksumType }));
    const type = ChecksumType ?? (ChecksumAlgorithm === 'CRC64NVME' ? 'FULL_OBJECT' : 'COMPOSITE');
    expect([begun.ChecksumAlgorithm, begun.ChecksumType]).toEqual([ChecksumAlgorithm, type]);
    const name = `Checksum${ChecksumAlgorithm}` as const;
    const parts: { PartNumber: number; ETag: string | undefined }[] = [];
    for (const [i, Body] of pieces.entries()) {
      const sent = { ...at, UploadId: begun.UploadId, PartNumber: i + 1, Body };
      const { ETag, [name]: value } = await s3.send(new UploadPartCommand(i === 0 ? sent : { ...sent, ChecksumAlgorithm }));
      parts.push({ PartNumber: i + 1, ETag, ...(value && { [name]: value }) });
    }
    const listed = await s3.send(new ListPartsCommand({ ...at, UploadId: begun.UploadId }));
    expect(listed.Parts![1]![name]).toBe(published[ChecksumAlgorithm]);
    const own = checksumOf(ChecksumAlgorithm.toLowerCase() as 'crc32');
    if (type === 'FULL_OBJECT') for (const piece of pieces) own.update(piece);
    else for (const { [name]: value } of listed.Parts!) own.update(Buffer.from(value!, 'base64'));
    const expected = type === 'FULL_OBJECT' ? own.value() : `${own.value()}-2`;
    const complete = { ...at, UploadId: begun.UploadId, MultipartUpload: { Parts: parts } };
    const wrong = {
      ...complete,
      [name]: type === 'FULL_OBJECT' ? published[ChecksumAlgorithm] : `${published[ChecksumAlgorithm]}-2`,
    };
    expect(await codeOf(s3.send(new CompleteMultipartUploadCommand(wrong)))).toBe('BadDigest 400');
    const done = await s3.send(new CompleteMultipartUploadCommand({ ...complete, [name]: expected }));
    expect([done[name], done.ChecksumType]).toEqual([expected, type]);
    const head = await s3.send(new HeadObjectCommand({ ...at, ChecksumMode: 'ENABLED' }));
    expect([head[name], head.ChecksumType]).toEqual([expected, type]);
  }
  for (const wrong of [
    { ChecksumAlgorithm: 'CRC64NVME', ChecksumType: 'COMPOSITE' },
    { ChecksumAlgorithm: 'SHA1', ChecksumType: 'FULL_OBJECT' },
    { ChecksumType: 'FULL_OBJECT' },
  ] as const)
    expect(await codeOf(s3.send(new CreateMultipartUploadCommand({ Bucket: 'docs', Key: 'k', ...wrong })))).toBe(
      'InvalidRequest 400',
    );
});

test('uploads are listed, parts are copied, and parts that no object can have are refused before they come', async () => {
  const Bucket = 'uploads';
  await s3.send(new CreateBucketCommand({ Bucket }));
  const begin = async (Key: string) => (await s3.send(new CreateMultipartUploadCommand({ Bucket, Key }))).UploadId!;
  const ids = [await begin('a'), await begin('b/1'), await begin('b/2'), await begin('c'), await begin('c')];
  const list = async (more: object = {}) => {
    const page = await s3.send(new ListMultipartUploadsCommand({ Bucket, ...more }));
    return {
      page,
      keys: (page.Uploads ?? []).map(({ Key }) => Key),
      found: (page.Uploads ?? []).map(({ UploadId }) => UploadId),
    };
  };
  expect((await list()).found).toEqual(ids);
  expect((await list({ Prefix: 'b/' })).keys).toEqual(['b/1', 'b/2']);
  const grouped = await list({ Delimiter: '/' });
  expect([grouped.keys, grouped.page.CommonPrefixes]).toEqual([['a', 'c', 'c'], [{ Prefix: 'b/' }]]);
  const paged: (string | undefined)[] = [];
  for (let more: object | null = {}; more !== null; ) {
    const { page, found } = await list({ MaxUploads: 2, ...more });
    paged.push(...found);
    more = page.IsTruncated === true ? { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker } : null;
  }
  expect(paged).toEqual(ids);
  const other = forPath(world, 'acme/eu');
  expect(await codeOf(other.send(new ListMultipartUploadsCommand({ Bucket })))).toBe('NoSuchBucket 404');
  other.destroy();

  const source = megabytes(6, 8);
  await put('source of parts', source);
  const at = { Bucket, Key: 'a', UploadId: ids[0] };
  const copy = (PartNumber: number, CopySourceRange?: string, CopySource = 'docs/source of parts') =>
    s3.send(new UploadPartCopyCommand({ ...at, PartNumber, CopySource, CopySourceRange }));
  const copied = [await copy(1, 'bytes=0-5242879'), await copy(2, 'bytes=5242880-6291455')];
  const Parts = copied.map(({ CopyPartResult }, i) => ({ PartNumber: i + 1, ETag: CopyPartResult!.ETag }));
  expect(Parts[0]!.ETag).toBe(`"${sha256(source.subarray(0, 5 << 20))}"`);
  for (const wrong of ['bytes=5-6291456', 'bytes=2-1', 'bytes=1-', '1-2'])
    expect(await codeOf(copy(3, wrong))).toBe('InvalidArgument 400');
  expect(await codeOf(copy(3, undefined, 'docs/nothing'))).toBe('NoSuchKey 404');
  const { ETag } = await s3.send(new CompleteMultipartUploadCommand({ ...at, MultipartUpload: { Parts } }));
  expect(ETag).toBe(`"${sha256(source)}"`);

  const tagging = await s3.send(new GetObjectTaggingCommand({ Bucket, Key: 'a' }));
  expect(tagging.TagSet).toEqual([]);
  expect(await codeOf(s3.send(new GetObjectTaggingCommand({ Bucket, Key: 'nothing' })))).toBe('NoSuchKey 404');
  expect(await codeOf(s3.send(new GetBucketTaggingCommand({ Bucket })))).toBe('NoSuchTagSet 404');
  const tagged = { Bucket, Key: 'a', Tagging: { TagSet: [{ Key: 'k', Value: 'v' }] } };
  expect(await codeOf(s3.send(new PutObjectTaggingCommand(tagged)))).toBe('NotImplemented 501');

  // 3 GiB are on their way: as many again make an object of more than 5.
  const url = await getSignedUrl(signer, new UploadPartCommand({ Bucket, Key: 'c', UploadId: ids[3], PartNumber: 1 }));
  const part = (): Promise<string> => {
    const { pathname, search, host } = new URL(url);
    const line = `PUT ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\ncontent-length: ${3 * 2 ** 30}\r\nexpect: 100-continue\r\n\r\n`;
    const socket = connect(objectPort(world), '127.0.0.1');
    waiting.push(socket);
    socket.on('error', () => undefined);
    socket.write(line);
    return new Promise((resolve) => socket.once('data', (bytes: Buffer) => resolve(bytes.toString())));
  };
  const waiting: Socket[] = [];
  expect(await part()).toContain('100 Continue');
  expect(await part()).toMatch(/^HTTP\/1\.1 413 [^]*<Code>EntityTooLarge/);
  for (const socket of waiting) socket.destroy();
  await vi.waitFor(async () => expect(await part()).toContain('100 Continue'));
  for (const socket of waiting) socket.destroy();
  for (const [i, Key] of ['b/1', 'b/2', 'c', 'c'].entries())
    await s3.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId: ids[i + 1] }));
  expect((await list()).keys).toEqual([]);
});

test('nothing is asked of a strict store for a purpose that is not registered', async () => {
  const strict = await StoreWorld.open({
    SERVICE_BEARER_TOKEN: objectToken,
    SERVICE_OBJECT_SECRET_KEY: objectSecret,
    SERVICE_PURPOSE_MODE: 'strict',
    SERVICE_PURPOSES: 'analytics',
  });
  const stating = clientOf(strict, {}, { 'x-service-purpose': 'analytics' });
  const wrong = clientOf(strict, {}, { 'x-service-purpose': 'curiosity' });
  const at = { Bucket: 'docs', Key: 'k' };
  await stating.send(new CreateBucketCommand({ Bucket: 'docs' }));
  await stating.send(new PutObjectCommand({ ...at, Body: 'v' }));
  const { UploadId } = await stating.send(new CreateMultipartUploadCommand(at));
  const { ETag } = await stating.send(new UploadPartCommand({ ...at, UploadId, PartNumber: 1, Body: 'v' }));
  const MultipartUpload = { Parts: [{ PartNumber: 1, ETag }] };
  const everything = [
    new ListBucketsCommand({}),
    new CreateBucketCommand({ Bucket: 'other' }),
    new HeadBucketCommand({ Bucket: 'docs' }),
    new GetBucketLocationCommand({ Bucket: 'docs' }),
    new GetBucketVersioningCommand({ Bucket: 'docs' }),
    new DeleteBucketCommand({ Bucket: 'docs' }),
    new ListObjectsV2Command({ Bucket: 'docs' }),
    new ListObjectsV2Command({ Bucket: 'types' }),
    new GetObjectCommand(at),
    new HeadObjectCommand(at),
    new GetObjectTaggingCommand(at),
    new PutObjectCommand({ ...at, Body: 'w' }),
    new CopyObjectCommand({ ...at, Key: 'l', CopySource: 'docs/k' }),
    new DeleteObjectCommand(at),
    new DeleteObjectsCommand({ Bucket: 'docs', Delete: { Objects: [{ Key: 'k' }] } }),
    new CreateMultipartUploadCommand(at),
    new ListMultipartUploadsCommand({ Bucket: 'docs' }),
    new UploadPartCommand({ ...at, UploadId, PartNumber: 2, Body: 'v' }),
    new UploadPartCopyCommand({ ...at, UploadId, PartNumber: 2, CopySource: 'docs/k' }),
    new ListPartsCommand({ ...at, UploadId }),
    new CompleteMultipartUploadCommand({ ...at, UploadId, MultipartUpload }),
    new AbortMultipartUploadCommand({ ...at, UploadId }),
  ];
  for (const command of everything)
    expect(await codeOf(wrong.send(command as GetObjectCommand)), command.constructor.name).toMatch(/ 403$/);
  expect((await stating.send(new ListPartsCommand({ ...at, UploadId }))).Parts).toHaveLength(1);
  await stating.send(new CompleteMultipartUploadCommand({ ...at, UploadId, MultipartUpload }));
  // Asked again it is told again, and not for another purpose.
  expect(await codeOf(wrong.send(new CompleteMultipartUploadCommand({ ...at, UploadId, MultipartUpload })))).toContain('403');
  for (const client of [stating, wrong]) client.destroy();
  await strict.close();
});

test('a signed URL names the key id, never the token, and nothing of it can be changed', async () => {
  await put('signed', 'by url');
  const asked = new GetObjectCommand({ Bucket: 'docs', Key: 'signed' });
  const url = await getSignedUrl(signer, asked, { expiresIn: 60 });
  const read = async (at: string, init: RequestInit = {}): Promise<[number, string]> => {
    const reply = await fetch(at, init);
    return [reply.status, /<Code>(.*)<\/Code>/.exec(await reply.clone().text())?.[1] ?? (await reply.text())];
  };
  expect(await read(url)).toEqual([200, 'by url']);
  const mismatch = [403, 'SignatureDoesNotMatch'];
  const malformed = [400, 'AuthorizationHeaderMalformed'];
  const { searchParams } = new URL(url);
  for (const [name, value] of searchParams) {
    const without = new URL(url);
    without.searchParams.delete(name);
    const [status] = await read(String(without));
    expect(status, `without ${name}`).toBeGreaterThanOrEqual(400);
    const other = new URL(url);
    other.searchParams.set(
      name,
      value.replace(/.$/, (last) => (last === '1' ? '2' : '1')),
    );
    expect((await read(String(other)))[0], `${name} changed`).toBeGreaterThanOrEqual(400);
    expect((await read(`${url}&${name}=${encodeURIComponent(value)}`))[0], `${name} twice`).toBe(400);
  }
  expect(await read(`${url}&x-amz-expires=604800`)).toEqual(mismatch);
  expect(await read(`${url}&acl`)).toEqual(mismatch);
  expect(await read(url, { headers: { authorization: `Bearer ${objectToken}` } })).toEqual(malformed);
  expect(await read(url, { headers: { 'x-service-as-of-system': '1' } })).toEqual([403, 'AccessDenied']);
  expect(await read(url.replace('127.0.0.1', 'localhost'))).toEqual(mismatch);
  expect((await read(url.replace('/docs/signed', '/docs/../docs/other')))[0]).toBe(403);
  expect(await read(url, { method: 'HEAD' })).toEqual([403, '']);
  expect(await read(url.replace('signed?', 'other?'))).toEqual(mismatch);
  expect(await read(`${url}&versionId=1`)).toEqual(mismatch);
  expect(await read(url, { headers: { 'x-organization-id': 'acme' } })).toEqual([403, 'AccessDenied']);
  expect(await read(url, { method: 'DELETE' })).toEqual([403, 'SignatureDoesNotMatch']);
  const late = await getSignedUrl(signer, asked, { expiresIn: 1, signingDate: new Date(Date.now() - 3_000) });
  expect(await read(late)).toEqual([403, 'AccessDenied']);
  expect(await read(await getSignedUrl(s3, asked))).toEqual([403, 'AccessDenied']);
  const upload = await getSignedUrl(signer, new PutObjectCommand({ Bucket: 'docs', Key: 'signed' }));
  expect((await fetch(upload, { method: 'PUT', body: 'put by url' })).status).toBe(200);
  expect(await get('signed')).toBe('put by url');
});

test('a registry token signs with a secret of its own, and nobody else’s secret signs for it', async () => {
  const mint = async (principal: string, more: object = {}) => {
    const { json } = await world.admin('POST', '/admin/tokens', { principal, tenant_id: principal, ...more });
    return { token: json['token'] as string, id: json['id'] as string };
  };
  const [acme, globex, brief] = [await mint('acme'), await mint('globex'), await mint('acme', { expires_in_secs: 60 })];
  const pairs = [acme, globex].map(({ token }) => keyPairOf(token)!);
  expect(pairs.map(({ accessKey }) => accessKey)).toEqual([`ann_${acme.id}`, `ann_${globex.id}`]);
  const signing = (accessKeyId: string, secretAccessKey: string, of = world, more: object = {}) =>
    clientOf(of, { credentials: { accessKeyId, secretAccessKey }, ...more });
  const [own, theirs] = pairs.map(({ accessKey, secretKey }) => signing(accessKey, secretKey)) as [S3Client, S3Client];
  await theirs.send(new CreateBucketCommand({ Bucket: 'safe' }));
  const at = { Bucket: 'safe', Key: 'deed' };
  await theirs.send(new PutObjectCommand({ ...at, Body: Readable.from(['globex', ' owns it']), ContentLength: 14 }));
  const read = async (client: S3Client): Promise<string> =>
    codeOf(
      client
        .send(new GetObjectCommand(at))
        .then(async ({ Body }) => expect(await Body!.transformToString()).toBe('globex owns it')),
    );
  expect(await read(theirs)).toBe('answered');
  expect(await read(own)).toBe('NoSuchBucket 404');

  const keyId = keyIdOf(objectToken);
  const secrets = [objectSecret, pairs[0]!.secretKey, acme.token];
  const forged = async (sign: (accessKeyId: string, secretAccessKey: string) => Promise<string>): Promise<string[]> => {
    const codes: string[] = [];
    for (const secret of secrets)
      for (const key of [pairs[1]!.accessKey, keyId, globex.token]) codes.push(await sign(key, secret));
    return [...new Set(codes)].sort();
  };
  const refused = ['AccessDenied 403', 'InvalidAccessKeyId 403', 'SignatureDoesNotMatch 403'];
  const asRequest = await forged(async (key, secret) => {
    const client = signing(key, secret);
    const codes = [
      await read(client),
      await codeOf(client.send(new DeleteObjectCommand(at))),
      await codeOf(client.send(new PutObjectCommand({ ...at, Body: 'mine' }))),
    ];
    client.destroy();
    expect(new Set(codes).size).toBe(1);
    return codes[0]!;
  });
  expect(refused).toEqual(expect.arrayContaining(asRequest));
  // With the shared secret its key id signs URLs, and they open what the shared credential may see.
  secrets.shift();
  const asUrl = await forged(async (key, secret) => {
    const reply = await fetch(await getSignedUrl(signing(key, secret), new GetObjectCommand(at)));
    return `${/<Code>(.*)<\/Code>/.exec(await reply.text())?.[1]} ${reply.status}`;
  });
  expect(refused).toEqual(expect.arrayContaining(asUrl));
  expect(await read(theirs)).toBe('answered');

  // A URL that a token signed is its own, also at a door that has no shared secret.
  const url = await getSignedUrl(theirs, new GetObjectCommand(at));
  expect(url).not.toContain(globex.token);
  expect(await (await fetch(url)).text()).toBe('globex owns it');
  const there = keyPairOf(bearers.token)!;
  const elsewhere = signing(there.accessKey, there.secretKey, bearers);
  expect((await fetch(await getSignedUrl(elsewhere, new ListBucketsCommand({})))).status).toBe(200);
  const guessed = signing(there.accessKey, 'anything', bearers);
  expect(await codeOf(guessed.send(new ListBucketsCommand({})))).toBe('SignatureDoesNotMatch 403');

  const pair = keyPairOf(brief.token)!;
  const short = signing(pair.accessKey, pair.secretKey);
  await short.send(new ListBucketsCommand({}));
  const made = await getSignedUrl(short, new ListBucketsCommand({}));
  expect((await world.admin('DELETE', `/admin/tokens/${brief.id}`)).status).toBeLessThan(300);
  expect(await codeOf(short.send(new ListBucketsCommand({})))).toBe('InvalidAccessKeyId 403');
  expect((await fetch(made)).status).toBe(403);
  for (const client of [own, theirs, elsewhere, guessed, short]) client.destroy();
});

test('who may not come in is told so, and what is not there is not implemented', async () => {
  const wrong = clientOf(world, { credentials: { accessKeyId: objectToken, secretAccessKey: 'another' } });
  expect(await codeOf(wrong.send(new ListBucketsCommand({})))).toBe('SignatureDoesNotMatch 403');
  const stranger = clientOf(world, { credentials: { accessKeyId: 'nobody', secretAccessKey: objectSecret } });
  expect(await codeOf(stranger.send(new ListBucketsCommand({})))).toBe('InvalidAccessKeyId 403');
  const skewed = clientOf(world, { systemClockOffset: 20 * 60_000 });
  expect(await codeOf(skewed.send(new ListBucketsCommand({})))).toBe('RequestTimeTooSkewed 403');
  const { token, call } = {
    token: world.token,
    call: (more: object) => s3.send(new ListObjectsV2Command({ Bucket: 'docs', ...more })),
  };
  const registered = clientOf(world, { credentials: { accessKeyId: token, secretAccessKey: keyPairOf(token)!.secretKey } });
  expect((await registered.send(new ListBucketsCommand({}))).Owner!.DisplayName).toBe('tester');
  const port = new URL(world.door.dataUrl);
  port.port = String(world.others.find(({ name }) => name === 'object')!.port);
  const plain = async (path: string, init: RequestInit = {}): Promise<string> => {
    const reply = await fetch(new URL(path, port), init);
    return `${/<Code>(.*)<\/Code>/.exec(await reply.text())?.[1]} ${reply.status}`;
  };
  expect(await plain('/docs/c')).toBe('AccessDenied 403');
  expect(await plain('/docs/c', { headers: { authorization: `Bearer ${objectToken}` } })).toBe('AccessDenied 403');
  expect(await plain('/docs/c', { headers: { authorization: 'AWS4-HMAC-SHA256 x' } })).toBe('AuthorizationHeaderMalformed 400');
  expect(await plain('/docs/%zz')).toBe('InvalidURI 400');
  expect(await codeOf(call({ ContinuationToken: '!' }))).toBe('InvalidArgument 400');
  const { GetBucketAclCommand } = await import('@aws-sdk/client-s3');
  expect(await codeOf(s3.send(new GetBucketAclCommand({ Bucket: 'docs' })))).toBe('NotImplemented 501');
  expect((await s3.send(new GetBucketVersioningCommand({ Bucket: 'docs' }))).Status).toBeUndefined();
  expect(await codeOf(put('k'.repeat(1_024), 'x'))).toBe('KeyTooLongError 400');
  for (const client of [wrong, stranger, skewed, registered]) client.destroy();
});

test('keys are what they are, in documents too', async () => {
  const Bucket = 'odd';
  await s3.send(new CreateBucketCommand({ Bucket }));
  const keys = [' a ', 'a\nb', '<&>"\'', '%41', 'a+b', './..//x/', '&amp;', '&#65;', 'é\u0301'];
  for (const Key of keys) await s3.send(new PutObjectCommand({ Bucket, Key, Body: Key }));
  for (const Key of keys) {
    const { Body } = await s3.send(new GetObjectCommand({ Bucket, Key }));
    expect(await Body!.transformToString()).toBe(Key);
  }
  const { Contents } = await s3.send(new ListObjectsV2Command({ Bucket, EncodingType: 'url' }));
  expect(Contents!.map(({ Key }) => decodeURIComponent(Key!)).sort()).toEqual([...keys].sort());
  const { Deleted } = await s3.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects: keys.map((Key) => ({ Key })) } }));
  expect(Deleted).toHaveLength(keys.length);
  expect((await s3.send(new ListObjectsV2Command({ Bucket }))).Contents).toBeUndefined();
  const bomb = '<!DOCTYPE a [<!ENTITY b "c">]><Delete><Object><Key>&b;</Key></Object></Delete>';
  for (const text of [bomb, '<Delete>', '<Other/>', '<Delete></Delete>', `${'<a>'.repeat(99)}${'</a>'.repeat(99)}`]) {
    const reply = await fetch(`${origin(bearers)}/docs?delete`, { method: 'POST', body: text, headers: bearer });
    expect([reply.status, await reply.text()]).toEqual([400, expect.stringContaining('<Code>MalformedXML</Code>')]);
  }
});

test('a document that lists too much is refused before it is parsed', async () => {
  const listed = (element: string, count: number): string => `<Delete>${element.repeat(count)}</Delete>`;
  for (const [text, told] of [
    [listed('<Object><Key>k</Key></Object>', 1_001), '1 to 1000 objects are named'],
    [listed('<Object x="1"><Key>k</Wrong></Object>', 1_001), '1 to 1000 objects are named'],
    [listed('<a/>', 9_000), 'too many elements'],
  ] as const) {
    const reply = await fetch(`${origin(bearers)}/docs?delete`, { method: 'POST', body: text, headers: bearer });
    expect([reply.status, await reply.text()]).toEqual([400, expect.stringContaining(told)]);
  }
});

test('without a secret a bearer is enough, signatures are not checked, and signed URLs are refused', async () => {
  const read = async (headers: Record<string, string>, path = '/docs/a'): Promise<string> => {
    const reply = await fetch(origin(bearers) + path, { headers });
    return `${reply.status} ${/<Code>(.*)<\/Code>/.exec(await reply.clone().text())?.[1] ?? (await reply.text())}`;
  };
  expect((await fetch(`${origin(bearers)}/docs/a`, { method: 'PUT', body: 'b', headers: bearer })).status).toBe(200);
  expect(await read(bearer)).toBe('200 b');
  expect(await read({ authorization: `Bearer ${bearers.token}` })).toBe('200 b');
  expect(await read({ authorization: 'Bearer wrong' })).toBe('403 InvalidAccessKeyId');
  expect(await read({})).toBe('403 AccessDenied');
  const unchecked = clientOf(bearers, { credentials: { accessKeyId: objectToken, secretAccessKey: 'anything' } });
  expect(await get('a', {}, unchecked)).toBe('b');
  const url = new URL(await getSignedUrl(unchecked, new GetObjectCommand({ Bucket: 'docs', Key: 'a' })));
  expect(await read({}, url.pathname + url.search)).toBe('403 AccessDenied');
  // What stands for the token is no secret: it opens nothing by itself.
  const byId = clientOf(bearers, { credentials: { accessKeyId: keyIdOf(objectToken), secretAccessKey: 'anything' } });
  expect(await codeOf(get('a', {}, byId))).toBe('InvalidAccessKeyId 403');
  for (const client of [unchecked, byId]) client.destroy();
});

test('a masked body is not read, nor copied', async () => {
  const scope = { 'x-organization-id': 'initech' };
  const initech = forPath(world, 'initech');
  await initech.send(new CreateBucketCommand({ Bucket: 'masked' }));
  for (const [Key, Body] of [
    ['small', 'secret'],
    ['large', megabytes(1, 12)],
  ] as const)
    await initech.send(new PutObjectCommand({ Bucket: 'masked', Key, Body }));
  const properties = { body: { type: 'string', masked: true } };
  const evolved = await world.call('POST', '/types/ObjectStoreObject/schema', { properties }, scope);
  expect(evolved.status, evolved.text).toBe(200);
  for (const Key of ['small', 'large']) {
    const at = { Bucket: 'masked', Key };
    expect(await codeOf(initech.send(new GetObjectCommand(at)))).toBe('AccessDenied 403');
    const copy = new CopyObjectCommand({ Bucket: 'masked', Key: 'copy', CopySource: `masked/${Key}` });
    expect(await codeOf(initech.send(copy))).toBe('AccessDenied 403');
  }
  const { Contents } = await initech.send(new ListObjectsV2Command({ Bucket: 'masked' }));
  expect(Contents!.map(({ Key, Size }) => [Key, Size])).toEqual([
    ['large', 1 << 20],
    ['small', 6],
  ]);
  initech.destroy();
});

test('every request leaves one access record, refused ones too', async () => {
  const count = async (): Promise<number> => (await world.admin('GET', '/admin/audit/count')).json['count'] as number;
  const records = async (run: () => Promise<unknown>): Promise<number> => {
    const before = await count();
    await run().catch(() => undefined);
    // One is of the count itself.
    return (await count()) - before - 1;
  };
  expect(await records(() => put('recorded', 'x'))).toBe(1);
  expect(await records(() => put('recorded', megabytes(2, 3)))).toBe(1);
  expect(await records(() => get('recorded'))).toBe(1);
  expect(await records(() => get('nothing'))).toBe(1);
  expect(await records(() => s3.send(new ListObjectsV2Command({ Bucket: 'docs', Delimiter: '/' })))).toBe(1);
  expect(await records(() => s3.send(new DeleteObjectCommand({ Bucket: 'docs', Key: 'recorded' })))).toBe(1);
  expect(await records(() => put('recorded', 'x', { ContentMD5: Buffer.alloc(16).toString('base64') }))).toBe(1);
  expect(await records(() => fetch(`${origin(world)}/docs/c`))).toBe(1);
});

test('what one connection sends ahead is answered in turn, however much it is', async () => {
  const request = `GET /docs/a HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${objectToken}\r\n\r\n`;
  const talk = (count: number): Promise<string> => sentAhead(objectPort(bearers), request, count);
  expect((await talk(50)).match(/\r\n\r\nb/g)).toHaveLength(50);
  expect((await talk(500)).match(/\r\n\r\nb/g)).toHaveLength(500);
  expect(await get('a', {}, clientOf(bearers))).toBe('b');
});

test('a listing of very many types goes on from page to page, and misses none', async () => {
  const scope = { 'x-organization-id': 'many' };
  const types = Array.from({ length: 230 }, (_, i) => ({ name: `Kind${i}`, properties: { id: 'string' }, primary_key: 'id' }));
  expect((await world.call('POST', '/ontology/migrate', { types }, scope)).status).toBe(200);
  for (const i of [0, 150, 229]) await world.call('POST', `/ingest?object_type=Kind${i}`, { id: `k${i}` }, scope);
  const many = forPath(world, 'many');
  const keys: string[] = [];
  let pages = 0;
  for (let ContinuationToken: string | undefined; ; pages++) {
    const page = await many.send(new ListObjectsV2Command({ Bucket: 'types', Prefix: 'Kind', ContinuationToken }));
    keys.push(...(page.Contents ?? []).map(({ Key }) => Key!));
    if (page.IsTruncated !== true) break;
    ContinuationToken = page.NextContinuationToken!;
  }
  expect([pages, keys]).toEqual([1, ['Kind0/k0.json', 'Kind150/k150.json', 'Kind229/k229.json']]);
  many.destroy();
});
