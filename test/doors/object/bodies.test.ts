/** Large bodies behind the object door: where they rest, what is missing, and when they go. */
import {
  CopyObjectCommand,
  CreateBucketCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemRandom } from '../../../src/clock.ts';
import { MissingBodies } from '../../../src/governance/erasure/missing-bodies.ts';
import { Blobs, listBlobs } from '../../../src/log/blobs.ts';
import { MemoryDisk } from '../../../src/log/memory-disk.ts';
import { verifyDirectory } from '../../../src/log/verify.ts';
import { StoreWorld } from '../http/store-world.ts';
import {
  clientOf,
  codeOf,
  forPath,
  megabytes,
  objectSecret,
  objectToken,
  objectWorld,
  putInto,
  sha256,
  textOf,
} from './object-client.ts';

const disk = new MemoryDisk();
let world: StoreWorld;
let s3: S3Client;
beforeAll(async () => {
  world = await objectWorld(disk);
  s3 = clientOf(world);
  await s3.send(new CreateBucketCommand({ Bucket: 'docs' }));
});
afterAll(async () => {
  s3.destroy();
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
  const { keyring, settings } = world.service;
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
  await world.service.bodies.round();
  const before = await blobs();
  await put('removed', megabytes(1, 7));
  await put('kept', megabytes(1, 8));
  await put('kept', megabytes(1, 9));
  await world.service.bodies.round();
  // What was superseded is readable by its version still.
  expect(await blobs()).toHaveLength(before.length + 3);
  const { status } = await world.call('DELETE', `/types/ObjectStoreObject/${encodeURIComponent('docs/removed')}?hard=true`);
  expect(status).toBe(200);
  await world.service.bodies.round();
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
  const report = await verifyDirectory({ disk, directory: '/restored', keyring: world.service.keyring });
  expect([report.findings, report.blobs > 0]).toEqual([[], true]);
});
