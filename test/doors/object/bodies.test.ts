/** Large bodies behind the object door: where they rest, what is missing, and when they go. */
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { connect } from 'node:net';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { systemClock, systemRandom } from '../../../src/clock.ts';
import { type Upload, OpenUploads } from '../../../src/doors/object/open-uploads.ts';
import { keyIdOf } from '../../../src/governance/authentication/sigv4.ts';
import type { Caller } from '../../../src/governance/caller.ts';
import { MissingBodies } from '../../../src/governance/erasure/missing-bodies.ts';
import { Blobs, listBlobs } from '../../../src/log/blobs/blobs.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { verifyDirectory } from '../../../src/log/proofs/verify.ts';
import { StoreWorld } from '../http/store-world.ts';
import {
  clientOf,
  codeOf,
  forPath,
  megabytes,
  objectPort,
  objectSecret,
  objectToken,
  objectWorld,
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
beforeAll(async () => {
  world = await objectWorld(disk);
  s3 = clientOf(world);
  signer = clientOf(world, { credentials: { accessKeyId: keyIdOf(objectToken), secretAccessKey: objectSecret } });
  await s3.send(new CreateBucketCommand({ Bucket: 'docs' }));
});
afterAll(async () => {
  s3.destroy();
  signer.destroy();
  await world.close();
});

const put = (key: string, body: string | Uint8Array, more: object = {}) => putInto(s3, key, body, more);
const get = (key: string, more: object = {}, client = s3): Promise<string> => textOf(client, key, more);

test('large bodies rest as sealed blobs, once in a tenant, and are read in parts', async () => {
  const large = megabytes(3);
  const { ETag } = await put('large', large, { ContentType: 'application/x' });
  expect(ETag).toBe(`"${sha256(large)}"`);
  await put('again', large);
  await s3.send(new CopyObjectCommand({ Bucket: 'docs', Key: 'copied', CopySource: 'docs/large' }));
  const blobs = () => listBlobs(disk, world.service.settings.SERVICE_DATA_DIR);
  expect(await blobs()).toHaveLength(1);
  for (const key of ['large', 'again', 'copied']) {
    const { Body } = await s3.send(new GetObjectCommand({ Bucket: 'docs', Key: key }));
    expect(Buffer.compare(await Body!.transformToByteArray(), large)).toBe(0);
  }
  const { Body } = await s3.send(new GetObjectCommand({ Bucket: 'docs', Key: 'copied', Range: 'bytes=1048570-2097160' }));
  expect(Buffer.compare(await Body!.transformToByteArray(), large.subarray(1048570, 2097161))).toBe(0);
  const eu = forPath(world, 'acme/eu');
  await eu.send(new CreateBucketCommand({ Bucket: 'own' }));
  await eu.send(new PutObjectCommand({ Bucket: 'own', Key: 'large', Body: large }));
  expect(await blobs()).toHaveLength(2);
  // A reference that was copied to another row reads nothing there.
  const [row] = await world.rows("SELECT body FROM ObjectStoreObject AS OF CURRENT WHERE key = 'large'");
  const forged = { _pk: 'docs/forged', bucket: 'docs', key: 'forged', body: row!['body'], body_as: 'blob' };
  expect((await world.call('POST', '/ingest?object_type=ObjectStoreObject', forged)).json['accepted']).toBe(1);
  expect(await codeOf(get('forged'))).toBe('InvalidRequest 422');
  eu.destroy();
});

test('an fsck finds that a body is missing which a row names, and asks for none whose row was removed', async () => {
  const { settings } = world.service;
  const { keyring } = world.service.store;
  const { SERVICE_DATA_DIR: directory } = settings;
  const blobs = new Blobs({ disk, random: systemRandom, directory, keyring });
  const findings = async (): Promise<unknown[]> => {
    const bodies = new MissingBodies({ key: keyring.hmacKey, address: (name) => blobs.address(name) });
    await verifyDirectory({ disk, directory, keyring, onEntry: (entry) => bodies.note(entry) });
    return bodies.findings(disk, directory);
  };
  const before = new Set(await blobs.list());
  await put('lost', megabytes(1, 21));
  await put('lost-too', megabytes(1, 21));
  expect(await findings()).toEqual([]);
  const [address] = (await blobs.list()).filter((each) => !before.has(each));
  await disk.unlink(`${directory}/blobs/${address!.slice(0, 2)}/${address}`);
  const place = expect.stringContaining(address!);
  expect(await findings()).toEqual([{ place, leaf: expect.any(Number), what: 'is missing, and a row names it' }]);
  for (const key of ['lost', 'lost-too'])
    await world.call('DELETE', `/types/ObjectStoreObject/${encodeURIComponent(`docs/${key}`)}?hard=true`);
  expect(await findings()).toEqual([]);
});

test('what no row names any more leaves the disk: removed for good, or erased with its subject', async () => {
  const blobs = () => listBlobs(disk, world.service.settings.SERVICE_DATA_DIR);
  await world.service.upkeep.bodies.round();
  const before = await blobs();
  await put('removed', megabytes(1, 7));
  await put('kept', megabytes(1, 8));
  await put('kept', megabytes(1, 9));
  await world.service.upkeep.bodies.round();
  // What was superseded is readable by its version still.
  expect(await blobs()).toHaveLength(before.length + 3);
  const { status } = await world.call('DELETE', `/types/ObjectStoreObject/${encodeURIComponent('docs/removed')}?hard=true`);
  expect(status).toBe(200);
  await world.service.upkeep.bodies.round();
  expect(await blobs()).toHaveLength(before.length + 2);

  const owner = { owner: { type: 'string', subject: true } };
  const scope = { 'x-organization-id': 'globex' };
  const evolved = await world.call('POST', '/types/ObjectStoreObject/schema', { properties: owner }, scope);
  expect(evolved.status, evolved.text).toBe(200);
  const globex = forPath(world, 'globex');
  await globex.send(new CreateBucketCommand({ Bucket: 'files' }));
  const kept = new PutObjectCommand({ Bucket: 'files', Key: 'a', Body: megabytes(1, 10), Metadata: { owner: 'Ann' } });
  await globex.send(kept);
  await globex.send(new PutObjectCommand({ Bucket: 'files', Key: 'b', Body: 'small', Metadata: { owner: 'Ann' } }));
  await globex.send(new PutObjectCommand({ Bucket: 'files', Key: 'c', Body: megabytes(1, 11), Metadata: { owner: 'Bob' } }));
  expect(await blobs()).toHaveLength(before.length + 4);
  const erased = await world.query("ERASE SUBJECT 'Ann' REASON 'asked for' CERTIFY", scope);
  expect(erased.status, erased.text).toBe(200);
  expect(await blobs()).toHaveLength(before.length + 3);
  const page = await globex.send(new ListObjectsV2Command({ Bucket: 'files' }));
  expect(page.Contents!.map(({ Key }) => Key)).toEqual(['c']);
  globex.destroy();
});

test('what policy refuses, what fails and what is cut off leaves no body, and the usage stays flat', async () => {
  const { settings } = world.service;
  const { bodies } = world.service.upkeep;
  await bodies.round();
  const before = bodies.storedBytes;
  const flat = async (): Promise<void> => {
    expect(bodies.storedBytes).toBe(before);
    expect(await disk.list(`${settings.SERVICE_DATA_DIR}/blobs/incoming`)).toEqual([]);
  };
  const late = megabytes(1, 31);
  const begun = await s3.send(new CreateMultipartUploadCommand({ Bucket: 'docs', Key: 'shut' }));
  const upload = { Bucket: 'docs', Key: 'shut', UploadId: begun.UploadId };
  const { ETag } = await s3.send(new UploadPartCommand({ ...upload, PartNumber: 1, Body: megabytes(1, 32) }));
  expect(bodies.storedBytes).toBeGreaterThan(before + (1 << 20));
  const policies = {
    all: 'permit(principal, action, resource);',
    shut: 'forbid(principal, action == Action::"write", resource is ObjectStoreObject) when { resource.key == "shut" };',
    hash: `forbid(principal, action == Action::"write", resource is ObjectStoreObject) when { resource.content_hash == "${sha256(late)}" };`,
    size: 'forbid(principal, action == Action::"write", resource is ObjectStoreObject) when { resource.key == "wide" && resource.size > 1500000 };',
  };
  for (const [id, policy] of Object.entries(policies))
    expect((await world.admin('PUT', `/admin/policies/${id}`, { policy })).status).toBeLessThan(300);

  // Before the body: the client that waits is not told to go on.
  const url = new URL(await getSignedUrl(signer, new PutObjectCommand({ Bucket: 'docs', Key: 'shut' })));
  const heard = await sentAhead(
    objectPort(world),
    `PUT ${url.pathname}${url.search} HTTP/1.1\r\nhost: ${url.host}\r\ncontent-length: 2000000\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n`,
    1,
  );
  expect(heard).toMatch(/^HTTP\/1\.1 403 [^]*<Code>AccessDenied/);
  for (let i = 0; i < 5; i++) {
    expect(await codeOf(put('shut', megabytes(1, 40 + i)))).toBe('AccessDenied 403');
    expect(await codeOf(put('wide', megabytes(2, 40 + i)))).toBe('AccessDenied 403');
    // After it, for it is the body that the policy looks at.
    expect(await codeOf(put('open', late))).toBe('AccessDenied 403');
    expect(await codeOf(put('large', megabytes(1, 50 + i), { IfNoneMatch: '*' }))).toBe('PreconditionFailed 412');
    expect(await codeOf(put('large', megabytes(1, 50 + i), { IfMatch: '"0"' }))).toBe('PreconditionFailed 412');
    expect(await codeOf(put('open', megabytes(1, 50 + i), { ContentMD5: Buffer.alloc(16).toString('base64') }))).toBe(
      'BadDigest 400',
    );
    const part = new UploadPartCommand({ ...upload, PartNumber: 2 + i, Body: megabytes(1, 60 + i) });
    expect(await codeOf(s3.send(part))).toBe('AccessDenied 403');
    const Parts = [{ PartNumber: 1, ETag }];
    expect(await codeOf(s3.send(new CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts } })))).toBe(
      'AccessDenied 403',
    );
    const copy = new CopyObjectCommand({ Bucket: 'docs', Key: 'shut', CopySource: 'docs/large' });
    expect(await codeOf(s3.send(copy))).toBe('AccessDenied 403');
  }
  expect(await codeOf(s3.send(new CreateMultipartUploadCommand({ Bucket: 'docs', Key: 'shut' })))).toBe('AccessDenied 403');
  await s3.send(new AbortMultipartUploadCommand(upload));
  await flat();

  // A body that breaks off, in a request and in a part.
  const again = await s3.send(new CreateMultipartUploadCommand({ Bucket: 'docs', Key: 'open' }));
  const rest = { Bucket: 'docs', Key: 'open', UploadId: again.UploadId };
  for (const command of [
    new PutObjectCommand({ Bucket: 'docs', Key: 'open' }),
    new UploadPartCommand({ ...rest, PartNumber: 1 }),
  ]) {
    const at = new URL(await getSignedUrl(signer, command as PutObjectCommand));
    const socket = connect(objectPort(world), '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write(`PUT ${at.pathname}${at.search} HTTP/1.1\r\nhost: ${at.host}\r\ncontent-length: 3000000\r\n\r\n`);
    socket.write(megabytes(2, 70));
    await vi.waitFor(() => expect(bodies.storedBytes).toBeGreaterThan(before + (1 << 20)));
    socket.destroy();
    await vi.waitFor(() => expect(bodies.storedBytes).toBe(before));
  }
  await s3.send(new AbortMultipartUploadCommand(rest));
  await vi.waitFor(flat);

  // One of two that put the same at once is refused: the other's body stays.
  await world.admin('DELETE', '/admin/policies/hash');
  const closed =
    'forbid(principal, action == Action::"write", resource is ObjectStoreObject) when { resource.key == "closed" && resource.content_hash != "" };';
  await world.admin('PUT', '/admin/policies/closed', { policy: closed });
  const codes = await Promise.all(['kept 1', 'closed', 'kept 2', 'closed'].map((key) => codeOf(put(key, late))));
  expect(codes).toEqual(['answered', 'AccessDenied 403', 'answered', 'AccessDenied 403']);
  expect(await codeOf(put('closed', late))).toBe('AccessDenied 403');
  expect((await get('kept 1')) === late.toString()).toBe(true);
  for (const id of ['all', 'shut', 'size', 'closed']) await world.admin('DELETE', `/admin/policies/${id}`);
  for (const key of ['kept 1', 'kept 2'])
    await world.call('DELETE', `/types/ObjectStoreObject/${encodeURIComponent(`docs/${key}`)}?hard=true`);
  await bodies.round();
  await flat();
});

test('what a crash leaves between a body and its row is gone after the next start', async () => {
  const crashed = new MemoryDisk();
  const first = await objectWorld(crashed);
  const client = clientOf(first);
  await client.send(new CreateBucketCommand({ Bucket: 'docs' }));
  const kept = megabytes(1, 80);
  await putInto(client, 'kept', kept);
  const { settings } = first.service;
  const { keyring } = first.service.store;
  const stored = first.service.upkeep.bodies.storedBytes;
  const blobs = new Blobs({ disk: crashed, random: systemRandom, directory: settings.SERVICE_DATA_DIR, keyring });
  const unnamed = await blobs.begin('');
  await unnamed.write(megabytes(2, 81));
  await unnamed.finish();
  await (await blobs.part()).write(megabytes(2, 82));
  await (await blobs.begin('')).write(megabytes(2, 83));
  client.destroy();
  await first.close();
  const second = await objectWorld(crashed);
  second.service.tend();
  await vi.waitFor(() => expect(second.service.upkeep.bodies.storedBytes).toBe(stored));
  expect(await crashed.list(`${settings.SERVICE_DATA_DIR}/blobs/incoming`)).toEqual([]);
  const reader = clientOf(second);
  expect((await textOf(reader, 'kept')) === kept.toString()).toBe(true);
  reader.destroy();
  await second.close();
});

test('parts and the object that they become are counted once, and what does not fit is refused before it comes', async () => {
  const { bodies } = world.service.upkeep;
  const { log } = world.service.store;
  const stored = Object.getOwnPropertyDescriptor(Blobs.prototype, 'bytes')!.get!;
  /** So many bytes of the cap are left, whatever is stored. */
  const leave = (bytes: number): void => {
    const more = 10_000_000_000 - log.status().bytes - bodies.storedBytes - bytes;
    vi.spyOn(Blobs.prototype, 'bytes', 'get').mockImplementation(function (this: Blobs) {
      return (stored.call(this) as number) + more;
    });
  };
  const begun = await s3.send(new CreateMultipartUploadCommand({ Bucket: 'docs', Key: 'fits' }));
  const upload = { Bucket: 'docs', Key: 'fits', UploadId: begun.UploadId };
  // Room for the two parts, and not for the object beside them.
  leave(9 << 20);
  const parts = [megabytes(5, 90), megabytes(3, 91)];
  const Parts: { PartNumber: number; ETag: string | undefined }[] = [];
  for (const [i, Body] of parts.entries()) {
    const { ETag } = await s3.send(new UploadPartCommand({ ...upload, PartNumber: i + 1, Body }));
    Parts.push({ PartNumber: i + 1, ETag });
  }
  expect(await codeOf(s3.send(new UploadPartCommand({ ...upload, PartNumber: 3, Body: megabytes(2, 92) })))).toBe(
    'QuotaExceeded 402',
  );
  expect(await codeOf(put('more', megabytes(2, 93)))).toBe('QuotaExceeded 402');
  const partsBytes = bodies.storedBytes;
  await s3.send(new CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts } }));
  expect(Math.abs(bodies.storedBytes - partsBytes)).toBeLessThan(16_384);
  vi.restoreAllMocks();
  const { Body } = await s3.send(new GetObjectCommand({ Bucket: 'docs', Key: 'fits' }));
  expect(Buffer.compare(await Body!.transformToByteArray(), Buffer.concat(parts))).toBe(0);
});

test('uploads that nobody goes on with end after a day, and one that was completed is remembered for an hour', async () => {
  let ms = 0;
  const clock = { ...systemClock, monotonicMs: () => ms, now: () => BigInt(ms) * 1_000_000n };
  const uploads = new OpenUploads({ clock, random: systemRandom });
  const caller = { principal: 'p', tenant: null, path: null, branch: 'main' } as Caller;
  const facts = { contentType: null, metadata: {}, headers: {} };
  const begin = (key: string): Upload => uploads.begin(caller, { bucket: 'b', key, facts, checksum: null });
  let dropped = 0;
  const part = { size: 3 * 2 ** 30, read: async function* () {}, count: () => undefined, drop: async () => void dropped++ };
  const uploaded = { part, sha256: '', checksums: new Map(), atMs: 0 };
  const [idle, used, done] = [begin('idle'), begin('used'), begin('done')];
  await uploads.put(idle, 1, uploaded);
  await uploads.put(used, 1, uploaded);
  expect(() => uploads.expect(used, 2, 3 * 2 ** 30)).toThrow('at most 5368709120 bytes');
  // The same part again takes the place of the first.
  uploads.expect(used, 1, 3 * 2 ** 30)();
  const completion = { version: 1n, sha256: 'x', checksums: new Map() };
  await uploads.complete(done, 'named', () => Promise.resolve(completion));
  const failing = uploads.complete(used, 'named', () => Promise.reject(new Error('refused')));
  await expect(failing).rejects.toThrow('refused');
  const found = (who = caller) => uploads.findCompletion(who, done.id, 'b', 'done');
  ms = 3_600_000;
  expect(await found()).toMatchObject({ ...completion, named: 'named' });
  expect(await found({ ...caller, principal: 'other' })).toBeNull();
  ms++;
  expect(await found()).toBeNull();
  ms = 86_400_000;
  uploads.get(caller, used.id, 'b', 'used');
  ms++;
  await uploads.endIdle();
  expect(dropped).toBe(1);
  expect(() => uploads.get(caller, idle.id, 'b', 'idle')).toThrow('no such upload');
  expect(uploads.list(caller, 'b').map(({ key }) => key)).toEqual(['used']);
});

test('a backup holds bodies, and a store that is made of it shows them', async () => {
  const body = megabytes(2, 20);
  await put('backed up', body);
  const { json, text } = await world.admin('POST', '/admin/backup', {});
  const restored = await world.admin('POST', '/admin/restore', { backup: json['backup'], target_dir: '/restored' });
  expect(restored.status, text + restored.text).toBe(200);
  const secrets = { SERVICE_BEARER_TOKEN: objectToken, SERVICE_OBJECT_SECRET_KEY: objectSecret };
  const settings = { ...secrets, SERVICE_IN_MEMORY: 'false', SERVICE_DATA_DIR: '/restored' };
  const second = await StoreWorld.open(settings, { disk });
  const client = clientOf(second);
  const { Body } = await client.send(new GetObjectCommand({ Bucket: 'docs', Key: 'backed up' }));
  expect(Buffer.compare(await Body!.transformToByteArray(), body)).toBe(0);
  client.destroy();
  await second.close();
  const report = await verifyDirectory({ disk, directory: '/restored', keyring: world.service.store.keyring });
  expect([report.findings, report.blobs > 0]).toEqual([[], true]);
});

test.each(['utf8', 'utf16le'] as const)('an erasure finds sentences of a subject in large bodies, in %s', async (encoding) => {
  const sentence = `She keeps the letters in a blue tin under the stairs, as ${encoding}.`;
  const properties = { id: 'string', who: { type: 'string', subject: true }, said: 'string' };
  await world.call('POST', '/types', { name: 'Teller', properties, primary_key: 'id' });
  await world.call('POST', '/ingest?object_type=Teller', { id: encoding, who: `teller of ${encoding}`, said: sentence });
  const before = Buffer.alloc((1 << 20) - 21, '.');
  await put(`words in ${encoding}`, Buffer.concat([before, Buffer.from(sentence, encoding), Buffer.alloc(1 << 20, '.')]));
  const reply = await world.query(`ERASE SUBJECT 'teller of ${encoding}' REASON 'r' CERTIFY`);
  expect(reply.status).toBe(422);
  expect(reply.json['residuals']).toEqual([{ where: 'words', what: 'ObjectStoreObject.body', count: 1 }]);
});
